#include "space.h"

#include <string.h>

void memory_fault(Worker *c, const Warp *w, u32 kind, u32 space, int lane, u64 address, u64 bytes,
                  int is_store) {
    if (c->fault.kind) return;
    stop(c, kind);
    blame(c, w, 1u << lane);
    c->fault.space = space;
    c->fault.width = (u32)bytes;
    c->fault.address = address;
    c->fault.is_store = (u32)is_store;
}

/* Where each lane's bytes are on the host. False, with the fault noted, where one may not go. */
int resolve(Worker *c, Warp *w, const Ins *i, u64 *a, u32 m, u32 space, int is_store,
            u8 **at) {
    const Launch *launch = c->launch;
    const Extent e = extent_of(a);
    if (e.bits & (i->width - 1)) {
        FOR_LANES
            if (m >> l & 1 && a[l] & (i->width - 1)) {
                memory_fault(c, w, MISALIGNED, space, l, a[l], i->width, is_store);
                return 0;
            }
    }
    if (space == SPACE_SHARED || space == SPACE_LOCAL) {
        const u64 from = space == SPACE_SHARED ? launch->shared_base : 0;
        const u64 to = space == SPACE_SHARED ? launch->shared_bytes : launch->local_bytes;
        if (e.low < from || e.high + i->width > to) {
            FOR_LANES
                if (m >> l & 1 && (a[l] < from || a[l] + i->width > to)) {
                    memory_fault(c, w, OUT_OF_BOUNDS, space, l, a[l], i->width, is_store);
                    return 0;
                }
        }
        u8 *base = space == SPACE_SHARED ? c->block->shared : w->local;
        const u64 pitch = space == SPACE_SHARED ? 0 : launch->local_bytes;
        FOR_LANES at[l] = base + (u64)l * pitch + a[l];
        return 1;
    }
    const Allocation *all = allocation_of(c, e.low, e.high + i->width);
    if (all && (all->writable || !is_store)) {
        FOR_LANES at[l] = all->host + (a[l] - all->base);
        return 1;
    }
    FOR_LANES_OF(m) {
        const Allocation *one = allocation_of(c, a[l], a[l] + i->width);
        if (!one || (is_store && !one->writable)) {
            memory_fault(c, w, one ? WRITE_TO_CONSTANT : OUT_OF_BOUNDS, space, l, a[l], i->width,
                         is_store);
            return 0;
        }
        at[l] = one->host + (a[l] - one->base);
    }
    FOR_LANES
        if (!(m >> l & 1)) at[l] = at[__builtin_ctz(m)];
    return 1;
}

static void note_unwritten(Worker *c, const Warp *w, const Ins *i, int lane, u64 address) {
    Worker *keeper = c->block->keeper ? c->block->keeper : c;
    if (keeper->unwritten_reads++) return;
    const Fault before = c->fault;
    memset(&c->fault, 0, sizeof c->fault);
    memory_fault(c, w, OUT_OF_BOUNDS, SPACE_SHARED, lane, address, i->width, 0);
    keeper->unwritten = c->fault;
    c->fault = before;
}

/* The flags of `bytes` from an offset on, all within one run of BYTES_OF_FLAGS, as aligned accesses
 * are. */
static u32 flags_of(u32 offset, u32 bytes) { return ((1u << bytes) - 1) << offset % BYTES_OF_FLAGS; }

static int all_written(const Block *b, u32 offset, u32 bytes) {
    const u32 flags = flags_of(offset, bytes);
    return (b->shared_written[offset / BYTES_OF_FLAGS] & flags) == flags;
}

/* A lane reads shared memory of a block. */
void check_bytes(Worker *c, const Warp *w, const Ins *i, int lane, const Block *b, u32 offset,
                 u32 bytes) {
    if (b->shared_unwritten && !all_written(b, offset, bytes)) note_unwritten(c, w, i, lane, offset);
}

/* Shared memory of a block is written, or will be by a copy under way: nobody may read it then. */
void mark_bytes(Block *b, u32 offset, u32 bytes, u8 written) {
    for (u32 end = offset + bytes; offset < end;) {
        const u32 room = BYTES_OF_FLAGS - offset % BYTES_OF_FLAGS;
        const u32 n = end - offset < room ? end - offset : room, of = flags_of(offset, n);
        u16 *flags = &b->shared_written[offset / BYTES_OF_FLAGS];
        const u32 before = *flags, now = written ? before | of : before & ~of;
        b->shared_unwritten += popcount(before) - popcount(now);
        *flags = (u16)now;
        offset += n;
    }
}

/* Once a block has written all of its shared memory, nobody keeps watch any more. Among the lanes in m
 * those in `owners` have all of their addresses. */
void check_written(Worker *c, const Warp *w, const Ins *i, u8 *const *at, u32 m, u32 owners) {
    const Block *b = c->block;
    int lacks = 0;
    if (!b->shared_unwritten) return;
    for (; owners; owners &= owners - 1)
        lacks |= !all_written(b, (u32)(at[__builtin_ctz(owners)] - b->shared), i->width);
    for (; lacks && m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        const u32 offset = (u32)(at[l] - b->shared);
        if (!all_written(b, offset, i->width)) note_unwritten(c, w, i, l, offset);
    }
}

void mark_written(Worker *c, const Ins *i, u8 *const *at, u32 m) {
    if (!c->block->shared_unwritten) return;
    FOR_LANES_OF(m) {
        mark_bytes(c->block, (u32)(at[l] - c->block->shared), i->width, 1);
    }
}

/* Addresses of shared memory name the block of the cluster too: those of this one are its own. */
void own_shared(const Worker *c, u64 *a) {
    if (c->cluster_size == 1) return;
    const u64 own = (u64)c->block->rank << SHARED_WINDOW_BITS;
    const u64 inside = (1ull << SHARED_WINDOW_BITS) - 1;
    FOR_LANES
        if ((a[l] & ~inside) == own) a[l] &= inside;
}
