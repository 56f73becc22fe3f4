#include "space.h"

#include <string.h>

#include "operations.h"

void memory_fault(Worker *c, const Warp *w, u32 kind, u32 space, int lane, u64 address, u64 bytes,
                  int is_store) {
    if (c->fault.kind) return;
    stop(c, kind);
    blame(c, w, 1u << lane);
    c->fault.space = space;
    c->fault.width = (u32)bytes;
    c->fault.address = address;
    c->fault.is_store = (u32)is_store;
    if (space == SPACE_GLOBAL && c->heap) heap_before(c->heap, address, &c->fault.words[0], &c->fault.words[1]);
}

/* The instruction in hand accesses an allocation that it did not access last: note whether it reads or
 * writes; operations that may do either count as both. */
void touch(const Worker *c, Allocation *all) {
    switch (c->launch->program[c->pc].op) {
    case OP_LOAD: case OP_CHECK_LOAD: case OP_COPY_ASYNC: case OP_CHECK_COPY_ASYNC: case OP_CALL_SYSTEM:
        all->touched |= WAS_READ;
        return;
    case OP_STORE: case OP_CHECK_STORE:
        all->touched |= WAS_WRITTEN;
        return;
    default:
        all->touched |= WAS_READ | WAS_WRITTEN;
    }
}

/* Host address of bytes of a buffer; NULL if they span too many pages. If they are or were written, their
 * pages are copied first, each by the worker that finds its state 0; the other workers wait. */
u8 *host_of(const Allocation *x, u64 low, u64 high, int is_store) {
    const u64 start = low - x->base, first = start >> PAGE_BITS, last = (high - 1 - x->base) >> PAGE_BITS;
    u32 is_private = (u32)is_store;
    if (!x->pages) return x->host + start;
    if (last - first >= MOST_PAGES) return NULL;
    for (u64 k = first; k <= last; k++) is_private |= x->pages[k];
    if (!is_private) return x->source + start;
    for (u64 k = first; k <= last; k++) {
        const u64 at = k << PAGE_BITS, rest = x->bytes - at;
        if (!x->pages[k] && !x->pages[k]++) {
            memcpy(x->host + at, x->source + at, rest < PAGE ? rest : PAGE);
            x->pages[k] = COPIED;
        }
        while (x->pages[k] < COPIED) {}
    }
    return x->host + start;
}

/* Fault of an access to a space; 0: none. */
u32 fault_of(Worker *c, const Ins *i, u64 address, u32 space, int is_store) {
    const Launch *launch = c->launch;
    const u64 end = address + i->width;
    if (address & (i->width - 1)) return MISALIGNED;
    if (space == SPACE_SHARED)
        return address < launch->shared_base || end > launch->shared_bytes ? OUT_OF_BOUNDS : OK;
    if (space == SPACE_LOCAL) return end > launch->local_bytes ? OUT_OF_BOUNDS : OK;
    const Allocation *all = allocation_of(c, address, end);
    return !all ? OUT_OF_BOUNDS : is_store && !all->writable ? WRITE_TO_CONSTANT : OK;
}

/* Whether the launch goes on although an access is beyond all allocations. A null pointer is a fault. */
static int may_leave(const Worker *c, u32 kind, u32 space, u64 address) {
    return c->launch->leaves_bounds && kind == OUT_OF_BOUNDS && space == SPACE_GLOBAL && address >= NULL_PAGE;
}

/* Find the host address of each lane's bytes. Notes the fault and returns 0 if an access is illegal, and
 * returns APART if lanes are beyond all allocations, whose bytes do not follow each other as addresses do. */
int resolve(Worker *c, Warp *w, const Ins *i, u64 *a, u32 m, u32 space, int is_store,
            u8 **at) {
    const Extent e = extent_of(a);
    const int in_block = space == SPACE_SHARED || space == SPACE_LOCAL;
    const Allocation *all = in_block ? NULL : buffer_of(c, e.low, e.high + i->width, is_store);
    if (e.bits & (i->width - 1) ||
        (in_block ? fault_of(c, i, e.low, space, is_store) || fault_of(c, i, e.high, space, is_store) : !all)) {
        FOR_LANES_OF(m) {
            const u32 kind = fault_of(c, i, a[l], space, is_store);
            if (!kind || may_leave(c, kind, space, a[l])) continue;
            memory_fault(c, w, kind, space, l, a[l], i->width, is_store);
            return 0;
        }
    }
    if (in_block) {
        u8 *base = space == SPACE_SHARED ? c->block->shared : w->local;
        const u64 pitch = space == SPACE_SHARED ? 0 : c->launch->local_bytes;
        FOR_LANES at[l] = base + (u64)l * pitch + a[l];
        return 1;
    }
    u8 *host = all ? host_of(all, e.low, e.high + i->width, is_store) : NULL;
    int found = 1;
    FOR_LANES {
        const u64 end = a[l] + i->width;
        const Allocation *own = host ? NULL : allocation_of(c, a[l], end);
        at[l] = host ? host + (a[l] - e.low) : own ? host_of(own, a[l], end, is_store) : c->beyond[l];
        if (!host && !own) found = APART;
    }
    if (found == APART) memset(c->beyond, 0, sizeof c->beyond);
    return found;
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
