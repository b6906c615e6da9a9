/*
 * What a C program would write to post a batch: fill an array of work requests, link them, ring once, poll until the
 * last one is done. It knows its keys, checks nothing and keeps no account of what is in flight.
 */
#include "noop.h"

#include <stdlib.h>

#define POLL 64

/* Rings once for the requests of a batch, and polls until the last of them is done. Returns the completions polled. */
static inline uint64_t post_and_wait(struct noop_device *device, struct ibv_send_wr *wr, uint32_t size)
{
    struct ibv_send_wr *bad;
    struct ibv_wc wc[POLL];
    uint64_t completions = 0;

    if (ibv_post_send(&device->qp, wr, &bad))
        abort();
    for (int done = 0; !done;) {
        int count = ibv_poll_cq(&device->cq, POLL, wc);

        for (int i = 0; i < count; i++) {
            if (wc[i].status != IBV_WC_SUCCESS)
                abort();
            done |= wc[i].wr_id == size - 1;
        }
        completions += count;
    }
    return completions;
}

/*
 * Posts batches again and again. Block k of batch b is page (k * 5 + b * 3) mod pages here and (k * 11 + b * 7) mod
 * pages at the peer, so that addresses are new each time and no two blocks are adjacent.
 *
 * Returns the completions polled.
 */
uint64_t peer_post(struct noop_device *device, uint32_t size, uint32_t batches, uint64_t local, uint32_t lkey,
                   uint64_t remote, uint32_t rkey, uint64_t pages, uint32_t page_bytes)
{
    struct ibv_send_wr *wr = calloc(size, sizeof(*wr));
    struct ibv_sge *sge = calloc(size, sizeof(*sge));
    uint64_t completions = 0;

    for (uint32_t b = 0; b < batches; b++) {
        for (uint32_t k = 0; k < size; k++) {
            uint64_t here = ((uint64_t)k * 5 + (uint64_t)b * 3) & (pages - 1);
            uint64_t there = ((uint64_t)k * 11 + (uint64_t)b * 7) & (pages - 1);

            sge[k].addr = local + here * page_bytes;
            sge[k].length = page_bytes;
            sge[k].lkey = lkey;
            wr[k].wr_id = k;
            wr[k].next = k + 1 < size ? &wr[k + 1] : NULL;
            wr[k].sg_list = &sge[k];
            wr[k].num_sge = 1;
            wr[k].opcode = IBV_WR_RDMA_WRITE;
            wr[k].send_flags = k + 1 < size ? 0 : IBV_SEND_SIGNALED;
            wr[k].wr.rdma.remote_addr = remote + there * page_bytes;
            wr[k].wr.rdma.rkey = rkey;
        }
        completions += post_and_wait(device, wr, size);
    }
    free(sge);
    free(wr);
    return completions;
}

/*
 * The same with addresses and lengths from arrays, as of a page table: batch b takes the elements from
 * (b mod sets) * size on. The loop is written out again, as both are slower with a function that they share.
 */
uint64_t peer_post_listed(struct noop_device *device, uint32_t size, uint32_t batches, uint32_t sets,
                          const uint64_t *locals, uint32_t lkey, const uint64_t *remotes, uint32_t rkey,
                          const uint64_t *lengths)
{
    struct ibv_send_wr *wr = calloc(size, sizeof(*wr));
    struct ibv_sge *sge = calloc(size, sizeof(*sge));
    uint64_t completions = 0;

    for (uint32_t b = 0; b < batches; b++) {
        uint64_t from = (uint64_t)(b % sets) * size;

        for (uint32_t k = 0; k < size; k++) {
            sge[k].addr = locals[from + k];
            sge[k].length = lengths[from + k];
            sge[k].lkey = lkey;
            wr[k].wr_id = k;
            wr[k].next = k + 1 < size ? &wr[k + 1] : NULL;
            wr[k].sg_list = &sge[k];
            wr[k].num_sge = 1;
            wr[k].opcode = IBV_WR_RDMA_WRITE;
            wr[k].send_flags = k + 1 < size ? 0 : IBV_SEND_SIGNALED;
            wr[k].wr.rdma.remote_addr = remotes[from + k];
            wr[k].wr.rdma.rkey = rkey;
        }
        completions += post_and_wait(device, wr, size);
    }
    free(sge);
    free(wr);
    return completions;
}

/* Polls again and again from a queue that is never empty. Returns the sum of all identities. */
uint64_t peer_poll(struct noop_device *device, uint32_t entries, uint32_t polls)
{
    struct ibv_wc *wc = calloc(entries, sizeof(*wc));
    uint64_t sum = 0;

    for (uint32_t p = 0; p < polls; p++) {
        int count = ibv_poll_cq(&device->cq, entries, wc);

        for (int i = 0; i < count; i++) {
            if (wc[i].status != IBV_WC_SUCCESS)
                abort();
            sum += wc[i].wr_id;
        }
    }
    free(wc);
    return sum;
}
