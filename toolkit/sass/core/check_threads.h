/* Order of the threads of a block: its barriers, those of its cluster, and masks of lanes. */
#pragma once

#include "core.h"

void free_checker(Checker *k);
Checker *new_checker(const Launch *launch, u32 warps);
void check_block(Worker *c);
void check_warp_sync(Worker *c, const Warp *w, u32 lanes);
void check_arrival(Worker *c, const Warp *w, u32 m, u32 number, u32 count);
u32 lanes_at_barrier(const Warp *w, u32 number);
void check_opening(Worker *c, u32 number, u32 expected);
void check_masks(Worker *c, const Warp *w, const u32 *masks, u32 m);
void check_meeting(Worker *c, const Warp *w, const u32 *masks, u32 m);
void check_parting(Worker *c, const Warp *w, u32 lanes, u32 pc);
void check_same_operation(Worker *c, const Warp *w, const Group *g, const Group *other);
void check_cluster(Worker *c, Block *first);
