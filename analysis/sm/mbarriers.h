/* Barriers in shared memory. A block is replayed without the other blocks of its cluster. These are
 * assumed to do the same to it as it does to them: it arrives at its own barrier instead of theirs. */
#pragma once

#include "sm.h"

void let_arrive(Sm *s);
void count_request(Sm *s, const Request *q, const Instruction *i, double now);
int phase_is_over(Sm *s, const Warp *w);
int help_one(Sm *s);
void copy_bulk(Sm *s, Warp *w, const Instruction *i, const Step *step, const u64 *line);

static inline u64 word(const u64 *words, u32 k) { return words[k] & ~COMMON; }

static inline int is_bulk_copy(const Instruction *i) { return i->kind == KIND_BULK_LOAD || i->kind == KIND_BULK_STORE; }

static inline u32 words_of(const Instruction *i, const Step *step) {
    return step->lines + (is_bulk_copy(i) ? 256u * step->clocks : 0);
}
