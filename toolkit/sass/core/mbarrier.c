#include "mbarrier.h"

#include <string.h>

static u32 counted_up(u64 x, u32 shift) {
    return (MOST_COUNT - (u32)(x >> shift & (MOST_COUNT - 1))) & (MOST_COUNT - 1);
}

Mbarrier unpacked(u64 x) {
    return (Mbarrier){.expected = counted_up(x, EXPECTED_SHIFT),
                      .pending = counted_up(x, PENDING_SHIFT),
                      .bytes = (i32)((i64)(x << (64 - BYTES_SHIFT - BYTES_BITS)) >> (64 - BYTES_BITS)),
                      .phase = (u32)(x >> PHASE_SHIFT)};
}

u64 packed(Mbarrier b) {
    const u64 most = MOST_COUNT - 1, of_bytes = (1ull << BYTES_BITS) - 1;
    return (u64)b.phase << PHASE_SHIFT | ((MOST_COUNT - b.pending) & most) << PENDING_SHIFT |
           ((u64)b.bytes & of_bytes) << BYTES_SHIFT |
           ((MOST_COUNT - b.expected) & most) << EXPECTED_SHIFT;
}

/* True if `bytes` at an address of the cluster's shared memory belong to some block. */
int in_shared_memory(const Worker *c, u64 address, u64 bytes) {
    const u64 offset = offset_at(address);
    return block_at(c, address) && offset >= c->launch->shared_base &&
           offset + bytes <= c->launch->shared_bytes;
}

u64 read_mbarrier(const Worker *c, u64 address) {
    u64 x;
    memcpy(&x, block_at(c, address)->shared + offset_at(address), sizeof x);
    return x;
}

void write_mbarrier(Worker *c, u64 address, u64 x) {
    memcpy(block_at(c, address)->shared + offset_at(address), &x, sizeof x);
    c->changes++;
}

/* The barrier that a fault is of. */
void blame_mbarrier(Worker *c, u64 address, Mbarrier b) {
    c->fault.address = address;
    c->fault.pending = b.pending;
    c->fault.bytes = b.bytes;
    c->fault.phase = b.phase;
}

/* Let those look again who wait for a barrier in shared memory. */
void wake(Worker *c) {
    EACH_GROUP_OF_ALL(g)
        if (g->state == AT_MBARRIER) g->state = READY;
    c->phases = 0;
}

/* Entry of a barrier: its number of phase changes since it was initialized. */
Generation *generation_at(Worker *c, u64 address) {
    Block *b = block_at(c, address);
    const u32 offset = offset_at(address);
    for (u32 k = 0; k < b->mbarriers; k++)
        if (b->mbarrier[k].offset == offset) return &b->mbarrier[k];
    const u32 k = b->mbarriers < MOST_MBARRIERS ? b->mbarriers++ : MOST_MBARRIERS - 1;
    b->mbarrier[k] = (Generation){.offset = offset};
    return &b->mbarrier[k];
}
