/* Single precision. Products and sums round once; nothing is contracted or reassociated
 * (-ffp-contract=off). */
#ifndef FLOATING_H
#define FLOATING_H

#include "core.h"
#include "integer.h"

enum { FTZ = 1, SATURATE = 2, ROUND_SHIFT = 4 /* bits 4-5 */ };
enum { ROUND_NEAREST = 0, ROUND_DOWN, ROUND_UP, ROUND_ZERO };

static void op_FFMA(Worker *core, Warp *w, const Ins *i, u32 m) {
    (void)core;
    SOURCE(a, 0);
    SOURCE(b, 1);
    SOURCE(c, 2);
    DESTINATION(d, 0);
    EACH_LANE(m, d[l] = as_bits(fmaf(as_float(a[l]), as_float(b[l]), as_float(c[l]))));
}

#define FLOATING_OPS(OP) OP(FFMA)

#endif
