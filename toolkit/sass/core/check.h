/* The sanitizer: hazards, barriers and unwritten memory, found by tracking the ordering itself.
 *
 * A launch that is checked runs a program whose memory operations are the CHECK_ forms below
 * (toolkit/sass/check.py puts them in), so that a plain simulation pays nothing. Shared memory has a
 * shadow of cells: who wrote a cell last, and which lanes of each warp read it. Warps run one after
 * another here and lanes in lockstep, but neither orders anything: an access comes after another of
 * another thread only where
 *
 * - a barrier of the whole block lies between (an `epoch` ends with each),
 * - or a barrier of a part of it, a warp synchronisation, or an mbarrier at which the one arrived and
 *   for which the other waited (`know`, a vector clock per thread).
 *
 * A thread's clock is the phase of its warp. An asynchronous copy is a write that nothing is
 * ordered with, its own thread included, until that thread waits for it; a bulk copy, until somebody
 * waits for its mbarrier (check_copies.h).
 *
 * In global memory, accesses of different blocks are ordered as check_blocks.h says.
 */
#ifndef CHECK_H
#define CHECK_H

#include "atomics.h"
#include "core.h"
#include "memory.h"

/* toolkit/sass/check.py numbers them likewise. */
enum {
    FOUND_READ_AFTER_WRITE = 1, FOUND_WRITE_AFTER_READ, FOUND_WRITE_AFTER_WRITE, FOUND_UNWRITTEN,
    FOUND_DIVERGENT_WARP, FOUND_ABSENT_LANE, FOUND_INVALID_MASK, FOUND_MISMATCHED_MASK,
    FOUND_OUT_OF_BOUNDS, FOUND_MISALIGNED, FOUND_WRITE_TO_CONSTANT
};
/* Ins.reserved of checked operations: an access that is atomic or volatile, which races with no other
 * such; above it, for CHECK_COLLECTIVE, the operation that it stands for. */
enum { CHECK_RELAXED = 1, CHECK_HAS_MASK = 2, CHECK_INSTEAD_SHIFT = 8 };

enum { NOBODY = 0xffffffffu, UNSETTLED = 0xffffffffu, BY_COPY = 0xfffffffeu, MOST_FINDINGS = 1 << 12 };
enum { WRITE_PLAIN = 0, WRITE_ATOMIC, WRITE_ASYNC, WRITE_BULK };
/* Finding.is_async: a copy of a thread, a bulk copy, and neither, of a read that was simulated after the
 * write and comes before it */
enum { IS_ASYNC = 1, IS_BULK, READ_IS_FIRST };

/* Accesses of two threads, `before` the one that was simulated first; the first pair of each two
 * instructions, and how many there were. */
typedef struct {
    u32 kind, space;
    u32 pc, pc_before;
    u64 block, block_before;
    u32 thread, thread_before;
    u64 address;
    u32 width, is_async; /* one is a copy that nobody had waited for */
    u32 is_store, reserved;
    u64 times;
} Finding;

/* `epoch` is UNSETTLED of a copy that is under way; `read_epoch` is that of the last read. Of a bulk
 * copy that was made, `epoch` is BY_COPY, and who knows that more than `stamp` phases of `mbarrier` are
 * over comes after it. Of an atomic operation `plain_stamp`, `plain_thread` and `plain_pc` tell the last
 * plain write before it in this epoch, which it hides, and `other_stamp`, `other_thread` and `other_pc`
 * an atomic operation of another thread; 0: there was none. `step` is of plain ones. */
typedef struct {
    u32 epoch, stamp, pc;
    union { u32 step, plain_pc; };
    u32 read_epoch;
    u16 thread;
    u8 kind, mbarrier;
    u32 plain_stamp, other_stamp, other_pc;
    u16 plain_thread, other_thread;
} Written;
typedef struct { u32 stamp, mask, pc; } ReadBy;

/* An asynchronous copy of a thread that it has not waited for. */
typedef struct { u32 thread, group, first, cells; } Pending;

/* Cells that a bulk copy reads, as long as its warp has not waited for its group. */
typedef struct { u32 thread, group, first, cells, pc; } Reading;

enum { KEPT_PHASES = 4 }; /* of an mbarrier: who waits by parity is at most one phase behind */

/* An mbarrier. `done` phases of it are over, `began` of them before it was initialized last; the clock
 * of all who arrived so far is `arriving`, and that at the end of phase n `ended[n % KEPT_PHASES]`. */
typedef struct { u32 began, done, *arriving, *ended; } Gate;

/* A register that holds what nobody had written to shared memory: the lanes, and what each read. */
typedef struct { u32 pc, cell, width; } Unwritten;
typedef struct { u32 lanes; Unwritten of[LANES]; } Suspect;

typedef struct Order Order; /* what the block knows of others: check_blocks.h */
typedef struct Shadow Shadow;
typedef struct Releases Releases;

/* What the checkers of all blocks have in common: global memory, and what was found. */
struct Checks {
    u32 grain, shift;    /* bytes of a cell: the narrowest access of the program; and their logarithm */
    Shadow *shadow;      /* of each allocation */
    Releases *releases;  /* what blocks published */
    Finding *found;
    u32 found_count, lost, last; /* `last`: the one that was found again last */
    u32 faults; /* instructions among them that accessed what they may not */
};

/* Of a block that runs, or of room for one. */
struct Checker {
    u32 grain, shift;
    u32 cells, threads;
    u32 epoch, first_epoch; /* barriers of the block so far, over all blocks; those before this one */
    Written *written;    /* [cells] */
    ReadBy *read;        /* [warps][cells] */
    u32 *phase, *floor;  /* [warps]: the clock now, and at the last barrier of the block */
    u32 clocks;          /* in a row of `know`: threads, then two of each mbarrier */
    u32 *know;           /* [threads][clocks]: clocks up to which a thread is ordered after others */
    u32 *joined;         /* [clocks]: room */
    u32 *meeting;        /* [CTA_BARRIERS][clocks]: of those who arrived at a partial barrier */
    int crossed;         /* `know` holds something across warps */
    Gate gate[MOST_MBARRIERS];
    u32 *acquired;       /* [warps][MOST_MBARRIERS]: phases that all lanes know to be over */
    int has_gates;       /* mbarriers order something in this block */
    u32 copied_from, copied_to; /* cells that its copies wrote are between these */
    u32 *committed;      /* [threads]: groups of asynchronous copies */
    u32 *mask;           /* [threads]: the lanes that each waits for at a WARPSYNC */
    Pending *pending;
    u64 pending_count, pending_room;
    Reading *reading;
    u64 reading_count, reading_room;
    Suspect *suspect;    /* [warps][slots] */
    u32 *suspects;       /* [warps]: how many there are */
    Order *order;
};

static void free_order(Order *order); /* check_blocks.h */
static Order *new_order(const Launch *launch, u32 warps);
static void begin_order(Order *order);
static void order_epoch(Checker *k);

static void free_checker(Checker *k) {
    if (!k) return;
    for (u32 n = 0; n < MOST_MBARRIERS; n++) free(k->gate[n].arriving);
    free(k->written); free(k->read); free(k->phase); free(k->know); free(k->joined); free(k->meeting);
    free(k->acquired); free(k->committed); free(k->mask); free(k->pending); free(k->reading);
    free(k->suspect); free(k->suspects); free_order(k->order); free(k);
}

/* NULL where there is not enough memory. */
static Checker *new_checker(const Launch *launch, u32 warps) {
    Checker *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    k->grain = launch->check;
    k->shift = (u32)__builtin_ctz(k->grain);
    k->cells = launch->shared_bytes / k->grain + 1;
    k->threads = warps * LANES;
    k->clocks = k->threads + 2 * MOST_MBARRIERS;
    k->written = calloc(k->cells, sizeof *k->written);
    k->read = calloc((size_t)warps * k->cells, sizeof *k->read);
    k->phase = calloc(2 * (size_t)warps, sizeof *k->phase);
    k->acquired = calloc((size_t)warps * MOST_MBARRIERS, sizeof *k->acquired);
    k->committed = calloc(k->threads, sizeof *k->committed);
    k->mask = calloc(k->threads, sizeof *k->mask);
    k->suspect = calloc((size_t)warps * launch->slots, sizeof *k->suspect);
    k->suspects = calloc(warps, sizeof *k->suspects);
    k->order = new_order(launch, warps);
    if (!k->written || !k->read || !k->phase || !k->acquired || !k->committed || !k->mask ||
        !k->suspect || !k->suspects || !k->order) {
        free_checker(k);
        return NULL;
    }
    k->floor = k->phase + warps;
    return k;
}

/* Vector clocks: made when they are first needed; false where there is no memory. */
static int has_clocks(Worker *c) {
    Checker *k = c->checker;
    if (!k->know) k->know = calloc((size_t)k->threads * k->clocks, sizeof(u32));
    if (!k->joined) k->joined = calloc(k->clocks, sizeof(u32));
    if (!k->know || !k->joined) stop(c, NO_MEMORY);
    return k->know && k->joined;
}

static u32 *clock_of(const Checker *k, u32 thread) { return k->know + (size_t)thread * k->clocks; }

static void join_clock(u32 *restrict to, const u32 *restrict from, u32 count) {
    IVDEP for (u32 n = 0; n < count; n++) to[n] = from[n] > to[n] ? from[n] : to[n];
}

static int is_after(const Checker *k, u32 thread, u32 other, u32 stamp) {
    return k->know && clock_of(k, thread)[other] >= stamp;
}

/* Of each mbarrier, the phases that all lanes of a warp which live know to be over. */
static void note_acquired(Checker *k, const Warp *w) {
    u32 *acquired = k->acquired + (size_t)w->index * MOST_MBARRIERS;
    memset(acquired, 0xff, MOST_MBARRIERS * sizeof *acquired);
    FOR_LANES {
        if (!(w->alive >> l & 1)) continue;
        const u32 *over = clock_of(k, w->index * LANES + l) + k->threads;
        IVDEP for (u32 n = 0; n < MOST_MBARRIERS; n++)
            acquired[n] = over[n] < acquired[n] ? over[n] : acquired[n];
    }
}

/* What any thread knows of mbarriers, all do. */
static void share_gates(Worker *c) {
    Checker *k = c->checker;
    memset(k->joined, 0, 2 * MOST_MBARRIERS * sizeof *k->joined);
    for (u32 n = 0; n < k->threads; n++)
        join_clock(k->joined, clock_of(k, n) + k->threads, 2 * MOST_MBARRIERS);
    for (u32 n = 0; n < k->threads; n++)
        memcpy(clock_of(k, n) + k->threads, k->joined, 2 * MOST_MBARRIERS * sizeof *k->joined);
    EACH_WARP(w, c->block) note_acquired(k, w);
}

/* Everything so far is ordered before everything from here on, for all threads of the block. */
static void check_epoch(Worker *c) {
    Checker *k = c->checker;
    order_epoch(k);
    k->epoch++;
    for (u32 n = 0; n < c->warp_count; n++) k->floor[n] = ++k->phase[n];
    if (k->has_gates) share_gates(c);
}

/* A new block: nobody knows of an mbarrier, and no copy of the last one is there any more. */
static void forget_gates(Checker *k) {
    for (u32 n = 0; n < k->threads; n++)
        memset(clock_of(k, n) + k->threads, 0, 2 * MOST_MBARRIERS * sizeof(u32));
    for (u32 n = 0; n < MOST_MBARRIERS; n++) {
        Gate *gate = &k->gate[n];
        if (gate->arriving) memset(gate->arriving, 0, (1 + KEPT_PHASES) * k->clocks * sizeof(u32));
        gate->began = gate->done = 0;
    }
    memset(k->acquired, 0, k->threads / LANES * MOST_MBARRIERS * sizeof *k->acquired);
    for (u32 cell = k->copied_from; cell < k->copied_to; cell++)
        if (k->written[cell].epoch >= BY_COPY) k->written[cell].epoch = 0;
    k->has_gates = 0;
    k->copied_from = k->copied_to = 0;
}

/* Cells that a copy writes, which nothing in the clocks of later blocks tells from those of theirs. */
static void note_copied(Checker *k, u32 first, u32 cells) {
    if (k->copied_from == k->copied_to) k->copied_from = first;
    if (first < k->copied_from) k->copied_from = first;
    if (first + cells > k->copied_to) k->copied_to = first + cells;
}

static void forget_suspects(Worker *c) {
    Checker *k = c->checker;
    for (u32 n = 0; n < c->warp_count; n++) {
        if (!k->suspects[n]) continue;
        memset(k->suspect + (size_t)n * c->launch->slots, 0, c->launch->slots * sizeof *k->suspect);
        k->suspects[n] = 0;
    }
}

static void check_block(Worker *c) {
    Checker *k = c->checker;
    if (k->has_gates) forget_gates(k);
    check_epoch(c);
    k->first_epoch = k->epoch;
    for (u64 n = 0; n < k->pending_count; n++) /* copies that the last block did not wait for */
        for (u32 cell = 0; cell < k->pending[n].cells; cell++)
            k->written[k->pending[n].first + cell].epoch = 0;
    k->pending_count = k->reading_count = 0;
    begin_order(k->order);
    forget_suspects(c);
    memset(k->committed, 0, k->threads * sizeof *k->committed);
    if (k->meeting) memset(k->meeting, 0, (size_t)CTA_BARRIERS * k->clocks * sizeof(u32));
}

/* Findings. */

static int within_warp(const Finding *f) { return f->thread / LANES == f->thread_before / LANES; }

static int are_alike(const Finding *x, const Finding *y) {
    return x->kind == y->kind && x->pc == y->pc && x->pc_before == y->pc_before &&
           x->space == y->space && within_warp(x) == within_warp(y);
}

/* Whether it is the first of its two instructions. */
static int report(Worker *c, const Finding *f) {
    Checks *k = c->checks;
    if (k->last >= k->found_count || !are_alike(&k->found[k->last], f))
        for (k->last = 0; k->last < k->found_count && !are_alike(&k->found[k->last], f);) k->last++;
    if (k->last < k->found_count) {
        k->found[k->last].times++;
        return 0;
    }
    if (k->found_count == MOST_FINDINGS) { k->lost = 1; return 0; }
    k->found[k->found_count] = *f;
    k->found[k->found_count++].times = 1;
    return 1;
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

/* Lanes of a warp synchronise: what each knew or did, all know. */
static void check_warp_sync(Worker *c, const Warp *w, u32 lanes) {
    Checker *k = c->checker;
    if (!has_clocks(c)) return;
    const u32 base = w->index * LANES;
    const u32 from = k->crossed ? 0 : base, count = k->crossed ? k->clocks : LANES;
    u32 *joined = k->joined;
    memset(joined, 0, count * sizeof *joined);
    FOR_LANES_OF(lanes) join_clock(joined, clock_of(k, base + l) + from, count);
    FOR_LANES_OF(lanes) joined[base - from + l] = k->phase[w->index];
    FOR_LANES_OF(lanes) memcpy(clock_of(k, base + l) + from, joined, count * sizeof *joined);
    k->phase[w->index]++;
    if (k->has_gates) note_acquired(k, w);
}

/* Barriers of the block. */

/* Lanes of m arrive at a barrier of `count` threads (0: of all, which ends an epoch when it opens). */
static void check_arrival(Worker *c, const Warp *w, u32 m, u32 number, u32 count) {
    Checker *k = c->checker;
    if (!count || !has_clocks(c)) return;
    if (!k->meeting) k->meeting = calloc((size_t)CTA_BARRIERS * k->clocks, sizeof(u32));
    if (!k->meeting) { stop(c, NO_MEMORY); return; }
    u32 *meeting = k->meeting + (size_t)number * k->clocks;
    FOR_LANES_OF(m) {
        const u32 thread = thread_of(w, (int)l);
        join_clock(meeting, clock_of(k, thread), k->clocks);
        meeting[thread] = k->phase[w->index];
    }
    k->crossed = 1;
    k->phase[w->index]++;
}

static u32 lanes_at_barrier(const Warp *w, u32 number) {
    u32 lanes = 0;
    EACH_GROUP(g, w)
        if (g->state == AT_BARRIER && g->barrier == number) lanes |= g->mask;
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
    EACH_GROUP(g, w) {
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

/* A barrier opens; those who wait there still do. */
static void check_opening(Worker *c, u32 number, u32 expected) {
    Checker *k = c->checker;
    if (!expected) {
        EACH_WARP(w, c->block) check_absent_lanes(c, w, number);
        check_epoch(c);
        return;
    }
    u32 *meeting = k->meeting + (size_t)number * k->clocks;
    EACH_WARP(w, c->block) {
        const u32 lanes = lanes_at_barrier(w, number);
        FOR_LANES_OF(lanes) join_clock(clock_of(k, thread_of(w, l)), meeting, k->clocks);
        if (k->has_gates && lanes) note_acquired(k, w);
    }
    memset(meeting, 0, k->clocks * sizeof *meeting);
}

/* Masks of lanes that synchronise with each other. `masks` is what each lane of m names. */
static void check_masks(Worker *c, const Warp *w, const u32 *masks, u32 m) {
    FOR_LANES_OF(m) {
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
    FOR_LANES_OF(m) c->checker->mask[w->index * LANES + l] = masks[l];
}

/* ... and go on from it, each in company of those that it named. Lanes that were named and have not come
 * left the kernel: `pc_before` says where. */
static void check_parting(Worker *c, const Warp *w, u32 lanes, u32 pc) {
    const u32 *mask = c->checker->mask + w->index * LANES;
    const u32 absent = mask[__builtin_ctz(lanes)] & w->born & ~lanes;
    if (absent) {
        const u32 lane = (u32)__builtin_ctz(absent);
        const Finding f = {.kind = FOUND_ABSENT_LANE, .pc = pc, .space = SPACE_GENERIC,
                           .pc_before = w->alive >> lane & 1 ? NOBODY : w->left[lane],
                           .block = c->block->index, .block_before = c->block->index,
                           .thread = thread_of(w, __builtin_ctz(lanes)),
                           .thread_before = thread_of(w, (int)lane)};
        report(c, &f);
    }
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

/* A read comes upon a write that was simulated earlier. The read is the first of the two if its warp has
 * yet to come as far as the warp of the write: then it reads what the write overwrites. */
static int comes_first(const Worker *c, const Warp *w, const Written *last) {
    return last->kind == WRITE_PLAIN && last->epoch == c->checker->epoch &&
           last->thread / LANES != w->index && w->steps < last->step && c->pc < last->pc;
}

static void report_pair(Worker *c, const Warp *w, u32 kind, int lane, u32 cell, u32 width,
                        u32 before, u32 pc_before, u32 is_async) {
    const Finding f = {.kind = kind, .space = SPACE_SHARED, .pc = c->pc, .pc_before = pc_before,
                       .block = c->block->index, .block_before = c->block->index, .thread = thread_of(w, lane),
                       .thread_before = before, .address = (u64)cell * c->checker->grain,
                       .width = width, .is_async = is_async};
    report(c, &f);
}

/* What a finding says of a write that comes first. */
static u32 asynchrony(const Written *last) {
    return last->kind == WRITE_BULK || last->epoch == BY_COPY ? IS_BULK : last->epoch == UNSETTLED ? IS_ASYNC : 0;
}

static int is_unordered(const Checker *k, u32 thread, u32 earlier, u32 stamp) {
    return stamp && earlier != thread && !is_after(k, thread, earlier, stamp);
}

/* An access comes after a write that it is not ordered with; where both are atomic, after the plain write
 * that the earlier one hides, and where it is ordered with the last of several atomic ones, after another. */
static void report_write(Worker *c, const Warp *w, u32 finding, int lane, u32 cell, u32 width,
                         const Written *last, u32 kind) {
    u32 before = last->thread, pc = last->pc;
    if (last->kind == WRITE_ATOMIC && kind == WRITE_ATOMIC)
        before = last->plain_thread, pc = last->plain_pc;
    else if (last->kind == WRITE_ATOMIC &&
             !is_unordered(c->checker, thread_of(w, lane), last->thread, last->stamp))
        before = last->other_thread, pc = last->other_pc;
    report_pair(c, w, finding, lane, cell, width, before, pc,
                finding == FOUND_READ_AFTER_WRITE && comes_first(c, w, last) ? READ_IS_FIRST
                                                                             : asynchrony(last));
}

/* Whether the last write of a cell is not ordered before an access of `thread` now. */
static int races_with_write(const Checker *k, const Written *last, u32 thread, u32 kind) {
    if (last->epoch < k->first_epoch) return 0; /* of an earlier block */
    if (last->epoch == UNSETTLED) return 1;
    if (last->epoch == BY_COPY)
        return clock_of(k, thread)[k->threads + last->mbarrier] <= last->stamp;
    if (last->epoch != k->epoch) return 0;
    if (last->kind == WRITE_ATOMIC && kind == WRITE_ATOMIC)
        return is_unordered(k, thread, last->plain_thread, last->plain_stamp);
    if (last->kind == WRITE_ATOMIC && is_unordered(k, thread, last->other_thread, last->other_stamp))
        return 1;
    return is_unordered(k, thread, last->thread, last->stamp);
}

/* Of the atomic operations before one of `thread`, what is kept of another thread: rather one that it is
 * not ordered after, the last one of these two. */
static void keep_other(const Checker *k, const Written *last, u32 thread, Written *now) {
    const int is_other = last->thread != thread;
    const int had_other = last->other_stamp && last->other_thread != thread;
    if (is_other && (!had_other || is_unordered(k, thread, last->thread, last->stamp)))
        now->other_stamp = last->stamp, now->other_thread = last->thread, now->other_pc = last->pc;
    else if (had_other)
        now->other_stamp = last->other_stamp, now->other_thread = last->other_thread,
        now->other_pc = last->other_pc;
}

/* The cell's readers in this warp begin anew with the phase, but for those that `lane` is not ordered
 * after. */
static void begin_phase(const Checker *k, const Warp *w, ReadBy *read, int lane) {
    u32 left = 0;
    if (read->stamp >= k->floor[w->index] && read->stamp)
        FOR_LANES
            if (read->mask >> l & 1 && l != (u32)lane &&
                !is_after(k, thread_of(w, lane), w->index * LANES + l, read->stamp))
                left |= 1u << l;
    read->stamp = k->phase[w->index];
    read->mask = left;
}

static Handler *handler_of(u32 op);
static Handler op_CHECK_LOAD;

/* A lane reads what nobody has written. To load it harms nobody, as code does that fetches ahead and
 * finds itself at its end: it is told where it is used. `first` is the first cell of the access. */
static void note_unwritten_read(Worker *c, const Warp *w, int lane, u32 first, u32 cell, u32 width) {
    Checker *k = c->checker;
    const Ins *i = &c->launch->program[c->pc];
    if (handler_of(i->op) != op_CHECK_LOAD) {
        report_alone(c, w, FOUND_UNWRITTEN, SPACE_SHARED, lane, (u64)cell << k->shift, width);
        return;
    }
    const u32 slot = i->d[0] + ((cell - first) << k->shift) / WORD;
    Suspect *x = &k->suspect[(size_t)w->index * c->launch->slots + slot];
    if (!x->lanes) k->suspects[w->index]++;
    x->lanes |= 1u << lane;
    x->of[lane] = (Unwritten){.pc = c->pc, .cell = cell, .width = width};
}

/* A read of what was not written in an earlier epoch of this block. */
static void check_fresh_read(Worker *c, const Warp *w, int lane, u32 first, u32 cell, u32 width, u32 kind) {
    const Checker *k = c->checker;
    const Written *written = &k->written[cell];
    if (written->epoch < k->first_epoch) note_unwritten_read(c, w, lane, first, cell, width);
    else if (races_with_write(k, written, thread_of(w, lane), kind))
        report_write(c, w, FOUND_READ_AFTER_WRITE, lane, cell, width, written, kind);
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
                check_fresh_read(c, w, __builtin_ctz(left), first, cell, width, kind);
        if (kind == WRITE_ATOMIC) continue;
        if (read->stamp != phase) begin_phase(k, w, read, lane);
        read->mask |= lanes;
        read->pc = c->pc;
        written->read_epoch = k->epoch;
    }
}

/* What most reads are, without a look at what is rare: of words written before the last barrier, or by
 * a bulk copy for which all of the warp have waited, by lanes of which none is known to have read them
 * in an earlier phase of this epoch. The lanes that this is not true of. `is_run`: all lanes read, each
 * what follows the last one's. */
static inline __attribute__((always_inline)) u32
note_shared_reads(Checker *k, const Warp *w, const u32 *cells, u32 m, const u32 count, u32 pc,
                  const int has_gates, const int is_run) {
    Written *restrict written = k->written;
    ReadBy *restrict reads = k->read + (size_t)w->index * k->cells;
    const u32 epoch = k->epoch, first = k->first_epoch;
    const u32 phase = k->phase[w->index], floor = k->floor[w->index];
    const u32 *restrict acquired = k->acquired + (size_t)w->index * MOST_MBARRIERS;
    u32 rare = 0;
    FOR_LANES {
        const u32 lane = is_run ? 1u << l : m & 1u << l;
        const u32 begin = is_run ? cells[0] + (u32)l * count : cells[l];
        if (!lane) continue;
        for (u32 cell = begin; cell < begin + count; cell++) {
            ReadBy *read = &reads[cell];
            const u32 stamp = read->stamp, mask = stamp < floor ? 0 : read->mask;
            const Written *last = &written[cell];
            const int is_copied =
                has_gates && (last->epoch == BY_COPY) & (acquired[last->mbarrier] > last->stamp);
            const int is_rare = ((last->epoch - first >= epoch - first) & !is_copied) |
                                ((stamp >= floor) & (stamp != phase));
            rare |= is_rare ? lane : 0;
            read->mask = mask | lane;
            read->stamp = is_rare ? stamp : phase;
            read->pc = pc;
            if (last->read_epoch != epoch) written[cell].read_epoch = epoch; /* most often it is */
        }
    }
    return rare;
}

/* The lowest and the highest of the addresses, and all their bits; inactive lanes hold the address of an
 * active one. */
typedef struct { u64 low, high, bits; } Extent;

static Extent extent_of(const u64 *a) {
    u64 low = a[0], high = a[0], bits = 0;
    FOR_LANES {
        low = a[l] < low ? a[l] : low;
        high = a[l] > high ? a[l] : high;
        bits |= a[l];
    }
    return (Extent){.low = low, .high = high, .bits = bits};
}

/* Reads of this epoch that a write of `lane` is not ordered after. */
static void check_against_reads(Worker *c, const Warp *w, int lane, u32 cell, u32 width, u32 is_async) {
    Checker *k = c->checker;
    if (k->written[cell].read_epoch != k->epoch) return;
    for (u32 n = 0; n < c->warp_count; n++) {
        const ReadBy *read = k->read + (size_t)n * k->cells + cell;
        if (read->stamp < k->floor[n] || !read->stamp) continue;
        u32 lanes = n == w->index ? read->mask & ~(1u << lane) : read->mask;
        for (; lanes; lanes &= lanes - 1) {
            const u32 reader = n * LANES + (u32)__builtin_ctz(lanes);
            if (is_after(k, thread_of(w, lane), reader, read->stamp)) continue;
            report_pair(c, w, FOUND_WRITE_AFTER_READ, lane, cell, width, reader, read->pc, is_async);
            return;
        }
    }
}

/* Bulk copies that still read what a lane writes. */
static void check_against_copies(Worker *c, const Warp *w, int lane, u32 cell, u32 width) {
    const Checker *k = c->checker;
    for (u64 n = 0; n < k->reading_count; n++) {
        const Reading *r = &k->reading[n];
        if (cell - r->first < r->cells)
            report_pair(c, w, FOUND_WRITE_AFTER_READ, lane, cell, width, r->thread, r->pc, IS_BULK);
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
        if (kind == WRITE_ATOMIC && cell == first && written->epoch < k->first_epoch &&
            (i->aux & 0xff) != ATOMIC_EXCH)
            report_alone(c, w, FOUND_UNWRITTEN, SPACE_SHARED, lane, (u64)cell << k->shift, i->width);
        if (races_with_write(k, written, thread, kind)) {
            const u32 offset = cell * k->grain - (u32)address;
            const int together = written->pc == c->pc && written->step == w->steps &&
                                 written->thread / LANES == w->index;
            /* who writes what is there already changes nothing, whoever comes first */
            const int alike = x && written->epoch < BY_COPY &&
                stored(k, i, x, lane, offset) ==
                    (together ? stored(k, i, x, written->thread % LANES, offset)
                              : held(k, c->block->shared + (size_t)cell * k->grain));
            if (!alike)
                report_write(c, w, FOUND_WRITE_AFTER_WRITE, lane, cell, i->width, written, kind);
        }
        check_against_reads(c, w, lane, cell, i->width, 0);
        if (k->reading_count) check_against_copies(c, w, lane, cell, i->width);
        const int hides = kind == WRITE_ATOMIC && written->epoch == k->epoch;
        const int is_plain = written->kind == WRITE_PLAIN;
        const u32 plain_pc = is_plain ? written->pc : written->plain_pc;
        Written now = {.epoch = kind == WRITE_ASYNC ? UNSETTLED : k->epoch,
                       .stamp = k->phase[w->index], .pc = c->pc,
                       .step = kind == WRITE_ATOMIC ? plain_pc : w->steps,
                       .read_epoch = written->read_epoch, .thread = (u16)thread,
                       .kind = (u8)kind,
                       .plain_stamp = !hides ? 0 : is_plain ? written->stamp : written->plain_stamp,
                       .plain_thread = is_plain ? written->thread : written->plain_thread};
        if (hides && written->kind == WRITE_ATOMIC) keep_other(k, written, thread, &now);
        *written = now;
    }
}

static int is_in_shared(const Launch *launch, u64 address, u32 width) {
    return address >= launch->shared_base && address + width <= launch->shared_bytes;
}

#endif
