/* Double precision, in register pairs. */
#ifndef DOUBLE_H
#define DOUBLE_H

#include "core.h"
#include "lanes.h"

#define SIGN64 0x8000000000000000u
#define INF64 0x7ff0000000000000u
#define QUIET64 0x0008000000000000u

#define REAL64(name, k)        \
    u64 name##_room[LANES];    \
    const u64 *const name = source64(w, i, k, name##_room)

static inline int is_nan64(u64 x) { return (x & ~SIGN64) > INF64; }

static inline void merge64(u32 *d, const u64 *r, u32 m) {
    IVDEP FOR_LANES d[l] = m >> l & 1 ? (u32)r[l] : d[l];
    IVDEP FOR_LANES
        d[l + LANES] = m >> l & 1 ? (u32)(r[l] >> 32) : d[l + LANES];
}

static inline void merge_result64(Warp *w, const Ins *i, const u64 *r, u32 m) {
    merge64(vector(w, i->d[0]), r, m);
}

/* pd[0]: the first source is the extreme (the greatest; the least where flags say so), +0 above
 * -0, a number before a NaN; pd[1]: both are NaN. */
enum { LEAST = 1 };

#endif
