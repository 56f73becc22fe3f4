/* Blocks: how they start and end, how their warps go on, and where they wait for each other. */
#pragma once

#include "sm.h"

void start_block(Sm *s, u32 slot, u64 at);
void arrive(Sm *s, Warp *w);
void leave(Sm *s, Warp *w);

/* Set the next instruction of a warp to the first one of its step. */
static inline void take_step(Warp *w) {
    w->pc = w->step->pc;
    w->left = w->step->flags & STEP_RUN ? w->step->clocks - 1u : 0;
}

/* Advance a warp to its next instruction, if there is one. */
static inline void go_on(Warp *w) {
    if (w->left) {
        w->left--;
        w->pc++;
    } else if (++w->step < w->end) {
        take_step(w);
    }
}
