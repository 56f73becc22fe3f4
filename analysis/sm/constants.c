#include "constants.h"

#include <string.h>

/* Lines that have arrived by now are cached, the most recently used ones. */
static void settle(Constants *c, double now) {
    for (; c->flying && c->flight[c->first].ready <= now; c->flying--) {
        const ConstantLine arrived = c->flight[c->first];
        c->first = (c->first + 1) % MOST_CONSTANT_LINES;
        u32 oldest = 0;
        for (u32 k = 1; k < CACHED_CONSTANT_LINES; k++)
            if (c->cached[k].used < c->cached[oldest].used) oldest = k;
        c->cached[oldest] = arrived;
    }
}

static ConstantLine *found(Constants *c, u64 key) {
    for (u32 k = 0; k < CACHED_CONSTANT_LINES; k++)
        if (c->cached[k].key == key && c->cached[k].used) return &c->cached[k];
    for (u32 n = 0; n < c->flying; n++) {
        ConstantLine *line = &c->flight[(c->first + n) % MOST_CONSTANT_LINES];
        if (line->key == key) return line;
    }
    return NULL;
}

/* When a line is in the cache, that is wanted at a time. The caches behind it send one line after the other.
 * A line that is on its way is not asked for again. */
static double line_arrives(Sm *s, u64 key, double now) {
    const Machine *m = s->m;
    Constants *c = &s->constants;
    ConstantLine *line = found(c, key);
    if (!line) {
        RAISE(c->fetch_free, now);
        c->fetch_free += m->constant_line_clocks;
        if (c->flying == MOST_CONSTANT_LINES) return c->fetch_free + m->constant_miss_latency;
        line = &c->flight[(c->first + c->flying++) % MOST_CONSTANT_LINES];
        *line = (ConstantLine){.key = key, .ready = c->fetch_free + m->constant_miss_latency};
    }
    line->used = ++c->uses;
    return line->ready;
}

/* When a load is done. The SM serves loads in order. It reads the words that the lanes want one after the
 * other, once their lines are in the cache, and waits for the lines of a few loads at a time. */
double load_constants(Sm *s, Scheduler *x, const Step *step, const u64 *line) {
    const Machine *m = s->m;
    Constants *c = &s->constants;
    const u32 words = m->free_memory && step->clocks ? 1 : step->clocks;
    if (!words) return (double)s->now + m->constant_latency; /* the guards of all lanes were false */
    RAISE(c->free, s->now);
    RAISE(x->constants_free, s->now);
    double from = GREATER(c->free, x->constants_free), here;
    u32 missing = 0;
    settle(c, from);
    for (u32 k = 0; k < step->lines && !m->free_memory; k++) missing += !found(c, line[k] & ~COMMON);
    double *const earlier = &c->waited[c->waits % WAITING_CONSTANT_LOADS];
    if (missing) {
        RAISE(c->free, *earlier);
        RAISE(from, *earlier);
        settle(c, from);
        c->waits++;
    }
    here = from;
    for (u32 k = 0; k < step->lines && !m->free_memory; k++) {
        const double at = line_arrives(s, line[k] & ~COMMON, from);
        RAISE(here, at);
    }
    if (missing) *earlier = here;
    c->free += words * m->constant_clocks;
    x->constants_free += GREATER(words * m->constant_clocks_of_one, m->least_constant_clocks);
    s->r->constant_busy += words * m->constant_clocks;
    return here + m->constant_latency + (words - 1) * m->constant_word_latency;
}
