/* For tests: run a program on one warp from any state, and see the state after. */
#include <string.h>

#include "blocks.h"
#include "bulk_ops.h"
#include "core.h"
#include "rounds.h"

/* Run the launch's program on the first warp of `block`, of which `lanes` live. v is
 * [slots][LANES], p [PREDICATES], b [CONVERGENCE_BARRIERS][LANES]; they hold the state before,
 * then the one after. The kind of the fault that stopped it. */
EXPORT u32 core_probe(Worker *c, u64 block, u32 lanes, u32 *v, u32 *p, u32 *b) {
    const size_t registers = (size_t)c->launch->slots * LANES * sizeof(u32);
    const u64 cluster = block; /* of one block */
    start_cluster(c, cluster, NULL, 0);
    Warp *w = c->block->warps;
    w->born = w->alive = w->group[0].mask = lanes;
    memcpy(w->v, v, registers);
    memcpy(w->p, p, sizeof w->p);
    memcpy(w->b, b, sizeof w->b);
    while (!c->fault.kind && c->running)
        if (!run_round(c) && !c->fault.kind && c->running && !make_oldest(c)) note_deadlock(c);
    memcpy(v, w->v, registers);
    memcpy(p, w->p, sizeof w->p);
    memcpy(b, w->b, sizeof w->b);
    return c->fault.kind;
}
