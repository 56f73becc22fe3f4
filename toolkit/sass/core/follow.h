/* How origins are followed through one instruction: what its files share (origins.h says what they are). */
#pragma once

#include "lanes.h"
#include "origins.h"

enum { BUCKETS = 2 * MOST_AFFINE, WORD_BYTES = 4, MOST_WORDS = 4 };

static const i64 UNIT = 1ll << FRACTION_BITS, FAR_AWAY = 1ll << 44, WRAP_32 = 1ll << 32;

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

static inline size_t local_words(const Launch *launch) { return launch->local_bytes / WORD_BYTES; }
static inline size_t shared_words(const Launch *launch) { return launch->shared_bytes / WORD_BYTES + 1; }

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

u16 growing(Origins *o, const __int128 c[3]);
u16 combination(Origins *o, u16 x, i64 by, u16 y, i64 times);
u16 scaled_by(Origins *o, u16 x, i64 by);
u16 word_scaled_by(Origins *o, u16 x, i64 by);
void limit(Origins *o, u16 origin, i64 low, i64 high);
void keep_within(Origins *o, u16 origin, i64 value, i64 least, i64 most);
void keep_unsigned(Origins *o, u16 origin, u32 value);
void keep_signed(Origins *o, u16 origin, u32 value);
void keep_sign(Origins *o, u16 origin, u32 value, u32 is_signed);
int is_whole(Origins *o, u16 origin, u32 bits);
int is_wide(Origins *o, u16 origin, u32 bits);
u16 shifted_right(Origins *o, u16 origin, u32 value, u32 n, u32 is_signed);
u16 shifted_out(Origins *o, u16 origin, u32 value, u32 n);
void keep_order(Origins *o, u16 origin, i64 difference, u32 truth);

/* Vectors of origins. */

typedef struct { u16 x[LANES]; } Lanes;

static inline u16 *registers_of(Origins *o, const Warp *w, u32 slot) {
    return o->registers + ((size_t)w->index * o->launch->slots + slot) * LANES;
}
static inline u16 *predicates_of(Origins *o, const Warp *w, u32 slot) {
    return o->predicates + ((size_t)w->index * PREDICATES + (slot & ~(u32)PREDICATE_NOT)) * LANES;
}

static inline const u16 *read_origins(Origins *o, const Warp *w, const Ins *i, int k) {
    return i->s[k] & POOL ? same_in_all : registers_of(o, w, i->s[k]);
}

/* Of source k in lane l once its modifiers are applied. */
static inline u16 after_modifiers(Origins *o, const Ins *i, int k, u16 origin) {
    if (!i->mod[k] || !is_affine(origin)) return i->mod[k] ? kind_of(origin) : origin;
    if (i->mod[k] & ~(MOD_NOT | MOD_INT_NEG)) return BLOCK_INDEX;
    return i->mod[k] == (MOD_NOT | MOD_INT_NEG) ? origin : scaled_by(o, origin, -1);
}

static inline u16 kind_of_lanes(const u16 *x, u32 m) {
    u16 found = SAME;
    FOR_LANES_OF(m) worsen(&found, kind_of(x[l]));
    return found;
}

static inline int are_alike(const u16 *x, u32 m) {
    const u16 first = x[__builtin_ctz(m)];
    FOR_LANES_OF(m) if (x[l] != first) return 0;
    return 1;
}

static inline int is_constant(u32 predicate) {
    const u32 slot = predicate & ~(u32)PREDICATE_NOT;
    return slot == PT || slot == UPT;
}

static inline u16 kind_of_predicate(Origins *o, const Warp *w, u32 slot, u32 m) {
    return is_constant(slot) ? SAME : kind_of_lanes(predicates_of(o, w, slot), m);
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

static inline void fill(Lanes *x, u16 origin) { FOR_LANES x->x[l] = origin; }

static inline void set_result(Follow *f, u16 origin) {
    for (u32 k = 0; k < MOST_WORDS; k++) fill(&f->d[k], origin);
}

int follow_any(Follow *f);
void mix_lanes(Follow *f);
void follow_integer(Follow *f);
int follow_warp(Follow *f);
int follow_access(Follow *f);
