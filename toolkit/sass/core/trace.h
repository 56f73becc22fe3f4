/* Accesses of each block to global memory: the sectors that it reads or writes for the first time, and
 * the number of sectors that its warps write, each for the first time. L1 keeps a block's own lines, so
 * this is approximately the traffic that reaches L2, in an order that does not depend on how warps are
 * interleaved here. */
#pragma once

#include "core.h"

enum { TRACE_READ = 0, TRACE_WRITE = 1, TRACE_ATOMIC = 2 };

/* Sectors of neighbouring lines. Long blocks come back to so many lines that one entry each would not fit into caches. */
typedef struct { u64 key; u32 epoch, mask; } Seen;
enum { LINES_OF_ENTRY = 8 };

/* The last request for many lines of an instruction. A loop that keeps a sum in memory makes it again and again. */
typedef struct {
    u64 a[LANES], tag; /* of the block */
    u32 epoch, lanes, warp, width, kind;
} WideRequest;
enum { WIDE_REQUESTS = 32, MANY_LINES = 4 };

struct Trace {
    TracedAccess *accesses;
    u64 count, room, most; /* `most`: when there would be more, fewer lines are noted */
    u32 spread;            /* one of 2^spread lines is noted */
    Seen *seen;            /* open addressing; entries of another epoch are free */
    u64 slots, used;
    u64 read;              /* sectors that a block read for the first time, of all lines */
    u64 written;           /* sectors that a warp wrote for the first time, over all warps */
    u32 epoch, lost;
    WideRequest last[WIDE_REQUESTS]; /* by the number of the instruction */
};

/* Bits below the number of an entry, what a warp adds, and where the block stands. */
enum { KEYS_OF_LINE = 8, OF_A_WARP = 64, TAG_SHIFT = 48, MOST_TAGS = 1 << 16 };
enum { MOST_SPREAD = 8 }; /* with one of so few lines as 2^-8, the rest is lost */

Trace *new_trace(u64 most);
void free_trace(Trace *t);
void trace_past_l1(Worker *c, const Warp *w, u64 line, u32 mask, u32 kind);
void trace_request(Worker *c, const Warp *w, const u64 *a, u32 width, u32 m, u32 kind);
