#include "origins.h"

#include <stdlib.h>
#include <string.h>

#include "atomics.h"
#include "compare.h"
#include "control.h"
#include "convert.h"
#include "grow.h"
#include "integer.h"
#include "lanes.h"
#include "memory.h"
#include "operations.h"
#include "space.h"
#include "warp.h"

enum { BUCKETS = 2 * MOST_AFFINE, WORD_BYTES = 4, SECTOR_BITS = 5, BANK_BITS = 7, MOST_WORDS = 4 };
enum { LEAST_IN_WINDOW = 32 }; /* blocks: with fewer, nearly every block would be of a class of its own */

static const i64 UNIT = 1ll << FRACTION_BITS, TOO_FAR = 1ll << 60, FAR_AWAY = 1ll << 44, WRAP_32 = 1ll << 32;

struct Origins {
    const Launch *launch;
    u32 warps, count;
    Affine affine[MOST_AFFINE];
    u16 bucket[BUCKETS];   /* an affine origin, 0: none */
    u32 period_bits[3];
    u16 of_shared, of_local, reduced; /* what all of a memory, and what barriers reduced, may depend on */
    u16 under;             /* what decides whether the instruction in hand is executed */
    u16 *registers;        /* [warps][slots][LANES] */
    u16 *predicates;       /* [warps][PREDICATES][LANES] */
    u16 *shared;           /* [words] */
    u16 *local;            /* [warps][LANES][words] */
    Dependence *of;        /* [length] */
};

static const u16 same_in_all[MOST_WORDS * LANES];

static size_t local_words(const Launch *launch) { return launch->local_bytes / WORD_BYTES; }
static size_t shared_words(const Launch *launch) { return launch->shared_bytes / WORD_BYTES + 1; }

void free_origins(Origins *o) {
    if (!o) return;
    free(o->registers); free(o->predicates); free(o->shared); free(o->local); free(o->of);
    free(o);
}

Origins *new_origins(const Launch *launch, u32 warps) {
    Origins *o;
    if (!ZEROS(o, 1)) return NULL;
    o->launch = launch;
    o->warps = warps;
    if (ZEROS(o->registers, (size_t)warps * launch->slots * LANES) &&
        ZEROS(o->predicates, (size_t)warps * PREDICATES * LANES) && ZEROS(o->shared, shared_words(launch)) &&
        ZEROS(o->local, (size_t)warps * LANES * local_words(launch) + 1) && ZEROS(o->of, launch->length))
        return o;
    free_origins(o);
    return NULL;
}

/* Of the next block: nothing is known but what instructions depend on. */
void begin_origins(Origins *o) {
    const Launch *launch = o->launch;
    o->count = o->of_shared = o->of_local = o->reduced = 0;
    memset(o->bucket, 0, sizeof o->bucket);
    memset(o->period_bits, 0, sizeof o->period_bits);
    memset(o->registers, 0, (size_t)o->warps * launch->slots * LANES * sizeof(u16));
    memset(o->predicates, 0, (size_t)o->warps * PREDICATES * LANES * sizeof(u16));
    memset(o->shared, 0, shared_words(launch) * sizeof(u16));
    memset(o->local, 0, (size_t)o->warps * LANES * local_words(launch) * sizeof(u16));
}

const Affine *affine_origins(const Origins *o, u32 *count, u32 periods[3]) {
    *count = o->count;
    for (int axis = 0; axis < 3; axis++) periods[axis] = 1u << o->period_bits[axis];
    return o->affine;
}

const Dependence *dependences(const Origins *o) { return o->of; }

/* Origins of single values. */

static inline u16 worse(u16 x, u16 y) { return x > y ? x : y; }
static inline void worsen(u16 *x, u16 y) { *x = worse(*x, y); }
static inline void note(u8 *x, u16 kind) { *x = (u8)worse(*x, kind); }

/* What a value depends on that any other function is taken of. */
static inline u16 kind_of(u16 origin) { return origin <= DATA ? origin : BLOCK_INDEX; }
static inline u16 kind_of_two(u16 x, u16 y) { return worse(kind_of(x), kind_of(y)); }
static inline int is_affine(u16 origin) { return origin >= FIRST_AFFINE; }
static inline int is_known(u16 origin) { return origin == SAME || is_affine(origin); }
static inline Affine *affine_of(Origins *o, u16 origin) { return &o->affine[origin - FIRST_AFFINE]; }

/* The origin of values that grow by these per block. */
static u16 growing(Origins *o, const __int128 c[3]) {
    i64 exact[3];
    u64 hash = 0;
    for (int axis = 0; axis < 3; axis++) {
        const __int128 x = o->launch->grid[axis] > 1 ? c[axis] : 0, far = x * o->launch->grid[axis];
        if (far > TOO_FAR || far < -TOO_FAR) return BLOCK_INDEX;
        exact[axis] = (i64)x;
        hash = (hash ^ (u64)x) * 0x9e3779b97f4a7c15ull;
    }
    if (!exact[0] && !exact[1] && !exact[2]) return SAME;
    for (u32 k = (u32)(hash >> 40);; k++) {
        u16 *const place = &o->bucket[k % BUCKETS];
        if (*place && !memcmp(affine_of(o, *place)->c, exact, sizeof exact)) return *place;
        if (*place) continue;
        if (o->count == MOST_AFFINE) return BLOCK_INDEX;
        o->affine[o->count] = (Affine){.c = {exact[0], exact[1], exact[2]}, .low = -TOO_FAR, .high = TOO_FAR};
        *place = (u16)(FIRST_AFFINE + o->count++);
        return *place;
    }
}

/* Of x * by + y * times. */
static u16 combination(Origins *o, u16 x, i64 by, u16 y, i64 times) {
    if (!is_known(x) || !is_known(y)) return kind_of_two(x, y);
    if (by == 1 && y == SAME) return x;
    __int128 c[3] = {0};
    for (int axis = 0; axis < 3; axis++) {
        if (x) c[axis] += (__int128)affine_of(o, x)->c[axis] * by;
        if (y) c[axis] += (__int128)affine_of(o, y)->c[axis] * times;
    }
    return growing(o, c);
}

static u16 scaled_by(Origins *o, u16 x, i64 by) { return combination(o, x, by, SAME, 0); }

/* Of a word of a product, of which only the lowest 32 bits matter. */
static u16 word_scaled_by(Origins *o, u16 x, i64 by) {
    if (!is_affine(x)) return x;
    __int128 c[3];
    for (int axis = 0; axis < 3; axis++) {
        const __int128 whole = (__int128)WRAP_32 * UNIT, product = (__int128)affine_of(o, x)->c[axis] * by;
        c[axis] = product % whole;
        if (c[axis] >= whole / 2) c[axis] -= whole;
        if (c[axis] < -whole / 2) c[axis] += whole;
    }
    return growing(o, c);
}

/* Blocks whose value of this origin differs by less than `low` or more than `high` may do something else. */
static void limit(Origins *o, u16 origin, i64 low, i64 high) {
    if (o->under || !is_affine(origin)) return;
    Affine *const x = affine_of(o, origin);
    low = (low < -FAR_AWAY ? -FAR_AWAY : low) * UNIT;
    high = (high > FAR_AWAY ? FAR_AWAY : high) * UNIT;
    if (low > x->low) x->low = low;
    if (high < x->high) x->high = high;
}

/* A value that must stay in a range, and be itself, not wrap. */
static void keep_within(Origins *o, u16 origin, i64 value, i64 least, i64 most) {
    limit(o, origin, least - value, most - value);
}
static void keep_unsigned(Origins *o, u16 origin, u32 value) { keep_within(o, origin, value, 0, UINT32_MAX); }
static void keep_signed(Origins *o, u16 origin, u32 value) {
    keep_within(o, origin, as_signed(value), INT32_MIN, INT32_MAX);
}
static void keep_sign(Origins *o, u16 origin, u32 value, u32 is_signed) {
    if (is_signed) keep_signed(o, origin, value);
    else keep_unsigned(o, origin, value);
}

/* Whether blocks at some period have the same lowest `bits`; if so, that period is noted. */
static int is_whole(Origins *o, u16 origin, u32 bits) {
    u32 needed[3] = {0};
    if (!is_affine(origin) || !bits) return 1;
    for (int axis = 0; axis < 3; axis++) {
        const i64 c = affine_of(o, origin)->c[axis];
        const u32 zeros = c ? (u32)__builtin_ctzll((u64)c) : 64, wanted = bits + FRACTION_BITS;
        if (wanted > zeros) needed[axis] = wanted - zeros;
        if (needed[axis] > MOST_PERIOD_BITS) return 0;
    }
    for (int axis = 0; axis < 3 && !o->under; axis++)
        if (needed[axis] > o->period_bits[axis]) o->period_bits[axis] = needed[axis];
    return 1;
}

/* Whether so many blocks in a row are in one window of 2^bits of their values. */
static int is_wide(Origins *o, u16 origin, u32 bits) {
    for (int axis = 0; axis < 3; axis++)
        if (llabs(affine_of(o, origin)->c[axis]) * LEAST_IN_WINDOW > (UNIT << bits)) return 0;
    return 1;
}

/* Of a value shifted right by n < 32 bits. */
static u16 shifted_right(Origins *o, u16 origin, u32 value, u32 n, u32 is_signed) {
    if (!is_affine(origin) || !n) return origin;
    const i64 x = is_signed ? as_signed(value) : (i64)value, first = x >> n << n;
    i64 all = 0;
    for (int axis = 0; axis < 3; axis++) all |= affine_of(o, origin)->c[axis];
    if ((u32)__builtin_ctzll((u64)all) >= n && is_whole(o, origin, n)) {
        __int128 c[3];
        for (int axis = 0; axis < 3; axis++) c[axis] = affine_of(o, origin)->c[axis] >> n;
        keep_sign(o, origin, value, is_signed);
        return growing(o, c);
    }
    if (!is_wide(o, origin, n)) return BLOCK_INDEX;
    keep_within(o, origin, x, first, first + (1ll << n) - 1);
    return SAME;
}

/* Of (value << n) >> 32: the same as long as no further bit is shifted out. */
static u16 shifted_out(Origins *o, u16 origin, u32 value, u32 n) {
    if (!is_affine(origin) || !n) return kind_of(n ? origin : SAME);
    const i64 window = WRAP_32 >> n, first = value / window * window;
    keep_within(o, origin, value, first, first + window - 1);
    return SAME;
}

/* The borders within which a and b compare alike. `truth`: of less, equal and greater, one bit each. The
 * difference of their origins is `origin`, a - b is `difference`. */
static void keep_order(Origins *o, u16 origin, i64 difference, u32 truth) {
    const int less = truth & 1, equal = truth >> 1 & 1, greater = truth >> 2 & 1;
    i64 least = -FAR_AWAY, most = FAR_AWAY;
    if (difference < 0) most = less != equal ? -1 : equal != greater ? 0 : FAR_AWAY;
    else if (difference > 0) least = greater != equal ? 1 : equal != less ? 0 : -FAR_AWAY;
    else {
        if (equal != less) least = 0;
        if (equal != greater) most = 0;
    }
    keep_within(o, origin, difference, least, most);
}

/* Vectors of origins. */

typedef struct { u16 x[LANES]; } Lanes;

static u16 *registers_of(Origins *o, const Warp *w, u32 slot) {
    return o->registers + ((size_t)w->index * o->launch->slots + slot) * LANES;
}
static u16 *predicates_of(Origins *o, const Warp *w, u32 slot) {
    return o->predicates + ((size_t)w->index * PREDICATES + (slot & ~(u32)PREDICATE_NOT)) * LANES;
}

static const u16 *read_origins(Origins *o, const Warp *w, const Ins *i, int k) {
    return i->s[k] & POOL ? same_in_all : registers_of(o, w, i->s[k]);
}

/* Of source k in lane l once its modifiers are applied. */
static u16 after_modifiers(Origins *o, const Ins *i, int k, u16 origin) {
    if (!i->mod[k] || !is_affine(origin)) return i->mod[k] ? kind_of(origin) : origin;
    if (i->mod[k] & ~(MOD_NOT | MOD_INT_NEG)) return BLOCK_INDEX;
    return i->mod[k] == (MOD_NOT | MOD_INT_NEG) ? origin : scaled_by(o, origin, -1);
}

static u16 kind_of_lanes(const u16 *x, u32 m) {
    u16 found = SAME;
    FOR_LANES_OF(m) worsen(&found, kind_of(x[l]));
    return found;
}

static int is_constant(u32 predicate) {
    const u32 slot = predicate & ~(u32)PREDICATE_NOT;
    return slot == PT || slot == UPT;
}

static u16 kind_of_predicate(Origins *o, const Warp *w, u32 slot, u32 m) {
    return is_constant(slot) ? SAME : kind_of_lanes(predicates_of(o, w, slot), m);
}

/* Words that source k has, and that are written. */
static u32 words_read(const Ins *i, int k) {
    const u32 words = i->width < WORD_BYTES ? 1 : i->width / WORD_BYTES;
    switch (i->op) {
    case OP_MOV64: case OP_ADD64: case OP_ISETP64: case OP_MINMAX64: case OP_SEL64:
    case OP_DADD: case OP_DMUL: case OP_DFMA: case OP_DSETP: case OP_DSETP_EXTREME:
    case OP_FADD2: case OP_FMUL2: case OP_FFMA2: case OP_F64_TO_F32: case OP_MBARRIER_EXCHANGE:
        return 2;
    case OP_F2I: case OP_FRND: return i->flags & SOURCE_F64 ? 2 : 1;
    case OP_I2F: case OP_I2D: case OP_I2H: return (i->aux & BITS_MASK) == 64 ? 2 : 1;
    case OP_IMAD_WIDE: return k == 2 ? 2 : 1;
    case OP_MATCH: return i->flags & MATCH_64 ? 2 : 1;
    case OP_STORE: return k == 2 ? words : 1;
    case OP_ATOMIC: return k >= 2 ? words : 1;
    default: return 1;
    }
}

u32 words_written(const Ins *i) {
    switch (i->op) {
    case OP_MOV64: case OP_ADD64: case OP_MINMAX64: case OP_SEL64: case OP_DADD: case OP_DMUL: case OP_DFMA:
    case OP_FADD2: case OP_FMUL2: case OP_FFMA2: case OP_I2D: case OP_TO_F64: case OP_CLOCK64:
    case OP_MBARRIER_EXCHANGE: case OP_MBARRIER_ARRIVE:
        return 2;
    case OP_F2I: return (i->aux & BITS_MASK) == 64 ? 2 : 1;
    case OP_FRND: return i->flags & SOURCE_F64 ? 2 : 1;
    case OP_IMAD_WIDE: return i->flags & UPPER_HALF ? 1 : 2;
    case OP_LOAD: case OP_LOAD_CONSTANT: case OP_ATOMIC: return i->width < WORD_BYTES ? 1 : i->width / WORD_BYTES;
    default: return 1;
    }
}

/* What an instruction reads and writes, in the lanes of m. */
typedef struct {
    Worker *c;
    Origins *o;
    Warp *w;
    const Ins *i;
    u32 m;
    Lanes d[MOST_WORDS], p[2];
} Follow;

static void fill(Lanes *x, u16 origin) { FOR_LANES x->x[l] = origin; }

static void set_result(Follow *f, u16 origin) {
    for (u32 k = 0; k < MOST_WORDS; k++) fill(&f->d[k], origin);
}

/* Any function of what is read, lane by lane. Whether more is known of some of it. */
static int follow_any(Follow *f) {
    Lanes all = {{0}}, worst = {{0}};
    for (int k = 0; k < SOURCES; k++) {
        if (f->i->s[k] & POOL) continue;
        const u16 *x = read_origins(f->o, f->w, f->i, k);
        for (u32 word = words_read(f->i, k); word-- > 0; x += LANES)
            FOR_LANES {
                worst.x[l] = worse(worst.x[l], x[l]);
                all.x[l] = worse(all.x[l], kind_of(x[l]));
            }
    }
    for (int k = 0; k < 4; k++) {
        if (is_constant(f->i->ps[k])) continue;
        const u16 *x = predicates_of(f->o, f->w, f->i->ps[k]);
        FOR_LANES all.x[l] = worse(all.x[l], x[l]);
    }
    for (int k = 0; k < MOST_WORDS; k++) f->d[k] = all;
    f->p[0] = f->p[1] = all;
    u16 most = SAME;
    FOR_LANES most = worse(most, worst.x[l]);
    return most > DATA;
}

/* As above, where each lane's result depends on what all lanes of m hold. */
static void mix_lanes(Follow *f) {
    const u16 kind = kind_of_lanes(f->d[0].x, f->m);
    set_result(f, kind);
    fill(&f->p[0], kind);
    fill(&f->p[1], kind);
}

/* Sums: d = x + y + z, of origins `of` and values `value`; carries are the same while nothing wraps. */
static void follow_sum(Follow *f, int l, const u16 of[3], const u32 value[3], u32 in, u16 carries_in) {
    Origins *const o = f->o;
    const u16 xy = combination(o, of[0], 1, of[1], 1), sum = combination(o, xy, 1, of[2], 1);
    const int has_carries = f->i->pd[0] != PREDICATE_DISCARD || f->i->pd[1] != PREDICATE_DISCARD;
    f->d[0].x[l] = carries_in ? worse(kind_of(sum), carries_in) : sum;
    f->p[0].x[l] = f->p[1].x[l] = is_known(sum) ? carries_in : worse(kind_of(sum), carries_in);
    if (!has_carries) return;
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

/* Of a * b, of which one is the same in all blocks; `known`: its value. */
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
        else if (is_affine(low) && i->flags & UPPER_HALF && !is_wide(f->o, low, 32)) upper = BLOCK_INDEX;
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

/* Of a word of a pair that is shifted by less than 32 bits. */
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

/* How many of the lowest bits are not among those that are set from the top on. */
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

/* Whether all values of this origin are far from wrapping. */
static int is_small(Origins *o, u16 origin) {
    i64 reach = 0;
    for (int axis = 0; axis < 3; axis++)
        reach += llabs(affine_of(o, origin)->c[axis]) / UNIT * o->launch->grid[axis];
    return reach <= INT32_MAX;
}

/* Of any bitwise function of values that grow: its sign depends on theirs alone. */
static u16 sign_of_logic(Origins *o, const u32 value[3], const u16 of[3]) {
    for (int k = 0; k < 3; k++)
        if (of[k] == BLOCK_INDEX || (is_affine(of[k]) && !is_small(o, of[k]))) return BLOCK_INDEX;
    for (int k = 0; k < 3; k++) {
        const i64 x = as_signed(value[k]);
        keep_within(o, of[k], x, x < 0 ? INT32_MIN : 0, x < 0 ? -1 : INT32_MAX);
    }
    return SIGN_ALIKE;
}

static void follow_logic(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_ABC(SOURCE);
    FOR_LANES_OF(f->m) {
        const u32 value[3] = {a[l], b[l], c[l]}, x = table_value(i->aux & 0xff, a[l], b[l], c[l]);
        u16 of[3], found = SAME;
        int which = 0;
        for (int k = 0; k < 3; k++) {
            of[k] = after_modifiers(f->o, i, k, read_origins(f->o, w, i, k)[l]);
            worsen(&found, kind_of(of[k]));
            if (is_affine(of[k])) which = k;
        }
        if (found == BLOCK_INDEX && is_affine(of[which])) found = logic(f->o, i->aux & 0xff, value, of, which);
        if (found == BLOCK_INDEX) found = sign_of_logic(f->o, value, of);
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

static void follow_comparison(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    READ_AB(SOURCE);
    const u32 is_signed = i->flags & SIGNED;
    FOR_LANES_OF(f->m) {
        const u16 of_a = after_modifiers(f->o, i, 0, read_origins(f->o, w, i, 0)[l]);
        const u16 of_b = after_modifiers(f->o, i, 1, read_origins(f->o, w, i, 1)[l]);
        const u16 difference = combination(f->o, of_a, 1, of_b, -1);
        if (!is_known(difference)) {
            const int asks_for_sign = is_signed && !(i->flags & EXTENDED) && of_a == SIGN_ALIKE && of_b == SAME &&
                                      !b[l] && (truth_of(i) == 1 || truth_of(i) == 6);
            decided(f, l, asks_for_sign ? SAME : difference);
            continue;
        }
        const i64 x = is_signed ? as_signed(a[l]) : (i64)a[l], y = is_signed ? as_signed(b[l]) : (i64)b[l];
        keep_sign(f->o, of_a, a[l], is_signed);
        keep_sign(f->o, of_b, b[l], is_signed);
        keep_outcome(f, difference, x - y);
        decided(f, l, SAME);
    }
}

/* Of a pair of words whose lower one does not wrap. */
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

/* Of the smaller or the larger of x and y, of which `takes_x` is one. */
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

static int are_alike(const u16 *x, u32 m) {
    const u16 first = x[__builtin_ctz(m)];
    FOR_LANES_OF(m) if (x[l] != first) return 0;
    return 1;
}

/* The lanes that are read may be other ones, which are alike. */
static void follow_shuffle(Follow *f) {
    const u16 *x = read_origins(f->o, f->w, f->i, 0), *lane = read_origins(f->o, f->w, f->i, 1),
              *segment = read_origins(f->o, f->w, f->i, 2);
    const u16 how = worse(kind_of_lanes(lane, f->m), kind_of_lanes(segment, f->m));
    const u16 value = !how && !f->i->mod[0] && are_alike(x, FULL) ? x[0] : worse(kind_of_lanes(x, FULL), how);
    set_result(f, value);
    fill(&f->p[0], how);
}

static void follow_to_uniform(Follow *f) {
    const u16 *x = read_origins(f->o, f->w, f->i, 0);
    if (f->i->mod[0] || !are_alike(x, f->m)) {
        mix_lanes(f);
        return;
    }
    set_result(f, x[__builtin_ctz(f->m)]);
    fill(&f->p[0], is_affine(x[__builtin_ctz(f->m)]) ? SAME : x[__builtin_ctz(f->m)]);
}

static void follow_special(Follow *f) {
    __int128 c[3] = {0};
    switch (f->i->aux) {
    case SPECIAL_CTAID_X: case SPECIAL_CTAID_Y: case SPECIAL_CTAID_Z:
        c[f->i->aux - SPECIAL_CTAID_X] = UNIT;
        set_result(f, growing(f->o, c));
        return;
    case SPECIAL_VIRTUALSMID: case SPECIAL_CLOCKLO: case SPECIAL_CLOCKHI:
        set_result(f, DATA);
        return;
    default:
        set_result(f, SAME);
    }
}

/* Predicates as bits of a word. */

static void follow_predicates_to_word(Follow *f) {
    const u32 first = f->i->flags & PREDICATES_UNIFORM ? UPT - PT + 1 : 0;
    for (u32 k = 0; k < PREDICATES_COUNT; k++) {
        const u16 *x = predicates_of(f->o, f->w, first + k);
        FOR_LANES worsen(&f->d[0].x[l], x[l]);
    }
}

static void follow_word_to_predicates(Follow *f) {
    const u32 first = f->i->flags & PREDICATES_UNIFORM ? UPT - PT + 1 : 0;
    const u32 m = f->i->flags & PREDICATES_UNIFORM ? FULL : f->m;
    const u32 *which = vector(f->w, f->i->s[1]);
    for (u32 k = 0; k < PREDICATES_COUNT; k++) {
        u16 *x = predicates_of(f->o, f->w, first + k);
        FOR_LANES_OF(m) if (which[l] >> k & 1 || f->o->under) x[l] = worse(f->d[0].x[l], f->o->under);
    }
}

/* Memory. */

/* The words of shared or local memory that lane l names, NULL where they are outside. */
static u16 *words_at(Follow *f, u32 space, int l, u64 address) {
    const Launch *launch = f->o->launch;
    const u64 word = address / WORD_BYTES, count = ((address + f->i->width + 3) / WORD_BYTES) - word;
    if (space == SPACE_SHARED) return word + count <= shared_words(launch) ? f->o->shared + word : NULL;
    const size_t each = local_words(launch);
    return word + count <= each ? f->o->local + ((size_t)f->w->index * LANES + (size_t)l) * each + word : NULL;
}

/* Of the address of lane l: its sources k and k + 1, a register or a pair, and a uniform one. */
static u16 address_origin(Follow *f, const Ins *i, int k, int l) {
    const u16 *lane = read_origins(f->o, f->w, i, k), *uniform = read_origins(f->o, f->w, i, k + 1);
    const u32 *low = vector(f->w, i->s[k]), *base = vector(f->w, i->s[k + 1]);
    u16 found = word_scaled_by(f->o, lane[l], 1ll << (i->flags >> SCALE_SHIFT & 7)), of_base = uniform[l];
    if (i->flags & ADDRESS_64) {
        keep_unsigned(f->o, lane[l], low[l]);
        found = combination(f->o, lane[l], 1, lane[LANES + l], WRAP_32);
    } else if (i->flags & UNIFORM_64) {
        keep_sign(f->o, lane[l], low[l], i->flags & ADDRESS_SIGNED);
        found = scaled_by(f->o, lane[l], 1ll << (i->flags >> SCALE_SHIFT & 7));
    }
    if (i->flags & UNIFORM_64) {
        keep_unsigned(f->o, uniform[l], base[l]);
        of_base = combination(f->o, uniform[l], 1, uniform[LANES + l], WRAP_32);
    }
    return combination(f->o, found, 1, of_base, 1);
}

/* Note what the addresses of a request depend on, beyond a shift of all by whole sectors or turns of the
 * banks, 2^bits bytes. Returns their origin, or what they depend on where lanes have several. */
static u16 follow_addresses(Follow *f, const Ins *i, int k, u32 bits) {
    Dependence *const of = &f->o->of[f->c->pc];
    Lanes lanes;
    FOR_LANES_OF(f->m) lanes.x[l] = address_origin(f, i, k, l);
    const u16 kind = kind_of_lanes(lanes.x, f->m), first = lanes.x[__builtin_ctz(f->m)];
    FOR_LANES_OF(f->m) {
        const u16 apart = combination(f->o, lanes.x[l], 1, first, -1);
        if (!is_known(apart)) note(&of->address, apart);
        else if (!is_whole(f->o, lanes.x[l], bits)) note(&of->address, BLOCK_INDEX);
        if (is_affine(apart) && !f->o->under) {
            affine_of(f->o, apart)->parts = 1;
            note(&of->parted, BLOCK_INDEX);
        }
    }
    return are_alike(lanes.x, f->m) ? first : kind;
}

static void follow_global(Follow *f, const Ins *i, int k) {
    follow_addresses(f, i, k, SECTOR_BITS);
}

static u16 *floor_of(Origins *o, u32 space) { return space == SPACE_SHARED ? &o->of_shared : &o->of_local; }

/* An access of shared or local memory: a load takes over the origins of words, a store sets them, or
 * those of all words where it is not known which ones it writes. */
static void follow_near(Follow *f, const Ins *i, u32 space, int is_store, const u16 *data, u16 at_least) {
    Origins *const o = f->o;
    const u32 words = i->width < WORD_BYTES ? 1 : i->width / WORD_BYTES;
    u64 a[LANES];
    const u16 common = follow_addresses(f, i, 0, BANK_BITS);
    if (common) {
        if (is_store) worsen(floor_of(o, space), kind_of(common));
        for (u32 k = 0; is_store && k < words; k++)
            worsen(floor_of(o, space), worse(kind_of_lanes(data + k * LANES, f->m), at_least));
        if (!is_store) {
            const size_t all = space == SPACE_SHARED ? shared_words(o->launch)
                                                     : (size_t)o->warps * LANES * local_words(o->launch);
            const u16 *const origins = space == SPACE_SHARED ? o->shared : o->local;
            u16 found = worse(kind_of(common), *floor_of(o, space));
            for (size_t k = 0; k < all; k++) worsen(&found, kind_of(origins[k]));
            set_result(f, found);
        }
        return;
    }
    addresses(f->w, i, f->m, a);
    if (space == SPACE_SHARED) own_shared(f->c, a);
    FOR_LANES_OF(f->m) {
        u16 *const at = words_at(f, space, l, a[l]);
        for (u32 k = 0; k < words; k++) {
            const int is_part = i->width < WORD_BYTES;
            if (!is_store) {
                const u16 found = at ? at[k] : DATA;
                f->d[k].x[l] = *floor_of(o, space) ? worse(kind_of(found), *floor_of(o, space))
                               : is_part ? kind_of(found) : found;
            } else if (at) {
                const u16 given = data[k * LANES + l], kept = o->under || at_least || is_part;
                at[k] = kept ? worse(worse(kind_of(given), is_part ? kind_of(at[k]) : SAME), worse(o->under, at_least))
                             : given;
            }
        }
    }
}

static void follow_generic(Follow *f, int is_store) {
    u64 a[LANES];
    follow_global(f, f->i, 0);
    addresses(f->w, f->i, f->m, a);
    const Spaces in = spaces_of(f->c, a, f->m);
    if (is_store && (in.shared || in.local)) f->o->of_shared = f->o->of_local = DATA;
    set_result(f, DATA);
    fill(&f->p[0], in.global == f->m || in.global == 0 ? SAME : DATA);
}

static void follow_memory(Follow *f, int is_store) {
    const u32 space = space_of(f->i);
    const u16 *data = is_store ? read_origins(f->o, f->w, f->i, 2) : same_in_all;
    if (space == SPACE_GENERIC) follow_generic(f, is_store);
    else if (space != SPACE_GLOBAL) follow_near(f, f->i, space, is_store, data, SAME);
    else {
        follow_global(f, f->i, 0);
        set_result(f, DATA);
    }
}

static void follow_atomic(Follow *f) {
    if (space_of(f->i) == SPACE_SHARED) follow_near(f, f->i, SPACE_SHARED, 1, same_in_all, DATA);
    else if (space_of(f->i) == SPACE_GENERIC) follow_generic(f, 1);
    else follow_global(f, f->i, 0);
    set_result(f, DATA);
    fill(&f->p[0], (f->i->aux & 0xff) == ATOMIC_CAST ? DATA : SAME);
}

static void follow_copy(Follow *f) {
    Ins to = shared_side(f->i), from = global_side(f->i);
    to.width = f->i->width;
    follow_near(f, &to, SPACE_SHARED, 1, same_in_all, DATA);
    follow_global(f, &from, 0);
}

static void follow_bulk(Follow *f) {
    for (int k = 0; k < SOURCES; k++)
        note(&f->o->of[f->c->pc].address, kind_of_lanes(read_origins(f->o, f->w, f->i, k), FULL));
    f->o->of_shared = DATA;
}

/* What the result of one instruction comes from. */
static void follow_operation(Follow *f) {
    const int affine = follow_any(f);
    switch (f->i->op) {
    case OP_READ_SPECIAL: follow_special(f); return;
    case OP_CLOCK64: set_result(f, DATA); return;
    case OP_LOAD: follow_memory(f, 0); return;
    case OP_STORE: follow_memory(f, 1); return;
    case OP_ATOMIC: follow_atomic(f); return;
    case OP_COPY_ASYNC: follow_copy(f); return;
    case OP_TENSOR_LOAD: case OP_TENSOR_STORE: case OP_BULK_LOAD: case OP_BULK_STORE: case OP_BULK_SHARED:
    case OP_STORE_ASYNC:
        follow_bulk(f);
        return;
    case OP_SHFL: follow_shuffle(f); return;
    case OP_R2UR: follow_to_uniform(f); return;
    case OP_VOTE: case OP_ELECT: case OP_MATCH: case OP_REDUX: mix_lanes(f); return;
    case OP_BARRIER_RESULT:
        set_result(f, f->o->reduced);
        fill(&f->p[0], f->o->reduced);
        return;
    case OP_P2R: follow_predicates_to_word(f); return;
    case OP_R2P: follow_word_to_predicates(f); return;
    }
    if (!affine) return;
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
    case OP_LOP3: follow_logic(f); return;
    case OP_ISETP: follow_comparison(f); return;
    case OP_ISETP64: follow_comparison64(f); return;
    case OP_MINMAX: follow_extreme(f); return;
    case OP_IABS: follow_absolute(f); return;
    }
}

static int writes_all_lanes(const Ins *i) {
    switch (i->op) {
    case OP_R2UR: case OP_VOTE: case OP_ELECT: case OP_REDUX: case OP_READ_SPECIAL: case OP_CLOCK64:
        return i->uniform || i->flags & TO_UNIFORM;
    default: return i->uniform;
    }
}

/* Write what was found to the lanes of m. A guard that differs between blocks leaves it open whether the
 * old value stays, in all `lanes`. */
static void keep_result(Follow *f, u16 *d, const Lanes *found, u32 lanes, u16 guarded_by) {
    const u32 m = writes_all_lanes(f->i) ? FULL : guarded_by ? lanes : f->m;
    if (m == FULL && !f->o->under) {
        memcpy(d, found->x, sizeof found->x);
        return;
    }
    FOR_LANES_OF(m) {
        const u16 old = guarded_by ? kind_of(d[l]) : SAME;
        d[l] = f->o->under ? worse(worse(kind_of(found->x[l]), old), f->o->under) : found->x[l];
    }
}

/* What code on one side of a branch may write depends on what decides about the branch. */
static void worsen_region(Origins *o, const Warp *w, u32 pc, u16 kind) {
    const Launch *launch = o->launch;
    for (u32 k = launch->region_ends[pc]; k < launch->region_ends[pc + 1]; k++) {
        const u32 what = launch->region_writes[k];
        if (what == ALL_SHARED) worsen(&o->of_shared, kind);
        else if (what == ALL_LOCAL) worsen(&o->of_local, kind);
        else {
            u16 *x = what & OF_PREDICATE ? predicates_of(o, w, what & ~(u32)OF_PREDICATE) : registers_of(o, w, what);
            FOR_LANES x[l] = worse(kind_of(x[l]), kind);
        }
    }
}

static void follow_control(Worker *c, const Warp *w, const Ins *i, u32 lanes, u16 kind) {
    Origins *const o = c->origins;
    const int is_barrier = i->op == OP_BARRIER;
    for (int k = 0; k < 4; k++) {
        const u16 of = kind_of_predicate(o, w, i->ps[k], lanes);
        worsen(is_barrier && i->flags & BARRIER_REDUCE ? &o->reduced : &kind, of);
    }
    if (i->op != OP_BRANCH_IF_SPLIT && i->op != OP_BRANCH_IF_WHOLE)
        for (int k = 0; k < 2; k++) worsen(&kind, kind_of_lanes(read_origins(o, w, i, k), lanes));
    if (!kind) return;
    note(&o->of[c->pc].branch, kind);
    if (o->launch->region_ends) worsen_region(o, w, c->pc, kind);
}

void follow(Worker *c, Warp *w, const Ins *i, u32 lanes, u32 m) {
    Origins *const o = c->origins;
    const u16 guard = kind_of_predicate(o, w, i->guard, lanes);
    Follow f = {.c = c, .o = o, .w = w, .i = i, .m = guard ? lanes : m};
    o->under = worse(guard, o->launch->under ? o->launch->under[c->pc] : SAME);
    if (guard) note(&o->of[c->pc].guard, guard);
    if (i->op >= FIRST_CONTROL) {
        follow_control(c, w, i, lanes, guard);
        return;
    }
    if (!f.m || i->op == OP_NOP) return;
    if (i->uniform) f.m = FULL;
    follow_operation(&f);
    const u32 words = words_written(i);
    for (u32 k = 0; k < words; k++) keep_result(&f, registers_of(o, w, i->d[0]) + k * LANES, &f.d[k], lanes, guard);
    for (int k = 0; k < 2; k++) {
        if (i->pd[k] == PREDICATE_DISCARD) continue;
        if (i->pd[k] > PT && i->pd[k] <= UPT) f.m = FULL;
        keep_result(&f, predicates_of(o, w, i->pd[k]), &f.p[k], lanes, guard);
    }
}
