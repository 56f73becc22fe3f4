#include "l1.h"

#include <string.h>

#include "l2.h"

#define NO_LINE 0xffffffffu

/* Set up an L1 without lines. */
void set_up_l1(L1 *l1) {
    memset(l1->bucket, 0xff, l1->buckets * sizeof *l1->bucket); /* NO_LINE */
    for (u32 end = l1->capacity; end < l1->capacity + l1->sets; end++)
        l1->line[end].newer = l1->line[end].older = end;
}

static u32 bucket_of(const L1 *l1, u64 key) {
    return (u32)((key * 0x9e3779b97f4a7c15ull) >> 40) & (l1->buckets - 1);
}

/* The set of a line: hashed, as lines of memory in a row do not fill all sets alike. */
static u32 set_of(const L1 *l1, u64 key) {
    key = (key ^ key >> 15) * 0xbf58476d1ce4e5b9ull;
    key = (key ^ key >> 31) * 0x94d049bb133111ebull;
    return (u32)(key >> 60) & (l1->sets - 1);
}

static void unlink_line(L1 *l1, u32 k) {
    const Line *x = &l1->line[k];
    l1->line[x->newer].older = x->older;
    l1->line[x->older].newer = x->newer;
}

static void make_newest(L1 *l1, u32 k) {
    const u32 end = l1->capacity + l1->line[k].set, newest = l1->line[end].older;
    l1->line[k].newer = end;
    l1->line[k].older = newest;
    l1->line[newest].newer = l1->line[end].older = k;
}

static Evicted *place_of(const L1 *l1, u64 key) {
    return &l1->evicted[(u32)((key * 0x9e3779b97f4a7c15ull) >> 40) & (EVICTED - 1)];
}

/* Remove the least recently used line of a set from its bucket, and use its place. */
static u32 evict(L1 *l1, u32 set) {
    const u32 k = l1->line[l1->capacity + set].newer;
    const Line *old = &l1->line[k];
    *place_of(l1, old->key) = (Evicted){.key = old->key, .block = old->block, .fetched = old->fetched,
                                        .mask = old->mask | old->known};
    unlink_line(l1, k);
    u32 *at = &l1->bucket[bucket_of(l1, l1->line[k].key)];
    while (*at != k) at = &l1->line[*at].next;
    *at = l1->line[k].next;
    return k;
}

static Line *line_of(L1 *l1, u64 key) {
    u32 *head = &l1->bucket[bucket_of(l1, key)], k = *head;
    while (k != NO_LINE && l1->line[k].key != key) k = l1->line[k].next;
    if (k != NO_LINE) {
        unlink_line(l1, k);
    } else {
        const u32 set = set_of(l1, key), room = l1->capacity / l1->sets;
        k = l1->count[set] < room ? set * room + l1->count[set]++ : evict(l1, set);
        const Evicted *before = place_of(l1, key);
        const int is_known = before->mask && before->key == key;
        l1->line[k] = (Line){.key = key, .next = *head, .set = (u8)set, .block = is_known ? before->block : 0,
                             .fetched = is_known ? before->fetched : 0,
                             .known = is_known ? before->mask : 0};
        *head = k;
    }
    make_newest(l1, k);
    return &l1->line[k];
}

/* Place of a line of a request in L1. */
static Line *entry_of(Sm *s, const Request *q, u64 line) {
    const u64 number = (line & ~(COMMON | IN_L2)) >> SECTORS_OF_LINE;
    return line_of(&s->l1, line & COMMON ? number : number | q->space);
}

/* Bytes that the SM has read from L2 and written to it. */
static u64 moved_bytes(const Sm *s) { return s->r->l2_read_bytes + s->r->l2_write_bytes; }

/* True if L2 holds these sectors because this block has fetched them before: L1 has evicted them since, and
 * all SMs together have not moved as many bytes as L2 keeps. Traffic counts what a block reads once, so DRAM
 * has no share of this. */
static int is_still_in_l2(const Sm *s, const Line *entry, const Block *b, u32 missing) {
    const u64 moved = moved_bytes(s) - entry->fetched;
    return !(missing & ~entry->known) && entry->block == b->age && moved <= s->m->l2_reach_bytes;
}

/* True for a share of the accesses to a line of local memory that grows with what the SM has moved since the last
 * one: from 0 where that is `from` bytes to all where it is `all`. */
static int has_left_l2(const Sm *s, const Line *entry, const Block *b, double from, double all) {
    double bytes = s->m->local_bytes; /* it moves those that it moves several times no farther than all of them */
    if (entry->block == b->age) LOWER(bytes, moved_bytes(s) - entry->fetched);
    return bytes > from && spread(moved_bytes(s) + entry->key) * (all - from) < bytes - from;
}

/* Note that a block has accessed a line at L2. */
static void note_access(const Sm *s, Line *entry, const Block *b) {
    if (entry->block != b->age) entry->known = 0;
    entry->block = b->age;
    entry->fetched = moved_bytes(s);
}

/* Keep the lines that a request stores to. They evict others, and later loads hit their sectors that are stored
 * as a whole: `stored` bytes fill them. */
void keep_stored_lines(Sm *s, const Request *q, u32 stored, double now) {
    const int fills = stored >= SECTOR * sectors_of(q->line, q->step->lines);
    const Machine *m = s->m;
    const Block *b = &s->blocks[q->block];
    for (u32 k = 0; k < q->step->lines; k++) {
        Line *entry = entry_of(s, q, q->line[k]);
        if (q->line[k] & LOCAL) {
            if (has_left_l2(s, entry, b, m->local_written_from, m->local_written_all))
                write_to_dram(s, sectors_in(q->line[k]), fills, now);
            note_access(s, entry, b);
        }
        const u32 missing = fills ? sectors_in(q->line[k]) & ~entry->mask : 0;
        for (u32 n = 0; n < SECTORS_OF_LINE; n++)
            if (missing >> n & 1) entry->ready[n] = now;
        entry->mask |= missing;
    }
}

/* Sectors of a line that are in L2 if those of `mask` are: DRAM transfers pairs of sectors. */
static u32 with_neighbour(u32 mask) { return mask | (mask & 5) << 1 | (mask & 10) >> 1; }

/* Clocks in which L1 looks up the tags of the lines of a request: the most of a bank, of which each looks up a line
 * per clock. */
u32 tag_clocks(const Request *q) {
    u32 lines[TAG_BANKS] = {0}, most = 0;
    for (u32 k = 0; k < q->step->lines; k++) {
        u32 *of_bank = &lines[tag_bank((q->line[k] & ~(COMMON | IN_L2)) >> SECTORS_OF_LINE)];
        if (++*of_bank > most) most = *of_bank;
    }
    return most;
}

/* When all lines of a load have arrived. The sectors of a line arrive together. The latency of hits
 * counts from `from`, when the request would have been issued without queueing. `tags`: clocks in which L1 looks up
 * the lines again that it has missed, as `tag_clocks`; 0 if there are none. */
double load_lines(Sm *s, const Request *q, double from, double now, u32 *tags) {
    const Machine *m = s->m;
    double here = from + m->l1_latency;
    Block *b = &s->blocks[q->block];
    const int always_misses = never_hits(instruction_at(s, q->step->pc));
    const double least = GREATER(s->l2.free, now) + m->miss_clocks;
    u32 missed[TAG_BANKS] = {0};
    if (!b->has_barriers) b->decided = 0;
    for (u32 k = 0; k < q->step->lines; k++) {
        const u64 line = q->line[k];
        const u32 wanted = sectors_in(line);
        if (line & FLAG) {
            const double at = fetch(s, 1, now) - m->l2_latency + m->atomic_latency;
            if (!b->flags_at) b->flags_at = now + m->flag_clocks;
            RAISE(here, at);
            RAISE(here, b->flags_at);
            continue;
        }
        const u64 number = (line & ~(COMMON | IN_L2)) >> SECTORS_OF_LINE;
        Line *entry = entry_of(s, q, line);
        const u32 missing = always_misses ? wanted : wanted & ~entry->mask;
        const int is_again = missing && (!(missing & ~entry->mask) || is_still_in_l2(s, entry, b, missing));
        const int is_in_l2 = is_again || (line & (IN_L2 | LOCAL)) != 0;
        const int has_left = missing && line & LOCAL && has_left_l2(s, entry, b, m->local_read_from, m->local_read_all);
        if (missing) {
            double at = has_left ? fetch_from_dram(s, missing, now)
                : is_again || line & LOCAL ? fetch_again(s, missing, now) : fetch(s, missing, now);
            note_access(s, entry, b);
            u32 *of_bank = &missed[tag_bank(number)];
            if (++*of_bank > *tags) *tags = *of_bank;
            s->r->l1_misses += __builtin_popcount(missing);
            /* all misses of a block between two barriers wait for DRAM, or none does */
            if (!b->decided && !is_in_l2) {
                b->decided = 1;
                b->phases++;
                b->waits = waits_for_dram(s);
            }
            if (has_left || (b->waits && !is_in_l2 && missing & ~with_neighbour(entry->mask))) {
                at = behind_dram(s, now, at, dram_wait(m, b, number));
                /* the random part of a wait grows with the load of DRAM: a warp waits for the last
                 * of its lines, and the next block for the last warp of this one */
                const double busy = s->dram.work / (now + 1), full = busy < 1 ? busy : 1;
                at += m->dram_spread * full * full * spread(s->r->l1_misses + entry->key);
            }
            for (u32 n = 0; n < SECTORS_OF_LINE; n++)
                if (missing >> n & 1) entry->ready[n] = at;
            entry->mask |= missing;
        }
        for (u32 n = 0; n < SECTORS_OF_LINE; n++) {
            if (!(wanted >> n & 1)) continue;
            const double at = entry->ready[n] + (missing >> n & 1 ? 0 : m->l1_latency);
            RAISE(here, at);
        }
    }
    if (*tags) RAISE(s->l2.free, least);
    return here;
}
