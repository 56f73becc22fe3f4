/* Order of accesses of different blocks to global memory.
 *
 * A block orders its accesses before those of another block with a fence followed by an atomic operation
 * (or a volatile or atomic access) that the other block sees: a *release* publishes the earlier accesses
 * of a block, and a block that *acquires* it comes after them. The checker distinguishes warps, not lanes.
 * A thread publishes the accesses of its own warp, and those of other warps that it is ordered after (by
 * a barrier of the block, for example). Other warps know an acquire once they are ordered after it.
 */
#pragma once

#include "check.h"

enum { BY_ATOMICS = 0xffffffffu }; /* Owner.writer: atomic operations, which race with no access */

/* An access of another block: its warp, the phase of that, and the block's fences before it. */
typedef struct { u32 warp, stamp, fences; } Event;

/* Release of a block at an address, after `fences` fences. The phases of its warps up to which the
 * release holds are stored beside it. */
typedef struct { u64 address; u32 block, fences, next; } Release;

/* All of them, by address: `bucket` holds the number of the first one, plus one. */
struct Releases {
    u32 warps, buckets;
    u32 *bucket;
    Release *at;
    u32 *seen; /* [count][warps] */
    u64 count, room, seen_room;
};

/* Acquire of a warp of this block from another block, with its time and thread; or, with ALL_WARPS,
 * the accesses of that block that all threads of this block know. */
typedef struct { u32 block, warp, thread, stamp, fences, next; } Acquired;

struct Order {
    u32 fences;  /* of this block so far */
    u32 warps, blocks;
    u32 *head;   /* [blocks]: the first that is acquired of each, plus one; NULL: none ever was */
    Acquired *at;
    u32 *seen;   /* [count][warps] */
    u64 count, room, seen_room;
    u32 news;    /* some are not known to all threads */
};

void free_order(Order *order);
Order *new_order(const Launch *launch, u32 warps);
void begin_order(Order *order);
void order_epoch(Checker *k);
void learn_all(Worker *c, u32 block, u32 fences);
int is_foreign(const Worker *c, const Warp *w, int lane, u32 block, const Event *event);
void synchronise(Worker *c, const Warp *w, int lane, u64 address);
