#include "blocks.h"

#include "events.h"

/* Start the next block, if there is one, in a slot at a time or later. */
void start_block(Sm *s, u32 slot, u64 at) {
    if (s->jobs.next == s->jobs.count) return;
    const u32 job = s->jobs.next++;
    RAISE(at, s->jobs.free);
    s->jobs.free = at + s->m->block_interval;
    const Job *j = &s->jobs.job[job];
    Block *b = &s->blocks[slot];
    *b = (Block){.alive = j->warps, .job = job, .first = slot * s->warps_per_block, .warps = j->warps,
                 .start = at, .age = ++s->jobs.block_ages};
    s->jobs.starts[job] = at;
    for (u32 k = 0; k < j->warps; k++) {
        Warp *w = &s->warps[b->first + k];
        const Stream *stream = &s->recorded.streams[j->first_stream + k];
        *w = (Warp){.step = s->recorded.steps + stream->first_step, .line = s->recorded.lines + stream->first_line,
                    .ready = at, .space = j->space, .block = slot, .alive = 1, .age = s->jobs.warp_ages++};
        w->end = w->step + stream->steps;
        take_step(w);
        if (s->program.has_skipped) skip(s, w);
        wait_until(s, b->first + k, at, LOST_EMPTY);
        wake(s, b->first + k, at);
    }
}

#define OPENING_CLOCKS 4.0 /* of the load/store unit, for each barrier that opens: measured 3 to 5 */

/* Open a barrier of a block if all warps that it waits for have arrived. None arrives that has ended. */
static void open_barrier(Sm *s, Block *b, u32 number) {
    Barrier *x = &b->barrier[number];
    u32 needed = b->alive + x->ended;
    if (x->warps) LOWER(needed, x->warps);
    if (!x->arrived || x->arrived < needed) return;
    u64 at = s->now + s->m->barrier_latency;
    RAISE(at, x->opens_after + s->m->barrier_latency);
    if (!s->m->free_memory && s->m->wavefront_clocks == 1) { /* measured at a wavefront per clock */
        RAISE(s->lsu.free, (double)s->now);
        s->lsu.free += OPENING_CLOCKS;
        s->r->lsu_busy += OPENING_CLOCKS;
        s->r->shared_busy += OPENING_CLOCKS / 2; /* of its wavefronts, one is of shared memory and one of L1 */
    }
    x->arrived = x->ended = 0;
    b->has_barriers = 1;
    b->decided = 0;
    for (u32 k = 0; k < b->warps; k++) {
        Warp *w = &s->warps[b->first + k];
        w->arrived_at &= ~(1u << number);
        if (w->at_barrier != number + 1) continue;
        w->at_barrier = 0;
        w->ready = at;
        wait_until(s, b->first + k, at, LOST_BARRIER);
        wake(s, b->first + k, at);
    }
}

/* A warp arrives at a barrier of its block, and waits there unless the instruction says otherwise. */
void arrive(Sm *s, u32 warp, const Instruction *i) {
    Warp *w = &s->warps[warp];
    Block *b = &s->blocks[w->block];
    const u32 number = i->argument % BARRIERS;
    Barrier *x = &b->barrier[number];
    if (i->argument & BARRIER_ARRIVES) {
        w->arrived_at |= 1u << number;
    } else {
        w->at_barrier = number + 1;
        wait_until(s, warp, UNKNOWN, LOST_BARRIER);
    }
    x->warps = i->argument >> BARRIER_WARPS_SHIFT & BARRIER_WARPS;
    x->arrived++;
    const u64 port = s->scheduler[warp % SCHEDULERS].port, handed = GREATER(s->now, port); /* behind its requests */
    s->barrier_free = GREATER(s->barrier_free, handed) + s->m->barrier_unit_clocks;
    x->opens_after = GREATER(x->opens_after, handed) + s->m->barrier_per_warp;
    RAISE(x->opens_after, s->barrier_free);
    open_barrier(s, b, number);
}

/* A warp ends, and its block with the last one. */
void leave(Sm *s, u32 warp) {
    Warp *w = &s->warps[warp];
    Block *b = &s->blocks[w->block];
    w->alive = 0;
    wait_until(s, warp, UNKNOWN, LOST_EMPTY);
    b->alive--;
    for (u32 k = 0; k < BARRIERS && b->alive; k++) {
        b->barrier[k].ended += w->arrived_at >> k & 1;
        open_barrier(s, b, k);
    }
    if (b->alive) return;
    s->jobs.ends[b->job] = s->now + 1;
    s->jobs.ended[s->jobs.ended_count++] = w->block;
}
