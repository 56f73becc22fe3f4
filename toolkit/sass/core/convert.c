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
    if (x != x) return nan_to_zero ? 0 : 1ull << (bits - 1);
    if (is_signed) {
        const double beyond = ldexp(1, (int)bits - 1);
        if (x >= beyond) return ~0ull >> (65 - bits);
        if (x < -beyond) return ~0ull << (bits - 1);
        return (u64)(i64)x;
    }
    if (x >= ldexp(1, (int)bits)) return ~0ull >> (64 - bits);
    return x > 0 ? (u64)x : 0;
}

OPERATION(F2I) {
    const u32 bits = i->aux & BITS_MASK, nan_to_zero = i->flags & NAN_TO_ZERO;
    double x[LANES];
    source_double(w, i, x);
    round_lanes(x, rounding(i->flags));
    if (bits == 64) {
        u64 r[LANES];
        FOR_LANES
            r[l] = integer_of(x[l], 64, i->aux & IS_SIGNED, nan_to_zero);
        RESULT64(r[l]);
        return;
    }
    const u64 far = nan_to_zero ? 0 : 1ull << (bits - 1);
    const double low = i->aux & IS_SIGNED ? -(double)(1ull << (bits - 1)) : 0;
    const double high = (double)((1ull << (bits - (i->aux & IS_SIGNED ? 1 : 0))) - 1);
    u32 r[LANES];
    FOR_LANES {
        const double inside = x[l] < low ? low : x[l] > high ? high : x[l];
        r[l] = x[l] == x[l] ? (u32)(i64)inside : (u32)far;
    }
    RESULT(r[l]);
}

/* Source 0 as an integer: its magnitude, and whether it is negative. */
static void source_integer(const Warp *w, const Ins *i, u64 *magnitude, u32 *negative) {
    const u32 bits = i->aux & BITS_MASK;
    u64 room[LANES];
    u32 room32[LANES];
    if (bits == 64) {
        const u64 *x = source64(w, i, 0, room);
        memcpy(magnitude, x, LANES * sizeof *x);
    } else {
        const u32 *x = source(w, i, 0, room32);
        FOR_LANES magnitude[l] = x[l] >> 8 * (i->aux >> FIRST_BYTE_SHIFT & 3);
    }
    FOR_LANES {
        const u64 x = magnitude[l] << (64 - bits);
        negative[l] = i->aux & IS_SIGNED && x >> 63;
        magnitude[l] = (negative[l] ? 0 - (u64)((i64)x >> (64 - bits)) : x >> (64 - bits));
    }
}

/* Conversions by the processor in its rounding mode. */
#define CONVERT(NAME, type, Bits, bits_of_it)                                            \
    static NOINLINE void NAME(const u64 *magnitude, const u32 *negative, Bits *r) {      \
        FOR_LANES {                                                                      \
            const u64 x = magnitude[l];                                                  \
            r[l] = bits_of_it(!negative[l] ? (type)x : x >> 63 ? (type)-0x1p63 : (type)-(i64)x); \
        }                                                                                \
    }
CONVERT(convert_f32, float, u32, as_bits)
CONVERT(convert_f64, double, u64, as_bits64)

OPERATION(I2F) {
    const u32 mode = rounding(i->flags);
    if (i->aux == (32 | IS_SIGNED) && !mode) {
        SOURCE(x, 0);
        RESULT(as_bits((float)(i32)x[l]));
        return;
    }
    u64 magnitude[LANES];
    u32 negative[LANES], r[LANES];
    source_integer(w, i, magnitude, negative);
    ROUNDED(mode, convert_f32(magnitude, negative, r));
    RESULT(r[l]);
}

OPERATION(I2D) {
    const u32 mode = rounding(i->flags);
    u64 magnitude[LANES], r[LANES];
    u32 negative[LANES];
    source_integer(w, i, magnitude, negative);
    ROUNDED(mode, convert_f64(magnitude, negative, r));
    RESULT64(r[l]);
}

/* To a half, in the low half of the result. */
OPERATION(I2H) {
    u64 magnitude[LANES];
    u32 negative[LANES], r[LANES];
    source_integer(w, i, magnitude, negative);
    FOR_LANES {
        u64 x = magnitude[l];
        /* 53 bits hold it but for whether the rest is 0, which the last of them says */
        if (x >> 53) x = (x & ~0x7ffull) | (x & 0x7ff ? 0x800 : 0);
        r[l] = rounded_half(negative[l] ? -(double)x : (double)x, i->flags);
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
