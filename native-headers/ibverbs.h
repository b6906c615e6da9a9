/* The one header that scripts/generate-bindings reads. */
#include <infiniband/verbs.h>
