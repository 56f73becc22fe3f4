/* The sanitizer: hazards, barriers and unwritten memory, found by tracking the ordering itself.
 *
 * A launch that is checked runs a program whose memory operations are the CHECK_ forms below
 * (toolkit/sass/checker.py puts them in), so that a plain simulation pays nothing. Shared memory has a
 * shadow of cells: who wrote a cell last, and which lanes of each warp read it. Warps run one after
 * another here and lanes in lockstep, but neither orders anything: an access comes after another of
 * another thread only where
 *
 * - a barrier of the whole block lies between (an `epoch` ends with each),
 * - or a barrier of a part of it, a warp synchronisation, or an mbarrier at which the one arrived and
 *   for which the other waited (`know`, a vector clock per thread).
 *
 * A thread's clock is the phase of its warp. An asynchronous copy is a write that nothing is
 * ordered with, its own thread included, until that thread waits for it; a bulk copy, until somebody
 * waits for its mbarrier (check_copies.h).
 *
 * In global memory, accesses of different blocks are ordered as check_order.h says.
 */
#pragma once

#include <string.h>

#include "costs.h"
#include "memory.h"
#include "space.h"

/* toolkit/sass/checker.py numbers them likewise. */
enum {
    FOUND_READ_AFTER_WRITE = 1, FOUND_WRITE_AFTER_READ, FOUND_WRITE_AFTER_WRITE, FOUND_UNWRITTEN,
    FOUND_DIVERGENT_WARP, FOUND_ABSENT_LANE, FOUND_INVALID_MASK, FOUND_MISMATCHED_MASK,
    FOUND_OUT_OF_BOUNDS, FOUND_MISALIGNED, FOUND_WRITE_TO_CONSTANT, FOUND_UNNAMED_SOURCE,
    FOUND_ABSENT_SOURCE, FOUND_EARLY_ACCESS, FOUND_LEFT_BLOCK, FOUND_NO_PROXY_FENCE, FOUND_OTHER_SWIZZLE,
    FOUND_MISALIGNED_MATRIX, FOUND_EARLY_RESULT, FOUND_EARLY_CHANGE, FOUND_NO_ARRIVE
};
/* Bits of Ins.reserved of checked operations. */
enum {
    CHECK_RELAXED = 1,  /* access: atomic or volatile, and does not race with another such access */
    CHECK_HAS_MASK = 2, /* CHECK_COLLECTIVE: source MASK_SOURCE is its mask */
    CHECK_MET = 4,      /* CHECK_COLLECTIVE: the WARPSYNC before it has its mask */
    CHECK_GIVES = 8,    /* shuffle: lanes whose value is undefined get `imm` */
    CHECK_CLUSTER = 16  /* access: the order of blocks in a cluster is followed (check_cluster.h) */
};
enum { CHECK_INSTEAD_SHIFT = 8 }; /* above these bits, the operation that the checked one stands for */

enum { NOBODY = 0xffffffffu };                             /* of threads */
enum { UNSETTLED = 0xffffffffu, BY_COPY = 0xfffffffeu };   /* Written.epoch */
enum { MOST_FINDINGS = 1 << 12 };
enum { WRITE_PLAIN = 0, WRITE_ATOMIC, WRITE_ASYNC, WRITE_BULK };
/* Finding.is_async: a copy of a thread, a bulk copy, and neither, of a read that was simulated after the
 * write and comes before it; a product of a warpgroup */
enum { IS_ASYNC = 1, IS_BULK, READ_IS_FIRST, IS_PRODUCT };
enum { WAITED_FOR = 0xff }; /* Written.mbarrier of a copy of a thread that it has waited for */

/* Accesses of two threads, `before` the one that was simulated first; the first pair of each two
 * instructions, and how many there were. */
typedef struct {
    u32 kind, space;
    u32 pc, pc_before;
    u64 block, block_before;
    u32 thread, thread_before;
    u64 address;
    u32 width, is_async; /* one is a copy that no thread had waited for */
    u32 is_store, owner; /* of shared memory in a cluster: the block, plus one */
    u64 times;
} Finding;

/* `epoch` is UNSETTLED of a copy that is under way; `read_epoch` is that of the last read. Of a bulk
 * copy that was made, `epoch` is BY_COPY, and who knows that more than `stamp` phases of `mbarrier` are
 * over comes after it. Of an atomic operation `plain_stamp`, `plain_thread` and `plain_pc` tell the last
 * plain write before it in this epoch, which it hides, and `other_stamp`, `other_thread` and `other_pc`
 * an atomic operation of another thread; 0: there was none. `step` is of plain ones. */
typedef struct {
    u32 epoch, stamp, pc;
    union { u32 step, plain_pc; };
    u32 read_epoch;
    u16 thread;
    u8 kind, mbarrier;
    u32 plain_stamp, other_stamp, other_pc;
    u16 plain_thread, other_thread;
} Written;
typedef struct { u32 stamp, mask, pc; } ReadBy;

/* An asynchronous copy of a thread that it has not waited for. */
typedef struct { u32 thread, group, first, cells; } Pending;

/* Cells that a bulk copy reads, as long as its warp has not waited for its group. */
typedef struct { u32 thread, group, first, cells, pc; } Reading;

enum { KEPT_PHASES = 4 }; /* of an mbarrier: a wait by parity is at most one phase behind */

/* An mbarrier. `done` phases of it are over, `began` of them before it was initialized last; the clock
 * of all who arrived so far is `arriving`, and that at the end of phase n `ended[n % KEPT_PHASES]`. */
typedef struct { u32 began, done, *arriving, *ended; } Gate;

/* A register with a value of unwritten shared memory: the lanes, and the access of each. */
typedef struct { u32 pc, cell, width; } Unwritten;
typedef struct { u32 lanes; Unwritten of[LANES]; } Suspect;

typedef struct Order Order; /* what the block knows of others: check_order.h */
typedef struct Meeting Meeting; /* and of those in its cluster: check_cluster.h */
typedef struct Shadow Shadow;
typedef struct Releases Releases;
typedef struct Products Products; /* of warpgroups: check_products.h */

/* State that the checkers of all blocks share: global memory, and the findings. */
struct Checks {
    u32 grain, shift;    /* bytes of a cell: the narrowest access of the program; and their logarithm */
    Shadow *shadow;      /* of each allocation */
    Releases *releases;  /* what blocks published */
    Finding *found;
    u32 found_count, lost, last; /* `last`: the one that was found again last */
    u32 faults; /* instructions among them that accessed what they may not */
};

/* Checker of a running block, or of a free slot for one. */
struct Checker {
    u32 grain, shift;
    u32 cells, threads;
    u32 epoch, first_epoch; /* barriers of the block so far, over all blocks; those before this one */
    Written *written;    /* [cells] */
    ReadBy *read;        /* [warps][cells] */
    u32 *phase, *floor;  /* [warps]: the clock now, and at the last barrier of the block */
    u32 clocks;          /* in a row of `know`: threads, then two of each mbarrier */
    u32 *know;           /* [threads][clocks]: clocks up to which a thread is ordered after others */
    u32 *joined;         /* [clocks]: room */
    u32 *meeting;        /* [CTA_BARRIERS][clocks]: of the threads that arrived at a partial barrier */
    int crossed;         /* `know` holds something across warps */
    Gate gate[MOST_MBARRIERS];
    u32 *acquired;       /* [warps][MOST_MBARRIERS]: phases that all lanes know to be over */
    int has_gates;       /* mbarriers order something in this block */
    int polls;           /* and loads wait for them, as before sm_90 */
    u32 copied_from, copied_to; /* cells that its copies wrote are between these */
    u32 *committed;      /* [threads]: groups of asynchronous copies */
    u32 *mask;           /* [threads]: the lanes that each waits for at a WARPSYNC */
    Pending *pending;
    u64 pending_count, pending_room;
    Reading *reading;
    u64 reading_count, reading_room;
    Suspect *suspect;    /* [warps][slots] */
    u32 *suspects;       /* [warps]: how many there are */
    Order *order;
    Meeting *cluster;
    Products *products;  /* NULL: the program has none, and no tensor copies */
    u32 learnt_otherwise; /* of blocks of its cluster, than by a barrier of it */
};

static inline Suspect *suspect_of(const Worker *c, const Warp *w, u32 slot) {
    return &c->checker->suspect[(size_t)w->index * c->launch->slots + slot];
}

static inline u32 *clock_of(const Checker *k, u32 thread) { return k->know + (size_t)thread * k->clocks; }

static inline void join_clock(u32 *restrict to, const u32 *restrict from, u32 count) {
    IVDEP for (u32 n = 0; n < count; n++) to[n] = from[n] > to[n] ? from[n] : to[n];
}

static inline int is_after(const Checker *k, u32 thread, u32 other, u32 stamp) {
    return k->know && clock_of(k, thread)[other] >= stamp;
}

static inline u32 thread_of(const Warp *w, int lane) { return w->index * LANES + (u32)lane; }

/* The word that lane l stores at byte `offset` of its access, as far as a cell shows it. */
static inline u32 stored(const Checker *k, const u32 *x, int l, u32 offset) {
    const u32 word = x[offset / WORD * LANES + (u32)l] >> 8 * (offset % WORD);
    return k->grain == WORD ? word : word & ((1u << 8 * k->grain) - 1);
}

static inline u32 held(const Checker *k, const u8 *at) {
    u32 x = 0;
    memcpy(&x, at, k->grain);
    return x;
}

/* A finding of a thread now, which no other access belongs to yet. */
static inline Finding finding_of(const Worker *c, u32 kind, u32 space, u32 thread) {
    return (Finding){.kind = kind, .space = space, .pc = c->pc, .pc_before = NOBODY,
                     .block = c->block->index, .block_before = c->block->index, .thread = thread,
                     .thread_before = NOBODY};
}

int has_clocks(Worker *c);
void note_acquired(Checker *k, const Warp *w);
int report(Worker *c, const Finding *f);
void report_alone(Worker *c, const Warp *w, u32 kind, u32 space, int lane, u64 address, u32 width);
