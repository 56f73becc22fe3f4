/* Straight runs: multiply-adds without guards or modifiers that follow each other, most of what a
 * product of matrices executes. A whole warp makes them one after the other, with nothing asked in
 * between, and they are counted by where runs begin and end. */
#pragma once

#include "core.h"

/* An instruction as runs need it; `run`: how many of a run are left from it on, 0: it is of none.
 * `waits`: it belongs to a loop that only waits (waits.h). `behind`: the instruction behind the innermost short
 * loop with an atomic operation that it belongs to; 0: none. */
struct Straight { u32 run, d, a, b, c, waits, behind; };

Straight *new_straight(const Launch *launch, u32 op);
void run_straight(Worker *c, const Warp *w, u32 pc, u32 n);
void count_straight(Worker *keeper, u32 length);
