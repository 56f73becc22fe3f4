/* Matrices of 8 x 8 halves that a warp keeps in a register of each lane: LDSM, STSM and MOVM.
 *
 * Lane l has two neighbours of row l / 4: those of columns 2 (l % 4) and 2 (l % 4) + 1. Transposed, it has
 * those of column l / 4 in rows 2 (l % 4) and 2 (l % 4) + 1 (PTX ISA, ldmatrix). The row of matrix k is in
 * shared memory at the address of lane 8 k + row.
 */
#pragma once

#include "core.h"

enum { SIDE = 8, HALF_BYTES = 2, ROW_BYTES = SIDE * HALF_BYTES, ROW_WORDS = ROW_BYTES / 4, MOST_MATRICES = 4 };
/* Ins.flags, beside those of memory.h. Ins.aux: the number of matrices. A widened matrix has 8 rows of 16 elements
 * of 4 or 6 bits without gaps, and padding up to 16 bytes: lane l gets those of row l / 4 and columns 4 (l % 4) to
 * 4 (l % 4) + 3, each in the low bits of a byte. */
enum { TRANSPOSED = 16, WIDENED_FOURS = 32, WIDENED_SIXES = 64, BYTES_OF_WORD = 4 };

/* Bits of an element of a widened matrix; 0 of another. */
static inline u32 widened_bits(const Ins *i) {
    return i->flags & WIDENED_FOURS ? 4 : i->flags & WIDENED_SIXES ? 6 : 0;
}

/* The lanes whose addresses count. */
static inline u32 row_lanes(const Ins *i) { return i->aux == MOST_MATRICES ? FULL : (1u << SIDE * i->aux) - 1; }

/* Row and column of half h of what lane l holds. */
static inline u32 row_of(u32 l, u32 h, int transposed) { return transposed ? 2 * (l % 4) + h : l / 4; }
static inline u32 column_of(u32 l, u32 h, int transposed) { return transposed ? l / 4 : 2 * (l % 4) + h; }

/* The lane that holds an element. */
static inline u32 holder_of(u32 row, u32 column, int transposed) {
    return transposed ? 4 * column + row / 2 : 4 * row + column / 2;
}

int is_whole_warp(Worker *c, const Warp *w, u32 m);
void load_matrices(Worker *c, Warp *w, const Ins *i, u32 rows);
void gather_rows(const Warp *w, const Ins *i, u32 *x);
void store_matrices(Worker *c, Warp *w, const Ins *i, u32 rows);
