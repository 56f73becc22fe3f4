#include "integer.h"

#include "compare.h"
#include "lanes.h"
#include "operations.h"

static inline u32 ones_below(u32 n) { return n >= 32 ? FULL : (1u << n) - 1; }

/* An operation of one, two or three words: `value` is that of lane l, of a[l], b[l] and c[l]. */
#define OF_ONE(NAME, value)   OPERATION(NAME) { SOURCE(a, 0); RESULT(value); }
#define OF_TWO(NAME, value)   OPERATION(NAME) { READ_AB(SOURCE); RESULT(value); }
#define OF_THREE(NAME, value) OPERATION(NAME) { READ_ABC(SOURCE); RESULT(value); }

OF_ONE(MOV, a[l])

OPERATION(MOV64) {
    SOURCE64(a, 0);
    RESULT64(a[l]);
}

/* Sums. */
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

/* d = a + b + c + carries, with signs. */
ALWAYS_INLINE void add3(Warp *w, const Ins *i, u32 m, const u32 *a, const u32 *b, const u32 *c) {
    const u32 na = sign_of(i, NEGATE_0), nb = sign_of(i, NEGATE_1), nc = sign_of(i, NEGATE_2);
    const u32 ones = (na & 1) + (nb & 1) + (nc & 1);
    if (without_carries(w, i)) {
        RESULT((a[l] ^ na) + (b[l] ^ nb) + (c[l] ^ nc) + ones);
        return;
    }
    const u32 carry0 = READ_PREDICATE(0), carry1 = READ_PREDICATE(1);
    u32 sum[LANES], over[LANES];
    FOR_LANES {
        const u32 in = ones + (carry0 >> l & 1) + (carry1 >> l & 1);
        const u32 ab = (a[l] ^ na) + (b[l] ^ nb), z = c[l] ^ nc, abc = ab + z;
        sum[l] = abc + in;
        over[l] = (u32)(ab < (b[l] ^ nb)) + (u32)(abc < z) + (u32)(sum[l] < in);
    }
    RESULT(sum[l]);
    set_carries(w, i, m, over);
}

OPERATION(IADD3) {
    READ_ABC(SOURCE);
    add3(w, i, m, a, b, c);
}

/* sum = a + b + in; how often it reaches 2^64. */
static inline u32 add_wide(u64 a, u64 b, u64 in, u64 *sum) {
    const u64 ab = a + b;
    *sum = ab + in;
    return (u32)(ab < a) + (u32)(*sum < in);
}

/* The sum of two register pairs. */
OPERATION(ADD64) {
    READ_AB(SOURCE64);
    const u64 na = i->flags & NEGATE_0 ? ~0ull : 0, nb = i->flags & NEGATE_1 ? ~0ull : 0;
    const u32 carry0 = READ_PREDICATE(0), carry1 = READ_PREDICATE(1);
    u64 sum[LANES];
    u32 over[LANES];
    FOR_LANES {
        const u64 in = (na & 1) + (nb & 1) + (carry0 >> l & 1) + (carry1 >> l & 1);
        over[l] = add_wide(a[l] ^ na, b[l] ^ nb, in, &sum[l]);
    }
    RESULT64(sum[l]);
    set_carries(w, i, m, over);
}

/* ps[0] is the carry of IMAD.X. */
OPERATION(IMAD) {
    READ_ABC(SOURCE);
    const u32 carry = READ_PREDICATE(0);
    RESULT(a[l] * b[l] + c[l] + (carry >> l & 1));
}

static inline u64 product_of(u32 a, u32 b, u32 is_signed) {
    return is_signed ? (u64)((i64)as_signed(a) * as_signed(b)) : (u64)a * b;
}

/* a * b + c and a carry, ps[0]: 64 bits of it, or the upper half. c is a register pair, perhaps with
 * NEGATE_2. pd[0] where the sum of the product's 64 bits and c reaches 2^64. */
OPERATION(IMAD_WIDE) {
    READ_AB(SOURCE);
    SOURCE64(c, 2);
    const u32 carry = READ_PREDICATE(0);
    const u64 nc = i->flags & NEGATE_2 ? ~0ull : 0;
    u64 sum[LANES];
    u32 over[LANES];
    FOR_LANES {
        const u64 product = product_of(a[l], b[l], i->flags & SIGNED);
        over[l] = add_wide(product, c[l] ^ nc, (carry >> l & 1) + (nc & 1), &sum[l]);
    }
    WRITE_PREDICATE(0, LANE_BITS(over[l] >= 1));
    if (i->flags & UPPER_HALF) RESULT((u32)(sum[l] >> 32));
    else RESULT64(sum[l]);
}

/* Words that hold several values of Ins.aux bits each. */

static inline i64 value_of(u32 x, u32 k, u32 bits, u32 is_signed) {
    const u32 at_top = x << (32 - bits - k * bits);
    return is_signed ? (i64)(as_signed(at_top) >> (32 - bits)) : (i64)(at_top >> (32 - bits));
}

/* The products of values of a and bytes of b, and c. */
static inline u32 dot(const Ins *i, u32 a, u32 b, u32 c) {
    const u32 first = i->flags & HIGH_BYTES ? 2 : 0;
    for (u32 k = 0; k < 32 / i->aux; k++)
        c += (u32)(value_of(a, k, i->aux, i->flags & SIGNED_A) *
                   value_of(b, first + k, 8, i->flags & SIGNED_B));
    return c;
}

OF_THREE(DOT, dot(i, a[l], b[l], c[l]))

/* Result for the values x, y and z at one position of a, b and c. `smaller`: selects the smaller ones. */
typedef i64 OfValues(const Ins *i, i64 x, i64 y, i64 z, u32 smaller);

ALWAYS_INLINE u32 of_values(OfValues *f, const Ins *i, u32 a, u32 b, u32 c, u32 smaller) {
    const u32 bits = i->aux, is_signed = i->flags & SIGNED;
    u32 result = 0;
    for (u32 k = 0; k < 32 / bits; k++) {
        const i64 x = value_of(a, k, bits, is_signed), y = value_of(b, k, bits, is_signed);
        const i64 value = f(i, x, y, value_of(c, k, bits, is_signed), smaller);
        result |= ((u32)value & ones_below(bits)) << k * bits;
    }
    return result;
}

/* x in the range of `bits` bits. */
static inline i64 clamped(i64 x, u32 bits, u32 is_signed) {
    const i64 low = is_signed ? -(1ll << (bits - 1)) : 0;
    const i64 high = (1ll << (is_signed ? bits - 1 : bits)) - 1;
    return x < low ? low : x > high ? high : x;
}

static inline i64 sum_of(const Ins *i, i64 x, i64 y, UNUSED i64 z, UNUSED u32 smaller) {
    const i64 sum = i->flags & NEGATE_1 ? x - y : x + y;
    return i->flags & ADD_SATURATES ? clamped(sum, i->aux, i->flags & SIGNED) : sum;
}

static inline i64 distance_of(UNUSED const Ins *i, i64 x, i64 y, UNUSED i64 z, UNUSED u32 smaller) {
    return x < y ? y - x : x - y;
}

static inline i64 extreme_of(const Ins *i, i64 x, i64 y, i64 z, u32 smaller) {
    const i64 sum = value_of((u32)(x + y), 0, i->aux, i->flags & SIGNED); /* it wraps */
    if (i->flags & MINMAX_SUM) x = sum, y = z;
    if ((x < y) != smaller) x = y;
    if (i->flags & MINMAX_3 && (x < z) != smaller) x = z;
    return i->flags & MINMAX_RELU && x < 0 ? 0 : x;
}

OF_TWO(ADD_PACKED, of_values(sum_of, i, a[l], b[l], 0, 0))

OPERATION(ABSDIFF) {
    READ_ABC(SOURCE);
    u32 x[LANES];
    FOR_LANES {
        const u32 distances = of_values(distance_of, i, a[l], b[l], 0, 0);
        x[l] = i->flags & ABSDIFF_SUM ? c[l] : distances;
        for (u32 k = 0; i->flags & ABSDIFF_SUM && k < 32 / i->aux; k++)
            x[l] += (u32)value_of(distances, k, i->aux, 0);
    }
    RESULT(x[l]);
}

/* pd[k]: value k of a is the choice, as it is where both are equal. */
OPERATION(MINMAX) {
    READ_ABC(SOURCE);
    const u32 wanted = READ_PREDICATE(0), bits = i->aux, is_signed = i->flags & SIGNED;
    u32 x[LANES], first[4] = {0};
    FOR_LANES {
        const u32 smaller = wanted >> l & 1;
        x[l] = of_values(extreme_of, i, a[l], b[l], c[l], smaller);
        for (u32 k = 0; k < 32 / bits; k++) {
            const i64 of_a = value_of(a[l], k, bits, is_signed), of_b = value_of(b[l], k, bits, is_signed);
            first[k] |= (u32)(smaller ? of_a <= of_b : of_a >= of_b) << l;
        }
    }
    RESULT(x[l]);
    WRITE_PREDICATE(0, first[0]);
    WRITE_PREDICATE(1, first[1]);
}

/* Shifts, as vectors of words where one word of a pair is all that matters. */
OF_TWO(SHIFT_LEFT, b[l] > 31 ? 0 : a[l] << (b[l] & 31))
OF_TWO(SHIFT_RIGHT, b[l] > 31 ? 0 : a[l] >> (b[l] & 31))
OF_TWO(SHIFT_RIGHT_SIGNED, (u32)(as_signed(a[l]) >> (b[l] > 31 ? 31 : b[l])))

static inline u64 shifted_right(u64 x, u32 n, u32 is_signed) {
    if (is_signed) return (u64)((i64)x >> (n > 63 ? 63 : n));
    return n > 63 ? 0 : x >> n;
}

static inline u32 shifted(const Ins *i, u32 a, u32 b, u32 c) {
    const u64 x = (u64)c << 32 | a;
    const u32 amount = i->flags & FUNNEL_WRAP ? b & (i->aux - 1) : b, n = amount > i->aux ? i->aux : amount;
    const u64 y = i->flags & FUNNEL_RIGHT ? shifted_right(x, n, i->flags & SIGNED) : n > 63 ? 0 : x << n;
    return (u32)(y >> (i->flags & FUNNEL_HIGH ? 32 : 0));
}

OF_THREE(FUNNEL, shifted(i, a[l], b[l], c[l]))

static inline u32 scaled(const Ins *i, u32 a, u32 c) {
    if (!(i->flags & LEA_HIGH)) return a << i->aux;
    if (i->flags & LEA_SIGNED) return (u32)(as_signed(a) >> 1 >> (31 - i->aux));
    return c << i->aux | a >> 1 >> (31 - i->aux);
}

OPERATION(LEA) {
    READ_ABC(SOURCE);
    u32 x[LANES];
    IVDEP FOR_LANES x[l] = scaled(i, a[l], c[l]);
    add3(w, i, m, x, b, vector(w, POOL));
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
    const Table t = table_of(i->aux);
    u32 x[LANES];
    IVDEP FOR_LANES x[l] = looked_up(&t, a[l], b[l], c[l]);
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

/* pd[0] is the comparison's truth, combined with ps[0], pd[1] its opposite's. EXTENDED: where the
 * operands are equal, ps[1], the verdict on the words below, decides. */
static inline void decide(Warp *w, const Ins *i, u32 m, u32 less, u32 equal) {
    const u32 if_equal = i->flags & EXTENDED ? READ_PREDICATE(1) : i->aux & EQUAL ? FULL : 0;
    const u32 differs = (i->aux & LESS ? less : 0) | (i->aux & GREATER ? ~less & ~equal : 0);
    set_compared(w, i, differs | (equal & if_equal), m);
}

/* Words as unsigned numbers compare like signed ones once their upper bits are flipped. */
#define COMPARISON(NAME, KIND, type)                                                         \
    OPERATION(NAME) {                                                                        \
        READ_AB(KIND);                                                                       \
        const type flip = (type)(i->flags & SIGNED) << (8 * sizeof(type) - 1);               \
        decide(w, i, m, LANE_BITS((a[l] ^ flip) < (b[l] ^ flip)), LANE_BITS(a[l] == b[l]));  \
    }
COMPARISON(ISETP, SOURCE, u32)
COMPARISON(ISETP64, SOURCE64, u64)

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

OF_ONE(IABS, as_signed(a[l]) < 0 ? 0u - a[l] : a[l])

/* a where ps[0] is true, else b. */
#define SELECTION(NAME, KIND, PUT)               \
    OPERATION(NAME) {                            \
        READ_AB(KIND);                           \
        const u32 first = READ_PREDICATE(0);     \
        PUT(first >> l & 1 ? a[l] : b[l]);       \
    }
SELECTION(SEL, SOURCE, RESULT)
SELECTION(SEL64, SOURCE64, RESULT64)

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

/* The bytes of c:a that the nibbles of a selector name. */
static inline u32 permuted(u32 a, u32 selector, u32 c) {
    const u64 both = (u64)c << 32 | a;
    u32 x = 0;
    for (u32 k = 0; k < 4; k++) {
        const u32 nibble = selector >> 4 * k & 15, byte = (u32)(both >> 8 * (nibble & 7)) & 0xff;
        x |= (nibble & 8 ? (byte >> 7) * 0xff : byte) << 8 * k;
    }
    return x;
}

OF_THREE(PRMT, permuted(a[l], nibbles(i->flags, b[l]), c[l]))

/* Bits. */
OF_ONE(POPC, popcount(a[l]))

static inline u32 leading(const Ins *i, u32 a) {
    const u32 bits = i->flags & SIGNED && as_signed(a) < 0 ? ~a : a;
    const u32 zeros = bits ? (u32)__builtin_clz(bits) : 0;
    return !bits ? FULL : i->flags & FLO_SHIFT ? zeros : 31 - zeros;
}

OF_ONE(FLO, leading(i, a[l]))

static inline u32 reversed(u32 x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}

OF_ONE(BREV, reversed(a[l]))

static inline u32 wrapped(const Ins *i, u32 x) { return i->flags & WRAP ? x & 31 : x; }

/* BMSK: b ones from bit a upwards. */
static inline u32 ones_from(u32 first, u32 count) { return first > 31 ? 0 : ones_below(count) << first; }

OF_TWO(BMSK, ones_from(wrapped(i, a[l]), wrapped(i, b[l])))

/* SGXT: the lower bits of a, with their sign where SIGNED. */
static inline u32 extended(const Ins *i, u32 a, u32 bits) {
    return bits ? (u32)value_of(a, 0, bits > 31 ? 32 : bits, i->flags & SIGNED) : 0;
}

OF_TWO(SGXT, extended(i, a[l], wrapped(i, b[l])))

/* I2I: a signed word into the range of aux bits, SIGNED or not. */
OF_ONE(SATURATE, (u32)clamped(as_signed(a[l]), i->aux, i->flags & SIGNED))

/* I2IP: the two saturated values side by side, a above b, and above them the rest of c. */
static inline u32 saturated_pair(const Ins *i, u32 a, u32 b, u32 c) {
    const u32 bits = i->aux, is_signed = i->flags & SIGNED;
    const u32 high = (u32)clamped(as_signed(a), bits, is_signed) & ones_below(bits);
    const u32 low = (u32)clamped(as_signed(b), bits, is_signed) & ones_below(bits);
    return (bits < 16 ? c << 2 * bits : 0) | high << bits | low;
}

OF_THREE(SATURATE_PACK, saturated_pair(i, a[l], b[l], c[l]))

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
