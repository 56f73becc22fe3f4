#include "l2.h"

#include <string.h>

enum { PHASES = 1 << 16 };
#define STORED_LOOKUPS 1.65 /* of a line, in L2 of two partitions: counted by Nsight Compute */
#define LN2 0.6931471805599453

/* Occupy DRAM for `clocks` from now on. */
static void ask_dram(Sm *s, double now, double clocks) {
    if (!s->dram.work) s->dram.free = now + s->m->dram_start;
    RAISE(s->dram.free, now);
    s->dram.free += clocks;
    s->dram.work += clocks;
}

/* Write what DRAM sends to L2, in turn with stores. */
static void fill(Sm *s, double bytes) {
    const double clocks = bytes / s->m->write_bytes_per_clock;
    s->l2.write_free += clocks;
    s->r->write_clocks += clocks;
}

/* Look up lines of L2, in turn with what this SM has asked for before. */
static void look_up(Sm *s, double now, double lines) {
    const double clocks = lines * s->m->lookup_clocks;
    RAISE(s->l2.lookups_free, now);
    s->l2.lookups_free += clocks;
    s->r->lookup_clocks += clocks;
}

/* Arrival time of the last sector of a mask whose sectors are requested from L2 now. `share`: bytes of DRAM work
 * per byte. `filled`: fraction of the bytes that come from DRAM; L2 writes them at the rate of stores. */
static double fetch_share(Sm *s, u64 sectors, double now, double share, double filled) {
    const Machine *m = s->m;
    const double bytes = SECTOR * __builtin_popcountll(sectors);
    RAISE(s->l2.free, now);
    s->l2.free += GREATER(bytes, m->l2_line_bytes) / m->l2_bytes_per_clock;
    s->r->l2_read_bytes += bytes;
    look_up(s, now, bytes > SECTOR ? m->merged_share : 1); /* one fetch serves several SMs only if it is of several sectors */
    if (share > 0) ask_dram(s, now, bytes * share / m->dram_bytes_per_clock);
    if (filled > 0) {
        RAISE(s->l2.write_free, now);
        fill(s, bytes * filled);
    }
    return GREATER(s->l2.free, s->l2.lookups_free) + m->l2_latency;
}

/* Arrival time of data behind the queued requests of DRAM and what L2 has to write, and after a wait. `at`:
 * arrival time without DRAM. */
double behind_dram(const Sm *s, double now, double at, double wait) {
    const double free = GREATER(s->dram.free, s->l2.write_free);
    const double later = GREATER(free, now) + s->m->l2_latency;
    return GREATER(at, later) + wait;
}

double fetch(Sm *s, u64 sectors, double now) {
    return fetch_share(s, sectors, now, s->m->dram_share, s->m->filled_share);
}

/* The same of sectors that are in L2. */
double fetch_again(Sm *s, u64 sectors, double now) { return fetch_share(s, sectors, now, 0, 0); }

/* The same of sectors of local memory that DRAM has. */
double fetch_from_dram(Sm *s, u64 sectors, double now) { return fetch_share(s, sectors, now, 1, 1); }

/* DRAM has written sectors that are stored again. L2 takes as long for whole ones as for those that are written in
 * part. */
void write_to_dram(Sm *s, u64 sectors, int is_whole, double now) {
    const double more = s->m->part_bytes - SECTOR;
    if (is_whole) fill(s, GREATER(more, 0) * __builtin_popcountll(sectors));
    ask_dram(s, now, SECTOR * __builtin_popcountll(sectors) / s->m->dram_bytes_per_clock);
}

/* Pseudorandom bits. */
static u64 hash_of(u64 x) {
    x += 0x9e3779b97f4a7c15ull;
    x ^= x >> 30; x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27; x *= 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Pseudorandom number from 0 to 1. */
double spread(u64 x) { return (hash_of(x) >> 11) / 9007199254740992.0; }

/* Clocks that a block waits for a line of DRAM: a minimum plus an exponentially distributed part. The
 * last of several lines decides, so a block waits longer for two lines than for one. */
double dram_wait(const Machine *m, const Block *b, u64 number) {
    const u64 x = hash_of(number * PHASES + b->phases % PHASES) | 1;
    const u32 zeros = __builtin_clzll(x);
    const double rest = (x << zeros << 1) / 18446744073709551616.0; /* below the leading one bit */
    return m->dram_latency + m->dram_scatter * LN2 * (zeros + 1 - rest);
}

/* True for the share of the requests to L2 that waits for DRAM. */
u8 waits_for_dram(Sm *s) {
    s->dram.due += s->m->waiting_share;
    const u8 waits = s->dram.due >= 1;
    s->dram.due -= waits;
    return waits;
}

/* Clocks that the path to L2 takes for at most `stored` bytes in some lines. If their sectors hold more bytes,
 * they are written partially, which takes longer. */
static double clocks_of_store(const Machine *m, u32 lines, const u64 *line, u32 stored) {
    const int is_part = SECTOR * sectors_of(line, lines) > stored;
    const int fills = !is_part && stored != WHOLE;
    const double of_sector = is_part ? m->part_bytes : SECTOR;
    const double least = fills ? m->whole_line_bytes : m->store_line_bytes;
    double bytes = 0;
    for (u32 k = 0; k < lines; k++) {
        const double of_line = of_sector * __builtin_popcount(sectors_in(line[k]));
        bytes += GREATER(of_line, least);
    }
    return bytes / m->write_bytes_per_clock;
}

/* An earlier store of the same warp to parts of sectors of the same lines that still waits to be sent, and has
 * not been pushed out by stores to other lines; NULL if there is none. */
static SentStore *merging_store(L2 *l2, u64 age, u32 lines, const u64 *line, double now) {
    u32 room = MOST_MERGED_LINES;
    for (u32 k = 0; k < MERGING_STORES; k++) {
        SentStore *x = &l2->sent[(l2->newest + MERGING_STORES - k) % MERGING_STORES];
        if (x->until <= now || x->lines > room) return NULL;
        room -= x->lines;
        if (x->age != age || x->lines != lines || x->stored >= SECTOR * sectors_of(x->line, lines)) continue;
        u32 n = 0;
        while (n < lines && (x->line[n] ^ line[n]) >> SECTORS_OF_LINE == 0) n++;
        if (n == lines) return x;
    }
    return NULL;
}

/* Store at most `stored` bytes to some lines. `age`: of the warp. */
void store_lines(Sm *s, u64 age, u32 lines, const u64 *line, u32 stored, double now) {
    const Machine *m = s->m;
    const u32 sectors = sectors_of(line, lines);
    RAISE(s->l2.write_free, now);
    SentStore *x = stored == WHOLE ? NULL : merging_store(&s->l2, age, lines, line, now);
    const int is_merged = x != NULL;
    double clocks = 0;
    if (is_merged) {
        for (u32 k = 0; k < lines; k++) x->line[k] |= line[k];
        x->stored += stored;
        clocks = clocks_of_store(m, lines, x->line, x->stored) - x->clocks;
        x->clocks += clocks;
    } else {
        clocks = clocks_of_store(m, lines, line, stored);
        x = &s->l2.sent[s->l2.newest = (s->l2.newest + 1) % MERGING_STORES];
        *x = (SentStore){.age = age, .lines = lines, .stored = stored, .clocks = clocks};
        if (lines <= MOST_MERGED_LINES) memcpy(x->line, line, lines * sizeof *line);
    }
    s->l2.write_free += clocks;
    if (!is_merged) look_up(s, now, STORED_LOOKUPS * lines);
    RAISE(s->l2.write_free, s->l2.lookups_free);
    fill(s, SECTOR * sectors * m->stores_filled_share);
    x->until = s->l2.write_free;
    if (!(lines && line[0] & LOCAL)) s->l2.stored = s->l2.write_free;
    s->r->l2_write_bytes += SECTOR * sectors;
    s->r->write_clocks += clocks;
    const double share = lines && line[0] & LOCAL ? 0 : m->dram_write_share;
    if (share > 0) /* as much is evicted from L2 as enters; loads wait behind it */
        ask_dram(s, now, SECTOR * sectors * share / m->dram_bytes_per_clock);
}
