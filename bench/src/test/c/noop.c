/*
 * The driver's own functions, reached through the table of the context like those of any driver. What they cost is
 * paid alike by everybody who posts: each request and each of its pieces is read, and summed so that no read can be
 * left out and that what two programs posted can be compared.
 */
#include "noop.h"

#include <errno.h>
#include <stdlib.h>

static int noop_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct noop_device *device = (struct noop_device *)qp->context;
    uint64_t sum = device->checksum;
    uint64_t requests = 0;

    for (; wr; wr = wr->next) {
        if (wr->num_sge < 0 || device->head - device->tail == NOOP_COMPLETIONS) {
            *bad_wr = wr;
            return ENOMEM;
        }
        sum += wr->wr.rdma.remote_addr * 3 + wr->wr.rdma.rkey + wr->opcode;
        for (int i = 0; i < wr->num_sge; i++) {
            const struct ibv_sge *sge = &wr->sg_list[i];
            sum += sge->addr * 5 + sge->length + sge->lkey;
        }
        if (wr->send_flags & IBV_SEND_SIGNALED)
            device->identities[device->head++ % NOOP_COMPLETIONS] = wr->wr_id;
        requests++;
    }
    device->checksum = sum;
    device->requests += requests;
    device->doorbells++;
    return 0;
}

static int noop_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    (void)qp;
    (void)wr;
    (void)bad_wr;
    return 0;
}

static void complete(struct ibv_wc *wc, const struct noop_device *device, uint64_t identity)
{
    wc->wr_id = identity;
    wc->status = IBV_WC_SUCCESS;
    wc->opcode = IBV_WC_RDMA_WRITE;
    wc->vendor_err = 0;
    wc->byte_len = 0;
    wc->imm_data = 0;
    wc->qp_num = device->qp.qp_num;
    wc->wc_flags = 0;
}

static int noop_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
    struct noop_device *device = (struct noop_device *)cq->context;
    int count = 0;

    if (device->endless) {
        for (; count < entries; count++)
            complete(&wc[count], device, device->endless++);
        return count;
    }
    for (; count < entries && device->tail != device->head; count++)
        complete(&wc[count], device, device->identities[device->tail++ % NOOP_COMPLETIONS]);
    return count;
}

static int noop_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    (void)cq;
    (void)solicited_only;
    return 0;
}

struct noop_device *noop_open(void)
{
    struct noop_device *device = aligned_alloc(64, (sizeof(*device) + 63) / 64 * 64);

    if (!device)
        return NULL;
    *device = (struct noop_device){0};
    device->context.ops.post_send = noop_post_send;
    device->context.ops.post_recv = noop_post_recv;
    device->context.ops.poll_cq = noop_poll_cq;
    device->context.ops.req_notify_cq = noop_req_notify_cq;
    device->qp.context = &device->context;
    device->qp.qp_num = 1;
    device->cq.context = &device->context;
    return device;
}

void noop_close(struct noop_device *device)
{
    free(device);
}
