#include "check_copies.h"

#include <stdlib.h>
#include <string.h>

#include "bulk.h"
#include "check.h"
#include "check_blocks.h"
#include "check_products.h"
#include "check_shared.h"
#include "costs.h"
#include "grow.h"
#include "lanes.h"
#include "mbarrier.h"
#include "operations.h"

/* Cells that a copy writes, which nothing in the clocks of later blocks tells from those of theirs. */
static void note_copied(Checker *k, u32 first, u32 cells) {
    if (k->copied_from == k->copied_to) k->copied_from = first;
    if (first < k->copied_from) k->copied_from = first;
    if (first + cells > k->copied_to) k->copied_to = first + cells;
}

/* Blocks of a cluster access each other's shared memory, which is not followed. */
int is_followed(const Worker *c) { return c->checker && c->cluster_size == 1; }

static u32 gate_at(Worker *c, u64 address) {
    return (u32)(generation_at(c, address) - c->block->mbarrier);
}

/* True if several barriers have the same number, so that neither parities nor starts mean anything. */
static int is_shared_gate(const Worker *c, u32 number) {
    return number == MOST_MBARRIERS - 1 && c->block->mbarriers == MOST_MBARRIERS;
}

/* The mbarrier at an address, with its clocks; NULL where there is not enough memory. */
static Gate *new_gate(Worker *c, u32 number) {
    Checker *k = c->checker;
    Gate *gate = &k->gate[number];
    if (!has_clocks(c)) return NULL;
    if (!gate->arriving && !ZEROS(gate->arriving, (size_t)(1 + KEPT_PHASES) * k->clocks)) {
        stop(c, NO_MEMORY);
        return NULL;
    }
    gate->ended = gate->arriving + k->clocks;
    k->has_gates = k->crossed = 1;
    return gate;
}

static u32 *ended_at(const Checker *k, const Gate *gate, u32 phase) {
    return gate->ended + (size_t)(phase % KEPT_PHASES) * k->clocks;
}

/* Phases of an mbarrier that are over for a thread, and that it knows to have ended. */
static u32 over_at(const Checker *k, u32 number) { return k->threads + number; }
static u32 counted_at(const Checker *k, u32 number) { return k->threads + MOST_MBARRIERS + number; }

/* The barrier's own words: a thread begins it, others must come after that. */
static void check_words(Worker *c, const Warp *w, const Ins *i, int lane, u64 address, u32 kind) {
    Ins whole = *i;
    whole.width = MBARRIER_BYTES;
    check_shared_write(c, w, &whole, lane, address, kind, NULL);
}

/* Lanes of m initialize barriers: the first of them alone where it is one and the same, as hardware then
 * does it once. */
void check_begin(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a) {
    const int first = __builtin_ctz(m);
    for (int l = first; l < LANES; l++) {
        if (!(m >> l & 1) || (l != first && a[l] == a[first])) continue;
        const u32 number = gate_at(c, a[l]);
        Gate *gate = new_gate(c, number);
        if (!gate) return;
        check_words(c, w, i, l, a[l], WRITE_PLAIN);
        if (is_shared_gate(c, number)) continue;
        gate->began = gate->done;
        memset(gate->arriving, 0, c->checker->clocks * sizeof(u32));
    }
}

/* Make a copy's write visible to the threads that wait for the mbarrier. */
static void tie_to_gate(const Checker *k, Written *written, u32 number) {
    written->epoch = BY_COPY;
    written->mbarrier = (u8)number;
    written->stamp = k->gate[number].done;
}

/* Copies of a thread so far (cp.async) are complete for threads that wait for the mbarrier. */
static void hand_over(Checker *k, u32 thread, u32 number) {
    u64 kept = 0;
    for (u64 n = 0; n < k->pending_count; n++) {
        const Pending p = k->pending[n];
        if (p.thread != thread) {
            k->pending[kept++] = p;
            continue;
        }
        note_copied(k, p.first, p.cells);
        for (u32 cell = p.first; cell < p.first + p.cells; cell++) {
            Written *written = &k->written[cell];
            if (written->kind == WRITE_ASYNC && written->thread == thread) tie_to_gate(k, written, number);
        }
    }
    k->pending_count = kept;
}

/* A lane arrives, before that is counted. */
void check_arrive(Worker *c, const Warp *w, const Ins *i, int lane, u64 address) {
    Checker *k = c->checker;
    const u32 number = gate_at(c, address), thread = thread_of(w, lane);
    Gate *gate = new_gate(c, number);
    if (!gate) return;
    check_words(c, w, i, lane, address, WRITE_ATOMIC);
    u32 *own = clock_of(k, thread);
    if (own[counted_at(k, number)] < gate->done) own[counted_at(k, number)] = gate->done;
    join_clock(gate->arriving, own, k->clocks);
    gate->arriving[thread] = k->phase[w->index];
    if (i->flags & MBARRIER_OF_COPIES) hand_over(k, thread, number);
    k->polls |= i->op == OP_MBARRIER_COUNT;
}

/* Later accesses of the warp come after its release: they belong to the next phase. */
void check_arrived(Worker *c, const Warp *w) { c->checker->phase[w->index]++; }

/* All have arrived, and all bytes have come. */
void check_phase(Worker *c, u64 address) {
    Checker *k = c->checker;
    const u32 number = gate_at(c, address);
    Gate *gate = new_gate(c, number);
    if (!gate) return;
    u32 *ended = ended_at(k, gate, gate->done++);
    memcpy(ended, gate->arriving, k->clocks * sizeof *ended);
    ended[over_at(k, number)] = ended[counted_at(k, number)] = gate->done;
}

/* Number of phases that a thread knows to be complete after it found the one of a parity complete. */
static u32 proved(const Gate *gate, u32 known, u32 parity) {
    const u32 before = known > gate->began ? known - gate->began : 0;
    return gate->began + before + ((before & 1) == parity);
}

static void check_over(Worker *c, const Warp *w, int lane, u64 address, u32 parity) {
    Checker *k = c->checker;
    const u32 number = gate_at(c, address);
    const Gate *gate = new_gate(c, number);
    if (!gate) return;
    check_shared_read(c, w, lane, 1u << lane, address, MBARRIER_BYTES, WRITE_ATOMIC);
    u32 *own = clock_of(k, thread_of(w, lane));
    const u32 known = own[counted_at(k, number)] > own[over_at(k, number)] ? own[counted_at(k, number)]
                                                                      : own[over_at(k, number)];
    u32 over = is_shared_gate(c, number) ? gate->done : proved(gate, known, parity);
    if (over == gate->began || over > gate->done) return; /* nothing, or what never was */
    if (gate->done - over >= KEPT_PHASES) over = gate->done - KEPT_PHASES + 1; /* as far as it is kept */
    join_clock(own, ended_at(k, gate, over - 1), k->clocks);
}

/* True if the lanes of m load the upper words of mbarriers, as code before sm_90 waits for them: they come
 * after the phases that are over. */
int check_poll(Worker *c, const Warp *w, const Ins *i, u32 m) {
    Checker *k = c->checker;
    u64 a[LANES];
    addresses(w, i, m, a);
    FOR_LANES_OF(m) {
        u32 number = 0;
        while (number < c->block->mbarriers && c->block->mbarrier[number].offset + UPPER_WORD != a[l]) number++;
        if (number == c->block->mbarriers || i->width != WORD) return 0;
    }
    FOR_LANES_OF(m) {
        const u32 number = gate_at(c, a[l] - UPPER_WORD);
        const Gate *gate = &k->gate[number];
        if (gate->done > gate->began) join_clock(clock_of(k, thread_of(w, l)), ended_at(k, gate, gate->done - 1), k->clocks);
    }
    note_acquired(k, w);
    return 1;
}

/* These lanes find their phases over. */
void check_wait(Worker *c, const Warp *w, u32 lanes, const u64 *a, const u32 *parity) {
    FOR_LANES_OF(lanes) check_over(c, w, l, a[l], parity[l] >> 31);
    if (lanes && c->checker->has_gates) note_acquired(c->checker, w);
}

/* A bulk copy, and the lane that issues it. */
typedef struct { Worker *c; const Warp *w; const Bulk *b; int lane; } Copy;

/* The cells of a run of bytes. */
typedef struct { u32 first, end; } Cells;

static Cells cells_of(const Copy *x, u32 offset, u32 bytes) {
    const u32 shift = x->c->checker->shift, first = offset >> shift;
    return (Cells){.first = first, .end = first + (bytes >> shift)};
}

/* Reads that one warp made of these cells, and that the copy's thread is not ordered after. From here on
 * the copy stands for all of them: who comes after it comes after them. */
static void against_reads_of(const Copy *x, u32 first, u32 cells, const Warp *of) {
    Checker *k = x->c->checker;
    ReadBy *read = k->read + (size_t)of->index * k->cells + first;
    const u32 *know = clock_of(k, thread_of(x->w, x->lane)) + of->index * LANES;
    const u32 floor = k->floor[of->index], own = thread_of(x->w, x->lane) - of->index * LANES;
    u32 known = FULL, unknown = 0;
    FOR_LANES
        if (of->born >> l & 1 && l != own) known = know[l] < known ? know[l] : known;
    if (known < floor) known = floor - 1;
    IVDEP for (u32 n = 0; n < cells; n++)
        unknown |= (read[n].stamp > known) & ((read[n].mask & ~(own < LANES ? 1u << own : 0)) != 0);
    for (u32 n = 0; unknown && n < cells; n++)
        check_against_reads(x->c, x->w, x->lane, first + n, WORD, IS_BULK);
    IVDEP for (u32 n = 0; n < cells; n++) read[n].stamp = 0;
}

/* The copy will write these cells. */
static void check_target(void *copy, u32 offset, u32 bytes) {
    const Copy *x = copy;
    const Cells run = cells_of(x, offset, bytes);
    Worker *c = x->c;
    Checker *k = c->checker;
    const u32 thread = thread_of(x->w, x->lane);
    for (u32 cell = run.first; cell < run.end; cell++) {
        const Written *last = &k->written[cell];
        if (races_with_write(k, last, thread, WRITE_BULK))
            report_pair(c, x->w, FOUND_WRITE_AFTER_WRITE, x->lane, cell, WORD, last->thread, last->pc, IS_BULK);
        if (k->reading_count) check_against_copies(c, x->w, x->lane, cell, WORD);
        if (k->products) check_against_products(c, x->w, x->lane, cell, WORD);
    }
    note_layout(k, offset, bytes, x->b->is_tile ? BY_TILE + x->b->map.swizzle : BY_THREADS);
    EACH_WARP(w, c->block) against_reads_of(x, run.first, run.end - run.first, w);
    note_copied(k, run.first, run.end - run.first);
    for (u32 cell = run.first; cell < run.end; cell++)
        k->written[cell] = (Written){.epoch = UNSETTLED, .pc = c->pc, .step = x->w->steps,
                                     .thread = (u16)thread, .kind = WRITE_BULK};
}

/* What threads stored is fenced before the copy reads it. */
static void check_fences(const Copy *x, Cells run) {
    const Checker *k = x->c->checker;
    for (u32 cell = run.first; cell < run.end; cell++) {
        const Written *last = &k->written[cell];
        if (last->epoch < k->first_epoch || last->epoch >= BY_COPY || last->kind == WRITE_BULK || last->mbarrier == WAITED_FOR ||
            is_fenced(k, x->w, last->thread, last->stamp))
            continue;
        report_pair(x->c, x->w, FOUND_NO_PROXY_FENCE, x->lane, cell, WORD, last->thread, last->pc, 0);
        return;
    }
}

/* The copy reads these cells until its group is waited for. */
static void check_origin(void *copy, u32 offset, u32 bytes) {
    const Copy *x = copy;
    const Cells run = cells_of(x, offset, bytes);
    Worker *c = x->c;
    Checker *k = c->checker;
    for (u32 cell = run.first; cell < run.end; cell++)
        if (k->written[cell].epoch - k->first_epoch >= k->epoch - k->first_epoch)
            check_fresh_read(c, x->w, x->lane, run.first, cell, WORD, WRITE_PLAIN);
    if (k->products) check_fences(x, run);
    if (!GROWN(k->reading, k->reading_room, k->reading_count + 1)) { stop(c, NO_MEMORY); return; }
    k->reading[k->reading_count++] = (Reading){.thread = thread_of(x->w, x->lane), .group = x->b->group,
                                               .first = run.first, .cells = run.end - run.first, .pc = c->pc};
}

/* The first of the lanes that are here: it stands for the warp where one instruction is of all. */
static int first_lane(const Warp *w, const Ins *i) {
    return __builtin_ctz(w->group[w->current].mask & predicate(w, i->guard));
}

/* The copy reads bytes of global memory. */
static void check_source(const void *copy, u64 address, u64 bytes) {
    const Copy *x = copy;
    check_bulk_read(x->c, x->w, x->lane, address, bytes);
}

/* A copy is issued, by the first lane that is here. */
void check_issue(Worker *c, const Warp *w, const Ins *i, const Bulk *b) {
    Copy x = {.c = c, .w = w, .b = b, .lane = first_lane(w, i)};
    if (b->direction == TO_SHARED) each_global_run(b, check_source, &x);
    if (!has_clocks(c)) return;
    if (b->direction != TO_SHARED) each_run(b, offset_at(b->from), check_origin, &x);
    if (b->direction == TO_GLOBAL) return;
    check_words(c, w, i, x.lane, b->mbarrier, WRITE_ATOMIC);
    each_run(b, offset_at(b->shared), check_target, &x);
}

/* The copy wrote these cells, unless another thread did in between. */
static void settle_target(void *copy, u32 offset, u32 bytes) {
    const Copy *x = copy;
    const Cells run = cells_of(x, offset, bytes);
    Checker *k = x->c->checker;
    const u32 number = gate_at(x->c, x->b->mbarrier);
    for (u32 cell = run.first; cell < run.end; cell++) {
        Written *written = &k->written[cell];
        if (written->kind == WRITE_BULK && written->epoch == UNSETTLED) tie_to_gate(k, written, number);
    }
}

/* A copy was made, and its mbarrier is about to hear of it. */
void check_made(Worker *c, const Bulk *b) {
    Copy x = {.c = c, .b = b};
    if (new_gate(c, gate_at(c, b->mbarrier))) each_run(b, offset_at(b->shared), settle_target, &x);
}

/* Groups of a warp's copies have read what they store: as if their threads had, here. */
void check_copies_read(Worker *c, const Warp *w, u32 kept_groups) {
    Checker *k = c->checker;
    u64 kept = 0;
    for (u64 n = 0; n < k->reading_count; n++) {
        const Reading r = k->reading[n];
        if (r.thread / LANES != w->index || r.group + kept_groups >= w->bulk_groups) {
            k->reading[kept++] = r;
            continue;
        }
        const int lane = (int)(r.thread % LANES);
        ReadBy *read = k->read + (size_t)w->index * k->cells;
        for (u32 cell = r.first; cell < r.first + r.cells; cell++) {
            if (read[cell].stamp != k->phase[w->index]) begin_phase(k, w, &read[cell], lane);
            read[cell].mask |= 1u << lane;
            read[cell].pc = r.pc;
            k->written[cell].read_epoch = k->epoch;
        }
    }
    k->reading_count = kept;
}
