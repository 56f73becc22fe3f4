#include "integer.h"

#include "core.h"
#include "lanes.h"
#include "operations.h"

static inline u32 ones_below(u32 n) { return n >= 32 ? FULL : (1u << n) - 1; }

OPERATION(MOV) {
    SOURCE(a, 0);
    RESULT(a[l]);
}

OPERATION(MOV64) {
    PAIR(a, 0);
    RESULT(a.low[l]);
    RESULT_WORD(1, a.high[l]);
}

static inline u32 sign_of(const Ins *i, u32 which) { return i->flags & which ? FULL : 0; }

static inline int without_carries(const Warp *w, const Ins *i) {
    return i->pd[0] == PREDICATE_DISCARD && i->pd[1] == PREDICATE_DISCARD &&
           !READ_PREDICATE(0) && !READ_PREDICATE(1);
}

/* pd[0] where the sum, 2^32 times `over` and more, reaches 2^32; pd[1] where it reaches 2^33. */
static inline void set_carries(Warp *w, const Ins *i, u32 m, const u32 *over) {
    WRITE_PREDICATE(0, LANE_BITS(over[l] >= 1));
    WRITE_PREDICATE(1, LANE_BITS(over[l] >= 2));
}

/* d = a + b + c + carries, with signs; without c where it is NULL. */
ALWAYS_INLINE void add3(Warp *w, const Ins *i, u32 m, const u32 *a, const u32 *b, const u32 *c) {
    const u32 na = sign_of(i, NEGATE_0), nb = sign_of(i, NEGATE_1), nc = sign_of(i, NEGATE_2);
    const u32 ones = (na & 1) + (nb & 1) + (nc & 1);
    if (without_carries(w, i)) {
        if (!c) RESULT((a[l] ^ na) + (b[l] ^ nb) + ones);
        else if (!ones) RESULT(a[l] + b[l] + c[l]);
        else RESULT((a[l] ^ na) + (b[l] ^ nb) + (c[l] ^ nc) + ones);
        return;
    }
    const u32 carry0 = READ_PREDICATE(0), carry1 = READ_PREDICATE(1);
    u32 sum[LANES], over[LANES];
    FOR_LANES {
        const u32 x = a[l] ^ na, y = b[l] ^ nb, z = c ? c[l] ^ nc : 0;
        const u32 in = ones + (carry0 >> l & 1) + (carry1 >> l & 1);
        const u32 xy = x + y, xyz = xy + z;
        sum[l] = xyz + in;
        over[l] = (u32)(xy < x) + (u32)(xyz < z) + (u32)(sum[l] < in);
    }
    RESULT(sum[l]);
    set_carries(w, i, m, over);
}

OPERATION(IADD3) {
    READ_ABC(SOURCE);
    add3(w, i, m, a, b, c);
}

/* The same of two. */
OPERATION(IADD) {
    READ_AB(SOURCE);
    add3(w, i, m, a, b, NULL);
}

/* sum = a + b + over, where a and b are complemented by `na` and `nb`; `over` how often it reaches 2^32. */
static inline void add_words(const u32 *a, u32 na, const u32 *b, u32 nb, u32 *sum, u32 *over) {
    FOR_LANES {
        const u32 x = a[l] ^ na, xy = x + (b[l] ^ nb), in = over[l];
        sum[l] = xy + in;
        over[l] = (u32)(xy < x) + (u32)(sum[l] < in);
    }
}

/* The sum of two register pairs. */
OPERATION(ADD64) {
    READ_AB(PAIR);
    const u32 na = sign_of(i, NEGATE_0), nb = sign_of(i, NEGATE_1);
    const u32 carry0 = READ_PREDICATE(0), carry1 = READ_PREDICATE(1);
    u32 low[LANES], high[LANES], over[LANES];
    FOR_LANES over[l] = (na & 1) + (nb & 1) + (carry0 >> l & 1) + (carry1 >> l & 1);
    add_words(a.low, na, b.low, nb, low, over);
    add_words(a.high, na, b.high, nb, high, over);
    RESULT_WORD(0, low[l]);
    RESULT_WORD(1, high[l]);
    set_carries(w, i, m, over);
}

/* Two or four sums at once, each wrapping: aux is the width of one in bits. */
OPERATION(ADD_PACKED) {
    READ_AB(SOURCE);
    const u32 na = sign_of(i, NEGATE_0), nb = sign_of(i, NEGATE_1);
    const u32 high = i->aux == 8 ? 0x80808080u : 0x80008000u; /* the top bit of each */
    const u32 one = (na | nb) ? (i->aux == 8 ? 0x01010101u : 0x00010001u) : 0;
    u32 sum[LANES];
    FOR_LANES {
        const u32 x = a[l] ^ na, y = b[l] ^ nb;
        const u32 xy = ((x & ~high) + (y & ~high)) ^ ((x ^ y) & high);
        sum[l] = ((xy & ~high) + (one & ~high)) ^ ((xy ^ one) & high);
    }
    RESULT(sum[l]);
}

OPERATION(IMAD) {
    READ_ABC(SOURCE);
    RESULT(a[l] * b[l] + c[l]);
}

/* IMAD.X: with a carry in. */
OPERATION(IMAD_CARRY) {
    READ_ABC(SOURCE);
    const u32 carry = READ_PREDICATE(0);
    RESULT(a[l] * b[l] + c[l] + (carry >> l & 1));
}

static inline u64 product_of(u32 a, u32 b, u32 is_signed) {
    return is_signed ? (u64)((i64)as_signed(a) * as_signed(b)) : (u64)a * b;
}

/* sum = a * b + c and a carry, ps[0]: 64 bits of it. c is a register pair, perhaps with NEGATE_2. pd[0]
 * where the sum of the product's 64 bits and c reaches 2^64. */
static inline void wide_sum(Warp *w, const Ins *i, u32 m, const u32 *a, const u32 *b, u64 *sum) {
    SOURCE64(c, 2);
    const u32 carry = READ_PREDICATE(0);
    const u64 nc = i->flags & NEGATE_2 ? ~0ull : 0;
    u32 over[LANES];
    FOR_LANES {
        const u64 x = product_of(a[l], b[l], i->flags & SIGNED), in = (carry >> l & 1) + (nc & 1);
        const u64 xc = x + (c[l] ^ nc);
        sum[l] = xc + in;
        over[l] = xc < x || sum[l] < in;
    }
    WRITE_PREDICATE(0, LANE_BITS(over[l]));
}

OPERATION(IMAD_WIDE) {
    READ_AB(SOURCE);
    if (!without_carries(w, i) || i->mod[2]) {
        u64 sum[LANES];
        wide_sum(w, i, m, a, b, sum);
        RESULT64(sum[l]);
        return;
    }
    const u32 *const low = RAW(2), *const high = low + LANES;
    u32 sum[LANES], over[LANES], product[LANES];
    IVDEP FOR_LANES product[l] = (u32)((u64)a[l] * b[l] >> 32);
    if (i->flags & SIGNED) {
        IVDEP FOR_LANES
            product[l] -= ((u32)((i32)a[l] >> 31) & b[l]) + ((u32)((i32)b[l] >> 31) & a[l]);
    }
    IVDEP FOR_LANES {
        const u32 x = a[l] * b[l];
        sum[l] = x + low[l];
        over[l] = sum[l] < x;
        product[l] += high[l] + over[l];
    }
    RESULT(sum[l]);
    RESULT_WORD(1, product[l]);
}

/* The upper half of the same. */
OPERATION(IMAD_HI) {
    READ_AB(SOURCE);
    u64 sum[LANES];
    wide_sum(w, i, m, a, b, sum);
    RESULT((u32)(sum[l] >> 32));
}

static inline i32 byte_of(u32 x, int k, u32 is_signed) {
    const u32 byte = x >> 8 * k & 0xff;
    return is_signed ? (i32)(i8)byte : (i32)byte;
}

static inline i32 half_of(u32 x, int k, u32 is_signed) {
    const u32 half = x >> 16 * k & 0xffff;
    return is_signed ? (i32)(i16)half : (i32)half;
}

OPERATION(DOT4) {
    READ_ABC(SOURCE);
    const u32 sa = i->flags & SIGNED_A, sb = i->flags & SIGNED_B;
    u32 sum[LANES];
    FOR_LANES {
        u32 x = c[l];
        for (int k = 0; k < 4; k++) x += (u32)(byte_of(a[l], k, sa) * byte_of(b[l], k, sb));
        sum[l] = x;
    }
    RESULT(sum[l]);
}

OPERATION(DOT2) {
    READ_ABC(SOURCE);
    const u32 sa = i->flags & SIGNED_A, sb = i->flags & SIGNED_B;
    const int first = i->flags & HIGH_BYTES ? 2 : 0;
    u32 sum[LANES];
    FOR_LANES
        sum[l] = c[l] + (u32)(half_of(a[l], 0, sa) * byte_of(b[l], first, sb)) +
                 (u32)(half_of(a[l], 1, sa) * byte_of(b[l], first + 1, sb));
    RESULT(sum[l]);
}

/* Shifts. */
OPERATION(SHIFT_LEFT) {
    READ_AB(SOURCE);
    RESULT(b[l] > 31 ? 0 : a[l] << (b[l] & 31));
}

OPERATION(SHIFT_RIGHT) {
    READ_AB(SOURCE);
    RESULT(b[l] > 31 ? 0 : a[l] >> (b[l] & 31));
}

OPERATION(SHIFT_RIGHT_SIGNED) {
    READ_AB(SOURCE);
    RESULT((u32)(as_signed(a[l]) >> (b[l] > 31 ? 31 : b[l])));
}

static inline u64 shifted_left(u64 x, u32 n) { return n > 63 ? 0 : x << n; }

static inline u64 shifted_right(u64 x, u32 n, u32 is_signed) {
    if (is_signed) return (u64)((i64)x >> (n > 63 ? 63 : n));
    return n > 63 ? 0 : x >> n;
}

OPERATION(FUNNEL) {
    READ_ABC(SOURCE);
    const u32 wrap = i->flags & FUNNEL_WRAP ? i->aux - 1 : FULL, most = i->aux;
    const u32 right = i->flags & FUNNEL_RIGHT, high = i->flags & FUNNEL_HIGH;
    if (i->s[1] & POOL && !right == !!high) { /* bits come from both words */
        const u32 n = b[0] & wrap;
        if (n > 0 && n < 32) {
            if (right) RESULT(a[l] >> n | c[l] << (32 - n));
            else RESULT(c[l] << n | a[l] >> (32 - n));
            return;
        }
    }
    u64 y[LANES];
    FOR_LANES {
        const u64 x = (u64)c[l] << 32 | a[l];
        const u32 amount = b[l] & wrap, n = amount > most ? most : amount;
        y[l] = right ? shifted_right(x, n, i->flags & SIGNED) : shifted_left(x, n);
    }
    RESULT((u32)(y[l] >> (high ? 32 : 0)));
}

OPERATION(LEA) {
    READ_ABC(SOURCE);
    const u32 n = i->aux;
    u32 x[LANES];
    if (!(i->flags & LEA_HIGH)) {
        IVDEP FOR_LANES x[l] = a[l] << n;
    } else if (i->flags & LEA_SIGNED) {
        IVDEP FOR_LANES x[l] = (u32)(as_signed(a[l]) >> 1 >> (31 - n));
    } else {
        IVDEP FOR_LANES x[l] = c[l] << n | a[l] >> 1 >> (31 - n);
    }
    add3(w, i, m, x, b, NULL);
}

/* Logic: bit k of a table is the result where (a, b, c) are the bits of k. */
#define TABLE_BIT(table, k) ((table) >> (k) & 1 ? FULL : 0)

typedef struct { u32 base[4], flip[4]; } Table;

static inline Table table_of(u32 table) {
    Table t;
    for (int k = 0; k < 4; k++) {
        t.base[k] = TABLE_BIT(table, 2 * k);
        t.flip[k] = t.base[k] ^ TABLE_BIT(table, 2 * k + 1);
    }
    return t;
}

static inline u32 looked_up(const Table *t, u32 a, u32 b, u32 c) {
    const u32 x0 = t->base[0] ^ (c & t->flip[0]), x1 = t->base[1] ^ (c & t->flip[1]);
    const u32 x2 = t->base[2] ^ (c & t->flip[2]), x3 = t->base[3] ^ (c & t->flip[3]);
    const u32 y0 = x0 ^ (b & (x0 ^ x1)), y1 = x2 ^ (b & (x2 ^ x3));
    return y0 ^ (a & (y0 ^ y1));
}

OPERATION(LOP3) {
    READ_ABC(SOURCE);
    u32 x[LANES];
    switch (i->aux) {
#define CASE(table, value)              \
    case table:                         \
        IVDEP FOR_LANES x[l] = (value); \
        break
        CASE(0xc0, a[l] & b[l]);
        CASE(0xfc, a[l] | b[l]);
        CASE(0x3c, a[l] ^ b[l]);
        CASE(0x30, a[l] & ~b[l]);
        CASE(0x0c, ~a[l] & b[l]);
        CASE(0x33, ~b[l]);
        CASE(0xfa, a[l] | c[l]);
        CASE(0x80, a[l] & b[l] & c[l]);
        CASE(0xfe, a[l] | b[l] | c[l]);
        CASE(0x96, a[l] ^ b[l] ^ c[l]);
        CASE(0xf8, a[l] | (b[l] & c[l]));
        CASE(0xea, c[l] | (a[l] & b[l]));
        CASE(0xe0, a[l] & (b[l] | c[l]));
        CASE(0xc8, b[l] & (a[l] | c[l]));
        CASE(0xca, (a[l] & b[l]) | (~a[l] & c[l]));
#undef CASE
    default: {
        const Table t = table_of(i->aux);
        IVDEP FOR_LANES x[l] = looked_up(&t, a[l], b[l], c[l]);
    }
    }
    RESULT(x[l]);
    const u32 in = READ_PREDICATE(0);
    WRITE_PREDICATE(0, i->flags & LOGIC_AND ? LANE_BITS(x[l] != 0) & in : LANE_BITS(x[l] != 0) | in);
}

/* Two tables of the same three predicates: aux holds both. Where bit k of Ins.flags is set,
 * predicate k is the sign of s[k]. */
static inline u32 truth_of(const Warp *w, const Ins *i, int k) {
    if (!(i->flags >> k & 1)) return READ_PREDICATE(k);
    return bits_of(RAW(k)) ^ (i->mod[k] & MOD_NOT ? FULL : 0);
}

OPERATION(PLOP3) {
    const u32 a = truth_of(w, i, 0), b = truth_of(w, i, 1), c = truth_of(w, i, 2);
    const Table first = table_of(i->aux & 0xff), second = table_of(i->aux >> 8);
    WRITE_PREDICATE(0, looked_up(&first, a, b, c));
    WRITE_PREDICATE(1, looked_up(&second, a, b, c));
}

static inline u32 with_truth(u32 flags, u32 truth, u32 in) {
    switch (flags >> BOOLEAN_SHIFT & 3) {
    case BOOLEAN_AND: return truth & in;
    case BOOLEAN_OR: return truth | in;
    default: return truth ^ in;
    }
}

/* pd[0] is the comparison's truth, combined with ps[0], pd[1] its opposite's. EXTENDED: where the
 * operands are equal, ps[1], the verdict on the words below, decides. */
static inline void decide(Warp *w, const Ins *i, u32 m, u32 less, u32 equal) {
    const u32 relation = i->flags >> COMPARE_SHIFT & 7;
    u32 truth = (relation & COMPARE_LT ? less : 0) | (relation & COMPARE_GT ? ~less & ~equal : 0);
    if (i->flags & EXTENDED) truth = (truth & ~equal) | (equal & READ_PREDICATE(1));
    else if (relation & COMPARE_EQ) truth |= equal;
    const u32 in = READ_PREDICATE(0);
    WRITE_PREDICATE(0, with_truth(i->flags, truth, in));
    WRITE_PREDICATE(1, with_truth(i->flags, ~truth, in));
}

/* Words as unsigned numbers compare like signed ones once their upper bits are flipped. */
static inline u32 flip_of(const Ins *i) { return (i->flags & SIGNED) << 31; }

OPERATION(ISETP) {
    READ_AB(SOURCE);
    const u32 relation = i->flags >> COMPARE_SHIFT & 7, flip = flip_of(i);
    u32 less = 0, equal = 0;
    if (relation != COMPARE_EQ && relation != COMPARE_NE)
        less = LANE_BITS((a[l] ^ flip) < (b[l] ^ flip));
    if (i->flags & EXTENDED || (relation != COMPARE_LT && relation != COMPARE_GE))
        equal = LANE_BITS(a[l] == b[l]);
    decide(w, i, m, less, equal);
}

OPERATION(ISETP64) {
    READ_AB(PAIR);
    const u32 flip = flip_of(i);
    const u32 less = LANE_BITS((a.high[l] ^ flip) < (b.high[l] ^ flip));
    const u32 equal = LANE_BITS(a.high[l] == b.high[l]);
    decide(w, i, m, less | (equal & LANE_BITS(a.low[l] < b.low[l])), equal & LANE_BITS(a.low[l] == b.low[l]));
}

/* The smaller of a and b in the lanes `smaller`, the greater in the others. */
static inline void choose(const Ins *i, const u32 *a, const u32 *b, u32 smaller, u32 *x) {
    const u32 flip = flip_of(i);
    IVDEP FOR_LANES
        x[l] = ((a[l] ^ flip) < (b[l] ^ flip)) == (smaller >> l & 1) ? a[l] : b[l];
}

OPERATION(MINMAX) {
    READ_ABC(SOURCE);
    const u32 smaller = READ_PREDICATE(0);
    u32 x[LANES];
    if (i->flags & MINMAX_SUM) {
        IVDEP FOR_LANES x[l] = a[l] + b[l];
        choose(i, x, c, smaller, x);
    } else {
        choose(i, a, b, smaller, x);
    }
    if (i->flags & MINMAX_3) choose(i, x, c, smaller, x);
    if (i->flags & MINMAX_RELU) {
        IVDEP FOR_LANES x[l] = as_signed(x[l]) < 0 ? 0 : x[l];
    }
    RESULT(x[l]);
}

OPERATION(MINMAX64) {
    READ_AB(SOURCE64);
    const u32 smaller = READ_PREDICATE(0);
    u64 x[LANES];
    FOR_LANES {
        const int less = i->flags & SIGNED ? (i64)a[l] < (i64)b[l] : a[l] < b[l];
        x[l] = less == (int)(smaller >> l & 1) ? a[l] : b[l];
    }
    RESULT64(x[l]);
}

/* Value k of a word that holds several of `bits` each, with its sign. */
static inline i32 packed_value(u32 x, u32 k, u32 bits, u32 is_signed) {
    const u32 at_top = x << (32 - bits - k * bits);
    return is_signed ? as_signed(at_top) >> (32 - bits) : (i32)(at_top >> (32 - bits));
}

/* Whether a is the choice, as it is where both are equal. */
static inline u32 is_first(i32 a, i32 b, u32 smaller) { return (u32)(smaller ? a <= b : a >= b); }

static inline i32 choose_packed(i32 a, i32 b, u32 smaller) { return (u32)(a < b) == smaller ? a : b; }

OPERATION(MINMAX_PACKED) {
    READ_ABC(SOURCE);
    const u32 bits = i->aux, is_signed = i->flags & SIGNED, mask = ones_below(bits);
    u32 result[LANES], low = 0, high = 0;
    FOR_LANES {
        const u32 smaller = READ_PREDICATE(0) >> l & 1;
        low |= is_first(packed_value(a[l], 0, bits, is_signed),
                        packed_value(b[l], 0, bits, is_signed), smaller) << l;
        high |= is_first(packed_value(a[l], 1, bits, is_signed),
                         packed_value(b[l], 1, bits, is_signed), smaller) << l;
        result[l] = 0;
        for (u32 k = 0; k < 32 / bits; k++) {
            i32 x = packed_value(a[l], k, bits, is_signed), y = packed_value(b[l], k, bits, is_signed);
            const i32 z = packed_value(c[l], k, bits, is_signed);
            if (i->flags & MINMAX_SUM) {
                x = packed_value((u32)(x + y), 0, bits, is_signed); /* the sum wraps */
                y = z;
            }
            x = choose_packed(x, y, smaller);
            if (i->flags & MINMAX_3) x = choose_packed(x, z, smaller);
            if (i->flags & MINMAX_RELU && x < 0) x = 0;
            result[l] |= ((u32)x & mask) << k * bits;
        }
    }
    RESULT(result[l]);
    WRITE_PREDICATE(0, low);
    WRITE_PREDICATE(1, high);
}

/* x in the range of `bits` bits. */
static inline u32 clamped(i64 x, u32 bits, u32 is_signed) {
    const i64 low = is_signed ? -(1ll << (bits - 1)) : 0;
    const i64 high = (1ll << (is_signed ? bits - 1 : bits)) - 1;
    return (u32)(x < low ? low : x > high ? high : x);
}

/* Sums that stay in range: of a and b, or their difference with NEGATE_1, of aux bits each. */
OPERATION(ADD_SATURATED) {
    READ_AB(SOURCE);
    const u32 bits = i->aux, is_signed = i->flags & SIGNED, mask = ones_below(bits);
    u32 result[LANES];
    FOR_LANES {
        result[l] = 0;
        for (u32 k = 0; k < 32 / bits; k++) {
            const i64 x = packed_value(a[l], k, bits, is_signed);
            const i64 y = packed_value(b[l], k, bits, is_signed);
            const i64 sum = i->flags & NEGATE_1 ? x - y : x + y;
            result[l] |= (clamped(sum, bits, is_signed) & mask) << k * bits;
        }
    }
    RESULT(result[l]);
}

/* |a - b| + c */
OPERATION(ABSDIFF) {
    READ_ABC(SOURCE);
    const u32 flip = flip_of(i);
    RESULT(c[l] + ((a[l] ^ flip) < (b[l] ^ flip) ? b[l] - a[l] : a[l] - b[l]));
}

OPERATION(ABSDIFF4) {
    READ_ABC(SOURCE);
    u32 result[LANES];
    FOR_LANES {
        u32 bytes = 0, sum = c[l];
        for (int k = 0; k < 4; k++) {
            const i32 x = byte_of(a[l], k, i->flags & SIGNED) - byte_of(b[l], k, i->flags & SIGNED);
            const u32 distance = (u32)(x < 0 ? -x : x);
            bytes |= distance << 8 * k;
            sum += distance;
        }
        result[l] = i->flags & ABSDIFF_SUM ? sum : bytes;
    }
    RESULT(result[l]);
}

OPERATION(IABS) {
    SOURCE(a, 0);
    RESULT(as_signed(a[l]) < 0 ? 0u - a[l] : a[l]);
}

/* a where ps[0] is true, else b. */
OPERATION(SEL) {
    READ_AB(SOURCE);
    const u32 first = READ_PREDICATE(0);
    RESULT(first >> l & 1 ? a[l] : b[l]);
}

OPERATION(SEL64) {
    READ_AB(PAIR);
    const u32 first = READ_PREDICATE(0);
    RESULT(first >> l & 1 ? a.low[l] : b.low[l]);
    RESULT_WORD(1, first >> l & 1 ? a.high[l] : b.high[l]);
}

static u32 nibbles(u32 mode, u32 b) {
    static const u16 of[7][4] = {
        [PERMUTE_F4E] = {0x3210, 0x4321, 0x5432, 0x6543},
        [PERMUTE_B4E] = {0x5670, 0x6701, 0x7012, 0x0123},
        [PERMUTE_RC8] = {0x0000, 0x1111, 0x2222, 0x3333},
        [PERMUTE_ECL] = {0x3210, 0x3211, 0x3222, 0x3333},
        [PERMUTE_ECR] = {0x0000, 0x1110, 0x2210, 0x3210},
        [PERMUTE_RC16] = {0x1010, 0x3232, 0x1010, 0x3232},
    };
    return mode == PERMUTE_INDEX ? b : of[mode][b & 3];
}

OPERATION(PRMT) {
    READ_ABC(SOURCE);
    u32 x[LANES];
    if (i->s[1] & POOL) { /* one selector for all lanes */
        const u32 selector = nibbles(i->flags, b[0]);
#define CHOSEN(k)                                                        \
    const u32 *const from##k = selector >> 4 * (k) & 4 ? c : a;          \
    const u32 top##k = 24 - 8 * (selector >> 4 * (k) & 3), sign##k = selector >> 4 * (k) & 8 ? 31 : 0
#define BYTE(k) ((u32)(as_signed(from##k[l] << top##k) >> sign##k) >> 24 << 8 * (k))
        CHOSEN(0);
        CHOSEN(1);
        CHOSEN(2);
        CHOSEN(3);
        IVDEP FOR_LANES x[l] = BYTE(0) | BYTE(1) | BYTE(2) | BYTE(3);
#undef BYTE
#undef CHOSEN
    } else {
        FOR_LANES {
            const u64 both = (u64)c[l] << 32 | a[l];
            const u32 selector = nibbles(i->flags, b[l]);
            x[l] = 0;
            for (u32 k = 0; k < 4; k++) {
                const u32 nibble = selector >> 4 * k & 15, byte = (u32)(both >> 8 * (nibble & 7)) & 0xff;
                x[l] |= (nibble & 8 ? (byte >> 7) * 0xff : byte) << 8 * k;
            }
        }
    }
    RESULT(x[l]);
}

/* Bits. */
OPERATION(POPC) {
    SOURCE(a, 0);
    RESULT(popcount(a[l]));
}

OPERATION(FLO) {
    SOURCE(a, 0);
    u32 x[LANES];
    FOR_LANES {
        const u32 bits = i->flags & SIGNED && as_signed(a[l]) < 0 ? ~a[l] : a[l];
        const u32 zeros = bits ? (u32)__builtin_clz(bits) : 0;
        x[l] = !bits ? FULL : i->flags & FLO_SHIFT ? zeros : 31 - zeros;
    }
    RESULT(x[l]);
}

static inline u32 reversed(u32 x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}

OPERATION(BREV) {
    SOURCE(a, 0);
    RESULT(reversed(a[l]));
}

/* BMSK: b ones from bit a upwards. */
OPERATION(BMSK) {
    READ_AB(SOURCE);
    const u32 wrap = i->flags & WRAP ? 31 : FULL;
    u32 x[LANES];
    FOR_LANES {
        const u32 first = a[l] & wrap, count = b[l] & wrap;
        x[l] = first > 31 ? 0 : ones_below(count) << first;
    }
    RESULT(x[l]);
}

/* SGXT: the lower b bits of a, with their sign where SIGNED. */
OPERATION(SGXT) {
    READ_AB(SOURCE);
    const u32 wrap = i->flags & WRAP ? 31 : FULL;
    u32 x[LANES];
    FOR_LANES {
        const u32 bits = b[l] & wrap, spare = bits > 31 ? 0 : 32 - bits;
        const u32 at_top = a[l] << (spare & 31);
        if (!bits) x[l] = 0;
        else x[l] = i->flags & SIGNED ? (u32)(as_signed(at_top) >> (spare & 31)) : at_top >> (spare & 31);
    }
    RESULT(x[l]);
}

/* I2I: a signed word into the range of aux bits, SIGNED or not. */
OPERATION(SATURATE) {
    SOURCE(a, 0);
    RESULT(clamped(as_signed(a[l]), i->aux, i->flags & SIGNED));
}

/* I2IP: the two saturated values side by side, a above b, and above them the rest of c. */
OPERATION(SATURATE_PACK) {
    READ_ABC(SOURCE);
    const u32 bits = i->aux, is_signed = i->flags & SIGNED, mask = ones_below(bits);
    u32 x[LANES];
    FOR_LANES {
        x[l] = (clamped(as_signed(a[l]), bits, is_signed) & mask) << bits |
               (clamped(as_signed(b[l]), bits, is_signed) & mask);
        if (bits < 16) x[l] |= c[l] << 2 * bits;
    }
    RESULT(x[l]);
}

static inline u32 *moved_predicates(Warp *w, const Ins *i) {
    return w->p + (i->flags & PREDICATES_UNIFORM ? PT + 1 : 0);
}

OPERATION(P2R) {
    READ_AB(SOURCE);
    const u32 *const p = moved_predicates(w, i);
    u32 x[LANES];
    FOR_LANES {
        u32 bits = 0;
        for (int k = 0; k < PREDICATES_COUNT; k++) bits |= (p[k] >> l & 1) << k;
        const u32 moved = (b[l] & 0x7f) << i->aux;
        x[l] = (a[l] & ~moved) | (bits << i->aux & moved);
    }
    RESULT(x[l]);
}

OPERATION(R2P) {
    READ_AB(SOURCE);
    u32 *const p = moved_predicates(w, i);
    for (int k = 0; k < PREDICATES_COUNT; k++) {
        const u32 moved = m & LANE_BITS(b[l] >> k & 1);
        const u32 bits = LANE_BITS(a[l] >> i->aux >> k & 1);
        p[k] = (p[k] & ~moved) | (bits & moved);
    }
}
