#include "issue.h"

#include "blocks.h"
#include "code.h"
#include "constants.h"
#include "events.h"
#include "l2.h"
#include "load_store.h"
#include "mbarriers.h"
#include "products.h"
#include "registers.h"

/* Reason (LOST_*) of a warp that waits for the result of an instruction. */
static u8 waits_for(const Instruction *i, const Step *step) {
    if (!is_request(i)) return LOST_ARITHMETIC;
    return queue_of(i, step) == QUEUE_GLOBAL ? LOST_GLOBAL : LOST_SHARED;
}

/* When the pipe of an instruction is free. One half of the multiply-add unit executes wide products and,
 * on some architectures, all integer instructions; plain multiply-adds take the half that is free. */
static u64 *pipe_of(const Sm *s, Scheduler *x, const Instruction *i) {
    u64 *own = &x->unit_free[i->unit], *heavy = &x->unit_free[UNIT_FMA_HEAVY];
    if (i->unit == UNIT_FMA) return s->m->fma_halves == 2 && (*own <= s->now || *own < *heavy) ? own : heavy;
    if (i->unit == UNIT_TENSOR_SHORT) return &x->unit_free[UNIT_TENSOR];
    return i->unit == UNIT_FMA_WIDE || (i->unit == UNIT_ALU && s->m->integers_share) ? heavy : own;
}

/* A warp cannot issue before a time, for a reason that may change. */
static int not_before(u64 time, u8 reason, u64 *again, u8 *why) {
    LOWER(*again, time);
    *why = reason;
    return 0;
}

/* True if a warp, of which `until` has passed, can issue now; if not, `why`, and `again`: when that may
 * change. */
INLINED int can_issue(Sm *s, Scheduler *x, u32 warp, u64 *again, u8 *why) {
    const Warp *w = &s->warps[warp];
    const Planned *p = &s->program.code[w->pc];
    const Instruction *i = &p->i;
    if (i->wait & w->waits) {
        *why = w->from[__builtin_ctz(i->wait & w->waits)];
        wait_until(s, warp, UNKNOWN, *why);
        return 0;
    }
    if (!p->is_plain) {
        if (i->kind == KIND_WAIT_GROUP && w->pending[i->argument >> 4] > (i->argument & 15u))
            return not_before(UNKNOWN, LOST_GLOBAL, again, why);
        if (i->kind == KIND_MBARRIER_WAIT && !phase_is_over(s, w)) return not_before(UNKNOWN, LOST_BARRIER, again, why);
        if (i->kind == KIND_PRODUCT && !product_has_room(s, w, warp)) return not_before(UNKNOWN, LOST_PRODUCT, again, why);
        if (i->kind == KIND_PRODUCT_WAIT && !groups_are_done(s, w, warp, i)) return not_before(UNKNOWN, LOST_PRODUCT, again, why);
        if (i->kind == KIND_UNIFORM_CONSTANT) {
            const u64 at = uniform_constant_at(s, x, warp, w->step, w->line);
            if (at) {
                wait_until(s, warp, at, LOST_ARITHMETIC);
                return not_before(at, LOST_ARITHMETIC, again, why);
            }
        }
        if (is_request(i) && !has_room(s, x, i, w->step)) return not_before(UNKNOWN, LOST_QUEUE, again, why);
    }
    if (x->reads_free > s->now && p->reads_registers) return not_before(x->reads_free, LOST_BANK, again, why);
    if (x->slip_free > s->now && !p->may_slip && warp == x->last) return not_before(x->slip_free, LOST_BANK, again, why);
    const u64 free = *pipe_of(s, x, i);
    return free <= s->now || not_before(free, LOST_PIPE, again, why);
}

/* Write waiting registers back in the clocks without issue. */
static void write_back(Scheduler *x, u64 now) {
    const u64 from = GREATER(x->free, x->write_since);
    if (now <= from) return;
    const double unused = now - from;
    x->write_due -= x->write_due < unused ? x->write_due : unused;
    x->write_since = now;
}

/* A result of a warp releases a scoreboard: a reason for the warp that waits for it. */
static void expect(Warp *w, u8 scoreboard, u8 reason) {
    if (scoreboard == NONE) return;
    w->pending[scoreboard]++;
    w->waits |= 1u << scoreboard;
    w->from[scoreboard] = reason;
}

/* Clocks for which a request occupies the load/store unit. */
static double lsu_clocks(const Machine *m, const Instruction *i, const Step *step, const u64 *line) {
    double clocks = step->clocks, least = i->free_clocks;
    if (!step->lines) {
        clocks *= m->wavefront_clocks;
        least *= m->wavefront_clocks;
    }
    if (least) RAISE(least, m->request_clocks);
    if (step->clocks) RAISE(clocks, m->request_clocks);
    /* of shared memory also if no lane takes part */
    const int is_shared = i->kind == KIND_SHARED_LOAD || i->kind == KIND_SHARED_STORE;
    if (i->unit == UNIT_LSU && (is_shared || !(step->flags & STEP_OFF))) RAISE(clocks, 1);
    if (i->kind == KIND_LOAD && step->lines && clocks) { /* more for more sectors, up to a line */
        const u32 sectors = sectors_of(line, step->lines);
        const double more = (m->load_clocks - m->sector_clocks) * (sectors < 4 ? sectors - 1 : 3) / 3;
        RAISE(clocks, m->sector_clocks + more);
    }
    if (m->free_conflicts && least) LOWER(clocks, least);
    return m->free_memory ? 0 : clocks;
}

static int is_product_of_warp(const Instruction *i) {
    return (i->unit == UNIT_TENSOR || i->unit == UNIT_TENSOR_SHORT) && i->kind != KIND_PRODUCT;
}

/* A product of a warp needs each register bank for some of its clocks. The next one waits until it and the
 * instructions behind it have had them. */
static void begin_product(Scheduler *x, const Instruction *i, u64 now) {
    x->product_at = now;
    const u32 needed = i->argument < i->pipe_clocks ? i->argument : i->pipe_clocks;
    for (u32 bank = 0; bank < BANKS; bank++) x->product_banks[bank] = needed;
}

/* A request and a special function take one more clock of each. */
static void delay_product(Scheduler *x, const Instruction *i, u64 now) {
    u64 *free = &x->unit_free[UNIT_TENSOR];
    if (*free <= now) return;
    const u32 handed = is_request(i) || i->unit == UNIT_XU;
    for (u32 bank = 0; bank < BANKS; bank++) {
        x->product_banks[bank] += x->registers.read[bank] + handed;
        RAISE(*free, x->product_at + x->product_banks[bank]);
    }
}

static void issue(Sm *s, Scheduler *x, u32 warp) {
    const Machine *m = s->m;
    Warp *w = &s->warps[warp];
    const Step *step = w->step;
    const u32 pc = w->pc;
    const Planned *p = &s->program.code[pc];
    const Instruction *i = &p->i;
    u32 slip;
    const u32 late = bank_clocks(s, &x->registers, warp, p, &slip);
    write_back(x, s->now);
    x->last = warp;
    x->free = s->now + 1;
    x->reads_free = x->free + late;
    x->slip_free = x->reads_free + slip;
    s->r->issued++;
    *pipe_of(s, x, i) = s->now + i->pipe_clocks;
    if (is_product_of_warp(i)) begin_product(x, i, s->now);
    else delay_product(x, i, s->now);
    s->r->unit_busy[i->unit] += i->pipe_clocks;
    w->ready = s->now + late + (i->stall > 1 ? i->stall + slip : 1);
    u8 why = LOST_STALL;
    const u64 fetched = code_is_here(s, pc);
    if (w->ready < fetched) {
        w->ready = fetched;
        why = LOST_FETCH;
    }
    if (p->is_plain) {
        go_on(s, w);
        wait_until(s, warp, w->ready, why);
        if (w->step == w->end) leave(s, warp);
        return;
    }
    expect(w, i->write_barrier, waits_for(i, step));
    expect(w, i->read_barrier, is_request(i) ? LOST_QUEUE : LOST_ARITHMETIC);
    const u64 *line = w->line;
    w->line += words_of(i, step);
    go_on(s, w);
    if (is_bulk_copy(i)) copy_bulk(s, w, i, step, line);
    if (i->kind == KIND_PRODUCT) multiply(s, w, warp, i);
    if (i->kind == KIND_PRODUCT_FENCE) RAISE(w->ready, s->now + (i->argument ? m->proxy_fence_clocks : m->group_fence_clocks));
    if (is_request(i)) {
        hand_over(s, x, i);
        enqueue(s, x, (Request){.step = step, .line = line, .from = x->port, .age = w->age,
                                .space = w->space, .left = lsu_clocks(m, i, step, line),
                                .warp = warp, .block = w->block});
    } else if (i->kind == KIND_BULK_GROUP) {
        const double made = GREATER(w->bulk_done, s->now);
        release(s, warp, w->age, i->write_barrier, made, 0);
        release(s, warp, w->age, i->read_barrier, made, 0);
    } else if (i->kind == KIND_CONSTANT) {
        const double read = load_constants(s, x, step, line);
        release(s, warp, w->age, i->write_barrier, read, 0);
        release(s, warp, w->age, i->read_barrier, read - m->constant_latency, 0);
    } else {
        release(s, warp, w->age, i->write_barrier, s->now + i->latency, 0);
        release(s, warp, w->age, i->read_barrier, s->now, 0);
    }
    if (i->kind == KIND_BRANCH && step->flags & STEP_TAKEN) {
        fetch_ahead(s, pc);
        RAISE(w->ready, s->now + m->branch_clocks);
    }
    if (i->kind == KIND_FENCE && !(step->flags & STEP_OFF)) RAISE(w->ready, s->now + m->fence_clocks);
    wait_until(s, warp, w->ready, why);
    if (w->step == w->end) {
        leave(s, warp);
    } else if (i->kind == KIND_BARRIER && !(step->flags & STEP_OFF)) {
        arrive(s, warp, i);
    }
}

/* Issue an instruction of the warp that issued last, or of the oldest one that can. If none can, the
 * scheduler sleeps until that may change. */
void choose(Sm *s, Scheduler *x) {
    const u32 first = x->number * s->warps_per_scheduler;
    const u64 *until = s->until + first, now = s->now;
    u64 again = UNKNOWN, oldest = UNKNOWN;
    u8 why = LOST_EMPTY, why_of_last = LOST_EMPTY, first_why = LOST_EMPTY;
    u32 chosen = NO_WARP, refused = NO_WARP;
    if (x->last != NO_WARP && until[x->last / SCHEDULERS] <= now) {
        if (can_issue(s, x, x->last, &again, &why_of_last)) {
            issue(s, x, x->last);
            return;
        }
        refused = x->last;
    }
    for (u32 k = 0; k < x->count; k++) {
        const u32 warp = k * SCHEDULERS + x->number;
        if (until[k] > now) {
            LOWER(again, until[k]);
            why = s->why_until[first + k];
        } else if (warp == refused) {
            why = why_of_last;
        } else if (s->warps[warp].age >= oldest) {
            continue;
        } else if (can_issue(s, x, warp, &again, &why)) {
            oldest = s->warps[warp].age;
            chosen = warp;
            continue;
        }
        if (first_why == LOST_EMPTY) first_why = why;
    }
    if (chosen != NO_WARP) {
        issue(s, x, chosen);
        return;
    }
    x->why = first_why;
    x->sleep = again;
    s->r->lost[first_why]++;
}

void happen(Sm *s, Event e) {
    if (e.clocks > 0) {
        s->lsu.tags_free = GREATER(s->lsu.tags_free, e.at) + e.tags;
        s->l1.data_free = GREATER(s->l1.data_free, e.at) + e.clocks;
        e.at = s->l1.data_free + (e.registers > 1 ? (e.registers - 1) * s->m->register_latency : 0);
        e.clocks = 0;
        push(s, e);
        return;
    }
    if (e.scoreboard > NONE) {
        end_product(s, &e);
        return;
    }
    Warp *w = &s->warps[e.warp];
    Scheduler *x = &s->scheduler[e.warp % SCHEDULERS];
    if (e.scoreboard != NONE && w->age == e.age && !--w->pending[e.scoreboard]) {
        w->waits &= ~(1u << e.scoreboard);
        if (w->alive && !w->at_barrier) s->until[place_among(s, e.warp)] = w->ready;
    }
    write_back(x, s->now);
    const double slots = e.registers * s->m->write_slots;
    x->write_due += slots;
    s->r->written_slots += slots;
    if (x->write_due >= 1) {
        const u32 lost = x->write_due;
        x->write_due -= lost;
        x->free = GREATER(x->free, s->now) + lost;
        s->r->lost[LOST_WRITE] += lost;
        x->why = LOST_WRITE;
    }
    LOWER(x->sleep, s->now);
}
