/**
 * The demo: one request's KV cache, moved from a prefill process to a decode process.
 *
 * <p>Reading order: {@link dev.verbena.demo.VerbenaDemo} is the command line; {@code Run} starts
 * the decode process and plays prefill; {@code Prefill} and {@code Decode} are the two sides of the
 * conversation that {@code DemoMessage} lists. {@code RequestPages} scatters a request over a
 * cache, {@code PageContent} fills it, {@code PageCheck} judges what arrived, {@code Report} tells.
 *
 * <p>May import everything that core exports; nothing imports it.
 */
package dev.verbena.demo;
