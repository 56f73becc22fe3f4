#include "waits.h"

#include "control.h"
#include "operations.h"
#include "straight.h"
#include "stream.h"

enum { WAITS = 1, BEGINS_TO_WAIT, ENDS_WAITING };

/* Whether instructions from `first` to `last` are few, and one is an atomic operation. */
static int is_short_with_atomics(const Launch *launch, u64 first, u64 last) {
    if (first > last || last - first >= MOST_OF_PASS) return 0;
    for (u64 k = first; k < last; k++)
        if (launch->program[k].op == OP_ATOMIC) return 1;
    return 0;
}

/* Note which instructions belong to such loops, whose last one is a branch. */
void mark_waits(Straight *all, const Launch *launch, u32 branch) {
    for (u32 pc = 0; pc < launch->length; pc++) {
        const Ins *i = &launch->program[pc];
        if (i->op == branch && is_short_with_atomics(launch, (u64)i->imm, pc))
            for (u32 at = (u32)i->imm; at <= pc; at++)
                if (!all[at].behind) all[at].behind = pc + 1;
        if (i->op != branch || !(i->flags & BRANCH_WAITS)) continue;
        for (u32 at = (u32)i->imm; at <= pc; at++) all[at].waits = WAITS;
        all[i->imm].waits = BEGINS_TO_WAIT;
        all[pc].waits = ENDS_WAITING;
    }
}

/* Move lanes that poll in vain behind their loops, as if the value had been written. */
int leave_loops(Worker *c) {
    int any = 0;
    EACH_GROUP_OF_ALL(g) {
        const Straight *at = &c->straight[g->pc];
        if (g->state != READY || !(at->waits || at->behind)) continue;
        if (at->waits) {
            while (c->straight[g->pc].waits != ENDS_WAITING) g->pc++;
            g->pc++;
        } else {
            g->pc = at->behind;
        }
        any = 1;
    }
    c->changes += any;
    return any;
}

/* Note the effects of the current pass of a warp through a waiting loop, to undo if another follows. */
void note_passed(Worker *c, Warp *w, u32 pc, u32 lanes, const Count *before) {
    Pass *pass = &w->pass;
    if (c->straight[pc].waits == BEGINS_TO_WAIT) *pass = (Pass){.lanes = lanes};
    if (pass->lanes != lanes || pass->length == MOST_OF_PASS) { pass->lanes = 0; return; }
    Passed *one = &pass->passed[pass->length++];
    *one = (Passed){.pc = pc};
    if (c->stream && !c->stream->lost) {
        one->step = c->stream->count;
        one->line = c->stream->line_count;
        for (u32 k = 1; k <= c->stream->steps[one->step - 1].lines; k++)
            c->stream->lines[one->line - k] |= FLAG;
    }
    u64 *more = (u64 *)&one->count;
    const u64 *then = (const u64 *)before, *now = (const u64 *)&c->count[pc];
    for (u32 k = 0; k < sizeof(Count) / sizeof(u64); k++) more[k] = now[k] - then[k];
}

/* The pass was in vain: it leaves nothing but its counts and steps, which go. */
void undo_pass(Worker *c, Warp *w) {
    Pass *pass = &w->pass;
    for (const Passed *one = pass->passed; one < pass->passed + pass->length; one++) {
        u64 *count = (u64 *)&c->count[one->pc];
        const u64 *more = (const u64 *)&one->count;
        for (u32 k = 0; k < sizeof(Count) / sizeof(u64); k++) count[k] -= more[k];
        if (!c->stream || c->stream->lost) continue;
        Step *step = &c->stream->steps[one->step - 1];
        step->flags |= STEP_UNDONE;
        for (u32 k = 1; k <= step->lines; k++) c->stream->lines[one->line - k] = LINE_UNDONE;
    }
    w->steps -= pass->length;
    pass->lanes = 0;
}
