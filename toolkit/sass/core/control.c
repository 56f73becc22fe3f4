#include "control.h"

#include <string.h>

#include "check_cluster.h"
#include "check_threads.h"
#include "groups.h"
#include "lanes.h"
#include "operations.h"
#include "system.h"

/* Source k as the first lane of m sees it. */
static u32 lane_value(const Warp *w, const Ins *i, int k, u32 m) {
    return modified(RAW(k)[__builtin_ctz(m)], i->mod[k]);
}

/* The lanes of m whose barrier, b of each lane, has lane k in it. The barriers of a function and of
 * its caller have the same numbers: the lanes of the one must not change the other. */
static u32 partners(const u32 *b, u32 m, int k) {
    u32 found = 0;
    FOR_LANES found |= m & b[l] >> k << l & 1u << l;
    return found;
}

/* Lanes of m jump. Where not all of the group do, the fewer go on first; if as many stay, those. */
static void go(Worker *c, Warp *w, u32 m, i64 target) {
    Group *g = current(w);
    if (target < 0 || target >= (i64)c->launch->length) {
        stop(c, BAD_TARGET);
        return;
    }
    const u32 stay = g->mask & ~m;
    c->count[c->pc].taken += popcount(m);
    if (!m) g->pc++;
    else if (!stay) g->pc = (u32)target;
    else {
        c->count[c->pc].divergent++;
        const u32 next = g->pc + 1;
        if (popcount(m) < popcount(stay)) {
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
    const u32 alike = LANE_BITS(x[l] == first);
    return alike & m;
}

/* Lanes go where their own register, source k, says: those that agree with the first of them, or,
 * where these are the most, those that agree with the first of the rest. The others execute the
 * jump again, as hardware counts it. */
static void go_indirect(Worker *c, Warp *w, const Ins *i, int k, u32 m) {
    const u32 *low = RAW(k);
    const u32 stay = current(w)->mask & ~m;
    u32 same = lanes_like_first(low, m);
    const u32 rest = m & ~same;
    if (rest && popcount(same) > popcount(rest))
        same = lanes_like_first(low, rest);
    const u32 value = low[__builtin_ctz(same)];
    const i64 target = ((i64)(i32)value + i->imm) / 16;
    c->count[c->pc].taken += popcount(same);
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

/* Lanes that fill up a warp which has come whole to a barrier of so many threads: those that were never
 * born, and those that left the kernel. */
static u32 lanes_missing(const Warp *w, u32 come) { return come && come == w->alive ? LANES - popcount(come) : 0; }

static void arrive(Worker *c, Warp *w, const Ins *i, u32 m) {
    Group *g = current(w);
    const u32 number = lane_value(w, i, 0, m) % CTA_BARRIERS;
    Barrier *barrier = &c->block->barrier[number];
    const u32 votes = READ_PREDICATE(0) & m;
    const u32 count = i->flags & BARRIER_PACKED ? lane_value(w, i, 0, m) >> 16 & 0xfff
                                                : lane_value(w, i, 1, m);
    if (!barrier->arrived) {
        barrier->red_and = 1;
        barrier->red_or = barrier->red_popc = 0;
    }
    barrier->expected = count;
    if (c->checker) check_arrival(c, w, m, number, count);
    barrier->arrived += popcount(m);
    if (count && i->flags & BARRIER_ARRIVE) barrier->arrived += lanes_missing(w, m);
    if (i->flags & BARRIER_REDUCE) {
        w->reduced = number;
        barrier->red_and &= votes == m;
        barrier->red_or |= votes != 0;
        barrier->red_popc += popcount(votes);
    }
    g->pc++;
    if (!(i->flags & BARRIER_ARRIVE)) {
        g->state = AT_BARRIER;
        g->barrier = number;
    }
}

static u32 threads_alive(const Worker *c, const Block *b) {
    u32 alive = 0;
    EACH_WARP(w, b) alive += popcount(w->alive);
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
    check_cluster_arrival(c, w, w->cluster_phase + 1);
    first->cluster_arrived += popcount(m);
    current(w)->pc++;
    open_cluster(c, first);
}

static void wait_for_cluster(Worker *c, Warp *w) {
    Group *g = current(w);
    g->pc++;
    check_cluster_wait(c, w, w->cluster_phase + 1);
    if (c->block->cluster->cluster_phase == w->cluster_phase) g->state = AT_CLUSTER;
}

static void leave(Worker *c, Warp *w, u32 m) {
    Group *g = current(w);
    FOR_LANES_OF(m) w->left[l] = g->pc;
    w->alive &= ~m;
    check_leaving(c, w, m);
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

void control(Worker *c, Warp *w, const Ins *i, u32 m) {
    Group *g = current(w);
    const u32 others = g->mask & ~m;
    if (!m && i->op >= OP_CALL_SYSTEM) {
        g->pc++;
        return;
    }
    switch (i->op) {
    case OP_BRANCH:
    case OP_BRANCH_INDIRECT: {
        const u32 jump = m & READ_PREDICATE(0);
        c->count[c->pc].refused += popcount(m & ~jump);
        if (i->op == OP_BRANCH) go(c, w, i->flags & BRANCH_ANY && jump ? g->mask : jump, i->imm);
        else if (jump) go_indirect(c, w, i, 0, jump);
        else g->pc++;
        return;
    }
    case OP_BRANCH_IF_SPLIT: /* all jump unless those of s[0] that live are here, guards true */
    case OP_BRANCH_IF_WHOLE: {
        const u32 is_split = (lane_value(w, i, 0, g->mask) & w->alive & ~m) != 0;
        go(c, w, is_split == (i->op == OP_BRANCH_IF_SPLIT) ? g->mask : 0, i->imm);
        return;
    }
    case OP_CALL_SYSTEM:
        if (call_system(c, w, i, m)) go_indirect(c, w, i, 1, m);
        return;
    case OP_EXIT:
        if (m & READ_PREDICATE(0)) leave(c, w, m & READ_PREDICATE(0));
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
        const u32 gone = m & READ_PREDICATE(0);
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
        if (others) split(w, others, g->pc + 1);
        /* lanes that came together may take part in different barriers of this number */
        const u32 alike = lanes_like_first(w->b[i->aux], m);
        if (alike != m) split(w, m & ~alike, c->pc);
        g->firm = i->flags & BSYNC_FIRM;
        wait_for(c, w, w->b[i->aux][__builtin_ctz(alike)], AT_BSYNC, i->aux);
        return;
    }
    case OP_WARPSYNC: {
        if (others) split(w, others, g->pc + 1);
        u32 room[LANES], united = 0, wanted = m;
        const u32 *masks = source(w, i, 0, room), alike = lanes_like_first(masks, m);
        if (c->checker) check_meeting(c, w, masks, m);
        FOR_LANES united |= m >> l & 1 ? masks[l] : 0;
        if (alike == m) wanted = united;
        /* lanes with masks of their own wait apart, unless all lanes that any of them names are here */
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
        if (others) split(w, others, g->pc + 1);
        arrive(c, w, i, m);
        return;
    case OP_CLUSTER_ARRIVE:
        arrive_at_cluster(c, w, m);
        return;
    case OP_CLUSTER_WAIT:
        wait_for_cluster(c, w);
        return;
    case OP_TRAP:
        stop(c, TRAP);
        return;
    }
    g->pc++;
}

static u32 arrived_at(const Worker *c, const Block *block, u32 number) {
    const Barrier *barrier = &block->barrier[number];
    u32 arrived = barrier->arrived;
    EACH_WARP(w, block)
        if (barrier->expected) arrived += lanes_missing(w, lanes_at_barrier(w, number));
    return arrived;
}

/* Open each barrier of the block in hand that all its threads have reached. */
void open_barriers(Worker *c) {
    Block *block = c->block;
    u32 alive = 0;
    for (u32 n = 0; n < CTA_BARRIERS; n++) {
        Barrier *barrier = &block->barrier[n];
        if (!barrier->arrived) continue;
        if (!alive) alive = threads_alive(c, block);
        if (arrived_at(c, block, n) < (barrier->expected ? barrier->expected : alive)) continue;
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
