#include "products.h"

#include "events.h"

enum { WAVEFRONTS_OF_A = 16, COLUMNS_PER_WAVEFRONT = 4 }; /* 64 rows, and columns, of 32 bytes */

/* Columns of B, and where A and the end of a group are said, in `argument`. */
static u32 columns_of(const Instruction *i) { return 8 * ((i->argument & PRODUCT_COLUMNS) + 1); }

static void at(Sm *s, double time, u32 warp, u64 age, u8 what) {
    push(s, (Event){.at = time, .age = age, .warp = warp, .scoreboard = what});
}

/* Begin a product that all four warps have issued. Its interval is that of the tensor cores, or of the
 * wavefronts by which descriptors read shared memory. */
static void begin(Sm *s, u32 first, const Instruction *i) {
    const Machine *m = s->m;
    const int has_registers = i->argument & PRODUCT_OF_REGISTERS;
    const double columns = columns_of(i), busy = columns * m->product_column_clocks;
    double wavefronts = columns / COLUMNS_PER_WAVEFRONT + (has_registers ? 0 : WAVEFRONTS_OF_A);
    wavefronts *= m->free_memory ? 0 : m->wavefront_clocks;
    double interval = GREATER(busy, wavefronts);
    if (has_registers) RAISE(interval, m->least_product_clocks);
    double free = s->products.free;
    if (has_registers && s->products.after == first + 1) free += m->product_register_clocks;
    const double from = GREATER(free, s->now);
    s->products.after = first + 1;
    const double rest = has_registers ? m->product_latency_of_registers : m->product_latency;
    const u64 age = s->warps[first].age;
    s->products.free = from + interval;
    s->products.shared = wavefronts / interval;
    s->r->product_reads += wavefronts;
    at(s, from + interval + rest - m->product_release, first, age, PRODUCT_LEFT);
    if (i->argument & PRODUCT_ENDS_GROUP) at(s, from + busy + rest, first, age, GROUP_ENDED);
}

/* A warp issues a product. It begins with the last of the four warps. */
void multiply(Sm *s, Warp *w, u32 warp, const Instruction *i) {
    Group *g = group_of(s, w, warp);
    const u32 rank = rank_of(s, w, warp), first = warp - rank;
    const u32 last = s->blocks[w->block].first + s->blocks[w->block].warps - first;
    u32 least = ++g->issued[rank];
    if (i->argument & PRODUCT_ENDS_GROUP) w->groups++;
    if (!rank) s->products.queued++;
    s->r->unit_busy[UNIT_TENSOR] += columns_of(i) * s->m->product_column_clocks;
    for (u32 k = 0; k < WARPS_OF_GROUP && k < last; k++) LOWER(least, g->issued[k]);
    if (least == g->begun) return;
    g->begun = least;
    begin(s, first, i);
}

/* A product leaves the queue, or the last one of a group ends. */
void end_product(Sm *s, const Event *e) {
    if (e->scoreboard == PRODUCT_LEFT) {
        s->products.queued--;
        for (u32 k = 0; k < SCHEDULERS; k++) wake(s, k, s->now);
        return;
    }
    const Warp *w = &s->warps[e->warp];
    if (w->age != e->age) return;
    group_of(s, w, e->warp)->ended++;
    for (u32 k = 0; k < WARPS_OF_GROUP; k++) wake(s, e->warp + k, s->now);
}

/* When a request to shared memory ends that begins at a time and takes `clocks` alone. While products read
 * shared memory, it gets a share of the bandwidth. */
double beside_products(const Sm *s, double begin, double clocks) {
    if (begin >= s->products.free || !s->products.shared) return begin + clocks;
    const double share = s->m->least_beside_products + s->m->idle_beside_products * (1 - s->products.shared);
    const double until = (s->products.free - begin) * share;
    return clocks <= until ? begin + clocks / share : s->products.free + clocks - until;
}
