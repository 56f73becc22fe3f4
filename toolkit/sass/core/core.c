#include "core.h"
#include "integer.h"
#include "floating.h"
#include "double.h"
#include "half.h"
#include "convert.h"
#include "special.h"
#include "memory.h"
#include "atomics.h"
#include "warp.h"
#include "control.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#define DATA_OPS(OP)                                                                           \
    INTEGER_OPS(OP) FLOATING_OPS(OP) DOUBLE_OPS(OP) HALF_OPS(OP) CONVERT_OPS(OP)               \
    SPECIAL_OPS(OP) MEMORY_OPS(OP) ATOMIC_OPS(OP) WARP_OPS(OP)

enum {
    OP_NOP,
#define NAME(x) OP_##x,
    DATA_OPS(NAME) FIRST_CONTROL,
    LAST_DATA = FIRST_CONTROL - 1,
    CONTROL_OPS(NAME) OPS_END
#undef NAME
};

static void op_NOP(Worker *c, Warp *w, const Ins *i, u32 m) { (void)c; (void)w; (void)i; (void)m; }

static Handler *const handlers[] = {
    op_NOP,
#define HANDLER(x) op_##x,
    DATA_OPS(HANDLER)
#undef HANDLER
};

/* The operations in the order of their numbers. */
static const char *const names[] = {
    "NOP",
#define STRING(x) #x,
    DATA_OPS(STRING) CONTROL_OPS(STRING)
#undef STRING
};

static void control(Worker *c, Warp *w, const Ins *i, u32 m) {
    Group *g = current(w);
    const u32 others = g->mask & ~m;
    switch (i->op) {
    case OP_BRANCH: go(c, w, m & predicate(w, i->ps[0]), i->imm); return;
    case OP_BRANCH_IF_SPLIT: { /* all jump unless those of s[0] that live are here, guards true */
        const u32 wanted = lane_value(w, i, 0, g->mask) & w->alive;
        go(c, w, wanted & ~m ? g->mask : 0, i->imm);
        return;
    }
    case OP_BRANCH_IF_WHOLE: {
        const u32 wanted = lane_value(w, i, 0, g->mask) & w->alive;
        go(c, w, wanted & ~m ? 0 : g->mask, i->imm);
        return;
    }
    case OP_BRANCH_INDIRECT:
        if (m) go_indirect(c, w, i, 0, m);
        else g->pc++;
        return;
    case OP_CALL_SYSTEM:
        if (m) call_system(c, w, i, m);
        else g->pc++;
        return;
    case OP_EXIT:
        if (m & predicate(w, i->ps[0])) leave(c, w, m & predicate(w, i->ps[0]));
        else g->pc++;
        return;
    case OP_BSSY:
        w->regions++;
        for (int l = 0; l < LANES; l++)
            if (m >> l & 1) {
                w->b[i->aux][l] = m;
                w->begun[i->aux][l] = w->regions;
            }
        break;
    case OP_BREAK: { /* the lanes of m no longer take part in barrier aux */
        const u32 gone = m & predicate(w, i->ps[0]);
        for (int l = 0; l < LANES; l++)
            if (w->b[i->aux][l] & gone) w->b[i->aux][l] &= ~gone;
        g->pc++;
        for (u32 k = 0; k < w->groups; k++)
            if (w->group[k].state == AT_BSYNC && w->group[k].barrier == i->aux)
                w->group[k].wait &= ~gone;
        join(c, w, AT_BSYNC, 1);
        return;
    }
    case OP_BSYNC: {
        if (!m) break;
        if (others) split(w, others, g->pc + 1);
        /* lanes that came together may take part in different barriers of this number */
        const u32 alike = lanes_like_first(w->b[i->aux], m);
        if (alike != m) split(w, m & ~alike, c->pc);
        g->firm = i->flags & BSYNC_FIRM;
        wait_for(c, w, w->b[i->aux][__builtin_ctz(alike)], AT_BSYNC, i->aux);
        return;
    }
    case OP_WARPSYNC: {
        if (!m) break;
        if (others) split(w, others, g->pc + 1);
        u32 room[LANES], united = 0, wanted = m;
        const u32 *masks = source(w, i, 0, room), alike = lanes_like_first(masks, m);
        for (int l = 0; l < LANES; l++) united |= m >> l & 1 ? masks[l] : 0;
        if (alike == m) wanted = united;
        /* lanes with masks of their own wait apart, unless all whom any of them wants are here */
        else if (i->flags & WARPSYNC_APART || united & w->alive & ~m) {
            split(w, m & ~alike, c->pc);
            last_put_aside(w)->again = 1;
            wanted = masks[__builtin_ctz(alike)];
        }
        wait_for(c, w, wanted, AT_WARPSYNC, 0);
        return;
    }
    case OP_YIELD:
        g->pc++;
        w->yielded |= g->mask;
        rotate(w);
        return;
    case OP_BARRIER:
        if (!m) break;
        if (others) split(w, others, g->pc + 1);
        arrive(c, w, i, m);
        return;
    case OP_TRAP:
        if (!m) break;
        stop(c, TRAP);
        return;
    }
    g->pc++;
}

enum { SLICE = 1 << 14 };

/* Run a warp until all its groups wait or have left, or a slice is over. */
static void run_warp(Worker *c, Warp *w) {
    const Launch *launch = c->launch;
    i64 left = SLICE;
    w->yielded = 0;
    if (c->stream) stream_warp(c, w);
    while (w->groups && !c->fault.kind) {
        if (current(w)->state != READY) {
            resume(w);
            if (current(w)->state != READY && !untangle(c, w)) break;
        }
        if (left-- == 0) {
            c->budget -= SLICE;
            if (launch->cancel) stop(c, CANCELLED);
            if (c->budget < 0) stop(c, LIMIT);
            give_way(c, w);
            rotate(w);
            return;
        }
        Group *g = current(w);
        const u32 pc = g->pc;
        if (pc >= launch->length) {
            stop(c, BAD_TARGET);
            return;
        }
        const Ins *i = &launch->program[pc];
        Count *count = &c->count[pc];
        u32 m = g->mask & predicate(w, i->guard);
        c->pc = pc;
        w->steps++;
        if (g->again) {
            g->again = 0;
            count->reissued++;
            count->reissued_threads += (u32)__builtin_popcount(g->mask);
        } else {
            count->executed++;
            count->threads += (u32)__builtin_popcount(g->mask);
            count->predicated += (u32)__builtin_popcount(m);
        }
        if (c->stream) stream_step(c->stream, pc, m);
        if (i->op >= FIRST_CONTROL) {
            const u64 jumps = count->taken;
            control(c, w, i, m);
            Step *step = c->stream ? last_step(c->stream) : NULL;
            if (step && count->taken != jumps) step->flags |= STEP_TAKEN;
            if (c->fault.kind) blame(c, w, m ? m : g->mask);
            continue;
        }
        g->pc = pc + 1;
        g->fresh = 0;
        const u64 wavefronts = count->wavefronts;
        if (m) handlers[i->op](c, w, i, i->uniform ? FULL : m);
        if (count->wavefronts != wavefronts) add_clocks(c->stream, count->wavefronts - wavefronts);
    }
    c->budget -= SLICE - left;
    if (c->budget < 0) stop(c, LIMIT);
}

/* Open each barrier that all its threads have reached. Whether one was. */
static int open_barriers(Worker *c) {
    u32 alive = 0;
    int opened = 0;
    for (u32 k = 0; k < c->warp_count; k++) alive += (u32)__builtin_popcount(c->warps[k].alive);
    for (u32 n = 0; n < CTA_BARRIERS; n++) {
        Barrier *barrier = &c->barrier[n];
        if (!barrier->arrived) continue;
        if (barrier->arrived < (barrier->expected ? barrier->expected : alive)) continue;
        for (u32 k = 0; k < c->warp_count; k++) {
            Warp *w = &c->warps[k];
            for (u32 j = 0; j < w->groups; j++)
                if (w->group[j].state == AT_BARRIER && w->group[j].barrier == n) w->group[j].state = READY;
            w->barrier_result[n] = (barrier->red_popc & 0xffff) | barrier->red_or << 16 |
                                   barrier->red_and << 17;
        }
        barrier->arrived = 0;
        opened = 1;
    }
    return opened;
}

static int anyone_ready(const Worker *c) {
    for (u32 k = 0; k < c->warp_count; k++)
        for (u32 j = 0; j < c->warps[k].groups; j++)
            if (c->warps[k].group[j].state == READY) return 1;
    return 0;
}

static void start_warp(Worker *c, u32 index) {
    const Launch *launch = c->launch;
    Warp *w = &c->warps[index];
    const u32 threads = launch->block[0] * launch->block[1] * launch->block[2];
    const u32 lanes = threads - index * LANES;
    w->born = w->alive = lanes >= LANES ? FULL : (1u << lanes) - 1;
    w->index = index;
    w->groups = 1;
    w->current = 0;
    w->steps = w->stuck = w->regions = 0;
    w->group[0] = (Group){.mask = w->born, .pc = 0, .state = READY};
    memset(w->v, 0, (size_t)launch->slots * LANES * sizeof(u32));
    memset(w->p, 0, sizeof w->p);
    memset(w->b, 0, sizeof w->b);
    memset(w->begun, 0, sizeof w->begun);
    memset(w->barrier_result, 0, sizeof w->barrier_result);
    w->p[PT] = w->p[UPT] = FULL;
}

static void start_block(Worker *c, u64 block) {
    const Launch *launch = c->launch;
    c->block = block;
    c->ctaid[0] = (u32)(block % launch->grid[0]);
    c->ctaid[1] = (u32)(block / launch->grid[0] % launch->grid[1]);
    c->ctaid[2] = (u32)(block / launch->grid[0] / launch->grid[1]);
    memset(c->barrier, 0, sizeof c->barrier);
    memset(c->shared, 0xff, launch->shared_bytes); /* NaN, so that nobody profits from zeros */
    memset(c->shared_written, 0, launch->shared_bytes);
    c->shared_unwritten = launch->shared_bytes - launch->shared_base;
    if (c->trace) trace_block(c->trace);
    for (u32 k = 0; k < c->warp_count; k++) start_warp(c, k);
}

/* Where threads wait that are left when nobody can go on: at a barrier of the block rather than
 * for lanes of their own warp, which wait there in turn. */
static void note_deadlock(Worker *c) {
    for (u32 state = AT_BARRIER; state > READY; state--)
        for (u32 k = 0; k < c->warp_count; k++)
            for (u32 j = 0; j < c->warps[k].groups; j++) {
                const Group *g = &c->warps[k].group[j];
                if (g->state != state) continue;
                if (!c->fault.kind) {
                    c->pc = g->pc - 1;
                    stop(c, DEADLOCK);
                    blame(c, &c->warps[k], g->mask);
                }
                if (g->pc - 1 == c->fault.pc) c->fault.waiting += (u32)__builtin_popcount(g->mask);
            }
}

/* Run the block in hand until all its warps have left. */
static void run_warps(Worker *c) {
    for (;;) {
        for (u32 k = 0; k < c->warp_count && !c->fault.kind; k++) run_warp(c, &c->warps[k]);
        if (!c->fault.kind && c->launch->cancel) stop(c, CANCELLED);
        if (c->fault.kind) return;
        if (open_barriers(c) || anyone_ready(c)) continue;
        note_deadlock(c);
        return;
    }
}

EXPORT const char *const *core_operation_names(u32 *count) {
    *count = OPS_END;
    return names;
}

EXPORT void core_sizes(u32 *sizes) {
    sizes[0] = sizeof(Ins);
    sizes[1] = sizeof(Count);
    sizes[2] = sizeof(Launch);
    sizes[3] = sizeof(Fault);
    sizes[4] = sizeof(Allocation);
    sizes[5] = sizeof(Touch);
    sizes[6] = sizeof(Step);
    sizes[7] = sizeof(Segment);
    sizes[8] = sizeof(Request);
}

EXPORT void core_free_worker(Worker *c) {
    free(c->last_allocation); free(c->memo); free(c->warps); free(c->shared); free(c->arena);
    free_trace(c->trace);
    free_stream(c->stream);
    free_requests(c->requests);
    free(c);
}

#ifndef CORE_SOURCES
#define CORE_SOURCES ""
#endif

/* The SHA-256 of the sources that this was built from, by name. */
EXPORT const char *core_sources(void) { return CORE_SOURCES; }

/* A worker for `launch`, NULL where there is not enough memory. */
EXPORT Worker *core_new_worker(const Launch *launch, Count *count, i64 budget) {
    const u32 warps = ceil_div(launch->block[0] * launch->block[1] * launch->block[2], LANES);
    const size_t registers = (size_t)launch->slots * LANES * sizeof(u32);
    const size_t local = (size_t)LANES * launch->local_bytes;
    Worker *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->launch = launch;
    c->count = count;
    c->budget = budget;
    c->warp_count = warps;
    c->last_allocation = calloc(launch->length, sizeof(u32));
    c->memo = calloc(launch->length, sizeof(Memo));
    c->warps = calloc(warps, sizeof(Warp));
    c->shared = malloc(2 * (size_t)launch->shared_bytes + 64);
    c->arena = malloc(warps * (registers + local) + 64);
    if (launch->most_touches) c->trace = new_trace(launch->most_touches);
    if (launch->most_steps) c->stream = new_stream(launch->most_steps);
    if (launch->most_requests) c->requests = new_requests(launch->most_requests, launch->length);
    if (!c->last_allocation || !c->memo || !c->warps || !c->shared || !c->arena ||
        (launch->most_touches && !c->trace) || (launch->most_steps && !c->stream) ||
        (launch->most_requests && !c->requests)) {
        core_free_worker(c);
        return NULL;
    }
    c->shared_written = c->shared + launch->shared_bytes;
    u8 *aligned = c->arena + (64 - (uintptr_t)c->arena % 64) % 64;
    for (u32 k = 0; k < warps; k++) {
        c->warps[k].v = (u32 *)(aligned + k * registers);
        c->warps[k].local = aligned + warps * registers + k * local;
        c->warps[k].pool = launch->pool;
    }
    return c;
}

/* Run blocks first, first + step, ... below last; the kind of the fault that stopped them. */
EXPORT u32 core_run(Worker *c, u64 first, u64 last, u64 step) {
    for (u64 block = first; block < last && !c->fault.kind; block += step) {
        if (c->launch->cancel) stop(c, CANCELLED);
        else {
            start_block(c, block);
            run_warps(c);
        }
    }
    return c->fault.kind;
}

EXPORT void core_faults(const Worker *c, Fault *fault, Fault *unwritten, u64 *unwritten_reads) {
    *fault = c->fault;
    *unwritten = c->unwritten;
    *unwritten_reads = c->unwritten_reads;
}

/* What was noted of the blocks so far, and how much; NULL where some of it was lost. `written` are
 * sectors that warps wrote, each for the first time. */
EXPORT const Touch *core_touches(const Worker *c, u64 *count, u64 *written) {
    *count = c->trace ? c->trace->count : 0;
    *written = c->trace ? c->trace->written : 0;
    return c->trace && !c->trace->lost ? c->trace->touches : NULL;
}

/* The steps of the blocks so far, NULL where some were lost; their segments, and their lines. */
EXPORT const Step *core_steps(const Worker *c, u64 *count) {
    *count = c->stream ? c->stream->count : 0;
    return c->stream && !c->stream->lost ? c->stream->steps : NULL;
}

EXPORT const Segment *core_segments(const Worker *c, u64 *count) {
    *count = c->stream ? c->stream->segment_count : 0;
    return c->stream ? c->stream->segments : NULL;
}

EXPORT const u64 *core_lines(const Worker *c, u64 *count) {
    *count = c->stream ? c->stream->line_count : 0;
    return c->stream ? c->stream->lines : NULL;
}

/* The requests of the blocks so far, in the order of their execution; NULL where some were lost. */
EXPORT const Request *core_requests(const Worker *c, u64 *count) {
    *count = c->requests ? c->requests->count : 0;
    return c->requests && !c->requests->lost ? c->requests->noted : NULL;
}

/* Whether this build's instructions exist on this processor. */
EXPORT u32 core_runs_here(void) {
#ifdef __AVX2__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 1;
#endif
}

#include "probe.h"
