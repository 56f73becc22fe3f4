#include "matrix.h"

#include <string.h>

#include "lanes.h"
#include "memory.h"
#include "operations.h"
#include "requests.h"
#include "space.h"

/* All lanes of a warp execute these operations together; else they are undefined (PTX ISA, ldmatrix), and
 * the launch ends. */
int is_whole_warp(Worker *c, const Warp *w, u32 m) {
    if (m == FULL) return 1;
    stop(c, PARTIAL_WARP);
    blame(c, w, m);
    c->fault.waiting = popcount(m);
    return 0;
}

/* Find the rows in shared memory and count the request. Every matrix takes a wavefront for each of its rows
 * in the fullest group of four banks, and matrices share none, loaded or stored: so do the parts of an
 * STS.128 (tests/toolkit/sass/test_matrix.py says where it was measured). */
static int find_rows(Worker *c, Warp *w, const Ins *i, u32 rows, int is_store, u8 **at) {
    u64 a[LANES];
    addresses(w, i, rows, a);
    own_shared(c, a);
    if (!resolve(c, w, i, a, rows, SPACE_SHARED, is_store, at)) return 0;
    count_request(c, i, a, rows, SPACE_SHARED, 1);
    if (c->requests) note_request(c, w, a, rows, SPACE_SHARED);
    return 1;
}

static u32 half_at(const u8 *row, u32 column) {
    u16 x;
    memcpy(&x, row + column * HALF_BYTES, sizeof x);
    return x;
}

/* What lane l gets of a row of elements of `bits` each. */
static u32 widened(const u8 *row, u32 bits, u32 l) {
    u32 x = 0;
    for (u32 n = 0; n < BYTES_OF_WORD; n++) {
        const u32 at = bits * (BYTES_OF_WORD * (l % 4) + n);
        const u32 both = row[at / 8] | (u32)row[(at + bits - 1) / 8] << 8;
        x |= (both >> at % 8 & ((1u << bits) - 1)) << 8 * n;
    }
    return x;
}

/* Load the matrices; `rows` are the lanes whose rows are there, the others read as zeros. */
void load_matrices(Worker *c, Warp *w, const Ins *i, u32 rows) {
    static const u8 nothing[ROW_BYTES];
    const int transposed = i->flags & TRANSPOSED;
    u8 *at[LANES];
    if (!find_rows(c, w, i, rows, 0, at)) return;
    const u32 bits = widened_bits(i);
    if (!bits) check_written(c, w, i, at, rows, rows);
    else FOR_LANES_OF(rows) { /* padding may stay unwritten */
        check_bytes(c, w, i, (int)l, c->block, (u32)(at[l] - c->block->shared), bits * ROW_BYTES / 8);
    }
    u32 *const d = DESTINATION;
    for (u32 k = 0; k < i->aux; k++)
        for (u32 l = 0; l < LANES; l++) {
            u32 x = 0;
            if (bits) {
                const u32 lane = SIDE * k + l / 4;
                d[k * LANES + l] = widened(rows >> lane & 1 ? at[lane] : nothing, bits, l);
                continue;
            }
            for (u32 h = 0; h < 2; h++) {
                const u32 lane = SIDE * k + row_of(l, h, transposed);
                x |= half_at(rows >> lane & 1 ? at[lane] : nothing, column_of(l, h, transposed)) << 16 * h;
            }
            d[k * LANES + l] = x;
        }
}

/* The rows as their lanes store them: word n of the row of lane l is x[n * LANES + l]. */
void gather_rows(const Warp *w, const Ins *i, u32 *x) {
    const int transposed = i->flags & TRANSPOSED;
    const u32 *const held = RAW(2);
    for (u32 l = 0; l < SIDE * i->aux; l++)
        for (u32 n = 0; n < ROW_WORDS; n++) {
            x[n * LANES + l] = 0;
            for (u32 h = 0; h < 2; h++) {
                const u32 row = l % SIDE, column = 2 * n + h, from = holder_of(row, column, transposed);
                const u32 pair = held[l / SIDE * LANES + from];
                x[n * LANES + l] |= (pair >> 16 * ((transposed ? row : column) % 2) & 0xffff) << 16 * h;
            }
        }
}

void store_matrices(Worker *c, Warp *w, const Ins *i, u32 rows) {
    u8 *at[LANES];
    u32 x[ROW_WORDS * LANES];
    if (!find_rows(c, w, i, rows, 1, at)) return;
    gather_rows(w, i, x);
    mark_written(c, i, at, rows);
    c->changes++;
    FOR_LANES_OF(rows)
        for (u32 n = 0; n < ROW_WORDS; n++) memcpy(at[l] + n * sizeof *x, &x[n * LANES + l], sizeof *x);
}

OPERATION(MATRIX_LOAD) {
    if (is_whole_warp(core, w, m)) load_matrices(core, w, i, row_lanes(i));
}

OPERATION(MATRIX_STORE) {
    if (is_whole_warp(core, w, m)) store_matrices(core, w, i, row_lanes(i));
}

/* MOVM: d is the matrix in s[0], transposed. */
OPERATION(MATRIX_TRANSPOSE) {
    if (!is_whole_warp(core, w, m)) return;
    SOURCE(a, 0);
    u32 x[LANES];
    for (u32 l = 0; l < LANES; l++) {
        const u32 low = a[holder_of(row_of(l, 0, 1), column_of(l, 0, 1), 0)],
                  high = a[holder_of(row_of(l, 1, 1), column_of(l, 1, 1), 0)], shift = 16 * (l / 4 % 2);
        x[l] = (low >> shift & 0xffff) | (high >> shift & 0xffff) << 16;
    }
    memcpy(DESTINATION, x, sizeof x);
}

/* Elements of 4 bits, 8 in each lane, four lanes to a row of 32; d[0] has columns 0 to 15 of it as bytes, 4 in
 * each lane, and the register behind it the others, as a product of bytes reads them. */
OPERATION(MATRIX_WIDEN) {
    enum { LANES_OF_ROW = 4, NIBBLES_OF_WORD = 8, COLUMNS_OF_WORD = 16 };
    if (!is_whole_warp(core, w, m)) return;
    SOURCE(a, 0);
    u32 x[2][LANES];
    for (u32 half = 0; half < 2; half++)
        for (u32 l = 0; l < LANES; l++) {
            x[half][l] = 0;
            for (u32 n = 0; n < BYTES_OF_WORD; n++) {
                const u32 column = COLUMNS_OF_WORD * half + BYTES_OF_WORD * (l % LANES_OF_ROW) + n;
                const u32 from = a[l / LANES_OF_ROW * LANES_OF_ROW + column / NIBBLES_OF_WORD];
                x[half][l] |= (from >> 4 * (column % NIBBLES_OF_WORD) & 15) << 8 * n;
            }
        }
    memcpy(DESTINATION, x, sizeof x);
}
