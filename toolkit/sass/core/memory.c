#include "memory.h"

#include <string.h>

#include "costs.h"
#include "lanes.h"
#include "operations.h"
#include "requests.h"
#include "space.h"
#include "stream.h"
#include "tally.h"
#include "trace.h"

enum { GENERAL = 0, BROADCAST, CONTIGUOUS };

/* The place for a shape: warps whose first or last lanes are off take turns, and have places of their own. */
static Memo *memo_of(const Worker *c, u32 delta, u32 m) {
    return (Memo *)c->memo + (size_t)c->pc * SHAPES + ((delta >> SHAPE_SHIFT) + popcount(~m)) % SHAPES;
}
static int last_lane(u32 m) { return LANES - 1 - __builtin_clz(m); }

static void add_cost(Count *count, const Memo *memo, u32 phase, int shared) {
    count->requests++;
    count->ideal += memo->ideal;
    if (shared) {
        count->wavefronts += memo->cost[phase];
        count->conflict_free += memo->conflict_free;
    } else {
        count->sectors += memo->cost[phase];
    }
}

/* Learn the shape of a request, and what it costs at this place in a sector. Inactive lanes of `a`
 * hold the address of the first active one. */
static void learn(Memo *memo, const Ins *i, const u64 *a, u32 m, u32 space, int is_store) {
    const u64 first = a[__builtin_ctz(m)];
    const u32 phase = (u32)first % PHASES;
    const int shared = space == SPACE_SHARED;
    u32 contiguous = m == FULL, broadcast = 1, same = memo->mask == m;
    i64 low = 0, high = 0;
    FOR_LANES {
        const i64 delta = (i64)(a[l] - first);
        low = delta < low ? delta : low;
        high = delta > high ? delta : high;
        same &= memo->delta[l] == (u32)delta;
        contiguous &= delta == (i64)l * i->width;
        broadcast &= delta == 0;
        memo->delta[l] = (u32)delta;
    }
    if (!same || low != memo->low || high != memo->high) {
        memo->known = 0;
        memo->kind = contiguous ? CONTIGUOUS : broadcast ? BROADCAST : GENERAL;
        memo->owners = first_lanes(a, m);
        memo->ideal = ceil_div(popcount(memo->owners) * i->width,
                               shared ? BANKS * WORD : SECTOR);
        memo->low = (i32)low;
        memo->high = (i32)high;
    }
    /* a shape that does not fit into 32 bits is learnt anew each time */
    memo->mask = low < INT32_MIN || high > INT32_MAX ? 0 : m;
    memo->cost[phase] = (u16)(!shared ? sectors_of(a, m)
                              : is_store & LANES_IN_TURN ? turns_of(a, i->width, m, &memo->conflict_free)
                              : wavefronts_of(a, i->width, is_store & STORES, m, &memo->conflict_free));
    if (shared && is_store & TWICE) {
        memo->cost[phase] *= 2;
        memo->conflict_free *= 2;
    }
    memo->known |= 1u << phase;
}

/* Count a request; the shape of its addresses. `is_store`: 0 for loads, STORES and what else holds. */
u32 count_request(Worker *c, const Ins *i, const u64 *a, u32 m, u32 space, int is_store) {
    Memo *memo = memo_of(c, (u32)(a[last_lane(m)] - a[__builtin_ctz(m)]), m);
    learn(memo, i, a, m, space, is_store);
    add_cost(&c->count[c->pc], memo, (u32)a[__builtin_ctz(m)] % PHASES, space == SPACE_SHARED);
    return memo->kind;
}

/* The addresses of a request; inactive lanes get that of the first active one. */
void addresses(const Warp *w, const Ins *i, u32 m, u64 *a) {
    const u32 *low = RAW(0), *uniform = RAW(1) + __builtin_ctz(m);
    const u32 scale = i->flags >> SCALE_SHIFT & 7;
    const u64 base = uniform[0] | (i->flags & UNIFORM_64 ? (u64)uniform[LANES] << 32 : 0);
    if (i->flags & ADDRESS_64) {
        const u64 offset = base + (u64)i->imm;
        FOR_LANES
            a[l] = ((u64)low[LANES + l] << 32 | low[l]) + offset;
    } else if (i->flags & UNIFORM_64) {
        const u64 offset = base + (u64)i->imm;
        FOR_LANES
            a[l] = ((i->flags & ADDRESS_SIGNED ? (u64)(i64)(i32)low[l] : low[l]) << scale) + offset;
    } else { /* 32-bit spaces: the sum wraps */
        const u32 offset = (u32)base + (u32)i->imm;
        FOR_LANES a[l] = (u32)((low[l] << scale) + offset);
    }
    if (m != FULL) narrow(a, m);
}

/* Local memory is interleaved by words, so that a warp's same variable is one run of bytes. */
static void interleave(u64 *a) {
    FOR_LANES
        a[l] = a[l] / WORD * (LANES * WORD) + (u64)l * WORD + a[l] % WORD;
}

/* Each word of a local access is a request of its own. */
static void count_local(Worker *c, const Warp *w, const Ins *i, const u64 *local, u32 m) {
    Count *count = &c->count[c->pc];
    const u32 words = i->width < WORD ? 1 : i->width / WORD;
    count->requests += words;
    for (u32 k = 0; k < words; k++) {
        u64 a[LANES];
        FOR_LANES a[l] = local[l] + k * WORD;
        interleave(a);
        count->sectors += sectors_of(a, m);
        if (c->stream) stream_request(c, a, WORD, m, local_space(c, w));
    }
    count->ideal += ceil_div(popcount(m) * i->width, SECTOR);
}

static inline u32 word_at(const u8 *p) { u32 x; memcpy(&x, p, 4); return x; }

/* A value of less than a word. */
static inline u32 narrow_at(const Ins *i, const u8 *p) {
    const u32 spare = 32 - 8 * i->width;
    u32 x = 0;
    memcpy(&x, p, i->width);
    return i->flags & SIGNED_DATA ? (u32)(as_signed(x << spare) >> spare) : x;
}

static void read_wide(const Warp *w, const Ins *i, u8 *const *at, u32 m) {
    for (u32 k = 0, n[2] = {0, 0}; k < WIDE_WORDS; k++) {
        const u32 half = k / HALF_WORDS;
        if (!(i->aux >> k & 1)) continue;
        u32 *d = vector(w, i->d[half]) + n[half]++ * LANES;
        FOR_LANES_OF(m) d[l] = word_at(at[l] + k * WORD);
    }
}

static void write_wide(const Warp *w, const Ins *i, u8 *const *at, u32 m) {
    for (u32 k = 0; k < WIDE_WORDS; k++) {
        const u32 *x = RAW(2 + k / HALF_WORDS) + k % HALF_WORDS * LANES;
        FOR_LANES_OF(m) memcpy(at[l] + k * WORD, &x[l], WORD);
    }
}

static void read_lanes(const Ins *i, u8 *const *at, u32 kind, u32 m, u32 *d) {
    const u32 words = i->width / WORD;
    if (words == 1 && m == FULL && kind == CONTIGUOUS) {
        memcpy(d, at[0], LANES * WORD);
    } else if (words == 1 && kind == BROADCAST) {
        const u32 x = word_at(at[__builtin_ctz(m)]);
        WRITE(m, d, x);
    } else if (words == 4 && m == FULL) {
        u32 quads[LANES][4];
        FOR_LANES memcpy(quads[l], at[l], sizeof quads[l]);
        for (int k = 0; k < 4; k++)
            FOR_LANES d[k * LANES + l] = quads[l][k];
    } else {
        FOR_LANES_OF(m) {
            if (!words) d[l] = narrow_at(i, at[l]);
            for (u32 k = 0; k < words; k++) d[k * LANES + l] = word_at(at[l] + k * WORD);
        }
    }
}

static void write_lanes(const Ins *i, u8 *const *at, u32 kind, u32 m, const u32 *x) {
    const u32 words = i->width / WORD;
    if (words == 1 && m == FULL && kind == CONTIGUOUS) {
        memcpy(at[0], x, LANES * WORD);
        return;
    }
    FOR_LANES_OF(m) {
        if (!words) memcpy(at[l], &x[l], i->width);
        for (u32 k = 0; k < words; k++) memcpy(at[l] + k * WORD, &x[k * LANES + l], WORD);
    }
}

/* Note what a request accesses of global memory, where that is wanted. */
void note_access(Worker *c, Warp *w, const Ins *i, const u64 *a, u32 m, u32 space, u32 kind) {
    if (space != SPACE_GLOBAL) return;
    if (c->trace) trace_request(c, w, a, i->width, m, kind);
    if (c->stores && kind == TRACE_WRITE) tally_stores(c->stores, a, m, w->stores++, c->pc);
    if (c->stream) stream_request(c, a, i->width, m, 0);
}

/* Move the data of the lanes in m. `owners` are those that have all of their addresses. */
ALWAYS_INLINE void move_lanes(Worker *c, Warp *w, const Ins *i, u8 *const *at, u32 kind, u32 m, u32 owners,
                              u32 space, int is_store) {
    if (space == SPACE_SHARED) {
        if (is_store) mark_written(c, i, at, m);
        else check_written(c, w, i, at, m, owners);
    }
    c->changes += (u32)is_store;
    if (i->width == WIDE_BYTES && is_store) write_wide(w, i, at, m);
    else if (i->width == WIDE_BYTES) read_wide(w, i, at, m);
    else if (is_store) write_lanes(i, at, kind, m, RAW(2));
    else read_lanes(i, at, kind, m, DESTINATION);
}

/* One space, all lanes of m. */
static void access_space(Worker *c, Warp *w, const Ins *i, u32 m, u32 space, u64 *a,
                         int is_store) {
    u8 *at[LANES];
    u32 kind = GENERAL;
    if (space == SPACE_SHARED) own_shared(c, a);
    const int found = resolve(c, w, i, a, m, space, is_store, at);
    if (!found) return;
    if (space == SPACE_LOCAL) count_local(c, w, i, a, m);
    else kind = count_request(c, i, a, m, space, is_store);
    if (found == APART) kind = GENERAL;
    note_access(c, w, i, a, m, space, (u32)is_store);
    if (c->requests) note_request(c, w, a, m, space);
    move_lanes(c, w, i, at, kind, m, m, space, is_store);
}

/* A request of the shape that this instruction had before, in one buffer: most are. Whether it
 * was one; if not, nothing was done. */
ALWAYS_INLINE int access_alike(Worker *c, Warp *w, const Ins *i, u32 m, u32 space, int is_store) {
    const Launch *launch = c->launch;
    if (space == SPACE_LOCAL) return 0;
    const u32 *low = RAW(0), *uniform = RAW(1);
    const u32 scale = i->flags >> SCALE_SHIFT & 7;
    const int lead = __builtin_ctz(m);
    const u32 base = low[lead];
    const Memo *memo = memo_of(c, (low[last_lane(m)] - base) << scale, m);
    if (memo->mask != m) return 0;
    u32 differs = 0;
    if (m == FULL) {
        FOR_LANES differs |= ((low[l] - base) << scale) ^ memo->delta[l];
    } else {
        FOR_LANES
            differs |= (((low[l] - base) << scale) ^ memo->delta[l]) & (0u - (m >> l & 1));
    }
    if (differs) return 0;
    u64 first, offset = uniform[lead];
    if (i->flags & UNIFORM_64) offset |= (u64)uniform[lead + LANES] << 32;
    offset += (u64)i->imm;
    if (i->flags & ADDRESS_64) {
        const u32 *high = low + LANES;
        FOR_LANES differs |= (high[l] ^ high[lead]) & (0u - (m >> l & 1));
        /* beyond the 32 bits that were compared */
        if (differs || (i64)base + memo->low < 0 || (i64)base + memo->high > UINT32_MAX) return 0;
        first = ((u64)high[lead] << 32 | base) + offset;
    } else if (i->flags & UNIFORM_64) {
        return 0;
    } else {
        first = (u32)((base << scale) + (u32)offset);
        if (first >> SHARED_WINDOW_BITS && first >> SHARED_WINDOW_BITS == c->block->rank)
            first &= (1u << SHARED_WINDOW_BITS) - 1;
        if ((i64)first + memo->low < 0 || (i64)first + memo->high > UINT32_MAX) return 0;
    }
    const u32 phase = (u32)first % PHASES;
    if (!(memo->known >> phase & 1) || first & (i->width - 1)) return 0;
    const u64 from = first + (u64)(i64)memo->low, to = first + (u64)(i64)memo->high + i->width;
    u8 *host;
    if (space == SPACE_SHARED) {
        if (from < launch->shared_base || to > launch->shared_bytes) return 0;
        host = c->block->shared + first;
    } else {
        const Allocation *all = buffer_of(c, from, to, is_store);
        if (!all || !(host = host_of(all, from, to, is_store))) return 0;
        host -= (i64)memo->low;
    }
    u8 *at[LANES];
    IVDEP FOR_LANES at[l] = host + (i64)(i32)memo->delta[l];
    add_cost(&c->count[c->pc], memo, phase, space == SPACE_SHARED);
    if (c->requests || ((c->trace || c->stream) && space == SPACE_GLOBAL)) {
        u64 a[LANES];
        FOR_LANES a[l] = first + (u64)(i64)(i32)memo->delta[l];
        note_access(c, w, i, a, m, space, (u32)is_store);
        if (c->requests) note_request(c, w, a, m, space);
    }
    move_lanes(c, w, i, at, memo->kind, m, memo->owners, space, is_store);
    return 1;
}

void access_part(Worker *c, const Access *x, const u64 *a, u32 part, u32 space, u64 start) {
    u64 b[LANES];
    if (!part || c->fault.kind) return;
    const u64 first = a[__builtin_ctz(part)];
    FOR_LANES b[l] = (part >> l & 1 ? a[l] : first) - start;
    x->act(c, x->w, x->i, part, space, b, x->is_store);
}

/* Shared memory, block by block of the cluster: the others' is accessed in their place. */
void access_shared_parts(Worker *c, const Access *x, const u64 *a, u32 part) {
    Block *own = c->block;
    for (u32 rank = 0; rank < c->cluster_size; rank++) {
        const u64 start = c->launch->shared_window + ((u64)rank << SHARED_WINDOW_BITS);
        const u32 here = LANE_BITS((a[l] - start) >> SHARED_WINDOW_BITS == 0);
        c->block = own->cluster + rank;
        access_part(c, x, a, here & part, SPACE_SHARED, start);
        c->block = own;
    }
    if (c->fault.kind) c->fault.block = own->index;
}

/* Any request; apart, so that what most of them are stays a small function. */
static NOINLINE void access_any(Worker *c, Warp *w, const Ins *i, u32 m, int is_store) {
    const u32 space = space_of(i);
    u64 a[LANES];
    addresses(w, i, m, a);
    if (space != SPACE_GENERIC) {
        access_space(c, w, i, m, space, a, is_store);
        return;
    }
    const Spaces in = spaces_of(c, a, m);
    const Access access = {.w = w, .i = i, .act = access_space, .is_store = is_store};
    access_part(c, &access, a, in.local, SPACE_LOCAL, c->launch->local_window);
    access_part(c, &access, a, in.global, SPACE_GLOBAL, 0);
    access_shared_parts(c, &access, a, in.shared);
}

ALWAYS_INLINE void access_memory(Worker *c, Warp *w, const Ins *i, u32 m, int is_store) {
    const u32 space = space_of(i);
    if (space == SPACE_GENERIC || !access_alike(c, w, i, m, space, is_store)) access_any(c, w, i, m, is_store);
}

/* A warp that repeats its last request, while no memory has changed, lets others go on. */
static void note_question(Worker *c, Warp *w, const Ins *i, u32 m) {
    u64 a[LANES];
    addresses(w, i, m, a);
    const u64 address = a[__builtin_ctz(m)];
    const Question now = {.changes = c->changes, .address = address, .pc = c->pc, .lanes = m};
    if (!memcmp(&now, &w->asked, sizeof now)) /* it has no gaps */
        w->ends_slice = c->asked_again = 1;
    w->asked = now;
}

OPERATION(LOAD) {
    if (i->flags & STRONG) note_question(core, w, i, m);
    access_memory(core, w, i, m, 0);
}
OPERATION(STORE) { access_memory(core, w, i, m, 1); }

/* Number of distinct offsets of the lanes in m. */
static u32 distinct_words(const u32 *offset, u32 m) {
    u64 x[LANES];
    FOR_LANES x[l] = offset[l];
    return (u32)distinct(x, m);
}

/* A constant load whose address is in a register: LDC, ULDC. s[0] offset in bytes, aux the bank. */
OPERATION(LOAD_CONSTANT) {
    const Bank *bank = &core->launch->banks[i->aux % BANKS_OF_CONSTANTS];
    const u32 *offset = RAW(0);
    u8 *at[LANES];
    FOR_LANES_OF(m) {
        const u64 from = (u32)(offset[l] + (u32)i->imm);
        if (from % i->width || from + i->width > bank->bytes) {
            memory_fault(core, w, from % i->width ? MISALIGNED : OUT_OF_BOUNDS, SPACE_CONSTANT, l, from, i->width, 0);
            return;
        }
        at[l] = bank->data + from;
        for (u64 word = from / WORD; bank->read && word * WORD < from + i->width; word++) bank->read[word] = 1;
    }
    if (core->stream) {
        add_clocks(core->stream, distinct_words(offset, m));
        if (i->flags & INDEXED) stream_constants(core->stream, i->aux, offset, (u32)i->imm, m);
    }
    read_lanes(i, at, GENERAL, m, DESTINATION);
}
