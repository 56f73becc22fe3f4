#include "bulk_ops.h"

#include <stdlib.h>
#include <string.h>

#include "atomics.h"
#include "bulk.h"
#include "check_blocks.h"
#include "check_copies.h"
#include "costs.h"
#include "grow.h"
#include "lanes.h"
#include "mbarrier.h"
#include "mbarrier_ops.h"
#include "operations.h"
#include "space.h"
#include "stream.h"
#include "trace.h"

static u32 word_of(const Warp *w, const Ins *i, int k, u32 n) {
    return RAW(k)[n * LANES + (u32)__builtin_ctz(together(w))];
}

static u64 pair_of(const Warp *w, const Ins *i, int k) {
    return (u64)word_of(w, i, k, 1) << 32 | word_of(w, i, k, 0);
}

/* Host memory of global bytes, at most a row or what fits in shared memory; NULL where no buffer holds them. */
static u8 *global_at(Worker *c, u64 address, u64 bytes, int is_store) {
    const Allocation *all = buffer_of(c, address, address + bytes, is_store);
    return all ? host_of(all, address, address + bytes, is_store) : NULL;
}

static void reduce_bytes(u32 aux, u8 *to, const u8 *from, u32 bytes) {
    const u32 type = aux >> ATOMIC_TYPE_SHIFT & 0xff;
    const u32 size = words_of_type(type) * WORD;
    for (u32 k = 0; k + size <= bytes; k += size) {
        u64 old = 0, x = 0;
        memcpy(&old, to + k, size);
        memcpy(&x, from + k, size);
        const u64 new = combined(aux & 0xff, type, 0, old, x, 0);
        memcpy(to + k, &new, size);
    }
}

static void put_bytes(Worker *c, const Bulk *b, u8 *to, const u8 *from, u32 bytes) {
    if (b->reduces) reduce_bytes(b->aux, to, from, bytes);
    else memcpy(to, from, bytes);
    c->changes++;
}

/* A row of a tile to its place in shared memory, or from there, in pieces that stay together. */
static void move_row(u8 *shared, u32 offset, const TensorMap *map, u8 *row, int to_shared) {
    for (u32 k = 0; k < row_bytes(map); k += UNIT) {
        u8 *at = shared + swizzled(offset + k, map->swizzle);
        if (to_shared) memcpy(at, row + k, UNIT);
        else memcpy(row + k, at, UNIT);
    }
}

static void mark_run(void *block, u32 offset, u32 bytes) { mark_bytes(block, offset, bytes, 1); }

static void spoil_run(void *block, u32 offset, u32 bytes) {
    Block *b = block;
    memset(b->shared + offset, 0xff, bytes);
    mark_bytes(b, offset, bytes, 0);
}

/* Mark the destination of a copy as undefined until the copy completes. */
static void spoil(Worker *c, const Bulk *b) {
    if (b->direction == TO_GLOBAL || b->reduces) return;
    EACH_BLOCK(to, b->issuer->cluster)
        if (b->blocks >> to->rank & 1) each_run(b, offset_at(b->shared), spoil_run, to);
}

/* Rows of a tile to the shared memory of a block, with zeros for what is outside of the array, or from there. */
static void move_tile(Worker *c, const Bulk *b, Block *of, u64 shared, int to_shared) {
    u8 row[MOST_BOX * MOST_ELEMENT];
    for (u32 n = 0; n < rows_of(&b->map); n++) {
        const Row r = row_at(b, n);
        const u32 bytes = r.last - r.first, offset = offset_at(shared) + n * row_pitch(&b->map);
        u8 *global = bytes ? global_at(c, r.address + r.first, bytes, !to_shared) : NULL;
        if (bytes < row_bytes(&b->map)) memset(row, 0, row_bytes(&b->map));
        if (to_shared && bytes) memcpy(row + r.first, global, bytes);
        move_row(of->shared, offset, &b->map, row, to_shared);
        if (to_shared || !bytes) continue;
        check_bulk_write(c, r.address + r.first, bytes);
        put_bytes(c, b, global, row + r.first, bytes);
    }
}

/* Make a copy, and tell the barriers that wait for it. */
static void make(Worker *c, const Bulk *b) {
    Block *own = c->block;
    Checker *of_own = c->checker;
    c->block = b->issuer;
    c->checker = b->issuer->checker;
    c->pc = b->pc;
    const u8 *from = b->direction == WITHIN_SHARED ? block_at(c, b->from)->shared + offset_at(b->from)
                     : b->direction == TO_GLOBAL   ? b->issuer->shared + offset_at(b->from)
                     : b->is_tile                  ? NULL
                                                   : global_at(c, b->global, b->bytes, 0);
    if (b->direction == TO_GLOBAL) {
        if (b->is_tile) move_tile(c, b, b->issuer, b->from, 0);
        else {
            check_bulk_write(c, b->global, b->bytes);
            put_bytes(c, b, global_at(c, b->global, b->bytes, 1), from, (u32)b->bytes);
        }
    }
    for (u32 rank = 0; rank < c->cluster_size && b->direction != TO_GLOBAL; rank++) {
        Block *to = b->issuer->cluster + rank;
        if (!(b->blocks >> rank & 1)) continue;
        if (b->is_tile) move_tile(c, b, to, b->shared, 1);
        else put_bytes(c, b, to->shared + offset_at(b->shared), from, (u32)b->bytes);
        each_run(b, offset_at(b->shared), mark_run, to);
        if (is_followed(c)) check_made(c, b);
        count_down(c, (u64)rank << RANK_SHIFT | offset_at(b->mbarrier), 0, -(i64)b->bytes, 0);
    }
    if (c->fault.kind) c->fault.block = b->issuer->index;
    c->block = own;
    c->checker = of_own;
}

static void make_at(Worker *c, u32 k) {
    const Bulk b = c->bulk[k];
    memmove(c->bulk + k, c->bulk + k + 1, (--c->bulk_count - k) * sizeof b);
    make(c, &b);
}

/* Make the oldest copy of all, and wake the warps that wait for it. True if there was one. */
int make_oldest(Worker *c) {
    if (!c->bulk_count) return 0;
    make_at(c, 0);
    if (c->phases) wake(c);
    return 1;
}

/* Make the copies of a cluster that ends. */
void make_all_of(Worker *c, const Block *cluster) {
    for (u32 k = 0; k < c->bulk_count;)
        if (c->bulk[k].issuer->cluster == cluster) make_at(c, k);
        else k++;
}

/* Make the copies that are done by now, where blocks run in time. */
void make_due(Worker *c) {
    for (u32 k = 0; k < c->bulk_count;)
        if (c->bulk[k].due <= c->now) make_at(c, k);
        else k++;
    if (c->phases) wake(c);
}

/* When the first of the copies is done, in ticks; -1: there is none. */
u64 first_due(const Worker *c) {
    u64 first = ~0ull;
    for (u32 k = 0; k < c->bulk_count; k++)
        if (c->bulk[k].due < first) first = c->bulk[k].due;
    return first;
}

static void queue(Worker *c, const Bulk *b) {
    if (!GROWN(c->bulk, c->bulk_room, c->bulk_count + 1)) { stop(c, NO_MEMORY); return; }
    spoil(c, b);
    Bulk *noted = &c->bulk[c->bulk_count++];
    *noted = *b;
    if (c->launch->paces) noted->due = c->now + c->launch->paces[c->pc].latency;
}

/* Global bytes that a copy moves: they reach L2 each time, for L1 keeps none of them. */
typedef struct { Worker *c; const Warp *w; u32 kind; } Counting;

static void count_run(const void *counting, u64 address, u64 bytes) {
    const Counting *x = counting;
    Worker *c = x->c;
    const u64 first = address / SECTOR, last = (address + bytes - 1) / SECTOR;
    c->count[c->pc].sectors += last - first + 1;
    for (u64 line = first / SECTORS_OF_LINE; line <= last / SECTORS_OF_LINE; line++) {
        u32 mask = 0;
        for (u32 k = 0; k < SECTORS_OF_LINE; k++) {
            const u64 sector = line * SECTORS_OF_LINE + k;
            mask |= (u32)(sector >= first && sector <= last) << k;
        }
        if (c->trace) trace_past_l1(c, x->w, line, mask, x->kind);
        if (c->stream) stream_word(c->stream, kept_line(c->launch, line) << SECTORS_OF_LINE | mask);
    }
}

/* Count a copy, and let the timing model know of its barrier, its bytes and its lines. */
static void count_bulk(Worker *c, const Warp *w, const Bulk *b) {
    Count *count = &c->count[c->pc];
    const u32 kind = b->direction == TO_SHARED ? TRACE_READ : b->reduces ? TRACE_ATOMIC : TRACE_WRITE;
    count->requests++;
    if (c->stream) {
        stream_word(c->stream, b->direction == TO_GLOBAL ? 0 : b->mbarrier);
        stream_word(c->stream, (u64)popcount(b->blocks) << 32 | b->bytes);
    }
    if (b->direction == WITHIN_SHARED) return;
    const u64 before = count->sectors;
    const Counting counting = {.c = c, .w = w, .kind = kind};
    each_global_run(b, count_run, &counting);
    count->ideal += count->sectors - before;
}

static void issue(Worker *c, const Warp *w, const Ins *i, const Bulk *b) {
    count_bulk(c, w, b);
    if (is_followed(c)) check_issue(c, w, i, b);
    queue(c, b);
}

/* True if the memory of a copy `is_there` and aligned; otherwise the fault is noted. */
static int check_memory(Worker *c, const Warp *w, int is_there, u32 space, u64 address, u64 bytes,
                        u32 alignment, int is_store) {
    const int is_aligned = !(address % alignment);
    if (is_aligned && is_there) return 1;
    memory_fault(c, w, is_aligned ? OUT_OF_BOUNDS : MISALIGNED, space, 0, address,
                 is_aligned ? bytes : alignment, is_store);
    return 0;
}

static int check_shared(Worker *c, const Warp *w, u64 address, u64 bytes, u32 alignment, int is_store) {
    const int is_there = in_shared_memory(c, address, bytes);
    return check_memory(c, w, is_there, SPACE_SHARED, address, bytes, alignment, is_store);
}

/* The barrier of a copy is there. */
static int check_barrier(Worker *c, const Warp *w, u64 address) {
    return check_shared(c, w, address, MBARRIER_BYTES, MBARRIER_BYTES, 1);
}

static int check_global(Worker *c, const Warp *w, u64 address, u64 bytes, int is_store) {
    const int is_there = buffer_of(c, address, address + bytes, is_store) != NULL;
    return check_memory(c, w, is_there, SPACE_GLOBAL, address, bytes, UNIT, is_store);
}

/* The tensor map at a generic address; false, with the fault noted, where there is none for so many
 * axes, or none of an array that is there. */
static int read_map(Worker *c, const Warp *w, u64 address, u32 axes, int is_store, TensorMap *map) {
    const u8 *at = address % MAP_ALIGNMENT ? NULL : global_at(c, address, MAP_BYTES, 0);
    if (at) memcpy(map, at, sizeof *map);
    if (!at || map->mark != MAP_MARK || map->axes != axes) {
        memory_fault(c, w, NO_TENSOR_MAP, SPACE_GLOBAL, 0, address, axes, 0);
        return 0;
    }
    u64 extent = map->element; /* to the end of the last element: rows may be further apart */
    for (u32 k = 0; k < map->axes; k++) extent += (map->size[k] - 1) * map->pitch[k];
    return check_global(c, w, map->address, extent, is_store);
}

/* The barrier of a copy, and the blocks that get it: those of the mask, or the one that the address names. */
static void name_barrier(const Worker *c, const Warp *w, const Ins *i, Bulk *b) {
    const u32 all = c->cluster_size >= LANES ? FULL : (1u << c->cluster_size) - 1;
    const u32 mask = i->flags & BULK_MULTICAST ? word_of(w, i, 2, 0) >> 16 : 0;
    b->mbarrier = word_of(w, i, 0, 1);
    b->blocks = mask ? mask & all : block_at(c, b->shared) ? 1u << (b->shared >> RANK_SHIFT) : 0;
}

static Bulk begun_bulk(const Worker *c, const Warp *w, const Ins *i) {
    return (Bulk){.issuer = c->block, .pc = c->pc, .warp = w->index, .group = w->bulk_groups,
                  .aux = i->aux >> AXES_BITS, .reduces = i->flags & BULK_REDUCES};
}

/* The type of ATOMIC that a map's elements have (cuda.h, CUtensorMapDataType); -1 for none. */
static int type_of(const TensorMap *map) {
    static const i8 types[] = {-1,       -1,       TYPE_U32,   TYPE_S32, TYPE_U64,
                               TYPE_S64, TYPE_F16X2, TYPE_F32, -1, TYPE_BF16X2};
    return map->type < sizeof types ? types[map->type] : -1;
}

/* UTMALDG: s[0] where to, the barrier, and the coordinates; s[1] the map, s[2] from bit 16 on the
 * blocks. UTMASTG and
 * UTMAREDG have no barrier. aux: how many axes; then, as of ATOMIC, what is done to them. */
static void tensor_copy(Worker *c, Warp *w, const Ins *i, u32 direction) {
    Bulk b = begun_bulk(c, w, i);
    const u32 axes = i->aux & ((1 << AXES_BITS) - 1), first = direction == TO_SHARED ? 2 : 1;
    b.direction = direction;
    b.is_tile = 1;
    b.shared = b.from = word_of(w, i, 0, 0);
    if (!read_map(c, w, pair_of(w, i, 1), axes, direction == TO_GLOBAL, &b.map)) return;
    for (u32 k = 0; k < axes; k++) b.at[k] = (i32)word_of(w, i, 0, first + k);
    b.bytes = (u64)rows_of(&b.map) * row_bytes(&b.map);
    const i64 along_row = (i64)b.at[0] * b.map.element;
    if (along_row % UNIT) { /* an illegal instruction, to the hardware */
        u64 address = b.map.address + (u64)along_row;
        for (u32 k = 1; k < axes; k++) address += (u64)(b.at[k] * (i64)b.map.pitch[k]);
        memory_fault(c, w, MISALIGNED, SPACE_GLOBAL, 0, address, UNIT, direction == TO_GLOBAL);
        return;
    }
    if (!check_shared(c, w, b.shared, (u64)rows_of(&b.map) * row_pitch(&b.map), BOX_ALIGNMENT,
                      direction == TO_SHARED)) return;
    if (direction == TO_SHARED) {
        name_barrier(c, w, i, &b);
        if (!check_barrier(c, w, b.mbarrier)) return;
    }
    if (b.reduces && type_of(&b.map) < 0) {
        memory_fault(c, w, UNIMPLEMENTED, SPACE_GLOBAL, 0, b.map.address, axes, 0);
        return;
    }
    if (b.reduces) b.aux |= (u32)type_of(&b.map) << ATOMIC_TYPE_SHIFT;
    issue(c, w, i, &b);
}

OPERATION(TENSOR_LOAD) { tensor_copy(core, w, i, TO_SHARED); }
OPERATION(TENSOR_STORE) { tensor_copy(core, w, i, TO_GLOBAL); }

/* UBLKCP, UBLKRED: s[0] where to (and the barrier), s[1] where from, s[2] how many times 16 bytes, and
 * from bit 16 on the blocks. */
static void run_of_bytes(Worker *c, Warp *w, const Ins *i, u32 direction) {
    Bulk b = begun_bulk(c, w, i);
    const u32 size = word_of(w, i, 2, 0);
    b.direction = direction;
    b.bytes = (u64)(size & 0xffff) * UNIT;
    b.global = pair_of(w, i, direction == TO_GLOBAL ? 0 : 1);
    b.shared = direction == TO_GLOBAL ? 0 : word_of(w, i, 0, 0);
    b.from = direction == TO_SHARED ? 0 : word_of(w, i, 1, 0);
    if (!b.bytes) return;
    if (direction != TO_SHARED && !check_shared(c, w, b.from, b.bytes, UNIT, 0)) return;
    if (direction != WITHIN_SHARED &&
        !check_global(c, w, b.global, b.bytes, direction == TO_GLOBAL))
        return;
    if (direction != TO_GLOBAL) {
        name_barrier(c, w, i, &b);
        if (!check_shared(c, w, b.shared, b.bytes, UNIT, 1) || !check_barrier(c, w, b.mbarrier)) return;
    }
    issue(c, w, i, &b);
}

OPERATION(BULK_LOAD) { run_of_bytes(core, w, i, TO_SHARED); }
OPERATION(BULK_STORE) { run_of_bytes(core, w, i, TO_GLOBAL); }
OPERATION(BULK_SHARED) { run_of_bytes(core, w, i, WITHIN_SHARED); }

/* UMEMSETS: s[0] where to, s[1] how many words of 64 bits. */
OPERATION(SHARED_ZEROS) {
    enum { UNIT_OF_ZEROS = 8 };
    const u64 address = word_of(w, i, 0, 0), bytes = (u64)word_of(w, i, 1, 0) * UNIT_OF_ZEROS;
    if (!m || !bytes || !check_shared(core, w, address, bytes, UNIT_OF_ZEROS, 1)) return;
    Block *b = block_at(core, address);
    memset(b->shared + offset_at(address), 0, bytes);
    mark_bytes(b, offset_at(address), (u32)bytes, 1);
    core->changes++;
}

/* UTMACMDFLUSH: the stores since the last one are a group. */
OPERATION(BULK_GROUP) {
    w->bulk_groups++;
}

/* DEPBAR: of the groups of this warp all but the last aux are made. */
OPERATION(BULK_WAIT) {
    const u32 pc = core->pc;
    for (u32 k = 0; k < core->bulk_count;) {
        const Bulk *b = &core->bulk[k];
        if (b->issuer == core->block && b->warp == w->index && b->direction == TO_GLOBAL &&
            b->group + i->aux < w->bulk_groups)
            make_at(core, k);
        else k++;
    }
    core->pc = pc;
}

/* The words of lane l in the registers at x, or what the reduction that aux names makes of them and
 * of those at `to`. */
static void combine_words(const Ins *i, const u32 *x, int l, u8 *to) {
    u64 value = 0, old = 0;
    for (u32 k = 0; k < i->width / WORD; k++) value |= (u64)x[k * LANES + l] << 32 * k;
    memcpy(&old, to, i->width);
    value = combined(i->aux & 0xff, i->aux >> ATOMIC_TYPE_SHIFT & 0xff, 0, old, value, 0);
    memcpy(to, &value, i->width);
}

/* STAS, REDAS: s[2] to another block's memory, and its barrier hears of the bytes: s[0] both
 * addresses. */
OPERATION(STORE_ASYNC) {
    const u32 *to = RAW(0), *mbarrier = to + LANES, *x = RAW(2);
    for (int l = 0; l < LANES && !core->fault.kind; l++) {
        const u64 address = (u32)(to[l] + (u32)i->imm);
        if (!(m >> l & 1)) continue;
        if (!check_shared(core, w, address, i->width, i->width, 1)) return;
        if (!check_barrier(core, w, mbarrier[l])) return;
        Block *b = block_at(core, address);
        if (i->flags & BULK_REDUCES) combine_words(i, x, l, b->shared + offset_at(address));
        else
            for (u32 k = 0; k < i->width / WORD; k++)
                memcpy(b->shared + offset_at(address) + k * WORD, &x[k * LANES + l], WORD);
        mark_bytes(b, offset_at(address), i->width, 1);
        stream_mbarrier(core, mbarrier[l], arrival_word(0, -(i64)i->width));
        count_down(core, mbarrier[l], 0, -(i64)i->width, 0);
    }
}
