/* The multi-function unit, MUFU.
 *
 * The hardware interpolates: the upper bits of a mantissa choose an interval, the rest x of them is
 * put into a parabola with coefficients of that interval, in whole numbers, with a square whose low
 * bits are cut off (the structure of the unit of GeForce 8, which an H200 still has). With it all
 * functions give the bits of an H200 for the 1,024 random words each that were tried. A model in NumPy
 * with the same tables does so for all mantissas of an octave (validation/census/special.py), and of
 * TANH for all operands. Nothing here calls the mathematical library. Subnormal operands and results are
 * zeros but for TANH: compilers scale around the others. */
#include "special_tables.h"

#include "convert.h"
#include "core.h"
#include "floating.h"
#include "half.h"
#include "lanes.h"
#include "operations.h"

enum { FRACTION_BITS = 23, FRACTION = (1 << FRACTION_BITS) - 1, BIAS = 127 };

static inline u32 exponent_of(u32 x) { return x >> FRACTION_BITS & 0xff; }
static inline int is_nan_or_infinite(u32 x) { return exponent_of(x) == 0xff; }

/* The square of x < 2^17 over 2^19: each partial product is cut off by itself. */
static inline i64 truncated_square(u32 x) {
    u32 sum = 0;
    for (u32 k = 0; k < 17; k++) sum += x >> k & 1 ? x >> (18 - k) : 0;
    return sum >> 1;
}

/* The parabola of the interval that the bits of `fraction` above `bits` name. */
static inline i64 interpolated(const Interval *table, u32 fraction, u32 bits, i64 square_scale) {
    const Interval *at = &table[fraction >> bits];
    const u32 x = fraction & ((1u << bits) - 1);
    return at->a + (i64)at->b * x + at->c * square_scale * truncated_square(x << (17 - bits));
}

/* The significand of 1 / m, of 1 / sqrt(m), of sqrt(m) and of 2^m, from 2^23 to 2^24; the upper
 * half of the table for the two roots is for an odd exponent. */
static inline u32 rcp_of(u32 m) { return (u32)(interpolated(RCP_TABLE, m, 16, 1) >> 15); }
static inline u32 rsq_of(u32 m) {
    return m ? (u32)(interpolated(RSQ_TABLE, m, 17, 4) >> 16) : 2 << FRACTION_BITS;
}
static inline u32 sqrt_of(u32 m) { return (u32)(interpolated(SQRT_TABLE, m, 17, 2) >> 17); }
static inline u32 ex2_of(u32 m) { return (u32)(interpolated(EX2_TABLE, m, 17, 1) >> 15); }

/* sign, and 2^exponent * significand / 2^23, where the significand may be 2^24; zero below the
 * normal numbers, infinity above. */
static inline u32 joined(u32 sign, i32 exponent, u32 significand) {
    const i32 biased = exponent + BIAS + (i32)(significand >> (FRACTION_BITS + 1));
    if (biased <= 0) return sign;
    if (biased >= 0xff) return sign | INF32;
    return sign | (u32)biased << FRACTION_BITS |
           (significand >> (FRACTION_BITS + 1) ? 0 : significand & FRACTION);
}

/* A fixed-point number with `bits` bits of fraction, cut off after 24 bits. */
static inline u32 normalized(u32 sign, u64 x, int bits) {
    if (!x) return sign;
    const int top = 63 - __builtin_clzll(x), shift = top - FRACTION_BITS;
    const u32 significand = (u32)(shift > 0 ? x >> shift : x << -shift);
    return joined(sign, top - bits, significand);
}

/* The magnitude of x < 2^24 with `bits` bits of fraction, cut off. */
static inline i64 fixed_point(u32 x, int bits) {
    const int shift = (int)exponent_of(x) - BIAS + bits - FRACTION_BITS;
    const i64 significand = (x & FRACTION) | 1 << FRACTION_BITS;
    return shift >= 0 ? significand << shift : shift > -32 ? significand >> -shift : 0;
}

static inline u32 reciprocal(u32 x) {
    const u32 sign = x & SIGN32;
    if (is_nan_or_infinite(x)) return x & FRACTION ? NAN32 : sign;
    if (!exponent_of(x)) return sign | INF32;
    return joined(sign, BIAS - 1 - (i32)exponent_of(x), rcp_of(x & FRACTION));
}

/* The fraction of x with, above it, whether the exponent is odd. */
static inline u32 fraction_of_root(u32 x) {
    return (x & FRACTION) | (exponent_of(x) & 1 ? 0 : 1u << FRACTION_BITS);
}
static inline i32 half_exponent(u32 x) { return ((i32)exponent_of(x) - BIAS) >> 1; }

static inline u32 reciprocal_root(u32 x) {
    if (!exponent_of(x)) return (x & SIGN32) | INF32;
    if (x & SIGN32 || x > INF32) return NAN32;
    if (x == INF32) return 0;
    return joined(0, -half_exponent(x) - 1, rsq_of(fraction_of_root(x)));
}

static inline u32 square_root(u32 x) {
    if (!exponent_of(x)) return x & SIGN32;
    if (x & SIGN32 || x > INF32) return NAN32;
    if (x == INF32) return x;
    return joined(0, half_exponent(x), sqrt_of(fraction_of_root(x)));
}

/* A negative power is that of the complement, whose fraction is less by its last bit. */
static inline u32 power(u32 x) {
    const u32 magnitude = x & ~SIGN32;
    if (magnitude > INF32) return NAN32;
    if (exponent_of(x) >= BIAS + 8) return x & SIGN32 ? 0 : INF32;
    i64 n = exponent_of(x) ? fixed_point(x, FRACTION_BITS) : 0;
    if (x & SIGN32) n = n & FRACTION ? ~n : -n;
    return joined(0, (i32)(n >> FRACTION_BITS), ex2_of((u32)n & FRACTION));
}

static inline u32 logarithm(u32 x) {
    enum { BITS = 36 };
    if (!exponent_of(x)) return SIGN32 | INF32;
    if (x & SIGN32 || x > INF32) return NAN32;
    if (x == INF32 || x == ONE32) return x == INF32 ? x : 0;
    const i64 whole = (i64)exponent_of(x) - BIAS;
    const i64 r = (interpolated(LG2_TABLE, x & FRACTION, 17, 2) >> 2) + whole * (1ll << BITS);
    return normalized(r < 0 ? SIGN32 : 0, (u64)(r < 0 ? ~r : r), BITS);
}

/* The sine of x turns, or of a quarter of a turn more. */
static inline u32 sine_of(u32 x, u32 is_cosine) {
    enum { QUARTER_BITS = 23, MOST = 24 }; /* from 2^24 on a number is whole */
    u32 sign = is_cosine ? 0 : x & SIGN32;
    if (is_nan_or_infinite(x)) return NAN32;
    const int is_small = exponent_of(x) < BIAS + MOST;
    const i64 n = exponent_of(x) && is_small ? fixed_point(x, QUARTER_BITS + 2) : 0;
    const u32 quarter = (u32)(n >> QUARTER_BITS) + is_cosine;
    const u32 fraction = (u32)(quarter & 1 ? ~n : n) & FRACTION;
    sign ^= quarter << 30 & SIGN32;
    return normalized(sign, (u64)interpolated(SIN_TABLE, fraction, 17, 1), 37);
}

/* The hyperbolic tangent: an octave has a power of two of intervals, and 17 bits of each mantissa behind
 * the number of the interval count. Below 2^-8 it is x itself, from 8 on 1. */
static inline u32 tangent(u32 x) {
    enum { FIRST = BIAS - 8, OCTAVES = 11, ALL_BITS = 17, RESULT_BITS = 39 };
    static const struct { u8 first, interval_bits; } octaves[OCTAVES] = {
        {0, 0}, {1, 0}, {2, 0}, {3, 1}, {5, 1}, {7, 2}, {11, 2}, {15, 2}, {19, 3}, {27, 4}, {43, 3}};
    const u32 sign = x & SIGN32, magnitude = x & ~SIGN32, octave = exponent_of(x) - FIRST;
    if (magnitude > INF32) return NAN32;
    if (exponent_of(x) < FIRST) return x;
    if (octave >= OCTAVES) return sign | ONE32;
    const u32 bits = octaves[octave].interval_bits + ALL_BITS, rest = (x & FRACTION) >> (FRACTION_BITS - bits);
    const Interval *table = TANH_TABLE + octaves[octave].first;
    return normalized(sign, (u64)interpolated(table, rest, ALL_BITS, 2), RESULT_BITS);
}

static void source_special(const Warp *w, const Ins *i, u32 *x) {
    if (i->flags & SOURCE_HALF) {
        source_half(w, i, 0, 0, x);
        widen_lanes(x, i->flags);
    } else {
        copy_source(w, i, 0, x);
    }
}

static void put_special(Warp *w, const Ins *i, u32 m, u32 *r) {
    const u32 cut_off = i->flags | ROUND_ZERO << ROUND_SHIFT;
    FOR_LANES r[l] = canonical(as_float(r[l]));
    if (i->flags & SOURCE_HALF)
        FOR_LANES {
            const int is_beyond = !(i->flags & BF16) && as_float(r[l]) >= 65536; /* of binary16 */
            r[l] = is_beyond ? 0x7c00u : rounded_half((double)as_float(r[l]), cut_off);
        }
    RESULT(r[l]);
}

/* A function of the unit. */
#define SPECIAL(NAME, value)                    \
    OPERATION(NAME) {                           \
        u32 x[LANES], r[LANES];                 \
        source_special(w, i, x);                \
        FOR_LANES r[l] = value;                 \
        put_special(w, i, m, r);                \
    }

SPECIAL(MUFU_RCP, reciprocal(x[l]))
SPECIAL(MUFU_RSQ, reciprocal_root(x[l]))
SPECIAL(MUFU_SQRT, square_root(x[l]))
SPECIAL(MUFU_EX2, power(x[l]))
SPECIAL(MUFU_LG2, logarithm(x[l]))
SPECIAL(MUFU_SIN, sine_of(x[l], 0))
SPECIAL(MUFU_COS, sine_of(x[l], 1))
SPECIAL(MUFU_TANH, tangent(x[l]))

/* The upper word of 1 / x or 1 / sqrt(x), of the upper word of x: the tables of single precision, cut
 * off. Nothing is said of the lower words. */
enum { UPPER_BITS = 20, UPPER_FRACTION = (1 << UPPER_BITS) - 1, UPPER_BIAS = 1023, UPPER_INF = 0x7ff << UPPER_BITS };

static inline u32 joined_upper(u32 sign, i32 biased, u32 significand) {
    significand >>= FRACTION_BITS - UPPER_BITS;
    biased += (i32)(significand >> (UPPER_BITS + 1));
    if (biased <= 0) return sign;
    return sign | (u32)biased << UPPER_BITS |
           (significand >> (UPPER_BITS + 1) ? 0 : significand & UPPER_FRACTION);
}

static inline u32 upper_reciprocal(u32 x) {
    const u32 sign = x & SIGN32, magnitude = x & ~SIGN32;
    if (magnitude > UPPER_INF) return NAN32;
    if (magnitude == UPPER_INF) return sign;
    if (magnitude <= UPPER_FRACTION) return sign | UPPER_INF;
    return joined_upper(sign, 2 * UPPER_BIAS - 1 - (i32)(magnitude >> UPPER_BITS),
                        rcp_of((x & UPPER_FRACTION) << (FRACTION_BITS - UPPER_BITS)));
}

static inline u32 upper_reciprocal_root(u32 x) {
    if ((x & ~SIGN32) <= UPPER_FRACTION) return (x & SIGN32) | UPPER_INF;
    if (x & SIGN32 || x > UPPER_INF) return NAN32;
    if (x == UPPER_INF) return 0;
    const i32 exponent = (i32)(x >> UPPER_BITS) - UPPER_BIAS;
    const u32 fraction = (x & UPPER_FRACTION) << (FRACTION_BITS - UPPER_BITS);
    return joined_upper(0, UPPER_BIAS - 1 - (exponent >> 1),
                        rsq_of(fraction | (exponent & 1 ? 1u << FRACTION_BITS : 0)));
}

#define SPECIAL64(NAME, value)              \
    OPERATION(NAME) {                       \
        SOURCE(x, 0);                       \
        RESULT(value);                      \
    }

SPECIAL64(MUFU_RCP64H, upper_reciprocal(x[l]))
SPECIAL64(MUFU_RSQ64H, upper_reciprocal_root(x[l]))
