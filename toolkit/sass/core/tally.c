#include "tally.h"

#include "costs.h"
#include "grow.h"
#include "lanes.h"

enum { FIRST_ATOMIC_LINES = 1 << 8, PAIR_BYTES = 16 };

void free_tally(Tally *t) {
    if (!t) return;
    free(t->lines); free(t);
}

Tally *new_tally(u64 most) {
    Tally *t;
    if (!ZEROS(t, 1)) return NULL;
    if (ZEROS(t->lines, FIRST_ATOMIC_LINES)) {
        t->slots = FIRST_ATOMIC_LINES;
        t->most = most;
        return t;
    }
    free_tally(t);
    return NULL;
}

static AtomicLine *slot_of(AtomicLine *lines, u64 slots, u64 line) {
    u64 at = (line * 0x9e3779b97f4a7c15ull >> 32) & (slots - 1);
    while (lines[at].requests && lines[at].line != line) at = (at + 1) & (slots - 1);
    return &lines[at];
}

/* Twice the slots, if that is allowed and there is memory. */
static void grow_tally(Tally *t) {
    AtomicLine *larger;
    if (t->slots >= 2 * t->most || !ZEROS(larger, 2 * t->slots)) return;
    for (u64 k = 0; k < t->slots; k++)
        if (t->lines[k].requests) *slot_of(larger, 2 * t->slots, t->lines[k].line) = t->lines[k];
    free(t->lines);
    t->lines = larger;
    t->slots *= 2;
}

/* What is known of a line. A new line gets a slot if half of them are free. */
static AtomicLine *line_of(Tally *t, u64 line, u32 place) {
    AtomicLine *found = slot_of(t->lines, t->slots, line);
    if (found->requests) return found;
    if (2 * t->used >= t->slots) {
        grow_tally(t);
        if (2 * t->used >= t->slots) return &t->others;
        found = slot_of(t->lines, t->slots, line);
    }
    t->used++;
    found->line = line;
    found->first = place;
    return found;
}

/* The operations of the lanes in m, whose addresses are in one sector. */
static void tally_sector(AtomicLine *line, const u64 *a, u32 width, u32 m, int adds_floats, int is_double) {
    const u32 sector = (u32)(a[__builtin_ctz(m)] / SECTOR % SECTORS_OF_LINE);
    u32 places = 0, most = 0;
    for (u32 left = m; left; places++) {
        const u64 first = a[__builtin_ctz(left)];
        const u32 same = LANE_BITS(a[l] == first) & left;
        if (popcount(same) > most) most = popcount(same);
        left &= ~same;
    }
    const u32 bytes = places * width;
    u32 wholes = bytes >= SECTOR;
    if (is_double && bytes > PAIR_BYTES) wholes = 2; /* two doubles at a time */
    line->wholes += wholes;
    line->parts += most - (wholes > 0);
    if (adds_floats) line->additions[sector] += most;
}

/* An atomic request of the lanes in m to global memory, after `place` others of its warp. */
void tally_request(Tally *t, const u64 *a, u32 width, u32 m, u32 place, int adds_floats, int is_double) {
    while (m) {
        const u64 at = a[__builtin_ctz(m)] / LINE;
        u32 of_line = LANE_BITS(a[l] / LINE == at) & m;
        m &= ~of_line;
        AtomicLine *line = line_of(t, at, place);
        line->requests++;
        if (place < line->first) line->first = place;
        if (place > line->last) line->last = place;
        while (of_line) {
            const u64 sector = a[__builtin_ctz(of_line)] / SECTOR;
            const u32 same = LANE_BITS(a[l] / SECTOR == sector) & of_line;
            of_line &= ~same;
            tally_sector(line, a, width, same, adds_floats, is_double);
        }
    }
}

/* A request of the lanes in m to store to global memory, by instruction `pc` and after `place` others of its warp,
 * if it is for one line alone. */
void tally_stores(Tally *t, const u64 *a, u32 m, u32 place, u32 pc) {
    const u64 at = a[__builtin_ctz(m)] / LINE;
    u32 sectors = 0;
    if (LANE_BITS(a[l] / LINE != at) & m) return;
    FOR_LANES_OF(m) sectors |= 1u << a[l] % LINE / SECTOR;
    AtomicLine *line = line_of(t, at, place);
    line->requests++;
    if (place < line->first) line->first = place;
    if (place > line->last) line->last = place;
    line->parts += popcount(sectors);
    line->pc = pc;
}
