/* Where values come from, followed while a few blocks run: what proves that other blocks count alike.
 *
 * Every register, every predicate and every word of shared and local memory has an origin in each lane.
 * SAME: the value is equal in all blocks. BLOCK_INDEX: it depends on the index of the block. DATA: it
 * depends on global memory, an atomic operation, a clock or an SM. Any larger number is an affine
 * function of the block's index: in a block that is (x, y, z) blocks further the value is larger by
 * c[0] * x + c[1] * y + c[2] * z, modulo 2^32.
 *
 * A comparison of affine values has the same outcome within some borders, and their low bits are the
 * same at whole periods of the index. Both are noted. So every block within the borders of a block that
 * was followed, whole periods away from it, takes the same path, and its addresses are shifted by known
 * distances; except where `Dependence` says otherwise.
 */
#pragma once

#include "core.h"

enum { SAME = 0, BLOCK_INDEX, DATA, SIGN_ALIKE, FIRST_AFFINE };

/* An affine function of the block's index, in units of 2^-FRACTION_BITS: `c` per block along each axis.
 * Between `low` and `high` from its value in the block that was followed, all comparisons agree. `parts`: lanes
 * of some request are apart by a value that grows like this. */
typedef struct { i64 c[3], low, high, parts; } Affine;

enum { FRACTION_BITS = 16, MOST_PERIOD_BITS = 6, MOST_AFFINE = 2048 };

/* Whether other blocks may do something else at an instruction: BLOCK_INDEX or DATA where the branch, the
 * guard or an address depends on it; SAME where they do not. `parted`: likewise where the addresses of lanes
 * are shifted by different distances, unless those are zero for all blocks in question. */
typedef struct { u8 branch, guard, address, parted; } Dependence;

/* What code may write between a branch and the place where its sides meet again: slots of registers,
 * predicates with OF_PREDICATE, and memory. */
enum { OF_PREDICATE = 0x40000000, ALL_SHARED = 0x50000000, ALL_LOCAL = 0x50000001 };

Origins *new_origins(const Launch *launch, u32 warps);
void free_origins(Origins *o);
void begin_origins(Origins *o);
u32 words_written(const Ins *i);
void follow(Worker *c, Warp *w, const Ins *i, u32 lanes, u32 m);
const Affine *affine_origins(const Origins *o, u32 *count, u32 periods[3]);
const Dependence *dependences(const Origins *o);
