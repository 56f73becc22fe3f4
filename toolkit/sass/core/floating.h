/* Single precision. Products and sums round once; nothing is contracted or reassociated
 * (-ffp-contract=off). */
#pragma once

#include <fenv.h>
#include <string.h>

#include "lanes.h"

/* Ins.flags of arithmetic; those of comparisons and conversions stand beside these. */
enum { FTZ = 1, SATURATE = 2, ROUND_SHIFT = 4 /* bits 4-5 */ };
enum { ROUND_NEAREST = 0, ROUND_DOWN, ROUND_UP, ROUND_ZERO };

#define NAN32 0x7fffffffu /* what every single-precision operation that yields a NaN yields */
#define SIGN32 0x80000000u
#define INF32 0x7f800000u
#define ONE32 0x3f800000u

static inline u32 rounding(u32 flags) { return flags >> ROUND_SHIFT & 3; }

/* Ahead of operations that have no rounding of their own in C. Code between two of these must be
 * in a function that is not inlined: a compiler knows nothing of the rounding mode. */
static inline void set_rounding(u32 mode) {
    static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    fesetround(modes[mode]);
}

/* A call of such a function in a rounding mode. */
#define ROUNDED(mode, call)                          \
    do {                                             \
        if (mode) set_rounding(mode);                \
        call;                                        \
        if (mode) set_rounding(ROUND_NEAREST);       \
    } while (0)

static inline u32 canonical(float x) { return x == x ? as_bits(x) : NAN32; }
/* A subnormal number becomes a zero of its sign. */
static inline u32 flushed32(u32 x) { return x & (x & INF32 ? ~0u : SIGN32); }

static inline void flush_lanes(u32 *x) {
    IVDEP FOR_LANES x[l] = flushed32(x[l]);
}

static inline void copy_lanes(u32 *to, const u32 *from) { memcpy(to, from, LANES * sizeof *to); }

/* A copy of source k, whose subnormal numbers are zeros with FTZ. */
static inline void copy_source(const Warp *w, const Ins *i, int k, u32 *x) {
    SOURCE(a, k);
    copy_lanes(x, a);
    if (i->flags & FTZ) flush_lanes(x);
}

typedef void Lanes(const u32 *a, const u32 *b, const u32 *c, u32 *r);

/* The greatest, or with `low` the least, of a and b: +0 above -0, a number before a NaN. */
static inline u32 extreme(u32 a, u32 b, const int low) {
    const float x = as_float(a), y = as_float(b);
    u32 r = (low ? x < y : x > y) ? a : b;
    r = x == y ? (low ? a | b : a & b) : r;
    return canonical(as_float(y == y ? r : a));
}

/* Flags for reading the register pair of a packed operation: Ins.aux, four bits for each source. */
enum { SWAP_PAIR = 1, SPREAD = 2, NEGATE_LOW = 4, NEGATE_HIGH = 8 };

/* Ins.flags of minima and maxima: a NaN wins; the sign is the product of the signs. */
enum { NAN_WINS = 0x100, XOR_SIGN = 0x200 };

static inline int is_nan32(u32 x) { return (x & ~SIGN32) > INF32; }

Lanes FADD_lanes, FMUL_lanes, FFMA_lanes;

void modified_lanes(Lanes *f, u32 flags, u32 (*x)[LANES], u32 *r);
void extreme_lanes(u32 *a, u32 *b, u32 low, u32 flags, u32 *r);
