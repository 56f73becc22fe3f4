/* Control flow: groups of lanes that run together, and where they wait for each other.
 *
 * A warp is up to 32 groups, each with its own place in the program. A branch that its lanes do
 * not all take splits a group: the smaller part goes on, the other is put aside, and what was put
 * aside last goes on first. BSYNC and WARPSYNC join groups again, as the compiler laid out with
 * BSSY. The order was found on an H200 (docs/validation.md); counts depend on it.
 */
#pragma once

#include "core.h"

static inline Group *current(Warp *w) { return &w->group[w->current]; }

void remove_group(Warp *w, u32 index);
void split(Warp *w, u32 m, u32 pc);
Group *last_put_aside(Warp *w);
void resume(Warp *w);
int join(Worker *c, Warp *w, u32 state, int left);
void give_way(Worker *c, Warp *w);
int release_innermost(Worker *c, Warp *w);
void wait_for(Worker *c, Warp *w, u32 lanes, u32 state, u32 barrier);
void rotate(Warp *w);
