/* Blocks: how they start and end, how their warps go on, and where they wait for each other. */
#pragma once

#include "mbarriers.h"

void start_block(Sm *s, u32 slot, u64 at);
void arrive(Sm *s, u32 warp, const Instruction *i);
void leave(Sm *s, u32 warp);

/* Set the next instruction of a warp to the first one of its step. */
static inline void take_step(Warp *w) {
    w->pc = w->step->pc;
    w->left = w->step->flags & STEP_RUN ? w->step->clocks - 1u : 0;
}

/* Advance a warp to its next instruction, if there is one. */
static inline void advance_warp(Warp *w) {
    if (w->left) {
        w->left--;
        w->pc++;
    } else if (++w->step < w->end) {
        take_step(w);
    }
}

/* True if the replay leaves out this execution of the next instruction of a warp. */
static inline int is_skipped(const Sm *s, const Warp *w) {
    const u32 at = (u32)(w->step - s->recorded.steps) + w->left;
    return at * 0x9e3779b9u >> 27 < instruction_at(s, w->pc)->skipped;
}

/* Advance a warp past instructions that are left out. Its last one, EXIT, never is. */
static inline void skip(Sm *s, Warp *w) {
    while (w->step < w->end && is_skipped(s, w)) {
        s->skipped++;
        w->line += words_of(instruction_at(s, w->pc), w->step);
        advance_warp(w);
    }
}

/* Advance a warp to the next instruction that it executes, if there is one. */
static inline void go_on(Sm *s, Warp *w) {
    advance_warp(w);
    if (s->program.has_skipped) skip(s, w);
}
