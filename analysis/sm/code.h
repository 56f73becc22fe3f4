/* Code fetch: when the line of an instruction arrives, and which lines the instruction cache keeps. */
#pragma once

#include "sm.h"

enum { CODE_LINE = 8 };  /* instructions in a line of code */
enum { CODE_WAYS = 4 };  /* of the instruction cache */
enum { CODE_AHEAD = 5 }; /* lines that are fetched after a jump */
enum { FAR_LINES = 4 };  /* that arrive while one arrives that is farther away: 101 to 118 clocks per jump */

u64 fetch_code(Sm *s, u32 line);
void evict_code(Sm *s, u32 line);
void fetch_ahead(Sm *s, u32 pc);

/* Arrival of the code line of an instruction. Evicted lines are fetched again one after the other. */
static inline u64 code_is_here(Sm *s, u32 pc) {
    const u32 line = pc / CODE_LINE;
    u64 *at = &s->fetch.arrival[line];
    if (!s->fetch.used[line] && s->m->code_lines) evict_code(s, line);
    if (!*at) {
        *at = fetch_code(s, line);
    } else if (!s->fetch.used[line]) {
        const u64 again = s->fetch.refetched + s->m->fetch_clocks;
        *at = s->fetch.refetched = GREATER(again, s->now);
    }
    s->fetch.used[line] = ++s->fetch.uses;
    return *at;
}
