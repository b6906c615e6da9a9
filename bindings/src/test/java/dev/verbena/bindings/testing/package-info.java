/**
 * Test support that other modules may use: the artifact's test jar. A package of its own, since a
 * package can belong to one module only and this jar lies on the class path.
 */
@NullMarked
package dev.verbena.bindings.testing;

import org.jspecify.annotations.NullMarked;
