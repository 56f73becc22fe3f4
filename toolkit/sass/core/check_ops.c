#include "check_ops.h"

#include <string.h>

#include "atomics.h"
#include "check.h"
#include "check_blocks.h"
#include "check_cluster.h"
#include "check_copies.h"
#include "check_order.h"
#include "check_shared.h"
#include "check_threads.h"
#include "costs.h"
#include "grow.h"
#include "lanes.h"
#include "matrix.h"
#include "mma.h"
#include "memory.h"
#include "operations.h"
#include "space.h"
#include "warp.h"

/* The checked operations: what is checked comes first, since a load may change its own address. */

/* Lanes that are in another memory get the address of one that is in this. */
static Extent narrowed_extent(u64 *a, u32 m) {
    narrow(a, m);
    return extent_of(a);
}

/* Shared memory of a block: its own, or in a cluster of any of its blocks. */
static void check_shared(Worker *c, Warp *w, const Ins *i, u32 m, const u64 *a, const Extent *e, Block *owner,
                         int is_store, u32 kind, const u32 *x) {
    if (c->cluster_size == 1) check_own_shared(c, w, i, m, a, e, is_store, kind, x);
    else check_cluster_access(c, w, i, m, a, owner, is_store, kind, x);
}

/* A generic address says by its window which space it means. */
static void check_generic(Worker *c, Warp *w, const Ins *i, u32 m, const u64 *a, int is_store,
                          int relaxed, u32 kind, const u32 *x) {
    u64 b[LANES];
    const u32 in_global = spaces_of(c, a, m).global;
    EACH_BLOCK(owner, c->block->cluster) {
        const u64 from = c->launch->shared_window + ((u64)owner->rank << SHARED_WINDOW_BITS);
        const u32 here = m & LANE_BITS((a[l] - from) >> SHARED_WINDOW_BITS == 0);
        if (!here) continue;
        FOR_LANES b[l] = a[l] - from;
        const Extent e = narrowed_extent(b, here);
        check_shared(c, w, i, here, b, &e, owner, is_store, kind, x);
    }
    if (in_global) {
        memcpy(b, a, sizeof b);
        const Extent e = narrowed_extent(b, in_global);
        check_buffers(c, w, i, in_global, b, &e, is_store, relaxed, x);
    }
}

static int is_of_matrices(const Ins *i) {
    switch (i->op) {
    case OP_MATRIX_LOAD: case OP_MATRIX_STORE: case OP_CHECK_MATRIX_LOAD: case OP_CHECK_MATRIX_STORE: return 1;
    default: return 0;
    }
}

/* Registers of one operand. */
static u32 words_of(const Ins *i) {
    if (i->width == WIDE_BYTES) return HALF_WORDS;
    return is_of_matrices(i) ? i->aux : i->width > WORD ? i->width / WORD : 1;
}

static u32 words_of_source(const Ins *i, int k) {
    if (is_mma(i)) return k < 3 ? mma_field(i, MMA_OF_A + 8 * (u32)k) : 1;
    return k == 2 || (k == 3 && i->width == WIDE_BYTES) ? words_of(i) : 1;
}

/* Accesses that fault are reported, and dropped: the launch goes on, so that later ones are found too. */

static u32 space_at(const Worker *c, const Ins *i, u64 address) {
    const u32 space = space_of(i);
    if (space != SPACE_GENERIC) return space;
    if (in_shared_window(c, address)) return SPACE_SHARED;
    return in_local_window(c, address) ? SPACE_LOCAL : SPACE_GLOBAL;
}

/* A generic address, within the memory that it means. */
static u64 within_space(const Worker *c, const Ins *i, u64 address, u32 space) {
    if (space_of(i) != SPACE_GENERIC || space == SPACE_GLOBAL) return address;
    if (space == SPACE_LOCAL) return address - c->launch->local_window;
    return (address - c->launch->shared_window) & ((1ull << SHARED_WINDOW_BITS) - 1);
}

/* True if the extent of the addresses already shows that no lane faults. */
static int is_sound(Worker *c, const Ins *i, const Extent *e, int is_store) {
    const u32 space = space_of(i);
    if (e->bits & (i->width - 1) || space == SPACE_GENERIC) return 0;
    if (space == SPACE_SHARED) return all_in_shared(c, e, i->width);
    return buffer_of(c, e->low, e->high + i->width, is_store) != NULL;
}

/* A lane's access is left out. */
static void drop(Worker *c, const Warp *w, const Ins *i, u32 kind, u32 space, int lane, u64 address,
                 int is_store) {
    Finding f = finding_of(c, kind, space, thread_of(w, lane));
    f.address = address;
    f.width = i->width;
    f.is_store = (u32)is_store;
    u64 bytes;
    if (space == SPACE_GLOBAL && c->heap && heap_before(c->heap, address, &f.block_before, &bytes))
        f.thread_before = (u32)bytes;
    if (!report(c, &f)) return;
    if (!c->checks->faults++ && c->budget > AFTERLIFE) c->budget = AFTERLIFE;
    if (c->checks->faults < MOST_FAULTS) return;
    c->checks->lost = 1;
    stop(c, CANCELLED);
}

/* The lanes of m whose access can be made; the others get the address of one of them. */
static u32 sound_lanes(Worker *c, const Warp *w, const Ins *i, u32 m, u64 *a, Extent *e, int is_store) {
    u32 sound = m;
    *e = extent_of(a);
    if (is_sound(c, i, e, is_store)) return m;
    for (u32 left = m; left && !c->fault.kind; left &= left - 1) {
        const int l = __builtin_ctz(left);
        const u32 space = space_at(c, i, a[l]);
        const u64 address = within_space(c, i, a[l], space);
        const u32 kind = fault_of(c, i, address, space, is_store);
        if (!kind || (kind == OUT_OF_BOUNDS && space == SPACE_SHARED && c->cluster_size > 1))
            continue; /* whose block of the cluster it is shows later */
        sound &= ~(1u << l);
        const u32 beyond = kind == OUT_OF_BOUNDS ? FOUND_OUT_OF_BOUNDS : FOUND_WRITE_TO_CONSTANT;
        drop(c, w, i, kind == MISALIGNED ? FOUND_MISALIGNED : beyond, space, l, address, is_store);
    }
    if (sound && sound != m) *e = narrowed_extent(a, sound);
    return sound;
}

/* The lanes of m whose access can be made; those are checked. x holds the registers that are stored, NULL
 * where the value is not known. */
static u32 check_access(Worker *c, Warp *w, const Ins *i, u32 m, int is_store, int is_atomic, const u32 *x) {
    const u32 space = space_of(i);
    Extent e;
    const int relaxed = is_atomic || i->reserved & CHECK_RELAXED;
    /* a volatile store to shared memory is one like any other */
    const u32 kind = relaxed && (is_atomic || !is_store) ? WRITE_ATOMIC : WRITE_PLAIN;
    u64 a[LANES];
    addresses(w, i, m, a);
    if (space == SPACE_SHARED) own_shared(c, a);
    m = sound_lanes(c, w, i, m, a, &e, is_store);
    if (!m) return 0;
    if (space == SPACE_SHARED) check_shared(c, w, i, m, a, &e, c->block, is_store, kind, x);
    else if (space == SPACE_GLOBAL) check_buffers(c, w, i, m, a, &e, is_store, relaxed, x);
    else check_generic(c, w, i, m, a, is_store, relaxed, kind, x);
    return m;
}

/* Make an access for the lanes whose access can be made. The others get zeros. */
static void checked(Worker *c, Warp *w, const Ins *i, u32 m, Handler *plain, int is_store, int is_atomic) {
    const u32 sound = check_access(c, w, i, m, is_store, is_atomic, is_store && !is_atomic ? RAW(2) : NULL);
    if (sound) plain(c, w, i, sound);
    if (is_store && !is_atomic) return;
    u32 *d = DESTINATION;
    for (u32 k = 0; k < words_of(i); k++)
        FOR_LANES_OF(m & ~sound) d[k * LANES + l] = 0;
}

OPERATION(CHECK_LOAD) {
    Ins polling = *i;
    polling.reserved |= CHECK_RELAXED;
    const int polls = m && space_of(i) == SPACE_SHARED && core->checker->polls && check_poll(core, w, i, m);
    checked(core, w, polls ? &polling : i, m, op_LOAD, 0, 0);
}
OPERATION(CHECK_STORE) { checked(core, w, i, m, op_STORE, 1, 0); }
OPERATION(CHECK_ATOMIC) { checked(core, w, i, m, op_ATOMIC, 1, 1); }

/* A row of a matrix is an access of the lane that has its address. */
OPERATION(CHECK_MATRIX_LOAD) {
    if (!is_whole_warp(core, w, m)) return;
    const u32 sound = check_access(core, w, i, row_lanes(i), 0, 0, NULL);
    if (sound) load_matrices(core, w, i, sound);
    else memset(DESTINATION, 0, i->aux * LANES * sizeof *DESTINATION);
}

OPERATION(CHECK_MATRIX_STORE) {
    u32 x[ROW_WORDS * LANES];
    if (!is_whole_warp(core, w, m)) return;
    gather_rows(w, i, x);
    const u32 sound = check_access(core, w, i, row_lanes(i), 1, 0, x);
    if (sound) store_matrices(core, w, i, sound);
}

static void note_pending(Worker *c, u32 thread, u64 address, u32 width) {
    Checker *k = c->checker;
    if (!GROWN(k->pending, k->pending_room, k->pending_count + 1)) { stop(c, NO_MEMORY); return; }
    k->pending[k->pending_count++] =
        (Pending){.thread = thread, .group = k->committed[thread],
                  .first = (u32)address >> k->shift, .cells = width >> k->shift};
}

OPERATION(CHECK_COPY_ASYNC) {
    const Ins shared = shared_side(i), global = global_side(i);
    u64 a[LANES], from[LANES];
    Extent e, origin;
    const u32 whole = i->flags & COPY_PARTIAL ? 0 : m & READ_PREDICATE(0);
    if (whole) {
        addresses(w, &global, whole, from);
        m &= ~whole | sound_lanes(core, w, &global, whole, from, &origin, 0);
    }
    if (!m) return;
    addresses(w, &shared, m, a);
    own_shared(core, a);
    m = sound_lanes(core, w, &shared, m, a, &e, 1);
    if (!m) return;
    check_own_shared(core, w, &shared, m, a, &e, 1, WRITE_ASYNC, NULL);
    FOR_LANES_OF(m) note_pending(core, thread_of(w, l), a[l], i->width);
    if (whole & m) {
        origin = narrowed_extent(from, whole & m);
        check_buffers(core, w, &global, whole & m, from, &origin, 0, 0, NULL);
    }
    op_COPY_ASYNC(core, w, i, m);
}

/* LDGDEPBAR: the copies so far are a group. */
OPERATION(CHECK_COMMIT) {
    FOR_LANES_OF(m) core->checker->committed[thread_of(w, l)]++;
}

/* From here on a copy is as if its thread had stored it. */
static void settle(Checker *k, const Warp *w, const Pending *p) {
    for (u32 cell = p->first; cell < p->first + p->cells; cell++) {
        Written *written = &k->written[cell];
        if (written->kind != WRITE_ASYNC || written->thread != p->thread) continue;
        written->kind = WRITE_PLAIN;
        written->mbarrier = WAITED_FOR;
        written->epoch = k->epoch;
        written->stamp = k->phase[w->index];
    }
}

/* DEPBAR: all but the last aux groups of these lanes are there, and those of bulk copies have read. */
OPERATION(CHECK_WAIT) {
    Checker *k = core->checker;
    u64 kept = 0;
    for (u64 n = 0; n < k->pending_count; n++) {
        const Pending p = k->pending[n];
        const int mine = p.thread / LANES == w->index && m >> p.thread % LANES & 1;
        if (mine && p.group + i->aux < k->committed[p.thread]) settle(k, w, &p);
        else k->pending[kept++] = p;
    }
    k->pending_count = kept;
    check_copies_read(core, w, i->aux);
    op_BULK_WAIT(core, w, i, m);
}

/* MEMBAR of the device: what the block did so far may be published. */
OPERATION(CHECK_FENCE) {
    core->checker->order->fences++;
}

/* Lanes of m synchronise, each with those that its mask names; s[5] is the mask where there is one,
 * else the compiler kept none: all of them. */
static void synchronise_lanes(Worker *c, const Warp *w, const Ins *i, u32 m) {
    const u32 *masks = i->reserved & CHECK_HAS_MASK ? RAW(5) : NULL;
    if (masks) check_masks(c, w, masks, m);
    for (u32 left = m, lanes; left; left &= ~lanes) {
        lanes = masks ? (left & masks[__builtin_ctz(left)]) | (left & -left) : left;
        check_warp_sync(c, w, lanes);
    }
}

/* The mask that each lane names, as far as it is known. */
static const u32 *masks_of(const Worker *c, const Warp *w, const Ins *i) {
    if (i->reserved & CHECK_HAS_MASK) return RAW(5);
    return i->reserved & CHECK_MET ? c->checker->mask + w->index * LANES : NULL;
}

/* Lanes of m shuffle: those that take the value of a lane which their mask does not name, or which does
 * not execute this. It is undefined (PTX ISA, shfl.sync). */
static u32 check_sources(Worker *c, const Warp *w, const Ins *i, u32 m) {
    const u32 *masks = masks_of(c, w, i);
    u32 from[LANES], inside[LANES], undefined = 0;
    shuffle_sources(w, i, from, inside);
    FOR_LANES_OF(m) {
        const u32 j = from[l] & 31, mask = masks ? masks[l] : FULL;
        if (j == (u32)l || (m & mask) >> j & 1 || !(mask >> l & 1)) continue;
        undefined |= 1u << l;
        Finding f = finding_of(c, mask >> j & 1 ? FOUND_ABSENT_SOURCE : FOUND_UNNAMED_SOURCE, SPACE_GENERIC,
                               thread_of(w, l));
        f.thread_before = thread_of(w, (int)j);
        if (w->born & ~w->alive & 1u << j) f.pc_before = w->left[j];
        f.address = mask;
        report(c, &f);
    }
    return undefined;
}

/* A shuffle or vote: lanes wait for those of their mask. Memory is ordered too as far as a warp's
 * accesses are made in the order of its instructions. Or a __syncwarp() where the compiler knows that the
 * lanes are together: a NOP is left of it. */
OPERATION(CHECK_COLLECTIVE) {
    Handler *const plain = handler_of(i->reserved >> CHECK_INSTEAD_SHIFT);
    const u32 undefined = plain == op_SHFL ? check_sources(core, w, i, m) : 0;
    synchronise_lanes(core, w, i, m);
    plain(core, w, i, m);
    if (undefined && i->reserved & CHECK_GIVES) {
        u32 *d = DESTINATION;
        FOR_LANES_OF(undefined) d[l] = (u32)i->imm;
    }
}

/* Registers with values of unwritten memory. */
static Suspect *suspect_at(const Worker *c, const Warp *w, u32 slot) {
    Suspect *x = suspect_of(c, w, slot);
    return slot < c->launch->slots && x->lanes ? x : NULL;
}

static void clear_suspect(Worker *c, const Warp *w, u32 slot, u32 m) {
    Suspect *x = suspect_at(c, w, slot);
    if (!x) return;
    x->lanes &= ~m;
    c->checker->suspects[w->index] -= !x->lanes;
}

/* Lanes of m use a register: those that still hold what memory is filled with. */
static void report_use(Worker *c, const Warp *w, u32 slot, u32 m) {
    const Suspect *x = suspect_at(c, w, slot);
    if (!x || !(x->lanes & m)) return;
    const u32 *value = vector(w, slot), pc = c->pc;
    FOR_LANES {
        const Unwritten *read = &x->of[l];
        if (!(x->lanes & m & 1u << l) || (value[l] != FULL && read->width >= WORD)) continue;
        c->pc = read->pc;
        report_alone(c, w, FOUND_UNWRITTEN, SPACE_SHARED, l, (u64)read->cell << c->checker->shift,
                     read->width);
    }
    c->pc = pc;
    clear_suspect(c, w, slot, m);
}

/* An instruction that a warp executes while some of its registers have unwritten values. A copy of one
 * is as much. */
void check_use(Worker *c, const Warp *w, const Ins *i, u32 m) {
    const Suspect *moved = handler_of(i->op) == op_MOV ? suspect_at(c, w, i->s[0]) : NULL;
    const Suspect copy = moved ? *moved : (Suspect){0};
    for (int k = 0; k < SOURCES && !moved; k++)
        for (u32 n = 0; n < words_of_source(i, k); n++) report_use(c, w, i->s[k] + n, m);
    for (u32 n = 0; n < (is_mma(i) ? mma_field(i, MMA_OF_D) : words_of(i)); n++) clear_suspect(c, w, i->d[0] + n, m);
    for (u32 n = 0; n < (i->width == WIDE_BYTES ? HALF_WORDS : 1); n++) clear_suspect(c, w, i->d[1] + n, m);
    if (!(copy.lanes & m)) return;
    Suspect *to = suspect_of(c, w, i->d[0]);
    c->checker->suspects[w->index] += !to->lanes;
    to->lanes |= copy.lanes & m;
    FOR_LANES
        if (copy.lanes & m & 1u << l) to->of[l] = copy.of[l];
}
