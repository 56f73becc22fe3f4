#include "check_products.h"

#include <stdlib.h>
#include <string.h>

#include "costs.h"
#include "grow.h"
#include "lanes.h"

void free_products(Products *p) {
    if (!p) return;
    for (u32 n = 0; p->warp && n < p->warps; n++) {
        free(p->warp[n].group); free(p->warp[n].pc); free(p->warp[n].use); free(p->warp[n].changed);
    }
    for (u32 n = 0; p->group && n < p->groups; n++) {
        free(p->group[n].ended); free(p->group[n].group); free(p->group[n].pc);
    }
    for (u32 n = 0; p->fence && n < p->warps * KEPT_FENCES; n++) free(p->fence[n].seen);
    free(p->warp); free(p->group); free(p->layout); free(p->fence); free(p->fences); free(p);
}

/* NULL where there is not enough memory. */
Products *new_products(const Launch *launch, u32 warps) {
    Products *p;
    if (!ZEROS(p, 1)) return NULL;
    p->warps = warps;
    p->threads = warps * LANES;
    p->groups = ceil_div(warps, WARPS_OF_GROUP);
    p->units = (launch->shared_bytes >> UNIT_SHIFT) + 1;
    int is_whole = ZEROS(p->warp, p->warps) && ZEROS(p->group, p->groups) && ZEROS(p->layout, p->units) &&
                   ZEROS(p->fence, (size_t)p->warps * KEPT_FENCES) && ZEROS(p->fences, p->warps);
    for (u32 n = 0; is_whole && n < p->warps; n++) {
        WarpProducts *w = &p->warp[n];
        is_whole = ZEROS(w->group, launch->slots) && ZEROS(w->pc, launch->slots) && ZEROS(w->use, launch->slots) &&
                   ZEROS(w->changed, launch->slots);
    }
    for (u32 n = 0; is_whole && n < p->groups; n++)
        is_whole = ZEROS(p->group[n].group, p->units) && ZEROS(p->group[n].pc, p->units);
    for (u32 n = 0; is_whole && n < p->warps * KEPT_FENCES; n++) is_whole = ZEROS(p->fence[n].seen, p->threads) != NULL;
    if (is_whole) return p;
    free_products(p);
    return NULL;
}

void begin_products(Products *p, const Launch *launch) {
    for (u32 n = 0; n < p->warps; n++) {
        WarpProducts *w = &p->warp[n];
        w->groups = w->waited = w->open = 0;
        memset(w->use, FREE, launch->slots);
        memset(w->changed, 0, launch->slots);
    }
    for (u32 n = 0; n < p->groups; n++) {
        p->group[n].count = 0;
        memset(p->group[n].group, 0, p->units * sizeof(u32));
    }
    memset(p->layout, BY_THREADS, p->units);
    memset(p->fences, 0, p->warps * sizeof(u32));
}

/* Bytes of shared memory were written by threads, or by a copy of a tile. */
void note_layout(Checker *k, u32 offset, u32 bytes, u8 layout) {
    Products *p = k->products;
    if (!p) return;
    for (u32 unit = offset >> UNIT_SHIFT; unit <= (offset + bytes - 1) >> UNIT_SHIFT; unit++)
        p->layout[unit] = layout;
}

/* True if a thread is ordered after one of the warps that waited for a group of products. */
static int is_after_group(const Checker *k, const GroupProducts *of, u32 first_warp, u32 group, u32 thread) {
    if (group >= of->count) return 0;
    for (u32 n = 0; n < WARPS_OF_GROUP && first_warp + n < k->threads / LANES; n++) {
        const u32 stamp = of->ended[group].stamp[n], warp = first_warp + n;
        if (!stamp) continue;
        if (stamp < k->floor[warp] || thread / LANES == warp) return 1;
        for (u32 l = 0; l < LANES; l++)
            if (is_after(k, thread, warp * LANES + l, stamp)) return 1;
    }
    return 0;
}

/* True if a product may still read what `thread` is about to write; `before` is a thread of its group. */
int is_read_by_products(const Checker *k, u32 thread, u32 offset, u32 *before, u32 *pc) {
    const Products *p = k->products;
    const u32 unit = offset >> UNIT_SHIFT;
    for (u32 n = 0; n < p->groups; n++) {
        const GroupProducts *of = &p->group[n];
        const u32 group = of->group[unit];
        if (!group || is_after_group(k, of, n * WARPS_OF_GROUP, group - 1, thread)) continue;
        *before = n * WARPS_OF_GROUP * LANES;
        *pc = of->pc[unit];
        return 1;
    }
    return 0;
}

/* Proxy fences. */

/* Lanes of m execute fence.proxy.async: it covers what they did and what they come after. */
void note_proxy_fence(Worker *c, const Warp *w, u32 m) {
    Checker *k = c->checker;
    Products *p = k->products;
    ProxyFence *f = &p->fence[w->index * KEPT_FENCES + p->fences[w->index]++ % KEPT_FENCES];
    for (u32 t = 0; t < p->threads; t++) f->seen[t] = k->floor[t / LANES] - 1;
    if (k->know)
        FOR_LANES_OF(m) join_clock(f->seen, clock_of(k, thread_of(w, l)), p->threads);
    FOR_LANES_OF(m) f->seen[thread_of(w, l)] = k->phase[w->index];
    f->stamp = k->phase[w->index]++;
}

/* True if some lane of a warp comes after a fence of warp n. */
static int comes_after(const Checker *k, const Warp *w, u32 n, u32 stamp) {
    if (n == w->index || stamp < k->floor[n]) return 1;
    if (!k->know) return 0;
    for (u32 t = w->index * LANES; t < (w->index + 1) * LANES; t++) {
        const u32 *know = clock_of(k, t) + n * LANES;
        for (u32 l = 0; l < LANES; l++)
            if (know[l] > stamp) return 1;
    }
    return 0;
}

/* True if a fence that this warp comes after covers what a thread stored in a phase. */
int is_fenced(const Checker *k, const Warp *w, u32 thread, u32 stamp) {
    const Products *p = k->products;
    for (u32 n = 0; n < p->warps; n++)
        for (u32 f = 0; f < KEPT_FENCES && f < p->fences[n]; f++) {
            const ProxyFence *fence = &p->fence[n * KEPT_FENCES + f];
            if (fence->seen[thread] >= stamp && comes_after(k, w, n, fence->stamp)) return 1;
        }
    return 0;
}
