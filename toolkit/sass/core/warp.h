/* Exchange between the lanes of a warp, and their positions: shuffles, votes, reductions, special
 * registers, and convergence barriers as values.
 *
 * A uniform register or predicate is written for all lanes that run together; the values come from
 * those of m only, whose guard is true.
 */
#pragma once

#include "core.h"

/* Ins.flags, of all of these: d[0] is a uniform register. */
enum { TO_UNIFORM = 1 << 16 };

/* SHFL: each lane reads s[0] of the lane that s[1] names, within the segment that s[2] describes:
 * bits 0-4 its clamp, bits 8-12 the lane bits that tell segments apart. A lane beyond its segment
 * reads itself, and pd[0] is false. A lane that is not active gives what its register holds. */
enum { SHUFFLE_IDX = 0, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY };

/* VOTE: d is the ballot of ps[0], pd[0] whether all, any, or all or none of the lanes say yes. */
enum { VOTE_ALL = 0, VOTE_ANY, VOTE_EQ };

/* MATCH: the active lanes whose value equals this lane's. MATCH_ALL: all of them or none, and
 * pd[0]. MATCH_64: values are register pairs. */
enum { MATCH_ALL = 1, MATCH_64 = 2 };

/* Special registers, by aux. */
enum {
    SPECIAL_TID_X = 0, SPECIAL_TID_Y, SPECIAL_TID_Z, SPECIAL_CTAID_X, SPECIAL_CTAID_Y,
    SPECIAL_CTAID_Z, SPECIAL_LANEID, SPECIAL_EQMASK, SPECIAL_LTMASK, SPECIAL_LEMASK,
    SPECIAL_GTMASK, SPECIAL_GEMASK, SPECIAL_VIRTID, SPECIAL_VIRTUALSMID, SPECIAL_CGACTAID,
    SPECIAL_SWINHI, SPECIAL_LWINHI, SPECIAL_SMEMSZ, SPECIAL_CLOCKLO, SPECIAL_CLOCKHI,
    SPECIAL_CGASIZE
};

/* BMOV: convergence barrier aux from and to a register. Each lane keeps what it knows of it. */
enum { BARRIER_CLEAR = 1 };

/* B2R.RESULT of the reduction at the block's barrier aux. */
enum { RESULT_POPC = 0, RESULT_OR, RESULT_AND };

void shuffle_sources(const Warp *w, const Ins *i, u32 *restrict from, u32 *restrict inside);
