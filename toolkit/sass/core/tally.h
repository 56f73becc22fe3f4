/* Atomic operations on global memory, by the line that they access: what L2 has to do for them. L2 makes
 * the operations of a request sector by sector. Lanes with one address are not combined: it makes as many
 * operations on a sector as the most lanes have one address of it. Stores have a tally of their own, of
 * requests for one line, in which `parts` are sectors. */
#pragma once

#include "core.h"

/* Of one line: requests, operations on parts of sectors and on whole sectors, additions of floats to each
 * sector, the places of the first and of the last request among the atomic requests of their warps, or
 * among their requests to store, and the number of the last instruction that stored to it. */
typedef struct {
    u64 line, requests, parts, wholes, additions[SECTORS_OF_LINE];
    u32 first, last, pc, unused;
} AtomicLine;

/* Open addressing; a free slot has no requests. Operations on lines without a slot are in `others`, whose
 * line means nothing. */
struct Tally {
    AtomicLine *lines, others;
    u64 slots, used, most; /* `most`: lines */
};

enum { MOST_ATOMIC_LINES = 1 << 18, MOST_STORED_LINES = 1 << 13 }; /* 42 and 1.3 MB with their free slots */

Tally *new_tally(u64 most);
void free_tally(Tally *t);
void tally_request(Tally *t, const u64 *a, u32 width, u32 m, u32 place, int adds_floats, int is_double);
void tally_stores(Tally *t, const u64 *a, u32 m, u32 place, u32 pc);
