/* Register banks: when an instruction can read its operands. */
#pragma once

#include "sm.h"

enum { NO_BANK = BANKS };     /* Planned.bank of a slot without a register */
enum { KEPT_FOR = 2 };        /* instructions for which the reuse cache keeps a register */
enum { CLOCKS_AHEAD = 48 };   /* for which reads of requests are recorded */

/* Clocks in which a slot may read its register, one bit each, counted from the clock in which its
 * instruction leaves the dispatch. It is read in the first of them in which the bank is free. */
enum { AT_ONCE = 1, BY_SECOND = 3, NOT_NEXT = 5, LATER = 6, ANY = 7 };

void hand_over(Sm *s, Scheduler *x, const Instruction *i);
void plan_reads(u8 (*reads)[STATES]);
void plan_instruction(Planned *p);

/* Shift the recorded reads of the register banks so that they begin now. */
static inline void look_ahead(Registers *x, u64 now) {
    const u64 gone = now - x->from;
    for (u32 bank = 0; bank < BANKS; bank++) x->reads[bank] = gone < 64 ? x->reads[bank] >> gone : 0;
    x->from = now;
}

/* Clocks that an instruction waits for its registers; all instructions that read registers wait with
 * it. For `slip` clocks, only later instructions of its warp wait, except for multiply-adds. */
static inline u32 bank_clocks(Sm *s, Registers *x, u32 warp, const Planned *p, u32 *slip) {
    u32 late = 0, known = 0;
    *slip = 0;
    if (!s->m->bank_count) return 0;
    x->number += x->kept_warp == warp ? 1 : KEPT_FOR + 1;
    x->kept_warp = warp;
    look_ahead(x, s->now);
    for (u32 k = 0; k < SLOTS; k++) {
        u64 *kept = &x->kept[k][p->bank[k]];
        known |= (((u64)p->reg[k] << REG_SHIFT) + x->number - *kept <= KEPT_FOR) << k;
        *kept = ((u64)p->kept[k] << REG_SHIFT) + x->number;
    }
    const u8 *row = s->program.reads[p->row[known]];
    u64 found;
    while ((found = row[(x->reads[0] >> late & ANY) | (x->reads[1] >> late & ANY) << CLOCKS]) == NO_ROOM) late++;
    x->reads[0] |= (found & ANY) << late;
    x->reads[1] |= (found >> CLOCKS & ANY) << late;
    *slip = found >> CLOCKS * BANKS;
    for (u32 bank = 0; bank < BANKS; bank++) x->read[bank] = (u32)__builtin_popcountll(found >> CLOCKS * bank & ANY);
    if (p->i.yield) x->number += KEPT_FOR;
    return late;
}
