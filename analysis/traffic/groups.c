/* Accesses of all blocks of a launch, from those of a few blocks: each class of blocks has one
 * representative, whose addresses shift evenly with the index of the block. Cache lines that the
 * same blocks access at the same moments, in the same way, form a group; only the accesses to one
 * line of each group are returned, with the number of lines that it stands for. */
#include "traffic.h"
#include <stdlib.h>
#include <string.h>

enum { AXES = 3, TOO_MANY = -2 };
/* Entries of a run: to find a list costs as much as to look at a few, and it takes 32 bytes. */
enum { LEAST_REMEMBERED = 1024 };
/* Slots are anywhere in tables larger than the caches: each is prefetched so many entries before. */
enum { AHEAD = 16 };
/* Neighbouring lines that share a slot: their values take one cache line. */
enum { LINES_OF_PAGE = 8 };

/* One access of a representative: sectors `mask` from `sector` on. `shift`: which shift applies. */
typedef struct { u64 sector; u32 moment; u16 shift; u8 mask, kind; } Entry;

/* Entries and shifts of a class, and the index of its representative in the grid. */
typedef struct { u64 first, end, first_shift, shifts; i64 at[AXES]; } Class;

typedef struct {
    const Entry *entries;
    const Class *classes;
    const i64 *shifts;   /* bytes per step along each axis of the grid, AXES for each shift */
    const u32 *class_of; /* of each block */
    const u64 *run_ends; /* for each entry, the end of the entries of its class with one shift */
    u64 blocks;
    u64 grid[AXES];
    u64 most_shifts;     /* of a class */
    u32 spread;          /* only one of 2^spread lines is looked at */
    volatile u32 is_cancelled; /* set by another thread */
} LaunchAccesses;

/* An access to a line of all `lines` of its group. */
typedef struct { u64 line; u32 block, moment, lines; u8 mask, kind; u16 reserved; } Visit;

typedef struct { u64 key, value; } Slot; /* free if `value` is 0 */
typedef struct { Slot *slots; u64 size, used; } Table;

static u64 mixed(u64 x) {
    x ^= x >> 32; x *= 0xd6e8feb86659fd93ull;
    x ^= x >> 32; x *= 0xd6e8feb86659fd93ull;
    return x ^ x >> 32;
}

static Slot *slot_of(Slot *slots, u64 size, u64 key) {
    u64 at = mixed(key) & (size - 1);
    while (slots[at].value && slots[at].key != key) at = (at + 1) & (size - 1);
    return &slots[at];
}

static void prefetch(const Slot *slots, u64 size, u64 key) {
    __builtin_prefetch(&slots[mixed(key) & (size - 1)]);
}

/* The slot of a key, which may be free; NULL where there is no memory. */
static Slot *found(Table *t, u64 key) {
    if (2 * t->used >= t->size) {
        const u64 size = t->size ? 2 * t->size : 1 << 12;
        Slot *larger = calloc(size, sizeof *larger);
        if (!larger) return NULL;
        for (u64 k = 0; k < t->size; k++) {
            if (k + AHEAD < t->size) prefetch(larger, size, t->slots[k + AHEAD].key);
            if (t->slots[k].value) *slot_of(larger, size, t->slots[k].key) = t->slots[k];
        }
        free(t->slots);
        t->slots = larger;
        t->size = size;
    }
    Slot *slot = slot_of(t->slots, t->size, key);
    if (!slot->value) { slot->key = key; t->used++; }
    return slot;
}

/* A value for each chosen line. Neighbours share a page, which a table finds; pages stand in the
 * order in which they were first accessed. */
typedef struct {
    Table pages;  /* the number of a page plus 1 */
    u64 *values;  /* LINES_OF_PAGE of each page; 0 for lines without an access */
    u64 size;     /* pages for which there is memory */
    u64 last_key; /* key of the page that was looked up last, plus 1 */
    u64 *last;    /* its values */
} Lines;

static u64 key_of(u64 line, u32 spread) { return (line >> spread) / LINES_OF_PAGE; }

/* The value of a chosen line, 0 if it is new; NULL where there is no memory. */
static u64 *value_of(Lines *l, u64 line, u32 spread) {
    const u64 key = key_of(line, spread), at = (line >> spread) % LINES_OF_PAGE;
    if (key + 1 == l->last_key) return l->last + at;
    Slot *slot = found(&l->pages, key);
    if (!slot) return NULL;
    if (!slot->value) {
        if (l->pages.used > l->size) {
            const u64 size = l->size ? 2 * l->size : 1 << 10, page = LINES_OF_PAGE * sizeof *l->values;
            u64 *larger = realloc(l->values, size * page);
            if (!larger) return NULL;
            memset(larger + l->size * LINES_OF_PAGE, 0, (size - l->size) * page);
            l->values = larger;
            l->size = size;
        }
        slot->value = l->pages.used;
    }
    l->last_key = key + 1;
    l->last = l->values + (slot->value - 1) * LINES_OF_PAGE;
    return l->last + at;
}

/* True for one of 2^spread neighbouring lines, another one in the next 256 lines; what is chosen
 * for a larger spread is chosen for a smaller one. The sum is that of the line's bytes, which are
 * added in pairs and these by a product: no loop, as most lines are looked at for this alone. */
static int is_chosen(u64 line, u32 spread) {
    const u64 even = 0x00ff00ff00ff00ffull, pairs = (line & even) + (line >> 8 & even);
    const u64 sum = pairs * 0x0001000100010001ull >> 48;
    return (sum & ((1ull << spread) - 1)) == 0;
}

/* Entries whose lines are chosen, of runs that were looked at: `lists` has their number, then how
 * far after the start of the run each is. `starts` finds a list by run and shift. */
typedef struct { Table starts; u32 *lists; u64 used, size; } Remembered;

/* `lines`: for each line the sum over its accesses, which is equal for lines of a group; after all
 * blocks were looked at once, the number of lines of its group, for one line of each. */
typedef struct { Lines lines; Table groups; Remembered chosen; Visit *out; u64 most, count; int failed; } State;

/* Adds an access from `sector` on to the sum of its line; the last time that blocks are looked at,
 * notes it if its line stands for a group. */
static void look_at(const LaunchAccesses *l, State *s, const Entry *e, u64 sector, u64 block, int is_last) {
    const u64 line = sector / SECTORS;
    const u32 mask = (u32)e->mask << sector % SECTORS;
    u64 *value = value_of(&s->lines, line, l->spread);
    if (!value) { s->failed = 1; return; }
    if (!is_last) {
        /* 0 means no access; a sum of odd numbers hardly ever is 0 */
        *value += mixed(mixed(block << 20 ^ e->moment) + (mask << 4 | e->kind)) | 1;
        return;
    }
    if (!*value) return;
    if (s->count == s->most) { s->failed = 1; return; }
    s->out[s->count++] = (Visit){
        .line = line, .block = (u32)block, .moment = e->moment,
        .lines = (u32)*value, .mask = (u8)mask, .kind = e->kind,
    };
}

/* Replaces the sums of lines: the first line of each group gets its number of lines, others 0. */
static void group_lines(State *s) {
    u64 *values = s->lines.values;
    const u64 lines = s->lines.pages.used * LINES_OF_PAGE;
    for (u64 k = 0; k < lines; k++) {
        if (!values[k]) continue;
        Slot *group = found(&s->groups, values[k]);
        if (!group) { s->failed = 1; return; }
        /* the first line above, the number of lines below */
        group->value = group->value ? group->value + 1 : k << 32 | 1;
        values[k] = 0;
    }
    for (u64 k = 0; k < s->groups.size; k++) {
        const u64 group = s->groups.slots[k].value;
        if (group) values[group >> 32] = (u32)group;
    }
}

/* Adds a list of the chosen entries of a run; where its first one is, or 0 without memory. */
static u64 remember(Remembered *r, const Entry *run, u64 length, u64 by, u32 spread) {
    if (r->used + length + 1 > r->size) {
        const u64 size = 2 * r->size + length + 1;
        u32 *larger = realloc(r->lists, size * sizeof *larger);
        if (!larger) return 0;
        r->lists = larger;
        r->size = size;
    }
    const u64 first = r->used + 1;
    u64 end = first;
    for (u64 k = 0; k < length; k++) {
        r->lists[end] = (u32)k;
        end += (u64)is_chosen((run[k].sector + by) / SECTORS, spread);
    }
    r->lists[r->used] = (u32)(end - first);
    r->used = end;
    return first;
}

/* Looks at the accesses of a block by a run of entries, whose addresses are shifted by `by` sectors.
 * Blocks of a row or a column share the shift of an operand, and so do both times that a block is
 * looked at: which entries of a long run are chosen is found once for each shift. */
static void each_of_run(const LaunchAccesses *l, State *s, u64 start, u64 by, u64 block, int is_last) {
    const Entry *run = l->entries + start;
    const u64 length = l->run_ends[start] - start;
    if (!l->spread || length < LEAST_REMEMBERED) {
        const Table *pages = &s->lines.pages;
        for (const Entry *e = run; e < run + length; e++) {
            if (pages->size && e + AHEAD < run + length)
                prefetch(pages->slots, pages->size, key_of((e[AHEAD].sector + by) / SECTORS, l->spread));
            if (is_chosen((e->sector + by) / SECTORS, l->spread)) look_at(l, s, e, e->sector + by, block, is_last);
        }
        return;
    }
    Slot *slot = found(&s->chosen.starts, mixed(start + 1) ^ by);
    if (slot && !slot->value) slot->value = remember(&s->chosen, run, length, by, l->spread);
    if (!slot || !slot->value) { s->failed = 1; return; }
    const u32 *list = s->chosen.lists + slot->value;
    for (u32 k = 0; k < list[-1]; k++)
        look_at(l, s, run + list[k], run[list[k]].sector + by, block, is_last);
}

/* Looks at the accesses of all blocks, in order. */
static void each_access(const LaunchAccesses *l, State *s, i64 *by, int is_last) {
    for (u64 block = 0; block < l->blocks; block++) {
        if (l->is_cancelled) { s->failed = 1; return; }
        const Class *c = &l->classes[l->class_of[block]];
        const u64 index[AXES] = {
            block % l->grid[0], block / l->grid[0] % l->grid[1], block / l->grid[0] / l->grid[1],
        };
        for (u64 k = 0; k < c->shifts; k++) {
            by[k] = 0;
            for (int axis = 0; axis < AXES; axis++)
                by[k] += l->shifts[AXES * (c->first_shift + k) + (u64)axis] * ((i64)index[axis] - c->at[axis]);
            by[k] /= SECTOR_BYTES;
        }
        for (u64 start = c->first; start < c->end; start = l->run_ends[start]) {
            each_of_run(l, s, start, (u64)by[l->entries[start].shift], block, is_last);
            if (s->failed) return;
        }
    }
}

/* Groups the accesses of a launch; their number, FAILED without memory, or TOO_MANY for `out`. */
EXPORT i64 group_accesses(const LaunchAccesses *l, Visit *out, u64 most) {
    State s = {.out = out, .most = most};
    i64 *by = calloc(l->most_shifts + 1, sizeof *by), result = FAILED;
    if (by) {
        each_access(l, &s, by, 0);
        if (!s.failed) group_lines(&s);
        if (s.groups.used > most) { result = TOO_MANY; s.failed = 1; } /* each group has an access */
        if (!s.failed) {
            each_access(l, &s, by, 1);
            result = s.failed ? TOO_MANY : (i64)s.count;
        }
    }
    free(by);
    free(s.lines.pages.slots);
    free(s.lines.values);
    free(s.groups.slots);
    free(s.chosen.starts.slots);
    free(s.chosen.lists);
    return result;
}
