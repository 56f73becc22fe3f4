#include "l1.h"

#include "l2.h"

#define NO_LINE 0xffffffffu

static u32 bucket_of(const Sm *s, u64 key) {
    return (u32)((key * 0x9e3779b97f4a7c15ull) >> 40) & (s->buckets - 1);
}

static void unlink_line(Sm *s, u32 k) {
    const Line *x = &s->cache[k];
    s->cache[x->newer].older = x->older;
    s->cache[x->older].newer = x->newer;
}

static void make_newest(Sm *s, u32 k) {
    const u32 end = s->m->l1_lines, newest = s->cache[end].older;
    s->cache[k].newer = end;
    s->cache[k].older = newest;
    s->cache[newest].newer = s->cache[end].older = k;
}

static Line *line_of(Sm *s, u64 key) {
    u32 *head = &s->bucket[bucket_of(s, key)], k = *head;
    while (k != NO_LINE && s->cache[k].key != key) k = s->cache[k].next;
    if (k != NO_LINE) {
        unlink_line(s, k);
    } else {
        if (s->cached < s->m->l1_lines) {
            k = s->cached++;
        } else {
            k = s->cache[s->m->l1_lines].newer;
            unlink_line(s, k);
            u32 *at = &s->bucket[bucket_of(s, s->cache[k].key)];
            while (*at != k) at = &s->cache[*at].next;
            *at = s->cache[k].next;
        }
        s->cache[k] = (Line){.key = key, .next = *head};
        *head = k;
    }
    make_newest(s, k);
    return &s->cache[k];
}

/* Sectors of a line that are in L2 if those of `mask` are: DRAM transfers pairs of sectors. */
static u32 with_neighbour(u32 mask) { return mask | (mask & 5) << 1 | (mask & 10) >> 1; }

/* When all lines of a load have arrived. The sectors of a line arrive together. The latency of hits
 * counts from `from`, when the request would have been issued without queueing. */
double load_lines(Sm *s, const Request *q, double from, double now, int *has_missed) {
    const Machine *m = s->m;
    double here = from + m->l1_latency;
    Block *b = &s->blocks[q->block];
    const double least = GREATER(s->l2_free, now) + m->miss_clocks;
    const u64 missed = s->r->l1_misses;
    if (!b->has_barriers) b->decided = 0;
    for (u32 k = 0; k < q->step->lines; k++) {
        const u64 line = q->line[k];
        const u32 wanted = line & 15;
        if (line & FLAG) {
            const double at = fetch(s, 1, now) - m->l2_latency + m->atomic_latency;
            if (!b->flags_at) b->flags_at = now + m->flag_clocks;
            RAISE(here, at);
            RAISE(here, b->flags_at);
            continue;
        }
        const u64 number = (line & ~(COMMON | IN_L2)) >> 4;
        Line *entry = line_of(s, line & COMMON ? number : number | q->space);
        const u32 missing = wanted & ~entry->mask;
        if (missing) {
            double at = fetch(s, missing, now);
            s->r->l1_misses += __builtin_popcount(missing);
            /* all misses of a block between two barriers wait for DRAM, or none does */
            if (!b->decided && !(line & IN_L2)) {
                b->decided = 1;
                b->phases++;
                b->waits = waits_for_dram(s);
            }
            if (b->waits && !(line & IN_L2) && missing & ~with_neighbour(entry->mask)) {
                at = behind_dram(s, now, at, dram_wait(m, b, number));
                /* the random part of a wait grows with the load of DRAM: a warp waits for the last
                 * of its lines, and the next block for the last warp of this one */
                const double busy = s->dram_work / (now + 1), full = busy < 1 ? busy : 1;
                at += m->dram_spread * full * full * spread(s->r->l1_misses + entry->key);
            }
            for (u32 n = 0; n < 4; n++)
                if (missing >> n & 1) entry->ready[n] = at;
            entry->mask |= missing;
        }
        for (u32 n = 0; n < 4; n++) {
            if (!(wanted >> n & 1)) continue;
            const double at = entry->ready[n] + (missing >> n & 1 ? 0 : m->l1_latency);
            RAISE(here, at);
        }
    }
    *has_missed = s->r->l1_misses > missed;
    if (*has_missed) RAISE(s->l2_free, least);
    return here;
}
