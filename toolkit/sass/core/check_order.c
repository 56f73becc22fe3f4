#include "check_order.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

enum { ALL_WARPS = 0xffffffffu, FIRST_BUCKETS = 1 << 10 };

void free_order(Order *order) {
    if (!order) return;
    free(order->head); free(order->at); free(order->seen); free(order);
}

/* NULL where there is not enough memory. */
Order *new_order(const Launch *launch, u32 warps) {
    Order *order;
    if (!ZEROS(order, 1)) return NULL;
    order->warps = warps;
    order->blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
    return order;
}

void begin_order(Order *order) {
    for (u64 n = 0; n < order->count; n++) order->head[order->at[n].block] = 0;
    order->count = order->fences = order->news = 0;
}

static u32 *seen_by(const Order *order, u64 n) { return order->seen + n * order->warps; }

/* The number of what a warp acquired of a block, an empty one where there was nothing; -1 where there is
 * no memory. */
static i64 acquired_by(Order *order, u32 block, u32 warp) {
    if (!order->head && !ZEROS(order->head, order->blocks)) return -1;
    for (u32 n = order->head[block]; n; n = order->at[n - 1].next)
        if (order->at[n - 1].warp == warp) return n - 1;
    if (!GROWN(order->at, order->room, order->count + 1) ||
        !GROWN(order->seen, order->seen_room, (order->count + 1) * order->warps))
        return -1;
    order->at[order->count] = (Acquired){.block = block, .warp = warp, .next = order->head[block]};
    memset(seen_by(order, order->count), 0, order->warps * sizeof(u32));
    order->head[block] = (u32)++order->count;
    return (i64)order->count - 1;
}

/* More is known than was. */
static int adds(const Order *order, u64 n, u32 fences, const u32 *seen) {
    int more = fences > order->at[n].fences;
    for (u32 k = 0; k < order->warps; k++) more |= seen[k] > seen_by(order, n)[k];
    return more;
}

/* A thread of this block acquires what another one published. */
static void acquire(Worker *c, const Warp *w, int lane, u64 release) {
    Order *order = c->checker->order;
    const Release *r = &c->checks->releases->at[release];
    const u32 *seen = c->checks->releases->seen + release * order->warps;
    const i64 n = acquired_by(order, r->block, w->index);
    if (n < 0) { stop(c, NO_MEMORY); return; }
    if (!adds(order, (u64)n, r->fences, seen)) return;
    Acquired *mine = &order->at[n];
    if (r->fences > mine->fences) mine->fences = r->fences;
    join_clock(seen_by(order, (u64)n), seen, order->warps);
    mine->stamp = c->checker->phase[w->index];
    mine->thread = thread_of(w, lane);
    order->news = 1;
    EACH_BLOCK(b, c->block->cluster)
        if (b->index == r->block) c->checker->learnt_otherwise = 1;
}

/* All threads know what any has acquired. */
void order_epoch(Checker *k) {
    Order *order = k->order;
    const u64 count = order->news ? order->count : 0;
    for (u64 n = 0; n < count; n++) {
        if (order->at[n].warp == ALL_WARPS || !order->at[n].fences) continue;
        const i64 all = acquired_by(order, order->at[n].block, ALL_WARPS);
        if (all < 0) return; /* too little memory: findings may be missing */
        if (order->at[n].fences > order->at[all].fences) order->at[all].fences = order->at[n].fences;
        join_clock(seen_by(order, (u64)all), seen_by(order, n), order->warps);
        order->at[n].fences = 0;
    }
    order->news = 0;
}

/* All threads know all that another block did before so many fences. */
void learn_all(Worker *c, u32 block, u32 fences) {
    Order *order = c->checker->order;
    const i64 n = acquired_by(order, block, ALL_WARPS);
    if (n < 0) { stop(c, NO_MEMORY); return; }
    order->at[n].fences = fences;
    memset(seen_by(order, (u64)n), 0xff, order->warps * sizeof(u32));
}

/* True if a lane (without a warp: every thread) is ordered after the acquire of a warp of its block. */
static int knows(const Checker *k, const Warp *w, int lane, const Acquired *x) {
    return x->warp == ALL_WARPS || x->stamp < k->floor[x->warp] ||
           (w && (x->warp == w->index || is_after(k, thread_of(w, lane), x->thread, x->stamp)));
}

/* True if an access of `block` (plus one) is not ordered before an access of a lane now or, without a
 * warp, before an access of some thread of this block. */
int is_foreign(const Worker *c, const Warp *w, int lane, u32 block, const Event *event) {
    const Order *order = c->checker->order;
    if (!block || block == BY_ATOMICS || block - 1 == c->block->index) return 0;
    for (u32 n = order->head ? order->head[block - 1] : 0; n; n = order->at[n - 1].next) {
        const Acquired *x = &order->at[n - 1];
        if (x->fences > event->fences && seen_by(order, n - 1)[event->warp] >= event->stamp &&
            knows(c->checker, w, lane, x))
            return 0;
    }
    return 1;
}

static u32 bucket_of(const Releases *all, u64 address) {
    return (u32)((address * 0x9e3779b97f4a7c15ull) >> 32) & (all->buckets - 1);
}

/* Twice as many buckets, or the first ones; 0 where there is no memory. */
static int more_buckets(Releases *all) {
    const u32 buckets = all->buckets ? 2 * all->buckets : FIRST_BUCKETS;
    u32 *bucket;
    if (!ZEROS(bucket, buckets)) return 0;
    free(all->bucket);
    all->bucket = bucket;
    all->buckets = buckets;
    for (u64 n = 0; n < all->count; n++) {
        u32 *first = &bucket[bucket_of(all, all->at[n].address)];
        all->at[n].next = *first;
        *first = (u32)n + 1;
    }
    return 1;
}

/* A new release, of nothing; NULL where there is not enough memory. */
static Release *new_release(Worker *c, u64 address) {
    Checks *checks = c->checks;
    if (!checks->releases && !ZEROS(checks->releases, 1)) return NULL;
    Releases *all = checks->releases;
    all->warps = c->warp_count;
    if (all->count >= all->buckets && !more_buckets(all)) return NULL;
    if (!GROWN(all->at, all->room, all->count + 1) ||
        !GROWN(all->seen, all->seen_room, (all->count + 1) * all->warps))
        return NULL;
    u32 *first = &all->bucket[bucket_of(all, address)];
    all->at[all->count] =
        (Release){.address = address, .block = (u32)c->block->index, .next = *first};
    memset(all->seen + all->count * all->warps, 0, all->warps * sizeof(u32));
    *first = (u32)++all->count;
    return &all->at[all->count - 1];
}

/* A thread publishes what it is ordered after: of other warps, what any lane of theirs did. */
static void publish(Worker *c, const Warp *w, int lane, Release *release) {
    const Checker *k = c->checker;
    u32 *seen = c->checks->releases->seen + (u64)(release - c->checks->releases->at) * c->warp_count;
    const u32 *know = k->know && k->crossed ? clock_of(k, thread_of(w, lane)) : NULL;
    release->fences = k->order->fences;
    for (u32 n = 0; n < c->warp_count; n++) {
        u32 latest = n == w->index ? k->phase[n] : k->floor[n] - 1;
        for (u32 l = 0; know && l < LANES; l++)
            latest = know[n * LANES + l] > latest ? know[n * LANES + l] : latest;
        seen[n] = latest > seen[n] ? latest : seen[n];
    }
}

/* The block publishes what it did before its last fence at an address, and sees what others did
 * before theirs that they published there. */
void synchronise(Worker *c, const Warp *w, int lane, u64 address) {
    const Releases *all = c->checks->releases;
    const u32 block = (u32)c->block->index;
    Release *own = NULL;
    for (u32 n = all ? all->bucket[bucket_of(all, address)] : 0; n; n = all->at[n - 1].next) {
        if (all->at[n - 1].address != address) continue;
        if (all->at[n - 1].block == block) own = &all->at[n - 1];
        else acquire(c, w, lane, n - 1);
    }
    if (!c->checker->order->fences) return;
    if (!own) own = new_release(c, address);
    if (own) publish(c, w, lane, own);
    else stop(c, NO_MEMORY);
}
