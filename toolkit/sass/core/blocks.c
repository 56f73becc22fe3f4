#include "blocks.h"

#include <stdlib.h>
#include <string.h>

#include "check_threads.h"
#include "costs.h"
#include "grow.h"
#include "origins.h"
#include "space.h"
#include "trace.h"

static void start_warp(Worker *c, u32 index) {
    const Launch *launch = c->launch;
    Warp *w = &c->block->warps[index];
    const u32 threads = launch->block[0] * launch->block[1] * launch->block[2];
    const u32 lanes = threads - index * LANES;
    u32 *v = w->v;
    u8 *local = w->local;
    memset(w, 0, sizeof *w);
    w->v = v;
    w->local = local;
    w->pool = launch->pool;
    w->born = w->alive = lanes >= LANES ? FULL : (1u << lanes) - 1;
    w->index = index;
    w->groups = 1;
    w->time = c->now ? c->now + launch->start_ticks : 0;
    w->group[0] = (Group){.mask = w->born, .pc = 0, .state = READY};
    memset(w->v, 0, (size_t)launch->slots * LANES * sizeof(u32));
    w->p[PT] = w->p[UPT] = FULL;
}

/* From here on, instructions are of this block. */
void take_up(Worker *c, Block *b) {
    Worker *keeper = b->keeper;
    c->block = b;
    c->count = keeper ? keeper->counts : c->uncounted;
    c->turns = keeper ? keeper->own_turns : NULL;
    c->trace = keeper ? keeper->own_trace : NULL;
    c->tally = keeper ? keeper->own_tally : NULL;
    c->stores = keeper ? keeper->own_stores : NULL;
    c->stream = keeper ? keeper->own_stream : NULL;
    c->printed = keeper ? keeper->own_printed : NULL;
    c->requests = keeper ? c->own_requests : NULL;
    c->origins = keeper ? keeper->own_origins : NULL;
    c->checker = b->checker;
}

static void set_tickets(const Launch *launch, u64 block) {
    for (u32 k = 0; k < launch->ticket_count; k++) {
        const Ticket *ticket = &launch->tickets[k];
        const u64 low = ticket->address, high = low + ticket->bytes;
        const u64 value = (u64)ticket->first + block * (u64)ticket->by;
        for (u32 n = 0; n < launch->allocation_count; n++)
            if (inside(&launch->allocations[n], low, high))
                memcpy(host_of(&launch->allocations[n], low, high, 1), &value, ticket->bytes);
    }
}

static void start_block(Worker *c, Block *b, u64 index) {
    const Launch *launch = c->launch;
    b->index = index;
    b->ctaid[0] = (u32)(index % launch->grid[0]);
    b->ctaid[1] = (u32)(index / launch->grid[0] % launch->grid[1]);
    b->ctaid[2] = (u32)(index / launch->grid[0] / launch->grid[1]);
    b->lives = 1;
    c->pauses[b - c->blocks].until = 0;
    b->mbarriers = b->cluster_arrived = b->cluster_phase = 0;
    b->spare_registers = 0;
    memset(b->barrier, 0, sizeof b->barrier);
    memset(b->shared, 0xff, launch->shared_bytes); /* NaN, so that no kernel relies on zeros */
    memset(b->shared_written, 0, ceil_div(launch->shared_bytes, BYTES_OF_FLAGS) * sizeof(u16));
    b->shared_unwritten = launch->shared_bytes - launch->shared_base;
    take_up(c, b);
    b->tag = c->started++;
    if (c->trace && !b->tag) { /* nothing is known of the blocks before */
        c->trace->epoch++;
        c->trace->used = 0;
    }
    if (c->trace && b->tag >= MOST_TAGS) c->trace->lost = 1;
    set_tickets(launch, index);
    if (c->checker) check_block(c);
    if (c->origins) begin_origins(c->origins);
    for (u32 k = 0; k < c->warp_count; k++) start_warp(c, k);
}

/* Memory for the blocks of a cluster, which are used again and again. */
static int has_memory(Worker *c, Block *b) {
    const Launch *launch = c->launch;
    const size_t registers = (size_t)launch->slots * LANES * sizeof(u32);
    const size_t local = (size_t)LANES * launch->local_bytes;
    if (b->arena) return 1;
    b->arena = malloc(c->warp_count * (registers + local) + 64);
    b->shared = malloc((size_t)launch->shared_bytes + 64);
    if (launch->check) b->checker = new_checker(launch, c->warp_count);
    if (!b->arena || !b->shared || (launch->check && !b->checker) || !ZEROS(b->warps, c->warp_count) ||
        !ZEROS(b->shared_written, (size_t)launch->shared_bytes / BYTES_OF_FLAGS + 1))
        return 0;
    u8 *aligned = b->arena + (64 - (uintptr_t)b->arena % 64) % 64;
    for (u32 k = 0; k < c->warp_count; k++) {
        b->warps[k].v = (u32 *)(aligned + k * registers);
        b->warps[k].local = aligned + c->warp_count * registers + k * local;
    }
    return 1;
}

/* The linear index of the block of a rank in a cluster. */
static u64 block_index(const Launch *launch, u64 cluster, u32 rank) {
    u64 of_cluster = cluster, index = 0, stride = 1;
    for (int axis = 0; axis < 3; axis++) {
        const u32 extent = launch->cluster[axis], clusters = launch->grid[axis] / extent;
        index += stride * (of_cluster % clusters * extent + rank % extent);
        of_cluster /= clusters;
        rank /= extent;
        stride *= launch->grid[axis];
    }
    return index;
}

static Worker *keeper_of(Worker *c, u64 block, const Kept *kept, u64 kept_count) {
    if (!kept) return c;
    for (u64 k = 0; k < kept_count; k++)
        if (kept[k].block == block) return kept[k].keeper;
    return NULL;
}

/* Start a cluster in a free place. */
void start_cluster(Worker *c, u64 cluster, const Kept *kept, u64 kept_count) {
    Block *first = c->blocks;
    while (first->lives) first += c->cluster_size;
    if (!c->running) c->started = 0;
    for (u32 rank = 0; rank < c->cluster_size; rank++) {
        Block *b = first + rank;
        if (!has_memory(c, b)) { stop(c, NO_MEMORY); return; }
        b->rank = rank;
        b->cluster = first;
        const u64 index = block_index(c->launch, cluster, rank);
        b->keeper = keeper_of(c, index, kept, kept_count);
        start_block(c, b, index);
    }
    c->running++;
    c->changes++;
}
