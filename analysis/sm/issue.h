/* The schedulers: each issues at most one instruction per clock. */
#pragma once

#include "sm.h"

void choose(Sm *s, Scheduler *x);
void happen(Sm *s, Event e);

/* One clock of a scheduler. */
static inline void schedule(Sm *s, Scheduler *x) {
    if (x->sleep > s->now) s->r->lost[x->why]++;
    else if (x->free <= s->now) choose(s, x); /* otherwise counted at its cause */
}
