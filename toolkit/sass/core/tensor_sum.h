/* Arithmetic of tensor cores: sums of products as hardware rounds them, bit for bit.
 *
 * D = A * B + C for a matrix A of `rows` x `length`, B of `length` x `columns`, C and D of `rows` x `columns`
 * elements. `length` is K of the instruction. The caller brings elements from registers or shared memory:
 *
 *     A  row by row:    element k of row r at [r * length + k]
 *     B  column pairs:  element k of column j at [k * columns + j]; `columns` is a multiple of COLUMNS
 *     C  row by row:    [r * columns + j]; the sums replace it
 *
 * One element of D is a chain of blocks of L products each, k ascending. One block (docs/tensor_cores.md says
 * which results on hardware confirm it):
 *
 *   1. Products are exact: significands are multiplied and not normalised, exponents are added. A subnormal
 *      operand keeps the least exponent.
 *   2. E is the largest exponent of the products and of C, at least `floor`. What is zero does not count.
 *   3. The magnitude of each product and of C is cut off below 2^(E - F).
 *   4. Their sum is exact and is rounded once: FP32 towards zero to `kept` fraction bits, FP16 to nearest even.
 *   5. A result of zero is +0, a NaN is 0x7fffffff or 0x7fff. Too large a result is Inf.
 */
#pragma once

#include "core.h"

enum { COLUMNS = 8, MOST_LENGTH = 256 };

/* Formats of elements of A and B. */
enum {
    TENSOR_F16, TENSOR_BF16, TENSOR_TF32, TENSOR_E4M3, TENSOR_E5M2, TENSOR_E3M2, TENSOR_E2M3, TENSOR_E2M1,
    TENSOR_FORMATS
};

typedef struct {
    u32 a, b;      /* TENSOR_* */
    u32 half;      /* C and D are FP16, in the low 16 bits of a word; else FP32 */
    u32 block;     /* L, products of a block: 4, 8, 16 or 32 */
    i32 fraction;  /* F, at most 25 where a block has 32 products, else 26 */
    i32 floor;     /* of E */
    u32 kept;      /* fraction bits of an FP32 result: 23, or 13 of FP8 on Ada and Hopper */
} TensorRule;

/* Least E of FP32 and FP16 sums, measured on an H100. */
enum { TENSOR_FLOOR = -133, TENSOR_FLOOR_HALF = -21 };

/* Decode `count` elements, each in the low bits of a word: TF32 in a whole one, whose low 13 bits are dropped, E2M1
 * in bits 2 to 5 of a byte, as E3M2 and E2M3 are in bits 0 to 5 (PTX ISA, mma .kind::f8f6f4).
 * An exponent e and a significand s are the number s * 2^(e - fraction bits of the format); s is whole.
 * Returns 1 where one of them is Inf or NaN. */
int tensor_decode(u32 format, const u32 *x, u32 count, i32 *e, float *s);

/* sums = A * B + sums. `special`: what tensor_decode returned for A, or for B. */
void tensor_sums(const TensorRule *rule, u32 rows, u32 columns, u32 length, const i32 *a_e, const float *a_s,
                 const i32 *b_e, const float *b_s, int special, u32 *sums);

/* A scale of a block of elements: `significand` * 2^(exponent - 3). That of NaN is negative. */
typedef struct { i32 exponent, significand; } TensorScale;

/* UE4M3, whose sign bit does not count, where `has_fraction`, else UE8M0: 2^(byte - 127), 255 is NaN. */
TensorScale tensor_scale(u32 byte, int has_fraction);

/* Multiply `count` decoded elements, `step` apart, by a scale of UE8M0. Returns 1 where it is NaN. */
int tensor_scale_elements(TensorScale scale, u32 count, u32 step, i32 *e);

/* sums = A * B + sums of E2M1 elements, each in the low bits of a word, in one block whose terms are the scaled
 * sums of SCALED_TERM products and C. A sum of a term is exact; the exponent of a term is that of its two scales,
 * also where the sum is zero. The rest is as above, with F = `fraction`. The scales of row r are a_scales[r *
 * scales] and on, those of column j b_scales[j * scales] and on. */
enum { SCALED_TERM = 16, SCALED_TERMS = 4, SCALED_LENGTH = SCALED_TERM * SCALED_TERMS };
void tensor_scaled_sums(u32 rows, i32 fraction, u32 scales, const u32 *a, const TensorScale *a_scales, const u32 *b,
                        const TensorScale *b_scales, u32 *sums);

/* Whole numbers, of at most 16 bits each. Sums wrap at 32 bits; `saturate`: they are clamped once, at the end. */
void tensor_integer_sums(u32 rows, u32 columns, u32 length, const i32 *a, const i32 *b, int saturate, u32 *sums);

/* Bits, 32 of them in each element: the ones of a AND b, or of a XOR b, are counted. */
void tensor_bit_sums(u32 rows, u32 columns, u32 length, const u32 *a, const u32 *b, int differ, u32 *sums);

/* Double precision: a chain of multiply-adds, rounded as `mode` says (ROUND_* of floating.h). A NaN of B comes
 * before the sum's, and that before one of A. */
void tensor_double_sums(u32 rows, u32 columns, u32 length, const u64 *a, const u64 *b, u32 mode, u64 *sums);
