/* Single precision. Products and sums round once; nothing is contracted or reassociated
 * (-ffp-contract=off). */
#ifndef FLOATING_H
#define FLOATING_H

#include <fenv.h>

#include "core.h"
#include "integer.h"

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

#define NOINLINE __attribute__((noinline))

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
/* To [0, 1]; NaN and -0 become +0. */
static inline u32 clamped_to_unit(u32 x) {
    return as_float(x) > 0 ? as_float(x) < 1 ? x : ONE32 : 0;
}

/* d = r where m is set. */
static inline void merge(u32 *d, const u32 *r, u32 m) {
    IVDEP FOR_LANES d[l] = m >> l & 1 ? r[l] : d[l];
}

static inline void merge_result(Warp *w, const Ins *i, const u32 *r, u32 m) {
    merge(vector(w, i->d[0]), r, m);
}

/* d = expression for the lanes of m; computed for all, as it has no effect beside its value. */
#define COMPUTE(m, d, expression)                      \
    do {                                               \
        if ((m) == FULL) {                             \
            IVDEP FOR_LANES (d)[l] = (expression);     \
        } else {                                       \
            u32 result_[LANES];                        \
            IVDEP FOR_LANES result_[l] = (expression); \
            merge((d), result_, (m));                  \
        }                                              \
    } while (0)

/* Source k as single-precision bits. */
static inline const u32 *source_f32(const Warp *w, const Ins *i, int k, u32 *room) {
    const u32 *x = vector(w, i->s[k]);
    const u8 mod = i->mod[k];
    if (!mod) return x;
    const u32 keep = mod & MOD_F32_ABS ? ~SIGN32 : ~0u, flip = mod & MOD_F32_NEG ? SIGN32 : 0;
    IVDEP FOR_LANES room[l] = (x[l] & keep) ^ flip;
    return room;
}

#define REAL(name, k)          \
    u32 name##_room[LANES];    \
    const u32 *const name = source_f32(w, i, k, name##_room)

/* Each arithmetic operation in three forms: with no modifier; with .FTZ alone; with any, which
 * computes in a function of its own so that the rounding mode can be changed around it. */

typedef void Lanes(const u32 *a, const u32 *b, const u32 *c, u32 *r);

static void flush_lanes(u32 *x) {
    IVDEP FOR_LANES x[l] = flushed32(x[l]);
}

/* r = f(a, b, c) with the modifiers in `flags`; a, b, c are changed. */
static void modified_lanes(Lanes *f, u32 flags, u32 *a, u32 *b, u32 *c, u32 *r) {
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

static inline void copy_lanes(u32 *to, const u32 *from) { memcpy(to, from, LANES * sizeof *to); }

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

/* How a packed operation reads a pair of registers: Ins.aux, four bits for each source. */
enum { SWAP_PAIR = 1, SPREAD = 2, NEGATE_LOW = 4, NEGATE_HIGH = 8 };

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
    static NOINLINE void NAME##_lanes(const u32 *a, const u32 *b, const u32 *c, u32 *r) { \
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

/* Comparisons: Ins.aux holds which relations are true, then how a predicate is combined with. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };
enum { COMBINE_SHIFT = 4, COMBINE_AND = 0, COMBINE_OR, COMBINE_XOR };

/* All ones where a and b, which can be compared by < and so on, stand in one of the relations. */
#define RELATED(a, b)                                                                      \
    (((a) < (b) ? less_ : 0u) | ((a) == (b) ? equal_ : 0u) | ((a) > (b) ? greater_ : 0u) | \
     (((a) != (a)) | ((b) != (b)) ? unordered_ : 0u))
#define RELATIONS(relations)                                     \
    const u32 less_ = (relations) & LESS ? FULL : 0,             \
              equal_ = (relations) & EQUAL ? FULL : 0,           \
              greater_ = (relations) & GREATER ? FULL : 0,       \
              unordered_ = (relations) & UNORDERED ? FULL : 0

static inline u32 with_predicate(u32 how, u32 truth, u32 other) {
    switch (how >> COMBINE_SHIFT & 3) {
    case COMBINE_OR: return truth | other;
    case COMBINE_XOR: return truth ^ other;
    default: return truth & other;
    }
}

/* pd[0] = truth combined with ps[0]; pd[1] = its contrary combined with ps[0]. */
static inline void set_compared(Warp *w, const Ins *i, u32 truth, u32 m) {
    const u32 other = predicate(w, i->ps[0]);
    set_predicate(w, i->pd[0], with_predicate(i->aux, truth, other), m);
    set_predicate(w, i->pd[1], with_predicate(i->aux, ~truth, other), m);
}

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

/* Ins.flags of minima and maxima: a NaN wins; the sign is the product of the signs. */
enum { NAN_WINS = 0x100, XOR_SIGN = 0x200 };

static inline int is_nan32(u32 x) { return (x & ~SIGN32) > INF32; }

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
static void extreme_lanes(const u32 *a, const u32 *b, u32 low, u32 flags, u32 *r) {
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

#define ARITHMETIC_OPS(OP, NAME) OP(NAME) OP(NAME##_FTZ) OP(NAME##_MODIFIED) OP(NAME##2)
#define FLOATING_OPS(OP)                                                                       \
    ARITHMETIC_OPS(OP, FADD) ARITHMETIC_OPS(OP, FMUL) ARITHMETIC_OPS(OP, FFMA) OP(FSETP)       \
    OP(FSET) OP(FSEL) OP(FMNMX) OP(FMNMX3) OP(FCHK)

#endif
