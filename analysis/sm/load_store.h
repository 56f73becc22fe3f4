/* The load/store unit: requests wait in the queues of the schedulers until it serves them. */
#pragma once

#include "sm.h"

enum { ON_THEIR_WAY = 3 }; /* requests to global memory in flight, which shared memory cannot overtake */
enum { COPY_PLACES = 2 };  /* entries of a copy in the queue of global memory */
enum { BYPASS_READ_CLOCKS = 35 }; /* until the registers of a copy past L1 have been read */
enum { BYPASS_ROOM = 100 };    /* clocks of copies past L1 whose registers have been read */
enum { MATRIX_CLOCKS = 1 }; /* for each further register of an LDSM, after its wavefront */

void enqueue(Sm *s, Scheduler *x, Request q);
int serve_next(Sm *s);

/* The queue of a request, and the number of entries that it takes in the queue of global memory. */
static inline u32 queue_of(const Instruction *i, const Step *step) {
    switch (i->kind) {
    case KIND_LOAD: case KIND_STORE: case KIND_COPY: case KIND_COPY_GROUP: return QUEUE_GLOBAL;
    case KIND_ATOMIC: return step->lines ? QUEUE_GLOBAL : QUEUE_SHARED;
    default: return QUEUE_SHARED;
    }
}

static inline u32 places_of(const Instruction *i) { return i->kind == KIND_COPY ? COPY_PLACES : 1; }

/* True if the queue of a request has a free entry. */
static inline int has_room(const Sm *s, const Scheduler *x, const Instruction *i, const Step *step) {
    if (queue_of(i, step) == QUEUE_SHARED) return x->queue[QUEUE_SHARED].count < MOST_QUEUED;
    const u32 more = places_of(i), own = x->global_places + more;
    return own <= s->m->global_queue / SCHEDULERS || s->lsu.global_places + more <= s->m->global_queue;
}

/* Serve the next request if the load/store unit is free. False if there is none. */
static inline int serve(Sm *s) {
    return s->lsu.waiting && s->lsu.free < (double)s->now + 1 && serve_next(s);
}
