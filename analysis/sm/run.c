/* A run, clock by clock, and what Python calls. */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "code.h"
#include "events.h"
#include "issue.h"
#include "l1.h"
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
            u64 from = s->lsu.free > (double)s->now + 1 ? (u64)s->lsu.free : s->now + 1;
            RAISE(from, queue->at[queue->head].from);
            LOWER(next, from);
        }
    }
    for (u32 k = 0; k < s->arrivals.count; k++) LOWER(next, rounded_up(s->arrivals.list[k].at));
    if (s->events.count) LOWER(next, rounded_up(s->events.heap[0].at));
    return next > s->now ? next : s->now + 1;
}

/* True if all blocks have ended, and the load/store unit has served all of their requests. */
static int all_done(const Sm *s) {
    if (s->lsu.waiting || s->jobs.next < s->jobs.count) return 0;
    for (u32 k = 0; k < s->m->slots; k++)
        if (s->blocks[k].alive) return 0;
    return 1;
}

/* Clocks of the run: until the last block has ended and L2 has its stores. */
static void finish(Sm *s) {
    u64 end = 0;
    for (u32 k = 0; k < s->jobs.next; k++) RAISE(end, s->jobs.ends[k]);
    RAISE(end, rounded_up(s->lsu.free));
    RAISE(end, rounded_up(s->l2.write_free));
    if (s->l2.stored) RAISE(end, rounded_up(s->l2.stored) + s->m->end_clocks);
    for (u32 k = 0; k < SCHEDULERS; k++) { /* they have counted the clocks before `done` */
        const Scheduler *x = &s->scheduler[k];
        const u64 done = GREATER(x->free, s->now);
        s->r->lost[done > end ? x->why : LOST_EMPTY] += end - done;
    }
    s->r->clocks = end;
}

/* Simulate one clock. */
static void clock_of_all(Sm *s) {
    while (s->events.count && s->events.heap[0].at <= s->now) happen(s, pop(s));
    while (serve(s)) {} /* several, if they take no clocks */
    if (s->arrivals.count) let_arrive(s);
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
    if (s->r->issued + s->skipped >= s->m->mark && !s->r->marked) s->r->marked = s->now;
    return !s->r->unfinished && !(s->r->marked && s->m->stops_at_mark);
}

static void run_fewer(Sm *s);

/* Start new blocks in the slots of blocks that have ended. */
static void start_others(Sm *s) {
    for (u32 k = 0; k < s->jobs.ended_count; k++) {
        if (s->jobs.next == s->jobs.fewer) run_fewer(s);
        start_block(s, s->jobs.ended[k], s->now + s->m->block_start);
    }
    s->jobs.ended_count = 0;
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
    OF(until, SCHEDULERS * (s)->warps_per_scheduler) OF(why_until, SCHEDULERS * (s)->warps_per_scheduler)   \
    OF(warps, (s)->m->slots * (s)->warps_per_block) OF(blocks, (s)->m->slots)                               \
    OF(jobs.ended, (s)->m->slots) OF(fetch.arrival, (s)->fetch.lines) OF(fetch.used, (s)->fetch.lines)      \
    OF(events.heap, (s)->events.room) OF(arrivals.list, (s)->arrivals.room)                                 \
    OF(l1.line, (s)->l1.capacity + (s)->l1.sets) OF(l1.bucket, (s)->l1.buckets) OF(l1.evicted, EVICTED)

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
    s->jobs.fewer = x.jobs.fewer = x.jobs.ended_count = 0;
    x.jobs.count = x.jobs.next;
#define COPY(array, count) x.array = copied(&x, s->array, (count) * sizeof *s->array);
    ARRAYS(COPY, s)
#undef COPY
    x.r++;
    *x.r = *s->r;
    x.jobs.starts += s->jobs.count;
    x.jobs.ends += s->jobs.count;
    memcpy(x.jobs.starts, s->jobs.starts, x.jobs.count * sizeof *x.jobs.starts);
    memcpy(x.jobs.ends, s->jobs.ends, x.jobs.count * sizeof *x.jobs.ends);
    if (!x.failed && advance(&x)) run(&x);
    s->failed |= x.failed;
    set_free(&x);
}

/* Each scheduler has every fourth warp. */
static void set_up_schedulers(Sm *s) {
    const u32 warps = s->m->slots * s->warps_per_block;
    for (u32 k = 0; k < SCHEDULERS; k++) {
        Scheduler *x = &s->scheduler[k];
        x->number = k;
        x->count = (warps + SCHEDULERS - 1 - k) / SCHEDULERS;
        x->last = NO_WARP;
        x->why = LOST_EMPTY;
        x->registers.kept_warp = NO_WARP;
    }
    for (u32 w = 0; w < warps; w++) wait_until(s, w, UNKNOWN, LOST_EMPTY);
}

/* Plan the instructions of the program: `code`, at `memory`, which has room for one more. */
static void plan(Sm *s, const Instruction *code, u32 length, void *memory) {
    const size_t line = sizeof(Planned);
    s->program.code = (Planned *)(((uintptr_t)memory + line - 1) / line * line);
    for (u32 k = 0; k < length; k++) {
        s->program.code[k].i = code[k];
        plan_instruction(&s->program.code[k]);
        s->program.has_skipped |= code[k].skipped > 0;
    }
}

/* Fill a table that all runs share: READS_BYTES. */
EXPORT void sm_reads(u8 *table) { plan_reads((u8(*)[STATES])table); }

/* Run `job_count` blocks, and also only the first `fewer` of them (at least as many as slots, but not
 * all; 0: none). `reads`: the table of `sm_reads`. `result`, and `starts` and `ends` of each block in
 * clocks, are those of all blocks, then of the first ones. Nonzero: out of memory. */
EXPORT u32 sm_run(const Machine *machine, const u8 *reads, const Instruction *code, u32 length,
                  const Step *steps, const u64 *lines, const Stream *streams, const Job *jobs, u32 job_count, u32 fewer,
                  Result *result, u64 *starts, u64 *ends) {
    u32 most = 1;
    for (u32 k = 0; k < job_count; k++) RAISE(most, jobs[k].warps);
    Sm s = {.m = machine, .warps_per_block = most, .r = result, .program.reads = (const u8(*)[STATES])reads,
            .warps_per_scheduler = machine->slots * most / SCHEDULERS + 1,
            .recorded = {.steps = steps, .lines = lines, .streams = streams},
            .jobs = {.job = jobs, .count = job_count, .fewer = fewer, .free = machine->first_start, .starts = starts, .ends = ends},
            .fetch.lines = length / CODE_LINE + 1, .events.room = 64, .arrivals.room = 64,
            .l1 = {.buckets = 1, .sets = machine->l1_lines < LEAST_LINES_OF_SETS ? 1 : MOST_SETS}};
    s.l1.capacity = machine->l1_lines / s.l1.sets * s.l1.sets;
    while (s.l1.buckets < 2 * s.l1.capacity) s.l1.buckets *= 2;
    memset(result, 0, sizeof *result);
    void *memory = calloc(length + 1, sizeof(Planned));
    s.failed = !memory;
#define ZEROS(array, count) s.failed |= !(s.array = calloc(count, sizeof *s.array));
    ARRAYS(ZEROS, &s)
#undef ZEROS
    if (!s.failed) {
        plan(&s, code, length, memory);
        set_up_l1(&s.l1);
        set_up_schedulers(&s);
        for (u32 k = 0; k < machine->slots; k++) start_block(&s, k, 0);
        run(&s);
    }
    set_free(&s);
    free(memory);
    return s.failed;
}

EXPORT const char built_from[] = BUILT_FROM;
