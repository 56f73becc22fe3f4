#include "follow.h"
#include "integer.h"
#include "operations.h"
#include "warp.h"

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
    const u32 m = f->i->flags & PREDICATES_UNIFORM ? together(f->w) : f->m;
    const u32 *which = vector(f->w, f->i->s[1]);
    for (u32 k = 0; k < PREDICATES_COUNT; k++) {
        u16 *x = predicates_of(f->o, f->w, first + k);
        FOR_LANES_OF(m) if (which[l] >> k & 1 || f->o->under) x[l] = worse(f->d[0].x[l], f->o->under);
    }
}

/* Follow a shuffle, vote or reduction, a special register, or predicates as bits. True if it is one. */
int follow_warp(Follow *f) {
    switch (f->i->op) {
    case OP_READ_SPECIAL: follow_special(f); return 1;
    case OP_CLOCK64: set_result(f, DATA); return 1;
    case OP_SHFL: follow_shuffle(f); return 1;
    case OP_R2UR: follow_to_uniform(f); return 1;
    case OP_VOTE: case OP_ELECT: case OP_MATCH: case OP_REDUX: case OP_MATRIX_TRANSPOSE: case OP_MATRIX_WIDEN:
    case OP_MMA: case OP_MMA_INTEGER: case OP_MMA_BITS: case OP_MMA_DOUBLE: case OP_MMA_QUADS:
    case OP_MMA_SCALED: case OP_MMA_SCALED_FOURS:
        mix_lanes(f);
        return 1;
    case OP_BARRIER_RESULT:
        set_result(f, f->o->reduced);
        fill(&f->p[0], f->o->reduced);
        return 1;
    case OP_P2R: follow_predicates_to_word(f); return 1;
    case OP_R2P: follow_word_to_predicates(f); return 1;
    default: return 0;
    }
}
