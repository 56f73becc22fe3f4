#include "double.h"

#include <math.h>

#include "compare.h"
#include "floating.h"
#include "operations.h"

/* Source k without its modifiers: a NaN passes as it is. */
static inline u64 raw64(const Warp *w, const Ins *i, int k, int l) {
    const u32 *low = vector(w, i->s[k]);
    return (u64)low[l + LANES] << 32 | low[l];
}

/* The operand that is a NaN, made quiet: the second before the third before the first. */
static inline u64 nan_of(const Warp *w, const Ins *i, int l) {
    static const int order[] = {1, 2, 0};
    for (int k = 0; k < 3; k++) {
        const u64 x = raw64(w, i, order[k], l);
        if (is_nan64(x)) return x | QUIET64;
    }
    return NAN64;
}

typedef void Lanes64(const u64 *a, const u64 *b, const u64 *c, u64 *r);

/* d = f(a, b, c), with the rounding in the flags. */
static inline void double_operation(Lanes64 *f, Warp *w, const Ins *i, u32 m) {
    READ_ABC(SOURCE64);
    u64 r[LANES], nans = 0;
    const u32 mode = rounding(i->flags);
    ROUNDED(mode, f(a, b, c, r));
    IVDEP FOR_LANES nans |= as_double(r[l]) != as_double(r[l]) ? 1u : 0u;
    if (nans)
        FOR_LANES
            if (is_nan64(r[l])) r[l] = nan_of(w, i, l);
    RESULT64(r[l]);
}

#define ARITHMETIC(NAME, value)                                                                  \
    static NOINLINE void NAME##_lanes(const u64 *a, const u64 *b, const u64 *c, u64 *r) {        \
        (void)c;                                                                                 \
        IVDEP FOR_LANES r[l] = as_bits64(value);                                                 \
    }                                                                                            \
    OPERATION(NAME) { double_operation(NAME##_lanes, w, i, m); }

ARITHMETIC(DADD, as_double(a[l]) + as_double(b[l]))
ARITHMETIC(DMUL, as_double(a[l]) * as_double(b[l]))
ARITHMETIC(DFMA, fma(as_double(a[l]), as_double(b[l]), as_double(c[l])))

OPERATION(DSETP) {
    READ_AB(SOURCE64);
    RELATIONS(i->aux);
    set_compared(w, i, LANE_BITS(RELATED(as_double(a[l]), as_double(b[l]))), m);
}

OPERATION(DSETP_EXTREME) {
    READ_AB(SOURCE64);
    const u32 other = READ_PREDICATE(0);
    u32 first = 0, neither = 0;
    FOR_LANES {
        const i64 flip = i->flags & LEAST ? -1 : 0;
        const i64 x = (i64)(a[l] ^ (a[l] & SIGN64 ? ~SIGN64 : 0)) ^ flip;
        const i64 y = (i64)(b[l] ^ (b[l] & SIGN64 ? ~SIGN64 : 0)) ^ flip;
        const u32 na = is_nan64(a[l]), nb = is_nan64(b[l]);
        first |= (nb ? !na : !na && (flip ? x >= y : x > y) ? 1u : 0u) << l;
        neither |= (na & nb) << l;
    }
    WRITE_PREDICATE(0, with_predicate(i->aux, first, other));
    WRITE_PREDICATE(1, with_predicate(i->aux, neither, other));
}
