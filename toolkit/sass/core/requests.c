#include "requests.h"

#include "lanes.h"

/* The lanes in m access a[] of `space`. */
void note_request(Worker *c, const Warp *w, const u64 *a, u32 m, u32 space) {
    Request *one = &c->requests[c->pc];
    if (one->mask) return;
    *one = (Request){.block = c->block->index, .pc = c->pc, .warp = w->index, .mask = m, .space = space};
    FOR_LANES one->address[l] = m >> l & 1 ? a[l] : 0;
}
