#include "follow.h"

#include <stdlib.h>

#include "compare.h"
#include "integer.h"
#include "operations.h"

/* Sums: d = x + y + z, of origins `of` and values `value`; carries are the same while nothing wraps. */
static void follow_sum(Follow *f, int l, const u16 of[3], const u32 value[3], u32 in, u16 carries_in) {
    Origins *const o = f->o;
    const u16 xy = combination(o, of[0], 1, of[1], 1), sum = combination(o, xy, 1, of[2], 1);
    const int has_carries = f->i->pd[0] != PREDICATE_DISCARD || f->i->pd[1] != PREDICATE_DISCARD;
    f->d[0].x[l] = carries_in ? worse(kind_of(sum), carries_in) : sum;
    f->p[0].x[l] = f->p[1].x[l] = is_known(sum) ? carries_in : worse(kind_of(sum), carries_in);
    if (!has_carries) return;
    if (!is_wide(o, of[0], 32) || !is_wide(o, of[1], 32) || !is_wide(o, of[2], 32) || !is_wide(o, sum, 32)) {
        f->p[0].x[l] = f->p[1].x[l] = worse(BLOCK_INDEX, f->p[0].x[l]);
        return;
    }
    for (int k = 0; k < 3; k++) keep_unsigned(o, of[k], value[k]);
    keep_unsigned(o, sum, value[0] + value[1] + value[2] + in);
}

static u16 carries_in(Follow *f, int l) {
    return worse(predicates_of(f->o, f->w, f->i->ps[0])[l], predicates_of(f->o, f->w, f->i->ps[1])[l]);
}

/* Source k of a sum, whose sign Ins.flags has: in `value` and `of` of lane l. */
static void addend(Follow *f, int k, int l, const u32 *x, u16 of[3], u32 value[3]) {
    const u32 negates = f->i->flags >> k & 1;
    const u16 origin = after_modifiers(f->o, f->i, k, read_origins(f->o, f->w, f->i, k)[l]);
    value[k] = negates ? ~x[l] : x[l];
    of[k] = negates ? scaled_by(f->o, origin, -1) : origin;
}

static u32 ones_of(const Ins *i) { return (i->flags & 1) + (i->flags >> 1 & 1) + (i->flags >> 2 & 1); }

static void follow_add3(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_ABC(SOURCE);
    FOR_LANES_OF(f->m) {
        u16 of[3];
        u32 value[3];
        addend(f, 0, l, a, of, value);
        addend(f, 1, l, b, of, value);
        addend(f, 2, l, c, of, value);
        const u32 in = ones_of(i) + (READ_PREDICATE(0) >> l & 1) + (READ_PREDICATE(1) >> l & 1);
        follow_sum(f, l, of, value, in, carries_in(f, l));
    }
}

static void follow_lea(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_ABC(SOURCE);
    const u16 *of_a = read_origins(f->o, w, i, 0), *of_c = read_origins(f->o, w, i, 2);
    const u32 n = i->aux & 31, out = 31 - n;
    FOR_LANES_OF(f->m) {
        u16 of[3] = {0};
        u32 value[3] = {0};
        addend(f, 1, l, b, of, value);
        const u16 low = after_modifiers(f->o, i, 0, of_a[l]);
        if (!(i->flags & LEA_HIGH)) {
            value[0] = a[l] << n;
            of[0] = word_scaled_by(f->o, low, 1ll << n);
        } else if (i->flags & LEA_SIGNED) {
            value[0] = (u32)(as_signed(a[l]) >> 1 >> out);
            of[0] = n ? shifted_right(f->o, low, a[l], 32 - n, 1) : shifted_right(f->o, low, a[l], 31, 1);
        } else {
            const u16 high = word_scaled_by(f->o, after_modifiers(f->o, i, 2, of_c[l]), 1ll << n);
            value[0] = c[l] << n | a[l] >> 1 >> out;
            of[0] = combination(f->o, high, 1, shifted_out(f->o, low, a[l], n), 1);
        }
        if (i->flags & NEGATE_0) {
            value[0] = ~value[0];
            of[0] = scaled_by(f->o, of[0], -1);
        }
        const u32 in = ones_of(i) + (READ_PREDICATE(0) >> l & 1) + (READ_PREDICATE(1) >> l & 1);
        follow_sum(f, l, of, value, in, carries_in(f, l));
    }
}

static void follow_add64(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_AB(SOURCE64);
    FOR_LANES_OF(f->m) {
        u16 low = SAME, high = SAME;
        u64 sum = (i->flags & 1) + (i->flags >> 1 & 1) + (READ_PREDICATE(0) >> l & 1) + (READ_PREDICATE(1) >> l & 1);
        for (int k = 0; k < 2; k++) {
            const u16 *of = read_origins(f->o, w, i, k);
            const u64 x = k ? b[l] : a[l], value = i->flags >> k & 1 ? ~x : x;
            const int sign = (i->flags >> k & 1) != (i->mod[k] != 0) ? -1 : 1;
            keep_unsigned(f->o, scaled_by(f->o, of[l], sign), (u32)value);
            low = combination(f->o, low, 1, of[l], sign);
            high = combination(f->o, high, 1, of[LANES + l], sign);
            sum += value;
        }
        const u16 in = carries_in(f, l);
        keep_unsigned(f->o, low, (u32)sum);
        f->d[0].x[l] = in ? worse(kind_of(low), in) : low;
        f->d[1].x[l] = in || !is_known(low) ? worse(kind_of_two(low, high), in) : high;
        f->p[0].x[l] = f->p[1].x[l] = worse(kind_of_two(low, high), in); /* 2^64 is never looked for */
    }
}

/* Products. */

/* Origin of a * b, of which one factor is the same in all blocks; `known`: its value. */
static u16 product(Origins *o, u16 of_a, u16 of_b, i64 a, i64 b, int is_word) {
    if (!is_known(of_a) || !is_known(of_b) || (of_a && of_b)) return kind_of_two(of_a, of_b);
    const u16 of = of_a ? of_a : of_b;
    const i64 by = of_a ? b : a;
    return is_word ? word_scaled_by(o, of, by) : scaled_by(o, of, by);
}

static void follow_multiply_add(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_AB(SOURCE);
    FOR_LANES_OF(f->m) {
        u16 of[3];
        for (int k = 0; k < 3; k++) of[k] = after_modifiers(f->o, i, k, read_origins(f->o, w, i, k)[l]);
        const u16 ab = product(f->o, of[0], of[1], as_signed(a[l]), as_signed(b[l]), 1);
        const u16 in = carries_in(f, l), sum = combination(f->o, ab, 1, of[2], 1);
        f->d[0].x[l] = in ? worse(kind_of(sum), in) : sum;
    }
}

static void follow_wide_multiply_add(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_AB(SOURCE);
    SOURCE64(c, 2);
    const u16 *of_c = read_origins(f->o, w, i, 2);
    const u32 is_signed = i->flags & SIGNED;
    const int sign = ((i->flags & NEGATE_2) != 0) != (i->mod[2] != 0) ? -1 : 1;
    FOR_LANES_OF(f->m) {
        const u16 of_a = read_origins(f->o, w, i, 0)[l], of_b = read_origins(f->o, w, i, 1)[l];
        const i64 x = is_signed ? as_signed(a[l]) : (i64)a[l], y = is_signed ? as_signed(b[l]) : (i64)b[l];
        const u64 z = i->flags & NEGATE_2 ? ~c[l] : c[l];
        const u64 sum = (u64)x * (u64)y + z + (u64)(sign < 0) + (READ_PREDICATE(0) >> l & 1);
        const u16 ab = product(f->o, of_a, of_b, x, y, 0), in = carries_in(f, l);
        const u16 low = combination(f->o, ab, 1, of_c[l], sign), high = scaled_by(f->o, of_c[LANES + l], sign);
        u16 upper = high;
        keep_sign(f->o, of_a, a[l], is_signed);
        keep_sign(f->o, of_b, b[l], is_signed);
        keep_unsigned(f->o, scaled_by(f->o, of_c[l], sign), (u32)z);
        if (!is_known(low) || in) upper = worse(kind_of_two(low, high), in);
        else if (!is_wide(f->o, low, 32)) upper = BLOCK_INDEX;
        else if (is_known(low)) keep_unsigned(f->o, low, (u32)sum);
        f->d[0].x[l] = i->flags & UPPER_HALF ? upper : in ? worse(kind_of(low), in) : low;
        f->d[1].x[l] = upper;
        f->p[0].x[l] = worse(kind_of_two(low, high), in);
    }
}

/* Shifts. */

static void follow_shift(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_AB(SOURCE);
    const u16 *of_b = read_origins(f->o, w, i, 1);
    const u32 is_signed = i->op == OP_SHIFT_RIGHT_SIGNED;
    FOR_LANES_OF(f->m) {
        const u16 of = after_modifiers(f->o, i, 0, read_origins(f->o, w, i, 0)[l]);
        u32 n = b[l];
        if (of_b[l]) f->d[0].x[l] = kind_of_two(of, of_b[l]);
        else if (n > 31 && !is_signed) f->d[0].x[l] = SAME;
        else if (i->op == OP_SHIFT_LEFT) f->d[0].x[l] = word_scaled_by(f->o, of, 1ll << n);
        else f->d[0].x[l] = shifted_right(f->o, of, a[l], n > 31 ? 31 : n, is_signed);
    }
}

/* Origin of a word of a pair that is shifted by less than 32 bits. */
static u16 funnel(Follow *f, u16 of_low, u16 of_high, u32 low, u32 high, u32 n) {
    Origins *const o = f->o;
    const u32 flags = f->i->flags;
    if (flags & FUNNEL_RIGHT && flags & FUNNEL_HIGH) return shifted_right(o, of_high, high, n, flags & SIGNED);
    if (flags & FUNNEL_RIGHT) {
        const u16 of_upper = word_scaled_by(o, of_high, n ? WRAP_32 >> n : 0);
        return combination(o, shifted_right(o, of_low, low, n, 0), 1, of_upper, 1);
    }
    if (!(flags & FUNNEL_HIGH)) return word_scaled_by(o, of_low, 1ll << n);
    return combination(o, word_scaled_by(o, of_high, 1ll << n), 1, shifted_out(o, of_low, low, n), 1);
}

static void follow_funnel(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_ABC(SOURCE);
    FOR_LANES_OF(f->m) {
        const u16 of_a = read_origins(f->o, w, i, 0)[l], of_b = read_origins(f->o, w, i, 1)[l],
                  of_c = read_origins(f->o, w, i, 2)[l];
        const u32 n = i->flags & FUNNEL_WRAP ? b[l] & (i->aux - 1) : b[l];
        if (is_known(of_a) && of_b == SAME && is_known(of_c) && n < 32 && !i->mod[0] && !i->mod[2])
            f->d[0].x[l] = funnel(f, of_a, of_c, a[l], c[l], n);
        else f->d[0].x[l] = worse(kind_of_two(of_a, of_c), kind_of(of_b));
    }
}

/* Logic of one affine operand with others that are the same in all blocks. */

static u32 table_value(u32 table, u32 a, u32 b, u32 c) {
    u32 found = 0;
    for (u32 k = 0; k < 8; k++)
        if (table >> k & 1) found |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return found;
}

/* Number of the lowest bits below the run of set bits that starts at the top. */
static u32 bits_below(u32 from_the_top) { return from_the_top == FULL ? 0 : 32 - (u32)__builtin_clz(~from_the_top); }

static u16 logic(Origins *o, u32 table, const u32 value[3], const u16 of[3], int which) {
    u32 zero[3], one[3];
    for (int k = 0; k < 3; k++) {
        const int is_it = of[k] == of[which] && value[k] == value[which];
        zero[k] = is_it ? 0 : value[k];
        one[k] = is_it ? FULL : value[k];
        if (of[k] && !is_it) return kind_of_two(of[k], of[which]);
    }
    const u32 if_zero = table_value(table, zero[0], zero[1], zero[2]);
    const u32 if_one = table_value(table, one[0], one[1], one[2]);
    const u32 passes = ~if_zero & if_one, inverts = if_zero & ~if_one, fixed = ~(if_zero ^ if_one);
    const u32 of_top = passes >> 31 ? passes : inverts >> 31 ? inverts : fixed;
    if (!is_whole(o, of[which], bits_below(of_top))) return BLOCK_INDEX;
    return passes >> 31 ? of[which] : inverts >> 31 ? scaled_by(o, of[which], -1) : SAME;
}

/* True if all values of this origin are far from wrapping. */
static int is_small(Origins *o, u16 origin) {
    i64 reach = 0;
    for (int axis = 0; axis < 3; axis++)
        reach += llabs(affine_of(o, origin)->c[axis]) / UNIT * o->launch->grid[axis];
    return reach <= INT32_MAX;
}

/* Origin of any bitwise function of affine values: its sign depends on their signs alone. */
static u16 sign_of_logic(Origins *o, const u32 value[3], const u16 of[3]) {
    for (int k = 0; k < 3; k++)
        if (of[k] == BLOCK_INDEX || (is_affine(of[k]) && !is_small(o, of[k]))) return BLOCK_INDEX;
    for (int k = 0; k < 3; k++) {
        const i64 x = as_signed(value[k]);
        keep_within(o, of[k], x, x < 0 ? INT32_MIN : 0, x < 0 ? -1 : INT32_MAX);
    }
    return SIGN_ALIKE;
}

/* Origin of any bitwise function. */
u16 logic_origin(Origins *o, u32 table, const u32 value[3], const u16 of[3]) {
    u16 found = SAME;
    int which = 0;
    for (int k = 0; k < 3; k++) {
        worsen(&found, kind_of(of[k]));
        if (is_affine(of[k])) which = k;
    }
    if (found == BLOCK_INDEX && is_affine(of[which])) found = logic(o, table, value, of, which);
    return found == BLOCK_INDEX ? sign_of_logic(o, value, of) : found;
}

static void follow_logic(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_ABC(SOURCE);
    FOR_LANES_OF(f->m) {
        const u32 value[3] = {a[l], b[l], c[l]}, x = table_value(i->aux & 0xff, a[l], b[l], c[l]);
        u16 of[3];
        for (int k = 0; k < 3; k++) of[k] = after_modifiers(f->o, i, k, read_origins(f->o, w, i, k)[l]);
        const u16 found = logic_origin(f->o, i->aux & 0xff, value, of);
        f->d[0].x[l] = found;
        const u16 in = predicates_of(f->o, w, i->ps[0])[l];
        f->p[0].x[l] = worse(is_known(found) ? SAME : kind_of(found), in);
        if (i->pd[0] != PREDICATE_DISCARD) keep_within(f->o, found, x, x ? 1 : 0, x ? UINT32_MAX : 0);
    }
}

/* Comparisons. */

static u32 truth_of(const Ins *i) {
    const u32 less = i->aux & LESS ? 1 : 0, equal = i->aux & EQUAL ? 2 : 0, greater = i->aux & GREATER ? 4 : 0;
    return less | equal | greater;
}

/* Keep the outcome, also whether both are equal where something else decides then. */
static void keep_outcome(Follow *f, u16 origin, i64 difference) {
    if (!(f->i->flags & EXTENDED)) keep_order(f->o, origin, difference, truth_of(f->i));
    else if (difference) keep_within(f->o, origin, difference, difference > 0 ? 1 : -FAR_AWAY, difference > 0 ? FAR_AWAY : -1);
    else limit(f->o, origin, 0, 0);
}

static void decided(Follow *f, int l, u16 kind) {
    const u16 *combined_with = predicates_of(f->o, f->w, f->i->ps[0]);
    worsen(&kind, combined_with[l]);
    if (f->i->flags & EXTENDED) worsen(&kind, predicates_of(f->o, f->w, f->i->ps[1])[l]);
    f->p[0].x[l] = f->p[1].x[l] = kind;
}

enum { IF_LESS = 1, IF_NOT_LESS = 6, IF_NOT_GREATER = 3, IF_GREATER = 4 }; /* bits of `truth` */

/* True if a comparison of x with y, true for `truth`, depends on the sign of x alone. */
static int asks_for_sign(const Ins *i, u32 y, u32 truth) {
    if (!(i->flags & SIGNED) || i->flags & EXTENDED) return 0;
    if (!y) return truth == IF_LESS || truth == IF_NOT_LESS;
    return y == FULL && (truth == IF_GREATER || truth == IF_NOT_GREATER);
}

/* As if the operands were exchanged. */
static u32 mirrored(u32 truth) { return (truth & 1) << 2 | (truth & 2) | truth >> 2; }

static void follow_comparison(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_AB(SOURCE);
    const u32 is_signed = i->flags & SIGNED;
    FOR_LANES_OF(f->m) {
        const u16 of_a = after_modifiers(f->o, i, 0, read_origins(f->o, w, i, 0)[l]);
        const u16 of_b = after_modifiers(f->o, i, 1, read_origins(f->o, w, i, 1)[l]);
        const u16 difference = combination(f->o, of_a, 1, of_b, -1);
        if ((of_a == SIGN_ALIKE && of_b == SAME && asks_for_sign(i, b[l], truth_of(i))) ||
            (of_b == SIGN_ALIKE && of_a == SAME && asks_for_sign(i, a[l], mirrored(truth_of(i))))) {
            decided(f, l, SAME);
            continue;
        }
        if (!is_known(difference) || !is_wide(f->o, of_a, 31) || !is_wide(f->o, of_b, 31)) {
            decided(f, l, worse(kind_of(difference), BLOCK_INDEX));
            continue;
        }
        const i64 x = is_signed ? as_signed(a[l]) : (i64)a[l], y = is_signed ? as_signed(b[l]) : (i64)b[l];
        keep_sign(f->o, of_a, a[l], is_signed);
        keep_sign(f->o, of_b, b[l], is_signed);
        keep_outcome(f, difference, x - y);
        decided(f, l, SAME);
    }
}

/* Origin of a pair of words whose lower one does not wrap. */
static u16 pair_origin(Follow *f, const u16 *of, int l, u64 value) {
    keep_unsigned(f->o, of[l], (u32)value);
    return combination(f->o, of[l], 1, of[LANES + l], WRAP_32);
}

static void follow_comparison64(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_AB(SOURCE64);
    FOR_LANES_OF(f->m) {
        const u16 of_a = pair_origin(f, read_origins(f->o, w, i, 0), l, a[l]);
        const u16 of_b = pair_origin(f, read_origins(f->o, w, i, 1), l, b[l]);
        const u16 difference = combination(f->o, of_a, 1, of_b, -1);
        const u64 flip = (u64)(i->flags & SIGNED) << 63;
        if (!is_known(difference) || ((is_affine(of_a) || is_affine(of_b)) && (i->mod[0] || i->mod[1]))) {
            decided(f, l, worse(BLOCK_INDEX, kind_of(difference)));
            continue;
        }
        const __int128 apart = (__int128)(a[l] ^ flip) - (b[l] ^ flip);
        keep_outcome(f, difference, apart > FAR_AWAY ? FAR_AWAY : apart < -FAR_AWAY ? -FAR_AWAY : (i64)apart);
        decided(f, l, SAME);
    }
}

/* Origin of the smaller (`takes_smaller`) or the larger one of x and y. */
static u16 extreme_origin(Follow *f, u16 of_x, u16 of_y, u32 x, u32 y, int takes_smaller) {
    const u32 is_signed = f->i->flags & SIGNED;
    const i64 of_sign = is_signed ? (i64)as_signed(x) - as_signed(y) : (i64)x - (i64)y;
    const u16 difference = combination(f->o, of_x, 1, of_y, -1);
    if (!is_known(difference)) return difference;
    keep_sign(f->o, of_x, x, is_signed);
    keep_sign(f->o, of_y, y, is_signed);
    keep_order(f->o, difference, of_sign, 1); /* less or not */
    return (of_sign < 0) == takes_smaller ? of_x : of_y;
}

static void follow_extreme(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_ABC(SOURCE);
    const u32 smaller = READ_PREDICATE(0), is_signed = i->flags & SIGNED;
    const int is_simple = i->aux == 32 && !(i->flags & MINMAX_RELU) && i->pd[0] == PREDICATE_DISCARD &&
                          i->pd[1] == PREDICATE_DISCARD;
    FOR_LANES_OF(f->m) {
        const int takes_smaller = smaller >> l & 1;
        u16 of[3];
        for (int k = 0; k < 3; k++) of[k] = after_modifiers(f->o, i, k, read_origins(f->o, w, i, k)[l]);
        const u16 all = worse(kind_of_two(of[0], of[1]), kind_of(of[2]));
        if (!is_simple || all == DATA || predicates_of(f->o, w, i->ps[0])[l]) {
            f->d[0].x[l] = worse(all, predicates_of(f->o, w, i->ps[0])[l]);
            continue;
        }
        u32 x = a[l], y = b[l];
        u16 of_x = of[0], of_y = of[1];
        if (i->flags & MINMAX_SUM) {
            x += y;
            of_x = combination(f->o, of_x, 1, of_y, 1);
            y = c[l];
            of_y = of[2];
        }
        const u16 found = extreme_origin(f, of_x, of_y, x, y, takes_smaller);
        const int less = is_signed ? as_signed(x) < as_signed(y) : x < y;
        const u32 value = less == takes_smaller ? x : y;
        f->d[0].x[l] = i->flags & MINMAX_3 && is_known(found) ? extreme_origin(f, found, of[2], value, c[l], takes_smaller)
                                                              : found;
    }
}

static void follow_absolute(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    SOURCE(a, 0);
    FOR_LANES_OF(f->m) {
        const u16 of = after_modifiers(f->o, i, 0, read_origins(f->o, w, i, 0)[l]);
        const i64 x = as_signed(a[l]);
        keep_within(f->o, of, x, x < 0 ? INT32_MIN : 0, x < 0 ? -1 : INT32_MAX);
        f->d[0].x[l] = x < 0 ? scaled_by(f->o, of, -1) : of;
    }
}

/* Moves. */

static void follow_moved(Follow *f) {
    const u32 words = words_written(f->i);
    for (u32 word = 0; word < words; word++)
        FOR_LANES f->d[word].x[l] = words == 1 || !f->i->mod[0]
            ? after_modifiers(f->o, f->i, 0, read_origins(f->o, f->w, f->i, 0)[word * LANES + l])
            : kind_of_two(read_origins(f->o, f->w, f->i, 0)[l], read_origins(f->o, f->w, f->i, 0)[LANES + l]);
}

static void follow_selected(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    const u32 first = READ_PREDICATE(0), words = words_written(i);
    for (u32 word = 0; word < words; word++)
        FOR_LANES_OF(f->m) {
            const u16 chosen_by = predicates_of(f->o, w, i->ps[0])[l];
            u16 of[2];
            for (int k = 0; k < 2; k++) {
                const u16 x = read_origins(f->o, w, i, k)[word * LANES + l];
                of[k] = words == 1 || !i->mod[k] ? after_modifiers(f->o, i, k, x) : kind_of(x);
            }
            f->d[word].x[l] = chosen_by ? worse(kind_of_two(of[0], of[1]), chosen_by) : of[first >> l & 1 ? 0 : 1];
        }
}

/* An operation on integers of which some are affine: more is known of its result than what it reads. */
void follow_integer(Follow *f) {
    switch (f->i->op) {
    case OP_MOV: case OP_MOV64: follow_moved(f); return;
    case OP_SEL: case OP_SEL64: follow_selected(f); return;
    case OP_IADD3: follow_add3(f); return;
    case OP_ADD64: follow_add64(f); return;
    case OP_LEA: follow_lea(f); return;
    case OP_IMAD: follow_multiply_add(f); return;
    case OP_IMAD_WIDE: follow_wide_multiply_add(f); return;
    case OP_SHIFT_LEFT: case OP_SHIFT_RIGHT: case OP_SHIFT_RIGHT_SIGNED: follow_shift(f); return;
    case OP_FUNNEL: follow_funnel(f); return;
    case OP_LOP3:
        if (f->o->under || !may_swap(f->i)) follow_logic(f);
        else follow_swap(f);
        return;
    case OP_ISETP: follow_comparison(f); return;
    case OP_ISETP64: follow_comparison64(f); return;
    case OP_MINMAX: follow_extreme(f); return;
    case OP_IABS: follow_absolute(f); return;
    default: return;
    }
}
