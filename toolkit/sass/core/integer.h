/* 32-bit integers, logic, shifts and moves. */
#ifndef INTEGER_H
#define INTEGER_H

#include "core.h"

#define SOURCE(name, k)        \
    u32 name##_room[LANES];    \
    const u32 *const name = source(w, i, k, name##_room)
#define DESTINATION(name, k) u32 *const name = vector(w, i->d[k])

/* Ins.flags of additions: a negated source is its complement plus one, which reaches the carry. */
enum { NEGATE_0 = 1, NEGATE_1 = 2, NEGATE_2 = 4 };

static void op_MOV(Worker *c, Warp *w, const Ins *i, u32 m) {
    (void)c;
    SOURCE(a, 0);
    DESTINATION(d, 0);
    EACH_LANE(m, d[l] = a[l]);
}

/* d = a + b + c + carries; pd[0] is set where the sum reaches 2^32, pd[1] where it reaches 2^33. */
static void op_IADD3(Worker *core, Warp *w, const Ins *i, u32 m) {
    (void)core;
    SOURCE(a, 0);
    SOURCE(b, 1);
    SOURCE(c, 2);
    DESTINATION(d, 0);
    const u32 na = i->flags & NEGATE_0 ? FULL : 0, nb = i->flags & NEGATE_1 ? FULL : 0,
              nc = i->flags & NEGATE_2 ? FULL : 0;
    const u64 ones = (u64)(na & 1) + (nb & 1) + (nc & 1);
    const u32 carry0 = predicate(w, i->ps[0]), carry1 = predicate(w, i->ps[1]);
    if (i->pd[0] == PREDICATE_DISCARD && i->pd[1] == PREDICATE_DISCARD && !carry0 && !carry1) {
        EACH_LANE(m, d[l] = (a[l] ^ na) + (b[l] ^ nb) + (c[l] ^ nc) + (u32)ones);
        return;
    }
    u32 over[LANES];
    for (int l = 0; l < LANES; l++) {
        const u64 sum = (u64)(a[l] ^ na) + (b[l] ^ nb) + (c[l] ^ nc) + ones + (carry0 >> l & 1) +
                        (carry1 >> l & 1);
        over[l] = (u32)(sum >> 32);
        if (m >> l & 1) d[l] = (u32)sum;
    }
    u32 once, twice;
    LANE_BITS(once, over[l] >= 1);
    LANE_BITS(twice, over[l] >= 2);
    set_predicate(w, i->pd[0], once, m);
    set_predicate(w, i->pd[1], twice, m);
}

#define INTEGER_OPS(OP) OP(MOV) OP(IADD3)

#endif
