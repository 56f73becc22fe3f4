/* mbarriers and bulk copies, as far as they order accesses of shared memory.
 *
 * Who arrives at an mbarrier publishes what it did and knows; who finds a phase over knows what all who
 * arrived in it, and in those before, had published. What counts is the phase that a wait proves to be
 * over, not the one that is over by then: a wait names the parity of a phase alone, so it proves as few
 * of them as what its thread knows already allows for.
 *
 * A bulk copy is a write, or a read, of its issuing thread that comes after all that this thread is
 * ordered after. What it writes is there for whoever finds that phase of its mbarrier over in which the
 * bytes came; what it reads may be overwritten once its warp has waited for the copy's group. What
 * threads stored is fenced before a copy reads it (check_products.h).
 *
 * A clock has two entries for an mbarrier: phases that are known to be over, and that were over when
 * their thread, or one that it comes after, arrived, which orders no memory and tells parities apart.
 * A block with more than MOST_MBARRIERS of them has the rest taken as one, which hides races.
 */
#pragma once

#include "core.h"

int is_followed(const Worker *c);
void check_begin(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a);
void check_arrive(Worker *c, const Warp *w, const Ins *i, int lane, u64 address);
void check_arrived(Worker *c, const Warp *w);
void check_phase(Worker *c, u64 address);
int check_poll(Worker *c, const Warp *w, const Ins *i, u32 m);
void check_wait(Worker *c, const Warp *w, u32 lanes, const u64 *a, const u32 *parity);
void check_issue(Worker *c, const Warp *w, const Ins *i, const Bulk *b);
void check_made(Worker *c, const Bulk *b);
void check_copies_read(Worker *c, const Warp *w, u32 kept_groups);
