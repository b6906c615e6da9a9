/**
 * Transfers without RDMA: what stands for queue pairs, completion queues and memory regions where
 * there is no device. Each "queue pair" is one TCP connection, which keeps the promises of a
 * reliable connected queue pair, so that all that is built over those works over this.
 *
 * <pre>
 *   BatchPoster --post--&gt; TcpLane ==TCP==&gt; TcpLane --copy--&gt; pool of the peer
 *        ^                   |
 *        +---- poll ---- TcpCompletions
 * </pre>
 *
 * <p>Bytes go straight between the pools' segments and the sockets. What a peer asks for is checked
 * against this side's pools, ranges, keys and access, as an RDMA device would. Data is not
 * encrypted, as it is not over RDMA; who may connect is settled over the control connection.
 *
 * <p>For the package {@code dev.verbena.transfer}; not exported. May import {@code
 * dev.verbena.memory} and the vocabulary of {@code dev.verbena.verbs}; loads no native library.
 */
@NullMarked
package dev.verbena.tcp;

import org.jspecify.annotations.NullMarked;
