/* Functions that Python calls (toolkit/sass/core/binding.py): workers, and their results. */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "bulk_ops.h"
#include "check.h"
#include "check_blocks.h"
#include "check_threads.h"
#include "core.h"
#include "costs.h"
#include "follow.h"
#include "grow.h"
#include "heap.h"
#include "memory.h"
#include "operations.h"
#include "printed.h"
#include "rounds.h"
#include "straight.h"
#include "stream.h"
#include "tally.h"
#include "trace.h"
#include "waits.h"

EXPORT const char built_from[] = BUILT_FROM;

EXPORT void core_free_worker(Worker *c) {
    for (u32 k = 0; c->blocks && k < c->slots; k++) {
        free(c->blocks[k].arena); free(c->blocks[k].warps); free(c->blocks[k].shared);
        free(c->blocks[k].shared_written);
        free_checker(c->blocks[k].checker);
    }
    free(c->last_allocation); free(c->memo); free(c->blocks); free(c->pauses); free(c->uncounted); free(c->bulk);
    free(c->own_turns); free(c->straight); free(c->own_requests);
    free_heap(c->heap);
    free(c->matrices);
    free_printed(c->own_printed);
    free_trace(c->own_trace);
    free_tally(c->own_tally);
    free_tally(c->own_stores);
    free_stream(c->own_stream);
    free_origins(c->own_origins);
    free_checks(c->checks, c->launch->allocation_count);
    free(c);
}

/* A worker for `launch`, NULL where there is not enough memory. One that does not run only keeps what
 * others count for it. */
EXPORT Worker *core_new_worker(const Launch *launch, Count *counts, i64 budget, u32 runs) {
    const u32 warps = ceil_div(launch->block[0] * launch->block[1] * launch->block[2], LANES);
    Worker *c;
    if (!ZEROS(c, 1)) return NULL;
    c->launch = launch;
    c->count = c->counts = counts;
    c->budget = c->granted = budget;
    c->warp_count = warps;
    c->cluster_size = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    int is_whole =
        ZEROS(c->own_turns, (size_t)launch->length + 1) && ZEROS(c->own_printed, 1) &&
        (!launch->most_accesses ||
         ((c->own_trace = new_trace(launch->most_accesses)) && (c->own_tally = new_tally(MOST_ATOMIC_LINES)) &&
          (c->own_stores = new_tally(MOST_STORED_LINES)))) &&
        (!launch->most_steps || (c->own_stream = new_stream(launch->most_steps))) &&
        (!launch->notes_requests || ZEROS(c->own_requests, launch->length)) &&
        (!launch->follows || (c->own_origins = new_origins(launch, warps)));
    if (runs && is_whole) {
        c->slots = launch->most_resident * c->cluster_size;
        is_whole = (c->straight = new_straight(launch, OP_FFMA)) && ZEROS(c->last_allocation, launch->length) &&
                   (c->memo = calloc(launch->length, SHAPES * sizeof(Memo))) &&
                   ZEROS(c->uncounted, launch->length) && ZEROS(c->blocks, c->slots) && ZEROS(c->pauses, c->slots) &&
                   (!launch->heap_bytes || (c->heap = new_heap(launch->heap_base, launch->heap_bytes))) &&
                   (!launch->check || (c->checks = new_checks(launch)));
        /* no instruction has accessed any allocation yet */
        if (is_whole) memset(c->last_allocation, 0xff, launch->length * sizeof *c->last_allocation);
    }
    if (!is_whole) {
        core_free_worker(c);
        return NULL;
    }
    if (runs) mark_waits(c->straight, launch, OP_BRANCH);
    return c;
}

/* Run clusters first, first + step, ... below last; the kind of the fault that stopped them. Of the
 * blocks of `kept` others keep what they do, and nobody of the rest; NULL: this worker does of all.
 *
 * One cluster runs at a time, unless its blocks can do nothing but wait for others': then twice as
 * many run, and so on. With `at_once`, as many run as may, and share the work that they take. */
EXPORT u32 core_run(Worker *c, u64 first, u64 last, u64 step, const Kept *kept, u64 kept_count) {
    u64 next = first;
    while (!c->fault.kind && (c->running || next < last)) {
        if (c->launch->cancel) stop(c, CANCELLED);
        if (!c->running || (c->launch->at_once && next < last && c->running < c->launch->most_resident)) {
            start_cluster(c, next, kept, kept_count);
            next += step;
            continue;
        }
        c->asked_again = 0;
        if (run_round(c) && !(c->asked_again && !c->launch->paces && in_vain(c))) continue;
        if (c->fault.kind || !c->running || make_oldest(c)) continue;
        const u32 wanted = 2 * c->running, most = c->launch->most_resident;
        int more = 0;
        for (; next < last && c->running < wanted && c->running < most && !c->fault.kind; next += step) {
            start_cluster(c, next, kept, kept_count);
            more = 1;
        }
        if (more || expire(c) || (c->launch->gives_up && leave_loops(c))) continue;
        note_deadlock(c);
    }
    return c->fault.kind;
}

EXPORT void core_faults(const Worker *c, Fault *fault, Fault *unwritten, u64 *unwritten_reads) {
    *fault = c->fault;
    *unwritten = c->unwritten;
    *unwritten_reads = c->unwritten_reads;
}

/* Tick at which the last block ended, of blocks that run in time. */
EXPORT u64 core_now(const Worker *c) { return c->now; }

EXPORT u64 core_finished(const Worker *c) { return c->finished; }

/* Noted accesses of the blocks so far; NULL if some were lost. `numbers`: their number, the spread (one
 * of 2^spread lines is noted), sectors read, and sectors that warps wrote, each for the first time. */
EXPORT const TracedAccess *core_accesses(const Worker *c, u64 numbers[4]) {
    const Trace *t = c->own_trace;
    if (!t || t->lost) return NULL;
    const u64 found[] = {t->count, t->spread, t->read, t->written};
    memcpy(numbers, found, sizeof found);
    return t->accesses;
}

/* Atomic operations of the blocks so far, or their stores: one entry per slot (free ones have no requests),
 * and in `others` those on further lines; NULL if they were not noted. */
EXPORT const AtomicLine *core_tally(const Worker *c, u32 stores, u64 *slots, AtomicLine *others) {
    const Tally *t = stores ? c->own_stores : c->own_tally;
    if (!t) return NULL;
    *slots = t->slots;
    *others = t->others;
    return t->lines;
}

/* Stream of the blocks so far; the caller owns it from now on. */
EXPORT Stream *core_take_stream(Worker *c) {
    Stream *s = c->own_stream;
    c->own_stream = NULL;
    return s;
}

EXPORT void core_free_stream(Stream *s) { free_stream(s); }

/* What printf was called with in the blocks so far: records (printed.h). `numbers`: their bytes, and all
 * calls, of which the first ones have a record. */
EXPORT const u8 *core_printed(const Worker *c, u64 numbers[2]) {
    numbers[0] = c->own_printed->bytes;
    numbers[1] = c->own_printed->calls;
    return c->own_printed->records;
}

/* The first request of each instruction by the blocks so far. */
EXPORT const Request *core_requests(const Worker *c) { return c->own_requests; }

/* The affine functions that values of the last block were, with their borders; the periods of its index
 * along each axis; and for each instruction what it depends on. NULL where values were not followed. */
EXPORT const Affine *core_affine(const Worker *c, u32 *count, u32 periods[3]) {
    return c->own_origins ? affine_origins(c->own_origins, count, periods) : NULL;
}

EXPORT const Dependence *core_dependences(const Worker *c) {
    return c->own_origins ? dependences(c->own_origins) : NULL;
}

/* How far addresses reach into each allocation; NULL where values were not followed. */
EXPORT const Reach *core_reaches(const Worker *c) { return c->own_origins ? reaches(c->own_origins) : NULL; }

EXPORT u32 core_words_read(const Ins *i, u32 k) { return words_read(i, (int)k); }
EXPORT u32 core_words_written(const Ins *i) { return words_written(i); }
EXPORT u32 core_words_written_beside(const Ins *i) { return words_written_beside(i); }

EXPORT const Finding *core_findings(const Worker *c, u32 *count, u32 *lost) {
    *count = c->checks ? c->checks->found_count : 0;
    *lost = c->checks ? c->checks->lost : 0;
    return c->checks ? c->checks->found : NULL;
}

/* True if this processor and its operating system have the instructions that this build uses. */
#ifdef __AVX2__
#include <cpuid.h>

enum { FMA_OSXSAVE_AVX = 1 << 12 | 1 << 27 | 1 << 28, AVX2 = 1 << 5, SAVED_YMM = 6 };

/* CPUID itself: not every compiler's run-time library has what __builtin_cpu_supports reads. */
EXPORT u32 core_runs_here(void) {
    u32 a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || ~c & FMA_OSXSAVE_AVX) return 0;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & SAVED_YMM) == SAVED_YMM && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & AVX2;
}
#else
EXPORT u32 core_runs_here(void) { return 1; }
#endif
