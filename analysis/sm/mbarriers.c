#include "mbarriers.h"

#include "events.h"
#include "l2.h"

static Mbarrier *mbarrier_of(Block *b, u64 address) {
    const u64 id = address & ((1u << RANK_SHIFT) - 1);
    for (u32 k = 0; k < b->mbarriers; k++)
        if (b->mbarrier[k].id == id) return &b->mbarrier[k];
    const u32 k = b->mbarriers < MOST_MBARRIERS ? b->mbarriers++ : MOST_MBARRIERS - 1;
    b->mbarrier[k] = (Mbarrier){.id = id};
    return &b->mbarrier[k];
}

static void end_phase(Sm *s, Block *b, Mbarrier *x) {
    x->pending = x->expected;
    x->bytes = 0;
    x->generation++;
    b->has_barriers = 1; /* its warps wait together */
    b->decided = 0;
    for (u32 k = 0; k < b->warps; k++) wake(s, b->first + k, s->now);
}

static void count_down(Sm *s, const Arrival *a) {
    Block *b = &s->blocks[a->block];
    if (b->age != a->age) return;
    Mbarrier *x = mbarrier_of(b, a->id);
    x->pending -= x->pending < a->arrivals ? x->pending : a->arrivals;
    x->bytes += a->bytes;
    if (!x->pending && x->bytes <= 0) end_phase(s, b, x);
}

static void expect_arrival(Sm *s, Arrival a) {
    GROW(s, s->arrivals.list, s->arrivals.count, s->arrivals.room);
    if (!s->failed) s->arrivals.list[s->arrivals.count++] = a;
}

void let_arrive(Sm *s) {
    for (u32 k = 0; k < s->arrivals.count;) {
        if (s->arrivals.list[k].at > s->now) { k++; continue; }
        const Arrival a = s->arrivals.list[k];
        s->arrivals.list[k] = s->arrivals.list[--s->arrivals.count];
        count_down(s, &a);
    }
}

/* Effect of a served request on barriers. Copies have theirs when they are complete. */
void count_request(Sm *s, const Request *q, const Instruction *i, double now) {
    Block *b = &s->blocks[q->block];
    const Warp *w = &s->warps[q->warp];
    const double at = w->async_done > now && i->argument ? w->async_done : now;
    for (u32 k = 0; k + 1 < q->step->lines; k += 2) {
        const u64 id = word(q->line, k), number = word(q->line, k + 1);
        if (i->kind == KIND_MBARRIER_BEGIN) {
            Mbarrier *x = mbarrier_of(b, id);
            *x = (Mbarrier){.id = x->id, .expected = number, .pending = number};
            continue;
        }
        expect_arrival(s, (Arrival){.at = at, .age = b->age, .id = id, .block = q->block,
                                    .arrivals = number >> 32, .bytes = (i32)number});
    }
}

/* True if the phase that a warp waits for in its next step is over. */
int phase_is_over(Sm *s, const Warp *w) {
    if (w->step->lines < 2) return 1;
    return mbarrier_of(&s->blocks[w->block], word(w->line, 0))->generation >= word(w->line, 1);
}

/* No warp can continue: the first one waits for another block of the cluster. End its phase. */
int help_one(Sm *s) {
    for (u32 k = 0; k < s->m->slots * s->warps_per_block; k++) {
        Warp *w = &s->warps[k];
        if (!w->alive || instruction_at(s, w->pc)->kind != KIND_MBARRIER_WAIT || phase_is_over(s, w)) continue;
        Block *b = &s->blocks[w->block];
        end_phase(s, b, mbarrier_of(b, word(w->line, 0)));
        return 1;
    }
    return 0;
}

/* A bulk copy uses this SM's share of L2, but neither the load/store unit nor L1. Its first words are
 * the barrier, and the number of blocks that receive it together with its bytes. */
void copy_bulk(Sm *s, Warp *w, const Instruction *i, const Step *step, const u64 *line) {
    const Machine *m = s->m;
    const u32 words = words_of(i, step);
    const double now = s->now;
    if (words < 2) return;
    if (i->kind == KIND_BULK_STORE) {
        store_lines(s, 0, words - 2, line + 2, WHOLE, now);
        w->bulk_done = s->l2.write_free;
        return;
    }
    Block *b = &s->blocks[w->block];
    double at = now + m->shared_latency; /* of a copy that fetches nothing */
    for (u32 k = 2; k < words && !m->free_copies; k++) at = fetch(s, sectors_in(line[k]), now);
    if (words > 2 && !m->free_copies && waits_for_dram(s)) {
        double wait = 0;
        for (u32 k = 2; k < words; k++) {
            const double of_line = dram_wait(m, b, word(line, k) >> SECTORS_OF_LINE);
            RAISE(wait, of_line);
        }
        at = behind_dram(s, now, at, wait);
        b->phases++;
    }
    const u64 number = word(line, 1);
    expect_arrival(s, (Arrival){.at = at, .age = b->age,
                                .id = word(line, 0), .block = w->block,
                                .bytes = -(i64)((number >> 32) * (u32)number)});
}
