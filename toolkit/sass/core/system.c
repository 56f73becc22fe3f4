#include "system.h"

#include <string.h>

#include "check_blocks.h"
#include "lanes.h"
#include "printed.h"
#include "space.h"

enum { POISON_BYTE = 0xff, LONGEST_STRING = 1 << 14, MOST_ARGUMENTS = 64 };

/* Argument k of a lane, of 64 bits: R4 and R5, R6 and R7, ... */
static u64 argument(const Warp *w, const Ins *i, int lane, int k) {
    const u32 *low = RAW(2) + 2 * k * LANES;
    return (u64)low[LANES + lane] << 32 | low[lane];
}

static void give(const Warp *w, const Ins *i, int lane, u64 value) { put64(RAW(2), lane, value); }

/* A byte at a generic address, as a lane sees it; NULL after a fault. */
static const u8 *byte_at(Worker *c, const Warp *w, int lane, u64 address) {
    const Launch *launch = c->launch;
    if (in_local_window(c, address) && address - launch->local_window < launch->local_bytes)
        return w->local + (u64)lane * launch->local_bytes + (address - launch->local_window);
    if (in_shared_window(c, address)) {
        const u64 offset = address - launch->shared_window;
        const u64 within = offset & ((1u << SHARED_WINDOW_BITS) - 1);
        if (within < launch->shared_bytes)
            return (c->block->cluster + (offset >> SHARED_WINDOW_BITS))->shared + within;
    }
    const Allocation *all = allocation_of(c, address, address + 1);
    if (all) return host_of(all, address, address + 1, 0);
    memory_fault(c, w, OUT_OF_BOUNDS, SPACE_GLOBAL, lane, address, 1, 0);
    return NULL;
}

/* Copy `bytes` from an address; whether all are there. */
static int copy_bytes(Worker *c, const Warp *w, int lane, u64 address, u32 bytes, u8 *to) {
    for (u32 k = 0; k < bytes; k++) {
        const u8 *from = byte_at(c, w, lane, address + k);
        if (!from) return 0;
        to[k] = *from;
    }
    return 1;
}

/* Copy a string with its zero, the first part of one that is too long; its bytes, 0 after a fault. */
static u32 copy_string(Worker *c, const Warp *w, int lane, u64 address, u8 *to) {
    for (u32 k = 0; k < LONGEST_STRING; k++) {
        const u8 *from = byte_at(c, w, lane, address + k);
        if (!from) return 0;
        to[k] = k + 1 < LONGEST_STRING ? *from : 0;
        if (!to[k]) return k + 1;
    }
    return 0;
}

/* Keep what one lane prints: argument 0 is the format, 1 where its arguments stand, each at a multiple of
 * its size. */
static void print(Worker *c, Warp *w, const Ins *i, int lane) {
    Printed *p = c->printed;
    u8 text[LONGEST_STRING], is_string[MOST_ARGUMENTS] = {0};
    u64 values[MOST_ARGUMENTS] = {0}, place = argument(w, i, lane, 1);
    Call call = {.block = c->block->index, .thread = w->index * LANES + (u32)lane};
    Conversion one;
    if (!(call.format_bytes = copy_string(c, w, lane, argument(w, i, lane, 0), text))) return;
    for (const u8 *at = text; (at = next_conversion(at, &one));)
        for (u32 k = 0; k < one.count && call.arguments < MOST_ARGUMENTS; k++) {
            place = (place + one.bytes[k] - 1) & ~(u64)(one.bytes[k] - 1);
            if (!copy_bytes(c, w, lane, place, one.bytes[k], (u8 *)&values[call.arguments])) return;
            place += one.bytes[k];
            is_string[call.arguments++] = k + 1 == one.count && one.letter == 's';
        }
    give(w, i, lane, call.arguments);
    if (!p || (p->calls++, p->bytes > MOST_PRINTED_BYTES)) return;
    const u64 start = p->bytes;
    int is_whole = append_printed(p, &call, sizeof call) && append_printed(p, text, call.format_bytes) &&
                   append_printed(p, values, call.arguments * sizeof *values);
    for (u32 k = 0; k < call.arguments && is_whole; k++) {
        if (!is_string[k] || !values[k]) continue;
        const u32 bytes = copy_string(c, w, lane, values[k], text);
        if (!bytes) {
            p->bytes = start;
            return;
        }
        is_whole = append_printed(p, text, bytes);
        call.string_bytes += bytes;
    }
    if (is_whole) memcpy(p->records + start, &call, sizeof call);
    else stop(c, NO_MEMORY);
}

static void allocate_block(Worker *c, const Warp *w, const Ins *i, int lane) {
    const u64 bytes = argument(w, i, lane, 0), address = heap_take(c->heap, bytes);
    give(w, i, lane, address);
    if (!address) return;
    const Allocation *all = allocation_of(c, address, address + bytes);
    for (u64 at = address; at < address + bytes; at += PAGE) {
        const u64 left = address + bytes - at;
        u8 *host = host_of(all, at, at + (left < PAGE ? left : PAGE), 1);
        memset(host, POISON_BYTE, left < PAGE ? left : PAGE); /* NaN, so that no kernel relies on zeros */
    }
    if (c->checks) forget_bytes(c, all, address, bytes);
    c->changes++;
}

/* free(NULL) does nothing. */
static void free_block(Worker *c, const Warp *w, const Ins *i, int lane) {
    u64 bytes;
    const u64 address = argument(w, i, lane, 0);
    if (!address || (c->heap && heap_give(c->heap, address, &bytes))) return;
    memory_fault(c, w, BAD_FREE, SPACE_GLOBAL, lane, address, 0, 0);
}

static void fail_assert(Worker *c, const Warp *w, const Ins *i, int lane) {
    stop(c, TRAP);
    for (int k = 0; k < 4; k++) c->fault.words[k] = argument(w, i, lane, k);
}

/* s[0] the function, s[1] where it returns to, s[2] R4. Lane by lane, and whether they return: the first
 * one that does not is to blame, as control.c has it of the lanes of m. */
int call_system(Worker *c, Warp *w, const Ins *i, u32 m) {
    u32 function[LANES]; /* R4 may hold it, and is written */
    memcpy(function, RAW(0), sizeof function);
    FOR_LANES_OF(m) {
        if (c->fault.kind) break;
        switch (function[l]) {
        case SYSTEM_ASSERTFAIL: fail_assert(c, w, i, l); break;
        case SYSTEM_VPRINTF: print(c, w, i, l); break;
        case SYSTEM_MALLOC: allocate_block(c, w, i, l); break;
        case SYSTEM_FREE: free_block(c, w, i, l); break;
        default: stop(c, UNIMPLEMENTED);
        }
        if (c->fault.kind) blame(c, w, 1u << l);
    }
    return !c->fault.kind;
}
