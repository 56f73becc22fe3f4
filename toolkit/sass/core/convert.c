#include "convert.h"

#include <math.h>
#include <string.h>

#include "core.h"
#include "double.h"
#include "floating.h"
#include "half.h"
#include "lanes.h"
#include "operations.h"

/* Source 0 as double precision, which holds all of them. */
static void source_double(const Warp *w, const Ins *i, double *x) {
    u32 bits[LANES];
    if (i->flags & SOURCE_F64) {
        SOURCE64(a, 0);
        IVDEP FOR_LANES x[l] = as_double(a[l]);
        return;
    }
    if (i->flags & SOURCE_HALF) {
        source_half(w, i, 0, 0, bits);
        widen_lanes(bits, i->flags);
    } else {
        copy_source(w, i, 0, bits);
    }
    IVDEP FOR_LANES x[l] = (double)as_float(bits[l]);
}

static NOINLINE void round_lanes(double *x, u32 mode) {
    switch (mode) {
    case ROUND_DOWN: IVDEP FOR_LANES x[l] = floor(x[l]); return;
    case ROUND_UP: IVDEP FOR_LANES x[l] = ceil(x[l]); return;
    case ROUND_ZERO: IVDEP FOR_LANES x[l] = trunc(x[l]); return;
    default: IVDEP FOR_LANES x[l] = rint(x[l]); return;
    }
}

/* A whole number to an integer of `bits`; beyond its range the nearest that it has. */
static inline u64 integer_of(double x, u32 bits, u32 is_signed, u32 nan_to_zero) {
    const double half = (double)(1ull << (bits - 1)); /* of the range */
    if (x != x) return nan_to_zero ? 0 : 1ull << (bits - 1);
    if (is_signed) {
        if (x >= half) return ~0ull >> (65 - bits);
        return x < -half ? ~0ull << (bits - 1) : (u64)(i64)x;
    }
    if (x >= 2 * half) return ~0ull >> (64 - bits);
    return x > 0 ? (u64)x : 0;
}

OPERATION(F2I) {
    const u32 bits = i->aux & BITS_MASK;
    double x[LANES];
    u64 r[LANES];
    source_double(w, i, x);
    round_lanes(x, rounding(i->flags));
    FOR_LANES r[l] = integer_of(x[l], bits, i->aux & IS_SIGNED, i->flags & NAN_TO_ZERO);
    RESULT((u32)r[l]);
    if (bits == 64) RESULT_WORD(1, (u32)(r[l] >> 32));
}

/* Source 0 as an integer of 64 bits, with its sign where it has one. */
static void source_integer(const Warp *w, const Ins *i, u64 *x) {
    const u32 bits = i->aux & BITS_MASK;
    if (bits == 64) {
        SOURCE64(a, 0);
        memcpy(x, a, LANES * sizeof *x);
        return;
    }
    SOURCE(a, 0);
    FOR_LANES {
        const u64 at_top = (u64)(a[l] >> 8 * (i->aux >> FIRST_BYTE_SHIFT & 3)) << (64 - bits);
        x[l] = i->aux & IS_SIGNED ? (u64)((i64)at_top >> (64 - bits)) : at_top >> (64 - bits);
    }
}

/* Conversions by the processor in its rounding mode. */
#define CONVERSION(NAME, type, Bits, bits_of_it, PUT)                                   \
    static NOINLINE void NAME##_lanes(const u64 *x, u32 is_signed, Bits *r) {           \
        FOR_LANES r[l] = bits_of_it(is_signed ? (type)(i64)x[l] : (type)x[l]);          \
    }                                                                                   \
    OPERATION(NAME) {                                                                   \
        const u32 mode = rounding(i->flags);                                            \
        u64 x[LANES];                                                                   \
        Bits r[LANES];                                                                  \
        source_integer(w, i, x);                                                        \
        ROUNDED(mode, NAME##_lanes(x, i->aux & IS_SIGNED, r));                          \
        PUT(r[l]);                                                                      \
    }
CONVERSION(I2F, float, u32, as_bits, RESULT)
CONVERSION(I2D, double, u64, as_bits64, RESULT64)

/* To a half, in the low half of the result. */
OPERATION(I2H) {
    u64 x[LANES];
    u32 r[LANES];
    source_integer(w, i, x);
    FOR_LANES {
        const u32 negative = i->aux & IS_SIGNED && x[l] >> 63;
        u64 magnitude = negative ? 0 - x[l] : x[l];
        /* 53 bits hold it but for whether the rest is 0, which the last of them says */
        if (magnitude >> 53) magnitude = (magnitude & ~0x7ffull) | (magnitude & 0x7ff ? 0x800 : 0);
        r[l] = rounded_half(negative ? -(double)magnitude : (double)magnitude, i->flags);
    }
    RESULT(r[l]);
}

static NOINLINE void narrow_to_f32(const double *x, u32 *r) {
    IVDEP FOR_LANES r[l] = as_bits((float)x[l]);
}

OPERATION(F64_TO_F32) {
    const u32 mode = rounding(i->flags);
    double x[LANES];
    u32 r[LANES];
    source_double(w, i, x);
    ROUNDED(mode, narrow_to_f32(x, r));
    RESULT(r[l]); /* a NaN keeps its sign and the upper bits of its fraction */
}

OPERATION(TO_F64) {
    double x[LANES];
    u64 r[LANES];
    source_double(w, i, x);
    IVDEP FOR_LANES r[l] = as_bits64(x[l]);
    RESULT64(r[l]);
}

/* To a half, in the low half of the result. */
OPERATION(TO_HALF) {
    double x[LANES];
    u32 r[LANES];
    source_double(w, i, x);
    FOR_LANES r[l] = rounded_half(x[l], i->flags);
    RESULT(r[l]);
}

static void packed_half(const Warp *w, const Ins *i, int k, u32 *r) {
    const u32 flags = i->flags, infinity = flags & BF16 ? 0x7f80u : 0x7c00u;
    copy_source(w, i, k, r);
    if (rounding(flags)) {
        FOR_LANES r[l] = rounded_half((double)as_float(r[l]), flags);
    } else {
        narrow_lanes(r, flags);
    }
    if (flags & FINITE)
        FOR_LANES r[l] -= (r[l] & 0x7fffu) == infinity;
    if (flags & RELU)
        FOR_LANES r[l] = r[l] & 0x8000u ? 0 : r[l];
}

/* Source 0 in the high half of the result, source 1 in the low half. */
OPERATION(PACK_HALVES) {
    u32 high[LANES], low[LANES];
    packed_half(w, i, 0, high);
    packed_half(w, i, 1, low);
    RESULT(high[l] << 16 | low[l]);
}

/* To a whole number of the same format. */
OPERATION(FRND) {
    double x[LANES];
    u64 wide[LANES];
    u32 r[LANES];
    source_double(w, i, x);
    round_lanes(x, rounding(i->flags));
    if (i->flags & SOURCE_F64) {
        FOR_LANES {
            wide[l] = as_bits64(x[l]);
            if (is_nan64(wide[l])) wide[l] |= QUIET64;
        }
        RESULT64(wide[l]);
        return;
    }
    narrow_to_f32(x, r);
    if (i->flags & SOURCE_HALF) narrow_lanes(r, i->flags);
    else
        FOR_LANES r[l] = canonical(as_float(r[l]));
    RESULT(r[l]);
}
