#include "registers.h"

/* Clocks of a slot. They depend on earlier slots with registers in the same bank. Two operands are read
 * by the second clock, three by the third. */
static u8 clocks_of(const Instruction *i, u32 slot, int is_second_known) {
    const int bank = i->source[slot] % BANKS, are_three = i->source[2] >= 0;
    if (!slot) return are_three ? ANY : AT_ONCE;
    const int is_behind_first = i->source[0] >= 0 && i->source[0] % BANKS == bank;
    if (slot == 1) return !is_behind_first ? AT_ONCE : are_three ? ANY : BY_SECOND;
    if (is_behind_first || i->source[1] < 0 || i->source[1] % BANKS != bank) return ANY;
    return is_second_known ? LATER : NOT_NEXT;
}

/* Read the registers of a request, one per clock: for stores after the issue slot, for others the last
 * one within it. They occupy the scheduler's port to the load/store unit. */
void hand_over(Sm *s, Scheduler *x, const Instruction *i) {
    const u64 begin = GREATER(x->port, s->now);
    const int is_store = i->kind == KIND_SHARED_STORE || i->kind == KIND_STORE;
    x->port = begin + i->operands * s->m->operand_clocks;
    for (u32 k = 0; k < i->operands && s->m->bank_count; k++) {
        const u32 turn = is_store ? k : (k + 1u) % i->operands;
        const u64 at = begin - s->now + turn + (is_store ? 1 : 0);
        if (at >= CLOCKS_AHEAD) continue;
        u64 *bank = &x->registers.reads[i->banks >> k & 1];
        const u64 open = ~*bank & ~0ull << at;
        *bank |= open & -open;
    }
}

/* Fill a row of `reads`: for each state of the banks, CLOCKS bits per bank that is read in these clocks,
 * what an instruction reads, in the same bits, and above them the delay of the first slot's read; NO_ROOM
 * if not all reads fit. `number` has the clocks of each slot (none: no read), then their banks. A bank
 * reads one register per clock. */
static void plan_row(u8 *row, u32 number) {
    for (u32 state = 0; state < STATES; state++) {
        u32 taken = state, lacks = 0, slip = 0;
        for (u32 k = 0; k < SLOTS; k++) {
            const u32 clocks = number >> CLOCKS * k & ANY, bank = number >> (CLOCKS * SLOTS + k) & 1;
            const u32 open = clocks & ~(taken >> CLOCKS * bank), first = open & -open;
            lacks |= clocks && !open;
            taken |= first << CLOCKS * bank;
            if (!k) slip = first >> 1; /* the first, second or third bit */
        }
        row[state] = lacks ? NO_ROOM : slip << CLOCKS * BANKS | (taken ^ state);
    }
}

void plan_reads(u8 (*reads)[STATES]) {
    for (u32 number = 0; number < ROWS; number++) plan_row(reads[number], number);
}

/* Fill what is known of an instruction before the run. */
void plan_instruction(Planned *found) {
    const Instruction *i = &found->i;
    u32 again = 0, banks = 0; /* again: slots with the register of an earlier slot, which is read once */
    found->reads_registers = i->operands || i->source[0] >= 0 || i->source[1] >= 0 || i->source[2] >= 0;
    found->may_slip = i->unit == UNIT_FMA || i->unit == UNIT_CONTROL;
    found->is_plain = i->kind == KIND_PLAIN && !is_request(i) && (i->write_barrier & i->read_barrier) == NONE;
    for (u32 k = 0; k < SLOTS; k++) {
        const u16 r = i->source[k];
        found->reg[k] = r;
        found->kept[k] = i->reuse >> k & 1 ? r : NOT_KEPT;
        found->bank[k] = r == NOT_KEPT ? NO_BANK : r % BANKS;
        for (u32 n = 0; n < k; n++) again |= (i->source[n] == i->source[k]) << k;
        banks |= r % BANKS << (CLOCKS * SLOTS + k);
    }
    for (u32 known = 0; known < 1 << SLOTS; known++) {
        u32 number = banks;
        for (u32 k = 0; k < SLOTS; k++)
            if (i->source[k] >= 0 && !((known | again) >> k & 1))
                number |= clocks_of(i, k, (known | again) >> 1 & 1) << CLOCKS * k;
        found->row[known] = number;
    }
}
