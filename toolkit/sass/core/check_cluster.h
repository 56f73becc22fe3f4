/* Blocks of a cluster that access each other's shared memory.
 *
 * A block may do so once all blocks have started: after a barrier of the cluster. What it does there is
 * ordered by such barriers alone, at which it arrives after the one access and the other block waits before
 * the other. A block must not leave the kernel before those accesses of its memory are over: it waits for a
 * barrier that the others arrive at after them.
 *
 * The clock is the number of such barriers that a warp arrived at, and that it waited for. Where blocks tell
 * each other in another way (an atomic operation and a fence, a flag in memory), they are not followed any
 * more; nor are kernels with mbarriers, but for accesses before the first barrier.
 */
#pragma once

#include "check.h"

void free_meeting(Meeting *meeting);
Meeting *new_meeting(const Launch *launch, u32 cells, u32 warps);
void begin_meeting(Checker *k);
void check_cluster_arrival(Worker *c, const Warp *w, u32 arrivals);
void check_cluster_wait(Worker *c, const Warp *w, u32 waits);
void share_waits(Checker *k);
void check_cluster_access(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a, Block *owner,
                          int is_store, u32 kind, const u32 *x);
void check_leaving(Worker *c, const Warp *w, u32 m);
