#include "mma.h"

#include <string.h>

#include "floating.h"
#include "half.h"
#include "matrix.h"
#include "operations.h"

enum { MOST_A = MOST_ROWS * 64, MOST_B = 64 * COLUMNS, MOST_SUMS = MOST_ROWS * COLUMNS };

int is_mma(const Ins *i) {
    return i->op == OP_MMA || i->op == OP_MMA_INTEGER || i->op == OP_MMA_BITS || i->op == OP_MMA_DOUBLE ||
           i->op == OP_MMA_QUADS || i->op == OP_MMA_SCALED || i->op == OP_MMA_SCALED_FOURS;
}

/* Where element 0 of register r of A or B in lane l belongs: A row by row, B column by column beside each
 * other. `each`: elements in a register. */
static inline u32 place_in_a(u32 l, u32 r, u32 each, u32 rows, u32 length) {
    const u32 half = rows > 8 ? r % 2 : 0, group = rows > 8 ? r / 2 : r;
    return (8 * half + l / 4) * length + (4 * group + l % 4) * each;
}
static inline u32 place_in_b(u32 l, u32 r, u32 each) { return (4 * r + l % 4) * each * COLUMNS + l / 4; }

/* Elements of `bits` each, from registers. */
ALWAYS_INLINE void gather(const Ins *i, const u32 *from, const int is_b, const u32 bits, u32 *x) {
    const u32 each = 32 / bits, mask = bits < 32 ? (1u << bits) - 1 : FULL, step = is_b ? COLUMNS : 1;
    const u32 rows = mma_field(i, MMA_ROWS), length = mma_field(i, MMA_LENGTH);
    for (u32 r = 0; r < mma_field(i, is_b ? MMA_OF_B : MMA_OF_A); r++)
        FOR_LANES {
            const u32 word = from[r * LANES + (u32)l];
            u32 *const to = x + (is_b ? place_in_b((u32)l, r, each) : place_in_a((u32)l, r, each, rows, length));
            for (u32 n = 0; n < each; n++) to[n * step] = word >> bits * n & mask;
        }
}

static void gather_operand(const Warp *w, const Ins *i, int is_b, u32 format, u32 *x) {
    const u32 *const from = RAW(is_b);
    switch (format) {
    case TENSOR_F16: case TENSOR_BF16: gather(i, from, is_b, 16, x); break;
    case TENSOR_TF32: gather(i, from, is_b, 32, x); break;
    case MMA_S4: case MMA_U4: gather(i, from, is_b, 4, x); break;
    default: gather(i, from, is_b, 8, x); break;
    }
}

static u32 format_of(const Ins *i, int is_b) { return i->aux >> (is_b ? MMA_B_SHIFT : 0) & 15; }
static u32 count_of(const Ins *i, int is_b) {
    return mma_field(i, MMA_LENGTH) * (is_b ? COLUMNS : mma_field(i, MMA_ROWS));
}

/* The sums so far, row by row, and back: two neighbours in one register where they are halves. */
static void gather_sums(const Warp *w, const Ins *i, u32 *sums) {
    const u32 *const c = RAW(2);
    const int half = (i->aux & MMA_HALF) != 0;
    for (u32 r = 0; r < mma_field(i, MMA_OF_C); r++)
        FOR_LANES {
            const u32 word = c[r * LANES + (u32)l], at = 2 * (u32)l;
            if (half) {
                sums[8 * COLUMNS * r + at] = word & 0xffff;
                sums[8 * COLUMNS * r + at + 1] = word >> 16;
            } else sums[8 * COLUMNS * (r / 2) + at + r % 2] = word;
        }
}

static void put_sums(const Warp *w, const Ins *i, const u32 *sums) {
    u32 *const d = DESTINATION;
    const int half = (i->aux & MMA_HALF) != 0;
    for (u32 r = 0; r < mma_field(i, MMA_OF_D); r++)
        FOR_LANES {
            const u32 at = 2 * (u32)l;
            d[r * LANES + (u32)l] = half ? sums[8 * COLUMNS * r + at] | sums[8 * COLUMNS * r + at + 1] << 16
                                         : sums[8 * COLUMNS * (r / 2) + at + r % 2];
        }
}

/* The scales of row or column `line`, and how many they are. */
static u32 gather_scales(const Warp *w, const Ins *i, int of_b, u32 line, TensorScale *scales) {
    const u32 where = RAW(5)[0], count = i->aux >> MMA_SCALES_SHIFT & MMA_SCALES_MASK;
    const u32 byte = where >> (of_b ? MMA_B_BYTE : MMA_A_BYTE) & 3;
    const u32 lane = of_b ? 4 * line + (where >> MMA_B_LANE & 3)
                          : line % 8 * 4 + 2 * (where >> MMA_A_LANES & 1) + line / 8;
    const u32 word = RAW(of_b ? 4 : 3)[lane];
    for (u32 n = 0; n < count; n++)
        scales[n] = tensor_scale(word >> 8 * ((byte + n) % 4) & 0xff, (i->aux & MMA_SCALE_HAS_FRACTION) != 0);
    return count;
}

/* Multiply the decoded elements of each row of A, or column of B, by its scale. Returns 1 where one is NaN. */
static int scale_lines(const Warp *w, const Ins *i, int of_b, i32 *e) {
    const u32 length = mma_field(i, MMA_LENGTH), lines = of_b ? COLUMNS : mma_field(i, MMA_ROWS);
    int special = 0;
    for (u32 n = 0; n < lines; n++) {
        TensorScale scale;
        gather_scales(w, i, of_b, n, &scale);
        special |= tensor_scale_elements(scale, length, of_b ? COLUMNS : 1, e + (of_b ? n : n * length));
    }
    return special;
}

ALWAYS_INLINE void multiply(const Warp *w, const Ins *i, const int is_scaled) {
    u32 x[MOST_A], sums[MOST_SUMS];
    i32 e[2][MOST_A];
    float s[2][MOST_A];
    int special = 0;
    const u32 half = (i->aux & MMA_HALF) != 0;
    const TensorRule rule = {
        .a = format_of(i, 0), .b = format_of(i, 1), .half = half, .block = i->aux >> MMA_BLOCK_SHIFT & 0xff,
        .fraction = (i32)(i->aux >> MMA_FRACTION_SHIFT & MMA_FRACTION_MASK),
        .floor = half ? TENSOR_FLOOR_HALF : TENSOR_FLOOR, .kept = i->aux & MMA_SHORT ? 13 : 23,
    };
    for (int of_b = 0; of_b < 2; of_b++) {
        gather_operand(w, i, of_b, format_of(i, of_b), x);
        special |= tensor_decode(format_of(i, of_b), x, count_of(i, of_b), e[of_b], s[of_b]);
        if (is_scaled) special |= scale_lines(w, i, of_b, e[of_b]);
    }
    gather_sums(w, i, sums);
    tensor_sums(&rule, mma_field(i, MMA_ROWS), COLUMNS, mma_field(i, MMA_LENGTH), e[0], s[0], e[1], s[1], special,
                sums);
    put_sums(w, i, sums);
}

OPERATION(MMA) {
    if (is_whole_warp(core, w, m) && !(i->flags & MMA_NO_VALUES)) multiply(w, i, 0);
}

OPERATION(MMA_SCALED) {
    if (is_whole_warp(core, w, m) && !(i->flags & MMA_NO_VALUES)) multiply(w, i, 1);
}

OPERATION(MMA_SCALED_FOURS) {
    if (!is_whole_warp(core, w, m) || i->flags & MMA_NO_VALUES) return;
    u32 a[MOST_ROWS * SCALED_LENGTH], b[SCALED_LENGTH * COLUMNS], sums[MOST_SUMS], count = 0;
    TensorScale of_a[MOST_ROWS * SCALED_TERMS], of_b[COLUMNS * SCALED_TERMS];
    gather(i, RAW(0), 0, 4, a);
    gather(i, RAW(1), 1, 4, b);
    for (u32 n = 0; n < MOST_ROWS; n++) count += gather_scales(w, i, 0, n, of_a + count);
    count = 0;
    for (u32 n = 0; n < COLUMNS; n++) count += gather_scales(w, i, 1, n, of_b + count);
    gather_sums(w, i, sums);
    tensor_scaled_sums(MOST_ROWS, (i32)(i->aux >> MMA_FRACTION_SHIFT & MMA_FRACTION_MASK), count / COLUMNS, a, of_a, b,
                       of_b, sums);
    put_sums(w, i, sums);
}

/* Signed elements are extended to 32 bits. */
static void gather_integers(const Warp *w, const Ins *i, int of_b, u32 *x) {
    const u32 format = format_of(i, of_b), sign = format == MMA_S8 ? 1u << 7 : format == MMA_S4 ? 1u << 3 : 0;
    gather_operand(w, i, of_b, format, x);
    for (u32 n = 0; n < count_of(i, of_b); n++) x[n] = (x[n] ^ sign) - sign;
}

OPERATION(MMA_INTEGER) {
    if (!is_whole_warp(core, w, m) || i->flags & MMA_NO_VALUES) return;
    u32 a[MOST_A], b[MOST_B], sums[MOST_SUMS];
    gather_integers(w, i, 0, a);
    gather_integers(w, i, 1, b);
    gather_sums(w, i, sums);
    tensor_integer_sums(mma_field(i, MMA_ROWS), COLUMNS, mma_field(i, MMA_LENGTH), (const i32 *)a, (const i32 *)b,
                        (i->aux & MMA_SATURATES) != 0, sums);
    put_sums(w, i, sums);
}

OPERATION(MMA_BITS) {
    if (!is_whole_warp(core, w, m) || i->flags & MMA_NO_VALUES) return;
    u32 a[MOST_A], b[MOST_B], sums[MOST_SUMS];
    gather(i, RAW(0), 0, 32, a);
    gather(i, RAW(1), 1, 32, b);
    gather_sums(w, i, sums);
    tensor_bit_sums(mma_field(i, MMA_ROWS), COLUMNS, mma_field(i, MMA_LENGTH), a, b, (i->aux & MMA_DIFFER) != 0,
                    sums);
    put_sums(w, i, sums);
}

static u64 pair_at(const u32 *from, u32 n, int l) {
    return (u64)from[(2 * n + 1) * LANES + (u32)l] << 32 | from[2 * n * LANES + (u32)l];
}

/* Double precision: two registers hold an element. */
OPERATION(MMA_DOUBLE) {
    if (!is_whole_warp(core, w, m)) return;
    u64 a[MOST_A], b[MOST_B], sums[MOST_SUMS];
    const u32 rows = mma_field(i, MMA_ROWS), length = mma_field(i, MMA_LENGTH);
    for (u32 n = 0; n < mma_field(i, MMA_OF_A) / 2; n++)
        FOR_LANES a[place_in_a((u32)l, n, 1, rows, length)] = pair_at(RAW(0), n, l);
    for (u32 n = 0; n < mma_field(i, MMA_OF_B) / 2; n++)
        FOR_LANES b[place_in_b((u32)l, n, 1)] = pair_at(RAW(1), n, l);
    for (u32 n = 0; n < mma_field(i, MMA_OF_C) / 2; n++)
        FOR_LANES sums[8 * COLUMNS * (n / 2) + 2 * (u32)l + n % 2] = pair_at(RAW(2), n, l);
    tensor_double_sums(rows, COLUMNS, length, a, b, rounding(i->flags), sums);
    for (u32 n = 0; n < mma_field(i, MMA_OF_D) / 2; n++) {
        u32 *const d = DESTINATION + 2 * n * LANES;
        FOR_LANES put64(d, l, sums[8 * COLUMNS * (n / 2) + 2 * (u32)l + n % 2]);
    }
}

/* Lane n of 8 that share a product. */
static u32 lane_of_quads(u32 quad, u32 n) { return 4 * quad + n % 4 + n / 4 * 16; }

/* Four halves of lane n: A row by row, or B, beside each other in columns. */
static void gather_quads(const Warp *w, const Ins *i, u32 quad, int is_b, u32 *x) {
    const int across = (i->aux & (is_b ? QUAD_ROWS_OF_B : QUAD_COLUMNS_OF_A)) != 0;
    for (u32 n = 0; n < LANES_OF_QUADS; n++)
        for (u32 k = 0; k < QUAD_LENGTH; k++) {
            const u32 value = RAW(is_b)[k / 2 * LANES + lane_of_quads(quad, n)] >> 16 * (k % 2) & 0xffff;
            const u32 line = across ? k + n / 4 * 4 : n, along = across ? n % 4 : k; /* row of A or column of B, K */
            x[is_b ? along * COLUMNS + line : line * QUAD_LENGTH + along] = value;
        }
}

/* Where element e of the two registers of lane n stands in the sums: e is 0 to 3 of halves, else 0 or 1. */
static u32 place_in_quads(u32 n, u32 e, u32 step, int halves, u32 columns_of_halves) {
    if (halves) return n * COLUMNS + columns_of_halves + e;
    const u32 k = 2 * step + e;
    return ((n & 1) + (k & 2) + n / 4 * 4) * COLUMNS + (k & 4) + (n & 2) + (k & 1);
}

OPERATION(MMA_QUADS) {
    if (!is_whole_warp(core, w, m)) return;
    const u32 step = i->aux >> QUAD_STEP_SHIFT & 3, half = (i->aux & MMA_HALF) != 0;
    const int halves_of_c = (i->aux & QUAD_HALVES_OF_C) != 0;
    const u32 columns = 4 * (half ? step : step / 2); /* of four halves: a step of FP32 sums takes half of them */
    const TensorRule rule = {.a = TENSOR_F16, .b = TENSOR_F16, .half = half, .block = QUAD_LENGTH,
                             .fraction = (i32)(i->aux >> MMA_FRACTION_SHIFT & MMA_FRACTION_MASK),
                             .floor = half ? TENSOR_FLOOR_HALF : TENSOR_FLOOR, .kept = 23};
    u32 found[QUAD_REGISTERS][LANES] = {{0}};
    for (u32 quad = 0; quad < QUADS; quad++) {
        u32 x[LANES_OF_QUADS * QUAD_LENGTH], sums[LANES_OF_QUADS * COLUMNS] = {0};
        i32 e[2][LANES_OF_QUADS * QUAD_LENGTH];
        float s[2][LANES_OF_QUADS * QUAD_LENGTH];
        int special = 0;
        for (int of_b = 0; of_b < 2; of_b++) {
            gather_quads(w, i, quad, of_b, x);
            special |= tensor_decode(TENSOR_F16, x, LANES_OF_QUADS * QUAD_LENGTH, e[of_b], s[of_b]);
        }
        for (u32 n = 0; n < LANES_OF_QUADS; n++)
            for (u32 k = 0; k < (halves_of_c ? 4u : 2u); k++) {
                const u32 word = RAW(2)[(halves_of_c ? k / 2 : k) * LANES + lane_of_quads(quad, n)];
                const u32 value = halves_of_c ? word >> 16 * (k % 2) & 0xffff : word;
                sums[place_in_quads(n, k, step, halves_of_c, columns)] =
                    halves_of_c && !half ? widened_half(value) : value;
            }
        tensor_sums(&rule, LANES_OF_QUADS, COLUMNS, QUAD_LENGTH, e[0], s[0], e[1], s[1], special, sums);
        for (u32 n = 0; n < LANES_OF_QUADS; n++)
            for (u32 k = 0; k < (half ? 4u : 2u); k++) {
                const u32 value = sums[place_in_quads(n, k, step, half, columns)];
                found[half ? k / 2 : k][lane_of_quads(quad, n)] |= half ? value << 16 * (k % 2) : value;
            }
    }
    memcpy(DESTINATION, found, sizeof found);
}
