/* Products of warpgroups (wgmma): each needs four warps, and one unit of the SM computes them in order. */
#pragma once

#include "sm.h"

enum { WARPS_OF_GROUP = 4 };
/* Events of a product instead of a scoreboard: it leaves the queue; the last one of its group has ended. */
enum { PRODUCT_LEFT = NONE + 1, GROUP_ENDED };

void multiply(Sm *s, Warp *w, u32 warp, const Instruction *i);
void end_product(Sm *s, const Event *e);
double beside_products(const Sm *s, double begin, double clocks);

static inline u32 rank_of(const Sm *s, const Warp *w, u32 warp) { return (warp - s->blocks[w->block].first) % WARPS_OF_GROUP; }

static inline Group *group_of(Sm *s, const Warp *w, u32 warp) {
    Block *b = &s->blocks[w->block];
    return &b->group[(warp - b->first) / WARPS_OF_GROUP % GROUPS];
}

/* True if a product can be issued. Warp 0 of a warpgroup waits for the queue, the others never do. */
static inline int product_has_room(const Sm *s, const Warp *w, u32 warp) {
    return rank_of(s, w, warp) || s->products.queued < s->m->products_in_flight;
}

/* True if so few groups are pending that a warp that waits for them can go on. */
static inline int groups_are_done(Sm *s, const Warp *w, u32 warp, const Instruction *i) {
    return group_of(s, w, warp)->ended + i->argument >= w->groups;
}
