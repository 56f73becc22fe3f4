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
    if (!(i->flags & SOURCE_HALF)) /* a NaN keeps its sign */
        FOR_LANES
            if (x[l] != x[l]) r[l] = (r[l] & ~SIGN64) | (u64)(RAW(0)[l] & SIGN32) << 32;
    RESULT64(r[l]);
}

/* To a half, in the low half of the result. */
OPERATION(TO_HALF) {
    double x[LANES];
    u32 r[LANES];
    source_double(w, i, x);
    const u32 flags = i->flags | (i->flags & TO_BFLOAT ? BF16 : 0);
    FOR_LANES r[l] = rounded_half(x[l], flags);
    if (flags & SOURCE_F64) { /* a NaN keeps its sign and the upper bits of its fraction */
        const u32 bits = flags & BF16 ? 7 : 10, quiet = flags & BF16 ? 0x7fc0u : 0x7e00u;
        FOR_LANES
            if (x[l] != x[l])
                r[l] = (u32)(as_bits64(x[l]) >> 48 & 0x8000u) | quiet |
                       (u32)(as_bits64(x[l]) >> (52 - bits) & ((1u << bits) - 1));
    }
    RESULT(r[l]);
}

/* A number of 8 bits, to the nearest, ties to even; what is beyond the format becomes its greatest. */
static u32 rounded_byte(double x, u32 flags) {
    const int is_wide = flags & BYTE_E5M2, fraction_bits = is_wide ? 2 : 3, least = is_wide ? -14 : -6;
    const u32 greatest = is_wide ? 0x7bu : 0x7eu, sign = (u32)(as_bits64(x) >> 56) & 0x80u;
    const double magnitude = fabs(x);
    int exponent;
    if (x != x) return 0x7fu;
    if (flags & RELU && sign) return 0;
    if (magnitude == 0) return sign;
    if (magnitude >= 65536) return sign | greatest;
    frexp(magnitude, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    const u32 units = (u32)rint(ldexp(magnitude, fraction_bits - exponent));
    const u32 bits = ((u32)(exponent - least) << fraction_bits) + units;
    return sign | (bits < greatest ? bits : greatest);
}

/* Two numbers as bytes, source 0 (or its high half) above source 1 (or its low half), and above both
 * the low half of the last source. */
OPERATION(PACK_BYTES) {
    const int of_halves = (i->flags & BYTES_OF_HALVES) != 0;
    u32 x[2][LANES];
    const u32 *const rest = RAW(of_halves ? 1 : 2);
    for (int k = 0; k < 2; k++) {
        if (of_halves) {
            source_half(w, i, 0, !k, x[k]);
            widen_lanes(x[k], i->flags);
        } else {
            copy_source(w, i, k, x[k]);
        }
        FOR_LANES x[k][l] = rounded_byte((double)as_float(x[k][l]), i->flags);
    }
    RESULT(rest[l] << 16 | x[0][l] << 8 | x[1][l]);
}

/* The binary16 number that a byte is. */
static inline u32 half_of_byte(u32 byte, u32 flags) {
    const u32 sign = (byte & 0x80u) << 8, magnitude = byte & 0x7fu;
    if (flags & BYTE_E5M2) return magnitude > 0x7cu ? NAN16 : byte << 8;
    if (magnitude == 0x7fu) return NAN16;
    /* the fields in their places are the number over 2^8: exponents count from 7 rather than 15 */
    return sign | narrowed_half(as_bits(as_float(widened_half(magnitude << 7)) * 0x1p8f));
}

/* d = the two bytes of the low half of the source, or of the high half, as halves. */
OPERATION(UNPACK_BYTES) {
    u32 x[LANES], r[2][LANES];
    source_half(w, i, 0, 0, x);
    for (int k = 0; k < 2; k++)
        FOR_LANES {
            const u32 h = half_of_byte(x[l] >> 8 * k & 0xffu, i->flags);
            r[k][l] = i->flags & RELU && h & 0x8000u ? 0 : h;
        }
    RESULT(r[1][l] << 16 | r[0][l]);
}

/* Single precision with 10 bits of fraction: to the nearest, ties to even, or toward zero. */
static inline u32 rounded_tf32(u32 x, u32 flags) {
    if ((x & ~SIGN32) > INF32) return NAN32 & ~0x1fffu;
    if (flags & RELU && x & SIGN32) return 0;
    return (rounding(flags) ? x : x + 0xfffu + (x >> 13 & 1)) & ~0x1fffu;
}

OPERATION(ROUND_TF32) {
    SOURCE(a, 0);
    RESULT(rounded_tf32(a[l], i->flags));
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
