#include "follow.h"

#include <string.h>

#include "control.h"
#include "convert.h"
#include "gmma.h"
#include "integer.h"
#include "mma.h"
#include "operations.h"
#include "texture.h"
#include "warp.h"

/* Words that source k has, and that are written. */
u32 words_read(const Ins *i, int k) {
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
    case OP_MATRIX_STORE: return k == 2 ? i->aux : 1;
    case OP_MMA: case OP_MMA_INTEGER: case OP_MMA_BITS: case OP_MMA_DOUBLE:
        return k < 3 ? mma_field(i, MMA_OF_A + 8 * (u32)k) : 1;
    case OP_GMMA: return k == 0 ? gmma_sums(i) : k == 1 ? gmma_registers_of_a(i) : 4;
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
    case OP_TEXTURE: case OP_TEXTURE_QUERY: return channels_of(i) < 2 ? 1 : 2;
    case OP_LOAD: case OP_LOAD_CONSTANT: case OP_ATOMIC: case OP_SURFACE_LOAD:
        return i->width < WORD_BYTES ? 1 : i->width / WORD_BYTES;
    case OP_MATRIX_LOAD: return i->aux;
    case OP_MMA: case OP_MMA_INTEGER: case OP_MMA_BITS: case OP_MMA_DOUBLE: return mma_field(i, MMA_OF_D);
    case OP_GMMA: return gmma_sums(i);
    default: return 1;
    }
}

/* Words of the second vector that is written. */
u32 words_written_beside(const Ins *i) {
    const int fetches = i->op == OP_TEXTURE || i->op == OP_TEXTURE_QUERY;
    return fetches && channels_of(i) > 2 ? channels_of(i) - 2 : 0;
}

/* Any function of what is read, lane by lane. Whether more is known of some of it. */
int follow_any(Follow *f) {
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
void mix_lanes(Follow *f) {
    const u16 kind = kind_of_lanes(f->d[0].x, f->m);
    set_result(f, kind);
    fill(&f->p[0], kind);
    fill(&f->p[1], kind);
}

/* Set the origin of one instruction's result: any function of its sources, unless more is known. */
static void follow_operation(Follow *f) {
    const int is_plain = !follow_any(f);
    if (follow_access(f) || follow_warp(f) || is_plain) return;
    follow_integer(f);
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
    const u32 m = writes_all_lanes(f->i) ? together(f->w) : guarded_by ? lanes : f->m;
    if (m == FULL && !f->o->under) {
        memcpy(d, found->x, sizeof found->x);
        return;
    }
    FOR_LANES_OF(m) {
        const u16 old = guarded_by ? kind_of(d[l]) : SAME;
        d[l] = f->o->under ? worse(worse(kind_of(found->x[l]), old), f->o->under) : found->x[l];
    }
}

/* Sums of a warpgroup: of what A, B and the sums so far hold, all of them together. */
static void follow_product(Follow *f) {
    Origins *const o = f->o;
    u16 found = worse(of_shared_memory(o), o->under);
    for (int k = 0; k < 3; k++) {
        if (f->i->s[k] & POOL) continue;
        const u16 *x = read_origins(o, f->w, f->i, k);
        for (u32 n = 0; n < words_read(f->i, k); n++) worsen(&found, kind_of_lanes(x + n * LANES, FULL));
    }
    worsen(&found, kind_of_predicate(o, f->w, f->i->ps[0], f->m));
    u16 *d = registers_of(o, f->w, f->i->d[0]);
    for (u32 k = 0; k < gmma_sums(f->i) * LANES; k++) d[k] = found;
}

/* Everything that code on one side of a branch may write depends on the condition of the branch. */
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
    if (o->under || !may_swap(i)) settle_sources(o, w, i);
    if (guard) note(&o->of[c->pc].guard, guard);
    if (i->op >= FIRST_CONTROL) {
        follow_control(c, w, i, lanes, guard);
        return;
    }
    if (!f.m || i->op == OP_NOP) return;
    if (i->uniform) f.m = together(w);
    if (i->op == OP_GMMA) {
        follow_product(&f);
        return;
    }
    follow_operation(&f);
    const u32 words = words_written(i);
    for (u32 k = 0; k < words; k++) keep_result(&f, registers_of(o, w, i->d[0]) + k * LANES, &f.d[k], lanes, guard);
    for (u32 k = 0; k < words_written_beside(i); k++)
        keep_result(&f, registers_of(o, w, i->d[1]) + k * LANES, &f.d[words + k], lanes, guard);
    for (int k = 0; k < 2; k++) {
        if (i->pd[k] == PREDICATE_DISCARD) continue;
        if (i->pd[k] > PT && i->pd[k] <= UPT) f.m = together(w);
        keep_result(&f, predicates_of(o, w, i->pd[k]), &f.p[k], lanes, guard);
    }
}
