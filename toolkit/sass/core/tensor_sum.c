#include "tensor_sum.h"

#include <math.h>

#include "double.h"
#include "half.h"

/* Exponents of what is no finite number but zero: so small that such a term vanishes beside any E. */
enum { E_ZERO = -16384, E_INF = -8192, E_NAN = -4096, E_FINITE = -2048 };

typedef struct { i32 exponent_bits, fraction_bits, bias; } TensorFormat;
static const TensorFormat formats[TENSOR_FORMATS] = {
    [TENSOR_F16] = {5, 10, 15}, [TENSOR_BF16] = {8, 7, 127}, [TENSOR_TF32] = {8, 10, 127},
    [TENSOR_E4M3] = {4, 3, 7},  [TENSOR_E5M2] = {5, 2, 15}, [TENSOR_E3M2] = {3, 2, 3}, [TENSOR_E2M3] = {2, 3, 1},
    [TENSOR_E2M1] = {2, 1, 1},
};

/* E4M3 has no Inf: its largest exponent is that of numbers, but for one NaN. Narrower formats have no NaN either. */
ALWAYS_INLINE int decode(const u32 format, const u32 *x, u32 count, i32 *e, float *s) {
    const TensorFormat f = formats[format];
    const u32 fraction = (1u << f.fraction_bits) - 1, top = (1u << f.exponent_bits) - 1;
    const u32 sign = 1u << (f.fraction_bits + f.exponent_bits);
    const u32 dropped = format == TENSOR_TF32 ? 13 : format == TENSOR_E2M1 ? 2 : 0;
    u32 any = 0;
    IVDEP for (u32 n = 0; n < count; n++) {
        const u32 bits = x[n] >> dropped, low = bits & fraction, field = bits >> f.fraction_bits & top;
        const u32 last = format == TENSOR_E4M3 ? (bits & (sign - 1)) == sign - 1 : field == top;
        const u32 special = format > TENSOR_E5M2 ? 0 : last;
        const u32 is_nan = special & (format == TENSOR_E4M3 || low != 0);
        const i32 whole = (i32)either(field != 0, low | (fraction + 1), low);
        const i32 normal = (i32)either(field != 0, field, 1) - f.bias;
        const i32 finite = (i32)either(whole != 0, (u32)normal, (u32)E_ZERO);
        const i32 magnitude = (i32)either(special, 1, (u32)whole);
        e[n] = (i32)either(special, either(is_nan, (u32)E_NAN, (u32)E_INF), (u32)finite);
        s[n] = (float)(i32)either((bits & sign) != 0, 0u - (u32)magnitude, (u32)magnitude);
        any |= special;
    }
    return any != 0;
}

int tensor_decode(u32 format, const u32 *x, u32 count, i32 *e, float *s) {
    switch (format) {
    case TENSOR_F16: return decode(TENSOR_F16, x, count, e, s);
    case TENSOR_BF16: return decode(TENSOR_BF16, x, count, e, s);
    case TENSOR_TF32: return decode(TENSOR_TF32, x, count, e, s);
    case TENSOR_E4M3: return decode(TENSOR_E4M3, x, count, e, s);
    case TENSOR_E3M2: return decode(TENSOR_E3M2, x, count, e, s);
    case TENSOR_E2M3: return decode(TENSOR_E2M3, x, count, e, s);
    case TENSOR_E2M1: return decode(TENSOR_E2M1, x, count, e, s);
    default: return decode(TENSOR_E5M2, x, count, e, s);
    }
}

static inline i32 larger(i32 a, i32 b) { return a > b ? a : b; }

/* A value for each of COLUMNS neighbouring columns. Compilers do not make vectors of loops over columns with
 * loops over products in them. */
typedef i32 Wide __attribute__((vector_size(4 * COLUMNS)));
typedef float WideReal __attribute__((vector_size(4 * COLUMNS)));

#define LARGER(a, b) ({ const Wide a_ = (a), b_ = (b), first_ = a_ > b_; (a_ & first_) | (b_ & ~first_); })
/* 2^x for x above -127, else 0: all that is multiplied by it vanishes. */
#define POWER(x) ((WideReal)(LARGER((x) + 127, (Wide){0}) << 23))
#define WHOLE(x) __builtin_convertvector(x, Wide)

#define LOADED(Type, from) ({ Type x_; memcpy(&x_, (from), sizeof x_); x_; })

/* FP32 bits of a double, cut off; the lowest bit tells of a rest where `sticky`. Of what is too large: Inf. */
static inline u32 cut_off(u32 high, u32 low, const int sticky) {
    const i32 exponent = (i32)(high >> 20 & 0x7ff) - (1023 - 127);
    const u32 fraction = (high & 0xfffff) << 3 | low >> 29, rest = sticky && (low & 0x1fffffff) != 0;
    const i32 below = larger(1 - exponent, 0), shift = below > 31 ? 31 : below;
    const u32 subnormal = (fraction | 0x800000) >> shift;
    u32 r = either(exponent < 1, subnormal, (u32)exponent << 23 | fraction | rest);
    r = either(exponent > 254, INF32, r);
    return r | (high & SIGN32);
}

/* One block for COLUMNS neighbouring columns of a row. a_*: [L], b_*: [L][stride]. Products are exact as
 * floats, and conversion to whole numbers in units of 2^(E - F) cuts them off. Two partial sums stay within
 * 32 bits. Returns 1 where C is Inf or NaN. */
ALWAYS_INLINE u32 sum_block(const TensorRule *rule, const u32 L, const int half, const i32 *a_e, const float *a_s,
                            const i32 *b_e, const float *b_s, u32 stride, u32 *sums) {
    const i32 F = rule->fraction, of_c = half ? 10 : 23, top_of_c = half ? 31 : 255;
    const i32 of_product = formats[rule->a].fraction_bits + formats[rule->b].fraction_bits;
    const u32 dropped = half ? 0 : (1u << (23 - rule->kept)) - 1;
    i32 e[COLUMNS], c_e[COLUMNS], term[3][COLUMNS];
    float c_s[COLUMNS];
    double total[COLUMNS];
    u64 bits[COLUMNS];
    u32 high[COLUMNS], low[COLUMNS], any = 0;
    IVDEP for (u32 j = 0; j < COLUMNS; j++) {
        const u32 part = sums[j] & ((1u << of_c) - 1), field = sums[j] >> of_c & (u32)top_of_c;
        const u32 special = field == (u32)top_of_c;
        const u32 whole = either(special, 0, either(field != 0, part | 1u << of_c, part));
        const i32 normal = (i32)either(field != 0, field, 1) - (half ? 15 : 127);
        c_e[j] = (i32)either(whole != 0, (u32)normal, (u32)E_ZERO);
        c_s[j] = (float)(i32)either(sums[j] >> (half ? 15 : 31) & 1, 0u - whole, whole);
        any |= special;
    }
    const Wide of_sum = LOADED(Wide, c_e);
    Wide most = LARGER(of_sum, (Wide){0} + rule->floor), sum;
#pragma GCC unroll 32
    for (u32 k = 0; k < L; k++) most = LARGER(most, LOADED(Wide, b_e + k * stride) + a_e[k]);
    const Wide unit = most - (F - of_product);
    memcpy(e, &most, sizeof e);
#pragma GCC unroll 2
    for (u32 p = 0; p < 2; p++) {
        sum = (Wide){0};
#pragma GCC unroll 16
        for (u32 k = p * (L / 2); k < (p + 1) * (L / 2); k++)
            sum += WHOLE(LOADED(WideReal, b_s + k * stride) * a_s[k] *
                         POWER(LOADED(Wide, b_e + k * stride) + a_e[k] - unit));
        memcpy(term[p], &sum, sizeof sum);
    }
    sum = WHOLE(LOADED(WideReal, c_s) * POWER(of_sum - most + (F - of_c)));
    memcpy(term[2], &sum, sizeof sum);
    IVDEP for (u32 j = 0; j < COLUMNS; j++) {
        total[j] = (double)term[0][j] + (double)term[1][j] + (double)term[2][j];
        total[j] *= as_double((u64)(i64)(e[j] - F + 1023) << 52);
    }
    memcpy(bits, total, sizeof bits);
    IVDEP for (u32 j = 0; j < COLUMNS; j++) {
        high[j] = (u32)(bits[j] >> 32);
        low[j] = (u32)bits[j];
    }
    IVDEP for (u32 j = 0; j < COLUMNS; j++) {
        u32 r = cut_off(high[j], low[j], half);
        r = half ? narrowed_half(r) : either((r & INF32) == INF32, r, r & ~dropped);
        sums[j] = either((r & (half ? 0x7fffu : ~SIGN32)) != 0, r, 0);
    }
    return any;
}

/* What Inf and NaN among the terms make of a sum: the bits, or 0 where all terms are finite. */
static u32 special_sum(int half, u32 L, const i32 *a_e, const float *a_s, const i32 *b_e, const float *b_s,
                       u32 stride, u32 c) {
    const u32 inf = half ? 0x7c00u : INF32, sign = half ? 0x8000u : SIGN32, magnitude = c & (sign - 1);
    int is_nan = magnitude > inf, infinite[2] = {magnitude == inf && !(c & sign), magnitude == inf && c & sign};
    for (u32 k = 0; k < L; k++) {
        const i32 x = a_e[k], y = b_e[k * stride];
        if (x > E_FINITE && y > E_FINITE) continue;
        is_nan |= x == E_NAN || y == E_NAN || (x == E_INF && y == E_ZERO) || (x == E_ZERO && y == E_INF);
        if (x == E_INF || y == E_INF) infinite[a_s[k] * b_s[k * stride] < 0] = 1;
    }
    if (is_nan || (infinite[0] && infinite[1])) return half ? NAN16 : NAN32;
    return infinite[0] ? inf : infinite[1] ? inf | sign : 0;
}

/* All blocks of all elements; L and `half` are constants of each copy of this function. */
ALWAYS_INLINE void sum_all(const TensorRule *rule, const u32 L, const int half, u32 rows, u32 columns, u32 length,
                           const i32 *a_e, const float *a_s, const i32 *b_e, const float *b_s, int special,
                           u32 *sums) {
    for (u32 k = 0; k < length; k += L)
        for (u32 r = 0; r < rows; r++) {
            const i32 *const e = a_e + r * length + k;
            const float *const s = a_s + r * length + k;
            for (u32 j = 0; j < columns; j += COLUMNS) {
                u32 before[COLUMNS], *const d = sums + r * columns + j;
                const i32 *const f = b_e + k * columns + j;
                const float *const t = b_s + k * columns + j;
                memcpy(before, d, sizeof before);
                if (!(sum_block(rule, L, half, e, s, f, t, columns, d) | (u32)special)) continue;
                for (u32 n = 0; n < COLUMNS; n++) {
                    const u32 x = special_sum(half, L, e, s, f + n, t + n, columns, before[n]);
                    if (x) d[n] = x;
                }
            }
        }
}

#define SUMS(NAME, L, half)                                                                                      \
    static NOINLINE void NAME(const TensorRule *rule, u32 rows, u32 columns, u32 length, const i32 *a_e,        \
                              const float *a_s, const i32 *b_e, const float *b_s, int special, u32 *sums) {     \
        sum_all(rule, L, half, rows, columns, length, a_e, a_s, b_e, b_s, special, sums);                       \
    }
SUMS(sums_4, 4, 0) SUMS(sums_8, 8, 0) SUMS(sums_16, 16, 0) SUMS(sums_32, 32, 0)
SUMS(half_sums_4, 4, 1) SUMS(half_sums_8, 8, 1) SUMS(half_sums_16, 16, 1) SUMS(half_sums_32, 32, 1)

void tensor_sums(const TensorRule *rule, u32 rows, u32 columns, u32 length, const i32 *a_e, const float *a_s,
                 const i32 *b_e, const float *b_s, int special, u32 *sums) {
    static __typeof__(&sums_4) const of[2][4] = {{sums_4, sums_8, sums_16, sums_32},
                                                 {half_sums_4, half_sums_8, half_sums_16, half_sums_32}};
    const u32 L = length < rule->block ? length : rule->block, which = L <= 4 ? 0 : L <= 8 ? 1 : L <= 16 ? 2 : 3;
    of[rule->half][which](rule, rows, columns, length, a_e, a_s, b_e, b_s, special, sums);
}

TensorScale tensor_scale(u32 byte, int has_fraction) {
    if (!has_fraction) return (TensorScale){(i32)byte - 127, byte == 0xff ? -1 : 8};
    const u32 field = byte >> 3 & 15, low = byte & 7;
    if ((byte & 0x7f) == 0x7f) return (TensorScale){0, -1};
    return (TensorScale){(i32)(field ? field : 1) - 7, (i32)(field ? 8 | low : low)};
}

int tensor_scale_elements(TensorScale scale, u32 count, u32 step, i32 *e) {
    const int is_nan = scale.significand < 0;
    for (u32 n = 0; n < count * step; n += step) {
        if (is_nan) e[n] = E_NAN;
        else if (e[n] > E_FINITE) e[n] += scale.exponent;
    }
    return is_nan;
}

/* Twice an element of E2M1. */
static i32 twice_e2m1(u32 x) {
    static const i32 magnitudes[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    return x & 8 ? -magnitudes[x & 7] : magnitudes[x & 7];
}

/* x * 2^shift, cut off towards zero. */
static i64 shifted(i64 x, i32 shift) {
    if (shift >= 0) return x * ((i64)1 << shift);
    const i64 magnitude = shift > -64 ? (x < 0 ? -x : x) >> -shift : 0;
    return x < 0 ? -magnitude : magnitude;
}

/* One element: `term` has sums of products in units of 2^-2. */
static u32 scaled_sum(i32 fraction, u32 scales, const i32 *term, const TensorScale *of_a, const TensorScale *of_b,
                      u32 c) {
    const u32 field = c >> 23 & 255, part = c & 0x7fffff;
    const i64 whole = field ? part | 0x800000 : part;
    const i32 c_exponent = whole ? (i32)(field ? field : 1) - 127 : E_ZERO;
    i32 exponent[SCALED_TERMS], most = larger(c_exponent, TENSOR_FLOOR), is_nan = field == 255 && part;
    i64 scaled[SCALED_TERMS];
    for (u32 n = 0; n < SCALED_TERMS; n++) {
        const TensorScale x = of_a[n * scales / SCALED_TERMS], y = of_b[n * scales / SCALED_TERMS];
        is_nan |= x.significand < 0 || y.significand < 0;
        scaled[n] = (i64)term[n] * x.significand * y.significand;
        exponent[n] = x.significand && y.significand ? x.exponent + y.exponent : E_ZERO;
        most = larger(most, exponent[n]);
    }
    if (is_nan) return NAN32;
    if (field == 255) return c;
    i64 total = shifted(c & SIGN32 ? -whole : whole, c_exponent - 23 - most + fraction);
    for (u32 n = 0; n < SCALED_TERMS; n++) total += shifted(scaled[n], exponent[n] - 8 - most + fraction);
    const u64 bits = as_bits64((double)total * as_double((u64)(i64)(most - fraction + 1023) << 52));
    const u32 sum = cut_off((u32)(bits >> 32), (u32)bits, 0);
    return sum & ~SIGN32 ? sum : 0;
}

void tensor_scaled_sums(u32 rows, i32 fraction, u32 scales, const u32 *a, const TensorScale *a_scales, const u32 *b,
                        const TensorScale *b_scales, u32 *sums) {
    for (u32 r = 0; r < rows; r++)
        for (u32 j = 0; j < COLUMNS; j++) {
            i32 term[SCALED_TERMS] = {0};
            for (u32 k = 0; k < SCALED_LENGTH; k++)
                term[k / SCALED_TERM] += twice_e2m1(a[r * SCALED_LENGTH + k]) * twice_e2m1(b[k * COLUMNS + j]);
            u32 *const d = sums + r * COLUMNS + j;
            *d = scaled_sum(fraction, scales, term, a_scales + r * scales, b_scales + j * scales, *d);
        }
}

void tensor_integer_sums(u32 rows, u32 columns, u32 length, const i32 *a, const i32 *b, int saturate, u32 *sums) {
    for (u32 r = 0; r < rows; r++)
        for (u32 first = 0; first < columns; first += COLUMNS) {
            i32 x[COLUMNS] = {0};
            u32 *const d = sums + r * columns + first;
            for (u32 k = 0; k < length; k++)
                IVDEP for (u32 j = 0; j < COLUMNS; j++) x[j] += a[r * length + k] * b[k * columns + first + j];
            for (u32 j = 0; j < COLUMNS; j++) {
                const i64 sum = (i64)(i32)d[j] + x[j];
                const i64 clamped = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
                d[j] = (u32)(saturate ? clamped : sum);
            }
        }
}

void tensor_bit_sums(u32 rows, u32 columns, u32 length, const u32 *a, const u32 *b, int differ, u32 *sums) {
    for (u32 r = 0; r < rows; r++)
        for (u32 j = 0; j < columns; j++)
            for (u32 k = 0; k < length; k++) {
                const u32 x = a[r * length + k], y = b[k * columns + j];
                sums[r * columns + j] += popcount(differ ? x ^ y : x & y);
            }
}

static NOINLINE void double_chain(u32 rows, u32 columns, u32 length, const u64 *a, const u64 *b, u64 *sums) {
    for (u32 r = 0; r < rows; r++)
        for (u32 j = 0; j < columns; j++) {
            u64 c = sums[r * columns + j];
            for (u32 k = 0; k < length; k++) {
                const u64 x = a[r * length + k], y = b[k * columns + j];
                const u64 d = as_bits64(fma(as_double(x), as_double(y), as_double(c)));
                if (!is_nan64(d)) c = d;
                else if (is_nan64(y)) c = y | QUIET64;
                else if (is_nan64(c)) c |= QUIET64;
                else c = is_nan64(x) ? x | QUIET64 : NAN64;
            }
            sums[r * columns + j] = c;
        }
}

void tensor_double_sums(u32 rows, u32 columns, u32 length, const u64 *a, const u64 *b, u32 mode, u64 *sums) {
    ROUNDED(mode, double_chain(rows, columns, length, a, b, sums));
}
