/* The first memory requests of each instruction, with the address of every lane: what a report draws
 * of a warp's access. Later ones of an instruction are mostly the same, further on. */
#pragma once

#include "core.h"

struct Requests {
    Request *noted;
    u64 count, room;
    u64 each;   /* of one instruction, at most */
    u32 *of;    /* [length]: how many of each are noted */
    u32 lost;
};

void free_requests(Requests *r);
Requests *new_requests(u64 each, u32 length);
void note_request(Worker *c, const Warp *w, const u64 *a, u32 m, u32 space);
