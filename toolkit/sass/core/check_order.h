/* What orders the blocks that access global memory.
 *
 * Accesses of different blocks are ordered by a fence, and then an atomic operation (or a volatile or
 * atomic access) of the one that the other sees: a *release* tells what a block had done before, and who
 * *acquires* it comes after that. Warps are told apart and lanes are not: a thread publishes what its own
 * warp did, and of others what it is ordered after (by a barrier of the block, for one); and what it
 * acquires, other warps know once they are ordered after that in turn.
 */
#pragma once

#include "check.h"

enum { BY_ATOMICS = 0xffffffffu }; /* Owner.writer: atomic operations, which race with nobody */

/* An access of another block: its warp, the phase of that, and the block's fences before it. */
typedef struct { u32 warp, stamp, fences; } Event;

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
