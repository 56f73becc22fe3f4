/* The first memory request of each instruction, with the address of every lane: what a report draws
 * of a warp's access. Later ones of an instruction are mostly the same, further on. */
#pragma once

#include "core.h"

void note_request(Worker *c, const Warp *w, const u64 *a, u32 m, u32 space);
