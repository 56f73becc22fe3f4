/* Matrix products of a warp: A of 8 or 16 rows, B and C of 8 columns, in registers of its lanes.
 *
 * Fragments (PTX ISA, mma): lane l holds rows l / 4 and, of 16 rows, 8 + l / 4. A register of A has consecutive
 * elements of a row, and four lanes share 4 of them in turn; B likewise, of a column. Of C it has columns
 * 2 (l % 4) and the next one.
 */
#pragma once

#include "tensor_sum.h"

enum { MOST_ROWS = 16 };

/* Ins.aux: the formats of A and B, TENSOR_* or these, then what follows. */
enum { MMA_S8 = TENSOR_FORMATS, MMA_U8, MMA_S4, MMA_U4, MMA_FORMATS };
enum {
    MMA_B_SHIFT = 4, MMA_HALF = 1 << 8, MMA_SATURATES = 1 << 9, MMA_DIFFER = 1 << 10, MMA_SHORT = 1 << 11,
    MMA_BLOCK_SHIFT = 12, MMA_FRACTION_SHIFT = 20, MMA_FRACTION_MASK = 63, MMA_SCALES_SHIFT = 26,
    MMA_SCALES_MASK = 7, MMA_SCALE_HAS_FRACTION = 1 << 29
};
/* Ins.imm: a byte for the registers of A, of B, of C, and of D; of rows; and K, of bits in words. */
enum { MMA_OF_A = 0, MMA_OF_B = 8, MMA_OF_C = 16, MMA_OF_D = 24, MMA_ROWS = 32, MMA_LENGTH = 40 };

/* HMMA.884: four products of 8 x 4 and 4 x 8 elements, one for each quad of lanes and the quad 16 lanes behind it.
 * An instruction makes two registers of each lane, those of step 0 to 3 (PTX ISA, mma.m8n8k4). Beside the bits
 * of MMA_HALF and of the fraction, its aux says how A and B lie, the type of C, and the step. */
enum { QUADS = 4, LANES_OF_QUADS = 8, QUAD_LENGTH = 4, QUAD_REGISTERS = 2 };
enum { QUAD_COLUMNS_OF_A = 1, QUAD_ROWS_OF_B = 2, QUAD_HALVES_OF_C = 4, QUAD_STEP_SHIFT = 4 };

/* Scales of blocks (MMA_SCALED, MMA_SCALED_FOURS): a row of A and a column of B have MMA_SCALES of them, bytes of a
 * register beside each other. Source 3 is the register of A, 4 that of B, and 5 says where they are (PTX ISA, mma,
 * block scaling): from which byte on, and in which lanes of each four. Two lanes have the scales of rows l / 4 and
 * 8 + l / 4 of A, one lane has those of a column of B. */
enum { MMA_A_BYTE = 0, MMA_A_LANES = 2, MMA_B_BYTE = 3, MMA_B_LANE = 5 };

static inline u32 mma_field(const Ins *i, u32 shift) { return (u32)(i->imm >> shift) & 0xff; }

/* Ins.flags, but of MMA_DOUBLE: the sums are not needed, and not computed. */
enum { MMA_NO_VALUES = 256 };

int is_mma(const Ins *i);
