#include "gmma.h"

#include <string.h>

#include "costs.h"
#include "grow.h"
#include "lanes.h"
#include "matrix.h"
#include "operations.h"
#include "space.h"
#include "stream.h"
#include "tensor_sum.h"

enum { PIECE = 16, ROWS_OF_PIECE = 8, K_OF_PIECES = 16 }; /* bytes; of 16-bit elements, and K of those */

static u32 field(u64 descriptor, u32 bit) { return (u32)(descriptor >> bit & 0x3fff) * PIECE; }

MatrixDescriptor descriptor_at(const Warp *w, const Ins *i, u32 is_b) {
    static const u32 swizzles[] = {0, 128, 64, 32};
    const u32 *const x = RAW(2) + 2 * is_b * LANES + __builtin_ctz(together(w));
    const u64 d = (u64)x[LANES] << 32 | x[0];
    return (MatrixDescriptor){.start = field(d, 0), .leading = field(d, 16), .stride = field(d, 32),
                              .base = (u32)(d >> 49 & 7), .swizzle = swizzles[d >> 62]};
}

/* Pieces change places within lines of 128 bytes, by the number of the line (measured on an H100, with 369
 * descriptors: tests/toolkit/sass/test_gmma.py). */
static u32 swizzled_address(const MatrixDescriptor *m, u32 address) {
    if (!m->swizzle) return address;
    return address ^ (((address >> 7) - m->base) & (m->swizzle / PIECE - 1)) << 4;
}

/* K-major: rows of 32 bytes, in groups of 8. */
static void each_row(const MatrixDescriptor *m, u32 first, u32 rows, OnPiece *act, void *context) {
    const u32 pitch = m->swizzle ? m->swizzle : PIECE, half = m->swizzle ? PIECE : m->leading;
    for (u32 r = first; r < first + rows; r++)
        for (u32 k = 0; k < 2; k++)
            act(context, (r - first) * 2 + k,
                swizzled_address(m, m->start + r / 8 * m->stride + r % 8 * pitch + k * half));
}

/* MN-major: 8 rows of one k, of 16-bit elements, are a piece. */
static void each_column(const MatrixDescriptor *m, u32 first, u32 rows, OnPiece *act, void *context) {
    const u32 across = m->swizzle ? m->swizzle : PIECE, pitch = m->swizzle ? m->swizzle : PIECE;
    for (u32 r = first; r < first + rows; r += ROWS_OF_PIECE)
        for (u32 k = 0; k < K_OF_PIECES; k++) {
            const u32 byte = 2 * r, group = byte / across, within = byte % across;
            const u32 far = m->swizzle ? group * m->leading + k / 8 * m->stride
                                       : group * m->stride + k / 8 * m->leading;
            act(context, (r - first) / ROWS_OF_PIECE * K_OF_PIECES + k,
                swizzled_address(m, m->start + far + k % 8 * pitch + within));
        }
}

void each_piece(const MatrixDescriptor *m, int transposed, u32 first_row, u32 rows, OnPiece *act, void *context) {
    if (transposed) each_column(m, first_row, rows, act, context);
    else each_row(m, first_row, rows, act, context);
}

/* Rows of a matrix, 32 bytes each, from shared memory. */
typedef struct {
    Worker *c;
    const MatrixDescriptor *m;
    u32 *rows; /* [..][GMMA_WORDS] */
    int transposed;
    u32 is_b;
} Gather;

static void outside(const Gather *x, u32 address) {
    Worker *c = x->c;
    if (c->fault.kind) return;
    stop(c, DESCRIPTOR);
    c->fault.space = SPACE_SHARED;
    c->fault.address = address;
    c->fault.width = PIECE;
    c->fault.waiting = x->is_b;
    const u64 words[] = {x->m->start, x->m->leading, x->m->stride, x->m->swizzle};
    memcpy(c->fault.words, words, sizeof words);
}

static void gather_piece(void *context, u32 n, u32 address) {
    const Gather *x = context;
    const Launch *launch = x->c->launch;
    if (address < launch->shared_base || address + PIECE > launch->shared_bytes) {
        outside(x, address);
        return;
    }
    const u8 *from = x->c->block->shared + address;
    if (!x->rows) return;
    if (!x->transposed) {
        memcpy((u8 *)x->rows + n * PIECE, from, PIECE);
        return;
    }
    const u32 k = n % K_OF_PIECES, first = n / K_OF_PIECES * ROWS_OF_PIECE;
    for (u32 r = 0; r < ROWS_OF_PIECE; r++)
        memcpy((u8 *)x->rows + (first + r) * GMMA_BYTES + 2 * k, from + 2 * r, 2);
}

/* A matrix that was found inside of shared memory: the next one is most often one of the last few. */
typedef struct { MatrixDescriptor m; u32 first, count, transposed, shared_bytes; } Found;

enum { KEPT_MATRICES = 64 };

static Found *place_of(const Found *x) {
    static _Thread_local Found kept[KEPT_MATRICES];
    return &kept[(x->m.start / PIECE + x->first + x->count) % KEPT_MATRICES];
}

/* Rows of A or columns of B; `rows` NULL: they are only looked for. */
static void gather(Worker *c, const Warp *w, const Ins *i, u32 is_b, u32 first, u32 count, u32 *rows) {
    const MatrixDescriptor m = descriptor_at(w, i, is_b);
    Gather x = {.c = c, .m = &m, .rows = rows, .is_b = is_b,
                .transposed = (i->flags & (is_b ? GMMA_TRANSPOSED_B : GMMA_TRANSPOSED_A)) != 0};
    const Found found = {m, first, count, (u32)x.transposed, c->launch->shared_bytes};
    Found *const kept = place_of(&found);
    if (!rows && !memcmp(kept, &found, sizeof found)) return;
    each_piece(&m, x.transposed, first, count, gather_piece, &x);
    if (!c->fault.kind) *kept = found;
}

/* A in registers: word 4 (r / 2) + lane % 4 of rows lane / 4 + 8 (r % 2) (PTX ISA, wgmma, register fragments). */
static void rows_in_registers(const Warp *w, const Ins *i, u32 *rows) {
    const u32 *x = RAW(1);
    for (u32 r = 0; r < 4; r++)
        FOR_LANES rows[(l / 4 + 8 * (r % 2)) * GMMA_WORDS + 4 * (r / 2) + l % 4] = x[r * LANES + l];
}

/* Elements. */

static u32 bits_of_type(u32 type) {
    switch (type) {
    case GMMA_F16: case GMMA_BF16: return 16;
    case GMMA_TF32: case GMMA_B1: return 32; /* bits are taken by words */
    default: return 8;
    }
}

static u32 element_of(const u32 *row, u32 k, u32 bits) {
    const u32 bit = k * bits;
    return row[bit / 32] >> bit % 32 & (bits == 32 ? FULL : (1u << bits) - 1);
}

/* Rows as elements, each in a word: [row][k], or [k][row] of B. `sign`: a bit that flips. */
static void spread(const u32 *rows, u32 count, u32 type, u32 sign, int across, u32 *x) {
    const u32 bits = bits_of_type(type), length = 8 * GMMA_BYTES / bits;
    for (u32 r = 0; r < count; r++)
        for (u32 k = 0; k < length; k++)
            x[across ? k * count + r : r * length + k] = element_of(rows + r * GMMA_WORDS, k, bits) ^ sign;
}

static u32 sign_of(u32 type) { return 1u << (bits_of_type(type) - 1); }

enum { MOST_K = 32, MOST_OF_A = GMMA_ROWS * MOST_K, MOST_OF_B = MOST_GMMA_COLUMNS * MOST_K };

static TensorRule rule_of(u32 a, u32 b, int half) {
    static const u32 formats[] = {TENSOR_F16, TENSOR_BF16, TENSOR_TF32, TENSOR_E4M3, TENSOR_E5M2};
    const int bytes = a == GMMA_E4M3 || a == GMMA_E5M2;
    return (TensorRule){.a = formats[a], .b = formats[b], .half = (u32)half,
                        .block = bytes ? 32 : a == GMMA_TF32 ? 8 : 16, .fraction = bytes ? 13 : 25,
                        .floor = half ? TENSOR_FLOOR_HALF : TENSOR_FLOOR, .kept = bytes ? 13 : 23};
}

/* Columns of B as they are in shared memory, and decoded: the four warps of a group multiply by the same ones. */
typedef struct {
    u32 type, sign, count;
    int special;
    u32 columns[MOST_GMMA_COLUMNS * GMMA_WORDS];
    i32 e[MOST_OF_B];
    float s[MOST_OF_B];
} Decoded;

enum { KEPT_DECODED = 8 };

/* Memory of a worker for the matrices in hand. */
struct MatrixRoom {
    u32 sums[GMMA_ROWS * MOST_GMMA_COLUMNS], a[GMMA_ROWS * GMMA_WORDS], b[MOST_GMMA_COLUMNS * GMMA_WORDS];
    u32 raw[MOST_OF_B];
    i32 e[MOST_OF_A], whole_a[MOST_OF_A], whole_b[MOST_OF_B];
    float s[MOST_OF_A];
    Decoded decoded[KEPT_DECODED];
    u32 next;
};

static const Decoded *decoded_of(MatrixRoom *room, u32 format, u32 type, u32 sign, u32 n, u32 length) {
    for (u32 k = 0; k < KEPT_DECODED; k++) {
        const Decoded *x = &room->decoded[k];
        if (x->count == n && x->type == type && x->sign == sign &&
            !memcmp(x->columns, room->b, n * GMMA_BYTES))
            return x;
    }
    Decoded *x = &room->decoded[room->next++ % KEPT_DECODED];
    x->type = type, x->sign = sign, x->count = n;
    memcpy(x->columns, room->b, n * GMMA_BYTES);
    spread(room->b, n, type, sign, 1, room->raw);
    x->special = tensor_decode(format, room->raw, n * length, x->e, x->s);
    return x;
}

static void float_sums(const Ins *i, u32 a_type, u32 b_type, MatrixRoom *room) {
    const u32 length = 8 * GMMA_BYTES / bits_of_type(a_type);
    const TensorRule rule = rule_of(a_type, b_type, i->aux & GMMA_HALF_SUMS ? 1 : 0);
    const Decoded *b = decoded_of(room, rule.b, b_type, i->flags & GMMA_NEGATED_B ? sign_of(b_type) : 0, i->width,
                                  length);
    spread(room->a, GMMA_ROWS, a_type, i->flags & GMMA_NEGATED_A ? sign_of(a_type) : 0, 0, room->raw);
    const int special = tensor_decode(rule.a, room->raw, GMMA_ROWS * length, room->e, room->s) | b->special;
    tensor_sums(&rule, GMMA_ROWS, i->width, length, room->e, room->s, b->e, b->s, special, room->sums);
}

static i32 whole(u32 x, u32 type) { return type == GMMA_S8 ? (i32)(int8_t)x : (i32)x; }

static void integer_sums(const Ins *i, u32 a_type, u32 b_type, MatrixRoom *room) {
    spread(room->a, GMMA_ROWS, a_type, 0, 0, room->raw);
    for (u32 k = 0; k < MOST_OF_A; k++) room->whole_a[k] = whole(room->raw[k], a_type);
    spread(room->b, i->width, b_type, 0, 1, room->raw);
    for (u32 k = 0; k < i->width * MOST_K; k++) room->whole_b[k] = whole(room->raw[k], b_type);
    tensor_integer_sums(GMMA_ROWS, i->width, MOST_K, room->whole_a, room->whole_b,
                        (i->flags & GMMA_SATURATES) != 0, room->sums);
}

static void bit_sums(const Ins *i, MatrixRoom *room) {
    spread(room->b, i->width, GMMA_B1, 0, 1, room->raw);
    tensor_bit_sums(GMMA_ROWS, i->width, GMMA_WORDS, room->a, room->raw, 0, room->sums);
}

/* Where the sums are: columns 8 g + 2 (lane % 4) and the next one of rows lane / 4 and that plus 8, in four
 * registers, or of FP16 in two (PTX ISA, wgmma, accumulator fragments). */
static void read_sums(const Warp *w, const Ins *i, u32 *sums) {
    const u32 *x = RAW(0), n = i->width;
    const int half = (i->aux & GMMA_HALF_SUMS) != 0;
    if (i->s[0] & POOL) { /* RZ */
        memset(sums, 0, GMMA_ROWS * n * sizeof *sums);
        return;
    }
    for (u32 g = 0; g < n / 8; g++)
        for (u32 r = 0; r < 2; r++)
            FOR_LANES {
                u32 *to = sums + (l / 4 + 8 * r) * n + 8 * g + 2 * (l % 4);
                if (half) {
                    const u32 pair = x[(2 * g + r) * LANES + l];
                    to[0] = pair & 0xffff, to[1] = pair >> 16;
                } else
                    for (u32 h = 0; h < 2; h++) to[h] = x[(4 * g + 2 * r + h) * LANES + l];
            }
}

static void write_sums(const Warp *w, const Ins *i, const u32 *sums) {
    u32 *const d = DESTINATION;
    const u32 n = i->width;
    const int half = (i->aux & GMMA_HALF_SUMS) != 0;
    for (u32 g = 0; g < n / 8; g++)
        for (u32 r = 0; r < 2; r++)
            FOR_LANES {
                const u32 *from = sums + (l / 4 + 8 * r) * n + 8 * g + 2 * (l % 4);
                if (half) d[(2 * g + r) * LANES + l] = (from[0] & 0xffff) | from[1] << 16;
                else
                    for (u32 h = 0; h < 2; h++) d[(4 * g + 2 * r + h) * LANES + l] = from[h];
            }
}

static void multiply(Worker *c, Warp *w, const Ins *i, u32 m) {
    if (!c->matrices && !ZEROS(c->matrices, 1)) { stop(c, NO_MEMORY); return; }
    MatrixRoom *const room = c->matrices;
    const u32 a_type = i->aux & GMMA_TYPE_MASK, b_type = i->aux >> GMMA_TYPE_BITS & GMMA_TYPE_MASK;
    const int is_wanted = !(i->flags & GMMA_NO_VALUES);
    const u32 first = w->index % WARPS_OF_GROUP * GMMA_ROWS;
    if (i->flags & GMMA_REGISTERS) rows_in_registers(w, i, room->a);
    else gather(c, w, i, 0, first, GMMA_ROWS, is_wanted ? room->a : NULL);
    gather(c, w, i, 1, 0, i->width, is_wanted ? room->b : NULL);
    if (c->fault.kind) {
        blame(c, w, m);
        return;
    }
    if (!is_wanted) return;
    if (READ_PREDICATE(0) & m) read_sums(w, i, room->sums);
    else memset(room->sums, 0, GMMA_ROWS * i->width * sizeof *room->sums);
    switch (a_type) {
    case GMMA_S8: case GMMA_U8: integer_sums(i, a_type, b_type, room); break;
    case GMMA_B1: bit_sums(i, room); break;
    default: float_sums(i, a_type, b_type, room);
    }
    write_sums(w, i, room->sums);
}

/* Reads of A and B are counted once, at the first warp of the group: 16 wavefronts for A, and one for each four
 * columns of B, without conflicts whatever the layout (counted on an H100). */
static void count_reads(Worker *c, const Warp *w, const Ins *i) {
    Count *count = &c->count[c->pc];
    count->requests++;
    if (w->index % WARPS_OF_GROUP) return;
    const u32 wavefronts = (i->flags & GMMA_REGISTERS ? 0 : GMMA_ROWS) + i->width / 4;
    count->wavefronts += wavefronts;
    count->conflict_free += wavefronts;
    count->ideal += wavefronts;
}

/* All four warps of a group multiply, each of them whole. */
static int is_whole_group(Worker *c, const Warp *w, u32 m) {
    if (!is_whole_warp(c, w, m)) return 0;
    if ((w->index | (WARPS_OF_GROUP - 1)) < c->warp_count) return 1;
    stop(c, PARTIAL_GROUP);
    blame(c, w, m);
    return 0;
}

/* A warp of the group waits until the others have multiplied as often. */
static int is_waited_for(const Worker *c, const Warp *w) {
    const Warp *first = c->block->warps + w->index / WARPS_OF_GROUP * WARPS_OF_GROUP;
    for (const Warp *other = first; other < first + WARPS_OF_GROUP; other++)
        if (other->groups == 1 && other->group[0].state == AT_MBARRIER) return 1;
    return 0;
}

OPERATION(GMMA) {
    if (!is_whole_group(core, w, m)) return;
    w->products++;
    w->last_product = core->pc;
    if (i->flags & GMMA_COMMITS) w->closed[w->product_groups++ % KEPT_PRODUCT_GROUPS] = w->products;
    if (is_waited_for(core, w)) core->phases++;
    count_reads(core, w, i); /* of one that only closes a group too, as an H100 counts them */
    if (!(i->flags & GMMA_EMPTY)) multiply(core, w, i, m);
}

/* WARPGROUP.ARRIVE: registers are ready, as all instructions before this one are complete. */
OPERATION(GMMA_ARRIVE) { is_whole_group(core, w, m); }

/* The warp executes its instruction again, once another one has done something. */
static void wait_here(Worker *c, Warp *w) {
    Group *g = &w->group[w->current];
    g->state = AT_MBARRIER;
    g->mbarrier = c->launch->shared_base;
    g->pc = c->pc;
    g->retries = 1;
    if (c->stream) take_step_back(c->stream);
}

/* True if all warps of the group made the products for which this one waits: hardware makes them together, so
 * that what one warp then tells others holds for all four. */
static int are_made(const Worker *c, const Warp *w, u32 left) {
    if (w->product_groups <= left || left >= KEPT_PRODUCT_GROUPS) return 1;
    const u32 wanted = w->closed[(w->product_groups - left - 1) % KEPT_PRODUCT_GROUPS];
    const Warp *first = c->block->warps + w->index / WARPS_OF_GROUP * WARPS_OF_GROUP;
    for (u32 k = 0; k < WARPS_OF_GROUP; k++)
        if (first[k].products < wanted) return 0;
    return 1;
}

/* WARPGROUP.DEPBAR: of the groups of this warp all but the last aux are made; 1 if so. */
int wait_for_products(Worker *c, Warp *w, const Ins *i, u32 m) {
    if (!is_whole_group(c, w, m)) return 0;
    if (are_made(c, w, i->aux)) return 1;
    wait_here(c, w);
    return 0;
}

OPERATION(GMMA_WAIT) { wait_for_products(core, w, i, m); }

/* setmaxnreg: warps give registers back to their block, which others take. */
static u32 registers_of(const Worker *c, const Warp *w) { return w->registers ? w->registers : c->launch->registers; }

OPERATION(REGISTERS_GIVE) {
    if (!is_whole_group(core, w, m)) return;
    core->block->spare_registers += (i32)registers_of(core, w) - (i32)i->aux;
    w->registers = i->aux;
    core->changes++;
    core->phases++;
}

/* pd[0]: so many were made. Hardware polls for them; here the warp waits for them. */
OPERATION(REGISTERS_TAKE) {
    if (!is_whole_group(core, w, m)) return;
    const i32 wanted = (i32)i->aux - (i32)registers_of(core, w);
    if (wanted > core->block->spare_registers) {
        wait_here(core, w);
        return;
    }
    core->block->spare_registers -= wanted;
    w->registers = i->aux;
    core->changes++;
    WRITE_PREDICATE(0, FULL);
}

/* The warps of each group have multiplied as often as each other; else hardware waits for ever. */
void check_products(Worker *c, const Block *b) {
    EACH_WARP(w, b) {
        const Warp *first = w - w->index % WARPS_OF_GROUP;
        if (w->products == first->products || c->fault.kind) continue;
        const Warp *more = w->products > first->products ? w : first, *less = more == w ? first : w;
        c->pc = more->last_product;
        stop(c, PARTIAL_GROUP);
        c->fault.block = b->index;
        c->fault.warp = more->index;
        c->fault.waiting = more->products;
        c->fault.pending = less->products;
        c->fault.phase = less->index;
    }
}
