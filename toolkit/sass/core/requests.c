#include "requests.h"

#include <stdlib.h>

#include "grow.h"
#include "lanes.h"

void free_requests(Requests *r) {
    if (!r) return;
    free(r->noted); free(r->of); free(r);
}

Requests *new_requests(u64 each, u32 length) {
    Requests *r;
    if (ZEROS(r, 1) && ZEROS(r->of, length)) {
        r->each = each;
        return r;
    }
    free_requests(r);
    return NULL;
}

/* The lanes in m access a[] of `space`. */
void note_request(Worker *c, const Warp *w, const u64 *a, u32 m, u32 space) {
    Requests *r = c->requests;
    if (r->lost || r->of[c->pc] >= r->each) return;
    if (!GROWN(r->noted, r->room, r->count + 1)) { r->lost = 1; return; }
    Request *one = &r->noted[r->count++];
    r->of[c->pc]++;
    *one = (Request){.block = c->block->index, .pc = c->pc, .warp = w->index, .mask = m, .space = space};
    FOR_LANES one->address[l] = m >> l & 1 ? a[l] : 0;
}
