/* A run, clock by clock, and what Python calls. */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "code.h"
#include "events.h"
#include "issue.h"
#include "load_store.h"
#include "mbarriers.h"
#include "registers.h"

static u64 rounded_up(double clocks) { return (u64)clocks + (clocks > (double)(u64)clocks); }

static u64 next_time(const Sm *s) {
    u64 next = ~0ull;
    for (u32 k = 0; k < SCHEDULERS; k++) {
        const Scheduler *x = &s->scheduler[k];
        const u64 at = GREATER(x->sleep, x->free);
        if (at <= s->now + 1) return s->now + 1;
        LOWER(next, at);
        for (u32 n = 0; n < QUEUES; n++) {
            const Queue *queue = &x->queue[n];
            if (!queue->count) continue;
            u64 from = s->lsu_free > (double)s->now + 1 ? (u64)s->lsu_free : s->now + 1;
            RAISE(from, queue->at[queue->head].from);
            LOWER(next, from);
        }
    }
    for (u32 k = 0; k < s->arrival_count; k++) LOWER(next, rounded_up(s->arrivals[k].at));
    if (s->events) LOWER(next, rounded_up(s->heap[0].at));
    return next > s->now ? next : s->now + 1;
}

/* True if all blocks have ended, and the load/store unit has served all of their requests. */
static int all_done(const Sm *s) {
    if (s->waiting || s->next_job < s->job_count) return 0;
    for (u32 k = 0; k < s->m->slots; k++)
        if (s->blocks[k].alive) return 0;
    return 1;
}

/* Clocks of the run: until the last block has ended and its stores have left. */
static void finish(Sm *s) {
    u64 end = 0;
    for (u32 k = 0; k < s->next_job; k++) RAISE(end, s->ends[k]);
    RAISE(end, rounded_up(s->lsu_free));
    RAISE(end, rounded_up(s->write_free));
    for (u32 k = 0; k < SCHEDULERS; k++) { /* they have counted the clocks before `done` */
        const Scheduler *x = &s->scheduler[k];
        const u64 done = GREATER(x->free, s->now);
        s->r->lost[done > end ? x->why : LOST_EMPTY] += end - done;
    }
    s->r->clocks = end;
}

/* Simulate one clock. */
static void clock_of_all(Sm *s) {
    while (s->events && s->heap[0].at <= s->now) happen(s, pop(s));
    while (serve(s)) {} /* several, if they take no clocks */
    if (s->arrival_count) let_arrive(s);
    for (u32 k = 0; k < SCHEDULERS; k++) schedule(s, &s->scheduler[k]);
}

/* Advance to the next clock in which something can happen. False if there is none. */
static int advance(Sm *s) {
    const u64 next = next_time(s);
    if (next == ~0ull && !all_done(s) && help_one(s)) return 1;
    if (next == ~0ull) { /* no warp can continue */
        s->r->unfinished = all_done(s) ? 0 : 2;
        s->now += !s->r->unfinished; /* this clock is counted */
        return 0;
    }
    for (u32 k = 0; k < SCHEDULERS && next > s->now + 1; k++) {
        const Scheduler *x = &s->scheduler[k];
        const u64 from = s->now + 1;
        if (x->sleep > from && next > from) s->r->lost[x->why] += (x->sleep < next ? x->sleep : next) - from;
    }
    s->now = next;
    return 1;
}

/* True unless a run is done, takes too long, or may end at its mark. */
static int goes_on(Sm *s) {
    if (s->failed || all_done(s)) return 0;
    s->r->unfinished = s->now > s->m->most_clocks;
    if (s->r->issued >= s->m->mark && !s->r->marked) s->r->marked = s->now;
    return !s->r->unfinished && !(s->r->marked && s->m->stops_at_mark);
}

static void run_fewer(Sm *s);

/* Start new blocks in the slots of blocks that have ended. */
static void start_others(Sm *s) {
    for (u32 k = 0; k < s->ended_count; k++) {
        if (s->next_job == s->fewer) run_fewer(s);
        start_block(s, s->ended[k], s->now + s->m->block_start);
    }
    s->ended_count = 0;
}

static void run(Sm *s) {
    int can = 1;
    while (can && goes_on(s)) {
        clock_of_all(s);
        start_others(s);
        can = advance(s);
    }
    if (s->r->unfinished || (s->r->marked && s->m->stops_at_mark)) s->r->clocks = s->now;
    else finish(s);
    if (!s->r->marked) s->r->marked = s->r->clocks;
}

/* The arrays that a run changes, without its results, and how long each is. */
#define ARRAYS(OF, s)                                                                                       \
    OF(warps, (s)->m->slots * (s)->warps_per_block) OF(blocks, (s)->m->slots) OF(ended, (s)->m->slots)      \
    OF(cache, (s)->m->l1_lines + 1) OF(bucket, (s)->buckets) OF(fetched, (s)->code_length)                      \
    OF(used, (s)->code_length) OF(heap, (s)->event_room) OF(arrivals, (s)->arrival_room)

static void *copied(Sm *s, const void *of, size_t bytes) {
    void *copy = malloc(bytes);
    if (!copy) s->failed = 1;
    else memcpy(copy, of, bytes);
    return copy;
}

static void set_free(Sm *s) {
#define FREE(array, count) free(s->array);
    ARRAYS(FREE, s)
#undef FREE
}

/* From here on the first jobs run without further blocks, on a copy of the state. */
static void run_fewer(Sm *s) {
    Sm x = *s;
    s->fewer = x.fewer = x.ended_count = 0;
    x.job_count = x.next_job;
#define COPY(array, count) x.array = copied(&x, s->array, (count) * sizeof *s->array);
    ARRAYS(COPY, s)
#undef COPY
    x.r++;
    *x.r = *s->r;
    x.starts += s->job_count;
    x.ends += s->job_count;
    memcpy(x.starts, s->starts, x.job_count * sizeof *x.starts);
    memcpy(x.ends, s->ends, x.job_count * sizeof *x.ends);
    if (!x.failed && advance(&x)) run(&x);
    s->failed |= x.failed;
    set_free(&x);
}

/* Run `job_count` blocks, and also only the first `fewer` of them (at least as many as slots, but not
 * all; 0: none). `result`, and `starts` and `ends` of each block in clocks, are those of all blocks,
 * then of the first ones. Nonzero: out of memory. */
EXPORT u32 sm_run(const Machine *machine, const Instruction *code, u32 length, const Step *steps,
                  const u64 *lines, const Stream *streams, const Job *jobs, u32 job_count, u32 fewer,
                  Result *result, u64 *starts, u64 *ends) {
    u32 most = 1;
    for (u32 k = 0; k < job_count; k++) RAISE(most, jobs[k].warps);
    const u32 all = machine->slots * most;
    Sm s = {.m = machine, .code = code, .steps = steps, .lines = lines, .streams = streams,
            .jobs = jobs, .job_count = job_count, .fewer = fewer, .warps_per_block = most, .r = result,
            .starts = starts, .ends = ends};
    memset(result, 0, sizeof *result);
    for (s.buckets = 1; s.buckets < 2 * machine->l1_lines;) s.buckets *= 2;
    s.code_length = length / CODE_LINE + 1;
    s.event_room = s.arrival_room = 64;
    s.operands = calloc(length, sizeof *s.operands);
    s.reads = calloc(ROWS, sizeof *s.reads);
    u32 *of_scheduler = calloc(SCHEDULERS * (all / SCHEDULERS + 1), sizeof *of_scheduler);
    s.failed = !s.operands || !s.reads || !of_scheduler;
#define ZEROS(array, count) s.failed |= !(s.array = calloc(count, sizeof *s.array));
    ARRAYS(ZEROS, &s)
#undef ZEROS
    if (!s.failed) {
        for (u32 k = 0; k < length; k++) plan_operands(&s, k);
        memset(s.bucket, 0xff, s.buckets * sizeof *s.bucket);
        s.cache[machine->l1_lines].newer = s.cache[machine->l1_lines].older = machine->l1_lines;
        for (u32 k = 0; k < SCHEDULERS; k++) {
            Scheduler *x = &s.scheduler[k];
            x->warps = of_scheduler + k * (all / SCHEDULERS + 1);
            for (u32 w = k; w < all; w += SCHEDULERS) x->warps[x->count++] = w;
            x->last = -1;
            x->why = LOST_EMPTY;
            x->kept_warp = ~0u;
        }
        for (u32 k = 0; k < machine->slots; k++) start_block(&s, k, 0);
        run(&s);
    }
    set_free(&s);
    free(of_scheduler); free(s.operands); free(s.reads);
    return s.failed;
}

EXPORT const char built_from[] = BUILT_FROM;
