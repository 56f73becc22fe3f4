#include "warp.h"

#include <string.h>

#include "atomics.h"
#include "integer.h"
#include "lanes.h"
#include "operations.h"

static inline void write_alike(Warp *w, const Ins *i, u32 m, u32 value) {
    if (i->flags & TO_UNIFORM) m = together(w);
    RESULT(value);
}

/* The lane that each lane takes its value from, and whether that one is inside its segment; if not, the
 * lane keeps its own value. */
void shuffle_sources(const Warp *w, const Ins *i, u32 *restrict from, u32 *restrict inside) {
    SOURCE(b, 1);
    SOURCE(c, 2);
    u32 most[LANES];
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
}

OPERATION(SHFL) {
    SOURCE(a, 0);
    u32 x[LANES], from[LANES], inside[LANES];
    memcpy(x, a, sizeof x);
    shuffle_sources(w, i, from, inside);
    RESULT(x[from[l] & 31]);
    WRITE_PREDICATE(0, bits_of(inside));
}

OPERATION(VOTE) {
    const u32 ballot = READ_PREDICATE(0) & m;
    const int all = ballot == m, none = !ballot;
    const int truth = i->aux == VOTE_ALL ? all : i->aux == VOTE_ANY ? !none : all || none;
    write_alike(w, i, m, ballot);
    set_truth(w, i->pd[0], truth ? FULL : 0, m);
}

/* ELECT: pd[0] is true in the first of the active lanes that ps[0] admits; d is its number. */
OPERATION(ELECT) {
    const u32 willing = READ_PREDICATE(0) & m;
    const u32 leader = willing ? (u32)__builtin_ctz(willing) : 0;
    write_alike(w, i, m, leader);
    WRITE_PREDICATE(0, willing & (0u - willing));
}

OPERATION(MATCH) {
    const u32 *const low = RAW(0), *const high = i->flags & MATCH_64 ? low + LANES : low;
    u32 x[LANES] = {0}, left = m, all = 1;
    while (left) {
        const int first = __builtin_ctz(left);
        const u32 value = low[first], upper = high[first];
        const u32 same = m & LANE_BITS(low[l] == value && high[l] == upper);
        all &= same == m;
        FOR_LANES_OF(same) x[l] = same;
        left &= ~same;
    }
    if (i->flags & MATCH_ALL) {
        RESULT(all ? m : 0);
        WRITE_PREDICATE(0, all ? FULL : 0);
    } else {
        RESULT(x[l]);
    }
}

/* REDUX: one value of those of the active lanes; aux says how they are combined, as of ATOMIC. */
OPERATION(REDUX) {
    SOURCE(a, 0);
    const int first = __builtin_ctz(m);
    const u32 type = i->flags & SIGNED ? TYPE_S32 : TYPE_U32;
    u32 x = a[first];
    for (int l = first + 1; l < LANES; l++)
        if (m >> l & 1) x = (u32)combined(i->aux, type, 0, x, a[l], 0);
    write_alike(w, i, m, x);
}

/* R2UR: the value of the first active lane, and pd[0] where a lane's differs from it, or ps[0] is
 * true. */
OPERATION(R2UR) {
    SOURCE(a, 0);
    const u32 value = a[__builtin_ctz(m)];
    const u32 differs = LANE_BITS(a[l] != value) | READ_PREDICATE(0);
    write_alike(w, i, m, value);
    WRITE_PREDICATE(0, differs);
}

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
    case SPECIAL_CGASIZE: return c->cluster_size;
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
    u32 x[LANES];
    FOR_LANES x[l] = special(core, w, i->aux, l);
    RESULT(x[l]);
}

/* CS2R of a clock as a register pair. */
OPERATION(CLOCK64) {
    const u64 now = clock_now(core);
    if (i->flags & TO_UNIFORM) m = together(w);
    RESULT64(now);
}

OPERATION(BARRIER_READ) {
    u32 *const b = w->b[i->aux];
    RESULT(b[l]);
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
    WRITE(m, to, from[l]);
    if (i->flags & BARRIER_CLEAR) WRITE(m, from, 0);
}

OPERATION(BARRIER_RESULT) {
    const u32 all = w->barrier_result[i->aux < CTA_BARRIERS ? i->aux : w->reduced];
    const u32 result = i->flags == RESULT_POPC ? all & 0xffff
                       : i->flags == RESULT_OR ? all >> 16 & 1 : all >> 17 & 1;
    RESULT(result);
    WRITE_PREDICATE(0, result ? FULL : 0);
}
