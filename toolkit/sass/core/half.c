#include "half.h"

#include <math.h>

#include "compare.h"
#include "operations.h"

void widen_lanes(u32 *x, u32 flags) {
    IVDEP FOR_LANES x[l] = widened(x[l], flags);
}

void narrow_lanes(u32 *x, u32 flags) {
    IVDEP FOR_LANES x[l] = narrowed(x[l], flags);
}

/* x to the format with `fraction_bits`, whose smallest normal exponent is `least`, rounded once. */
static u32 rounded_format(double x, int fraction_bits, int least, u32 mode) {
    const u32 infinity = fraction_bits == 10 ? 0x7c00u : 0x7f80u;
    const u32 sign = (u32)(as_bits64(x) >> 48) & 0x8000u;
    const double magnitude = fabs(x);
    int exponent;
    if (x != x) return NAN16;
    if (magnitude == 0) return sign;
    if (magnitude == INFINITY) return sign | infinity;
    frexp(magnitude, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    const double units = ldexp(magnitude, fraction_bits - exponent), whole = floor(units);
    const double rest = units - whole;
    const int away = mode == ROUND_NEAREST ? rest > 0.5 || (rest == 0.5 && fmod(whole, 2) != 0)
                                           : rest > 0 && mode == (sign ? ROUND_DOWN : ROUND_UP);
    const i64 bits = ((i64)(exponent - least) << fraction_bits) + (i64)whole + away;
    if (bits >= (i64)infinity) {
        const int stays = mode == ROUND_ZERO || mode == (sign ? ROUND_UP : ROUND_DOWN);
        return sign | (infinity - (stays ? 1u : 0u));
    }
    return sign | (u32)bits;
}

u32 rounded_half(double x, u32 flags) {
    return flags & BF16 ? rounded_format(x, 7, -126, rounding(flags))
                        : rounded_format(x, 10, -14, rounding(flags));
}

static inline u32 truncated_half(u32 x) {
    return rounded_format((double)as_float(x), 10, -14, ROUND_ZERO);
}

/* The low or high numbers of source k: 16 bits in each lane. */
void source_half(const Warp *w, const Ins *i, int k, int high, u32 *x) {
    const u32 how = i->aux >> (SWIZZLE_SHIFT + 4 * k);
    const u32 *const from = RAW(k);
    const u8 mod = i->mod[k];
    if (how & FROM_F32) {
        FOR_LANES x[l] = truncated_half(modified(from[l], mod));
        return;
    }
    const u32 shift = (high ? !(how & HIGH_IS_H0) : how & LOW_IS_H1) ? 16 : 0;
    const u32 keep = mod & MOD_F16_ABS ? 0x7fffu : 0xffffu;
    const u32 flip = (mod & MOD_F16_NEG ? 0x8000u : 0) ^ (!high && how & LOW_NEGATED ? 0x8000u : 0);
    IVDEP FOR_LANES x[l] = (from[l] >> shift & keep) ^ flip;
}

static inline u32 flushed_half(u32 h) { return h & (h & 0x7c00u ? 0xffffu : 0x8000u); }

static void flush_halves(u32 *x) {
    IVDEP FOR_LANES x[l] = flushed_half(x[l]);
}

/* Source k as single-precision numbers. */
static void source_widened(const Warp *w, const Ins *i, int k, int high, u32 *x) {
    source_half(w, i, k, high, x);
    if (i->flags & FTZ) flush_halves(x);
    widen_lanes(x, i->flags);
}

/* The sources of an operation of two. */
static inline void both_widened(const Warp *w, const Ins *i, int high, u32 *a, u32 *b) {
    source_widened(w, i, 0, high, a);
    source_widened(w, i, 1, high, b);
}

/* The bits of a number that was rounded to even, with the last bit 1 where something was lost
 * (`lost` has its sign): then a second rounding, to fewer than 23 bits, is as good as one. */
static inline u32 odd_unless_exact(u32 x, float lost) {
    const u32 above = lost > 0, below = lost < 0, negative = x >> 31;
    const u32 step = (above ^ negative) - (below ^ negative);
    return x + (step & (0u - (above | below)) & (0u - (~x & 1)));
}

/* Rounding error of the sum of a and b. */
#define SUM_ERROR(a, b, sum) (((a) - ((sum) - ((sum) - (a)))) + ((b) - ((sum) - (a))))

/* a * b + c: the product of two halves is exact in double precision. */
static void fused_lanes(const u32 *a, const u32 *b, const u32 *c, u32 *r) {
    float lost[LANES];
    IVDEP FOR_LANES {
        const double product = (double)as_float(a[l]) * (double)as_float(b[l]);
        const double addend = (double)as_float(c[l]), sum = product + addend;
        const float nearest = (float)sum;
        r[l] = as_bits(nearest);
        /* scaled: the least product of two bfloat16 is 2^-266 */
        lost[l] = (float)(((sum - (double)nearest) + SUM_ERROR(product, addend, sum)) * 0x1p300);
    }
    IVDEP FOR_LANES r[l] = odd_unless_exact(r[l], lost[l]);
}

static inline u32 limited_half(u32 h, u32 flags, u32 one) {
    const u32 is_nan = (h & 0x7fffu) > (flags & BF16 ? 0x7f80u : 0x7c00u);
    if (flags & RELU) h = h & 0x8000u ? 0 : h;
    if (flags & SATURATE) h = is_nan || h & 0x8000u ? 0 : h > one ? one : h;
    return h;
}

/* One number of each pair: a * b + c. */
static void fused_halves(const Warp *w, const Ins *i, int high, u32 *r) {
    u32 a[LANES], b[LANES], c[LANES];
    const u32 flags = i->flags, one = flags & BF16 ? 0x3f80u : 0x3c00u;
    both_widened(w, i, high, a, b);
    source_widened(w, i, 2, high, c);
    fused_lanes(a, b, c, r);
    narrow_lanes(r, flags);
    if (flags & FTZ) flush_halves(r);
    if (flags & (RELU | SATURATE))
        IVDEP FOR_LANES r[l] = limited_half(r[l], flags, one);
}

/* d = a * b + c in halves; sums and products come as this too: a * 1 + c, a * b + -0. */
OPERATION(HFMA2) {
    u32 low[LANES], high[LANES];
    fused_halves(w, i, 0, low);
    if (i->flags & TO_F32) {
        widen_lanes(low, i->flags);
        RESULT(canonical(as_float(low[l])));
        return;
    }
    fused_halves(w, i, 1, high);
    RESULT(low[l] | high[l] << 16);
}

/* d = the low number of the source as a single-precision number. */
OPERATION(WIDEN_HALF) {
    u32 x[LANES];
    source_widened(w, i, 0, 0, x);
    RESULT(canonical(as_float(x[l])));
}

/* d = a * b + c, where a and b are halves, c and d single precision. */
OPERATION(FHFMA) {
    u32 x[3][LANES], r[LANES];
    for (int k = 0; k < 2; k++) {
        source_half(w, i, k, 0, x[k]);
        widen_lanes(x[k], i->flags);
    }
    copy_source(w, i, 2, x[2]);
    modified_lanes(FFMA_lanes, i->flags, x, r);
    RESULT(r[l]);
}

static u32 compare_halves(const Warp *w, const Ins *i, int high) {
    u32 a[LANES], b[LANES];
    RELATIONS(i->aux);
    both_widened(w, i, high, a, b);
    return LANE_BITS(RELATED(as_float(a[l]), as_float(b[l])));
}

/* pd[0]: the low numbers compared; pd[1]: the high ones; each combined with ps[0]. */
OPERATION(HSETP2) {
    const u32 other = READ_PREDICATE(0);
    const u32 low = compare_halves(w, i, 0), high = compare_halves(w, i, 1);
    WRITE_PREDICATE(0, with_predicate(i->aux, low, other));
    WRITE_PREDICATE(1, with_predicate(i->aux, high, other));
}

/* Each half: imm where the comparison holds, else 0. */
OPERATION(HSET2) {
    const u32 other = READ_PREDICATE(0), yes = (u32)i->imm;
    const u32 low = with_predicate(i->aux, compare_halves(w, i, 0), other);
    const u32 high = with_predicate(i->aux, compare_halves(w, i, 1), other);
    RESULT((low >> l & 1 ? yes : 0) | (high >> l & 1 ? yes << 16 : 0));
}

static void extreme_halves(const Warp *w, const Ins *i, int high, u32 *r) {
    u32 a[LANES], b[LANES];
    both_widened(w, i, high, a, b);
    extreme_lanes(a, b, READ_PREDICATE(0), i->flags, r);
    narrow_lanes(r, i->flags);
}

OPERATION(HMNMX2) {
    u32 low[LANES], high[LANES];
    extreme_halves(w, i, 0, low);
    extreme_halves(w, i, 1, high);
    RESULT(low[l] | high[l] << 16);
}
