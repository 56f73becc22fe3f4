/* Matrix products of a warpgroup: HGMMA, IGMMA, QGMMA and BGMMA (PTX ISA, wgmma.mma_async).
 *
 * Four warps multiply a matrix A of 64 rows by a matrix B of N columns; each of them holds 16 rows of A and of
 * the sums. A row of A and a column of B are 32 bytes long, whatever their type. B is in shared memory, A too
 * or in registers. A descriptor says where the 16-byte pieces of a matrix are:
 *
 *     bits 0-13 start, 16-29 leading offset, 32-45 stride offset, each in units of 16 bytes;
 *     bits 49-51 base offset, 62-63 swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes
 *
 * The products are made when the instruction is executed: what hardware reads later is the same in a kernel
 * without races, which `check` finds (check_gmma.h).
 */
#pragma once

#include "core.h"

enum { WARPS_OF_GROUP = 4, GMMA_ROWS = 16, GMMA_BYTES = 32, GMMA_WORDS = GMMA_BYTES / 4, MOST_GMMA_COLUMNS = 256 };

/* Ins.flags of GMMA. s[0]: the sums so far, s[1]: A in registers, s[2]: the uniform registers with both
 * descriptors; ps[0]: whether the sums so far count; width: N. */
enum {
    GMMA_REGISTERS = 1,   /* A is in registers */
    GMMA_TRANSPOSED_A = 2, GMMA_TRANSPOSED_B = 4, GMMA_NEGATED_A = 8, GMMA_NEGATED_B = 16,
    GMMA_SATURATES = 32,
    GMMA_COMMITS = 64,    /* the products so far are a group */
    GMMA_EMPTY = 128,     /* it multiplies nothing */
    GMMA_NO_VALUES = 256  /* the sums are not needed: they are not computed */
};

/* Ins.aux of GMMA: the type of elements of A, of B from bit 4 on, and of the sums from bit 8 on. */
enum { GMMA_F16 = 0, GMMA_BF16, GMMA_TF32, GMMA_E4M3, GMMA_E5M2, GMMA_S8, GMMA_U8, GMMA_B1 };
enum { GMMA_TYPE_BITS = 4, GMMA_TYPE_MASK = 15, GMMA_HALF_SUMS = 1 << 8 };

/* A descriptor, in bytes; `swizzle` is 0, 32, 64 or 128. */
typedef struct { u32 start, leading, stride, base, swizzle; } MatrixDescriptor;

MatrixDescriptor descriptor_at(const Warp *w, const Ins *i, u32 is_b);

/* The bytes of shared memory that piece n of a matrix has, n below `count`: 16 bytes at `address` are 8 rows of
 * one k where it is transposed, else half a row; of 16 bytes without a swizzle, and with one alike, for it moves
 * whole pieces. */
typedef void OnPiece(void *context, u32 n, u32 address);
void each_piece(const MatrixDescriptor *m, int transposed, u32 first_row, u32 rows, OnPiece *act, void *context);

int wait_for_products(Worker *c, Warp *w, const Ins *i, u32 m);
void check_products(Worker *c, const Block *b);

/* Registers of the sums. */
static inline u32 gmma_sums(const Ins *i) { return i->flags & GMMA_EMPTY ? 0 : i->width / (i->aux & GMMA_HALF_SUMS ? 4 : 2); }
static inline u32 gmma_registers_of_a(const Ins *i) { return i->flags & GMMA_REGISTERS ? 4 : 0; }
