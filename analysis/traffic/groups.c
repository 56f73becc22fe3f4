/* Accesses of all blocks of a launch, from those of a few blocks: each class of blocks has one
 * representative, whose addresses shift evenly with the index of the block. Cache lines that the
 * same blocks access at the same moments, in the same way, form a group; only the accesses to one
 * line of each group are returned, with the number of lines that it stands for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

enum { AXES = 3, SECTORS = 4, SECTOR_BYTES = 32, AT_ONCE = 16, FAILED = -1, TOO_MANY = -2 };

/* One access of a representative: sectors `mask` from `sector` on. `shift`: which shift applies. */
typedef struct { u64 sector; u32 moment; u16 shift; u8 mask, kind; } Entry;

/* Entries and shifts of a class, and the index of its representative in the grid. */
typedef struct { u64 first, end, first_shift, shifts; i64 at[AXES]; } Class;

typedef struct {
    const Entry *entries;
    const Class *classes;
    const i64 *shifts;   /* bytes per step along each axis of the grid, AXES for each shift */
    const u32 *class_of; /* of each block */
    u64 blocks;
    u64 grid[AXES];
    u64 most_shifts;     /* of a class */
    u32 spread;          /* only one of 2^spread lines is looked at */
    volatile u32 is_cancelled; /* set by another thread */
} Launch;

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

/* The slot of a key, which may be free; NULL where there is no memory. */
static Slot *found(Table *t, u64 key) {
    if (2 * t->used >= t->size) {
        const u64 size = t->size ? 2 * t->size : 1 << 12;
        Slot *larger = calloc(size, sizeof *larger);
        if (!larger) return NULL;
        for (u64 k = 0; k < t->size; k++)
            if (t->slots[k].value) *slot_of(larger, size, t->slots[k].key) = t->slots[k];
        free(t->slots);
        t->slots = larger;
        t->size = size;
    }
    Slot *slot = slot_of(t->slots, t->size, key);
    if (!slot->value) { slot->key = key; t->used++; }
    return slot;
}

/* 0 for one of 2^spread neighbouring lines, another one in the next 256 lines; what is chosen for a
 * larger spread is chosen for a smaller one. The number is the sum of the line's bytes, added in
 * pairs, so that compilers use vector instructions: most lines are looked at for this alone. */
static u64 byte_sum(u64 line, u64 of) {
    const u64 even = 0x00ff00ff00ff00ffull, pairs = (line & even) + (line >> 8 & even);
    const u64 fours = pairs + (pairs >> 32);
    return (fours + (fours >> 16)) & of;
}

typedef struct {
    Table signatures, groups;
    Visit *out;
    u64 most, count;
    int failed;
    i64 *by;      /* sectors that each shift of a class adds for a block */
    u64 *sectors; /* of all entries */
    u64 *ends;    /* of all entries: the next one with another shift, or of another class */
} State;

static void sign(State *s, u64 line, u64 what) {
    Slot *slot = found(&s->signatures, line);
    if (!slot) { s->failed = 1; return; }
    slot->value += mixed(what) | 1; /* 0 would be free; a sum of odd numbers hardly ever is */
}

/* Signs the line of an access, or notes the access if its line stands for a group. */
static void add(State *s, const Entry *e, u64 sector, u64 block, int is_last) {
    const u64 line = sector / SECTORS;
    const u32 mask = (u32)e->mask << sector % SECTORS;
    if (!is_last) {
        sign(s, line, mixed(block << 20 ^ e->moment) + (mask << 4 | e->kind));
        return;
    }
    const Slot *own = slot_of(s->signatures.slots, s->signatures.size, line);
    const Slot *group = slot_of(s->groups.slots, s->groups.size, own->value);
    if (group->value >> 32 != (u64)(own - s->signatures.slots)) return;
    if (s->count == s->most) { s->failed = 1; return; }
    s->out[s->count++] = (Visit){
        .line = line, .block = (u32)block, .moment = e->moment,
        .lines = (u32)group->value, .mask = (u8)mask, .kind = e->kind,
    };
}

/* Calls add() for each access of all blocks to a chosen line. */
static void each_access(const Launch *l, State *s, int is_last) {
    const u64 chosen = (1ull << l->spread) - 1;
    for (u64 block = 0; block < l->blocks && !s->failed; block++) {
        if (l->is_cancelled) { s->failed = 1; return; }
        const Class *c = &l->classes[l->class_of[block]];
        const u64 index[AXES] = {
            block % l->grid[0], block / l->grid[0] % l->grid[1], block / l->grid[0] / l->grid[1],
        };
        for (u64 k = 0; k < c->shifts; k++) {
            s->by[k] = 0;
            for (int axis = 0; axis < AXES; axis++)
                s->by[k] += l->shifts[AXES * (c->first_shift + k) + (u64)axis] * ((i64)index[axis] - c->at[axis]);
            s->by[k] /= SECTOR_BYTES;
        }
        for (u64 k = c->first; k < c->end;) {
            const u64 by = (u64)s->by[l->entries[k].shift], end = s->ends[k];
            for (; k + AT_ONCE <= end; k += AT_ONCE) {
                u64 sums[AT_ONCE], is_any = 0;
                for (u64 j = 0; j < AT_ONCE; j++) sums[j] = byte_sum((s->sectors[k + j] + by) / SECTORS, chosen);
                for (u64 j = 0; j < AT_ONCE; j++) is_any |= sums[j] == 0;
                for (u64 j = 0; is_any && j < AT_ONCE && !s->failed; j++)
                    if (!sums[j]) add(s, &l->entries[k + j], s->sectors[k + j] + by, block, is_last);
            }
            for (; k < end && !s->failed; k++)
                if (!byte_sum((s->sectors[k] + by) / SECTORS, chosen))
                    add(s, &l->entries[k], s->sectors[k] + by, block, is_last);
            if (s->failed) return;
        }
    }
}

/* The sectors of all entries, and where runs of one shift end; 0 where there is no memory. */
static int lay_out(const Launch *l, State *s, u64 entries, u64 classes) {
    s->by = calloc(l->most_shifts + 1, sizeof *s->by);
    s->sectors = calloc(entries + 1, sizeof *s->sectors);
    s->ends = calloc(entries + 1, sizeof *s->ends);
    if (!s->by || !s->sectors || !s->ends) return 0;
    for (u64 n = 0; n < classes; n++) {
        const Class *c = &l->classes[n];
        for (u64 k = c->end; k-- > c->first;) {
            const int is_run = k + 1 < c->end && l->entries[k].shift == l->entries[k + 1].shift;
            s->sectors[k] = l->entries[k].sector;
            s->ends[k] = is_run ? s->ends[k + 1] : k + 1;
        }
    }
    return 1;
}

/* Groups the accesses of a launch; their number, FAILED without memory, or TOO_MANY for `out`. */
EXPORT i64 group_accesses(const Launch *l, u64 entries, u64 classes, Visit *out, u64 most) {
    State s = {.out = out, .most = most};
    i64 result = FAILED;
    if (lay_out(l, &s, entries, classes)) {
        each_access(l, &s, 0);
        /* the lines of each group in the low half, and the slot of the one that stands for them */
        for (u64 k = 0; k < s.signatures.size && !s.failed; k++) {
            if (!s.signatures.slots[k].value) continue;
            Slot *group = found(&s.groups, s.signatures.slots[k].value);
            if (!group) s.failed = 1;
            else group->value = group->value ? group->value + 1 : k << 32 | 1;
        }
        if (!s.failed) {
            each_access(l, &s, 1);
            result = s.failed ? TOO_MANY : (i64)s.count;
        }
    }
    free(s.by);
    free(s.sectors);
    free(s.ends);
    free(s.signatures.slots);
    free(s.groups.slots);
    return result;
}

/* Sizes of the structures that Python declares too. */
EXPORT void group_sizes(u32 *sizes) {
    const u32 all[] = {sizeof(Entry), sizeof(Class), sizeof(Launch), sizeof(Visit)};
    memcpy(sizes, all, sizeof all);
}
