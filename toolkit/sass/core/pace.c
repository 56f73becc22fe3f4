#include "pace.h"

#include "bulk_ops.h"
#include "costs.h"
#include "lanes.h"
#include "memory.h"

/* All warps that wait in vain for so many ticks wait forever. Long blocks that are executed for windows compute for
 * longer, and end with their instructions. */
static const u64 MOST_IDLE = 1ull << 26;

/* Quanta that a warp may be ahead of the others. Their registers do not fit in a cache: a long turn reads its own once. */
enum { MOST_AHEAD = 32 };

/* True if a warp can issue before this quantum ends. One that waited for others goes on with it. One that is ahead has
 * issued what it would issue in this quantum. */
int is_due(Worker *c, Warp *w) {
    if (w->time < c->now) w->time = c->now;
    if (w->time < c->now + c->launch->quantum) return c->any_due = 1;
    if (w->issued >= c->now) c->any_due = 1;
    else if (w->time < c->soonest) c->soonest = w->time;
    return 0;
}

/* True if no warp of a paused block can issue before this quantum ends: `is_due` would say so of each. */
int is_paused(Worker *c, const Block *b) {
    Pause *pause = &c->pauses[b - c->blocks];
    if (pause->until < c->now + c->launch->quantum) {
        pause->until = 0;
        return 0;
    }
    if (pause->issued >= c->now) c->any_due = 1;
    else if (pause->until < c->soonest) c->soonest = pause->until;
    return 1;
}

/* True if the operands of an instruction are there before this quantum ends. An instruction that others cannot observe
 * may also be issued ahead, by a warp that would issue one in each quantum until then. */
int issues_now(const Worker *c, Warp *w, u32 pc) {
    static const Pace none;
    const Pace *pace = pc < c->launch->length ? &c->launch->paces[pc] : &none;
    const u64 quantum = c->launch->quantum;
    for (u32 k = 0; k < SCOREBOARDS; k++)
        if (pace->wait >> k & 1 && w->ready[k] > w->time) w->time = w->ready[k];
    if (w->time < c->now + quantum) return 1;
    return pace->is_private && w->groups == 1 && w->issued >= c->now && w->time <= w->issued + quantum &&
           w->time < c->now + MOST_AHEAD * quantum;
}

/* Tick at which the L2 slices have completed a request; sectors of one slice queue. Atomic operations of
 * lanes with one address are not combined. */
static u64 made_at_slices(Worker *c, const Warp *w, const Ins *i, u32 m, const Pace *pace) {
    u64 a[LANES], before = ~0ull, last = w->time;
    addresses(w, i, m, a);
    FOR_LANES_OF(m) {
        const u64 sector = a[l] / SECTOR + 1;
        const int is_same = sector == before / SECTOR + 1 && (pace->is_load || a[l] != before);
        const u32 slice = a[l] / LINE * 0x9e3779b97f4a7c15ull >> 58;
        u64 *free = &c->slice_free[slice], *added = &c->slice_added[slice];
        before = a[l];
        if (is_same) continue;
        *free = (*free > w->time ? *free : w->time) + pace->of_unit;
        if (pace->is_load && *added == sector) *free += LOAD_AFTER_ADD;
        *added = pace->is_load ? 0 : sector;
        if (*free > last) last = *free;
    }
    return last;
}

/* A warp issues an instruction for the lanes m. */
void take_time(Worker *c, Warp *w, const Ins *i, u32 m) {
    const Pace *pace = &c->launch->paces[c->pc];
    u64 made = w->time;
    w->issued = w->time;
    if (pace->is_of_sm) {
        if (c->unit_free < w->time) c->unit_free = w->time;
        made = c->unit_free += pace->of_unit;
    } else if (pace->of_unit && m) {
        made = made_at_slices(c, w, i, m, pace);
    }
    if (pace->scoreboard < SCOREBOARDS) w->ready[pace->scoreboard] = made + pace->latency;
    w->time += pace->stall;
}

/* Go on to the next quantum in which a warp can issue or a bulk copy is done. False if nothing has
 * changed for long. */
int pass_time(Worker *c) {
    const u64 due = first_due(c);
    if (due < c->soonest) c->soonest = due;
    c->now = c->any_due || c->soonest == ~0ull ? c->now + c->launch->quantum : c->soonest;
    c->any_due = 0;
    c->soonest = ~0ull;
    if (due <= c->now) make_due(c);
    if (c->changes != c->watch.changes) {
        c->watch.changes = c->changes;
        c->idle_since = c->now;
    }
    return c->launch->period || c->now - c->idle_since < MOST_IDLE;
}
