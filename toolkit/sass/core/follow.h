/* Propagation of origins (origins.h) through one instruction: declarations that follow_*.c share. */
#pragma once

#include "origins.h"

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

/* Origin of source k after its modifiers are applied. */
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

/* Operands of an instruction, in the lanes of m. */
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

u32 words_read(const Ins *i, int k);
u32 words_written(const Ins *i);
u32 words_written_beside(const Ins *i);
void follow(Worker *c, Warp *w, const Ins *i, u32 lanes, u32 m);
int follow_any(Follow *f);
void mix_lanes(Follow *f);
u16 logic_origin(Origins *o, u32 table, const u32 value[3], const u16 of[3]);
int may_swap(const Ins *i);
void settle_sources(Origins *o, const Warp *w, const Ins *i);
void follow_swap(Follow *f);
void follow_integer(Follow *f);
int follow_warp(Follow *f);
int follow_access(Follow *f);
u16 of_shared_memory(const Origins *o);
