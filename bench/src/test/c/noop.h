/* The no-op driver: a device in memory that reads what it is given, as a driver must, and moves nothing. */
#ifndef VERBENA_NOOP_H
#define VERBENA_NOOP_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* Signalled requests whose completions were not polled; a power of two above any queue's depth. */
#define NOOP_COMPLETIONS 4096

struct noop_device {
    struct ibv_context context;
    struct ibv_qp qp;
    struct ibv_cq cq;
    uint64_t checksum;
    uint64_t requests;
    uint64_t doorbells;
    uint64_t endless;   /* if set, every poll is filled, with identities that count up from here */
    uint64_t head;
    uint64_t tail;
    uint64_t identities[NOOP_COMPLETIONS];
};

struct noop_device *noop_open(void);
void noop_close(struct noop_device *device);

#endif
