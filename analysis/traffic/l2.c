/* Traffic below L1 by the model that analysis/traffic/l2.py describes: fetches that SMs share, reuse
 * in L2, transfers between its partitions, and write-backs. */
#include "traffic.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX };
enum { MOST_ARRAYS = 16 }; /* that one `Memory` has room for */

/* Accesses of blocks to pieces, as `Accesses` in Python: fewer than 2^32. */
typedef struct {
    const double *time, *sectors, *size;
    const i64 *piece, *block;
    const u8 *is_write;
    u64 count, pieces, blocks;
    volatile u32 is_cancelled; /* set by another thread */
    u32 reserved;
} Accesses;

/* Constants of the model, under their names in Python. */
typedef struct {
    double moments, rounds, partitions, write_room, read_reach, read_width, dirty_reach, write_reach,
        write_width, both_sides, far_from_writer;
} Caches;

typedef struct { double crossing_sectors, dram_read_bytes, dram_write_bytes; } Below;

/* Arrays that are freed together. */
typedef struct { void *arrays[MOST_ARRAYS]; u32 used, failed; } Memory;

static void *array(Memory *m, u64 count, u64 size) {
    void *const found = calloc(count + 1, size);
    m->arrays[m->used++] = found;
    m->failed |= !found;
    return found;
}

static void release(Memory *m) {
    while (m->used) free(m->arrays[--m->used]);
}

/* Accesses to one piece with the same key and kind. `row`: the first of these accesses. `before`: the
 * previous group of the same piece, or NONE. */
typedef struct { u64 key; double sectors; u32 row, count, kind, before; } Group;

/* Combines accesses to one piece with the same key and kind into a group. Returns the number of groups,
 * which are in the order of their first access. `keys`: sorted keys. `rows`: the access of each key.
 * `kinds`: kind of each block; without it, the kinds are reads and writes. */
static u64 group(const Accesses *a, const u64 *keys, const u32 *rows, u64 count, const u32 *kinds,
                 u32 *latest, Group *groups) {
    u64 used = 0;
    memset(latest, 0xff, a->pieces * sizeof *latest);
    for (u64 k = 0; k < count; k++) {
        const u32 row = rows[k], kind = kinds ? kinds[a->block[row]] : a->is_write[row];
        u32 *const of_piece = &latest[a->piece[row]], at = *of_piece;
        while (at != NONE && groups[at].key == keys[k] && groups[at].kind != kind) at = groups[at].before;
        if (at == NONE || groups[at].key != keys[k]) {
            at = (u32)used++;
            groups[at] = (Group){.key = keys[k], .row = row, .kind = kind, .before = *of_piece};
            *of_piece = at;
        }
        groups[at].count++;
        groups[at].sectors += a->sectors[row];
    }
    return used;
}

/* Moment of a time, as a key: keys have the same order as times, also for negative times. */
static u64 moment_of(double time, double moments) {
    return (u64)llrint(time * moments) ^ 1ull << 63;
}

/* Computes the sectors saved if one fetch serves up to `most` SMs of a GPC that read them in the same
 * moment. `moments`: moments per lifetime. `gpcs`: GPC of each block. Returns FAILED without memory or
 * if cancelled. */
EXPORT i64 share_fetches(const Accesses *a, const u32 *gpcs, double moments, double most, double *saved) {
    Memory m = {.used = 0};
    u64 *const keys = array(&m, a->count, sizeof *keys), reads = 0;
    u32 *const rows = array(&m, a->count, sizeof *rows), *const read = array(&m, a->count, sizeof *read);
    u32 *const latest = array(&m, a->pieces, sizeof *latest);
    Group *const groups = array(&m, a->count, sizeof *groups);
    *saved = 0;
    for (u64 k = 0; !m.failed && k < a->count; k++) {
        if (a->is_write[k]) continue;
        keys[reads] = moment_of(a->time[k], moments);
        read[reads++] = (u32)k;
    }
    m.failed |= m.failed || sort_keys(keys, reads, rows) || a->is_cancelled;
    for (u64 k = 0; !m.failed && k < reads; k++) rows[k] = read[rows[k]];
    const u64 count = m.failed ? 0 : group(a, keys, rows, reads, gpcs, latest, groups);
    for (u64 k = 0; k < count; k++)
        *saved += groups[k].sectors * (1 - ceil(groups[k].count / most) / groups[k].count);
    release(&m);
    return m.failed || a->is_cancelled ? FAILED : 0;
}

/* Sorts rows by time (merge sort). Rows with equal times keep their order. `spare`: as large as `rows`. */
static void sort_by_time(const double *time, u32 *rows, u64 count, u32 *spare) {
    if (count < 2) return;
    const u64 half = count / 2;
    sort_by_time(time, rows, half, spare);
    sort_by_time(time, rows + half, count - half, spare);
    if (time[rows[half - 1]] <= time[rows[half]]) return;
    memcpy(spare, rows, half * sizeof *rows);
    for (u64 first = 0, second = half, to = 0; first < half; to++) {
        const int is_second = second < count && time[rows[second]] < time[spare[first]];
        rows[to] = is_second ? rows[second++] : spare[first++];
    }
}

/* Visits: accesses in time order. Reads of the same piece at the same moment are merged into one visit,
 * and so are writes. Visits are stored piece by piece, those of a piece in time order. */
typedef struct {
    u64 count, pieces;
    u32 *at, *readers;  /* position of each visit in time, and its number of accesses */
    u8 *is_write;
    u32 *begins;        /* first visit of each piece, and the end */
    u32 *blocks;        /* of each piece: blocks that access it, */
    double *size, *room; /* bytes, and room that a byte of it takes in L2 */
    u8 *is_written;
    /* of each number of visits between two of a piece: whether there are two, and the fraction of
     * the piece that was evicted in between */
    u8 *is_gap;
    double *gone, *sums;
} Visits;

/* Computes the visits in time order, as groups of accesses, and returns their number. `keys`, `rows`:
 * work space for all accesses. */
static u64 in_time(const Accesses *a, double moments, u64 *keys, u32 *rows, u32 *latest, Group *groups) {
    for (u64 k = 0; k < a->count; k++) keys[k] = moment_of(a->time[k], moments);
    if (sort_keys(keys, a->count, rows)) return 0;
    for (u64 begin = 0, end; begin < a->count; begin = end) {
        for (end = begin + 1; end < a->count && keys[end] == keys[begin];) end++;
        sort_by_time(a->time, rows + begin, end - begin, (u32 *)groups);
    }
    return group(a, keys, rows, a->count, NULL, latest, groups);
}

/* Counts the distinct blocks that access each piece. */
static int count_blocks(const Accesses *a, u64 *keys, u32 *rows, u32 *latest, u32 *blocks) {
    for (u64 k = 0; k < a->count; k++) keys[k] = (u64)a->block[k];
    if (sort_keys(keys, a->count, rows)) return FAILED;
    memset(latest, 0xff, a->pieces * sizeof *latest);
    for (u64 k = 0; k < a->count; k++) {
        u32 *const of_piece = &latest[a->piece[rows[k]]];
        blocks[a->piece[rows[k]]] += *of_piece != keys[k];
        *of_piece = (u32)keys[k];
    }
    return 0;
}

/* Computes the visits. Returns FAILED without memory. Arrays in `kept` are freed with it. */
static int find_visits(const Accesses *a, double moments, Visits *v, Memory *kept) {
    Memory m = {.used = 0};
    u64 *const keys = array(&m, a->count, sizeof *keys);
    u32 *const rows = array(&m, a->count, sizeof *rows), *const latest = array(&m, a->pieces, sizeof *latest);
    Group *const groups = array(&m, a->count, sizeof *groups);
    v->pieces = a->pieces;
    v->blocks = array(kept, a->pieces, sizeof *v->blocks);
    v->begins = array(kept, a->pieces + 1, sizeof *v->begins);
    v->size = array(kept, a->pieces, sizeof *v->size);
    v->room = array(kept, a->pieces, sizeof *v->room);
    v->is_written = array(kept, a->pieces, 1);
    if (m.failed || kept->failed || count_blocks(a, keys, rows, latest, v->blocks)) goto end;
    v->count = in_time(a, moments, keys, rows, latest, groups);
    v->at = array(kept, v->count, sizeof *v->at);
    v->readers = array(kept, v->count, sizeof *v->readers);
    v->is_write = array(kept, v->count, 1);
    v->is_gap = array(kept, v->count, 1);
    v->gone = array(kept, v->count, sizeof *v->gone);
    v->sums = array(kept, v->count, sizeof *v->sums);
    if (kept->failed) goto end;
    for (u64 k = 0; k < v->count; k++) v->begins[a->piece[groups[k].row] + 1]++;
    for (u64 p = 0; p < a->pieces; p++) v->begins[p + 1] += v->begins[p];
    memcpy(latest, v->begins, a->pieces * sizeof *latest);
    for (u64 k = 0; k < v->count; k++) {
        const Group *const g = &groups[k];
        const i64 piece = a->piece[g->row];
        const u32 to = latest[piece]++;
        v->at[to] = (u32)k;
        v->readers[to] = g->count;
        v->is_write[to] = (u8)g->kind;
        v->is_written[piece] |= (u8)g->kind;
        v->size[piece] = a->size[g->row];
        if (g->before != NONE) v->is_gap[k - g->before - 1] = 1;
    }
end:
    release(&m);
    return m.failed || kept->failed || (a->count && !v->count) ? FAILED : 0;
}

/* Fraction of pieces evicted from a cache after `distance` bytes of other pieces. */
static double beyond(double distance, double reach, double width) {
    return 1 / (1 + exp(-fmin(fmax((distance - reach) / width, -50), 50)));
}

/* Room in L2 per byte of a piece that `readers` blocks read. Blocks in both partitions need more. */
static double room_of_read(double readers, const Caches *c) {
    return 1 + (c->both_sides - 1) * (1 - exp2(1 - fmax(readers, 1)));
}

/* Computes, for each length of a gap between two visits, the fraction of pieces evicted in it. The average
 * footprint of a window of w visits is the weight of all pieces minus that of absent pieces: a gap of
 * g visits without a piece contains g - w + 1 windows. */
static void evict(const Visits *v, const Caches *c) {
    double total = 0, weight = 0, length = 0; /* the last two: of all gaps of at least this length */
    memset(v->sums, 0, v->count * sizeof *v->sums);
    for (u64 p = 0; p < v->pieces; p++) {
        const u32 begin = v->begins[p], end = v->begins[p + 1];
        if (begin == end) continue;
        const double own = v->size[p] * v->room[p];
        total += own;
        v->sums[v->at[begin]] += own;
        v->sums[v->count - 1 - v->at[end - 1]] += own;
        for (u32 k = begin + 1; k < end; k++) v->sums[v->at[k] - v->at[k - 1] - 1] += own;
    }
    for (u64 gap = v->count; gap-- > 0;) {
        weight += v->sums[gap];
        length += v->sums[gap] * (double)gap;
        if (!v->is_gap[gap]) continue;
        const double absent = (length - weight * ((double)gap - 1)) / (double)(v->count - gap + 1);
        v->gone[gap] = beyond(total - absent, c->read_reach, c->read_width);
    }
}

/* Fraction of a piece that was evicted from L2 since the previous visit; 0 for the first visit. */
static double gone_at(const Visits *v, u32 visit, u32 begin) {
    return visit == begin ? 0 : v->gone[v->at[visit] - v->at[visit - 1] - 1];
}

/* Fraction of a piece that a visit reads from DRAM. */
static double missed_at(const Visits *v, u32 visit, u32 begin) {
    return v->is_write[visit] ? 0 : visit == begin ? 1 : gone_at(v, visit, begin);
}

/* Room and residence depend on each other: the room of a piece depends on the number of blocks that
 * read it during its residence, and the residence on the room of all pieces. Hence the rounds. */
static void settle(const Accesses *a, const Visits *v, const Caches *c) {
    for (u64 p = 0; p < v->pieces; p++) v->room[p] = v->is_written[p] ? c->write_room : 1;
    for (int round = 0; round < c->rounds && !a->is_cancelled; round++) {
        evict(v, c);
        for (u64 p = 0; p < v->pieces; p++) {
            double stays = 0;
            if (v->is_written[p]) continue;
            for (u32 k = v->begins[p]; k < v->begins[p + 1]; k++) stays += missed_at(v, k, v->begins[p]);
            v->room[p] = room_of_read(v->blocks[p] / fmax(stays, 1), c);
        }
    }
}

/* Reads from DRAM, and transfers between partitions. A sector crosses once per residence if any
 * reader is on the far side: with probability 1/2 for one reader, and 1 - 2^-n for n readers. A store
 * also leaves the sector in the writer's partition, and most readers of another block's stores are on
 * that side. */
static void read_pieces(const Visits *v, const Caches *c, Below *out) {
    for (u64 p = 0; p < v->pieces; p++) {
        const u32 begin = v->begins[p];
        double near = 1; /* fraction that is only in its home partition so far */
        for (u32 k = begin; k < v->begins[p + 1]; k++) {
            if (v->is_write[k]) { near *= c->far_from_writer; continue; }
            const double missed = missed_at(v, k, begin), unread = missed + (1 - missed) * near;
            const double alone = exp2(-(double)v->readers[k]);
            out->dram_read_bytes += missed * v->size[p];
            if (c->partitions == 2) out->crossing_sectors += unread * (1 - alone) * v->size[p] / SECTOR_BYTES;
            near = unread * alone;
        }
    }
}

/* Write-backs before the launch ends. Between two visits a dirty piece is evicted like any other.
 * After its last visit it is written back if `dirty_reach` bytes of other pieces follow, or if more
 * than `write_reach` is dirty. `after` and `dirty_after` have room for all visits and one more. */
static void write_back(const Visits *v, const Caches *c, double *after, double *dirty_after, double *dirty,
                       Below *out) {
    for (u64 p = 0; p < v->pieces; p++) {
        const u32 begin = v->begins[p], end = v->begins[p + 1];
        if (begin == end) continue;
        const double of_read = room_of_read(v->blocks[p], c);
        /* pieces that one block reads do not displace dirty ones; those read from DRAM again are clean */
        double as_dirty = v->blocks[p] == 1 ? 0 : of_read / c->write_room;
        if (v->is_written[p]) {
            for (u32 k = begin; k < end; k++) {
                const double gone = gone_at(v, k, begin);
                out->dram_write_bytes += dirty[p] * gone * v->size[p];
                dirty[p] = v->is_write[k] ? 1 : dirty[p] * (1 - gone);
            }
            as_dirty = dirty[p] + (1 - dirty[p]) / c->write_room;
        }
        after[v->at[end - 1]] = v->size[p] * (v->is_written[p] ? 1 : of_read);
        dirty_after[v->at[end - 1]] = v->size[p] * as_dirty;
    }
    for (u64 k = v->count; k-- > 0;) {
        after[k] += after[k + 1];
        dirty_after[k] += dirty_after[k + 1];
    }
    for (u64 p = 0; p < v->pieces; p++) {
        if (!v->is_written[p]) continue;
        const u32 next = v->at[v->begins[p + 1] - 1] + 1;
        const double pushed_out = beyond(after[next], c->dirty_reach, c->read_width);
        const double too_dirty = beyond(dirty_after[next], c->write_reach, c->write_width);
        out->dram_write_bytes += dirty[p] * fmax(pushed_out, too_dirty) * v->size[p];
    }
}

/* Computes transfers between partitions of L2, and the traffic of DRAM. Returns FAILED without memory or
 * if cancelled. */
EXPORT i64 traffic_of_l2(const Accesses *a, const Caches *c, Below *out) {
    Memory m = {.used = 0};
    Visits v = {.count = 0};
    i64 result = FAILED;
    *out = (Below){0, 0, 0};
    if (find_visits(a, c->moments, &v, &m) || a->is_cancelled) goto end;
    double *const after = array(&m, v.count + 1, sizeof *after);
    double *const dirty_after = array(&m, v.count + 1, sizeof *dirty_after);
    double *const dirty = array(&m, v.pieces, sizeof *dirty);
    if (m.failed) goto end;
    settle(a, &v, c);
    read_pieces(&v, c, out);
    write_back(&v, c, after, dirty_after, dirty, out);
    result = a->is_cancelled ? FAILED : 0;
end:
    release(&m);
    return result;
}

EXPORT const char built_from[] = BUILT_FROM;
