/* Atomic operations and asynchronous copies. */
#ifndef ATOMICS_H
#define ATOMICS_H

#include "core.h"
#include "memory.h"

/* Ins.aux of ATOMIC: what is done, and to which type. */
enum {
    ATOMIC_ADD = 0, ATOMIC_MIN, ATOMIC_MAX, ATOMIC_AND, ATOMIC_OR, ATOMIC_XOR, ATOMIC_INC,
    ATOMIC_DEC, ATOMIC_EXCH, ATOMIC_CAS, ATOMIC_CAST
};
enum {
    TYPE_U32 = 0, TYPE_S32, TYPE_U64, TYPE_S64, TYPE_F32, TYPE_F64, TYPE_F16X2, TYPE_BF16X2
};
enum { ATOMIC_TYPE_SHIFT = 8, ATOMIC_FTZ = 1 << 16, ATOMIC_SPIN_RESULT = 1 << 17 };

static u32 flushed(u32 x) { return (x & 0x7f800000u) ? x : x & 0x80000000u; }

static float half_to_float(u16 h) {
    const u32 sign = (u32)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return as_float(sign | 0x7f800000u | fraction << 13);
    if (!exponent) {
        const float x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    return as_float(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Round to nearest even. */
static u16 float_to_half(float f) {
    const u32 x = as_bits(f), sign = x >> 16 & 0x8000u, magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7fff;
    if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00u); /* rounds beyond 65504 */
    if (magnitude < 0x38800000u) { /* subnormal: a multiple of 2^-24 */
        const float scaled = as_float(magnitude) * 0x1p24f;
        return (u16)(sign | (u32)rintf(scaled));
    }
    const u32 rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
    return (u16)(sign | (rounded - 0x38000000u) >> 13);
}

static u32 add_halves(u32 x, u32 y) {
    const u16 low = float_to_half(half_to_float((u16)x) + half_to_float((u16)y));
    const u16 high = float_to_half(half_to_float((u16)(x >> 16)) + half_to_float((u16)(y >> 16)));
    return low | (u32)high << 16;
}

static u32 to_bfloat(float f) {
    const u32 x = as_bits(f);
    return f != f ? 0x7fff : (x + 0x7fffu + (x >> 16 & 1)) >> 16;
}

static u32 add_bfloats(u32 x, u32 y) {
    return to_bfloat(as_float(x << 16) + as_float(y << 16)) |
           to_bfloat(as_float(x & 0xffff0000u) + as_float(y & 0xffff0000u)) << 16;
}

/* The value that replaces `old`; `x` is the operand (compared with in CAS), `y` the new value. */
static u64 combined(u32 what, u32 type, int ftz, u64 old, u64 x, u64 y) {
    switch (what) {
    case ATOMIC_ADD:
        switch (type) {
        case TYPE_F32:
            if (ftz)
                return flushed(as_bits(as_float(flushed((u32)old)) + as_float(flushed((u32)x))));
            return as_bits(as_float((u32)old) + as_float((u32)x));
        case TYPE_F64: return as_bits64(as_double(old) + as_double(x));
        case TYPE_F16X2: return add_halves((u32)old, (u32)x);
        case TYPE_BF16X2: return add_bfloats((u32)old, (u32)x);
        default: return old + x;
        }
    case ATOMIC_MIN:
        if (type == TYPE_S32) return (i32)x < (i32)old ? x : old;
        if (type == TYPE_S64) return (i64)x < (i64)old ? x : old;
        return x < old ? x : old;
    case ATOMIC_MAX:
        if (type == TYPE_S32) return (i32)x > (i32)old ? x : old;
        if (type == TYPE_S64) return (i64)x > (i64)old ? x : old;
        return x > old ? x : old;
    case ATOMIC_AND: return old & x;
    case ATOMIC_OR: return old | x;
    case ATOMIC_XOR: return old ^ x;
    case ATOMIC_INC: return old >= x ? 0 : old + 1;
    case ATOMIC_DEC: return old == 0 || old > x ? x : old - 1;
    case ATOMIC_EXCH: return x;
    default: return old == x ? y : old; /* CAS, CAST */
    }
}

static void atomic_space(Worker *c, Warp *w, const Ins *i, u32 m, u32 space, u64 *a) {
    u8 *at[LANES];
    const u32 what = i->aux & 0xff, type = i->aux >> ATOMIC_TYPE_SHIFT & 0xff;
    const u32 *x = vector(w, i->s[2]), *y = vector(w, i->s[3]);
    u32 *d = vector(w, i->d[0]);
    const int wide = i->width == 8;
    u32 stored = 0;
    if (!resolve(c, w, i, a, m, space, 1, at)) return;
    count_request(c, i, a, m, space, 1);
    if (c->trace && space == SPACE_GLOBAL) trace_request(c, w, a, i->width, m, TOUCH_ATOMIC);
    if (space == SPACE_SHARED) {
        check_written(c, w, i, at, m);
        mark_written(c, i, at, m);
    }
    for (int l = 0; l < LANES; l++) {
        if (!(m >> l & 1)) continue;
        u64 old = 0;
        memcpy(&old, at[l], i->width);
        const u64 operand = wide ? (u64)x[LANES + l] << 32 | x[l] : x[l];
        const u64 other = wide ? (u64)y[LANES + l] << 32 | y[l] : y[l];
        const u64 new = combined(what, type, (i->aux & ATOMIC_FTZ) != 0, old, operand, other);
        memcpy(at[l], &new, i->width);
        if (what == ATOMIC_CAST) { /* the answer is whether it was stored */
            stored |= (u32)(old == operand) << l;
            old = old == operand;
        }
        d[l] = (u32)old;
        if (wide) d[LANES + l] = (u32)(old >> 32);
    }
    if (what == ATOMIC_CAST) set_predicate(w, i->pd[0], stored, m);
}

/* A generic atomic leaves shared memory to the code behind it: its predicate says where it worked.
 */
static void op_ATOMIC(Worker *c, Warp *w, const Ins *i, u32 m) {
    const u32 space = i->flags >> SPACE_SHIFT & 7;
    const u64 window = 1ull << 24;
    u64 a[LANES];
    u32 elsewhere = 0;
    addresses(w, i, m, a);
    if (space == SPACE_GENERIC) {
        u32 in_local;
        LANE_BITS(elsewhere, a[l] - c->launch->shared_window < window);
        LANE_BITS(in_local, a[l] - c->launch->local_window < window);
        elsewhere = (elsewhere | in_local) & m;
        set_predicate(w, i->pd[0], ~elsewhere, m);
        m &= ~elsewhere;
        if (!m) return;
        const u64 first = a[__builtin_ctz(m)];
        for (int l = 0; l < LANES; l++)
            if (!(m >> l & 1)) a[l] = first;
    } else if ((i->aux & 0xff) != ATOMIC_CAST) {
        set_predicate(w, i->pd[0], FULL, m);
    }
    atomic_space(c, w, i, m, space == SPACE_GENERIC ? SPACE_GLOBAL : space, a);
}

/* QSPC: whether a generic address is in the space aux. */
static void op_IN_SPACE(Worker *c, Warp *w, const Ins *i, u32 m) {
    u64 a[LANES];
    u32 inside_it = 0;
    addresses(w, i, m, a);
    if (i->aux == SPACE_SHARED) LANE_BITS(inside_it, a[l] - c->launch->shared_window < 1ull << 24);
    if (i->aux == SPACE_LOCAL) LANE_BITS(inside_it, a[l] - c->launch->local_window < 1ull << 24);
    if (i->aux == SPACE_GLOBAL)
        LANE_BITS(inside_it, a[l] - c->launch->shared_window >= 1ull << 24 &&
                                 a[l] - c->launch->local_window >= 1ull << 24);
    set_predicate(w, i->pd[0], inside_it, m);
}

enum { COPY_PARTIAL = 1 << 17 }; /* the last bits of the source address say how many bytes count */

/* LDGSTS: from global memory (s[2] a pair, s[3] uniform pair, imm) to shared (s[0], s[1], aux).
 * Lanes whose predicate ps[0] is false get zeros. */
static void op_COPY_ASYNC(Worker *c, Warp *w, const Ins *i, u32 m) {
    u64 to[LANES], from[LANES];
    u8 *target[LANES], *origin[LANES];
    u32 bytes[LANES];
    const u32 reading = m & predicate(w, i->ps[0]);
    Ins shared = *i, global = *i;
    shared.flags = SPACE_SHARED << SPACE_SHIFT | (i->flags & (7u << SCALE_SHIFT));
    shared.imm = (i32)i->aux;
    global.flags = (i->flags & (ADDRESS_64 | UNIFORM_64)) | SPACE_GLOBAL << SPACE_SHIFT;
    global.s[0] = i->s[2];
    global.s[1] = i->s[3];
    addresses(w, &shared, m, to);
    if (!resolve(c, w, &shared, to, m, SPACE_SHARED, 1, target)) return;
    for (int l = 0; l < LANES; l++) bytes[l] = 0;
    if (reading) {
        addresses(w, &global, reading, from);
        for (int l = 0; l < LANES; l++) {
            const u32 part = (u32)from[l] & (i->width - 1);
            bytes[l] = i->width;
            if (!(i->flags & COPY_PARTIAL)) continue;
            if (part) bytes[l] = part;
            from[l] -= part;
        }
        if (!resolve(c, w, &global, from, reading, SPACE_GLOBAL, 0, origin)) return;
        count_copy(c, &global, from, reading);
        if (c->trace) trace_request(c, w, from, i->width, reading, TOUCH_READ);
    }
    for (int l = 0; l < LANES; l++) {
        if (!(m >> l & 1)) continue;
        const u32 n = reading >> l & 1 ? bytes[l] : 0;
        if (n) memcpy(target[l], origin[l], n);
        memset(target[l] + n, 0, i->width - n);
    }
    count_copy_to_shared(c, &shared, to, m);
    mark_written(c, &shared, target, m);
}

#define ATOMIC_OPS(OP) OP(ATOMIC) OP(IN_SPACE) OP(COPY_ASYNC)

#endif
