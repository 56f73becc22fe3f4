#include "check_cluster.h"

#include <stdlib.h>

#include "grow.h"
#include "lanes.h"

/* An access by a thread of the cluster, after its warp had arrived at `stamp` - 1 barriers of the cluster;
 * 0: there was none. */
typedef struct { u32 stamp, pc; u16 rank, thread; u32 is_atomic; } Event;

/* A cell of a block: its last writer, and the last readers of two blocks. */
typedef struct { Event write, read[2]; } Cell;

/* The last access of a block's memory by each other block and instruction. */
typedef struct { Event by; u64 offset; u32 width; } Visit;

struct Meeting {
    u32 warps;
    u32 *arrivals, *waits; /* [warps] */
    Cell *cell;            /* [cells] */
    u32 cells;
    Visit *visit;
    u64 visits, room;
    u32 has_left, left_pc, left_thread;
};

void free_meeting(Meeting *meeting) {
    if (!meeting) return;
    free(meeting->arrivals); free(meeting->cell); free(meeting->visit); free(meeting);
}

/* NULL where there is not enough memory. */
Meeting *new_meeting(const Launch *launch, u32 cells, u32 warps) {
    Meeting *meeting;
    const u32 blocks = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    if (!ZEROS(meeting, 1)) return NULL;
    meeting->warps = warps;
    meeting->cells = blocks > 1 ? cells : 1;
    if (ZEROS(meeting->arrivals, 2 * (size_t)warps) && ZEROS(meeting->cell, meeting->cells)) {
        meeting->waits = meeting->arrivals + warps;
        return meeting;
    }
    free_meeting(meeting);
    return NULL;
}

/* A new block. */
void begin_meeting(Checker *k) {
    Meeting *meeting = k->cluster;
    memset(meeting->arrivals, 0, 2 * meeting->warps * sizeof(u32));
    memset(meeting->cell, 0, meeting->cells * sizeof *meeting->cell);
    meeting->visits = 0;
    meeting->has_left = k->learnt_otherwise = 0;
}

void check_cluster_arrival(Worker *c, const Warp *w, u32 arrivals) {
    if (c->checker) c->checker->cluster->arrivals[w->index] = arrivals;
}

void check_cluster_wait(Worker *c, const Warp *w, u32 waits) {
    if (c->checker) c->checker->cluster->waits[w->index] = waits;
}

static u32 most_waits(const Meeting *meeting) {
    u32 most = 0;
    for (u32 n = 0; n < meeting->warps; n++) most = meeting->waits[n] > most ? meeting->waits[n] : most;
    return most;
}

/* Warps that meet at a barrier of the block share their waits for the cluster. */
void share_waits(Checker *k) {
    const u32 most = most_waits(k->cluster);
    for (u32 n = 0; n < k->cluster->warps; n++) k->cluster->waits[n] = most;
}

/* A lane that accesses memory of a block of its cluster. */
typedef struct {
    Worker *c;
    const Warp *w;
    int lane;
    Block *owner;
    u64 offset;
    u32 width, kind;
} Touch;

static Finding finding_at(const Touch *x, u32 kind) {
    Finding f = finding_of(x->c, kind, SPACE_SHARED, thread_of(x->w, x->lane));
    f.address = x->offset;
    f.width = x->width;
    f.owner = (u32)x->owner->index + 1;
    return f;
}

static Event event_of(const Touch *x) {
    return (Event){.stamp = x->c->checker->cluster->arrivals[x->w->index] + 1, .pc = x->c->pc,
                   .rank = (u16)x->c->block->rank, .thread = (u16)thread_of(x->w, x->lane),
                   .is_atomic = x->kind == WRITE_ATOMIC};
}

/* True if an access of another block is not ordered before this one. */
static int is_unordered(const Touch *x, const Event *before) {
    const Checker *k = x->c->checker;
    return before->stamp && before->rank != x->c->block->rank && !k->learnt_otherwise &&
           k->cluster->waits[x->w->index] < before->stamp;
}

static int races(const Touch *x, const Event *before) {
    return is_unordered(x, before) && !(before->is_atomic && x->kind == WRITE_ATOMIC);
}

static void report_event(const Touch *x, u32 kind, const Event *before) {
    Finding f = finding_at(x, kind);
    f.pc_before = before->pc;
    f.block_before = (x->c->block->cluster + before->rank)->index;
    f.thread_before = before->thread;
    report(x->c, &f);
}

static void far_read(const Touch *x, Cell *cell) {
    const Event now = event_of(x);
    if (is_unordered(x, &cell->write)) {
        /* a thread that polls what another block writes waits for it */
        if (x->kind == WRITE_ATOMIC) x->c->checker->learnt_otherwise = 1;
        else report_event(x, FOUND_READ_AFTER_WRITE, &cell->write);
    }
    if (cell->read[0].stamp && cell->read[0].rank != now.rank) cell->read[1] = cell->read[0];
    cell->read[0] = now;
}

static void far_write(const Touch *x, Cell *cell, int alike) {
    if (!alike && races(x, &cell->write)) report_event(x, FOUND_WRITE_AFTER_WRITE, &cell->write);
    for (u32 n = 0; n < 2; n++) {
        if (!races(x, &cell->read[n])) continue;
        report_event(x, FOUND_WRITE_AFTER_READ, &cell->read[n]);
        break;
    }
    cell->write = event_of(x);
}

/* An access, and the end of the block whose memory it is of. */
static void report_left(Worker *c, const Block *owner, const Visit *visit) {
    const Meeting *meeting = owner->checker->cluster;
    Finding f = finding_of(c, FOUND_LEFT_BLOCK, SPACE_SHARED, visit->by.thread);
    f.pc = visit->by.pc;
    f.block = (owner->cluster + visit->by.rank)->index;
    f.pc_before = meeting->left_pc;
    f.block_before = owner->index;
    f.thread_before = meeting->left_thread;
    f.address = visit->offset;
    f.width = visit->width;
    f.owner = (u32)owner->index + 1;
    report(c, &f);
}

/* Keep an access to another block's shared memory until that block is known to live on. */
static void note_visit(const Touch *x) {
    Meeting *meeting = x->owner->checker->cluster;
    const Visit now = {.by = event_of(x), .offset = x->offset, .width = x->width};
    u64 n = 0;
    if (meeting->has_left && !x->c->checker->learnt_otherwise && !x->owner->checker->learnt_otherwise)
        report_left(x->c, x->owner, &now);
    while (n < meeting->visits &&
           (meeting->visit[n].by.rank != now.by.rank || meeting->visit[n].by.pc != now.by.pc))
        n++;
    if (n == meeting->visits) {
        if (!GROWN(meeting->visit, meeting->room, n + 1)) { stop(x->c, NO_MEMORY); return; }
        meeting->visits++;
    } else if (meeting->visit[n].by.stamp >= now.by.stamp) {
        return;
    }
    meeting->visit[n] = now;
}

/* Another block's memory, before any barrier of the cluster. */
static int is_early(const Touch *x, int is_followed) {
    const Checker *k = x->c->checker;
    const u32 waits = is_followed ? k->cluster->waits[x->w->index] : most_waits(k->cluster);
    return !waits && !k->learnt_otherwise;
}

/* Lanes of m access shared memory of `owner`, at offsets a. */
void check_cluster_access(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a, Block *owner,
                          int is_store, u32 kind, const u32 *x) {
    const Checker *k = c->checker;
    const u32 is_followed = i->reserved & CHECK_CLUSTER;
    FOR_LANES_OF(m) {
        const Touch touch = {.c = c, .w = w, .lane = l, .owner = owner, .offset = a[l], .width = i->width,
                           .kind = kind};
        if (a[l] < c->launch->shared_base || a[l] + i->width > c->launch->shared_bytes) continue;
        if (owner != c->block && is_followed) note_visit(&touch);
        if (owner != c->block && is_early(&touch, (int)is_followed)) {
            Finding f = finding_at(&touch, FOUND_EARLY_ACCESS);
            report(c, &f);
            continue;
        }
        if (!is_followed) continue;
        Cell *cell = owner->checker->cluster->cell + (a[l] >> k->shift);
        for (u32 n = 0; n < i->width >> k->shift; n++) {
            const u32 offset = n << k->shift;
            if (is_store) far_write(&touch, &cell[n], x && stored(k, x, l, offset) == held(k, owner->shared + a[l] + offset));
            else far_read(&touch, &cell[n]);
        }
    }
}

/* Lanes of m have left the kernel: with the last of a block, its shared memory is gone. */
void check_leaving(Worker *c, const Warp *w, u32 m) {
    if (!c->checker || c->cluster_size == 1) return;
    Meeting *meeting = c->checker->cluster;
    const u32 waits = most_waits(meeting);
    EACH_WARP(other, c->block)
        if (other->alive) return;
    meeting->has_left = 1;
    meeting->left_pc = c->pc;
    meeting->left_thread = thread_of(w, __builtin_ctz(m));
    for (u64 n = 0; n < meeting->visits && !c->checker->learnt_otherwise; n++)
        if (meeting->visit[n].by.stamp > waits) report_left(c, c->block, &meeting->visit[n]);
}
