/* Control flow: groups of lanes that run together, and where they wait for each other.
 *
 * A warp is up to 32 groups, each with its own place in the program. A branch that its lanes do
 * not all take splits a group: the smaller part goes on, the other is put aside, and what was put
 * aside last goes on first. BSYNC and WARPSYNC join groups again, as the compiler laid out with
 * BSSY. The order was found on an H200 (docs/validation.md); counts depend on it.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include "check_blocks.h"
#include "core.h"
#include "integer.h"

static Group *current(Warp *w) { return &w->group[w->current]; }

/* Source k as the first lane of m sees it. */
static u32 lane_value(const Warp *w, const Ins *i, int k, u32 m) {
    return modified(vector(w, i->s[k])[__builtin_ctz(m)], i->mod[k]);
}

static void remove_group(Warp *w, u32 index) {
    w->group[index] = w->group[--w->groups]; /* the last one moves here */
    if (w->current == w->groups) w->current = index < w->groups ? index : 0;
}

/* Of the groups that were put aside before the last one, those at one address become one: what
 * hardware was found to do, as if it kept the last split and found the others by their address. */
static void gather(Warp *w) {
    for (u32 a = 0; a < w->groups; a++)
        for (u32 b = w->groups; b-- > a + 1;) {
            Group *x = &w->group[a];
            const Group *y = &w->group[b];
            if (a == w->current || b == w->current || x->state != READY || y->state != READY ||
                x->pc != y->pc || x->order == w->pushes || y->order == w->pushes)
                continue;
            x->mask |= y->mask;
            if (y->order > x->order) x->order = y->order;
            remove_group(w, b);
        }
}

/* Put the lanes of m of the current group aside; they go on at `pc`, later. */
static void split(Warp *w, u32 m, u32 pc) {
    current(w)->mask &= ~m;
    w->group[w->groups++] = (Group){.mask = m, .pc = pc, .state = READY, .order = ++w->pushes,
                                       .fresh = 1};
    gather(w);
}

static Group *last_put_aside(Warp *w) {
    u32 k = 0;
    while (w->group[k].order != w->pushes) k++;
    return &w->group[k];
}

/* Go on with the group that was put aside last. */
static void resume(Warp *w) {
    u32 last = w->current, found = 0;
    for (u32 k = 0; k < w->groups; k++) {
        if (w->group[k].state != READY) continue;
        if (!found || w->group[k].order > w->group[last].order) last = k;
        found = 1;
    }
    if (found) w->current = last;
}

/* Join the groups that wait for the same lanes, once all of those that live have come. */
static int waits_with(const Group *g, const Group *other) {
    return g->state == other->state && g->wait == other->wait && g->barrier == other->barrier;
}

static void count_again(Worker *c, const Group *g) {
    c->count[g->pc - 1].reissued++;
    c->count[g->pc - 1].reissued_threads += (u32)__builtin_popcount(g->mask);
}

/* `left` says that lanes which left the barrier, or the kernel, open it: who waits then executes
 * its BSYNC once more, as hardware counts it. So do all who join a group that was woken. Whether
 * they did. */
static int join(Worker *c, Warp *w, u32 state, int left) {
    int counted = 0;
    for (u32 first = 0; first < w->groups; first++) {
        if (w->group[first].state != state) continue;
        const Group leader = w->group[first];
        const u32 wanted = leader.wait & w->alive;
        u32 come = 0, woken = 0;
        EACH_GROUP(g, w)
            if (waits_with(g, &leader)) {
                come |= g->mask;
                woken |= g->woken;
            }
        if ((come & wanted) != wanted) continue;
        if (c->checker && state == AT_WARPSYNC) check_parting(c, w, come & wanted, leader.pc - 1);
        w->group[first].state = READY;
        w->group[first].woken = 0;
        for (u32 k = w->groups; k-- > first + 1;) {
            Group *g = &w->group[k];
            if (!waits_with(g, &leader)) continue;
            g->state = READY;
            g->woken = 0;
            if (g->pc == leader.pc) {
                w->group[first].mask |= g->mask;
                remove_group(w, k);
            }
        }
        w->current = first;
        if (woken || (left && state == AT_BSYNC)) {
            count_again(c, current(w));
            counted = 1;
        }
    }
    return counted;
}

enum { BSYNC_FIRM = 1 };
enum { WARPSYNC_APART = 1 };

/* The lanes of m whose barrier, b of each lane, has lane k in it. The barriers of a function and of
 * its caller have the same numbers: the lanes of the one must not change the other. */
static u32 partners(const u32 *b, u32 m, int k) {
    u32 found = 0;
    FOR_LANES found |= m & b[l] >> k << l & 1u << l;
    return found;
}

/* Those who wait as `leader` does go on without the lanes that are missing, which will not wait
 * there. Others who wait were woken too, in vain. */
static void let_go(Worker *c, Warp *w, const Group *leader, u32 come, u32 missing) {
    FOR_LANES
        if (missing >> l & 1 && w->b[leader->barrier][l] & come) w->b[leader->barrier][l] = 0;
    EACH_GROUP(g, w) {
        if (waits_with(g, leader)) g->wait = come;
        else g->woken = g->state == AT_BSYNC || g->state == AT_WARPSYNC;
    }
    join(c, w, AT_BSYNC, 0);
}

static u32 lanes_that_wait_with(const Warp *w, const Group *leader) {
    u32 come = 0;
    EACH_GROUP(g, w)
        if (waits_with(g, leader)) come |= g->mask;
    return come;
}

/* Let lanes go that wait at a BSYNC for lanes that do nothing but spin and YIELD: compilers lay out
 * spin locks such that the owner waits for those that want the lock (sm_100 and later), and say with
 * .RECONVERGENT where lanes must come together. Some slices pass first, in which another warp may
 * end the spinning. */
enum { PATIENCE = 2 };

static void give_way(Worker *c, Warp *w) {
    for (u32 first = 0; first < w->groups; first++) {
        const Group leader = w->group[first];
        if (leader.state != AT_BSYNC || leader.firm) continue;
        const u32 come = lanes_that_wait_with(w, &leader);
        const u32 missing = leader.wait & w->alive & ~come;
        if (!missing || missing & ~w->yielded) continue;
        if (++w->stuck <= PATIENCE) return;
        w->stuck = 0;
        let_go(c, w, &leader, come, missing);
        return;
    }
    w->stuck = 0;
}

static u32 begun(const Warp *w, const Group *g) {
    return w->begun[g->barrier][__builtin_ctz(g->mask)];
}

/* Whether g waits at a BSYNC for lanes that wait at one of an inner region, for others than those of
 * g. The numbers of regions do not say so after a call: a barrier that a function restores keeps the
 * number of the function's last region. */
static int is_outer(const Warp *w, const Group *g) {
    EACH_GROUP(h, w) {
        if (h->state == AT_BSYNC && g->wait & h->mask && !(h->wait & g->mask)) return 1;
    }
    return 0;
}

/* Where no lane of the warp can go on, those who wait at the BSYNC of the innermost region go on
 * without the others: hardware keeps nobody at a BSYNC for lanes that wait elsewhere, and compilers
 * for sm_100 and later leave the BREAK out where lanes leave a region. A lane whose TRYWAIT has not
 * returned can go on: the instruction ends by itself. Returns 1 if lanes were released. */
static int release_innermost(Worker *c, Warp *w) {
    const Group *inner = NULL;
    int outer = 1;
    EACH_GROUP(g, w) {
        if (g->state == AT_MBARRIER) return 0;
        if (g->state != AT_BSYNC) continue;
        const int beyond = is_outer(w, g);
        if (inner && (beyond > outer || (beyond == outer && begun(w, g) <= begun(w, inner)))) continue;
        inner = g;
        outer = beyond;
    }
    if (!inner) return 0;
    const Group leader = *inner;
    const u32 come = lanes_that_wait_with(w, &leader);
    let_go(c, w, &leader, come, leader.wait & w->alive & ~come);
    return 1;
}

/* The current group waits until the lanes of `lanes` that live wait likewise. */
static void wait_for(Worker *c, Warp *w, u32 lanes, u32 state, u32 barrier) {
    Group *g = current(w);
    const u32 mine = g->mask, spilled = g->fresh && g->order != w->pushes;
    g->state = state;
    g->wait = lanes;
    g->barrier = barrier;
    g->pc++;
    if (join(c, w, state, 0)) return;
    g = current(w);
    if (state != AT_BSYNC || g->state != READY || (g->mask & mine) != mine) return;
    /* a group that was put aside at the barrier and comes last is counted with all that it joins;
     * else all execute a BSYNC again whose barrier was kept in a register during a call */
    if (spilled) c->count[c->pc].reissued_threads += (u32)__builtin_popcount(g->mask & ~mine);
    else if (w->restored >> barrier & 1) count_again(c, g);
}

/* Lanes of m jump. Where not all of the group do, the fewer go on first; if as many stay, those. */
static void go(Worker *c, Warp *w, u32 m, i64 target) {
    Group *g = current(w);
    if (target < 0 || target >= (i64)c->launch->length) {
        stop(c, BAD_TARGET);
        return;
    }
    const u32 stay = g->mask & ~m;
    c->count[c->pc].taken += (u32)__builtin_popcount(m);
    if (!m) g->pc++;
    else if (!stay) g->pc = (u32)target;
    else {
        c->count[c->pc].divergent++;
        const u32 next = g->pc + 1;
        if (__builtin_popcount(m) < __builtin_popcount(stay)) {
            g->pc = (u32)target;
            split(w, stay, next);
        } else {
            g->pc = next;
            split(w, m, (u32)target);
        }
    }
}

static u32 lanes_like_first(const u32 *x, u32 m) {
    const u32 first = x[__builtin_ctz(m)];
    u32 alike;
    LANE_BITS(alike, x[l] == first);
    return alike & m;
}

/* Lanes go where their own register, source k, says: those that agree with the first of them, or,
 * where these are the most, those that agree with the first of the rest. The others execute the
 * jump again, as hardware counts it. */
static void go_indirect(Worker *c, Warp *w, const Ins *i, int k, u32 m) {
    const u32 *low = vector(w, i->s[k]);
    const u32 stay = current(w)->mask & ~m;
    u32 same = lanes_like_first(low, m);
    const u32 rest = m & ~same;
    if (rest && __builtin_popcount(same) > __builtin_popcount(rest))
        same = lanes_like_first(low, rest);
    const u32 value = low[__builtin_ctz(same)];
    const i64 target = ((i64)(i32)value + i->imm) / 16;
    c->count[c->pc].taken += (u32)__builtin_popcount(same);
    if (target < 0 || target >= (i64)c->launch->length || value % 16) {
        stop(c, BAD_TARGET);
        return;
    }
    if (stay | (m & ~same)) c->count[c->pc].divergent++;
    if (stay) split(w, stay, c->pc + 1);
    if (m & ~same) {
        split(w, m & ~same, c->pc);
        last_put_aside(w)->again = 1;
    }
    current(w)->pc = (u32)target;
}

/* Functions of the system, by the numbers that stand for their addresses. */
enum { SYSTEM_ASSERTFAIL = 1, SYSTEM_VPRINTF };

/* s[0] the function, s[1] where it returns to. What is printed is lost. */
static void call_system(Worker *c, Warp *w, const Ins *i, u32 m) {
    const u32 *function = vector(w, i->s[0]);
    u32 asserts, prints;
    LANE_BITS(asserts, function[l] == SYSTEM_ASSERTFAIL);
    LANE_BITS(prints, function[l] == SYSTEM_VPRINTF);
    if (m & asserts) stop(c, TRAP);
    else if (m & ~prints) stop(c, UNIMPLEMENTED);
    else go_indirect(c, w, i, 1, m);
}

/* BAR: lanes arrive at a barrier of the block. s[0] its number, s[1] how many threads it waits
 * for (0: all that live); BARRIER_PACKED: s[0] is both, the threads from bit 16 on. */
enum { BARRIER_ARRIVE = 1, BARRIER_REDUCE = 2, BARRIER_PACKED = 4 };

static void arrive(Worker *c, Warp *w, const Ins *i, u32 m) {
    Group *g = current(w);
    const u32 number = lane_value(w, i, 0, m) % CTA_BARRIERS;
    Barrier *barrier = &c->block->barrier[number];
    const u32 votes = predicate(w, i->ps[0]) & m;
    /* lanes that were never born fill up the block's last warp */
    const u32 unborn = m == w->alive ? LANES - (u32)__builtin_popcount(w->born) : 0;
    const u32 count = i->flags & BARRIER_PACKED ? lane_value(w, i, 0, m) >> 16 & 0xfff
                                                : lane_value(w, i, 1, m);
    if (!barrier->arrived) {
        barrier->red_and = 1;
        barrier->red_or = barrier->red_popc = 0;
    }
    barrier->expected = count;
    if (c->checker) check_arrival(c, w, m, number, count);
    barrier->arrived += (u32)__builtin_popcount(m) + (count ? unborn : 0);
    if (i->flags & BARRIER_REDUCE) {
        w->reduced = number;
        barrier->red_and &= votes == m;
        barrier->red_or |= votes != 0;
        barrier->red_popc += (u32)__builtin_popcount(votes);
    }
    g->pc++;
    if (!(i->flags & BARRIER_ARRIVE)) {
        g->state = AT_BARRIER;
        g->barrier = number;
    }
}

static u32 threads_alive(const Worker *c, const Block *b) {
    u32 alive = 0;
    EACH_WARP(w, b) alive += (u32)__builtin_popcount(w->alive);
    return alive;
}

/* Open the barrier of a cluster once all its threads that live have come. */
static void open_cluster(Worker *c, Block *first) {
    u32 alive = 0;
    EACH_BLOCK(b, first) alive += threads_alive(c, b);
    if (!first->cluster_arrived || first->cluster_arrived < alive) return;
    first->cluster_arrived = 0;
    first->cluster_phase++;
    c->changes++;
    check_cluster(c, first);
    EACH_BLOCK(b, first)
        EACH_WARP(w, b)
            EACH_GROUP(g, w)
                if (g->state == AT_CLUSTER) g->state = READY;
}

static void arrive_at_cluster(Worker *c, Warp *w, u32 m) {
    Block *first = c->block->cluster;
    w->cluster_phase = first->cluster_phase;
    first->cluster_arrived += (u32)__builtin_popcount(m);
    current(w)->pc++;
    open_cluster(c, first);
}

static void wait_for_cluster(Worker *c, Warp *w) {
    Group *g = current(w);
    g->pc++;
    if (c->block->cluster->cluster_phase == w->cluster_phase) g->state = AT_CLUSTER;
}

static void leave(Worker *c, Warp *w, u32 m) {
    Group *g = current(w);
    FOR_LANES_OF(m) w->left[l] = g->pc;
    w->alive &= ~m;
    g->mask &= ~m;
    if (g->mask) g->pc++;
    else {
        remove_group(w, w->current);
        resume(w);
    }
    c->changes++;
    join(c, w, AT_BSYNC, 1);
    join(c, w, AT_WARPSYNC, 1);
    open_cluster(c, c->block->cluster);
}

enum { BRANCH_ANY = 1, BRANCH_WAITS = 2 }; /* all jump if one does; ends a loop that only waits */

/* Operations that decide where lanes go on; every other one goes on with the next instruction. */
#define CONTROL_OPS(OP)                                                                    \
    OP(BRANCH) OP(BRANCH_INDIRECT) OP(CALL_SYSTEM) OP(BRANCH_IF_SPLIT) OP(BRANCH_IF_WHOLE) \
    OP(EXIT) OP(BSSY) OP(BSYNC) OP(BREAK) OP(WARPSYNC) OP(YIELD) OP(BARRIER) OP(TRAP)      \
    OP(CLUSTER_ARRIVE) OP(CLUSTER_WAIT)

/* What YIELD and a long run do: let another group of the warp go on. */
static void rotate(Warp *w) {
    for (u32 k = 1; k <= w->groups; k++) {
        const u32 next = (w->current + k) % w->groups;
        if (w->group[next].state == READY) {
            w->current = next;
            return;
        }
    }
}

#endif
