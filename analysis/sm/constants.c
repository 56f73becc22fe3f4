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

/* The line that a scheduler requested has arrived, in place of the least recently used one. */
static void settle_uniform(UniformConstants *u, u64 now) {
    if (!u->wanted || u->ready > now) return;
    u32 oldest = 0;
    for (u32 k = 1; k < UNIFORM_LINES; k++)
        if (u->cached[k].used < u->cached[oldest].used) oldest = k;
    u->evicts |= u->cached[oldest].used > 0;
    u->cached[oldest] = (ConstantLine){.key = u->wanted, .used = ++u->uses};
    u->last = u->wanted;
    u->owner = u->asking;
    u->until = now + BACK_TO_BACK;
    u->wanted = 0;
}

/* True if others evict the lines of a warp: its scheduler has more warps, of several blocks, than keep in step, it is
 * not one of the first, and the table does not fit. */
static int loses_lines(const Sm *s, const Scheduler *x, u32 warp) {
    return x->uniform.evicts && s->m->slots > BLOCKS_IN_STEP && warp / SCHEDULERS >= WARPS_IN_STEP;
}

/* True if a scheduler has the line that a warp loads from. Of a warp that loses lines, only loads that follow each
 * other at once find the line of the one before. */
static int has_uniform(const Sm *s, const Scheduler *x, u32 warp, u64 key, u64 now) {
    const UniformConstants *u = &x->uniform;
    if (loses_lines(s, x, warp)) return u->owner == warp && u->last == key && u->until >= now;
    for (u32 k = 0; k < UNIFORM_LINES; k++)
        if (u->cached[k].key == key && u->cached[k].used) return 1;
    return 0;
}

/* When a warp can try again to load a constant at an address that is the same for all lanes; 0: now, as its scheduler
 * has the line. A scheduler fetches one line at a time. */
u64 uniform_constant_at(Sm *s, Scheduler *x, u32 warp, const Step *step, const u64 *line) {
    UniformConstants *u = &x->uniform;
    const Machine *m = s->m;
    if (!step->lines || m->free_memory || !m->constant_miss_latency) return 0;
    const u64 key = line[0] & ~COMMON, now = s->now;
    settle_uniform(u, now);
    if (has_uniform(s, x, warp, key, now)) {
        for (u32 k = 0; k < UNIFORM_LINES; k++)
            if (u->cached[k].key == key) u->cached[k].used = ++u->uses;
        if (u->owner == warp && u->last == key) u->until = now + BACK_TO_BACK;
        return 0;
    }
    if (!u->wanted) {
        const u32 clocks = loses_lines(s, x, warp) ? EVICTED_CLOCKS : m->constant_latency + m->constant_miss_latency;
        u->wanted = key;
        u->asking = warp;
        u->ready = now + clocks;
        s->r->constant_busy += (double)clocks / SCHEDULERS;
    }
    return u->ready;
}
