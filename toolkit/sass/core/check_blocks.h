/* Global memory, and what orders the blocks that access it.
 *
 * Accesses of different blocks are ordered by a fence, and then an atomic operation (or a volatile or
 * atomic access) of the one that the other sees: a *release* tells what a block had done before, and who
 * *acquires* it comes after that. Warps are told apart and lanes are not: a thread publishes what its own
 * warp did, and of others what it is ordered after (by a barrier of the block, for one); and what it
 * acquires, other warps know once they are ordered after that in turn.
 */
#ifndef CHECK_BLOCKS_H
#define CHECK_BLOCKS_H

#include "check.h"

/* A cell of global memory: the block, plus one, that wrote it last and that read it last. */
typedef struct { u32 writer, reader; } Owner;
typedef struct { u32 pc; u16 thread, fences; } Reader; /* who that reader was */
typedef struct { u32 pc, stamp; u16 thread, fences; } Writer; /* of the last write, and its phase */
typedef struct { u32 block; Reader by; } Earlier; /* rare: a reader of another block before the last one */

enum { BY_ATOMICS = 0xffffffffu }; /* Owner.writer: atomic operations, which race with nobody */

struct Shadow { Owner *owner; Reader *reader; Writer *writer; Earlier *earlier; };

/* An access of another block: its warp, the phase of that, and the block's fences before it. */
typedef struct { u32 warp, stamp, fences; } Event;

static Event write_of(const Writer *x) {
    return (Event){.warp = x->thread / LANES, .stamp = x->stamp, .fences = x->fences};
}
/* Of reads the phase is not kept. */
static Event read_of(const Reader *x) { return (Event){.warp = x->thread / LANES, .fences = x->fences}; }

/* What a block published at an address, after so many fences. Beside it stand the phases of its warps
 * up to which that holds. */
typedef struct { u64 address; u32 block, fences, next; } Release;

/* All of them, by address: `bucket` holds the number of the first one, plus one. */
struct Releases {
    u32 warps, buckets;
    u32 *bucket;
    Release *at;
    u32 *seen; /* [count][warps] */
    u64 count, room, seen_room;
};

/* What a warp of this block acquired of another block, when and in which thread; or, with ALL_WARPS,
 * what all threads of this one know of it. */
typedef struct { u32 block, warp, thread, stamp, fences, next; } Acquired;

enum { ALL_WARPS = 0xffffffffu, FIRST_BUCKETS = 1 << 10 };

struct Order {
    u32 fences;  /* of this block so far */
    u32 warps, blocks;
    u32 *head;   /* [blocks]: the first that is acquired of each, plus one; NULL: none ever was */
    Acquired *at;
    u32 *seen;   /* [count][warps] */
    u64 count, room, seen_room;
    u32 news;    /* some are not known to all threads */
};

static void free_order(Order *order) {
    if (!order) return;
    free(order->head); free(order->at); free(order->seen); free(order);
}

/* NULL where there is not enough memory. */
static Order *new_order(const Launch *launch, u32 warps) {
    Order *order = calloc(1, sizeof *order);
    if (!order) return NULL;
    order->warps = warps;
    order->blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
    return order;
}

static void begin_order(Order *order) {
    for (u64 n = 0; n < order->count; n++) order->head[order->at[n].block] = 0;
    order->count = order->fences = order->news = 0;
}

static u32 *seen_by(const Order *order, u64 n) { return order->seen + n * order->warps; }

/* The number of what a warp acquired of a block, an empty one where there was nothing; -1 where there is
 * no memory. */
static i64 acquired_by(Order *order, u32 block, u32 warp) {
    if (!order->head) order->head = calloc(order->blocks, sizeof *order->head);
    if (!order->head) return -1;
    for (u32 n = order->head[block]; n; n = order->at[n - 1].next)
        if (order->at[n - 1].warp == warp) return n - 1;
    void *at = grown(order->at, &order->room, order->count + 1, sizeof *order->at);
    if (at) order->at = at;
    void *seen = grown(order->seen, &order->seen_room, (order->count + 1) * order->warps, sizeof(u32));
    if (seen) order->seen = seen;
    if (!at || !seen) return -1;
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
}

/* All threads know what any has acquired. */
static void order_epoch(Checker *k) {
    Order *order = k->order;
    const u64 count = order->news ? order->count : 0;
    for (u64 n = 0; n < count; n++) {
        if (order->at[n].warp == ALL_WARPS || !order->at[n].fences) continue;
        const i64 all = acquired_by(order, order->at[n].block, ALL_WARPS);
        if (all < 0) return; /* too little memory: they are told of more than there is */
        if (order->at[n].fences > order->at[all].fences) order->at[all].fences = order->at[n].fences;
        join_clock(seen_by(order, (u64)all), seen_by(order, n), order->warps);
        order->at[n].fences = 0;
    }
    order->news = 0;
}

/* All threads know all that another block did before so many fences. */
static void learn_all(Worker *c, u32 block, u32 fences) {
    Order *order = c->checker->order;
    const i64 n = acquired_by(order, block, ALL_WARPS);
    if (n < 0) { stop(c, NO_MEMORY); return; }
    order->at[n].fences = fences;
    memset(seen_by(order, (u64)n), 0xff, order->warps * sizeof(u32));
}

/* Whether a lane, or without a warp every one, comes after what a warp of its block acquired. */
static int knows(const Checker *k, const Warp *w, int lane, const Acquired *x) {
    return x->warp == ALL_WARPS || x->stamp < k->floor[x->warp] ||
           (w && (x->warp == w->index || is_after(k, thread_of(w, lane), x->thread, x->stamp)));
}

/* Whether an access of `block` (plus one) is not ordered before one of a lane now, or, without a warp,
 * before one of some thread of this block. */
static int is_foreign(const Worker *c, const Warp *w, int lane, u32 block, const Event *event) {
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
    u32 *bucket = calloc(buckets, sizeof *bucket);
    if (!bucket) return 0;
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
    if (!checks->releases) checks->releases = calloc(1, sizeof *checks->releases);
    Releases *all = checks->releases;
    if (!all) return NULL;
    all->warps = c->warp_count;
    if (all->count >= all->buckets && !more_buckets(all)) return NULL;
    void *at = grown(all->at, &all->room, all->count + 1, sizeof *all->at);
    if (at) all->at = at;
    void *seen = grown(all->seen, &all->seen_room, (all->count + 1) * all->warps, sizeof(u32));
    if (seen) all->seen = seen;
    if (!at || !seen) return NULL;
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
static void synchronise(Worker *c, const Warp *w, int lane, u64 address) {
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

static void free_checks(Checks *all, u32 allocations) {
    if (!all) return;
    for (u32 n = 0; all->shadow && n < allocations; n++) {
        free(all->shadow[n].owner); free(all->shadow[n].reader);
        free(all->shadow[n].writer); free(all->shadow[n].earlier);
    }
        if (all->releases) {
        free(all->releases->bucket); free(all->releases->at); free(all->releases->seen);
    }
    free(all->releases); free(all->shadow); free(all->found); free(all);
}

/* NULL where there is not enough memory. */
static Checks *new_checks(const Launch *launch) {
    Checks *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    all->grain = launch->check;
    all->shift = (u32)__builtin_ctz(all->grain);
    all->shadow = calloc(launch->allocation_count + 1, sizeof *all->shadow);
    all->found = calloc(MOST_FINDINGS, sizeof *all->found);
    if (!all->shadow || !all->found) goto failed;
    for (u32 n = 0; n < launch->allocation_count; n++) {
        const size_t cells = launch->allocations[n].bytes / all->grain + 1;
        Shadow *shadow = &all->shadow[n];
        shadow->owner = calloc(cells, sizeof(Owner));
        shadow->reader = calloc(cells, sizeof(Reader));
        shadow->writer = calloc(cells, sizeof(Writer));
        shadow->earlier = calloc(cells, sizeof(Earlier));
        if (!shadow->owner || !shadow->reader || !shadow->writer || !shadow->earlier) goto failed;
    }
    return all;
failed:
    free_checks(all, launch->allocation_count);
    return NULL;
}

static void report_blocks(Worker *c, const Warp *w, u32 kind, int lane, u64 address, u32 width,
                          u32 block, u32 pc, u32 thread) {
    const Finding f = {.kind = kind, .space = SPACE_GLOBAL, .pc = c->pc, .pc_before = pc,
                       .block = c->block->index, .block_before = block - 1, .thread = thread_of(w, lane),
                       .thread_before = thread, .address = address, .width = width};
    report(c, &f);
}

static Reader reader_now(const Worker *c, const Warp *w, int lane) {
    return (Reader){.pc = c->pc, .thread = (u16)thread_of(w, lane),
                    .fences = (u16)c->checker->order->fences};
}

/* This block has read a cell; the last other one that did is kept. */
static inline void note_reader(const Shadow *shadow, u64 cell, u32 me, Reader now) {
    Owner *owner = &shadow->owner[cell];
    if (owner->reader == me) return;
    if (owner->reader)
        shadow->earlier[cell] = (Earlier){.block = owner->reader, .by = shadow->reader[cell]};
    owner->reader = me;
    shadow->reader[cell] = now;
}

static void check_global_read(Worker *c, const Warp *w, int lane, u64 address, u32 width,
                              const Shadow *shadow, u64 cell, int unwritten) {
    const u32 me = (u32)c->block->index + 1;
    const Owner *owner = &shadow->owner[cell];
    if (owner->writer) {
        const Writer *writer = &shadow->writer[cell];
        const Event last = write_of(writer);
        if (is_foreign(c, w, lane, owner->writer, &last))
            report_blocks(c, w, FOUND_READ_AFTER_WRITE, lane, address, width, owner->writer, writer->pc,
                          writer->thread);
    } else if (unwritten) {
        report_alone(c, w, FOUND_UNWRITTEN, SPACE_GLOBAL, lane, address, width);
    }
    note_reader(shadow, cell, me, reader_now(c, w, lane));
}

/* Reads of other blocks that a write is not ordered after. */
static void check_readers(Worker *c, const Warp *w, int lane, u64 address, u32 width,
                          const Shadow *shadow, u64 cell) {
    const u32 last = shadow->owner[cell].reader;
    const Reader *reader = &shadow->reader[cell];
    const Earlier *earlier = &shadow->earlier[cell];
    const Event read = read_of(reader), before = read_of(&earlier->by);
    if (!last) return;
    if (is_foreign(c, w, lane, last, &read))
        report_blocks(c, w, FOUND_WRITE_AFTER_READ, lane, address, width, last, reader->pc, reader->thread);
    else if (is_foreign(c, w, lane, earlier->block, &before))
        report_blocks(c, w, FOUND_WRITE_AFTER_READ, lane, address, width, earlier->block, earlier->by.pc,
                      earlier->by.thread);
}

static void note_write(const Worker *c, const Warp *w, int lane, const Shadow *shadow, u64 cell) {
    shadow->owner[cell].writer = (u32)c->block->index + 1;
    shadow->writer[cell] = (Writer){.pc = c->pc, .stamp = c->checker->phase[w->index],
                                    .thread = (u16)thread_of(w, lane),
                                    .fences = (u16)c->checker->order->fences};
}

static void check_global_write(Worker *c, const Warp *w, int lane, u64 address, u32 width,
                               const Shadow *shadow, u64 cell, int alike) {
    const u32 before = shadow->owner[cell].writer;
    const Writer *writer = &shadow->writer[cell];
    const Event last = write_of(writer);
    if (!alike && is_foreign(c, w, lane, before, &last))
        report_blocks(c, w, FOUND_WRITE_AFTER_WRITE, lane, address, width, before, writer->pc,
                      writer->thread);
    check_readers(c, w, lane, address, width, shadow, cell);
    /* who stores again what its own block has written changes nothing */
    if (!alike || before != (u32)c->block->index + 1) note_write(c, w, lane, shadow, cell);
}

/* A barrier of a cluster opens: its blocks know of all that they did so far. */
static void check_cluster(Worker *c, Block *first) {
    Block *own = c->block;
    Checker *of_own = c->checker;
    if (!of_own) return;
    EACH_BLOCK(b, first) b->checker->order->fences++;
    EACH_BLOCK(b, first) {
        c->block = b;
        c->checker = b->checker;
        check_epoch(c);
        EACH_BLOCK(other, first)
            if (other != b) learn_all(c, (u32)other->index, other->checker->order->fences);
    }
    c->block = own;
    c->checker = of_own;
}

/* A bulk copy writes global memory: nobody is blamed for the order, but the bytes are written. */
static void check_bulk_write(Worker *c, u64 address, u64 bytes) {
    const Launch *launch = c->launch;
    const Checks *all = c->checks;
    for (u32 n = 0; all && n < launch->allocation_count; n++) {
        const Allocation *x = &launch->allocations[n];
        if (!inside(x, address, address + bytes)) continue;
        const u64 first = (address - x->base) >> all->shift, count = bytes >> all->shift;
        for (u64 cell = first; cell < first + count; cell++)
            all->shadow[n].owner[cell].writer = BY_ATOMICS;
    }
}

/* A bulk copy reads global memory, as the lane does that issues it. */
static void check_bulk_read(Worker *c, const Warp *w, int lane, u64 address, u64 bytes) {
    const Allocation *all = bytes ? allocation_of(c, address, address + bytes) : NULL;
    if (!all || !c->checks) return; /* beyond the edges, or it is about to stop */
    const Shadow *shadow = &c->checks->shadow[all - c->launch->allocations];
    const u32 me = (u32)c->block->index + 1, shift = c->checker->shift;
    const u64 first = (address - all->base) >> shift;
    const u64 last = (address + bytes - 1 - all->base) >> shift;
    const Reader now = reader_now(c, w, lane);
    for (u64 cell = first; cell <= last; cell++) {
        const u32 writer = shadow->owner[cell].writer;
        if (writer == me || (!writer && !all->unwritten)) note_reader(shadow, cell, me, now);
        else
            check_global_read(c, w, lane, all->base + (cell << shift), 1u << shift, shadow, cell,
                              (int)all->unwritten);
    }
}

/* Whether these reads are of one buffer, and nothing new: what this block has read before and no other
 * one has written. */
static int is_known(Worker *c, const u64 *a, const Extent *e, u32 width) {
    const Checker *k = c->checker;
    const Allocation *all = allocation_of(c, e->low, e->high + width);
    if (!all || all->unwritten || all->bytes >> k->shift > UINT32_MAX) return 0;
    const Owner *owners = c->checks->shadow[all - c->launch->allocations].owner;
    const u32 me = (u32)c->block->index + 1, count = width >> k->shift;
    const int lanes = e->low == e->high ? 1 : LANES;
    u32 news = 0, cells[LANES];
    if (owners[(a[0] - all->base) >> k->shift].reader != me) return 0; /* most often all are alike */
    FOR_LANES cells[l] = (u32)((a[l] - all->base) >> k->shift);
    for (u32 n = 0; n < count && !news; n++)
        for (int l = 0; l < lanes; l++)
            news |= (owners[cells[l] + n].reader ^ me) | owners[cells[l] + n].writer;
    return !news;
}

/* One lane's access of a buffer. */
static void check_global_lane(Worker *c, const Warp *w, const Ins *i, int l, const Allocation *all,
                              u64 offset, int is_store, int relaxed, const u32 *x) {
    Checker *k = c->checker;
    const Shadow *shadow = &c->checks->shadow[all - c->launch->allocations];
    const u32 me = (u32)c->block->index + 1;
    const u64 first = offset >> k->shift, count = i->width >> k->shift;
    for (u64 cell = first; cell < first + count; cell++) {
        Owner *owner = &shadow->owner[cell];
        const int known = owner->writer == me || (!owner->writer && !all->unwritten);
        if (!is_store && known && owner->reader == me) continue;
        const u64 address = all->base + (cell << k->shift);
        if (relaxed) {
            if (is_store) owner->writer = BY_ATOMICS;
        } else if (is_store && !owner->writer && !owner->reader) {
            note_write(c, w, l, shadow, cell);
        } else if (is_store) {
            const int alike = x && stored(k, i, x, l, (u32)((cell << k->shift) - offset)) ==
                                       held(k, all->host + (cell << k->shift));
            check_global_write(c, w, l, address, i->width, shadow, cell, alike);
        } else {
            check_global_read(c, w, l, address, i->width, shadow, cell, (int)all->unwritten);
        }
    }
}

/* Reads of one buffer, of what no other block has written, or all threads know that it has: neighbours
 * are often of one write. The lanes that this is not true of. */
static u32 note_own_reads(Worker *c, const Warp *w, u32 m, const u64 *a, const Extent *e, u32 width) {
    const Allocation *all = allocation_of(c, e->low, e->high + width);
    if (!all || all->unwritten) return m;
    const Shadow *shadow = &c->checks->shadow[all - c->launch->allocations];
    const u32 me = (u32)c->block->index + 1, shift = c->checker->shift;
    u32 left = 0, known_writer = 0;
    Event known = {0};
    FOR_LANES_OF(m) {
        const u64 first = (a[l] - all->base) >> shift, end = first + (width >> shift);
        const Reader now = reader_now(c, w, l);
        for (u64 cell = first; cell < end; cell++) {
            const u32 writer = shadow->owner[cell].writer;
            if (writer && writer != me) {
                const Event last = write_of(&shadow->writer[cell]);
                const int alike = writer == known_writer && last.warp == known.warp &&
                                  last.stamp == known.stamp && last.fences == known.fences;
                if (!alike && is_foreign(c, NULL, 0, writer, &last)) {
                    left |= 1u << l;
                    continue;
                }
                known_writer = writer, known = last;
            }
            note_reader(shadow, cell, me, now);
        }
    }
    return left;
}

static void check_buffers(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a, const Extent *e,
                          int is_store, int relaxed, const u32 *x) {
    const Checker *k = c->checker;
    const Allocation *all = NULL;
    u64 before = 0;
    if (!is_store && !relaxed) {
        if (is_known(c, a, e, i->width)) return;
        if (e->low == e->high) m &= -m; /* one lane stands for all */
        m = note_own_reads(c, w, m, a, e, i->width);
    }
    for (; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        if (before == a[l] && all && !is_store && !relaxed) continue; /* neighbours read the same */
        before = a[l];
        if (!all || !inside(all, a[l], a[l] + i->width)) all = allocation_of(c, a[l], a[l] + i->width);
        if (!all) continue; /* it is about to stop */
        if (relaxed && (k->order->fences || c->checks->releases)) synchronise(c, w, l, a[l]);
        check_global_lane(c, w, i, l, all, a[l] - all->base, is_store, relaxed, x);
    }
}

#endif
