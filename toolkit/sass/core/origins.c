#include "origins.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

/* Blocks: with fewer in a window, nearly every block would be of a class of its own. */
enum { LEAST_IN_WINDOW = 32, FEW_WINDOWS = 4 };

static const i64 TOO_FAR = 1ll << 60;

void free_origins(Origins *o) {
    if (!o) return;
    free(o->swaps); free(o->registers); free(o->predicates); free(o->shared); free(o->local); free(o->of);
    free(o->reach);
    free(o);
}

Origins *new_origins(const Launch *launch, u32 warps) {
    Origins *o;
    if (!ZEROS(o, 1)) return NULL;
    o->launch = launch;
    o->warps = warps;
    if (ZEROS(o->swaps, (size_t)warps * SWAPS) && ZEROS(o->registers, (size_t)warps * launch->slots * LANES) &&
        ZEROS(o->predicates, (size_t)warps * PREDICATES * LANES) && ZEROS(o->shared, shared_words(launch)) &&
        ZEROS(o->local, (size_t)warps * LANES * local_words(launch) + 1) && ZEROS(o->of, launch->length) &&
        ZEROS(o->reach, launch->allocation_count + 1))
        return o;
    free_origins(o);
    return NULL;
}

/* Start the next block: keep only the dependences of instructions, and what they reach. */
void begin_origins(Origins *o) {
    const Launch *launch = o->launch;
    o->count = o->of_shared = o->of_local = o->reduced = 0;
    o->next_swap = 0;
    memset(o->swaps, 0, (size_t)o->warps * SWAPS * sizeof *o->swaps);
    memset(o->bucket, 0, sizeof o->bucket);
    memset(o->period_bits, 0, sizeof o->period_bits);
    memset(o->registers, 0, (size_t)o->warps * launch->slots * LANES * sizeof(u16));
    memset(o->predicates, 0, (size_t)o->warps * PREDICATES * LANES * sizeof(u16));
    memset(o->shared, 0, shared_words(launch) * sizeof(u16));
    memset(o->local, 0, (size_t)o->warps * LANES * local_words(launch) * sizeof(u16));
}

const Affine *affine_origins(const Origins *o, u32 *count, u32 periods[3]) {
    *count = o->count;
    for (int axis = 0; axis < 3; axis++) periods[axis] = 1u << o->period_bits[axis];
    return o->affine;
}

const Dependence *dependences(const Origins *o) { return o->of; }

const Reach *reaches(const Origins *o) { return o->reach; }

/* The origin of values that grow by these per block. */
u16 growing(Origins *o, const __int128 c[3]) {
    i64 exact[3];
    u64 hash = 0;
    for (int axis = 0; axis < 3; axis++) {
        const __int128 x = o->launch->grid[axis] > 1 ? c[axis] : 0, far = x * o->launch->grid[axis];
        if (far > TOO_FAR || far < -TOO_FAR) return BLOCK_INDEX;
        exact[axis] = (i64)x;
        hash = (hash ^ (u64)x) * 0x9e3779b97f4a7c15ull;
    }
    if (!exact[0] && !exact[1] && !exact[2]) return SAME;
    for (u32 k = (u32)(hash >> 40);; k++) {
        u16 *const place = &o->bucket[k % BUCKETS];
        if (*place && !memcmp(affine_of(o, *place)->c, exact, sizeof exact)) return *place;
        if (*place) continue;
        if (o->count == MOST_AFFINE) return BLOCK_INDEX;
        o->affine[o->count] = (Affine){.c = {exact[0], exact[1], exact[2]}, .low = -TOO_FAR, .high = TOO_FAR};
        *place = (u16)(FIRST_AFFINE + o->count++);
        return *place;
    }
}

/* Origin of x * by + y * times. */
u16 combination(Origins *o, u16 x, i64 by, u16 y, i64 times) {
    if (!is_known(x) || !is_known(y)) return kind_of_two(x, y);
    if (by == 1 && y == SAME) return x;
    __int128 c[3] = {0};
    for (int axis = 0; axis < 3; axis++) {
        if (x) c[axis] += (__int128)affine_of(o, x)->c[axis] * by;
        if (y) c[axis] += (__int128)affine_of(o, y)->c[axis] * times;
    }
    return growing(o, c);
}

u16 scaled_by(Origins *o, u16 x, i64 by) { return combination(o, x, by, SAME, 0); }

/* Origin of a product of which only the lowest 32 bits matter. */
u16 word_scaled_by(Origins *o, u16 x, i64 by) {
    if (!is_affine(x)) return x;
    __int128 c[3];
    for (int axis = 0; axis < 3; axis++) {
        const __int128 whole = (__int128)WRAP_32 * UNIT, product = (__int128)affine_of(o, x)->c[axis] * by;
        c[axis] = product % whole;
        if (c[axis] >= whole / 2) c[axis] -= whole;
        if (c[axis] < -whole / 2) c[axis] += whole;
    }
    return growing(o, c);
}

/* Blocks whose value of this origin differs by less than `low` or more than `high` may do something else. */
void limit(Origins *o, u16 origin, i64 low, i64 high) {
    if (o->under || !is_affine(origin)) return;
    Affine *const x = affine_of(o, origin);
    low = (low < -FAR_AWAY ? -FAR_AWAY : low) * UNIT;
    high = (high > FAR_AWAY ? FAR_AWAY : high) * UNIT;
    if (low > x->low) x->low = low;
    if (high < x->high) x->high = high;
}

/* A value that must stay in a range, and be itself, not wrap. */
void keep_within(Origins *o, u16 origin, i64 value, i64 least, i64 most) {
    limit(o, origin, least - value, most - value);
}
void keep_unsigned(Origins *o, u16 origin, u32 value) { keep_within(o, origin, value, 0, UINT32_MAX); }
void keep_signed(Origins *o, u16 origin, u32 value) {
    keep_within(o, origin, as_signed(value), INT32_MIN, INT32_MAX);
}
void keep_sign(Origins *o, u16 origin, u32 value, u32 is_signed) {
    if (is_signed) keep_signed(o, origin, value);
    else keep_unsigned(o, origin, value);
}

/* True if blocks at some period have the same lowest `bits`; that period is then noted. */
int is_whole(Origins *o, u16 origin, u32 bits) {
    u32 needed[3] = {0};
    if (!is_affine(origin) || !bits) return 1;
    for (int axis = 0; axis < 3; axis++) {
        const i64 c = affine_of(o, origin)->c[axis];
        const u32 zeros = c ? (u32)__builtin_ctzll((u64)c) : 64, wanted = bits + FRACTION_BITS;
        if (wanted > zeros) needed[axis] = wanted - zeros;
        if (needed[axis] > MOST_PERIOD_BITS) return 0;
    }
    for (int axis = 0; axis < 3 && !o->under; axis++)
        if (needed[axis] > o->period_bits[axis]) o->period_bits[axis] = needed[axis];
    return 1;
}

/* True if many consecutive blocks have values in one window of 2^bits, or all blocks in a few windows. */
int is_wide(Origins *o, u16 origin, u32 bits) {
    for (int axis = 0; is_affine(origin) && axis < 3; axis++) {
        const i64 window = UNIT << bits, c = llabs(affine_of(o, origin)->c[axis]);
        if (c > window / LEAST_IN_WINDOW && c > window / o->launch->grid[axis] * FEW_WINDOWS) return 0;
    }
    return 1;
}

/* Origin of a value shifted right by n < 32 bits. */
u16 shifted_right(Origins *o, u16 origin, u32 value, u32 n, u32 is_signed) {
    if (!is_affine(origin) || !n) return origin;
    const i64 x = is_signed ? as_signed(value) : (i64)value, first = x >> n << n;
    i64 all = 0;
    for (int axis = 0; axis < 3; axis++) all |= affine_of(o, origin)->c[axis];
    if ((u32)__builtin_ctzll((u64)all) >= n && is_whole(o, origin, n)) {
        __int128 c[3];
        for (int axis = 0; axis < 3; axis++) c[axis] = affine_of(o, origin)->c[axis] >> n;
        keep_sign(o, origin, value, is_signed);
        return growing(o, c);
    }
    if (!is_wide(o, origin, n)) return BLOCK_INDEX;
    keep_within(o, origin, x, first, first + (1ll << n) - 1);
    return SAME;
}

/* Origin of (value << n) >> 32: the same as long as no further bit is shifted out. */
u16 shifted_out(Origins *o, u16 origin, u32 value, u32 n) {
    if (!is_affine(origin) || !n) return kind_of(n ? origin : SAME);
    const i64 window = WRAP_32 >> n, first = value / window * window;
    keep_within(o, origin, value, first, first + window - 1);
    return SAME;
}

/* The borders within which a and b compare alike. `truth`: of less, equal and greater, one bit each. The
 * difference of their origins is `origin`, a - b is `difference`. */
void keep_order(Origins *o, u16 origin, i64 difference, u32 truth) {
    const int less = truth & 1, equal = truth >> 1 & 1, greater = truth >> 2 & 1;
    i64 least = -FAR_AWAY, most = FAR_AWAY;
    if (difference < 0) most = less != equal ? -1 : equal != greater ? 0 : FAR_AWAY;
    else if (difference > 0) least = greater != equal ? 1 : equal != less ? 0 : -FAR_AWAY;
    else {
        if (equal != less) least = 0;
        if (equal != greater) most = 0;
    }
    keep_within(o, origin, difference, least, most);
}
