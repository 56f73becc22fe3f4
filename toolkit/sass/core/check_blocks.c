#include "check_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "check_order.h"
#include "grow.h"

/* A cell of global memory: the block, plus one, that wrote it last and that read it last. */
typedef struct { u32 writer, reader; } Owner;
typedef struct { u32 pc; u16 thread, fences; } Reader; /* instruction and thread of the reader */
typedef struct { u32 pc, stamp; u16 thread, fences; } Writer; /* of the last write, and its phase */
typedef struct { u32 block; Reader by; } Earlier; /* rare: a reader of another block before the last one */

struct Shadow { Owner *owner; Reader *reader; Writer *writer; Earlier *earlier; };

static const Shadow *shadow_of(const Worker *c, const Allocation *all) {
    return &c->checks->shadow[all - c->launch->allocations];
}

static Event write_of(const Writer *x) {
    return (Event){.warp = x->thread / LANES, .stamp = x->stamp, .fences = x->fences};
}
/* Event of a read; it has no phase. */
static Event read_of(const Reader *x) { return (Event){.warp = x->thread / LANES, .fences = x->fences}; }

void free_checks(Checks *all, u32 allocations) {
    if (!all) return;
    for (u32 n = 0; all->shadow && n < allocations; n++) {
        free(all->shadow[n].owner); free(all->shadow[n].reader);
        free(all->shadow[n].writer); free(all->shadow[n].earlier);
    }
        if (all->releases) {
        free(all->releases->bucket); free(all->releases->at); free(all->releases->seen);
    }
    free(all->releases); free(all->shadow); free(all->found); free(all);
}

/* NULL where there is not enough memory. */
Checks *new_checks(const Launch *launch) {
    Checks *all;
    int is_whole = ZEROS(all, 1) && ZEROS(all->shadow, launch->allocation_count + 1) &&
                   ZEROS(all->found, MOST_FINDINGS);
    for (u32 n = 0; is_whole && n < launch->allocation_count; n++) {
        const size_t cells = launch->allocations[n].bytes / launch->check + 1;
        Shadow *shadow = &all->shadow[n];
        is_whole = ZEROS(shadow->owner, cells) && ZEROS(shadow->reader, cells) &&
                   ZEROS(shadow->writer, cells) && ZEROS(shadow->earlier, cells);
    }
    if (!is_whole) {
        free_checks(all, launch->allocation_count);
        return NULL;
    }
    all->grain = launch->check;
    all->shift = (u32)__builtin_ctz(all->grain);
    return all;
}

/* An access of a cell by a lane. */
typedef struct {
    Worker *c;
    const Warp *w;
    int lane;
    u32 width;
    u64 address, cell;
    const Shadow *shadow;
} Touch;

static void report_blocks(const Touch *x, u32 kind, u32 block, u32 pc, u32 thread) {
    Finding f = finding_of(x->c, kind, SPACE_GLOBAL, thread_of(x->w, x->lane));
    f.pc_before = pc;
    f.block_before = block - 1;
    f.thread_before = thread;
    f.address = x->address;
    f.width = x->width;
    report(x->c, &f);
}

static Reader reader_now(const Worker *c, const Warp *w, int lane) {
    return (Reader){.pc = c->pc, .thread = (u16)thread_of(w, lane),
                    .fences = (u16)c->checker->order->fences};
}

/* This block has read a cell; the last other one that did is kept. */
static inline void note_reader(const Shadow *shadow, u64 cell, u32 me, Reader now) {
    Owner *owner = &shadow->owner[cell];
    if (owner->reader == me) return;
    if (owner->reader)
        shadow->earlier[cell] = (Earlier){.block = owner->reader, .by = shadow->reader[cell]};
    owner->reader = me;
    shadow->reader[cell] = now;
}

static void check_global_read(const Touch *x, int unwritten) {
    const u32 writer = x->shadow->owner[x->cell].writer;
    const Writer *by = &x->shadow->writer[x->cell];
    const Event last = write_of(by);
    if (writer && is_foreign(x->c, x->w, x->lane, writer, &last))
        report_blocks(x, FOUND_READ_AFTER_WRITE, writer, by->pc, by->thread);
    else if (!writer && unwritten)
        report_alone(x->c, x->w, FOUND_UNWRITTEN, SPACE_GLOBAL, x->lane, x->address, x->width);
    note_reader(x->shadow, x->cell, (u32)x->c->block->index + 1, reader_now(x->c, x->w, x->lane));
}

/* Reads of other blocks that a write is not ordered after: of the last one, or of one before. */
static void check_readers(const Touch *x) {
    const Earlier last = {.block = x->shadow->owner[x->cell].reader, .by = x->shadow->reader[x->cell]};
    const Earlier *const readers[] = {&last, &x->shadow->earlier[x->cell]};
    for (u32 n = 0; n < 2 && last.block; n++) {
        const Event read = read_of(&readers[n]->by);
        if (!is_foreign(x->c, x->w, x->lane, readers[n]->block, &read)) continue;
        report_blocks(x, FOUND_WRITE_AFTER_READ, readers[n]->block, readers[n]->by.pc, readers[n]->by.thread);
        return;
    }
}

static void note_write(const Touch *x) {
    const Checker *k = x->c->checker;
    x->shadow->owner[x->cell].writer = (u32)x->c->block->index + 1;
    x->shadow->writer[x->cell] = (Writer){.pc = x->c->pc, .stamp = k->phase[x->w->index],
                                          .thread = (u16)thread_of(x->w, x->lane),
                                          .fences = (u16)k->order->fences};
}

static void check_global_write(const Touch *x, int alike) {
    const u32 before = x->shadow->owner[x->cell].writer;
    const Writer *writer = &x->shadow->writer[x->cell];
    const Event last = write_of(writer);
    if (!alike && is_foreign(x->c, x->w, x->lane, before, &last))
        report_blocks(x, FOUND_WRITE_AFTER_WRITE, before, writer->pc, writer->thread);
    check_readers(x);
    /* a store of a value that its own block has written changes nothing */
    if (!alike || before != (u32)x->c->block->index + 1) note_write(x);
}

/* A bulk copy writes global memory: its order is no finding, but the bytes are written. */
void check_bulk_write(Worker *c, u64 address, u64 bytes) {
    const Launch *launch = c->launch;
    const Checks *all = c->checks;
    for (u32 n = 0; all && n < launch->allocation_count; n++) {
        const Allocation *x = &launch->allocations[n];
        if (!inside(x, address, address + bytes)) continue;
        const u64 first = (address - x->base) >> all->shift, count = bytes >> all->shift;
        for (u64 cell = first; cell < first + count; cell++)
            all->shadow[n].owner[cell].writer = BY_ATOMICS;
    }
}

/* These bytes of an allocation are new: no thread has written or read them. */
void forget_bytes(const Worker *c, const Allocation *all, u64 address, u64 bytes) {
    const Shadow *shadow = shadow_of(c, all);
    const u64 first = (address - all->base) >> c->checks->shift, count = bytes >> c->checks->shift;
    memset(&shadow->owner[first], 0, count * sizeof *shadow->owner);
    memset(&shadow->earlier[first], 0, count * sizeof *shadow->earlier);
}

/* A bulk copy reads global memory, as the lane does that issues it. */
void check_bulk_read(Worker *c, const Warp *w, int lane, u64 address, u64 bytes) {
    const Allocation *all = bytes ? allocation_of(c, address, address + bytes) : NULL;
    if (!all || !c->checks) return; /* beyond the edges, or it is about to stop */
    const Shadow *shadow = shadow_of(c, all);
    const u32 me = (u32)c->block->index + 1, shift = c->checker->shift;
    const u64 first = (address - all->base) >> shift;
    const u64 last = (address + bytes - 1 - all->base) >> shift;
    const Reader now = reader_now(c, w, lane);
    for (u64 cell = first; cell <= last; cell++) {
        const u32 writer = shadow->owner[cell].writer;
        const Touch x = {.c = c, .w = w, .lane = lane, .width = 1u << shift,
                         .address = all->base + (cell << shift), .cell = cell, .shadow = shadow};
        if (writer == me || (!writer && !all->unwritten)) note_reader(shadow, cell, me, now);
        else check_global_read(&x, (int)all->unwritten);
    }
}

/* True if these reads are of one buffer and add nothing: this block has read the bytes before, and no
 * other block has written them. */
static int is_known(Worker *c, const u64 *a, const Extent *e, u32 width) {
    const Checker *k = c->checker;
    const Allocation *all = allocation_of(c, e->low, e->high + width);
    if (!all || all->unwritten || all->bytes >> k->shift > UINT32_MAX) return 0;
    const Owner *owners = shadow_of(c, all)->owner;
    const u32 me = (u32)c->block->index + 1, count = width >> k->shift;
    const int lanes = e->low == e->high ? 1 : LANES;
    u32 news = 0, cells[LANES];
    if (owners[(a[0] - all->base) >> k->shift].reader != me) return 0; /* most often all are alike */
    FOR_LANES cells[l] = (u32)((a[l] - all->base) >> k->shift);
    for (u32 n = 0; n < count && !news; n++)
        for (int l = 0; l < lanes; l++)
            news |= (owners[cells[l] + n].reader ^ me) | owners[cells[l] + n].writer;
    return !news;
}

/* One lane's access of a buffer. */
static void check_global_lane(Worker *c, const Warp *w, const Ins *i, int l, const Allocation *all,
                              u64 offset, int is_store, int relaxed, const u32 *x) {
    Checker *k = c->checker;
    const Shadow *shadow = shadow_of(c, all);
    const u32 me = (u32)c->block->index + 1;
    const u64 first = offset >> k->shift, count = i->width >> k->shift;
    for (u64 cell = first; cell < first + count; cell++) {
        Owner *owner = &shadow->owner[cell];
        const int known = owner->writer == me || (!owner->writer && !all->unwritten);
        if (!is_store && known && owner->reader == me) continue;
        const Touch touch = {.c = c, .w = w, .lane = l, .width = i->width,
                             .address = all->base + (cell << k->shift), .cell = cell, .shadow = shadow};
        if (relaxed) {
            if (is_store) owner->writer = BY_ATOMICS;
        } else if (is_store && !owner->writer && !owner->reader) {
            note_write(&touch);
        } else if (is_store) {
            const int alike = x && stored(k, x, l, (u32)((cell << k->shift) - offset)) ==
                                       held(k, host_of(all, touch.address, touch.address + (1u << k->shift), 0));
            check_global_write(&touch, alike);
        } else {
            check_global_read(&touch, (int)all->unwritten);
        }
    }
}

/* Reads of one buffer, of what no other block has written, or all threads know that it has: neighbours
 * are often of one write. The lanes that this is not true of. */
static u32 note_own_reads(Worker *c, const Warp *w, u32 m, const u64 *a, const Extent *e, u32 width) {
    const Allocation *all = allocation_of(c, e->low, e->high + width);
    if (!all || all->unwritten) return m;
    const Shadow *shadow = shadow_of(c, all);
    const u32 me = (u32)c->block->index + 1, shift = c->checker->shift;
    u32 left = 0, known_writer = 0;
    Event known = {0};
    FOR_LANES_OF(m) {
        const u64 first = (a[l] - all->base) >> shift, end = first + (width >> shift);
        const Reader now = reader_now(c, w, l);
        for (u64 cell = first; cell < end; cell++) {
            const u32 writer = shadow->owner[cell].writer;
            if (writer && writer != me) {
                const Event last = write_of(&shadow->writer[cell]);
                const int alike = writer == known_writer && last.warp == known.warp &&
                                  last.stamp == known.stamp && last.fences == known.fences;
                if (!alike && is_foreign(c, NULL, 0, writer, &last)) {
                    left |= 1u << l;
                    continue;
                }
                known_writer = writer, known = last;
            }
            note_reader(shadow, cell, me, now);
        }
    }
    return left;
}

void check_buffers(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a, const Extent *e,
                   int is_store, int relaxed, const u32 *x) {
    const Checker *k = c->checker;
    const Allocation *all = NULL;
    u64 before = 0;
    if (!is_store && !relaxed) {
        if (is_known(c, a, e, i->width)) return;
        if (e->low == e->high) m &= -m; /* one lane stands for all */
        m = note_own_reads(c, w, m, a, e, i->width);
    }
    for (; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        if (before == a[l] && all && !is_store && !relaxed) continue; /* neighbours read the same */
        before = a[l];
        if (!all || !inside(all, a[l], a[l] + i->width)) all = allocation_of(c, a[l], a[l] + i->width);
        if (!all) continue; /* it is about to stop */
        if (relaxed && (k->order->fences || c->checks->releases)) synchronise(c, w, l, a[l]);
        check_global_lane(c, w, i, l, all, a[l] - all->base, is_store, relaxed, x);
    }
}
