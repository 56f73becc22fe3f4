#include "straight.h"

#include <math.h>
#include <stdlib.h>

#include "floating.h"
#include "grow.h"
#include "lanes.h"
#include "stream.h"

static int is_straight(const Ins *i, u32 op) {
    return i->op == op && i->guard == PT && !i->uniform && !i->mod[0] && !i->mod[1] && !i->mod[2];
}

/* Straight runs of a program, and one entry behind it; NULL if there is not enough memory. */
Straight *new_straight(const Launch *launch, u32 op) {
    Straight *all;
    if (!ZEROS(all, (size_t)launch->length + 1)) return NULL;
    for (u32 pc = launch->length; pc-- > 0;) {
        const Ins *i = &launch->program[pc];
        all[pc] = (Straight){.run = is_straight(i, op) ? all[pc + 1].run + 1 : 0, .d = i->d[0],
                             .a = i->s[0], .b = i->s[1], .c = i->s[2]};
    }
    return all;
}

/* Make the n instructions from pc on, for all lanes. */
void run_straight(Worker *c, const Warp *w, u32 pc, u32 n) {
    const Straight *const first = &c->straight[pc];
    for (const Straight *x = first; x < first + n; x++) {
        u32 *const d = vector(w, x->d);
        const u32 *const a = vector(w, x->a), *const b = vector(w, x->b), *const z = vector(w, x->c);
        IVDEP FOR_LANES
            d[l] = canonical(fmaf(as_float(a[l]), as_float(b[l]), as_float(z[l])));
    }
    if (c->turns) {
        c->turns[pc]++;
        c->turns[pc + n]--;
    }
    if (c->stream) stream_run(c->stream, pc, n);
}

/* Add the straight runs since the last call to the counts of `keeper`, when a block has ended. */
void count_straight(Worker *keeper, u32 length) {
    i64 executed = 0;
    for (u32 pc = 0; pc < length; pc++) {
        executed += keeper->own_turns[pc];
        keeper->own_turns[pc] = 0;
        if (!executed) continue;
        Count *count = &keeper->counts[pc];
        count->executed += (u64)executed;
        count->threads += LANES * (u64)executed;
        count->predicated += LANES * (u64)executed;
    }
    keeper->own_turns[length] = 0;
}
