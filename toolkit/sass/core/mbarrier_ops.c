#include "mbarrier_ops.h"

#include "check_copies.h"
#include "costs.h"
#include "groups.h"
#include "lanes.h"
#include "mbarrier.h"
#include "memory.h"
#include "operations.h"
#include "space.h"
#include "stream.h"

static void mbarrier_fault(Worker *c, u64 address, Mbarrier b) {
    if (c->fault.kind) return;
    stop(c, ARRIVALS);
    blame_mbarrier(c, address, b);
}

/* Count `arrivals` and `bytes` down; when nothing lacks any more, the next phase begins. Bytes may
 * come before they are announced: until the last arrival they can be less than none. */
void count_down(Worker *c, u64 address, u32 arrivals, i64 bytes, u32 leaving) {
    Mbarrier b = unpacked(read_mbarrier(c, address));
    const i64 lack = b.bytes + bytes;
    if (arrivals > b.pending || lack >= MOST_COUNT || lack <= -MOST_COUNT) {
        mbarrier_fault(c, address, b);
        return;
    }
    b.pending -= arrivals;
    b.expected -= leaving;
    b.bytes = (i32)lack;
    if (!b.pending && !b.bytes) {
        b.phase ^= 1;
        b.pending = b.expected;
        c->phases++;
        generation_at(c, address)->generation++;
        if (is_followed(c)) check_phase(c, address);
    }
    write_mbarrier(c, address, packed(b));
}

/* The addresses of barriers, one for each lane; false, with the fault noted, where one has none. */
static int mbarriers_of(Worker *c, Warp *w, const Ins *i, u32 m, u64 *a) {
    addresses(w, i, m, a);
    FOR_LANES_OF(m) {
        const int inside = in_shared_memory(c, a[l], MBARRIER_BYTES);
        if (inside && a[l] % MBARRIER_BYTES == 0) continue;
        memory_fault(c, w, inside ? MISALIGNED : OUT_OF_BOUNDS, SPACE_SHARED, l, a[l], MBARRIER_BYTES, 1);
        return 0;
    }
    return 1;
}

/* Write an operation on a barrier to the stream of the timing model: its address, and a number. */
void stream_mbarrier(Worker *c, u64 address, u64 number) {
    if (!c->stream) return;
    stream_word(c->stream, address);
    stream_word(c->stream, number);
}

/* SYNCS.EXCH: d the old value, s[2] the new one: this initializes a barrier. */
OPERATION(MBARRIER_EXCHANGE) {
    u64 a[LANES], room[LANES];
    if (!mbarriers_of(core, w, i, m, a)) return;
    const u64 *x = source64(w, i, 2, room);
    u32 *d = DESTINATION;
    if (is_followed(core)) check_begin(core, w, i, m, a);
    FOR_LANES_OF(m) {
        put64(d, l, read_mbarrier(core, a[l]));
        write_mbarrier(core, a[l], x[l]);
        generation_at(core, a[l])->generation = 0;
        mark_bytes(block_at(core, a[l]), offset_at(a[l]), MBARRIER_BYTES, 1);
        if (a[l] != a[__builtin_ctz(m)] || l == __builtin_ctz(m))
            stream_mbarrier(core, a[l], unpacked(x[l]).pending);
    }
}

OPERATION(MBARRIER_ARRIVE) {
    const u32 by = i->aux & ARRIVE_MASK, of = i->aux >> BYTES_MODE_SHIFT;
    const u32 *x = RAW(2);
    u32 *d = DESTINATION;
    u64 a[LANES], before[LANES];
    if (!mbarriers_of(core, w, i, m, a)) return;
    for (u32 left = m, group; left && !core->fault.kind; left &= ~group) {
        const int first = __builtin_ctz(left);
        const u32 alike = LANE_BITS(a[l] == a[first] && x[l] == x[first]);
        group = i->flags & MBARRIER_TOGETHER ? alike & left : 1u << first;
        const u64 old = read_mbarrier(core, a[first]);
        const u32 arrivals = by == ARRIVE_SOURCE ? x[first] : by;
        const i64 bytes = of == BYTES_SOURCE ? (i64)x[first] : of == BYTES_CAME ? -(i64)x[first] : of;
        FOR_LANES_OF(group) {
            before[l] = i->flags & MBARRIER_TOGETHER ? old >> 32 << 32 | group : old;
            if (core->fault.kind) break;
            check_bytes(core, w, i, l, block_at(core, a[l]), offset_at(a[l]), MBARRIER_BYTES);
            stream_mbarrier(core, a[l], arrival_word(arrivals, bytes));
            if (is_followed(core)) check_arrive(core, w, i, l, a[l]);
            count_down(core, a[l], arrivals, bytes, i->flags & MBARRIER_LEAVE ? arrivals : 0);
        }
    }
    if (core->fault.kind) {
        blame(core, w, m);
        return;
    }
    if (is_followed(core)) check_arrived(core, w);
    FOR_LANES_OF(m) put64(d, l, before[l]);
}

/* SYNCS.PHASECHK: true if the phase with the parity in bit 31 of s[2] is over. MBARRIER_TRYWAIT
 * waits for that here; hardware polls, as often as time allows. */
OPERATION(MBARRIER_CHECK) {
    Group *g = current(w);
    const u32 *parity = RAW(2);
    u64 a[LANES];
    u32 over = 0;
    if (!mbarriers_of(core, w, i, m, a)) return;
    FOR_LANES_OF(m) over |= (u32)(read_mbarrier(core, a[l]) >> PHASE_SHIFT != parity[l] >> 31) << l;
    if (over != m && i->flags & MBARRIER_TRYWAIT && !g->expired) {
        g->state = AT_MBARRIER;
        g->mbarrier = a[__builtin_ctz(m & ~over)];
        g->pc = core->pc;
        g->retries = 1;
        if (core->stream) take_step_back(core->stream);
        return;
    }
    if (is_followed(core)) check_wait(core, w, over, a, parity);
    const int first = __builtin_ctz(m);
    stream_mbarrier(core, a[first], over >> first & 1 ? generation_at(core, a[first])->generation : 0);
    g->expired = 0;
    if (over != m) w->ends_slice = core->asked_again = 1;
    WRITE_PREDICATE(0, over);
}

/* One arrival at a barrier as sm_80 to sm_89 have it: the value after it. */
static u64 counted(u64 x) {
    const u32 lower = (u32)x, upper = (u32)(x >> 32) + 1, parity = 1u << 31;
    return (u64)(upper & ~parity ? upper : upper | ((lower + CARRIED) & ~parity)) << 32 | lower;
}

/* ATOMS.ARRIVE and ARRIVES: d the value before. */
OPERATION(MBARRIER_COUNT) {
    u32 *d = DESTINATION;
    u64 a[LANES];
    if (!mbarriers_of(core, w, i, m, a)) return;
    count_request(core, i, a, m, SPACE_SHARED, 1);
    FOR_LANES_OF(m) {
        const u64 before = read_mbarrier(core, a[l]), after = counted(before);
        check_bytes(core, w, i, l, block_at(core, a[l]), offset_at(a[l]), MBARRIER_BYTES);
        if (is_followed(core)) {
            check_arrive(core, w, i, l, a[l]);
            if (core->fault.kind) return;
            if ((before ^ after) >> PHASE_SHIFT) check_phase(core, a[l]);
        }
        write_mbarrier(core, a[l], after);
        put64(d, l, before);
    }
    if (is_followed(core)) check_arrived(core, w);
    w->ends_slice = 1; /* a warp that polls then finds that the others arrived */
}
