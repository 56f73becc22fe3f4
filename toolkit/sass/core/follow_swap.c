#include "follow.h"

#include "operations.h"

/* Three exclusive ors swap two registers: x ^= y, y ^= x, x ^= y. Compilers write this where registers are
 * short. A result that may be the first of them is PENDING: its operands are kept. If one of them is taken
 * away again, the other one's origin is left; if anything else reads the result, it is an origin like others. */

enum { A_XOR_B = 0x3c };

int may_swap(const Ins *i) {
    return i->op == OP_LOP3 && (i->aux & 0xff) == A_XOR_B && !i->uniform && !i->mod[0] && !i->mod[1] &&
           i->pd[0] == PREDICATE_DISCARD && !((i->s[0] | i->s[1]) & POOL);
}

static Swap *swaps_of(Origins *o, const Warp *w) { return o->swaps + w->index * SWAPS; }

static Swap *swap_in(Origins *o, const Warp *w, u32 slot) {
    Swap *const x = swaps_of(o, w);
    for (int k = 0; k < SWAPS; k++)
        if (x[k].is_used && x[k].slot == slot) return &x[k];
    return NULL;
}

/* Give each result of a swap that is still PENDING the origin of an exclusive or. */
static void settle(Origins *o, const Warp *w, Swap *x) {
    u16 *const found = registers_of(o, w, x->slot);
    const u16 under = o->under;
    o->under = SAME; /* as when it was executed */
    FOR_LANES {
        if (found[l] != PENDING) continue;
        const u32 value[3] = {x->value[0][l], x->value[1][l], 0};
        const u16 of[3] = {x->of[0][l], x->of[1][l], SAME};
        found[l] = logic_origin(o, A_XOR_B, value, of);
    }
    o->under = under;
    x->is_used = 0;
}

/* Before an instruction reads registers: none of them may be pending. */
void settle_sources(Origins *o, const Warp *w, const Ins *i) {
    Swap *const x = swaps_of(o, w);
    for (int k = 0; k < SWAPS; k++) {
        if (!x[k].is_used) continue;
        for (int source = 0; source < SOURCES; source++) {
            const u32 words = i->width ? MOST_WORDS : words_read(i, source); /* addresses have two, too */
            if (i->s[source] & POOL || x[k].slot - i->s[source] >= words) continue;
            settle(o, w, &x[k]);
            break;
        }
    }
}

/* True if the other source is, in every lane, an operand of the pending result in source `pending`; then the
 * other operand is left. Equal values are the same operand only if they are equal in all blocks, too. */
static int takes_away(Follow *f, int pending, const u32 *other) {
    const Swap *const x = swap_in(f->o, f->w, f->i->s[pending]);
    const u16 *of = read_origins(f->o, f->w, f->i, pending), *of_other = read_origins(f->o, f->w, f->i, !pending);
    if (!x) return 0;
    FOR_LANES_OF(f->m) {
        const int first = of_other[l] == x->of[0][l] && other[l] == x->value[0][l];
        const int second = of_other[l] == x->of[1][l] && other[l] == x->value[1][l];
        if (of[l] != PENDING || !is_known(of_other[l]) || (!first && !second)) return 0;
        f->d[0].x[l] = x->of[second ? 0 : 1][l];
    }
    return 1;
}

/* An exclusive or of two registers: what it leaves, or a result that is pending. */
void follow_swap(Follow *f) {
    const Warp *w = f->w;
    const Ins *i = f->i;
    Origins *const o = f->o;
    SOURCE(a, 0);
    SOURCE(b, 1);
    if (takes_away(f, 0, b) || takes_away(f, 1, a)) return;
    settle_sources(o, w, i);
    Swap *x = swap_in(o, w, i->d[0]);
    if (!x) x = &swaps_of(o, w)[o->next_swap++ % SWAPS];
    if (x->is_used) settle(o, w, x);
    *x = (Swap){.is_used = 1, .slot = i->d[0]};
    const u16 *of[2] = {read_origins(o, w, i, 0), read_origins(o, w, i, 1)};
    FOR_LANES_OF(f->m) {
        x->value[0][l] = a[l];
        x->value[1][l] = b[l];
        for (int k = 0; k < 2; k++) x->of[k][l] = of[k][l];
        f->d[0].x[l] = PENDING;
    }
}
