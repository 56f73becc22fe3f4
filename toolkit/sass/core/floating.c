#include "floating.h"

#include <math.h>

#include "core.h"
#include "lanes.h"
#include "operations.h"

/* To [0, 1]; NaN and -0 become +0. */
static inline u32 clamped_to_unit(u32 x) {
    return as_float(x) > 0 ? as_float(x) < 1 ? x : ONE32 : 0;
}

/* Each arithmetic operation in three forms: with no modifier; with .FTZ alone; with any, which
 * computes in a function of its own so that the rounding mode can be changed around it. */

/* r = f(a, b, c) with the modifiers in `flags`; a, b, c are changed. */
void modified_lanes(Lanes *f, u32 flags, u32 *a, u32 *b, u32 *c, u32 *r) {
    if (flags & FTZ) {
        flush_lanes(a);
        flush_lanes(b);
        flush_lanes(c);
    }
    const u32 mode = rounding(flags);
    ROUNDED(mode, f(a, b, c, r));
    if (flags & FTZ) flush_lanes(r);
    if (flags & SATURATE)
        IVDEP FOR_LANES r[l] = clamped_to_unit(r[l]);
    IVDEP FOR_LANES r[l] = canonical(as_float(r[l]));
}

static void modified_operation(Lanes *f, Warp *w, const Ins *i, u32 m) {
    u32 a[LANES], b[LANES], c[LANES], r[LANES];
    REAL(x, 0);
    REAL(y, 1);
    REAL(z, 2);
    copy_lanes(a, x);
    copy_lanes(b, y);
    copy_lanes(c, z);
    modified_lanes(f, i->flags, a, b, c, r);
    merge_result(w, i, r, m);
}

static inline void source_pair(const Warp *w, const Ins *i, int k, int high, u32 *x) {
    const u32 how = i->aux >> 4 * k;
    const int from_high = how & SPREAD ? 0 : how & SWAP_PAIR ? !high : high;
    const u32 *const from = vector(w, i->s[k]) + from_high * LANES;
    const u32 keep = i->mod[k] & MOD_F32_ABS ? ~SIGN32 : ~0u;
    const u32 negated = (i->mod[k] & MOD_F32_NEG ? 1 : 0) ^
                        (how & (high ? NEGATE_HIGH : NEGATE_LOW) ? 1 : 0);
    IVDEP FOR_LANES x[l] = (from[l] & keep) ^ negated << 31;
}

static void packed_operation(Lanes *f, Warp *w, const Ins *i, u32 m) {
    u32 a[2][LANES], b[2][LANES], c[2][LANES], r[LANES];
    for (int high = 0; high < 2; high++) {
        source_pair(w, i, 0, high, a[high]);
        source_pair(w, i, 1, high, b[high]);
        source_pair(w, i, 2, high, c[high]);
    }
    for (int high = 0; high < 2; high++) {
        modified_lanes(f, i->flags, a[high], b[high], c[high], r);
        merge(vector(w, i->d[0]) + high * LANES, r, m);
    }
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
        READ_ABC(REAL);                                                                   \
        DESTINATION(d);                                                                   \
        (void)c;                                                                          \
        COMPUTE(m, d, canonical(FORMULA(BITS)));                                          \
    }                                                                                     \
    OPERATION(NAME##_FTZ) {                                                               \
        READ_ABC(REAL);                                                                   \
        DESTINATION(d);                                                                   \
        (void)c;                                                                          \
        COMPUTE(m, d, canonical(FLUSH(as_bits(FORMULA(FLUSH)))));                         \
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
    READ_AB(REAL);
    RELATIONS(i->aux);
    u32 truth;
    if (i->flags & FTZ)
        LANE_BITS(truth, RELATED(as_float(flushed32(a[l])), as_float(flushed32(b[l]))));
    else
        LANE_BITS(truth, RELATED(as_float(a[l]), as_float(b[l])));
    return truth;
}

OPERATION(FSETP) {
    set_compared(w, i, compare_f32(w, i), m);
}

/* imm where the comparison holds, else 0. */
OPERATION(FSET) {
    const u32 truth = with_predicate(i->aux, compare_f32(w, i), predicate(w, i->ps[0]));
    const u32 yes = (u32)i->imm;
    DESTINATION(d);
    COMPUTE(m, d, truth >> l & 1 ? yes : 0);
}

OPERATION(FSEL) {
    READ_AB(REAL);
    DESTINATION(d);
    const u32 first = predicate(w, i->ps[0]);
    COMPUTE(m, d, first >> l & 1 ? a[l] : b[l]);
}

/* The greater of two, +0 above -0, a number before a NaN. */
static inline u32 greatest(u32 a, u32 b) {
    u32 r = as_float(a) > as_float(b) ? a : b;
    r = as_float(a) == as_float(b) ? a & b : r;
    return canonical(as_float(as_float(b) == as_float(b) ? r : a));
}

static inline u32 least(u32 a, u32 b) {
    u32 r = as_float(a) < as_float(b) ? a : b;
    r = as_float(a) == as_float(b) ? a | b : r;
    return canonical(as_float(as_float(b) == as_float(b) ? r : a));
}

/* r = the least of a and b in the lanes `low`, the greatest in the others. */
void extreme_lanes(const u32 *a, const u32 *b, u32 low, u32 flags, u32 *r) {
    if (low == 0) {
        IVDEP FOR_LANES r[l] = greatest(a[l], b[l]);
    } else if (low == FULL) {
        IVDEP FOR_LANES r[l] = least(a[l], b[l]);
    } else {
        IVDEP FOR_LANES
            r[l] = low >> l & 1 ? least(a[l], b[l]) : greatest(a[l], b[l]);
    }
    if (flags & NAN_WINS)
        IVDEP FOR_LANES r[l] = is_nan32(a[l]) | is_nan32(b[l]) ? NAN32 : r[l];
}

/* The least of the sources where ps[0] holds, else the greatest; a NaN loses to a number. */
OPERATION(FMNMX) {
    READ_AB(REAL);
    u32 r[LANES];
    if (!i->flags) {
        extreme_lanes(a, b, predicate(w, i->ps[0]), 0, r);
        merge_result(w, i, r, m);
        return;
    }
    u32 x[LANES], y[LANES], sign[LANES];
    const u32 keep = i->flags & XOR_SIGN ? ~SIGN32 : ~0u;
    IVDEP FOR_LANES {
        x[l] = a[l] & keep;
        y[l] = b[l] & keep;
        sign[l] = (a[l] ^ b[l]) & ~keep;
    }
    if (i->flags & FTZ) {
        flush_lanes(x);
        flush_lanes(y);
    }
    extreme_lanes(x, y, predicate(w, i->ps[0]), i->flags, r);
    DESTINATION(d);
    COMPUTE(m, d, is_nan32(r[l]) ? r[l] : r[l] | sign[l]);
}

OPERATION(FMNMX3) {
    u32 x[3][LANES], r[LANES];
    const u32 low = predicate(w, i->ps[0]);
    for (int k = 0; k < 3; k++) {
        u32 room[LANES];
        copy_lanes(x[k], source_f32(w, i, k, room));
        if (i->flags & FTZ) flush_lanes(x[k]);
    }
    extreme_lanes(x[0], x[1], low, i->flags, r);
    extreme_lanes(r, x[2], low, i->flags, x[0]);
    merge(vector(w, i->d[0]), x[0], m);
}

/* Whether a / b must take the slow path of the division that compilers emit:
 *     r = rcp(b); r += r (1 - b r); q = a r; q += r (a - b q)
 * It is right only while no step over- or underflows: b and r are normal, the remainder a - b q,
 * whose last bit is 2^-46 of a, is exact, and the quotient is normal. */
static inline u32 division_is_hard(u32 a, u32 b) {
    const int ea = (int)(a >> 23 & 0xff), eb = (int)(b >> 23 & 0xff), eq = ea - eb;
    return (ea < 25) | (ea == 0xff) | (eb == 0) | (eb > 252) | (eq < -124) | (eq > 126);
}

OPERATION(FCHK) {
    READ_AB(REAL);
    u32 hard;
    LANE_BITS(hard, division_is_hard(a[l], b[l]));
    set_predicate(w, i->pd[0], hard, m);
}
