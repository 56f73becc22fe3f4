/* Address spaces: buffers, windows and bounds, and the written parts of shared memory. */
#pragma once

#include "heap.h"
#include "lanes.h"

enum { APART = 2 }; /* of resolve */
enum { NULL_PAGE = 1 << 16 }; /* an address below comes from a null pointer */

enum { SHARED_WINDOW_BITS = 24, PAGE_BITS = 16, PAGE = 1 << PAGE_BITS, COPIED = PAGE, MOST_PAGES = 16 };

enum { BYTES_OF_FLAGS = 16 }; /* of shared memory, that a u16 of Block.shared_written has a bit for each of */

static inline int inside(const Allocation *x, u64 low, u64 high) {
    return low >= x->base && high <= x->base + x->bytes && high >= low;
}

void touch(const Worker *c, Allocation *all);

/* The allocation that holds the bytes from `low` to `high`; of the heap they must be in one live block. */
static inline const Allocation *allocation_of(Worker *c, u64 low, u64 high) {
    const Launch *launch = c->launch;
    u32 *last = &c->last_allocation[c->pc];
    if (*last < launch->allocation_count && inside(&launch->allocations[*last], low, high)) {
        const Allocation *all = &launch->allocations[*last];
        return !all->is_heap || heap_holds(c->heap, low, high) ? all : NULL;
    }
    for (u32 k = 0; k < launch->allocation_count; k++)
        if (inside(&launch->allocations[k], low, high)) {
            *last = k;
            touch(c, &launch->allocations[k]);
            return !launch->allocations[k].is_heap || heap_holds(c->heap, low, high)
                       ? &launch->allocations[k] : NULL;
        }
    return NULL;
}

/* The allocation of the bytes from `low` to `high`, if this access of them is allowed. */
static inline const Allocation *buffer_of(Worker *c, u64 low, u64 high, int is_store) {
    const Allocation *all = allocation_of(c, low, high);
    return all && (all->writable || !is_store) ? all : NULL;
}

/* A generic address says by its window which space it means, and in shared memory which block. */
static inline int in_shared_window(const Worker *c, u64 address) {
    return address - c->launch->shared_window < (u64)c->cluster_size << SHARED_WINDOW_BITS;
}
static inline int in_local_window(const Worker *c, u64 address) {
    return address - c->launch->local_window < 1ull << SHARED_WINDOW_BITS;
}

/* The lowest and the highest of the addresses, and all their bits; inactive lanes hold the address of an
 * active one. */
typedef struct { u64 low, high, bits; } Extent;

static inline Extent extent_of(const u64 *a) {
    u64 low = a[0], high = a[0], bits = 0;
    FOR_LANES {
        low = a[l] < low ? a[l] : low;
        high = a[l] > high ? a[l] : high;
        bits |= a[l];
    }
    return (Extent){.low = low, .high = high, .bits = bits};
}

/* Lanes that are not in m get the address of one that is. */
static inline void narrow(u64 *a, u32 m) {
    const u64 first = a[__builtin_ctz(m)];
    FOR_LANES
        if (!(m >> l & 1)) a[l] = first;
}

/* The lanes of m whose generic addresses are in each space. */
typedef struct { u32 shared, local, global; } Spaces;

static inline Spaces spaces_of(const Worker *c, const u64 *a, u32 m) {
    const u32 shared = m & LANE_BITS(in_shared_window(c, a[l]));
    const u32 local = m & ~shared & LANE_BITS(in_local_window(c, a[l]));
    return (Spaces){.shared = shared, .local = local, .global = m & ~shared & ~local};
}

void memory_fault(Worker *c, const Warp *w, u32 kind, u32 space, int lane, u64 address, u64 bytes,
                  int is_store);
u8 *host_of(const Allocation *x, u64 low, u64 high, int is_store);
u32 fault_of(Worker *c, const Ins *i, u64 address, u32 space, int is_store);
int resolve(Worker *c, Warp *w, const Ins *i, u64 *a, u32 m, u32 space, int is_store, u8 **at);
void check_bytes(Worker *c, const Warp *w, const Ins *i, int lane, const Block *b, u32 offset, u32 bytes);
void mark_bytes(Block *b, u32 offset, u32 bytes, u8 written);
void check_written(Worker *c, const Warp *w, const Ins *i, u8 *const *at, u32 m, u32 owners);
void mark_written(Worker *c, const Ins *i, u8 *const *at, u32 m);
void own_shared(const Worker *c, u64 *a);
