/* Loops that only wait for what other blocks write (toolkit/sass/waits.py). How often a warp goes
 * through one depends on time: only its last pass is counted. */
#pragma once

#include "core.h"

void mark_waits(Straight *all, const Launch *launch, u32 branch);
int leave_loops(Worker *c);
void note_passed(Worker *c, Warp *w, u32 pc, u32 lanes, const Count *before);
void undo_pass(Worker *c, Warp *w);
