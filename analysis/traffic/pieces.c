/* Accesses to lines, divided into accesses to pieces of lines (analysis/traffic/pieces.py). */
#include "traffic.h"
#include <stdlib.h>

enum { READ, WRITE, ATOMIC }; /* kinds of accesses, as toolkit/sass/core/trace.h numbers them */
enum { ALL_SECTORS = 15 }; /* mask of a line */
enum { WHOLE = 0 };        /* Division.divided of a line that is one piece */

/* Accesses, and arrays for the results: one entry for each sector of an access, two if it is atomic. */
typedef struct {
    const u64 *line;
    const u8 *mask, *kind; /* `mask`: sectors of the line */
    u64 count;
    u32 *row;              /* number of the access to the line */
    i64 *piece;            /* number of the piece, in order of address */
    u8 *sectors;           /* sectors of the access to the piece; 0 if it is atomic */
    u8 *size;              /* sectors of the piece */
    u8 *is_write;
    volatile u32 is_cancelled; /* set by another thread */
} Lines;

/* Division of the line of one access: its first piece, and the sectors that are pieces, or WHOLE. */
typedef struct { i64 piece; u8 divided; } Division;

static int divide(const Lines *l, Division *of, u64 *keys, u32 *order) {
    for (u64 k = 0; k < l->count; k++) keys[k] = l->line[k];
    if (sort_keys(keys, l->count, order) || l->is_cancelled) return FAILED;
    i64 piece = 0;
    for (u64 begin = 0, end; begin < l->count; begin = end) {
        u32 any = 0, all = ALL_SECTORS;
        for (end = begin; end < l->count && keys[end] == keys[begin]; end++) {
            any |= l->mask[order[end]];
            all &= l->mask[order[end]];
        }
        const u8 divided = any == all ? WHOLE : (u8)any;
        for (u64 k = begin; k < end; k++) of[order[k]] = (Division){piece, divided};
        piece += divided ? __builtin_popcount(any) : 1;
    }
    return 0;
}

/* Appends the accesses to one sector of divided lines, or to lines that are one piece. Returns the new
 * number of accesses. */
static u64 add(const Lines *l, const Division *of, u64 used, u32 sector, int is_divided) {
    for (u64 k = 0; k < l->count; k++) {
        if ((of[k].divided != WHOLE) != is_divided || !(l->mask[k] >> sector & 1 || !is_divided)) continue;
        const u8 size = is_divided ? 1 : (u8)__builtin_popcount(l->mask[k]);
        l->row[used] = (u32)k;
        l->piece[used] = of[k].piece + (is_divided ? __builtin_popcount(of[k].divided & ((1u << sector) - 1)) : 0);
        l->size[used] = size;
        l->sectors[used] = l->kind[k] == ATOMIC ? 0 : size;
        l->is_write[used++] = l->kind[k] == WRITE;
    }
    return used;
}

/* Divides accesses to lines into accesses to pieces. Returns their number, or FAILED without memory or if
 * cancelled. Lines that are one piece come first, then the first sectors of other lines, the second ones,
 * and so on, each in the order of the accesses. Atomic accesses are reads, and at the end also writes. */
EXPORT i64 divide_lines(const Lines *l) {
    Division *of = malloc(l->count * sizeof *of + 1);
    u64 *keys = malloc(l->count * sizeof *keys + 1);
    u32 *order = malloc(l->count * sizeof *order + 1);
    i64 result = FAILED;
    if (of && keys && order && !divide(l, of, keys, order)) {
        u64 used = add(l, of, 0, 0, 0);
        for (u32 sector = 0; sector < SECTORS; sector++) used = add(l, of, used, sector, 1);
        const u64 once = used;
        for (u64 k = 0; k < once; k++) {
            if (l->kind[l->row[k]] != ATOMIC) continue;
            l->row[used] = l->row[k];
            l->piece[used] = l->piece[k];
            l->size[used] = l->size[k];
            l->sectors[used] = 0;
            l->is_write[used++] = 1;
        }
        result = (i64)used;
    }
    free(of);
    free(keys);
    free(order);
    return result;
}
