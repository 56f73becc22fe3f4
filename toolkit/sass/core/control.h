/* Control flow: operations that decide where lanes go on, and barriers of blocks and clusters. */
#pragma once

#include "core.h"

enum { BSYNC_FIRM = 1 };
enum { WARPSYNC_APART = 1 };

/* BAR: lanes arrive at a barrier of the block. s[0] its number, s[1] how many threads it waits
 * for (0: all that live); BARRIER_PACKED: s[0] is both, the threads from bit 16 on. */
enum { BARRIER_ARRIVE = 1, BARRIER_REDUCE = 2, BARRIER_PACKED = 4 };

enum { BRANCH_ANY = 1, BRANCH_WAITS = 2 }; /* all jump if one does; ends a loop that only waits */

void control(Worker *c, Warp *w, const Ins *i, u32 m);
void open_barriers(Worker *c);
