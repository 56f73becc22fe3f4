/* What lanes of a warp know of each other and of where they are: shuffles, votes, reductions,
 * special registers, and convergence barriers as values.
 *
 * A uniform register or predicate is written in all lanes, whoever is active; the values come from
 * the active lanes only, which are those of m.
 */
#ifndef WARP_H
#define WARP_H

#include "core.h"
#include "integer.h"

/* Ins.flags, of all of these: d[0] is a uniform register. */
enum { TO_UNIFORM = 1 << 16 };

static inline void write_alike(Warp *w, const Ins *i, u32 m, u32 value) {
    DESTINATION(d);
    const u32 lanes = i->flags & TO_UNIFORM ? FULL : m;
    WRITE(lanes, d, value);
}

/* SHFL: each lane reads s[0] of the lane that s[1] names, within the segment that s[2] describes:
 * bits 0-4 its clamp, bits 8-12 the lane bits that tell segments apart. A lane beyond its segment
 * reads itself, and pd[0] is false. A lane that is not active gives what its register holds. */
enum { SHUFFLE_IDX = 0, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY };

OPERATION(SHFL) {
    READ_ABC(SOURCE);
    DESTINATION(d);
    u32 x[LANES], from[LANES], inside[LANES], most[LANES];
    memcpy(x, a, sizeof x);
    IVDEP FOR_LANES {
        const u32 segment = c[l] >> 8 & 31;
        most[l] = (l & segment) | (c[l] & 31 & ~segment);
    }
    switch (i->aux) {
    case SHUFFLE_IDX:
        IVDEP FOR_LANES {
            const u32 segment = c[l] >> 8 & 31;
            from[l] = (l & segment) | (b[l] & 31 & ~segment);
        }
        break;
    case SHUFFLE_UP:
        IVDEP FOR_LANES from[l] = l - (b[l] & 31);
        break;
    case SHUFFLE_DOWN:
        IVDEP FOR_LANES from[l] = l + (b[l] & 31);
        break;
    default:
        IVDEP FOR_LANES from[l] = l ^ (b[l] & 31);
    }
    const int up = i->aux == SHUFFLE_UP;
    IVDEP FOR_LANES {
        const i32 j = as_signed(from[l]), limit = as_signed(most[l]);
        inside[l] = (up ? j >= limit : j <= limit) ? FULL : 0;
        from[l] = inside[l] ? from[l] : l;
    }
    WRITE(m, d, x[from[l] & 31]);
    if (i->pd[0] != PREDICATE_DISCARD) set_predicate(w, i->pd[0], bits_of(inside), m);
}

/* VOTE: d is the ballot of ps[0], pd[0] whether all, any, or all or none of the lanes say yes. */
enum { VOTE_ALL = 0, VOTE_ANY, VOTE_EQ };

OPERATION(VOTE) {
    const u32 ballot = predicate(w, i->ps[0]) & m;
    const int all = ballot == m, none = !ballot;
    const int truth = i->aux == VOTE_ALL ? all : i->aux == VOTE_ANY ? !none : all || none;
    write_alike(w, i, m, ballot);
    set_truth(w, i->pd[0], truth ? FULL : 0, m);
}

/* ELECT: pd[0] is true in the first of the active lanes that ps[0] admits; d is its number. */
OPERATION(ELECT) {
    const u32 willing = predicate(w, i->ps[0]) & m;
    const u32 leader = willing ? (u32)__builtin_ctz(willing) : 0;
    write_alike(w, i, m, leader);
    set_predicate(w, i->pd[0], willing & (0u - willing), m);
}

/* MATCH: the active lanes whose value equals this lane's. MATCH_ALL: all of them or none, and
 * pd[0]. MATCH_64: values are register pairs. */
enum { MATCH_ALL = 1, MATCH_64 = 2 };

OPERATION(MATCH) {
    const u32 *const low = vector(w, i->s[0]), *const high = i->flags & MATCH_64 ? low + LANES : low;
    DESTINATION(d);
    u32 x[LANES] = {0}, left = m, all = 1;
    while (left) {
        const int first = __builtin_ctz(left);
        const u32 value = low[first], upper = high[first];
        u32 same;
        LANE_BITS(same, low[l] == value && high[l] == upper);
        same &= m;
        all &= same == m;
        FOR_LANES_OF(same) x[l] = same;
        left &= ~same;
    }
    if (i->flags & MATCH_ALL) {
        WRITE(m, d, all ? m : 0);
        set_predicate(w, i->pd[0], all ? FULL : 0, m);
    } else {
        WRITE(m, d, x[l]);
    }
}

/* REDUX: one value of those of the active lanes. */
enum { REDUCE_AND = 0, REDUCE_OR, REDUCE_XOR, REDUCE_SUM, REDUCE_MIN, REDUCE_MAX };

static inline u32 reduced(u32 what, u32 is_signed, u32 x, u32 y) {
    const int less = is_signed ? as_signed(x) < as_signed(y) : x < y;
    switch (what) {
    case REDUCE_AND: return x & y;
    case REDUCE_OR: return x | y;
    case REDUCE_XOR: return x ^ y;
    case REDUCE_SUM: return x + y;
    case REDUCE_MIN: return less ? x : y;
    default: return less ? y : x;
    }
}

OPERATION(REDUX) {
    SOURCE(a, 0);
    const int first = __builtin_ctz(m);
    u32 x = a[first];
    for (int l = first + 1; l < LANES; l++)
        if (m >> l & 1) x = reduced(i->aux, i->flags & SIGNED, x, a[l]);
    write_alike(w, i, m, x);
}

/* R2UR: the value of the first active lane, and pd[0] where a lane's differs from it. */
OPERATION(R2UR) {
    SOURCE(a, 0);
    const u32 value = a[__builtin_ctz(m)];
    u32 differs;
    LANE_BITS(differs, a[l] != value);
    write_alike(w, i, m, value);
    set_predicate(w, i->pd[0], differs, m);
}

/* Special registers, by aux. */
enum {
    SPECIAL_TID_X = 0, SPECIAL_TID_Y, SPECIAL_TID_Z, SPECIAL_CTAID_X, SPECIAL_CTAID_Y,
    SPECIAL_CTAID_Z, SPECIAL_LANEID, SPECIAL_EQMASK, SPECIAL_LTMASK, SPECIAL_LEMASK,
    SPECIAL_GTMASK, SPECIAL_GEMASK, SPECIAL_VIRTID, SPECIAL_VIRTUALSMID, SPECIAL_CGACTAID,
    SPECIAL_SWINHI, SPECIAL_LWINHI, SPECIAL_SMEMSZ, SPECIAL_CLOCKLO, SPECIAL_CLOCKHI
};

/* A time: the warp instructions that this worker has executed. It grows with each of them. */
static u64 clock_now(const Worker *c) {
    u64 executed = 0;
    for (u32 k = 0; k < c->launch->length; k++) executed += c->count[k].executed;
    return executed;
}

static u32 special(const Worker *c, const Warp *w, u32 which, u32 lane) {
    const Launch *launch = c->launch;
    const u32 thread = w->index * LANES + lane, bit = 1u << lane;
    switch (which) {
    case SPECIAL_TID_X: return thread % launch->block[0];
    case SPECIAL_TID_Y: return thread / launch->block[0] % launch->block[1];
    case SPECIAL_TID_Z: return thread / launch->block[0] / launch->block[1];
    case SPECIAL_CTAID_X: return c->block->ctaid[0];
    case SPECIAL_CTAID_Y: return c->block->ctaid[1];
    case SPECIAL_CTAID_Z: return c->block->ctaid[2];
    case SPECIAL_LANEID: return lane;
    case SPECIAL_EQMASK: return bit;
    case SPECIAL_LTMASK: return bit - 1;
    case SPECIAL_LEMASK: return bit | (bit - 1);
    case SPECIAL_GTMASK: return ~(bit | (bit - 1));
    case SPECIAL_GEMASK: return ~(bit - 1);
    case SPECIAL_VIRTID: return w->index << 8; /* %warpid stands in bits 8-14 */
    case SPECIAL_CGACTAID: return c->block->rank;
    case SPECIAL_SWINHI: return (u32)(launch->shared_window >> 32);
    case SPECIAL_LWINHI: return (u32)(launch->local_window >> 32);
    case SPECIAL_SMEMSZ: return launch->shared_bytes;
    default: return 0; /* VIRTUALSMID: every block runs on SM 0 */
    }
}

OPERATION(READ_SPECIAL) {
    if (i->flags & TO_UNIFORM || i->aux == SPECIAL_CLOCKLO || i->aux == SPECIAL_CLOCKHI) {
        u32 value = special(core, w, i->aux, 0);
        if (i->aux == SPECIAL_CLOCKLO) value = (u32)clock_now(core);
        if (i->aux == SPECIAL_CLOCKHI) value = (u32)(clock_now(core) >> 32);
        write_alike(w, i, m, value);
        return;
    }
    DESTINATION(d);
    u32 x[LANES];
    FOR_LANES x[l] = special(core, w, i->aux, l);
    WRITE(m, d, x[l]);
}

/* CS2R of a clock as a register pair. */
OPERATION(CLOCK64) {
    DESTINATION(d);
    const u64 now = clock_now(core);
    const u32 lanes = i->flags & TO_UNIFORM ? FULL : m;
    WRITE64(lanes, d, now);
}

/* BMOV: convergence barrier aux from and to a register. Each lane keeps what it knows of it. */
enum { BARRIER_CLEAR = 1 };

OPERATION(BARRIER_READ) {
    DESTINATION(d);
    u32 *const b = w->b[i->aux];
    WRITE(m, d, b[l]);
    if (i->flags & BARRIER_CLEAR) WRITE(m, b, 0);
}

OPERATION(BARRIER_WRITE) {
    SOURCE(a, 0);
    u32 *const b = w->b[i->aux];
    WRITE(m, b, a[l]);
    w->restored |= 1u << i->aux;
}

/* From barrier aux to barrier imm. */
OPERATION(BARRIER_MOVE) {
    u32 *const from = w->b[i->aux], *const to = w->b[i->imm];
    EACH_LANE(m, to[l] = from[l]; if (i->flags & BARRIER_CLEAR) from[l] = 0);
}

/* B2R.RESULT of the reduction at the block's barrier aux. */
enum { RESULT_POPC = 0, RESULT_OR, RESULT_AND };

OPERATION(BARRIER_RESULT) {
    const u32 all = w->barrier_result[i->aux < CTA_BARRIERS ? i->aux : w->reduced];
    const u32 result = i->flags == RESULT_POPC ? all & 0xffff
                       : i->flags == RESULT_OR ? all >> 16 & 1 : all >> 17 & 1;
    DESTINATION(d);
    WRITE(m, d, result);
    set_predicate(w, i->pd[0], result ? FULL : 0, m);
}

#define WARP_OPS(OP)                                                                      \
    OP(SHFL) OP(VOTE) OP(ELECT) OP(MATCH) OP(REDUX) OP(R2UR) OP(READ_SPECIAL) OP(CLOCK64) \
    OP(BARRIER_READ) OP(BARRIER_WRITE) OP(BARRIER_MOVE) OP(BARRIER_RESULT)

#endif
