/* Operations on FP32: FADD, FMUL, FFMA (one value or packed pairs), products with a scale, FSETP, FSET, FMNMX, FMNMX3, FCHK.
 * Semantics: PTX ISA, "Floating Point Instructions". The macros read w, i, m and the lane l (lanes.h). */

#include "floating.h"

#include <math.h>

#include "compare.h"
#include "operations.h"

/* x clamped to [0, 1] (.SAT); NaN, -0 and negative numbers become +0. */
static inline u32 clamped_to_unit(u32 x) {
    return as_float(x) > 0 ? as_float(x) < 1 ? x : ONE32 : 0;
}

/* r = f(x[0], x[1], x[2]), then FTZ, SAT and the canonical NaN as `flags` say. With FTZ, the caller
 * has flushed the sources. */
void modified_lanes(Lanes *f, u32 flags, u32 (*x)[LANES], u32 *r) {
    const u32 mode = rounding(flags);
    ROUNDED(mode, f(x[0], x[1], x[2], r));
    if (flags & FTZ) flush_lanes(r);
    if (flags & SATURATE)
        IVDEP FOR_LANES r[l] = clamped_to_unit(r[l]);
    IVDEP FOR_LANES r[l] = canonical(as_float(r[l]));
}

/* One value per lane, with any modifiers. */
static void modified_operation(Lanes *f, Warp *w, const Ins *i, u32 m) {
    u32 x[3][LANES], r[LANES];
    for (int k = 0; k < 3; k++) copy_source(w, i, k, x[k]);
    modified_lanes(f, i->flags, x, r);
    RESULT(r[l]);
}

/* The low or high value of the packed source k, with its modifiers. Four bits of Ins.aux for each
 * source select registers and signs (floating.h). */
static inline void source_pair(const Warp *w, const Ins *i, int k, int high, u32 *x) {
    const u32 how = i->aux >> 4 * k;
    const int from_high = how & SPREAD ? 0 : how & SWAP_PAIR ? !high : high;
    const u32 *const from = RAW(k) + from_high * LANES;
    const u32 keep = i->mod[k] & MOD_F32_ABS ? ~SIGN32 : ~0u;
    const u32 negated = (i->mod[k] & MOD_F32_NEG ? 1 : 0) ^
                        (how & (high ? NEGATE_HIGH : NEGATE_LOW) ? 1 : 0);
    IVDEP FOR_LANES x[l] = (from[l] & keep) ^ negated << 31;
    if (i->flags & FTZ) flush_lanes(x);
}

/* Both values of a register pair. They are written after both are computed, because the destination
 * may overlap a source. */
static void packed_operation(Lanes *f, Warp *w, const Ins *i, u32 m) {
    u32 x[3][LANES], r[2][LANES];
    for (int high = 0; high < 2; high++) {
        for (int k = 0; k < 3; k++) source_pair(w, i, k, high, x[k]);
        modified_lanes(f, i->flags, x, r[high]);
    }
    RESULT_WORD(0, r[0][l]);
    RESULT_WORD(1, r[1][l]);
}

/* Each arithmetic operation has four forms: NAME without modifiers, NAME_FTZ with .FTZ alone,
 * NAME_MODIFIED with any modifiers, NAME2 on packed pairs. The last two compute in NAME_lanes, which
 * is not inlined, because the rounding mode is changed around the call. FORMULA(READ) is an
 * expression of READ(a[l]), READ(b[l]), READ(c[l]); READ converts 32 bits to a float. */
#define TO_FLOAT(x) as_float(x)
#define TO_FLUSHED(x) as_float(flushed32(x))
#define ARITHMETIC(NAME, FORMULA)                                                         \
    NOINLINE void NAME##_lanes(const u32 *a, const u32 *b, const u32 *c, u32 *r) {        \
        (void)c;                                                                          \
        IVDEP FOR_LANES r[l] = as_bits(FORMULA(TO_FLOAT));                                \
    }                                                                                     \
    OPERATION(NAME) {                                                                     \
        READ_ABC(SOURCE);                                                                 \
        (void)c;                                                                          \
        RESULT(canonical(FORMULA(TO_FLOAT)));                                             \
    }                                                                                     \
    OPERATION(NAME##_FTZ) {                                                               \
        READ_ABC(SOURCE);                                                                 \
        (void)c;                                                                          \
        RESULT(canonical(TO_FLUSHED(as_bits(FORMULA(TO_FLUSHED)))));                      \
    }                                                                                     \
    OPERATION(NAME##_MODIFIED) { modified_operation(NAME##_lanes, w, i, m); }             \
    OPERATION(NAME##2) { packed_operation(NAME##_lanes, w, i, m); }

#define SUM(READ) (READ(a[l]) + READ(b[l]))
#define PRODUCT(READ) (READ(a[l]) * READ(b[l]))
#define MULTIPLY_ADD(READ) fmaf(READ(a[l]), READ(b[l]), READ(c[l]))
ARITHMETIC(FADD, SUM)
ARITHMETIC(FMUL, PRODUCT)
ARITHMETIC(FFMA, MULTIPLY_ADD)

/* The product times imm, a power of two as a float (.D2 to .M8), rounded once: as doubles, products
 * and multiples of them are exact. An H200 returned the same for 2^18 pairs in each of 12 forms. */
static NOINLINE void scaled_product_lanes(const u32 *a, const u32 *b, const u32 *scale, u32 *r) {
    IVDEP FOR_LANES r[l] = as_bits(
        (float)((double)as_float(a[l]) * (double)as_float(b[l]) * (double)as_float(scale[l])));
}

OPERATION(FMUL_SCALED) {
    u32 x[3][LANES], r[LANES];
    for (int k = 0; k < 2; k++) copy_source(w, i, k, x[k]);
    IVDEP FOR_LANES x[2][l] = (u32)i->imm;
    modified_lanes(scaled_product_lanes, i->flags, x, r);
    RESULT(r[l]);
}

#undef SUM
#undef PRODUCT
#undef MULTIPLY_ADD
#undef TO_FLUSHED
#undef TO_FLOAT

/* A bit per lane: 1 where a relation in Ins.aux holds between the two sources. */
static u32 compare_f32(const Warp *w, const Ins *i) {
    u32 a[LANES], b[LANES];
    RELATIONS(i->aux);
    copy_source(w, i, 0, a);
    copy_source(w, i, 1, b);
    return LANE_BITS(RELATED(as_float(a[l]), as_float(b[l])));
}

/* pd[0] = the comparison combined with ps[0], pd[1] = its negation combined with ps[0]. */
OPERATION(FSETP) {
    set_compared(w, i, compare_f32(w, i), m);
}

/* imm (1.0f with .BF, else all bits) where the comparison combined with ps[0] is true, else 0. */
OPERATION(FSET) {
    const u32 truth = with_predicate(i->aux, compare_f32(w, i), READ_PREDICATE(0));
    const u32 if_true = (u32)i->imm;
    RESULT(truth >> l & 1 ? if_true : 0);
}

/* r = the minimum of a and b in the lanes `min_lanes`, the maximum in the others. XOR_SIGN clears the
 * signs of a and b, and the product of both signs is the sign of r. */
void extreme_lanes(u32 *a, u32 *b, u32 min_lanes, u32 flags, u32 *r) {
    u32 sign[LANES];
    if (flags & XOR_SIGN)
        IVDEP FOR_LANES {
            sign[l] = (a[l] ^ b[l]) & SIGN32;
            a[l] &= ~SIGN32;
            b[l] &= ~SIGN32;
        }
    IVDEP FOR_LANES r[l] = min_lanes >> l & 1 ? extreme(a[l], b[l], 1) : extreme(a[l], b[l], 0);
    if (flags & NAN_WINS)
        IVDEP FOR_LANES r[l] = is_nan32(a[l]) | is_nan32(b[l]) ? NAN32 : r[l];
    if (flags & XOR_SIGN)
        IVDEP FOR_LANES r[l] |= is_nan32(r[l]) ? 0 : sign[l];
}

/* The minimum of n sources where ps[0] is true, the maximum elsewhere. The result is a NaN only if all
 * sources are, or with NAN_WINS. */
static inline void extreme_of(Warp *w, const Ins *i, u32 m, int n) {
    u32 x[2][LANES], r[LANES];
    copy_source(w, i, 0, r);
    for (int k = 1; k < n; k++) {
        copy_lanes(x[0], r);
        copy_source(w, i, k, x[1]);
        extreme_lanes(x[0], x[1], READ_PREDICATE(0), i->flags, r);
    }
    RESULT(r[l]);
}

OPERATION(FMNMX) { extreme_of(w, i, m, 2); }
OPERATION(FMNMX3) { extreme_of(w, i, m, 3); }

/* True if a / b needs the slow path of the division that compilers emit. The fast path is
 *     r = rcp(b); r += r (1 - b r); q = a r; q += r (a - b q)
 * The condition depends on the exponents alone: recorded for all pairs of them, 16 pairs of numbers
 * each (validation/census/special.py). */
static inline u32 needs_slow_path(u32 a, u32 b) {
    const int ea = (int)(a >> 23 & 0xff), eb = (int)(b >> 23 & 0xff), eq = ea - eb;
    return (ea < 25) | (ea == 0xff) | (eb < 2) | (eb > 251) | (eq < -124) | (eq > 126);
}

OPERATION(FCHK) {
    READ_AB(SOURCE);
    const u32 slow = LANE_BITS(needs_slow_path(a[l], b[l]));
    WRITE_PREDICATE(0, slow);
}
