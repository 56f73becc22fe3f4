/* The multi-function unit, MUFU.
 *
 * The hardware interpolates in tables that NVIDIA does not publish; it documents the largest error
 * of each function (PTX ISA, *.approx). These compute in double precision, to 1e-10 or better, and
 * round once, so that they are within that error, exact where the value is, and the same on every
 * machine: nothing here calls the mathematical library. Subnormal operands and results are zeros
 * but for TANH: compilers scale around the others. */
#include <math.h>

#include "convert.h"
#include "core.h"
#include "floating.h"
#include "half.h"
#include "lanes.h"
#include "operations.h"

#define WHOLE 0x1.8p52 /* added and taken away: rounds to a whole number, in the low bits between */

/* The bits of a number no farther from 0 than `limit`; a NaN as it is. */
static inline u32 within(u32 x, float limit) {
    const u32 magnitude = x & ~SIGN32, far = as_bits(limit);
    return (x & SIGN32) | either((magnitude > far) & (magnitude <= INF32), far, magnitude);
}

/* The next term of a polynomial p in z, by Horner's rule. */
#define TERM(coefficient) p = p * z + (coefficient)

/* 2^x, |x| < 1000. */
static inline double power_of_two(double x) {
    const double shifted = x + WHOLE, z = x - (shifted - WHOLE);
    /* the power series of 2^z, |z| <= 1/2 */
    double p = 2.5678435993488206e-11;
    TERM(4.4455382718708116e-10);
    TERM(7.054911620801123e-09);
    TERM(1.01780860092397e-07);
    TERM(1.321548679014431e-06);
    TERM(1.5252733804059841e-05);
    TERM(0.0001540353039338161);
    TERM(0.0013333558146428443);
    TERM(0.009618129107628477);
    TERM(0.05550410866482158);
    TERM(0.24022650695910072);
    TERM(0.6931471805599453);
    TERM(1.0);
    return p * as_double((as_bits64(shifted) + 1023) << 52);
}

/* The logarithm to the base 2 of a normal number. */
static inline double log_of_two(u32 x) {
    const u32 above = (x & 0x7fffffu) > 0x3504f3u; /* sqrt(2) */
    const i32 exponent = (i32)(x >> 23) - 127 + (i32)above;
    const double m = (double)as_float((x & 0x7fffffu) | (ONE32 - (above << 23)));
    /* log2(m) = 2 / ln(2) * artanh((m - 1) / (m + 1)) */
    const double s = (m - 1) / (m + 1), z = s * s;
    double p = 0.13739952770371041;
    TERM(0.15186263588304877);
    TERM(0.16972882833987804);
    TERM(0.19235933878519512);
    TERM(0.22195308321368667);
    TERM(0.2623081892525388);
    TERM(0.3205988979753252);
    TERM(0.4121985831111324);
    TERM(0.5770780163555853);
    TERM(0.9617966939259756);
    TERM(2.8853900817779268);
    return p * s + (double)exponent;
}

/* sin(2 pi t), |t| <= 1/4. */
static inline double sine_of_turns(double t) {
    const double z = t * t;
    double p = 0.0011309237482517963;
    TERM(-0.012031585942120627);
    TERM(0.10422916220813984);
    TERM(-0.7181223017785006);
    TERM(3.819952584848282);
    TERM(-15.09464257682299);
    TERM(42.058693944897655);
    TERM(-76.70585975306139);
    TERM(81.60524927607506);
    TERM(-41.34170224039976);
    TERM(6.283185307179586);
    return p * t;
}

static inline double fraction_of(double x) { return x - rint(x); }

static inline double sine(double turns) {
    const double t = fraction_of(turns), near = fabs(t), far = 0.5 - near;
    return sine_of_turns(copysign(near < far ? near : far, t));
}

static inline double cosine(double turns) { return sine_of_turns(0.25 - fabs(fraction_of(turns))); }

static inline double tangent_hyperbolic(double x) {
    const double e = power_of_two(fabs(x) * -2.8853900817779268); /* exp(-2 |x|) */
    return copysign((1 - e) / (1 + e), x);
}

/* The same near 0, where that would cancel. */
static inline double tangent_hyperbolic_series(double x) {
    const double z = x * x;
    return x * (1 - z * (1.0 / 3 - z * (2.0 / 15 - z * (17.0 / 315 - z * (62.0 / 2835)))));
}

/* The unit's functions, of single-precision bits: a double, and single-precision bits of it. */
#define REAL_OF(x) ((double)as_float(x))
#define MUFU_RCP_OF(x) (1 / REAL_OF(x))
#define MUFU_RSQ_OF(x) (1 / sqrt(REAL_OF(x)))
#define MUFU_SQRT_OF(x) sqrt(REAL_OF(x))
#define MUFU_EX2_OF(x) power_of_two(REAL_OF(within(x, 200)))
#define MUFU_SIN_OF(x) sine(REAL_OF(x))
#define MUFU_COS_OF(x) cosine(REAL_OF(x))
#define MUFU_LG2_OF(x) log_of_two(x)

static void source_special(const Warp *w, const Ins *i, u32 *x) {
    if (i->flags & SOURCE_HALF) {
        source_half(w, i, 0, 0, x);
        widen_lanes(x, i->flags);
    } else {
        copy_source(w, i, 0, x);
    }
}

static void put_special(Warp *w, const Ins *i, u32 m, u32 *r) {
    FOR_LANES r[l] = canonical(as_float(r[l]));
    if (i->flags & SOURCE_HALF) narrow_lanes(r, i->flags);
    RESULT(r[l]);
}

/* A function of the unit; what `mend` does to its results comes last. */
#define SPECIAL(NAME, mend)                                     \
    OPERATION(NAME) {                                           \
        u32 x[LANES], r[LANES];                                 \
        source_special(w, i, x);                                \
        flush_lanes(x);                                         \
        IVDEP FOR_LANES r[l] = as_bits((float)NAME##_OF(x[l])); \
        mend(x, r);                                             \
        put_special(w, i, m, r);                                \
    }

static void flush_results(const u32 *x, u32 *r) {
    (void)x;
    flush_lanes(r);
}

/* The sine of a zero is that zero. */
static void keep_zeros(const u32 *x, u32 *r) {
    flush_lanes(r);
    IVDEP FOR_LANES r[l] |= r[l] & ~SIGN32 ? 0 : x[l] & SIGN32;
}

/* The logarithm of zeros, of what is negative, and of infinity. */
static void mend_logarithms(const u32 *x, u32 *r) {
    FOR_LANES {
        const u32 magnitude = x[l] & ~SIGN32;
        if (magnitude == 0) r[l] = SIGN32 | INF32;
        else if (x[l] & SIGN32 || magnitude > INF32) r[l] = NAN32;
        else if (magnitude == INF32) r[l] = INF32;
    }
}

SPECIAL(MUFU_RCP, flush_results)
SPECIAL(MUFU_RSQ, flush_results)
SPECIAL(MUFU_SQRT, flush_results)
SPECIAL(MUFU_EX2, flush_results)
SPECIAL(MUFU_COS, flush_results)
SPECIAL(MUFU_SIN, keep_zeros)
SPECIAL(MUFU_LG2, mend_logarithms)

OPERATION(MUFU_TANH) {
    u32 x[LANES], r[LANES], near[LANES];
    source_special(w, i, x);
    IVDEP FOR_LANES
        r[l] = as_bits((float)tangent_hyperbolic(REAL_OF(within(x[l], 50))));
    IVDEP FOR_LANES
        near[l] = as_bits((float)tangent_hyperbolic_series(REAL_OF(x[l])));
    IVDEP FOR_LANES
        r[l] = (x[l] & ~SIGN32) < 0x3d800000u ? near[l] : r[l]; /* 1/16 */
    put_special(w, i, m, r);
}

/* The upper word of a double-precision result, of the upper word of an operand. */
static void put_upper_word(Warp *w, const Ins *i, u32 m, const double *x) {
    u32 r[LANES];
    FOR_LANES {
        const u64 bits = as_bits64(x[l]);
        r[l] = x[l] != x[l] ? NAN32 : (u32)((bits + 0x80000000u) >> 32);
        if (!(r[l] & 0x7ff00000u)) r[l] &= SIGN32;
    }
    RESULT(r[l]);
}

static void source_upper_word(const Warp *w, const Ins *i, double *x) {
    SOURCE(a, 0);
    FOR_LANES
        x[l] = as_double((u64)(a[l] & 0x7ff00000u ? a[l] : a[l] & SIGN32) << 32);
}

/* A function of the double x[l]. */
#define SPECIAL64(NAME, value)              \
    OPERATION(NAME) {                       \
        double x[LANES];                    \
        source_upper_word(w, i, x);         \
        FOR_LANES x[l] = value;             \
        put_upper_word(w, i, m, x);         \
    }

SPECIAL64(MUFU_RCP64H, 1 / x[l])
SPECIAL64(MUFU_RSQ64H, 1 / sqrt(x[l]))
