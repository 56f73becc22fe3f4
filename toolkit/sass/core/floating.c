#include "floating.h"

#include <math.h>

#include "compare.h"
#include "operations.h"

/* To [0, 1]; NaN and -0 become +0. */
static inline u32 clamped_to_unit(u32 x) {
    return as_float(x) > 0 ? as_float(x) < 1 ? x : ONE32 : 0;
}

/* Each arithmetic operation in three forms: with no modifier; with .FTZ alone; with any, which
 * computes in a function of its own so that the rounding mode can be changed around it. */

/* r = f(x[0], x[1], x[2]) with the modifiers in `flags`, but for what they do to sources. */
void modified_lanes(Lanes *f, u32 flags, u32 (*x)[LANES], u32 *r) {
    const u32 mode = rounding(flags);
    ROUNDED(mode, f(x[0], x[1], x[2], r));
    if (flags & FTZ) flush_lanes(r);
    if (flags & SATURATE)
        IVDEP FOR_LANES r[l] = clamped_to_unit(r[l]);
    IVDEP FOR_LANES r[l] = canonical(as_float(r[l]));
}

static void modified_operation(Lanes *f, Warp *w, const Ins *i, u32 m) {
    u32 x[3][LANES], r[LANES];
    for (int k = 0; k < 3; k++) copy_source(w, i, k, x[k]);
    modified_lanes(f, i->flags, x, r);
    RESULT(r[l]);
}

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

static void packed_operation(Lanes *f, Warp *w, const Ins *i, u32 m) {
    u32 x[3][LANES], r[2][LANES];
    for (int high = 0; high < 2; high++) {
        for (int k = 0; k < 3; k++) source_pair(w, i, k, high, x[k]);
        modified_lanes(f, i->flags, x, r[high]);
    }
    RESULT_WORD(0, r[0][l]);
    RESULT_WORD(1, r[1][l]);
}

/* Expressions are of the bits a[l], b[l], c[l]. */
#define BITS(x) as_float(x)
#define FLUSH(x) as_float(flushed32(x))
#define ARITHMETIC(NAME, FORMULA)                                                         \
    NOINLINE void NAME##_lanes(const u32 *a, const u32 *b, const u32 *c, u32 *r) {        \
        (void)c;                                                                          \
        IVDEP FOR_LANES r[l] = as_bits(FORMULA(BITS));                                    \
    }                                                                                     \
    OPERATION(NAME) {                                                                     \
        READ_ABC(SOURCE);                                                                   \
        (void)c;                                                                          \
        RESULT(canonical(FORMULA(BITS)));                                                 \
    }                                                                                     \
    OPERATION(NAME##_FTZ) {                                                               \
        READ_ABC(SOURCE);                                                                   \
        (void)c;                                                                          \
        RESULT(canonical(FLUSH(as_bits(FORMULA(FLUSH)))));                                \
    }                                                                                     \
    OPERATION(NAME##_MODIFIED) { modified_operation(NAME##_lanes, w, i, m); }             \
    OPERATION(NAME##2) { packed_operation(NAME##_lanes, w, i, m); }

#define FADD_OF(OF) (OF(a[l]) + OF(b[l]))
#define FMUL_OF(OF) (OF(a[l]) * OF(b[l]))
#define FFMA_OF(OF) fmaf(OF(a[l]), OF(b[l]), OF(c[l]))
ARITHMETIC(FADD, FADD_OF)
ARITHMETIC(FMUL, FMUL_OF)
ARITHMETIC(FFMA, FFMA_OF)
#undef FADD_OF
#undef FMUL_OF
#undef FFMA_OF
#undef FLUSH
#undef BITS

static u32 compare_f32(const Warp *w, const Ins *i) {
    u32 a[LANES], b[LANES];
    RELATIONS(i->aux);
    copy_source(w, i, 0, a);
    copy_source(w, i, 1, b);
    return LANE_BITS(RELATED(as_float(a[l]), as_float(b[l])));
}

OPERATION(FSETP) {
    set_compared(w, i, compare_f32(w, i), m);
}

/* imm where the comparison holds, else 0. */
OPERATION(FSET) {
    const u32 truth = with_predicate(i->aux, compare_f32(w, i), READ_PREDICATE(0));
    const u32 yes = (u32)i->imm;
    RESULT(truth >> l & 1 ? yes : 0);
}

/* r = the least of a and b in the lanes `low`, the greatest in the others; a and b are changed. */
void extreme_lanes(u32 *a, u32 *b, u32 low, u32 flags, u32 *r) {
    u32 sign[LANES];
    if (flags & XOR_SIGN)
        IVDEP FOR_LANES {
            sign[l] = (a[l] ^ b[l]) & SIGN32;
            a[l] &= ~SIGN32;
            b[l] &= ~SIGN32;
        }
    IVDEP FOR_LANES r[l] = low >> l & 1 ? extreme(a[l], b[l], 1) : extreme(a[l], b[l], 0);
    if (flags & NAN_WINS)
        IVDEP FOR_LANES r[l] = is_nan32(a[l]) | is_nan32(b[l]) ? NAN32 : r[l];
    if (flags & XOR_SIGN)
        IVDEP FOR_LANES r[l] |= is_nan32(r[l]) ? 0 : sign[l];
}

/* The least of n sources where ps[0] holds, else the greatest; a NaN loses to a number. */
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

/* Whether a / b must take the slow path of the division that compilers emit:
 *     r = rcp(b); r += r (1 - b r); q = a r; q += r (a - b q)
 * It is right only while no step over- or underflows: b and r are normal, the remainder a - b q,
 * whose last bit is 2^-46 of a, is exact, and the quotient is normal. */
static inline u32 division_is_hard(u32 a, u32 b) {
    const int ea = (int)(a >> 23 & 0xff), eb = (int)(b >> 23 & 0xff), eq = ea - eb;
    return (ea < 25) | (ea == 0xff) | (eb == 0) | (eb > 252) | (eq < -124) | (eq > 126);
}

OPERATION(FCHK) {
    READ_AB(SOURCE);
    const u32 hard = LANE_BITS(division_is_hard(a[l], b[l]));
    WRITE_PREDICATE(0, hard);
}
