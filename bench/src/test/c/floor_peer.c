/* The parts of which posting consists, each by itself, as a C program does them. */
#include "noop.h"

#include <stdlib.h>

/* Calls a function of the driver that does nothing. */
void peer_call(struct noop_device *device, uint32_t calls)
{
    for (uint32_t i = 0; i < calls; i++) {
        if (ibv_req_notify_cq(&device->cq, 0))
            abort();
    }
}

/* Adds one to a number that other threads could add to as well. Returns the number. */
uint64_t peer_add(uint32_t additions)
{
    static uint64_t number;

    for (uint32_t i = 0; i < additions; i++)
        __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST);
    return number;
}

/* Fills an array of linked work requests from arrays of addresses, again and again. Returns the last wr_id. */
uint64_t peer_fill(uint32_t size, uint32_t times, const uint64_t *locals, const uint64_t *remotes,
                   const uint64_t *lengths, uint32_t lkey, uint32_t rkey)
{
    struct ibv_send_wr *wr = calloc(size, sizeof(*wr));
    struct ibv_sge *sge = calloc(size, sizeof(*sge));
    uint64_t last;

    for (uint32_t t = 0; t < times; t++) {
        for (uint32_t k = 0; k < size; k++) {
            sge[k].addr = locals[k];
            sge[k].length = lengths[k];
            sge[k].lkey = lkey;
            wr[k].wr_id = t + k;
            wr[k].next = k + 1 < size ? &wr[k + 1] : NULL;
            wr[k].sg_list = &sge[k];
            wr[k].num_sge = 1;
            wr[k].opcode = IBV_WR_RDMA_WRITE;
            wr[k].send_flags = 0;
            wr[k].wr.rdma.remote_addr = remotes[k];
            wr[k].wr.rdma.rkey = rkey;
        }
        /* What a driver reads must be there each time. */
        __asm__ volatile("" : : "r"(wr), "r"(sge) : "memory");
    }
    last = wr[size - 1].wr_id;
    free(sge);
    free(wr);
    return last;
}
