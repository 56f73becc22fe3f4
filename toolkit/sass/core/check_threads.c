#include "check_threads.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "check_cluster.h"
#include "check_order.h"
#include "check_products.h"
#include "grow.h"
#include "lanes.h"
#include "operations.h"

void free_checker(Checker *k) {
    if (!k) return;
    for (u32 n = 0; n < MOST_MBARRIERS; n++) free(k->gate[n].arriving);
    free(k->written); free(k->read); free(k->phase); free(k->know); free(k->joined); free(k->meeting);
    free(k->acquired); free(k->committed); free(k->mask); free(k->pending); free(k->reading);
    free(k->suspect); free(k->suspects); free_order(k->order); free_meeting(k->cluster); free_products(k->products); free(k);
}

/* NULL where there is not enough memory. */
Checker *new_checker(const Launch *launch, u32 warps) {
    Checker *k;
    if (!ZEROS(k, 1)) return NULL;
    k->grain = launch->check;
    k->shift = (u32)__builtin_ctz(k->grain);
    k->cells = launch->shared_bytes / k->grain + 1;
    k->threads = warps * LANES;
    k->clocks = k->threads + 2 * MOST_MBARRIERS;
    k->order = new_order(launch, warps);
    k->cluster = new_meeting(launch, k->cells, warps);
    if (launch->checks_products && !(k->products = new_products(launch, warps))) {
        free_checker(k);
        return NULL;
    }
    const int is_whole = k->order && k->cluster && ZEROS(k->written, k->cells) && ZEROS(k->read, (size_t)warps * k->cells) &&
                         ZEROS(k->phase, 2 * (size_t)warps) &&
                         ZEROS(k->acquired, (size_t)warps * MOST_MBARRIERS) &&
                         ZEROS(k->committed, k->threads) && ZEROS(k->mask, k->threads) &&
                         ZEROS(k->suspect, (size_t)warps * launch->slots) && ZEROS(k->suspects, warps);
    k->floor = k->phase + warps;
    if (is_whole) return k;
    free_checker(k);
    return NULL;
}

/* All threads learn what any thread knows about mbarriers. */
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

/* A new block: it has no mbarrier yet, and no copy of the last block is left. */
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
    k->has_gates = k->polls = 0;
    k->copied_from = k->copied_to = 0;
}

static void forget_suspects(Worker *c) {
    Checker *k = c->checker;
    for (u32 n = 0; n < c->warp_count; n++) {
        if (!k->suspects[n]) continue;
        memset(k->suspect + (size_t)n * c->launch->slots, 0, c->launch->slots * sizeof *k->suspect);
        k->suspects[n] = 0;
    }
}

void check_block(Worker *c) {
    Checker *k = c->checker;
    if (k->has_gates) forget_gates(k);
    check_epoch(c);
    k->first_epoch = k->epoch;
    for (u64 n = 0; n < k->pending_count; n++) /* copies that the last block did not wait for */
        for (u32 cell = 0; cell < k->pending[n].cells; cell++)
            k->written[k->pending[n].first + cell].epoch = 0;
    k->pending_count = k->reading_count = 0;
    begin_order(k->order);
    begin_meeting(k);
    if (k->products) begin_products(k->products, c->launch);
    forget_suspects(c);
    memset(k->committed, 0, k->threads * sizeof *k->committed);
    if (k->meeting) memset(k->meeting, 0, (size_t)CTA_BARRIERS * k->clocks * sizeof(u32));
}

/* Ordering of threads. */
/* Lanes of a warp synchronise: what each knew or did, all know. */
void check_warp_sync(Worker *c, const Warp *w, u32 lanes) {
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
void check_arrival(Worker *c, const Warp *w, u32 m, u32 number, u32 count) {
    Checker *k = c->checker;
    if (!count || !has_clocks(c)) return;
    if (!k->meeting && !ZEROS(k->meeting, (size_t)CTA_BARRIERS * k->clocks)) {
        stop(c, NO_MEMORY);
        return;
    }
    u32 *meeting = k->meeting + (size_t)number * k->clocks;
    FOR_LANES_OF(m) {
        const u32 thread = thread_of(w, (int)l);
        join_clock(meeting, clock_of(k, thread), k->clocks);
        meeting[thread] = k->phase[w->index];
    }
    k->crossed = 1;
    k->phase[w->index]++;
}

u32 lanes_at_barrier(const Warp *w, u32 number) {
    u32 lanes = 0;
    EACH_GROUP(g, w)
        if (g->state == AT_BARRIER && g->barrier == number) lanes |= g->mask;
    return lanes;
}

/* At a barrier of the block: some of a warp are, and others of it are at another such instruction, or
 * left the kernel. Each EXIT by which they did is one finding: `pc_before`. Those that left before they
 * could come are no mistake, as a barrier waits only for threads that live (toolkit/execution/findings.py
 * tells them apart). */
static void report_absent(Worker *c, const Warp *w, const Group *first, u32 absent) {
    for (u32 l; absent; absent &= absent - 1) {
        l = (u32)__builtin_ctz(absent);
        Finding f = finding_of(c, FOUND_DIVERGENT_WARP, SPACE_GENERIC, thread_of(w, __builtin_ctz(first->mask)));
        f.pc = first->pc - 1;
        f.pc_before = w->alive >> l & 1 ? NOBODY : w->left[l];
        f.thread_before = thread_of(w, (int)l);
        report(c, &f);
    }
}

static void check_absent_lanes(Worker *c, const Warp *w, u32 number) {
    const Group *first = NULL;
    const u32 others = w->born & ~lanes_at_barrier(w, number);
    EACH_GROUP(g, w) {
        if (g->state != AT_BARRIER || g->barrier != number) continue;
        if (!first) first = g;
        else if (g->pc != first->pc) report_absent(c, w, first, g->mask);
    }
    if (first && others) report_absent(c, w, first, others);
}

/* A barrier opens; its waiting threads still wait. */
void check_opening(Worker *c, u32 number, u32 expected) {
    Checker *k = c->checker;
    share_waits(k);
    EACH_WARP(w, c->block) check_absent_lanes(c, w, number);
    if (!expected) {
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
void check_masks(Worker *c, const Warp *w, const u32 *masks, u32 m) {
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
void check_meeting(Worker *c, const Warp *w, const u32 *masks, u32 m) {
    check_masks(c, w, masks, m);
    FOR_LANES_OF(m) c->checker->mask[w->index * LANES + l] = masks[l];
}

/* ... and go on from it, each in company of those that it named. Lanes that were named and have not come
 * left the kernel: `pc_before` says where. */
void check_parting(Worker *c, const Warp *w, u32 lanes, u32 pc) {
    const u32 *mask = c->checker->mask + w->index * LANES;
    const u32 absent = mask[__builtin_ctz(lanes)] & w->born & ~lanes;
    if (absent) {
        const u32 lane = (u32)__builtin_ctz(absent);
        Finding f = finding_of(c, FOUND_ABSENT_LANE, SPACE_GENERIC, thread_of(w, __builtin_ctz(lanes)));
        f.pc = pc;
        f.pc_before = w->alive >> lane & 1 ? NOBODY : w->left[lane];
        f.thread_before = thread_of(w, (int)lane);
        report(c, &f);
    }
    for (u32 together; lanes; lanes &= ~together) {
        together = (lanes & mask[__builtin_ctz(lanes)]) | (lanes & -lanes);
        check_warp_sync(c, w, together);
    }
}

/* The operation of a warp for which lanes synchronise: the one after their WARPSYNC; OP_NOP: none. */
static u32 operation_after(const Worker *c, const Group *g) {
    const Ins *i = g->pc < c->launch->length ? &c->launch->program[g->pc] : NULL;
    return i && i->op == OP_CHECK_COLLECTIVE ? i->reserved >> CHECK_INSTEAD_SHIFT : OP_NOP;
}

/* Lanes of two WARPSYNCs have met: `g` names lanes that do not execute its shuffle, vote or the like, but
 * synchronise for something else. */
void check_same_operation(Worker *c, const Warp *w, const Group *g, const Group *other) {
    const u32 wanted = operation_after(c, g);
    if (wanted == OP_NOP || wanted == operation_after(c, other)) return;
    Finding f = finding_of(c, FOUND_ABSENT_LANE, SPACE_GENERIC, thread_of(w, __builtin_ctz(g->mask)));
    f.pc = g->pc - 1;
    f.thread_before = thread_of(w, __builtin_ctz(other->mask));
    report(c, &f);
}

/* A barrier of a cluster opens: its blocks know of all that they did so far. */
void check_cluster(Worker *c, Block *first) {
    Block *own = c->block;
    Checker *of_own = c->checker;
    if (!of_own) return;
    EACH_BLOCK(b, first) b->checker->order->fences++;
    EACH_BLOCK(b, first) {
        c->block = b;
        c->checker = b->checker;
        check_epoch(c);
        EACH_BLOCK(other, first)
            if (other != b) learn_all(c, (u32)other->index, other->checker->order->fences);
    }
    c->block = own;
    c->checker = of_own;
}
