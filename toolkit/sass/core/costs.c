#include "costs.h"

#include <string.h>

#include "lanes.h"

/* True if x grows from each lane in m to the next one: no two of them have the same value. */
static int grows(const u64 *x, u32 m) {
    if (m == FULL) {
        u32 falls = 0;
        for (int l = 1; l < LANES; l++) falls |= x[l] <= x[l - 1];
        return !falls;
    }
    for (u32 rest = m & (m - 1), before = m & (0u - m); rest; before = rest & (0u - rest), rest &= rest - 1)
        if (x[__builtin_ctz(rest)] <= x[__builtin_ctz(before)]) return 0;
    return 1;
}

/* Mask of the first lane for each distinct value among x[l] of the lanes in m. Values are told apart by a table of lanes,
 * with twice as many places as there are lanes. */
u32 first_lanes(const u64 *x, u32 m) {
    enum { PLACES = 2 * LANES, NOBODY = LANES };
    u8 lane_at[PLACES];
    u32 found = m & (0u - m);
    if (grows(x, m)) return m;
    const u64 first = x[__builtin_ctz(m)];
    m &= ~LANE_BITS(x[l] == first);
    memset(lane_at, NOBODY, sizeof lane_at);
    for (; m; m &= m - 1) {
        const u32 l = (u32)__builtin_ctz(m);
        u32 at = (u32)(x[l] * 0x9e3779b97f4a7c15ull >> 32) % PLACES;
        while (lane_at[at] != NOBODY && x[lane_at[at]] != x[l]) at = (at + 1) % PLACES;
        if (lane_at[at] != NOBODY) continue;
        lane_at[at] = (u8)l;
        found |= 1u << l;
    }
    return found;
}

/* Number of distinct values. */
int distinct(const u64 *x, u32 m) { return popcount(first_lanes(x, m)); }

u32 sectors_of(const u64 *a, u32 m) {
    u64 sector[LANES];
    FOR_LANES sector[l] = a[l] / SECTOR;
    return (u32)distinct(sector, m);
}

/* Words in the fullest bank, over accesses of `width` bytes by the lanes in m. */
u32 fullest_bank(const u64 *a, u32 width, u32 m) {
    u8 words[BANKS] = {0};
    u64 piece[LANES];
    const u32 unit = width < WORD ? WORD : width;
    u32 most = 0;
    FOR_LANES piece[l] = a[l] / unit;
    for (m = first_lanes(piece, m); m; m &= m - 1) {
        const u64 first = piece[__builtin_ctz(m)];
        for (u32 k = 0; k < unit / WORD; k++) {
            u8 *bank = &words[(first * (unit / WORD) + k) % BANKS];
            if (++*bank > most) most = *bank;
        }
    }
    return most;
}

/* True if lanes at `distance` read the same address, for all pairs with both lanes active. */
static int pairs_agree(const u64 *a, u32 m, int distance) {
    FOR_LANES
        if (m >> l & 1 && m >> (l ^ distance) & 1 && a[l] != a[l ^ distance]) return 0;
    return 1;
}

/* Wavefronts of a shared request and those it would take without bank conflicts: the rule of
 * analysis.coalescing.shared_wavefronts, which a test holds against this one. */
u32 wavefronts_of(const u64 *a, u32 width, int is_store, u32 m, u32 *conflict_free) {
    int groups = width <= WORD ? 1 : (int)(width / WORD);
    u32 total = 0;
    if (!is_store && groups > 1 && (pairs_agree(a, m, 1) || pairs_agree(a, m, 2))) groups /= 2;
    *conflict_free = 0;
    for (int g = 0; g < groups; g++) {
        const int lanes = LANES / groups;
        const u32 of_group = m & ((lanes == LANES ? FULL : (1u << lanes) - 1) << g * lanes);
        if (!of_group) continue;
        total += fullest_bank(a, width, of_group);
        ++*conflict_free;
    }
    return total;
}

/* Wavefronts of an atomic operation on shared memory. Lanes with one address take turns; their turns are none that
 * other addresses would save. */
u32 turns_of(const u64 *a, u32 width, u32 m, u32 *conflict_free) {
    const int groups = width <= WORD ? 1 : (int)(width / WORD), lanes = LANES / groups;
    u32 total = 0;
    *conflict_free = 0;
    for (int g = 0; g < groups; g++) {
        u8 of_bank[BANKS] = {0}, most = 0, most_alike = 0;
        FOR_LANES {
            if (l / lanes != g || !(m >> l & 1)) continue;
            u8 *bank = &of_bank[a[l] / WORD % BANKS], alike = 0;
            for (int k = g * lanes; k < (g + 1) * lanes; k++) alike += (m >> k & 1) && a[k] == a[l];
            if (++*bank > most) most = *bank;
            if (alike > most_alike) most_alike = alike;
        }
        total += most;
        *conflict_free += most_alike;
    }
    return total;
}
