/* Half precision: pairs of binary16 or bfloat16 numbers, the second of a pair in the upper half. */
#pragma once

#include "floating.h"

#define NAN16 0x7fffu /* of both formats */

/* Ins.flags beside FTZ and SATURATE: the format is bfloat16; what is negative becomes 0; the
 * result is the low half, as a single-precision number. */
enum { BF16 = 0x400, RELU = 0x800, TO_F32 = 0x1000 };
/* Flags for reading a source, four bits of Ins.aux for each from SWIZZLE_SHIFT on: the halves of the two
 * numbers, and negation of the low one; or a single-precision number, truncated. */
enum { LOW_IS_H1 = 1, HIGH_IS_H0 = 2, LOW_NEGATED = 4, FROM_F32 = 8, SWIZZLE_SHIFT = 8 };

/* condition ? a : b of values that are both computed, which keeps a loop free of branches. */
static inline u32 either(int condition, u32 a, u32 b) {
    return b ^ ((a ^ b) & (0u - (u32)condition));
}

static inline u32 widened_half(u32 h) {
    const u32 magnitude = h & 0x7fffu, exponent = h & 0x7c00u;
    const u32 normal = (magnitude << 13) + either(exponent == 0x7c00u, 224u << 23, 112u << 23);
    const u32 subnormal = as_bits((float)(i32)magnitude * 0x1p-24f);
    return (h & 0x8000u) << 16 | either(exponent != 0, normal, subnormal);
}

/* To the nearest, ties to even. */
static inline u32 narrowed_half(u32 x) {
    const u32 magnitude = x & ~SIGN32;
    const u32 normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    const u32 subnormal = as_bits(as_float(magnitude) + 0.5f) - as_bits(0.5f); /* ulp: 2^-24 */
    u32 h = either(magnitude < 0x38800000u, subnormal, normal);
    h = either(magnitude >= 0x477ff000u, 0x7c00u, h);
    return either(magnitude > INF32, NAN16, (x >> 16 & 0x8000u) | h);
}

static inline u32 narrowed_bfloat(u32 x) {
    return (x & ~SIGN32) > INF32 ? NAN16 : (x + 0x7fffu + (x >> 16 & 1)) >> 16;
}

/* Between single precision and the format that the flags say. */
static inline u32 widened(u32 h, u32 flags) { return flags & BF16 ? h << 16 : widened_half(h); }
static inline u32 narrowed(u32 x, u32 flags) { return flags & BF16 ? narrowed_bfloat(x) : narrowed_half(x); }

void widen_lanes(u32 *x, u32 flags);
void narrow_lanes(u32 *x, u32 flags);
u32 rounded_half(double x, u32 flags);
void source_half(const Warp *w, const Ins *i, int k, int high, u32 *x);
