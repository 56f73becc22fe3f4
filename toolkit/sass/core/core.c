#include "core.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#include "integer.h"
#include "floating.h"
#include "double.h"
#include "half.h"
#include "convert.h"
#include "special.h"
#include "memory.h"
#include "atomics.h"
#include "mbarrier.h"
#include "bulk.h"
#include "warp.h"
#include "check_ops.h"
#include "control.h"
#include "straight.h"
#include "waits.h"

#define DATA_OPS(OP)                                                                           \
    INTEGER_OPS(OP) FLOATING_OPS(OP) DOUBLE_OPS(OP) HALF_OPS(OP) CONVERT_OPS(OP)               \
    SPECIAL_OPS(OP) MEMORY_OPS(OP) ATOMIC_OPS(OP) MBARRIER_OPS(OP) BULK_OPS(OP) WARP_OPS(OP)   \
    CHECK_OPS(OP)

enum {
    OP_NOP,
#define NAME(x) OP_##x,
    DATA_OPS(NAME) FIRST_CONTROL,
    LAST_DATA = FIRST_CONTROL - 1,
    CONTROL_OPS(NAME) OPS_END
#undef NAME
};

OPERATION(NOP) {}

static Handler *const handlers[] = {
    op_NOP,
#define HANDLER(x) op_##x,
    DATA_OPS(HANDLER)
#undef HANDLER
};

static Handler *handler_of(u32 op) { return handlers[op]; }

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
    case OP_BRANCH: {
        const u32 jump = m & predicate(w, i->ps[0]);
        c->count[c->pc].refused += (u32)__builtin_popcount(m & ~jump);
        go(c, w, i->flags & BRANCH_ANY && jump ? g->mask : jump, i->imm);
        return;
    }
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
    case OP_BRANCH_INDIRECT: {
        const u32 jump = m & predicate(w, i->ps[0]);
        c->count[c->pc].refused += (u32)__builtin_popcount(m & ~jump);
        if (jump) go_indirect(c, w, i, 0, jump);
        else g->pc++;
        return;
    }
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
        w->restored &= ~(1u << i->aux);
        FOR_LANES_OF(m) {
                w->b[i->aux][l] = m;
                w->begun[i->aux][l] = w->regions;
            }
        break;
    case OP_BREAK: { /* the lanes of m no longer take part in barrier aux */
        const u32 gone = m & predicate(w, i->ps[0]);
        u32 before[LANES];
        memcpy(before, w->b[i->aux], sizeof before);
        FOR_LANES w->b[i->aux][l] &= ~partners(before, gone, l);
        g->pc++;
        EACH_GROUP(other, w) {
            if (other->state == AT_BSYNC && other->barrier == i->aux)
                other->wait &= ~partners(before, gone, __builtin_ctz(other->mask));
        }
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
        if (c->checker) check_meeting(c, w, masks, m);
        FOR_LANES united |= m >> l & 1 ? masks[l] : 0;
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
    case OP_CLUSTER_ARRIVE:
        if (!m) break;
        arrive_at_cluster(c, w, m);
        return;
    case OP_CLUSTER_WAIT:
        if (!m) break;
        wait_for_cluster(c, w);
        return;
    case OP_TRAP:
        if (!m) break;
        stop(c, TRAP);
        return;
    }
    g->pc++;
}

/* Shorter where blocks run that wait for others: what they do in vain shows in no counter then. */
enum { SLICE = 1 << 14, SHORT_SLICE = 1 << 8 };

/* Run a warp until all its groups wait or have left, or a slice is over. Uniform registers are the
 * warp's: code that writes one and reads it some instructions later must not be interrupted by
 * another group. So a warp with several groups goes on for another slice, in which most of them meet,
 * and then up to a branch backward, as every loop has one in which lanes wait for others. */
static inline __attribute__((always_inline)) void run_warp_as(Worker *c, Warp *w, const int is_checked) {
    const Launch *launch = c->launch;
    const i64 slice = c->running > 1 ? SHORT_SLICE : SLICE;
    i64 left = slice;
    int is_at_loop = 0;
    w->yielded = w->ends_slice = 0;
    if (!w->groups) return;
    if (c->stream) stream_warp(c, w);
    while (w->groups && !c->fault.kind) {
        if (current(w)->state != READY) {
            resume(w);
            if (current(w)->state != READY && !release_innermost(c, w)) break;
        }
        const int may_end = w->groups == 1 || (left < -slice && (is_at_loop || left < -2 * slice));
        if ((left-- <= 0 && may_end) || w->ends_slice) {
            c->budget -= slice - left;
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
        if (!is_checked && g->mask == FULL && c->straight[pc].run > 1 && !g->retries && !g->again) {
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
            is_at_loop = i->op == OP_BRANCH && current(w)->pc <= pc;
            Step *step = c->stream ? last_step(c->stream) : NULL;
            if (step && count->taken != jumps) step->flags |= STEP_TAKEN;
            if (c->fault.kind) blame(c, w, m ? m : g->mask);
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
        if (is_checked && m && c->checker->suspects[w->index]) check_use(c, w, i, m);
        if (m) handlers[i->op](c, w, i, i->uniform ? FULL : m);
        if (count->wavefronts != wavefronts) add_clocks(c->stream, count->wavefronts - wavefronts);
        if (waits) note_passed(c, w, pc, lanes, &before);
    }
    c->budget -= slice - left;
    if (c->budget < 0) stop(c, LIMIT);
}

static void run_warp(Worker *c, Warp *w) {
    if (c->checker) run_warp_as(c, w, 1);
    else run_warp_as(c, w, 0);
}

/* Open each barrier of the block in hand that all its threads have reached. */
static void open_barriers(Worker *c) {
    Block *block = c->block;
    u32 alive = 0;
    for (u32 n = 0; n < CTA_BARRIERS; n++) {
        Barrier *barrier = &block->barrier[n];
        if (!barrier->arrived) continue;
        if (!alive) alive = threads_alive(c, block);
        if (barrier->arrived < (barrier->expected ? barrier->expected : alive)) continue;
        if (c->checker) check_opening(c, n, barrier->expected);
        EACH_WARP(w, block) {
            EACH_GROUP(g, w)
                if (g->state == AT_BARRIER && g->barrier == n) g->state = READY;
            w->barrier_result[n] = (barrier->red_popc & 0xffff) | barrier->red_or << 16 |
                                   barrier->red_and << 17;
        }
        barrier->arrived = 0;
        c->changes++;
    }
}

static void start_warp(Worker *c, u32 index) {
    const Launch *launch = c->launch;
    Warp *w = &c->block->warps[index];
    const u32 threads = launch->block[0] * launch->block[1] * launch->block[2];
    const u32 lanes = threads - index * LANES;
    u32 *v = w->v;
    u8 *local = w->local;
    memset(w, 0, sizeof *w);
    w->v = v;
    w->local = local;
    w->pool = launch->pool;
    w->born = w->alive = lanes >= LANES ? FULL : (1u << lanes) - 1;
    w->index = index;
    w->groups = 1;
    w->group[0] = (Group){.mask = w->born, .pc = 0, .state = READY};
    memset(w->v, 0, (size_t)launch->slots * LANES * sizeof(u32));
    w->p[PT] = w->p[UPT] = FULL;
}

/* From here on, instructions are of this block. */
static void take_up(Worker *c, Block *b) {
    Worker *keeper = b->keeper;
    c->block = b;
    c->count = keeper ? keeper->counts : c->uncounted;
    c->turns = keeper ? keeper->own_turns : NULL;
    c->trace = keeper ? keeper->own_trace : NULL;
    c->stream = keeper ? keeper->own_stream : NULL;
    c->requests = keeper ? keeper->own_requests : NULL;
    c->checker = b->checker;
}

static void start_block(Worker *c, Block *b, u64 index) {
    const Launch *launch = c->launch;
    b->index = index;
    b->ctaid[0] = (u32)(index % launch->grid[0]);
    b->ctaid[1] = (u32)(index / launch->grid[0] % launch->grid[1]);
    b->ctaid[2] = (u32)(index / launch->grid[0] / launch->grid[1]);
    b->lives = 1;
    b->mbarriers = b->cluster_arrived = b->cluster_phase = 0;
    memset(b->barrier, 0, sizeof b->barrier);
    memset(b->shared, 0xff, launch->shared_bytes); /* NaN, so that nobody profits from zeros */
    memset(b->shared_written, 0, ceil_div(launch->shared_bytes, BYTES_OF_FLAGS) * sizeof(u16));
    b->shared_unwritten = launch->shared_bytes - launch->shared_base;
    take_up(c, b);
    b->tag = c->started++;
    if (c->trace && !b->tag) trace_block(c->trace);
    if (c->trace && b->tag >= MOST_TAGS) c->trace->lost = 1;
    if (c->checker) check_block(c);
    for (u32 k = 0; k < c->warp_count; k++) start_warp(c, k);
}

/* Memory for the blocks of a cluster, which are used again and again. */
static int has_memory(Worker *c, Block *b) {
    const Launch *launch = c->launch;
    const size_t registers = (size_t)launch->slots * LANES * sizeof(u32);
    const size_t local = (size_t)LANES * launch->local_bytes;
    if (b->arena) return 1;
    b->arena = malloc(c->warp_count * (registers + local) + 64);
    b->warps = calloc(c->warp_count, sizeof(Warp));
    b->shared = malloc((size_t)launch->shared_bytes + 64);
    b->shared_written = malloc(((size_t)launch->shared_bytes / BYTES_OF_FLAGS + 1) * sizeof(u16));
    if (launch->check) b->checker = new_checker(launch, c->warp_count);
    if (!b->arena || !b->warps || !b->shared || !b->shared_written || (launch->check && !b->checker))
        return 0;
    u8 *aligned = b->arena + (64 - (uintptr_t)b->arena % 64) % 64;
    for (u32 k = 0; k < c->warp_count; k++) {
        b->warps[k].v = (u32 *)(aligned + k * registers);
        b->warps[k].local = aligned + c->warp_count * registers + k * local;
    }
    return 1;
}

/* The linear index of the block of a rank in a cluster. */
static u64 block_index(const Launch *launch, u64 cluster, u32 rank) {
    u64 of_cluster = cluster, index = 0, stride = 1;
    for (int axis = 0; axis < 3; axis++) {
        const u32 extent = launch->cluster[axis], clusters = launch->grid[axis] / extent;
        index += stride * (of_cluster % clusters * extent + rank % extent);
        of_cluster /= clusters;
        rank /= extent;
        stride *= launch->grid[axis];
    }
    return index;
}

static Worker *keeper_of(Worker *c, u64 block, const Kept *kept, u64 kept_count) {
    if (!kept) return c;
    for (u64 k = 0; k < kept_count; k++)
        if (kept[k].block == block) return kept[k].keeper;
    return NULL;
}

/* Start a cluster in a free place. */
static void start_cluster(Worker *c, u64 cluster, const Kept *kept, u64 kept_count) {
    Block *first = c->blocks;
    while (first->lives) first += c->cluster_size;
    if (!c->running) c->started = 0;
    for (u32 rank = 0; rank < c->cluster_size; rank++) {
        Block *b = first + rank;
        if (!has_memory(c, b)) { stop(c, NO_MEMORY); return; }
        b->rank = rank;
        b->cluster = first;
        const u64 index = block_index(c->launch, cluster, rank);
        b->keeper = keeper_of(c, index, kept, kept_count);
        start_block(c, b, index);
    }
    c->running++;
    c->changes++;
}

static int cluster_lives(const Worker *c, Block *first) {
    EACH_BLOCK(b, first)
        EACH_WARP(w, b)
            if (w->groups) return 1;
    return 0;
}

static int warp_is_ready(const Warp *w) {
    EACH_GROUP(g, w)
        if (g->state == READY) return 1;
    return 0;
}

/* Let each warp run for a while that can. Whether one could. */
static int run_round(Worker *c) {
    int ran = 0;
    EACH_CLUSTER(first) {
        EACH_BLOCK(b, first) {
            take_up(c, b);
            EACH_WARP(w, b) {
                const int ready = warp_is_ready(w);
                ran |= ready;
                if (ready || w->groups > 1) run_warp(c, w);
                if (c->fault.kind) break;
            }
            if (!c->fault.kind && c->launch->cancel) stop(c, CANCELLED);
            if (c->fault.kind) return 0;
            open_barriers(c);
            if (c->phases) wake(c);
        }
        if (!cluster_lives(c, first)) {
            make_all_of(c, first);
            EACH_BLOCK(b, first) {
                b->lives = 0;
                if (b->keeper) count_straight(b->keeper, c->launch->length);
            }
            c->running--;
        }
    }
    return ran;
}

/* Where threads wait that are left when nobody can go on: at a barrier of the block rather than
 * for lanes of their own warp, which wait there in turn; or who asks in vain. */
static void note_waiting(Worker *c, u32 state) {
    EACH_CLUSTER(first)
    EACH_BLOCK(of, first) {
        take_up(c, of);
        EACH_WARP(w, of)
            EACH_GROUP(g, w) {
                const u32 at = state == READY || state == AT_MBARRIER ? g->pc : g->pc - 1;
                if (g->state != state) continue;
                if (!c->fault.kind) {
                    c->pc = at;
                    stop(c, DEADLOCK);
                    blame(c, w, g->mask);
                    if (state != AT_MBARRIER) continue;
                    const Mbarrier b = unpacked(read_mbarrier(c, g->mbarrier));
                    c->fault.address = g->mbarrier;
                    c->fault.pending = b.pending;
                    c->fault.bytes = b.bytes;
                    c->fault.phase = b.phase;
                }
            }
    }
}

static void count_waiting(Worker *c) {
    EACH_CLUSTER(first)
    EACH_BLOCK(b, first) {
        if (b->index != c->fault.block) continue;
        EACH_WARP(w, b)
            EACH_GROUP(g, w) {
                const u32 at = g->state == READY || g->state == AT_MBARRIER ? g->pc : g->pc - 1;
                if (at == c->fault.pc) c->fault.waiting += (u32)__builtin_popcount(g->mask);
            }
    }
}

static void note_deadlock(Worker *c) {
    static const u32 order[] = {AT_MBARRIER, AT_CLUSTER, AT_BARRIER, READY, AT_WARPSYNC, AT_BSYNC};
    for (u32 k = 0; k < sizeof order / sizeof *order && !c->fault.kind; k++) note_waiting(c, order[k]);
    c->fault.resident = c->running * c->cluster_size;
    count_waiting(c);
}

static u64 mixed(u64 hash, u64 x) {
    hash = (hash ^ x) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

/* What all threads are at. Where it comes again and nothing has changed in between, it always will. */
static u64 state_of_all(Worker *c) {
    const size_t registers = (size_t)c->launch->slots * LANES;
    u64 hash = c->changes;
    EACH_CLUSTER(first)
    EACH_BLOCK(b, first)
        EACH_WARP(w, b) {
            for (size_t r = 0; w->groups && r < registers; r++) hash = mixed(hash, w->v[r]);
            for (u32 r = 0; w->groups && r < PREDICATES; r++) hash = mixed(hash, w->p[r]);
            EACH_GROUP(g, w) hash = mixed(hash, (u64)g->pc << 32 | g->mask);
            if (w->groups) hash = mixed(hash, (u64)w->current << 32 | w->stuck);
        }
    return hash;
}

/* Whether the threads that run are going round in circles: their state is compared with one that is
 * kept for twice as many rounds each time. */
static int in_vain(Worker *c) {
    Watch *watch = &c->watch;
    if (c->changes != watch->changes) {
        *watch = (Watch){.changes = c->changes, .most = 1};
        return 0;
    }
    const u64 state = state_of_all(c);
    if (watch->rounds && state == watch->state) return 1;
    if (++watch->rounds < watch->most) return 0;
    *watch = (Watch){.changes = c->changes, .state = state, .rounds = 1, .most = 2 * watch->most};
    return 0;
}

/* Whoever waits for a barrier in shared memory is told that its time is over, once for each change. */
static int expire(Worker *c) {
    int any = 0;
    if (c->expired_at == c->changes) return 0;
    EACH_CLUSTER(first)
    EACH_BLOCK(b, first)
        EACH_WARP(w, b)
            EACH_GROUP(g, w)
                if (g->state == AT_MBARRIER) any = g->expired = 1;
    c->expired_at = c->changes;
    if (any) wake(c);
    return any;
}

EXPORT const char *const *core_operation_names(u32 *count) {
    *count = OPS_END;
    return names;
}

EXPORT void core_sizes(u32 *sizes) {
    const u32 all[] = {sizeof(Ins), sizeof(Count), sizeof(Launch), sizeof(Fault), sizeof(Allocation),
                       sizeof(Touch), sizeof(Step), sizeof(Segment), sizeof(Request), sizeof(Finding)};
    memcpy(sizes, all, sizeof all);
}

EXPORT void core_free_worker(Worker *c) {
    for (u32 k = 0; c->blocks && k < c->slots; k++) {
        free(c->blocks[k].arena); free(c->blocks[k].warps); free(c->blocks[k].shared);
        free(c->blocks[k].shared_written);
        free_checker(c->blocks[k].checker);
    }
    free(c->last_allocation); free(c->memo); free(c->blocks); free(c->uncounted); free(c->bulk);
    free(c->own_turns); free(c->straight);
    free_trace(c->own_trace);
    free_stream(c->own_stream);
    free_requests(c->own_requests);
    free_checks(c->checks, c->launch->allocation_count);
    free(c);
}

#ifndef CORE_SOURCES
#define CORE_SOURCES ""
#endif

/* The SHA-256 of the sources that this was built from, by name. */
EXPORT const char *core_sources(void) { return CORE_SOURCES; }

/* A worker for `launch`, NULL where there is not enough memory. One that does not run only keeps what
 * others count for it. */
EXPORT Worker *core_new_worker(const Launch *launch, Count *counts, i64 budget, u32 runs) {
    const u32 warps = ceil_div(launch->block[0] * launch->block[1] * launch->block[2], LANES);
    Worker *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->launch = launch;
    c->count = c->counts = counts;
    c->own_turns = calloc((size_t)launch->length + 1, sizeof *c->own_turns);
    c->budget = budget;
    c->warp_count = warps;
    c->cluster_size = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    if (launch->most_touches) c->own_trace = new_trace(launch->most_touches);
    if (launch->most_steps) c->own_stream = new_stream(launch->most_steps);
    if (launch->most_requests) c->own_requests = new_requests(launch->most_requests, launch->length);
    if (runs) {
        c->slots = launch->most_resident * c->cluster_size;
        c->straight = new_straight(launch, OP_FFMA);
        if (c->straight) mark_waits(c->straight, launch, OP_BRANCH);
        c->last_allocation = calloc(launch->length, sizeof(u32));
        c->memo = calloc(launch->length, SHAPES * sizeof(Memo));
        c->uncounted = calloc(launch->length, sizeof(Count));
        c->blocks = calloc(c->slots, sizeof(Block));
        if (launch->check) c->checks = new_checks(launch);
    }
    if (!c->own_turns || (runs && !c->straight) ||
        (launch->most_touches && !c->own_trace) || (launch->most_steps && !c->own_stream) ||
        (launch->most_requests && !c->own_requests) ||
        (runs && (!c->last_allocation || !c->memo || !c->uncounted || !c->blocks)) ||
        (runs && launch->check && !c->checks)) {
        core_free_worker(c);
        return NULL;
    }
    return c;
}

/* Run clusters first, first + step, ... below last; the kind of the fault that stopped them. Of the
 * blocks of `kept` others keep what they do, and nobody of the rest; NULL: this worker does of all.
 *
 * One cluster runs at a time, unless its blocks can do nothing but wait for others': then twice as
 * many run, and so on. */
EXPORT u32 core_run(Worker *c, u64 first, u64 last, u64 step, const Kept *kept, u64 kept_count) {
    u64 next = first;
    while (!c->fault.kind && (c->running || next < last)) {
        if (c->launch->cancel) stop(c, CANCELLED);
        if (!c->running) {
            start_cluster(c, next, kept, kept_count);
            next += step;
            continue;
        }
        c->asked_again = 0;
        if (run_round(c) && !(c->asked_again && in_vain(c))) continue;
        if (c->fault.kind || !c->running || make_oldest(c)) continue;
        const u32 wanted = 2 * c->running, most = c->launch->most_resident;
        int more = 0;
        for (; next < last && c->running < wanted && c->running < most && !c->fault.kind; next += step) {
            start_cluster(c, next, kept, kept_count);
            more = 1;
        }
        if (!more && !expire(c)) note_deadlock(c);
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
    const Trace *t = c->own_trace;
    *count = t ? t->count : 0;
    *written = t ? t->written : 0;
    return t && !t->lost ? t->touches : NULL;
}

/* What the blocks so far executed, which is the caller's from then on. */
EXPORT Stream *core_take_stream(Worker *c) {
    Stream *s = c->own_stream;
    c->own_stream = NULL;
    return s;
}

EXPORT void core_free_stream(Stream *s) { free_stream(s); }

/* Its steps, NULL where some were lost; their segments, and their lines. */
EXPORT const Step *core_steps(const Stream *s, u64 *count) {
    *count = s->count;
    return s->lost ? NULL : s->steps;
}

EXPORT const Segment *core_segments(const Stream *s, u64 *count) {
    *count = s->segment_count;
    return s->segments;
}

EXPORT const u64 *core_lines(const Stream *s, u64 *count) {
    *count = s->line_count;
    return s->lines;
}

/* The requests of the blocks so far, in the order of their execution; NULL where some were lost. */
EXPORT const Request *core_requests(const Worker *c, u64 *count) {
    *count = c->own_requests ? c->own_requests->count : 0;
    return c->own_requests && !c->own_requests->lost ? c->own_requests->noted : NULL;
}

/* True if this processor and its operating system have the instructions that this build uses. */
#ifdef __AVX2__
#include <cpuid.h>

enum { FMA_OSXSAVE_AVX = 1 << 12 | 1 << 27 | 1 << 28, AVX2 = 1 << 5, SAVED_YMM = 6 };

/* CPUID itself: not every compiler's run-time library has what __builtin_cpu_supports reads. */
EXPORT u32 core_runs_here(void) {
    u32 a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || ~c & FMA_OSXSAVE_AVX) return 0;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & SAVED_YMM) == SAVED_YMM && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & AVX2;
}
#else
EXPORT u32 core_runs_here(void) { return 1; }
#endif

#include "probe.h"
