package dev.verbena.verbs;

import dev.verbena.bindings.ibverbs.ibv_device_attr;
import java.lang.foreign.MemorySegment;

/**
 * What a device can do.
 *
 * <p>Source: {@code ibv_query_device(3)}.
 *
 * @param firmware version of its firmware, may be empty
 * @param vendorId the vendor's number
 * @param vendorPartId the vendor's number of the model
 * @param maxQueuePairs most queue pairs
 * @param maxWorkRequests most work requests outstanding on one queue
 * @param maxSge most scatter-gather entries of a work request
 * @param maxCompletionQueues most completion queues
 * @param maxCompletions most entries of one completion queue
 * @param maxMemoryRegions most memory regions
 * @param maxMemoryRegionBytes longest memory region, unsigned
 * @param maxMemoryWindows most memory windows, 0 if it has none
 * @param maxProtectionDomains most protection domains
 * @param maxReadsAsResponder most reads and atomics of a peer outstanding on one queue pair
 * @param maxReadsAsRequester most reads and atomics outstanding towards a peer on one queue pair
 * @param portCount ports, numbered from 1
 */
public record DeviceAttributes(
        String firmware,
        int vendorId,
        int vendorPartId,
        int maxQueuePairs,
        int maxWorkRequests,
        int maxSge,
        int maxCompletionQueues,
        int maxCompletions,
        int maxMemoryRegions,
        long maxMemoryRegionBytes,
        int maxMemoryWindows,
        int maxProtectionDomains,
        int maxReadsAsResponder,
        int maxReadsAsRequester,
        int portCount) {

    static DeviceAttributes read(MemorySegment attr) {
        return new DeviceAttributes(
                ibv_device_attr.fw_ver(attr).getString(0),
                ibv_device_attr.vendor_id(attr),
                ibv_device_attr.vendor_part_id(attr),
                ibv_device_attr.max_qp(attr),
                ibv_device_attr.max_qp_wr(attr),
                ibv_device_attr.max_sge(attr),
                ibv_device_attr.max_cq(attr),
                ibv_device_attr.max_cqe(attr),
                ibv_device_attr.max_mr(attr),
                ibv_device_attr.max_mr_size(attr),
                ibv_device_attr.max_mw(attr),
                ibv_device_attr.max_pd(attr),
                ibv_device_attr.max_qp_rd_atom(attr),
                ibv_device_attr.max_qp_init_rd_atom(attr),
                Byte.toUnsignedInt(ibv_device_attr.phys_port_cnt(attr)));
    }
}
