/* Where addresses are: buffers, windows and bounds, and what of shared memory is written. */
#pragma once

#include "core.h"

enum { SHARED_WINDOW_BITS = 24 };

enum { BYTES_OF_FLAGS = 16 }; /* of shared memory, that a u16 of Block.shared_written has a bit for each of */

static inline int inside(const Allocation *x, u64 low, u64 high) {
    return low >= x->base && high <= x->base + x->bytes && high >= low;
}

static inline const Allocation *allocation_of(Worker *c, u64 low, u64 high) {
    const Launch *launch = c->launch;
    u32 *last = &c->last_allocation[c->pc];
    if (*last < launch->allocation_count && inside(&launch->allocations[*last], low, high))
        return &launch->allocations[*last];
    for (u32 k = 0; k < launch->allocation_count; k++)
        if (inside(&launch->allocations[k], low, high)) {
            *last = k;
            return &launch->allocations[k];
        }
    return NULL;
}

/* A generic address says by its window which space it means, and in shared memory which block. */
static inline int in_shared_window(const Worker *c, u64 address) {
    return address - c->launch->shared_window < (u64)c->cluster_size << SHARED_WINDOW_BITS;
}
static inline int in_local_window(const Worker *c, u64 address) {
    return address - c->launch->local_window < 1ull << SHARED_WINDOW_BITS;
}

void memory_fault(Worker *c, const Warp *w, u32 kind, u32 space, int lane, u64 address, u64 bytes,
                  int is_store);
int resolve(Worker *c, Warp *w, const Ins *i, u64 *a, u32 m, u32 space, int is_store, u8 **at);
void check_bytes(Worker *c, const Warp *w, const Ins *i, int lane, const Block *b, u32 offset, u32 bytes);
void mark_bytes(Block *b, u32 offset, u32 bytes, u8 written);
void check_written(Worker *c, const Warp *w, const Ins *i, u8 *const *at, u32 m, u32 owners);
void mark_written(Worker *c, const Ins *i, u8 *const *at, u32 m);
void own_shared(const Worker *c, u64 *a);
