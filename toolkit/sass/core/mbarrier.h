/* Barriers in shared memory: arrivals and bytes of copies are counted down, phase by phase.
 *
 * One is 64 bits, laid out as compiled code initializes it and takes it apart: bit 63 the parity of
 * the phase, bits 43-62 the arrivals that lack and bits 1-20 those of a phase, both counted up to
 * 2^20; bits 21-42 hold the bytes that lack here.
 */
#ifndef MBARRIER_H
#define MBARRIER_H

#include "core.h"
#include "control.h"
#include "memory.h"

enum { COUNT_BITS = 20, MOST_COUNT = 1 << COUNT_BITS, BYTES_BITS = 22, RANK_SHIFT = 24 };
enum { EXPECTED_SHIFT = 1, BYTES_SHIFT = 21, PENDING_SHIFT = 43, PHASE_SHIFT = 63 };
enum { MBARRIER_BYTES = 8 };

typedef struct { u32 expected, pending, phase; i32 bytes; } Mbarrier;

static u32 counted_up(u64 x, u32 shift) {
    return (MOST_COUNT - (u32)(x >> shift & (MOST_COUNT - 1))) & (MOST_COUNT - 1);
}

static Mbarrier unpacked(u64 x) {
    return (Mbarrier){.expected = counted_up(x, EXPECTED_SHIFT),
                      .pending = counted_up(x, PENDING_SHIFT),
                      .bytes = (i32)((i64)(x << (64 - BYTES_SHIFT - BYTES_BITS)) >> (64 - BYTES_BITS)),
                      .phase = (u32)(x >> PHASE_SHIFT)};
}

static u64 packed(Mbarrier b) {
    const u64 most = MOST_COUNT - 1, of_bytes = (1ull << BYTES_BITS) - 1;
    return (u64)b.phase << PHASE_SHIFT | ((MOST_COUNT - b.pending) & most) << PENDING_SHIFT |
           ((u64)b.bytes & of_bytes) << BYTES_SHIFT |
           ((MOST_COUNT - b.expected) & most) << EXPECTED_SHIFT;
}

/* The block of the cluster that an address of shared memory is in; NULL where there is none. */
static Block *block_at(const Worker *c, u64 address) {
    const u64 rank = address >> RANK_SHIFT;
    return rank < c->cluster_size ? c->block->cluster + rank : NULL;
}

static u32 offset_at(u64 address) { return (u32)address & ((1u << RANK_SHIFT) - 1); }

/* Whether `bytes` at an address of the cluster's shared memory are some block's own. */
static int in_shared_memory(const Worker *c, u64 address, u64 bytes) {
    const u64 offset = offset_at(address);
    return block_at(c, address) && offset >= c->launch->shared_base &&
           offset + bytes <= c->launch->shared_bytes;
}

static u64 read_mbarrier(const Worker *c, u64 address) {
    u64 x;
    memcpy(&x, block_at(c, address)->shared + offset_at(address), sizeof x);
    return x;
}

static void write_mbarrier(Worker *c, u64 address, u64 x) {
    memcpy(block_at(c, address)->shared + offset_at(address), &x, sizeof x);
    c->changes++;
}

/* Of each cluster that runs, in order. */
#define EACH_CLUSTER(first)                                                                \
    for (Block *first = c->blocks; first < c->blocks + c->slots; first += c->cluster_size) \
        if (first->lives)

/* Let those look again who wait for a barrier in shared memory. */
static void wake(Worker *c) {
    EACH_CLUSTER(first)
    EACH_BLOCK(b, first)
        EACH_WARP(w, b)
            EACH_GROUP(g, w)
                if (g->state == AT_MBARRIER) g->state = READY;
    c->phases = 0;
}

/* What is known of a barrier: how often it has changed its phase since it was initialized. */
static Generation *generation_at(Worker *c, u64 address) {
    Block *b = block_at(c, address);
    const u32 offset = offset_at(address);
    for (u32 k = 0; k < b->mbarriers; k++)
        if (b->mbarrier[k].offset == offset) return &b->mbarrier[k];
    const u32 k = b->mbarriers < MOST_MBARRIERS ? b->mbarriers++ : MOST_MBARRIERS - 1;
    b->mbarrier[k] = (Generation){.offset = offset};
    return &b->mbarrier[k];
}

static void mbarrier_fault(Worker *c, u64 address, Mbarrier b) {
    if (c->fault.kind) return;
    stop(c, ARRIVALS);
    c->fault.address = address;
    c->fault.pending = b.pending;
    c->fault.bytes = b.bytes;
    c->fault.phase = b.phase;
}

/* Of the sanitizer (check_copies.h). */
static int is_followed(const Worker *c);
static void check_phase(Worker *c, u64 address);
static void check_begin(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a);
static void check_arrive(Worker *c, const Warp *w, const Ins *i, int lane, u64 address);
static void check_arrived(Worker *c, const Warp *w);
static void check_wait(Worker *c, const Warp *w, u32 lanes, const u64 *a, const u32 *parity);

/* Count `arrivals` and `bytes` down; when nothing lacks any more, the next phase begins. Bytes may
 * come before they are announced: until the last arrival they can be less than none. */
static void count_down(Worker *c, u64 address, u32 arrivals, i64 bytes, u32 leaving) {
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
        memory_fault(c, w, i, inside ? MISALIGNED : OUT_OF_BOUNDS, SPACE_SHARED, l, a[l], 1);
        c->fault.width = MBARRIER_BYTES;
        return 0;
    }
    return 1;
}

/* What the timing model hears of a barrier: which one, and a number that says what is done. */
static void stream_mbarrier(Worker *c, u64 address, u64 number) {
    if (!c->stream) return;
    stream_word(c->stream, address);
    stream_word(c->stream, number);
}

/* SYNCS.EXCH: d the old value, s[2] the new one: this initializes a barrier. */
OPERATION(MBARRIER_EXCHANGE) {
    u64 a[LANES], room[LANES];
    if (!mbarriers_of(core, w, i, m, a)) return;
    const u64 *x = source64(w, i, 2, room);
    u32 *d = vector(w, i->d[0]);
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

/* SYNCS.ARRIVE: aux says how many arrivals (none, 1, s[2]) and how many bytes are added (none, 1,
 * s[2]) or came (s[2]); d the value before. MBARRIER_LEAVE: who arrives does so for the last time. */
enum { ARRIVE_NONE = 0, ARRIVE_ONE, ARRIVE_SOURCE, ARRIVE_MASK = 3 };
enum { BYTES_NONE = 0, BYTES_ONE, BYTES_SOURCE, BYTES_CAME, BYTES_MODE_SHIFT = 2 };
enum { MBARRIER_LEAVE = 1 << 17, MBARRIER_TRYWAIT = 1 << 18, MBARRIER_OF_COPIES = 1 << 19 };

static u64 arrival_word(u32 arrivals, i64 bytes) { return (u64)arrivals << 32 | (u32)(i32)bytes; }

OPERATION(MBARRIER_ARRIVE) {
    const u32 by = i->aux & ARRIVE_MASK, of = i->aux >> BYTES_MODE_SHIFT;
    const u32 *x = vector(w, i->s[2]);
    u32 *d = vector(w, i->d[0]);
    u64 a[LANES], before[LANES];
    if (!mbarriers_of(core, w, i, m, a)) return;
    for (int l = 0; l < LANES && !core->fault.kind; l++) {
        if (!(m >> l & 1)) continue;
        const u32 arrivals = by == ARRIVE_SOURCE ? x[l] : by;
        const i64 bytes = of == BYTES_SOURCE ? (i64)x[l] : of == BYTES_CAME ? -(i64)x[l] : of;
        before[l] = read_mbarrier(core, a[l]);
        check_bytes(core, w, i, l, block_at(core, a[l]), offset_at(a[l]), MBARRIER_BYTES);
        stream_mbarrier(core, a[l], arrival_word(arrivals, bytes));
        if (is_followed(core)) check_arrive(core, w, i, l, a[l]);
        count_down(core, a[l], arrivals, bytes, i->flags & MBARRIER_LEAVE ? arrivals : 0);
    }
    if (core->fault.kind) {
        blame(core, w, m);
        return;
    }
    if (is_followed(core)) check_arrived(core, w);
    FOR_LANES_OF(m) put64(d, l, before[l]);
}

/* SYNCS.PHASECHK: whether the phase is over whose parity stands in bit 31 of s[2]. MBARRIER_TRYWAIT
 * waits for that; it is not asked again and again as on hardware, where it depends on time. */
OPERATION(MBARRIER_CHECK) {
    Group *g = current(w);
    const u32 *parity = vector(w, i->s[2]);
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
    set_predicate(w, i->pd[0], over, m);
}

#define MBARRIER_OPS(OP) OP(MBARRIER_EXCHANGE) OP(MBARRIER_ARRIVE) OP(MBARRIER_CHECK)

#endif
