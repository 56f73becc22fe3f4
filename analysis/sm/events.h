/* Events in order of time: results that arrive, and release what waits for them. */
#pragma once

#include <stdlib.h>

#include "sm.h"

void *grown(Sm *s, void *array, u32 *room, size_t size);
void push(Sm *s, Event e);
Event pop(Sm *s);

/* Wake the scheduler of a warp at a time. */
static inline void wake(Sm *s, u32 warp, u64 at) { LOWER(s->scheduler[warp % SCHEDULERS].sleep, at); }

/* Make room for one more element of an array, if it is full. */
#define GROW(s, array, count, room) \
    do { if ((count) == (room)) (array) = grown(s, array, &(room), sizeof *(array)); } while (0)

/* Release a scoreboard at a time, when `registers` are written back. */
INLINED void release(Sm *s, u32 warp, u64 age, u8 scoreboard, double at, u32 registers) {
    if (registers > 1) at += (registers - 1) * s->m->register_latency;
    if (scoreboard != NONE || registers)
        push(s, (Event){.at = at, .age = age, .warp = warp, .scoreboard = scoreboard, .registers = registers});
}
