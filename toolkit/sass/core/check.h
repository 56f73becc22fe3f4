/* The sanitizer: hazards, barriers and unwritten memory, found by tracking the ordering itself.
 *
 * A launch that is checked runs a program whose memory operations are the CHECK_ forms below
 * (toolkit/sass/check.py puts them in), so that a plain simulation pays nothing. Shared memory has a
 * shadow of cells: who wrote a cell last, and which lanes of each warp read it. Warps run one after
 * another here and lanes in lockstep, but neither orders anything: an access comes after another of
 * another thread only where
 *
 * - a barrier of the whole block lies between (an `epoch` ends with each),
 * - or a barrier of a part of it, or a warp synchronisation (`know`, a vector clock per thread).
 *
 * A thread's clock is the phase of its warp. An asynchronous copy is a write that nothing is
 * ordered with, its own thread included, until that thread waits for it.
 *
 * In global memory, accesses of different blocks are not ordered but by a fence and an atomic
 * operation (or a volatile or atomic access) that the other block sees.
 */
#ifndef CHECK_H
#define CHECK_H

#include "atomics.h"
#include "core.h"
#include "memory.h"

/* toolkit/sass/check.py numbers them likewise. */
enum {
    FOUND_READ_AFTER_WRITE = 1, FOUND_WRITE_AFTER_READ, FOUND_WRITE_AFTER_WRITE, FOUND_UNWRITTEN,
    FOUND_DIVERGENT_WARP, FOUND_DIVERGENT_BLOCK, FOUND_INVALID_MASK, FOUND_MISMATCHED_MASK
};
/* Ins.reserved of checked operations: an access that is atomic or volatile, which races with no other
 * such; above it, for CHECK_COLLECTIVE, the operation that it stands for. */
enum { CHECK_RELAXED = 1, CHECK_HAS_MASK = 2, CHECK_INSTEAD_SHIFT = 8 };

enum { NOBODY = 0xffffffffu, UNSETTLED = 0xffffffffu, MOST_FINDINGS = 1 << 12, WRITE_PLAIN = 0, WRITE_ATOMIC, WRITE_ASYNC };

/* Accesses of two threads, `before` the one that was simulated first; the first pair of each two
 * instructions, and how many there were. */
typedef struct {
    u32 kind, space;
    u32 pc, pc_before;
    u64 block, block_before;
    u32 thread, thread_before;
    u64 address;
    u32 width, is_async; /* the earlier one is a copy that nobody had waited for */
    u64 times;
} Finding;

/* `epoch` is UNSETTLED of a copy that is under way; `read_epoch` is that of the last read. Of an atomic
 * operation `plain_stamp` and `plain_thread` tell the last plain write before it in this epoch, which
 * it hides; 0: there was none. */
typedef struct {
    u32 epoch, stamp, pc, step, read_epoch;
    u16 thread;
    u8 kind, unused;
    u32 plain_stamp, plain_thread;
} Written;
typedef struct { u32 stamp, mask, pc; } ReadBy;

/* A cell of global memory: the block, plus one, that wrote it last and that read it last. */
typedef struct { u32 writer, reader; } Owner;
typedef struct { u32 pc; u16 thread, fences; } Reader; /* who that reader was */
typedef struct { /* what is rare: the last write, and a reader before the last one */
    u32 write_pc, other;
    u16 write_thread, write_fences;
    Reader other_reader;
} Detail;

enum { BY_ATOMICS = 0xffffffffu }; /* Owner.writer: atomic operations, which race with nobody */

typedef struct { Owner *owner; Reader *reader; Detail *detail; } Shadow;

/* An asynchronous copy of a thread that it has not waited for. */
typedef struct { u32 thread, group, first, cells; } Pending;

/* What blocks had done before a fence, and published at an address after it. */
typedef struct { u64 address; u32 block, fences; } Published;

/* What the checkers of all blocks have in common: global memory, and what was found. */
struct Checks {
    u32 grain, shift;    /* bytes of a cell: the narrowest access of the program; and their logarithm */
    Shadow *shadow;      /* of each allocation */
    Published *published;
    u64 published_count, published_room;
    Finding *found;
    u32 found_count, lost;
};

/* Of a block that runs, or of room for one. */
struct Checker {
    u32 grain, shift;
    u32 cells, threads;
    u32 epoch, first_epoch; /* barriers of the block so far, over all blocks; those before this one */
    Written *written;    /* [cells] */
    ReadBy *read;        /* [warps][cells] */
    u32 *phase, *floor;  /* [warps]: the clock now, and at the last barrier of the block */
    u32 *know;           /* [threads][threads]: clocks up to which a thread is ordered after others */
    u32 *meeting;        /* [CTA_BARRIERS][threads]: clocks of those who arrived at a partial barrier */
    int crossed;         /* `know` holds something across warps */
    u32 *committed;      /* [threads]: groups of asynchronous copies */
    u32 *mask;           /* [threads]: the lanes that each waits for at a WARPSYNC */
    Pending *pending;
    u64 pending_count, pending_room;
    u32 fences;
    u32 *acquired;       /* by block: fences of it that this block has seen; NULL: of none */
    u64 blocks;
    u32 has_acquired;    /* this block has seen some */
};

static void free_checks(Checks *all, u32 allocations) {
    if (!all) return;
    for (u32 n = 0; all->shadow && n < allocations; n++) {
        free(all->shadow[n].owner); free(all->shadow[n].reader); free(all->shadow[n].detail);
    }
    free(all->shadow); free(all->published); free(all->found); free(all);
}

/* NULL where there is not enough memory. */
static Checks *new_checks(const Launch *launch) {
    Checks *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    all->grain = launch->check;
    all->shift = (u32)__builtin_ctz(all->grain);
    all->shadow = calloc(launch->allocation_count + 1, sizeof *all->shadow);
    all->found = calloc(MOST_FINDINGS, sizeof *all->found);
    if (!all->shadow || !all->found) goto failed;
    for (u32 n = 0; n < launch->allocation_count; n++) {
        const size_t cells = launch->allocations[n].bytes / all->grain + 1;
        all->shadow[n].owner = calloc(cells, sizeof(Owner));
        all->shadow[n].reader = calloc(cells, sizeof(Reader));
        all->shadow[n].detail = calloc(cells, sizeof(Detail));
        if (!all->shadow[n].owner || !all->shadow[n].reader || !all->shadow[n].detail) goto failed;
    }
    return all;
failed:
    free_checks(all, launch->allocation_count);
    return NULL;
}

static void free_checker(Checker *k) {
    if (!k) return;
    free(k->written); free(k->read); free(k->phase); free(k->know); free(k->meeting);
    free(k->committed); free(k->mask); free(k->pending); free(k->acquired); free(k);
}

/* NULL where there is not enough memory. */
static Checker *new_checker(const Launch *launch, u32 warps) {
    Checker *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    k->grain = launch->check;
    k->shift = (u32)__builtin_ctz(k->grain);
    k->cells = launch->shared_bytes / k->grain + 1;
    k->threads = warps * LANES;
    k->blocks = (u64)launch->grid[0] * launch->grid[1] * launch->grid[2];
    k->written = calloc(k->cells, sizeof *k->written);
    k->read = calloc((size_t)warps * k->cells, sizeof *k->read);
    k->phase = calloc(2 * (size_t)warps, sizeof *k->phase);
    k->committed = calloc(k->threads, sizeof *k->committed);
    k->mask = calloc(k->threads, sizeof *k->mask);
    if (!k->written || !k->read || !k->phase || !k->committed || !k->mask) {
        free_checker(k);
        return NULL;
    }
    k->floor = k->phase + warps;
    return k;
}

/* Everything so far is ordered before everything from here on, for all threads of the block. */
static void check_epoch(Worker *c) {
    Checker *k = c->checker;
    k->epoch++;
    for (u32 n = 0; n < c->warp_count; n++) k->floor[n] = ++k->phase[n];
}

static void check_block(Worker *c) {
    Checker *k = c->checker;
    check_epoch(c);
    k->first_epoch = k->epoch;
    for (u64 n = 0; n < k->pending_count; n++) /* copies that the last block did not wait for */
        for (u32 cell = 0; cell < k->pending[n].cells; cell++)
            k->written[k->pending[n].first + cell].epoch = 0;
    k->pending_count = 0;
    k->fences = 0;
    memset(k->committed, 0, k->threads * sizeof *k->committed);
    if (k->has_acquired) memset(k->acquired, 0, k->blocks * sizeof *k->acquired);
    k->has_acquired = 0;
    if (k->meeting) memset(k->meeting, 0, (size_t)CTA_BARRIERS * k->threads * sizeof(u32));
}

/* Findings. */

static int within_warp(const Finding *f) { return f->thread / LANES == f->thread_before / LANES; }

static void report(Worker *c, const Finding *f) {
    Checks *k = c->checks;
    for (u32 n = k->found_count; n-- > 0;) {
        Finding *old = &k->found[n];
        if (old->kind == f->kind && old->pc == f->pc && old->pc_before == f->pc_before &&
            old->space == f->space && within_warp(old) == within_warp(f)) {
            old->times++;
            return;
        }
    }
    if (k->found_count == MOST_FINDINGS) { k->lost = 1; return; }
    k->found[k->found_count] = *f;
    k->found[k->found_count++].times = 1;
}

static u32 thread_of(const Warp *w, int lane) { return w->index * LANES + (u32)lane; }

static void report_alone(Worker *c, const Warp *w, u32 kind, u32 space, int lane, u64 address,
                         u32 width) {
    const Finding f = {.kind = kind, .space = space, .pc = c->pc, .pc_before = NOBODY,
                       .block = c->block->index, .block_before = c->block->index, .thread = thread_of(w, lane),
                       .thread_before = NOBODY, .address = address, .width = width};
    report(c, &f);
}

/* Ordering of threads. */

static int is_after(const Checker *k, u32 thread, u32 other, u32 stamp) {
    return k->know && k->know[(size_t)thread * k->threads + other] >= stamp;
}

/* The vector clocks, made when they are first needed; false where there is no memory. */
static int has_clocks(Worker *c) {
    Checker *k = c->checker;
    if (!k->know) k->know = calloc((size_t)k->threads * k->threads, sizeof(u32));
    if (!k->know) stop(c, NO_MEMORY);
    return k->know != NULL;
}

/* Lanes of a warp synchronise: what each knew or did, all know. */
static void check_warp_sync(Worker *c, const Warp *w, u32 lanes) {
    Checker *k = c->checker;
    if (!has_clocks(c)) return;
    const u32 base = w->index * LANES;
    const u32 from = k->crossed ? 0 : base, to = k->crossed ? k->threads : base + LANES;
    for (u32 j = from; j < to; j++) {
        u32 latest = j - base < LANES && lanes >> (j - base) & 1 ? k->phase[w->index] : 0;
        for (u32 l = 0; l < LANES; l++) {
            if (!(lanes >> l & 1)) continue;
            const u32 x = k->know[(size_t)(base + l) * k->threads + j];
            if (x > latest) latest = x;
        }
        for (u32 l = 0; l < LANES; l++)
            if (lanes >> l & 1) k->know[(size_t)(base + l) * k->threads + j] = latest;
    }
    k->phase[w->index]++;
}

/* Barriers of the block. */

/* Lanes of m arrive at a barrier of `count` threads (0: of all, which ends an epoch when it opens). */
static void check_arrival(Worker *c, const Warp *w, u32 m, u32 number, u32 count) {
    Checker *k = c->checker;
    if (!count || !has_clocks(c)) return;
    if (!k->meeting) k->meeting = calloc((size_t)CTA_BARRIERS * k->threads, sizeof(u32));
    if (!k->meeting) { stop(c, NO_MEMORY); return; }
    u32 *meeting = k->meeting + (size_t)number * k->threads;
    for (u32 l = 0; l < LANES; l++) {
        if (!(m >> l & 1)) continue;
        const u32 thread = thread_of(w, (int)l);
        const u32 *know = k->know + (size_t)thread * k->threads;
        IVDEP for (u32 j = 0; j < k->threads; j++) meeting[j] = know[j] > meeting[j] ? know[j] : meeting[j];
        if (k->phase[w->index] > meeting[thread]) meeting[thread] = k->phase[w->index];
    }
    k->crossed = 1;
    k->phase[w->index]++;
}

static u32 lanes_at_barrier(const Warp *w, u32 number) {
    u32 lanes = 0;
    for (u32 j = 0; j < w->groups; j++)
        if (w->group[j].state == AT_BARRIER && w->group[j].barrier == number)
            lanes |= w->group[j].mask;
    return lanes;
}

static void report_absent(Worker *c, u32 kind, u32 pc, u32 thread, u32 absent) {
    const Finding f = {.kind = kind, .pc = pc, .pc_before = NOBODY, .space = SPACE_GENERIC,
                       .block = c->block->index, .block_before = c->block->index, .thread = thread,
                       .thread_before = absent};
    report(c, &f);
}

/* At a barrier of all threads: some of a warp are, and others of it left the kernel or are at another
 * such instruction. */
static void check_absent_lanes(Worker *c, const Warp *w, u32 number) {
    const Group *first = NULL;
    const u32 here = lanes_at_barrier(w, number);
    for (u32 j = 0; j < w->groups; j++) {
        const Group *g = &w->group[j];
        if (g->state != AT_BARRIER || g->barrier != number) continue;
        if (!first) first = g;
        else if (g->pc != first->pc)
            report_absent(c, FOUND_DIVERGENT_WARP, first->pc - 1,
                          thread_of(w, __builtin_ctz(first->mask)),
                          thread_of(w, __builtin_ctz(g->mask)));
    }
    if (first && w->born & ~here)
        report_absent(c, FOUND_DIVERGENT_WARP, first->pc - 1,
                      thread_of(w, __builtin_ctz(first->mask)),
                      thread_of(w, __builtin_ctz(w->born & ~here)));
}

/* Whole warps left the kernel without coming to it. */
static void check_absent_warps(Worker *c, u32 number) {
    const Warp *here = NULL, *absent = NULL;
    const Group *first = NULL;
    for (u32 n = 0; n < c->warp_count; n++) {
        const Warp *w = &c->block->warps[n];
        if (!w->alive && !absent) absent = w;
        for (u32 j = 0; j < w->groups && !here; j++)
            if (w->group[j].state == AT_BARRIER && w->group[j].barrier == number) {
                here = w;
                first = &w->group[j];
            }
    }
    if (here && absent)
        report_absent(c, FOUND_DIVERGENT_BLOCK, first->pc - 1,
                      thread_of(here, __builtin_ctz(first->mask)), absent->index * LANES);
}

/* A barrier opens; those who wait there still do. */
static void check_opening(Worker *c, u32 number, u32 expected) {
    Checker *k = c->checker;
    if (!expected) {
        for (u32 n = 0; n < c->warp_count; n++) check_absent_lanes(c, &c->block->warps[n], number);
        check_absent_warps(c, number);
        check_epoch(c);
        return;
    }
    u32 *meeting = k->meeting + (size_t)number * k->threads;
    for (u32 n = 0; n < c->warp_count; n++) {
        const u32 lanes = lanes_at_barrier(&c->block->warps[n], number);
        for (u32 l = 0; l < LANES; l++) {
            if (!(lanes >> l & 1)) continue;
            u32 *know = k->know + (size_t)(n * LANES + l) * k->threads;
            IVDEP for (u32 j = 0; j < k->threads; j++) know[j] = know[j] > meeting[j] ? know[j] : meeting[j];
        }
    }
    memset(meeting, 0, k->threads * sizeof *meeting);
}

/* Masks of lanes that synchronise with each other. `masks` is what each lane of m names. */
static void check_masks(Worker *c, const Warp *w, const u32 *masks, u32 m) {
    for (int l = 0; l < LANES; l++) {
        if (!(m >> l & 1)) continue;
        if (!(masks[l] >> l & 1)) {
            report_alone(c, w, FOUND_INVALID_MASK, SPACE_GENERIC, l, masks[l], 0);
            return;
        }
        for (int n = 0; n < LANES; n++)
            if (m & masks[l] & 1u << n && masks[n] != masks[l]) {
                report_alone(c, w, FOUND_MISMATCHED_MASK, SPACE_GENERIC, l, masks[l], 0);
                return;
            }
    }
}

/* Lanes of m come to a WARPSYNC ... */
static void check_meeting(Worker *c, const Warp *w, const u32 *masks, u32 m) {
    check_masks(c, w, masks, m);
    for (u32 l = 0; l < LANES; l++)
        if (m >> l & 1) c->checker->mask[w->index * LANES + l] = masks[l];
}

/* ... and go on from it, each in company of those that it named. */
static void check_parting(Worker *c, const Warp *w, u32 lanes) {
    const u32 *mask = c->checker->mask + w->index * LANES;
    for (u32 together; lanes; lanes &= ~together) {
        together = (lanes & mask[__builtin_ctz(lanes)]) | (lanes & -lanes);
        check_warp_sync(c, w, together);
    }
}

/* Shared memory. */

/* The word that lane l stores at byte `offset` of its access, as far as a cell shows it. */
static u32 stored(const Checker *k, const Ins *i, const u32 *x, int l, u32 offset) {
    if (k->grain == WORD) return x[offset / WORD * LANES + (u32)l];
    const u32 word = x[offset / WORD * LANES + (u32)l] >> (i->flags & STORE_HIGH ? 16 : 0);
    return word >> 8 * (offset % WORD) & (k->grain == 1 ? 0xffu : 0xffffu);
}

static u32 held(const Checker *k, const u8 *at) {
    u32 x = 0;
    memcpy(&x, at, k->grain);
    return x;
}

static void report_pair(Worker *c, const Warp *w, u32 kind, int lane, u32 cell, u32 width,
                        u32 before, u32 pc_before, int is_async) {
    const Finding f = {.kind = kind, .space = SPACE_SHARED, .pc = c->pc, .pc_before = pc_before,
                       .block = c->block->index, .block_before = c->block->index, .thread = thread_of(w, lane),
                       .thread_before = before, .address = (u64)cell * c->checker->grain,
                       .width = width, .is_async = (u32)is_async};
    report(c, &f);
}

/* Whether the last write of a cell is not ordered before an access of `thread` now. */
static int races_with_write(const Checker *k, const Written *last, u32 thread, u32 kind) {
    if (last->epoch < k->first_epoch) return 0; /* of an earlier block */
    if (last->epoch == UNSETTLED) return 1;
    if (last->epoch != k->epoch) return 0;
    if (last->kind == WRITE_ATOMIC && kind == WRITE_ATOMIC)
        return last->plain_stamp && last->plain_thread != thread &&
               !is_after(k, thread, last->plain_thread, last->plain_stamp);
    if (last->thread == thread) return 0;
    return !is_after(k, thread, last->thread, last->stamp);
}

/* The cell's readers in this warp begin anew with the phase, but for those that `lane` is not ordered
 * after. */
static void begin_phase(const Checker *k, const Warp *w, ReadBy *read, int lane) {
    u32 left = 0;
    if (read->stamp >= k->floor[w->index] && read->stamp)
        for (u32 l = 0; l < LANES; l++)
            if (read->mask >> l & 1 && l != (u32)lane &&
                !is_after(k, thread_of(w, lane), w->index * LANES + l, read->stamp))
                left |= 1u << l;
    read->stamp = k->phase[w->index];
    read->mask = left;
}

/* A read of what was not written in an earlier epoch of this block. */
static void check_fresh_read(Worker *c, const Warp *w, int lane, u32 cell, u32 width, u32 kind) {
    const Checker *k = c->checker;
    const Written *written = &k->written[cell];
    if (written->epoch < k->first_epoch)
        report_alone(c, w, FOUND_UNWRITTEN, SPACE_SHARED, lane, (u64)cell << k->shift, width);
    else if (races_with_write(k, written, thread_of(w, lane), kind))
        report_pair(c, w, FOUND_READ_AFTER_WRITE, lane, cell, width, written->thread, written->pc,
                    written->epoch == UNSETTLED);
}

/* `lanes` of a warp, `lane` the first of them, read the same. */
static void check_shared_read(Worker *c, const Warp *w, int lane, u32 lanes, u64 address, u32 width,
                              u32 kind) {
    Checker *k = c->checker;
    const u32 first = (u32)address >> k->shift, count = width >> k->shift;
    const u32 phase = k->phase[w->index], epochs = k->epoch - k->first_epoch;
    ReadBy *reads = k->read + (size_t)w->index * k->cells;
    for (u32 cell = first; cell < first + count; cell++) {
        Written *written = &k->written[cell];
        ReadBy *read = &reads[cell];
        if (written->epoch - k->first_epoch >= epochs)
            for (u32 left = lanes; left; left &= left - 1)
                check_fresh_read(c, w, __builtin_ctz(left), cell, width, kind);
        if (kind == WRITE_ATOMIC) continue;
        if (read->stamp != phase) begin_phase(k, w, read, lane);
        read->mask |= lanes;
        read->pc = c->pc;
        written->read_epoch = k->epoch;
    }
}

/* What most reads are, without a look at what is rare: of words written before the last barrier, by
 * lanes of which none is known to have read them in an earlier phase of this epoch. The lanes that
 * this is not true of. */
static inline __attribute__((always_inline)) u32
note_shared_reads(Checker *k, const Warp *w, const u32 *cells, u32 m, const u32 count, u32 pc) {
    Written *restrict written = k->written;
    ReadBy *restrict reads = k->read + (size_t)w->index * k->cells;
    const u32 epoch = k->epoch, first = k->first_epoch;
    const u32 phase = k->phase[w->index], floor = k->floor[w->index];
    u32 rare = 0;
    for (int l = 0; l < LANES; l++) {
        const u32 lane = m & 1u << l;
        if (!lane) continue;
        for (u32 cell = cells[l]; cell < cells[l] + count; cell++) {
            ReadBy *read = &reads[cell];
            const u32 stamp = read->stamp, mask = stamp < floor ? 0 : read->mask;
            const int is_rare = (written[cell].epoch - first >= epoch - first) |
                                ((stamp >= floor) & (stamp != phase));
            rare |= is_rare ? lane : 0;
            read->mask = mask | lane;
            read->stamp = is_rare ? stamp : phase;
            read->pc = pc;
            written[cell].read_epoch = epoch;
        }
    }
    return rare;
}

/* The lowest and the highest of the addresses; inactive lanes hold that of an active one. */
static void extent(const u64 *a, u64 *low, u64 *high) {
    *low = *high = a[0];
    for (int l = 1; l < LANES; l++) {
        *low = a[l] < *low ? a[l] : *low;
        *high = a[l] > *high ? a[l] : *high;
    }
}

/* Reads of this epoch that a write of `lane` is not ordered after. */
static void check_against_reads(Worker *c, const Warp *w, int lane, u32 cell, u32 width) {
    Checker *k = c->checker;
    if (k->written[cell].read_epoch != k->epoch) return;
    for (u32 n = 0; n < c->warp_count; n++) {
        const ReadBy *read = k->read + (size_t)n * k->cells + cell;
        if (read->stamp < k->floor[n] || !read->stamp) continue;
        u32 lanes = n == w->index ? read->mask & ~(1u << lane) : read->mask;
        for (; lanes; lanes &= lanes - 1) {
            const u32 reader = n * LANES + (u32)__builtin_ctz(lanes);
            if (is_after(k, thread_of(w, lane), reader, read->stamp)) continue;
            report_pair(c, w, FOUND_WRITE_AFTER_READ, lane, cell, width, reader, read->pc, 0);
            return;
        }
    }
}

/* A write by `lane`; x holds the registers that are stored, NULL where the value is not known. */
static void check_shared_write(Worker *c, const Warp *w, const Ins *i, int lane, u64 address,
                               u32 kind, const u32 *x) {
    Checker *k = c->checker;
    const u32 first = (u32)address >> k->shift, count = i->width >> k->shift;
    const u32 thread = thread_of(w, lane);
    for (u32 cell = first; cell < first + count; cell++) {
        Written *written = &k->written[cell];
        if (races_with_write(k, written, thread, kind)) {
            const u32 offset = cell * k->grain - (u32)address;
            const int together = written->pc == c->pc && written->step == w->steps &&
                                 written->thread / LANES == w->index;
            /* who writes what is there already changes nothing, whoever comes first */
            const int alike = x && written->epoch != UNSETTLED &&
                stored(k, i, x, lane, offset) ==
                    (together ? stored(k, i, x, written->thread % LANES, offset)
                              : held(k, c->block->shared + (size_t)cell * k->grain));
            if (!alike)
                report_pair(c, w, FOUND_WRITE_AFTER_WRITE, lane, cell, i->width, written->thread,
                            written->pc, written->epoch == UNSETTLED);
        }
        check_against_reads(c, w, lane, cell, i->width);
        const int hides = kind == WRITE_ATOMIC && written->epoch == k->epoch;
        const int is_plain = written->kind == WRITE_PLAIN;
        *written = (Written){.epoch = kind == WRITE_ASYNC ? UNSETTLED : k->epoch,
                             .stamp = k->phase[w->index], .pc = c->pc, .step = w->steps,
                             .read_epoch = written->read_epoch, .thread = (u16)thread,
                             .kind = (u8)kind,
                             .plain_stamp = !hides ? 0 : is_plain ? written->stamp : written->plain_stamp,
                             .plain_thread = is_plain ? written->thread : written->plain_thread};
    }
}

static int is_in_shared(const Launch *launch, u64 address, u32 width) {
    return address >= launch->shared_base && address + width <= launch->shared_bytes;
}

/* Global memory. */

static void report_blocks(Worker *c, const Warp *w, u32 kind, int lane, u64 address, u32 width,
                          u32 block, u32 pc, u32 thread) {
    const Finding f = {.kind = kind, .space = SPACE_GLOBAL, .pc = c->pc, .pc_before = pc,
                       .block = c->block->index, .block_before = block - 1, .thread = thread_of(w, lane),
                       .thread_before = thread, .address = address, .width = width};
    report(c, &f);
}

/* Whether an access of `block` (plus one), after so many of its fences, races with this block. */
static int is_foreign(const Worker *c, u32 block, u32 fences) {
    if (!block || block == BY_ATOMICS || block - 1 == c->block->index) return 0;
    return !c->checker->has_acquired || c->checker->acquired[block - 1] <= fences;
}

static void check_global_read(Worker *c, const Warp *w, int lane, u64 address, u32 width,
                              Owner *owner, Reader *reader, Detail *detail, int unwritten) {
    const u32 me = (u32)c->block->index + 1;
    if (owner->writer) {
        if (is_foreign(c, owner->writer, detail->write_fences))
            report_blocks(c, w, FOUND_READ_AFTER_WRITE, lane, address, width, owner->writer,
                          detail->write_pc, detail->write_thread);
    } else if (unwritten) {
        report_alone(c, w, FOUND_UNWRITTEN, SPACE_GLOBAL, lane, address, width);
    }
    if (owner->reader == me) return;
    if (owner->reader) {
        detail->other = owner->reader;
        detail->other_reader = *reader;
    }
    owner->reader = me;
    *reader = (Reader){.pc = c->pc, .thread = (u16)thread_of(w, lane),
                       .fences = (u16)c->checker->fences};
}

static void check_global_write(Worker *c, const Warp *w, int lane, u64 address, u32 width,
                               Owner *owner, const Reader *reader, Detail *detail, int alike) {
    if (!alike && is_foreign(c, owner->writer, detail->write_fences))
        report_blocks(c, w, FOUND_WRITE_AFTER_WRITE, lane, address, width, owner->writer,
                      detail->write_pc, detail->write_thread);
    const Reader *other = &detail->other_reader;
    if (is_foreign(c, owner->reader, reader->fences))
        report_blocks(c, w, FOUND_WRITE_AFTER_READ, lane, address, width, owner->reader, reader->pc,
                      reader->thread);
    else if (is_foreign(c, detail->other, other->fences))
        report_blocks(c, w, FOUND_WRITE_AFTER_READ, lane, address, width, detail->other, other->pc,
                      other->thread);
    /* who stores again what its own block has written changes nothing */
    if (alike && owner->writer == (u32)c->block->index + 1) return;
    owner->writer = (u32)c->block->index + 1;
    detail->write_pc = c->pc;
    detail->write_thread = (u16)thread_of(w, lane);
    detail->write_fences = (u16)c->checker->fences;
}

static void acquire(Worker *c, const Published *p) {
    Checker *k = c->checker;
    if (!k->acquired) k->acquired = calloc(k->blocks, sizeof *k->acquired);
    if (!k->acquired) { stop(c, NO_MEMORY); return; }
    k->has_acquired = 1;
    if (k->acquired[p->block] < p->fences) k->acquired[p->block] = p->fences;
}

/* The block publishes what it did before its last fence at an address, and sees what others did
 * before theirs that they published there. */
static void synchronise(Worker *c, u64 address) {
    Checks *all = c->checks;
    const u32 block = (u32)c->block->index, fences = c->checker->fences;
    int known = 0;
    for (u64 n = 0; n < all->published_count; n++) {
        Published *p = &all->published[n];
        if (p->address != address) continue;
        if (p->block == block) { p->fences = fences; known = 1; }
        else acquire(c, p);
    }
    if (known || !fences) return;
    void *room = grown(all->published, &all->published_room, all->published_count + 1, sizeof(Published));
    if (!room) { stop(c, NO_MEMORY); return; }
    all->published = room;
    all->published[all->published_count++] =
        (Published){.address = address, .block = block, .fences = fences};
}

/* A barrier of a cluster opens: its blocks know of all that they did so far. */
static void check_cluster(Worker *c, Block *first) {
    Block *own = c->block;
    Checker *of_own = c->checker;
    if (!of_own) return;
    for (u32 rank = 0; rank < c->cluster_size; rank++) first[rank].checker->fences++;
    for (u32 rank = 0; rank < c->cluster_size; rank++) {
        c->block = first + rank;
        c->checker = first[rank].checker;
        check_epoch(c);
        for (u32 other = 0; other < c->cluster_size; other++) {
            const Published p = {.block = (u32)first[other].index,
                                 .fences = first[other].checker->fences};
            if (other != rank) acquire(c, &p);
        }
    }
    c->block = own;
    c->checker = of_own;
}

/* A bulk copy writes global memory: nobody is blamed for the order, but the bytes are written. */
static void check_bulk_write(Worker *c, u64 address, u64 bytes) {
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

/* Whether these reads are of one buffer, and nothing new: what this block has read before and no other
 * one has written. */
static int is_known(Worker *c, const u64 *a, u64 low, u64 high, u32 width) {
    const Checker *k = c->checker;
    const Allocation *all = allocation_of(c, low, high + width);
    if (!all || all->unwritten || all->bytes >> k->shift > UINT32_MAX) return 0;
    const Owner *owners = c->checks->shadow[all - c->launch->allocations].owner;
    const u32 me = (u32)c->block->index + 1, count = width >> k->shift;
    const int lanes = low == high ? 1 : LANES;
    u32 news = 0, cells[LANES];
    for (int l = 0; l < LANES; l++) cells[l] = (u32)((a[l] - all->base) >> k->shift);
    for (u32 n = 0; n < count && !news; n++)
        for (int l = 0; l < lanes; l++)
            news |= (owners[cells[l] + n].reader ^ me) | owners[cells[l] + n].writer;
    return !news;
}

/* One lane's access of a buffer. */
static void check_global_lane(Worker *c, const Warp *w, const Ins *i, int l, const Allocation *all,
                              u64 offset, int is_store, int relaxed, const u32 *x) {
    Checker *k = c->checker;
    const Shadow *shadow = &c->checks->shadow[all - c->launch->allocations];
    const u32 me = (u32)c->block->index + 1;
    const u64 first = offset >> k->shift, count = i->width >> k->shift;
    for (u64 cell = first; cell < first + count; cell++) {
        Owner *owner = &shadow->owner[cell];
        const int known = owner->writer == me || (!owner->writer && !all->unwritten);
        if (!is_store && known && owner->reader == me) continue;
        const u64 address = all->base + (cell << k->shift);
        if (relaxed) {
            if (is_store) owner->writer = BY_ATOMICS;
        } else if (is_store) {
            const int alike = x && stored(k, i, x, l, (u32)((cell << k->shift) - offset)) ==
                                       held(k, all->host + (cell << k->shift));
            check_global_write(c, w, l, address, i->width, owner, &shadow->reader[cell],
                               &shadow->detail[cell], alike);
        } else {
            check_global_read(c, w, l, address, i->width, owner, &shadow->reader[cell],
                              &shadow->detail[cell], (int)all->unwritten);
        }
    }
}

static void check_buffers(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a, int is_store,
                         int relaxed, const u32 *x) {
    const Checker *k = c->checker;
    const Allocation *all = NULL;
    u64 before = 0;
    if (!is_store && !relaxed) {
        u64 low, high;
        extent(a, &low, &high);
        if (is_known(c, a, low, high, i->width)) return;
        if (low == high) m &= -m; /* one lane stands for all */
    }
    for (; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        if (before == a[l] && all && !is_store && !relaxed) continue; /* neighbours read the same */
        before = a[l];
        if (!all || !inside(all, a[l], a[l] + i->width)) all = allocation_of(c, a[l], a[l] + i->width);
        if (!all) continue; /* it is about to stop */
        if (relaxed && (k->fences || c->checks->published_count)) synchronise(c, a[l]);
        check_global_lane(c, w, i, l, all, a[l] - all->base, is_store, relaxed, x);
    }
}

/* The checked operations: what is checked comes first, since a load may change its own address. */

/* The lanes whose reads are left to look at. */
static u32 check_common_reads(Worker *c, const Warp *w, const u64 *a, u32 m, u32 width) {
    Checker *k = c->checker;
    u64 low, high;
    u32 cells[LANES];
    extent(a, &low, &high);
    if (low == high || !is_in_shared(c->launch, low, width) || !is_in_shared(c->launch, high, width))
        return m;
    for (int l = 0; l < LANES; l++) cells[l] = (u32)a[l] >> k->shift;
    switch (width >> k->shift) {
    case 1: return note_shared_reads(k, w, cells, m, 1, c->pc);
    case 4: return note_shared_reads(k, w, cells, m, 4, c->pc);
    default: return note_shared_reads(k, w, cells, m, width >> k->shift, c->pc);
    }
}

static void check_own_shared(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a, int is_store,
                         u32 kind, const u32 *x) {
    if (!is_store && kind == WRITE_PLAIN) m = check_common_reads(c, w, a, m, i->width);
    while (m) {
        const int l = __builtin_ctz(m);
        u32 lanes = m & -m;
        if (!is_store) /* neighbours that read the same */
            for (int n = l + 1; n < LANES && m >> n & 1 && a[n] == a[l]; n++) lanes |= 1u << n;
        m &= ~lanes;
        if (!is_in_shared(c->launch, a[l], i->width)) continue; /* it is about to stop */
        if (is_store) check_shared_write(c, w, i, l, a[l], kind, x);
        else check_shared_read(c, w, l, lanes, a[l], i->width, kind);
    }
}

/* Lanes that are in another memory get the address of one that is in this. */
static void narrow(u64 *a, u32 m) {
    const u64 first = a[__builtin_ctz(m)];
    for (int l = 0; l < LANES; l++)
        if (!(m >> l & 1)) a[l] = first;
}

/* A generic address says by its window which space it means. */
static void check_generic(Worker *c, Warp *w, const Ins *i, u32 m, const u64 *a, int is_store,
                          int relaxed, u32 kind, const u32 *x) {
    const u64 from = c->launch->shared_window + ((u64)c->block->rank << SHARED_WINDOW_BITS);
    u64 b[LANES];
    u32 in_shared, in_own, in_local;
    LANE_BITS(in_shared, in_shared_window(c, a[l]));
    LANE_BITS(in_own, (a[l] - from) >> SHARED_WINDOW_BITS == 0);
    LANE_BITS(in_local, in_local_window(c, a[l]));
    const u32 in_global = m & ~in_shared & ~in_local;
    if (m & in_own) {
        for (int l = 0; l < LANES; l++) b[l] = a[l] - from;
        narrow(b, m & in_own);
        check_own_shared(c, w, i, m & in_own, b, is_store, kind, x);
    }
    if (in_global) {
        memcpy(b, a, sizeof b);
        narrow(b, in_global);
        check_buffers(c, w, i, in_global, b, is_store, relaxed, x);
    }
}

static void check_access(Worker *c, Warp *w, const Ins *i, u32 m, int is_store, int is_atomic) {
    const u32 space = i->flags >> SPACE_SHIFT & 7;
    const u32 *x = is_store && !is_atomic ? vector(w, i->s[2]) : NULL;
    const int relaxed = is_atomic || i->reserved & CHECK_RELAXED;
    /* a volatile store to shared memory is one like any other */
    const u32 kind = relaxed && (is_atomic || !is_store) ? WRITE_ATOMIC : WRITE_PLAIN;
    u64 a[LANES];
    addresses(w, i, m, a);
    if (space == SPACE_SHARED) own_shared(c, a);
    if (space == SPACE_SHARED) check_own_shared(c, w, i, m, a, is_store, kind, x);
    else if (space == SPACE_GLOBAL) check_buffers(c, w, i, m, a, is_store, relaxed, x);
    else check_generic(c, w, i, m, a, is_store, relaxed, kind, x);
}

static void op_CHECK_LOAD(Worker *c, Warp *w, const Ins *i, u32 m) {
    check_access(c, w, i, m, 0, 0);
    op_LOAD(c, w, i, m);
}

static void op_CHECK_STORE(Worker *c, Warp *w, const Ins *i, u32 m) {
    check_access(c, w, i, m, 1, 0);
    op_STORE(c, w, i, m);
}

static void op_CHECK_ATOMIC(Worker *c, Warp *w, const Ins *i, u32 m) {
    check_access(c, w, i, m, 1, 1);
    op_ATOMIC(c, w, i, m);
}

static void note_pending(Worker *c, u32 thread, u64 address, u32 width) {
    Checker *k = c->checker;
    void *room = grown(k->pending, &k->pending_room, k->pending_count + 1, sizeof(Pending));
    if (!room) { stop(c, NO_MEMORY); return; }
    k->pending = room;
    k->pending[k->pending_count++] =
        (Pending){.thread = thread, .group = k->committed[thread],
                  .first = (u32)address >> k->shift, .cells = width >> k->shift};
}

static void op_CHECK_COPY_ASYNC(Worker *c, Warp *w, const Ins *i, u32 m) {
    const u32 reading = m & predicate(w, i->ps[0]);
    Ins shared = *i, global = *i;
    u64 a[LANES];
    shared.flags = SPACE_SHARED << SPACE_SHIFT | (i->flags & (7u << SCALE_SHIFT));
    shared.imm = (i32)i->aux;
    addresses(w, &shared, m, a);
    own_shared(c, a);
    check_own_shared(c, w, &shared, m, a, 1, WRITE_ASYNC, NULL);
    for (int l = 0; l < LANES; l++)
        if (m >> l & 1 && is_in_shared(c->launch, a[l], i->width))
            note_pending(c, thread_of(w, l), a[l], i->width);
    if (reading && !(i->flags & COPY_PARTIAL)) {
        global.flags = (i->flags & (ADDRESS_64 | UNIFORM_64)) | SPACE_GLOBAL << SPACE_SHIFT;
        global.s[0] = i->s[2];
        global.s[1] = i->s[3];
        addresses(w, &global, reading, a);
        check_buffers(c, w, &global, reading, a, 0, 0, NULL);
    }
    op_COPY_ASYNC(c, w, i, m);
}

/* LDGDEPBAR: the copies so far are a group. */
static void op_CHECK_COMMIT(Worker *c, Warp *w, const Ins *i, u32 m) {
    (void)i;
    for (int l = 0; l < LANES; l++)
        if (m >> l & 1) c->checker->committed[thread_of(w, l)]++;
}

/* From here on a copy is as if its thread had stored it. */
static void settle(Checker *k, const Warp *w, const Pending *p) {
    for (u32 cell = p->first; cell < p->first + p->cells; cell++) {
        Written *written = &k->written[cell];
        if (written->kind != WRITE_ASYNC || written->thread != p->thread) continue;
        written->kind = WRITE_PLAIN;
        written->epoch = k->epoch;
        written->stamp = k->phase[w->index];
    }
}

/* DEPBAR: all but the last aux groups of these lanes are there. */
static void op_CHECK_WAIT(Worker *c, Warp *w, const Ins *i, u32 m) {
    Checker *k = c->checker;
    u64 kept = 0;
    for (u64 n = 0; n < k->pending_count; n++) {
        const Pending p = k->pending[n];
        const int mine = p.thread / LANES == w->index && m >> p.thread % LANES & 1;
        if (mine && p.group + i->aux < k->committed[p.thread]) settle(k, w, &p);
        else k->pending[kept++] = p;
    }
    k->pending_count = kept;
}

/* MEMBAR of the device: what the block did so far may be published. */
static void op_CHECK_FENCE(Worker *c, Warp *w, const Ins *i, u32 m) {
    (void)w; (void)i; (void)m;
    c->checker->fences++;
}

/* Lanes of m synchronise, each with those that its mask names; s[5] is the mask where there is one,
 * else the compiler kept none: all of them. */
static void synchronise_lanes(Worker *c, const Warp *w, const Ins *i, u32 m) {
    const u32 *masks = i->reserved & CHECK_HAS_MASK ? vector(w, i->s[5]) : NULL;
    if (masks) check_masks(c, w, masks, m);
    for (u32 left = m, lanes; left; left &= ~lanes) {
        lanes = masks ? (left & masks[__builtin_ctz(left)]) | (left & -left) : left;
        check_warp_sync(c, w, lanes);
    }
}

/* A __syncwarp() where the compiler knows that the lanes are together: no more than a place in the
 * code is left of it. */
static void op_CHECK_SYNCWARP(Worker *c, Warp *w, const Ins *i, u32 m) {
    synchronise_lanes(c, w, i, m);
}

static Handler *handler_of(u32 op);

/* A shuffle or vote: lanes wait for those of their mask. Memory is ordered too as far as a warp's
 * accesses are made in the order of its instructions. */
static void op_CHECK_COLLECTIVE(Worker *c, Warp *w, const Ins *i, u32 m) {
    synchronise_lanes(c, w, i, m);
    handler_of(i->reserved >> CHECK_INSTEAD_SHIFT)(c, w, i, m);
}

#define CHECK_OPS(OP)                                                                          \
    OP(CHECK_LOAD) OP(CHECK_STORE) OP(CHECK_ATOMIC) OP(CHECK_COPY_ASYNC) OP(CHECK_COMMIT)        \
    OP(CHECK_WAIT) OP(CHECK_FENCE) OP(CHECK_SYNCWARP) OP(CHECK_COLLECTIVE)

EXPORT const Finding *core_findings(const Worker *c, u32 *count, u32 *lost) {
    *count = c->checks ? c->checks->found_count : 0;
    *lost = c->checks ? c->checks->lost : 0;
    return c->checks ? c->checks->found : NULL;
}

#endif
