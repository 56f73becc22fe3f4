#include "load_store.h"

#include "events.h"
#include "l1.h"
#include "l2.h"
#include "mbarriers.h"
#include "products.h"

#define STORED_LINE_CLOCKS 1.5 /* of a store, for each line: measured 45 to 56 clocks for 32 lines */

/* Complete a request after its last wavefront. */
static void served(Sm *s, const Request *q, double now) {
    const Machine *m = s->m;
    Warp *w = &s->warps[q->warp];
    const Instruction *i = instruction_at(s, q->step->pc);
    const u32 registers = q->step->flags & STEP_OFF ? 0 : i->registers;
    /* latencies are measured from issue, for a request of one wavefront without contention */
    double at = now - i->operands * m->operand_clocks - 1;
    /* L1 delivers the last of several wavefronts later by as many clocks */
    const double least = i->free_clocks * (q->step->lines ? 1 : m->wavefront_clocks);
    const double conflicts = q->left - GREATER(least, 1), late = GREATER(conflicts, 0);
    const double from_shared = at + m->shared_latency; /* LDS, STS, SHFL, LDSM and mbarriers */
    const double asked = is_past_l1(i) ? s->lsu.bypass_free : now;
    u32 tags = 0; /* of lines that it has missed */
    switch (i->kind) {
    case KIND_LOAD:
        at = load_lines(s, q, at + late, now, &tags);
        break;
    case KIND_COPY:
        at = m->free_copies ? from_shared : load_lines(s, q, at + asked - now, asked, &tags);
        if (w->age == q->age) RAISE(w->async_done, at);
        break;
    case KIND_COPY_GROUP: /* requests are served in order, so the earlier copies have been served */
        if (w->age == q->age) RAISE(at, w->async_done);
        break;
    case KIND_STORE:
        store_lines(s, q->age, q->step->lines, q->line, LANES * i->argument, now);
        keep_stored_lines(s, q, LANES * i->argument, now);
        break;
    case KIND_ATOMIC:
        if (q->step->lines) store_lines(s, q->age, q->step->lines, q->line, WHOLE, now);
        at += q->step->lines ? m->atomic_latency : GREATER(q->left - m->wavefront_clocks, 0) + m->shared_atomic_latency;
        break;
    case KIND_MBARRIER_BEGIN:
    case KIND_MBARRIER_ARRIVE:
        if (w->age == q->age) count_request(s, q, i, now);
        at = from_shared;
        break;
    case KIND_MATRIX_LOAD: /* `release` adds the same number of register_latency */
        at = from_shared;
        if (registers > 1) at += (registers - 1) * ((double)MATRIX_CLOCKS - m->register_latency);
        break;
    default: /* KIND_SHARED_LOAD and KIND_SHARED_STORE (with SHFL), KIND_MBARRIER_WAIT */
        at = from_shared;
        if (m->wavefront_clocks == 1) at += GREATER(q->left - GREATER(registers, 1), 0); /* measured there alone */
    }
    if (tags && i->kind == KIND_LOAD && q->left > 0) /* the data arrive in L1, and pass it once more */
        push(s, (Event){.at = at, .clocks = q->left, .tags = tags, .age = q->age, .warp = q->warp,
                        .scoreboard = i->write_barrier, .registers = registers});
    else release(s, q->warp, q->age, i->write_barrier, at, registers);
    if (!tags && q->left > 0) RAISE(s->l1.data_free, now);
    const double entered = GREATER(now, asked - BYPASS_ROOM); /* the path past L1 */
    release(s, q->warp, q->age, i->read_barrier, is_past_l1(i) ? entered + BYPASS_READ_CLOCKS : now, 0);
}

/* Add a request to its queue. Requests to shared memory overtake those of their scheduler to global
 * memory, except for the first few, which are already in flight. */
void enqueue(Sm *s, Scheduler *x, Request q) {
    const Instruction *i = instruction_at(s, q.step->pc);
    const u32 kind = queue_of(i, q.step);
    q.turn = ++s->lsu.requests;
    if (kind == QUEUE_GLOBAL) {
        s->lsu.global_places += places_of(i);
        x->global_places += places_of(i);
    } else if (x->queue[QUEUE_GLOBAL].count > ON_THEIR_WAY) {
        const Queue *global = &x->queue[QUEUE_GLOBAL];
        q.turn = global->at[(global->head + ON_THEIR_WAY - 1) % MOST_QUEUED].turn;
    }
    Queue *queue = &x->queue[kind];
    queue->at[(queue->head + queue->count++) % MOST_QUEUED] = q;
    s->lsu.waiting++;
}

/* True if a request needs the L1 data path when it is served. Loads of global memory need it when their
 * lines arrive; predicated-off requests and ends of copy groups never do. */
static int needs_data(const Sm *s, const Request *q) {
    const u8 kind = instruction_at(s, q->step->pc)->kind;
    const int is_global_load = q->step->lines && (kind == KIND_LOAD || kind == KIND_COPY);
    return q->left > 0 && !is_global_load && kind != KIND_COPY_GROUP;
}

/* Serve a copy past L1: the load/store unit hands it on, and serves others meanwhile. */
static void bypass(Sm *s, const Request *q, double begin) {
    const double handed = q->left < s->m->bypass_clocks ? q->left : s->m->bypass_clocks;
    s->lsu.free = begin + handed;
    s->lsu.bypass_free = GREATER(s->lsu.bypass_free, begin) + q->left;
    s->r->lsu_busy += handed;
    s->r->bypass_busy += q->left;
    served(s, q, s->lsu.free);
}

/* Serve all wavefronts of the next request. False if none has reached the load/store unit. */
int serve_next(Sm *s) {
    const double now = s->now;
    Scheduler *best = NULL;
    Queue *next = NULL;
    for (u32 k = 0; k < SCHEDULERS && !best; k++) {
        Scheduler *x = &s->scheduler[(s->lsu.turn + k) % SCHEDULERS];
        for (u32 n = 0; n < QUEUES; n++) {
            Queue *queue = &x->queue[n];
            const Request *q = &queue->at[queue->head];
            if (!queue->count || q->from > s->now) continue;
            if (!next || q->turn < next->at[next->head].turn) best = x, next = queue;
        }
    }
    if (!best) return 0;
    const Request q = next->at[next->head];
    s->lsu.turn = (u32)(best - s->scheduler + 1) % SCHEDULERS;
    next->head = (next->head + 1) % MOST_QUEUED;
    next->count--;
    s->lsu.waiting--;
    if (next == &best->queue[QUEUE_GLOBAL]) {
        const u32 places = places_of(instruction_at(s, q.step->pc));
        s->lsu.global_places -= places;
        best->global_places -= places;
        for (u32 k = 0; k < SCHEDULERS; k++) wake(s, k, s->now + 1); /* any of them may take the free entry */
    }
    LOWER(best->sleep, s->now + 1);
    if (needs_data(s, &q)) RAISE(s->lsu.free, s->l1.data_free);
    const double begin = GREATER(s->lsu.free, now);
    if (is_past_l1(instruction_at(s, q.step->pc))) {
        bypass(s, &q, begin);
        return 1;
    }
    double clocks = q.left;
    if (q.step->lines && clocks > 0 && instruction_at(s, q.step->pc)->kind == KIND_STORE) RAISE(clocks, STORED_LINE_CLOCKS * q.step->lines);
    s->lsu.free = q.step->lines ? begin + clocks : beside_products(s, begin, clocks);
    if (q.step->lines && clocks > 0 && instruction_at(s, q.step->pc)->kind == KIND_LOAD) {
        RAISE(s->lsu.tags_free, (double)q.from);
        s->lsu.tags_free += tag_clocks(&q);
        RAISE(s->lsu.free, s->lsu.tags_free);
    }
    s->r->lsu_busy += clocks;
    if (!q.step->lines) s->r->shared_busy += q.left;
    served(s, &q, s->lsu.free);
    return 1;
}
