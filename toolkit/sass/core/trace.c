#include "trace.h"

#include <stdlib.h>
#include <string.h>

#include "costs.h"
#include "grow.h"
#include "lanes.h"

enum { FIRST_SLOTS = 1 << 12 };

void free_trace(Trace *t) {
    if (!t) return;
    free(t->accesses); free(t->seen); free(t);
}

Trace *new_trace(u64 most) {
    Trace *t;
    if (ZEROS(t, 1) && ZEROS(t->seen, FIRST_SLOTS) && GROWN(t->accesses, t->room, 1)) {
        t->most = most;
        t->slots = FIRST_SLOTS;
        t->epoch = 1;
        return t;
    }
    free_trace(t);
    return NULL;
}

static u64 scattered(u64 x) {
    x *= 0x9e3779b97f4a7c15ull;
    return x ^ x >> 29;
}

static Seen *seen_of(Seen *seen, u64 slots, u32 epoch, u64 key) {
    u64 at = scattered(key) & (slots - 1);
    while (seen[at].epoch == epoch && seen[at].key != key) at = (at + 1) & (slots - 1);
    return &seen[at];
}

/* Twice the slots; false where there is no memory. */
static int grow_seen(Trace *t) {
    Seen *larger;
    if (!ZEROS(larger, 2 * t->slots)) return 0;
    for (u64 k = 0; k < t->slots; k++)
        if (t->seen[k].epoch == t->epoch)
            *seen_of(larger, 2 * t->slots, t->epoch, t->seen[k].key) = t->seen[k];
    free(t->seen);
    t->seen = larger;
    t->slots *= 2;
    return 1;
}

/* The sectors of `mask` of a line that are new to `key` in this block; all are known from then on. */
static u32 fresh_to(Trace *t, u64 key, u64 line, u32 mask) {
    const u32 shift = (u32)(line % LINES_OF_ENTRY) * SECTORS_OF_LINE;
    key |= line / LINES_OF_ENTRY << KEYS_OF_LINE;
    if (2 * t->used >= t->slots && !grow_seen(t)) { t->lost = 1; return 0; }
    Seen *seen = seen_of(t->seen, t->slots, t->epoch, key);
    if (seen->epoch != t->epoch) {
        *seen = (Seen){.key = key, .epoch = t->epoch};
        t->used++;
    }
    const u32 fresh = mask & ~(seen->mask >> shift);
    seen->mask |= fresh << shift;
    return fresh;
}

/* True for one of 2^spread neighbouring lines, another one in the next 256 lines; what is chosen
 * for a larger spread is chosen for a smaller one. */
static int is_chosen(u64 line, u32 spread) {
    u64 sum = 0;
    for (u64 rest = line; rest; rest >>= 8) sum += rest;
    return (sum & ((1ull << spread) - 1)) == 0;
}

/* Forgets half of the lines, until there is room for one more access. */
static void thin_out(Trace *t) {
    while (t->count == t->most && t->spread < MOST_SPREAD) {
        u64 kept = 0;
        t->spread++;
        for (u64 k = 0; k < t->count; k++)
            if (is_chosen(t->accesses[k].line, t->spread)) t->accesses[kept++] = t->accesses[k];
        t->count = kept;
    }
}

static void note_sectors(Worker *c, const Warp *w, u64 line, u32 mask, u32 kind) {
    Trace *t = c->trace;
    if (kind == TRACE_READ) t->read += popcount(mask);
    if (!is_chosen(line, t->spread)) return;
    thin_out(t);
    if (!is_chosen(line, t->spread)) return;
    t->lost |= t->count == t->most || !GROWN(t->accesses, t->room, t->count + 1);
    if (t->lost) return;
    t->accesses[t->count++] = (TracedAccess){
        .line = line, .block = c->block->index, .step = w->steps,
        .warp = (u16)w->index, .mask = (u8)mask, .kind = (u8)kind,
    };
}

static void trace_line(Worker *c, const Warp *w, u64 line, u32 mask, u32 kind) {
    Trace *t = c->trace;
    const u64 key = c->block->tag << TAG_SHIFT;
    if (t->lost) return;
    /* stores of one warp to a sector can be merged, those of several cannot */
    if (kind == TRACE_WRITE)
        t->written += popcount(fresh_to(t, key | OF_A_WARP | w->index, line, mask));
    const u32 fresh = fresh_to(t, key | kind, line, mask);
    if (fresh) note_sectors(c, w, line, fresh, kind);
}

/* Sectors that L1 does not keep: each time they are asked for, they reach L2. */
void trace_past_l1(Worker *c, const Warp *w, u64 line, u32 mask, u32 kind) {
    Trace *t = c->trace;
    if (t->lost) return;
    if (kind == TRACE_WRITE) t->written += popcount(mask);
    note_sectors(c, w, line, mask, kind);
}

/* True if a warp repeats a request for many lines, whose sectors are known then. */
static int is_repeated(Worker *c, const Warp *w, const u64 *a, u32 width, u32 m, u32 kind) {
    const u64 first = a[__builtin_ctz(m)] / LINE, end = a[LANES - 1 - __builtin_clz(m)] / LINE;
    if (end - first + MANY_LINES <= 2 * MANY_LINES) return 0;
    WideRequest *last = &c->trace->last[c->pc % WIDE_REQUESTS];
    u64 differs = last->tag ^ c->block->tag;
    differs |= (last->epoch ^ c->trace->epoch) | (last->lanes ^ m) | (last->warp ^ w->index) | (last->width ^ width) |
               (last->kind ^ kind);
    FOR_LANES differs |= (last->a[l] ^ a[l]) & (0ull - (m >> l & 1));
    if (!differs) return 1;
    *last = (WideRequest){.tag = c->block->tag, .epoch = c->trace->epoch, .lanes = m, .warp = w->index, .width = width,
                          .kind = kind};
    memcpy(last->a, a, sizeof last->a);
    return 0;
}

/* A request of the lanes in m to global memory; neighbours in one line are looked up once. */
void trace_request(Worker *c, const Warp *w, const u64 *a, u32 width, u32 m, u32 kind) {
    u64 line = ~0ull;
    u32 mask = 0;
    if (!m || is_repeated(c, w, a, width, m, kind)) return;
    FOR_LANES_OF(m) {
        if (a[l] / LINE != line) {
            if (mask) trace_line(c, w, line, mask, kind);
            line = a[l] / LINE;
            mask = 0;
        }
        const u32 first = (u32)(a[l] % LINE) / SECTOR;
        const u32 last = (u32)((a[l] + width - 1) % LINE) / SECTOR;
        for (u32 s = first; s <= last; s++) mask |= 1u << s;
    }
    if (mask) trace_line(c, w, line, mask, kind);
}
