#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

/* Vector clocks: made when they are first needed; false where there is no memory. */
int has_clocks(Worker *c) {
    Checker *k = c->checker;
    if (k->joined) return 1;
    if (ZEROS(k->know, (size_t)k->threads * k->clocks) && ZEROS(k->joined, k->clocks)) return 1;
    stop(c, NO_MEMORY);
    return 0;
}

/* Note the phases of each mbarrier that all live lanes of a warp know to be complete. */
void note_acquired(Checker *k, const Warp *w) {
    u32 *acquired = k->acquired + (size_t)w->index * MOST_MBARRIERS;
    memset(acquired, 0xff, MOST_MBARRIERS * sizeof *acquired);
    FOR_LANES {
        if (!(w->alive >> l & 1)) continue;
        const u32 *over = clock_of(k, w->index * LANES + l) + k->threads;
        IVDEP for (u32 n = 0; n < MOST_MBARRIERS; n++)
            acquired[n] = over[n] < acquired[n] ? over[n] : acquired[n];
    }
}

static int within_warp(const Finding *f) { return f->thread / LANES == f->thread_before / LANES; }

static int are_alike(const Finding *x, const Finding *y) {
    return x->kind == y->kind && x->pc == y->pc && x->pc_before == y->pc_before &&
           x->space == y->space && within_warp(x) == within_warp(y);
}

/* True if the finding is the first one of its two instructions. */
int report(Worker *c, const Finding *f) {
    Checks *k = c->checks;
    if (k->last >= k->found_count || !are_alike(&k->found[k->last], f))
        for (k->last = 0; k->last < k->found_count && !are_alike(&k->found[k->last], f);) k->last++;
    if (k->last < k->found_count) {
        k->found[k->last].times++;
        return 0;
    }
    if (k->found_count == MOST_FINDINGS) { k->lost = 1; return 0; }
    k->found[k->found_count] = *f;
    k->found[k->found_count++].times = 1;
    return 1;
}

void report_alone(Worker *c, const Warp *w, u32 kind, u32 space, int lane, u64 address,
                  u32 width) {
    Finding f = finding_of(c, kind, space, thread_of(w, lane));
    f.address = address;
    f.width = width;
    report(c, &f);
}
