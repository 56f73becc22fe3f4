/* Vectors of 32 lanes: how operations read and write them. */
#pragma once

#include <string.h>

#include "core.h"

#ifdef __clang__
#define IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define IVDEP _Pragma("GCC ivdep")
#endif

/* For each lane l; for those of mask m alone. */
#define FOR_LANES for (int l = 0; l < LANES; l++)
#define FOR_LANES_OF(m) FOR_LANES if ((m) >> l & 1)

static inline u32 *vector(const Warp *w, u32 slot) {
    return (slot & POOL ? (u32 *)w->pool : w->v) + (size_t)(slot & ~POOL) * LANES;
}

static inline u32 predicate(const Warp *w, u8 slot) {
    return w->p[slot & ~PREDICATE_NOT] ^ (slot & PREDICATE_NOT ? FULL : 0);
}

static inline void set_predicate(Warp *w, u8 slot, u32 value, u32 m) {
    w->p[slot] = (w->p[slot] & ~m) | (value & m);
}

/* x after what its modifiers say, in the order of their bits. */
static inline u32 modified(u32 x, u8 mod) {
    const u32 pair = 0x80008000u, one = 0x80000000u, negate = mod & MOD_INT_NEG ? FULL : 0;
    const u32 drop = (mod & MOD_F32_ABS ? one : 0) | (mod & MOD_F16_ABS ? pair : 0);
    const u32 flip = (mod & MOD_F32_NEG ? one : 0) ^ (mod & MOD_F16_NEG ? pair : 0) ^
                     (mod & MOD_NOT ? FULL : 0);
    return (((x & ~drop) ^ flip) ^ negate) - negate;
}

/* Source k as 32-bit words; `room` is used where a modifier changes them. */
static inline const u32 *source(const Warp *w, const Ins *i, int k, u32 *room) {
    const u32 *x = vector(w, i->s[k]);
    const u8 mod = i->mod[k];
    if (!mod) return x;
    IVDEP FOR_LANES room[l] = modified(x[l], mod);
    return room;
}

/* Source k as 64-bit words of a register pair; F64 modifiers applied, NOT over all 64 bits. */
static inline const u64 *source64(const Warp *w, const Ins *i, int k, u64 *room) {
    const u32 *low = vector(w, i->s[k]), *high = low + LANES;
    const u8 mod = i->mod[k];
    FOR_LANES room[l] = (u64)high[l] << 32 | low[l];
    if (mod)
        FOR_LANES {
            u64 x = room[l];
            if (mod & MOD_F64_ABS) x &= ~(1ull << 63);
            if (mod & MOD_F64_NEG) x ^= 1ull << 63;
            if (mod & MOD_NOT) x = ~x;
            if (mod & MOD_INT_NEG) x = 0ull - x;
            room[l] = x;
        }
    return room;
}

static inline void put64(u32 *d, int l, u64 x) {
    d[l] = (u32)x;
    d[l + LANES] = (u32)(x >> 32);
}

static inline float as_float(u32 x) { float f; memcpy(&f, &x, 4); return f; }
static inline u32 as_bits(float f) { u32 x; memcpy(&x, &f, 4); return x; }
static inline double as_double(u64 x) { double f; memcpy(&f, &x, 8); return f; }
static inline u64 as_bits64(double f) { u64 x; memcpy(&x, &f, 8); return x; }

/* One bit per lane from words that are 0 or ~0. */
static inline u32 bits_of(const u32 *truth) {
    u32 mask = 0;
    FOR_LANES mask |= (truth[l] >> 31) << l;
    return mask;
}

/* The bits of `condition` over the lanes, as a predicate. */
#define LANE_BITS(condition)                                \
    ({                                                      \
        u32 truth_[LANES];                                  \
        IVDEP FOR_LANES truth_[l] = (condition) ? FULL : 0; \
        bits_of(truth_);                                    \
    })

/* Predicate k that the instruction reads, and writes: a value that is not needed is not computed. */
#define READ_PREDICATE(k) predicate(w, i->ps[k])
#define WRITE_PREDICATE(k, value)                                                 \
    do {                                                                          \
        if (i->pd[k] != PREDICATE_DISCARD) set_predicate(w, i->pd[k], value, m);  \
    } while (0)

#define SOURCE(name, k)        \
    u32 name##_room[LANES];    \
    const u32 *const name = source(w, i, k, name##_room)
#define SOURCE64(name, k)      \
    u64 name##_room[LANES];    \
    const u64 *const name = source64(w, i, k, name##_room)
/* Sources by their usual names, each read as `KIND` does: SOURCE or SOURCE64 */
#define READ_AB(KIND) KIND(a, 0); KIND(b, 1)
#define READ_ABC(KIND) READ_AB(KIND); KIND(c, 2)

/* The vector that source k names, as it is before its modifiers, and the one that is written. */
#define RAW(k) vector(w, i->s[k])
#define DESTINATION vector(w, i->d[0])

/* d[l] = value for the lanes of m; computed for all, as it has no effect beside its value. */
#define WRITE(m, d, value)                                             \
    do {                                                               \
        if ((m) == FULL) {                                             \
            IVDEP FOR_LANES (d)[l] = (value);                          \
        } else {                                                       \
            u32 result_[LANES];                                        \
            IVDEP FOR_LANES result_[l] = (value);                      \
            IVDEP FOR_LANES (d)[l] = (m) >> l & 1 ? result_[l] : (d)[l]; \
        }                                                              \
    } while (0)

/* Word k of the register that the instruction writes; its only word, or both of a pair. */
#define RESULT_WORD(k, value)                            \
    do {                                                 \
        u32 *const d_ = DESTINATION + (k) * LANES; \
        WRITE(m, d_, value);                             \
    } while (0)
#define RESULT(value) RESULT_WORD(0, value)
#define RESULT64(value)                           \
    do {                                          \
        RESULT_WORD(0, (u32)(value));             \
        RESULT_WORD(1, (u32)((value) >> 32));     \
    } while (0)

static inline i32 as_signed(u32 x) { return (i32)x; }

/* The lanes for which a uniform register or predicate is written: those that run together. Hardware
 * has one register for the warp, and lanes that a branch or a predicated barrier parted do not
 * interrupt each other between its write and its uses. Here they may: each lane keeps its own. */
static inline u32 together(const Warp *w) { return w->groups > 1 ? w->group[w->current].mask : FULL; }

/* A predicate of the uniform file is written for all lanes that run, whatever the guard says. */
static inline void set_truth(Warp *w, u8 slot, u32 value, u32 m) {
    const int uniform = slot > PT && slot <= UPT;
    set_predicate(w, slot, value, uniform ? together(w) : m);
}
