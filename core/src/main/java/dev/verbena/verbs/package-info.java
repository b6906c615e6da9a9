/**
 * Verbs objects: devices, protection domains, memory regions, completion queues and queue pairs.
 *
 * <p>Each object owns one native handle and is closed once. A child keeps its parent open: closing
 * a parent that still has children throws and names them, so the order is queue pair, memory
 * window, memory region, completion queue, completion channel, protection domain, device.
 *
 * <p>Objects may be shared between threads: control calls are thread-safe as libibverbs promises,
 * and closing waits for calls under way. Posting to one queue pair, and polling one completion
 * queue, is for one thread at a time. A call on a closed object throws {@link
 * java.lang.IllegalStateException}; it never reaches freed native memory.
 *
 * <p>May import the bindings, and nothing of the packages above.
 */
package dev.verbena.verbs;
