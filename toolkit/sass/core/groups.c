#include "groups.h"

#include "check_threads.h"
#include "lanes.h"

void remove_group(Warp *w, u32 index) {
    w->group[index] = w->group[--w->groups]; /* the last one moves here */
    if (w->current == w->groups) w->current = index < w->groups ? index : 0;
}

/* Merge the groups at the same address that were put aside before the last one. Hardware was observed
 * to do this, as if it kept the last split and found the others by their address. */
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
void split(Warp *w, u32 m, u32 pc) {
    current(w)->mask &= ~m;
    w->group[w->groups++] = (Group){.mask = m, .pc = pc, .state = READY, .order = ++w->pushes,
                                       .fresh = 1};
    gather(w);
}

Group *last_put_aside(Warp *w) {
    u32 k = 0;
    while (w->group[k].order != w->pushes) k++;
    return &w->group[k];
}

/* Go on with the group that was put aside last. */
void resume(Warp *w) {
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

/* Lanes are about to go on from WARPSYNCs in several places. */
static void check_places(Worker *c, const Warp *w, const Group *leader) {
    EACH_GROUP(g, w)
        EACH_GROUP(other, w)
            if (g->pc != other->pc && waits_with(g, leader) && waits_with(other, leader))
                check_same_operation(c, w, g, other);
}

static void count_again(Worker *c, const Group *g) {
    c->count[g->pc - 1].reissued++;
    c->count[g->pc - 1].reissued_threads += popcount(g->mask);
}

/* `left`: lanes that left the barrier, or the kernel, open it. Waiting lanes then execute their
 * BSYNC once more, as hardware counts it, and so do all lanes that join a woken group. True if any
 * lane did. */
int join(Worker *c, Warp *w, u32 state, int left) {
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
        if (c->checker && state == AT_WARPSYNC) {
            check_places(c, w, &leader);
            check_parting(c, w, come & wanted, leader.pc - 1);
        }
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

/* Lanes that wait like `leader` go on without the missing lanes, which will not wait there. Other
 * waiting lanes were woken too, in vain. */
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

void give_way(Worker *c, Warp *w) {
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

/* True if g waits at a BSYNC for lanes that wait at the BSYNC of an inner region, and not for lanes of
 * g. The numbers of regions do not show this after a call: a barrier that a function restores keeps
 * the number of the function's last region. */
static int is_outer(const Warp *w, const Group *g) {
    EACH_GROUP(h, w) {
        if (h->state == AT_BSYNC && g->wait & h->mask && !(h->wait & g->mask)) return 1;
    }
    return 0;
}

/* If no lane of the warp can go on, the lanes at the BSYNC of the innermost region go on without the
 * others: hardware does not hold lanes at a BSYNC for lanes that wait elsewhere, and compilers for
 * sm_100 and later omit the BREAK where lanes leave a region. A lane whose TRYWAIT has not returned
 * can go on: the instruction ends by itself. Returns 1 if lanes were released. */
int release_innermost(Worker *c, Warp *w) {
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
void wait_for(Worker *c, Warp *w, u32 lanes, u32 state, u32 barrier) {
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
    if (spilled) c->count[c->pc].reissued_threads += popcount(g->mask & ~mine);
    else if (w->restored >> barrier & 1) count_again(c, g);
}

/* Let another group of the warp go on, as YIELD and a long run do. */
void rotate(Warp *w) {
    for (u32 k = 1; k <= w->groups; k++) {
        const u32 next = (w->current + k) % w->groups;
        if (w->group[next].state == READY) {
            w->current = next;
            return;
        }
    }
}
