#include "run.h"

#include "check.h"
#include "check_gmma.h"
#include "check_ops.h"
#include "control.h"
#include "follow.h"
#include "groups.h"
#include "lanes.h"
#include "operations.h"
#include "pace.h"
#include "straight.h"
#include "stream.h"
#include "waits.h"

/* Shorter where blocks run that wait for others: what they do in vain shows in no counter then. */
enum { SLICE = 1 << 14, SHORT_SLICE = 1 << 8 };

enum { CACHE_LINE = 64 }; /* bytes */

/* Where blocks run in time, warps take short turns, and their registers have left the cache before the next one. */
static void prefetch_registers(const Launch *launch, const Warp *w) {
    for (size_t r = 0; r < (size_t)launch->slots * LANES; r += CACHE_LINE / sizeof *w->v) __builtin_prefetch(w->v + r);
}

/* Keep what follows if the instructions that were executed so far end in a window, in the middle of its period. */
static void open_window(Worker *c) {
    const Launch *launch = c->launch;
    if (!launch->period || !c->block->keeper) return;
    const u64 before = (launch->period - launch->window) / 2;
    const u64 at = ((u64)(c->granted - c->budget) + launch->period - before) % launch->period;
    c->is_late = 2 * at >= launch->window;
    c->stream = at < launch->window ? c->block->keeper->own_stream : NULL;
}

/* Run a warp until all its groups wait or have left, or a slice is over. A warp with several groups
 * goes on for another slice, in which most of them meet, and then up to a branch backward, as every
 * loop has one in which lanes wait for others. */
ALWAYS_INLINE void run_warp_as(Worker *c, Warp *w, const int is_watched, const int is_in_time) {
    const Launch *launch = c->launch;
    const i64 slice = c->running > 1 && !is_in_time ? SHORT_SLICE : SLICE;
    i64 left = slice;
    int is_at_loop = 0;
    w->yielded = w->ends_slice = 0;
    if (!w->groups) return;
    if (is_in_time) open_window(c);
    if (c->stream) stream_warp(c, w);
    if (is_in_time) prefetch_registers(launch, w);
    while (w->groups && !c->fault.kind) {
        if (current(w)->state != READY) {
            resume(w);
            if (current(w)->state != READY && !release_innermost(c, w)) break;
        }
        const int is_later = is_in_time && !issues_now(c, w, current(w)->pc);
        const int may_end = w->groups == 1 || (left < -slice && (is_at_loop || left < -2 * slice));
        if ((left-- <= 0 && may_end) || w->ends_slice || is_later) {
            c->budget -= slice - left - (launch->period != 0); /* windows need what was executed: not this instruction */
            if (launch->cancel) stop(c, CANCELLED);
            if (c->budget < 0) stop(c, LIMIT);
            give_way(c, w);
            if (!is_later || is_at_loop) rotate(w);
            return;
        }
        Group *g = current(w);
        const u32 pc = g->pc;
        if (pc >= launch->length) {
            stop(c, BAD_TARGET);
            return;
        }
        if (!is_watched && !is_in_time && g->mask == FULL && c->straight[pc].run > 1 && !g->retries && !g->again) {
            const u32 run = c->straight[pc].run, n = run <= left + 1 ? run : (u32)left + 1;
            run_straight(c, w, pc, n);
            left -= n - 1;
            w->steps += n;
            g->pc = pc + n;
            g->fresh = 0;
            continue;
        }
        const Ins *i = &launch->program[pc];
        Count *count = &c->count[pc];
        const u32 lanes = g->mask, m = lanes & predicate(w, i->guard), waits = c->straight[pc].waits;
        Count before;
        if (waits) before = *count;
        c->pc = pc;
        w->steps++;
        if (g->retries) {
            g->retries = 0;
        } else if (g->again) {
            g->again = 0;
            count->reissued++;
            count->reissued_threads += popcount(g->mask);
        } else {
            count->executed++;
            count->threads += popcount(g->mask);
            count->predicated += popcount(m);
        }
        if (is_in_time) take_time(c, w, i, m);
        if (c->stream) stream_step(c->stream, pc, m);
        if (is_watched && c->origins) follow(c, w, i, lanes, m);
        if (i->op >= FIRST_CONTROL) {
            const u64 jumps = count->taken;
            control(c, w, i, m);
            is_at_loop = i->op == OP_BRANCH && current(w)->pc <= pc;
            Step *step = c->stream ? last_step(c->stream) : NULL;
            if (step && count->taken != jumps) step->flags |= STEP_TAKEN;
            if (c->fault.kind && i->op != OP_CALL_SYSTEM) blame(c, w, m ? m : g->mask);
            if (!waits) continue;
            note_passed(c, w, pc, lanes, &before);
            if (i->flags & BRANCH_WAITS && i->op == OP_BRANCH && w->pass.lanes == current(w)->mask &&
                current(w)->pc < pc)
                undo_pass(c, w);
            continue;
        }
        g->pc = pc + 1;
        g->fresh = is_at_loop = 0;
        const u64 wavefronts = count->wavefronts;
        if (is_watched && m && c->checker && c->checker->suspects[w->index]) check_use(c, w, i, m);
        if (is_watched && m && c->checker && c->checker->products && !is_of_products(i)) check_registers(c, w, i);
        if (m) handlers[i->op](c, w, i, i->uniform ? together(w) : m);
        if (count->wavefronts != wavefronts) add_wavefronts(c->stream, count->wavefronts - wavefronts);
        if (waits) note_passed(c, w, pc, lanes, &before);
    }
    c->budget -= slice - left;
    if (c->budget < 0) stop(c, LIMIT);
}

void run_warp(Worker *c, Warp *w) {
    if (c->launch->paces) run_warp_as(c, w, 0, 1);
    else if (c->checker || c->origins) run_warp_as(c, w, 1, 0);
    else run_warp_as(c, w, 0, 0);
}
