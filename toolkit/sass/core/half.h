/* Half precision: pairs of binary16 or bfloat16 numbers, the second of a pair in the upper half. */
#ifndef HALF_H
#define HALF_H

#include "core.h"

/* Ins.flags beside FTZ and SATURATE: the format is bfloat16; what is negative becomes 0; the
 * result is the low half, as a single-precision number. */
enum { BF16 = 0x400, RELU = 0x800, TO_F32 = 0x1000 };
/* How a source is read, four bits of Ins.aux for each from SWIZZLE_SHIFT on: which halves the two
 * numbers are, whether the low one is negated; or it is a single-precision number, truncated. */
enum { LOW_IS_H1 = 1, HIGH_IS_H0 = 2, LOW_NEGATED = 4, FROM_F32 = 8, SWIZZLE_SHIFT = 8 };

/* condition ? a : b of values that are both computed, which keeps a loop free of branches. */
static inline u32 either(int condition, u32 a, u32 b) {
    return b ^ ((a ^ b) & (0u - (u32)condition));
}

void widen_lanes(u32 *x, u32 flags);
void narrow_lanes(u32 *x, u32 flags);
u32 rounded_half(double x, u32 flags);
void source_half(const Warp *w, const Ins *i, int k, int high, u32 *x);

#endif
