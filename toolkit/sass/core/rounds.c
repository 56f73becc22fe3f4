#include "rounds.h"

#include "blocks.h"
#include "bulk_ops.h"
#include "control.h"
#include "gmma.h"
#include "mbarrier.h"
#include "pace.h"
#include "run.h"
#include "straight.h"

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

static void note_work(const Worker *c, const Block *b) {
    BlockWork *work = &c->launch->work[b->index];
    *work = (BlockWork){0};
    EACH_WARP(w, b) {
        work->executed += w->steps;
        if (w->steps > work->longest) work->longest = w->steps;
    }
}

/* Note when the warps of a block can issue again, none of which can in this quantum. Not if others may change what they
 * wait for: blocks of its cluster, copies, and barriers in shared memory. */
static void pause_block(Worker *c, const Block *b) {
    Pause found = {.until = ~0ull};
    int ready = 0;
    if (c->cluster_size > 1 || c->bulk_count || b->mbarriers) return;
    EACH_WARP(w, b) {
        const int is_ready = warp_is_ready(w);
        if (!is_ready && w->groups <= 1) continue;
        ready |= is_ready;
        if (w->time < found.until) found.until = w->time;
        if (w->issued > found.issued) found.issued = w->issued;
    }
    if (ready) c->pauses[b - c->blocks] = found;
}

/* Let each warp run for a while that can. Whether one could. */
int run_round(Worker *c) {
    const int in_time = c->launch->paces != NULL;
    int ran = 0;
    for (Block *first = c->blocks; first < c->blocks + c->slots; first += c->cluster_size) {
        if (in_time && is_paused(c, first)) {
            ran = 1;
            continue;
        }
        if (!first->lives) continue;
        EACH_BLOCK(b, first) {
            int issued = 0;
            take_up(c, b);
            EACH_WARP(w, b) {
                const int ready = warp_is_ready(w), may_run = ready || w->groups > 1;
                ran |= ready;
                if (may_run && (!in_time || is_due(c, w))) {
                    run_warp(c, w);
                    issued = 1;
                }
                if (c->fault.kind) break;
            }
            if (!c->fault.kind && c->launch->cancel) stop(c, CANCELLED);
            if (c->fault.kind) return 0;
            open_barriers(c);
            if (c->phases) wake(c);
            if (in_time && !issued) pause_block(c, b);
        }
        if (!cluster_lives(c, first)) {
            make_all_of(c, first);
            EACH_BLOCK(b, first) {
                check_products(c, b);
                b->lives = 0;
                if (!b->keeper) continue;
                count_straight(b->keeper, c->launch->length);
                if (c->launch->work) note_work(c, b);
                c->finished++;
            }
            c->running--;
        }
    }
    return in_time ? (ran || c->bulk_count) && pass_time(c) : ran;
}

/* The instruction at which a group waits. */
static u32 place_of(const Group *g) {
    return g->state == READY || g->state == AT_MBARRIER ? g->pc : g->pc - 1;
}

/* Note where threads wait if none can go on: at a barrier of the block rather than for lanes of their
 * own warp, which wait at that barrier in turn; or threads that poll in vain. */
static void note_waiting(Worker *c, u32 state) {
    EACH_GROUP_OF_ALL(g) {
        if (g->state != state || c->fault.kind) continue;
        take_up(c, b);
        c->pc = place_of(g);
        stop(c, DEADLOCK);
        blame(c, w, g->mask);
        if (state == AT_MBARRIER) blame_mbarrier(c, g->mbarrier, unpacked(read_mbarrier(c, g->mbarrier)));
    }
}

static void count_waiting(Worker *c) {
    EACH_GROUP_OF_ALL(g)
        if (b->index == c->fault.block && place_of(g) == c->fault.pc)
            c->fault.waiting += popcount(g->mask);
}

void note_deadlock(Worker *c) {
    static const u32 order[] = {AT_MBARRIER, AT_CLUSTER, AT_BARRIER, READY, AT_WARPSYNC, AT_BSYNC};
    for (u32 k = 0; k < sizeof order / sizeof *order && !c->fault.kind; k++) note_waiting(c, order[k]);
    c->fault.resident = c->running * c->cluster_size;
    count_waiting(c);
}

static u64 mixed(u64 hash, u64 x) {
    hash = (hash ^ x) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

/* Hash of where all threads are. */
static u64 places_of_all(Worker *c) {
    u64 hash = c->changes;
    EACH_CLUSTER(first)
    EACH_BLOCK(b, first)
        EACH_WARP(w, b) {
            EACH_GROUP(g, w) hash = mixed(hash, (u64)g->pc << 32 | g->mask);
            if (w->groups) hash = mixed(hash, (u64)w->current << 32 | w->stuck);
        }
    return hash;
}

/* Hash of the registers of all threads. */
static u64 registers_of_all(Worker *c) {
    const size_t registers = (size_t)c->launch->slots * LANES;
    u64 hash = 0;
    EACH_CLUSTER(first)
    EACH_BLOCK(b, first)
        EACH_WARP(w, b) {
            for (size_t r = 0; w->groups && r < registers; r++) hash = mixed(hash, w->v[r]);
            for (u32 r = 0; w->groups && r < PREDICATES; r++) hash = mixed(hash, w->p[r]);
        }
    return hash;
}

/* True if the running threads loop forever: if their state recurs without a change of memory in between, it always
 * will. It is compared with one that is kept for twice as many rounds each time. Registers, of which there are many,
 * are only looked at where the threads are at the same places, and not while a copy is left: it may be made at any time. */
int in_vain(Worker *c) {
    Watch *watch = &c->watch;
    if (c->changes != watch->changes) {
        *watch = (Watch){.changes = c->changes, .most = 1};
        return 0;
    }
    const u64 places = places_of_all(c);
    const int may_recur = watch->rounds && places == watch->places, is_kept = watch->rounds + 1 >= watch->most;
    const u64 registers = !c->bulk_count && (may_recur || is_kept) ? registers_of_all(c) : 0;
    if (may_recur && registers == watch->registers) return 1;
    if (++watch->rounds < watch->most) return 0;
    *watch = (Watch){.changes = c->changes, .places = places, .registers = registers, .rounds = 1,
                     .most = 2 * watch->most};
    return 0;
}

/* A warp that waits for a barrier in shared memory is woken at its time limit, once for each change. */
int expire(Worker *c) {
    int any = 0;
    if (c->expired_at == c->changes) return 0;
    EACH_GROUP_OF_ALL(g)
        if (g->state == AT_MBARRIER) any = g->expired = 1;
    c->expired_at = c->changes;
    if (any) wake(c);
    return any;
}
