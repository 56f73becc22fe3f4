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

/* Open the barrier of a block if all of its warps wait there. */
static void open_barrier(Sm *s, Block *b) {
    if (!b->waiting || b->waiting < b->alive) return;
    u64 at = s->now + s->m->barrier_latency;
    RAISE(at, b->opens_after + s->m->barrier_latency);
    b->waiting = 0;
    b->has_barriers = 1;
    b->decided = 0;
    for (u32 k = 0; k < b->warps; k++) {
        Warp *w = &s->warps[b->first + k];
        if (!w->at_barrier) continue;
        w->at_barrier = 0;
        w->ready = at;
        wait_until(s, b->first + k, at, LOST_BARRIER);
        wake(s, b->first + k, at);
    }
}

/* A warp arrives at the barrier of its block. */
void arrive(Sm *s, u32 warp) {
    Warp *w = &s->warps[warp];
    Block *b = &s->blocks[w->block];
    w->at_barrier = 1;
    wait_until(s, warp, UNKNOWN, LOST_BARRIER);
    b->waiting++;
    s->barrier_free = GREATER(s->barrier_free, s->now) + s->m->barrier_unit_clocks;
    b->opens_after = GREATER(b->opens_after, s->now) + s->m->barrier_per_warp;
    RAISE(b->opens_after, s->barrier_free);
    open_barrier(s, b);
}

/* A warp ends, and its block with the last one. */
void leave(Sm *s, u32 warp) {
    Warp *w = &s->warps[warp];
    Block *b = &s->blocks[w->block];
    w->alive = 0;
    wait_until(s, warp, UNKNOWN, LOST_EMPTY);
    b->alive--;
    if (b->alive) { open_barrier(s, b); return; }
    s->jobs.ends[b->job] = s->now + 1;
    s->jobs.ended[s->jobs.ended_count++] = w->block;
}
