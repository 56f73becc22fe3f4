#include "code.h"

/* Arrival of a code line that was not requested before. Lines of up to CODE_AHEAD after one that was requested are
 * fetched after it, one after the other. A line farther away is asked for when it is needed. */
u64 fetch_code(Sm *s, u32 line) {
    if (s->m->code_is_cached) return 1;
    if (!s->fetch.begun) return s->fetch.begun = GREATER(s->now + s->m->fetch_latency, 1);
    const u64 clocks = s->m->fetch_clocks + s->m->first_fetch_clocks;
    for (u32 back = 1; back <= CODE_AHEAD && back <= line; back++) {
        const u64 before = s->fetch.arrival[line - back];
        if (before) return GREATER(before + back * clocks, s->now);
    }
    return s->now + FAR_LINES * clocks;
}

/* Evict the least recently used line of the set of a code line, if the set is full. */
void evict_code(Sm *s, u32 line) {
    const u32 sets = s->m->code_lines / CODE_WAYS;
    u32 here = 0, oldest = line;
    for (u32 k = line % sets; k < s->fetch.lines; k += sets) {
        if (!s->fetch.used[k]) continue;
        here++;
        if (oldest == line || s->fetch.used[k] < s->fetch.used[oldest]) oldest = k;
    }
    if (here == CODE_WAYS) s->fetch.used[oldest] = 0;
}

/* Fetch the lines after a jump, before it is known to be taken; they evict other lines. */
void fetch_ahead(Sm *s, u32 pc) {
    const u32 line = pc / CODE_LINE;
    if (!s->m->code_lines) return;
    for (u32 k = line + 1; k <= line + CODE_AHEAD && k < s->fetch.lines; k++) {
        if (s->fetch.used[k]) continue;
        evict_code(s, k);
        s->fetch.used[k] = ++s->fetch.uses;
    }
}
