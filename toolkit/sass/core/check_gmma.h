/* Products of warpgroups, checked: their operands in shared memory and in registers (check_products.h). */
#pragma once

#include "operations.h"

/* Operations that check their registers themselves. */
static inline int is_of_products(const Ins *i) {
    return i->op == OP_CHECK_GMMA || i->op == OP_CHECK_GMMA_ARRIVE || i->op == OP_CHECK_GMMA_WAIT || i->op == OP_NOP;
}

void check_registers(Worker *c, const Warp *w, const Ins *i);
