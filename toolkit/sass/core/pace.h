/* The time of warps, where blocks run in time (toolkit/execution/in_time.py): what they find in memory
 * then depends on when they ask. */
#pragma once

#include "core.h"

int is_due(Worker *c, Warp *w);
int is_paused(Worker *c, const Block *b);
int issues_now(const Worker *c, Warp *w, u32 pc);
void take_time(Worker *c, Warp *w, const Ins *i, u32 m);
int pass_time(Worker *c);
