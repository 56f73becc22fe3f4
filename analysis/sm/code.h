/* Code fetch: when the line of an instruction arrives, and which lines the instruction cache keeps. */
#pragma once

#include "sm.h"

enum { CODE_LINE = 8 };  /* instructions in a line of code */
enum { CODE_WAYS = 4 };  /* of the instruction cache */
enum { CODE_AHEAD = 5 }; /* lines that are fetched after a jump */
/* Each scheduler has a buffer of the lines that came last: those that it executes, and those behind a jump. A jump to
 * one of them takes `branch_clocks`. Straight code comes to it in time; so a jump ahead over lines that it has not
 * takes as much longer as they do, and any other jump as long as over a few of them. */
enum { BUFFERED_LINES = 40, BUFFERED_AHEAD = 3, LINE_TO_BUFFER_CLOCKS = 8, MOST_TO_BUFFER_CLOCKS = 17 };
enum { FAR_LINES = 4 };  /* that arrive while one arrives that is farther away: 101 to 118 clocks per jump */

u64 fetch_code(Sm *s, u32 line);
void evict_code(Sm *s, u32 line);
void fetch_ahead(Sm *s, u32 pc);
u64 clocks_of_jump(Sm *s, Scheduler *x, u32 from, u32 to);

static inline u64 *buffered_at(const Sm *s, const Scheduler *x, u32 line) {
    return &s->fetch.buffered[x->number * s->fetch.lines + line];
}

static inline int is_buffered(const Sm *s, const Scheduler *x, u32 line) {
    const u64 at = *buffered_at(s, x, line);
    return at && x->code_lines - at < BUFFERED_LINES;
}

static inline void keep_line(Sm *s, Scheduler *x, u32 line) {
    if (!is_buffered(s, x, line)) *buffered_at(s, x, line) = ++x->code_lines;
}

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
