/* Comparisons, of integers and of floating point. */
#pragma once

#include "lanes.h"

/* Ins.aux holds which relations are true, then how a predicate is combined with. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };
enum { COMBINE_SHIFT = 4, COMBINE_AND = 0, COMBINE_OR, COMBINE_XOR };

/* All ones where a and b, which can be compared by < and so on, stand in one of the relations. */
#define RELATED(a, b)                                                                      \
    (((a) < (b) ? less_ : 0u) | ((a) == (b) ? equal_ : 0u) | ((a) > (b) ? greater_ : 0u) | \
     (((a) != (a)) | ((b) != (b)) ? unordered_ : 0u))
#define RELATIONS(relations)                                     \
    const u32 less_ = (relations) & LESS ? FULL : 0,             \
              equal_ = (relations) & EQUAL ? FULL : 0,           \
              greater_ = (relations) & GREATER ? FULL : 0,       \
              unordered_ = (relations) & UNORDERED ? FULL : 0

static inline u32 with_predicate(u32 how, u32 truth, u32 other) {
    switch (how >> COMBINE_SHIFT & 3) {
    case COMBINE_OR: return truth | other;
    case COMBINE_XOR: return truth ^ other;
    default: return truth & other;
    }
}

/* pd[0] = truth combined with ps[0]; pd[1] = its contrary combined with ps[0]. */
static inline void set_compared(Warp *w, const Ins *i, u32 truth, u32 m) {
    const u32 other = predicate(w, i->ps[0]);
    set_predicate(w, i->pd[0], with_predicate(i->aux, truth, other), m);
    set_predicate(w, i->pd[1], with_predicate(i->aux, ~truth, other), m);
}
