#include "atomics.h"

#include <math.h>
#include <string.h>

#include "core.h"
#include "costs.h"
#include "lanes.h"
#include "memory.h"
#include "operations.h"
#include "requests.h"
#include "space.h"
#include "stream.h"
#include "trace.h"

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

static float bfloat_to_float(u16 h) { return as_float((u32)h << 16); }

/* The larger of two 16-bit numbers: of a number and a NaN the number, +0 above -0. */
static u16 larger(u16 x, u16 y, float (*number)(u16), int smaller) {
    const float a = number(x), b = number(y);
    if (a != a || b != b) return a == a ? x : b == b ? y : 0x7fff;
    const int first = a != b ? a > b : !(x >> 15);
    return first != smaller ? x : y;
}

static u32 extreme_pair(u32 type, u32 x, u32 y, int smaller) {
    float (*number)(u16) = type == TYPE_F16X2 ? half_to_float : bfloat_to_float;
    return larger((u16)x, (u16)y, number, smaller) |
           (u32)larger((u16)(x >> 16), (u16)(y >> 16), number, smaller) << 16;
}

/* The value that replaces `old`; `x` is the operand (compared with in CAS), `y` the new value. */
u64 combined(u32 what, u32 type, int ftz, u64 old, u64 x, u64 y) {
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
        if (type == TYPE_F16X2 || type == TYPE_BF16X2)
            return extreme_pair(type, (u32)old, (u32)x, 1);
        if (type == TYPE_S32) return (i32)x < (i32)old ? x : old;
        if (type == TYPE_S64) return (i64)x < (i64)old ? x : old;
        return x < old ? x : old;
    case ATOMIC_MAX:
        if (type == TYPE_F16X2 || type == TYPE_BF16X2)
            return extreme_pair(type, (u32)old, (u32)x, 0);
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

/* A lane's value of one or two words, from word k of its registers on. */
static u64 value_at(const u32 *x, u32 k, int l, u32 words) {
    return words == 2 ? (u64)x[(k + 1) * LANES + l] << 32 | x[k * LANES + l] : x[k * LANES + l];
}

/* EXCH and CAS of 16 bytes. */
static void exchange_128(u32 what, u8 *at, int l, const u32 *x, const u32 *y, u32 *d) {
    u32 old[4], operand[4], new[4];
    memcpy(old, at, sizeof old);
    for (int k = 0; k < 4; k++) operand[k] = x[k * LANES + l];
    for (int k = 0; k < 4; k++) new[k] = what == ATOMIC_CAS ? y[k * LANES + l] : operand[k];
    if (what != ATOMIC_CAS || !memcmp(old, operand, sizeof old)) memcpy(at, new, sizeof new);
    for (int k = 0; k < 4; k++) d[k * LANES + l] = old[k];
}

static void atomic_space(Worker *c, Warp *w, const Ins *i, u32 m, u32 space, u64 *a) {
    u8 *at[LANES];
    const u32 what = i->aux & 0xff, type = i->aux >> ATOMIC_TYPE_SHIFT & 0xff;
    const u32 *x = vector(w, i->s[2]), *y = vector(w, i->s[3]);
    u32 *d = vector(w, i->d[0]);
    const u32 words = type == TYPE_U64 || type == TYPE_S64 || type == TYPE_F64 ? 2 : 1;
    u32 stored = 0;
    if (space == SPACE_SHARED) own_shared(c, a);
    if (!resolve(c, w, i, a, m, space, 1, at)) return;
    count_request(c, i, a, m, space, 1);
    if (c->trace && space == SPACE_GLOBAL) trace_request(c, w, a, i->width, m, TRACE_ATOMIC);
    if (c->stream && space == SPACE_GLOBAL) stream_request(c, a, i->width, m, 0);
    if (space == SPACE_SHARED) {
        check_written(c, w, i, at, m, m);
        mark_written(c, i, at, m);
    }
    FOR_LANES_OF(m) {
        if (type == TYPE_B128) {
            exchange_128(what, at[l], l, x, y, d);
            c->changes++;
            continue;
        }
        for (u32 k = 0; k < i->width / WORD; k += words) {
            u64 old = 0;
            memcpy(&old, at[l] + k * WORD, words * WORD);
            const u64 operand = value_at(x, k, l, words), other = value_at(y, k, l, words);
            const u64 new = combined(what, type, (i->aux & ATOMIC_FTZ) != 0, old, operand, other);
            memcpy(at[l] + k * WORD, &new, words * WORD);
            c->changes += new != old;
            c->asked_again |= new == old;
            if (what == ATOMIC_CAST) { /* the answer is whether it was stored */
                stored |= (u32)(old == operand) << l;
                old = old == operand;
            }
            d[k * LANES + l] = (u32)old;
            if (words == 2) d[(k + 1) * LANES + l] = (u32)(old >> 32);
        }
    }
    if (what == ATOMIC_CAST) set_predicate(w, i->pd[0], stored, m);
}

/* A generic atomic whose predicate is read leaves shared and local memory to the code behind it: the
 * predicate says where it worked. One without works on shared memory too. */
static void generic_atomic(Worker *c, Warp *w, const Ins *i, u32 m, u64 *a) {
    u32 in_shared, in_local;
    LANE_BITS(in_shared, in_shared_window(c, a[l]));
    LANE_BITS(in_local, in_local_window(c, a[l]));
    const u32 elsewhere = m & ~in_shared & ~in_local;
    const Access access = {.w = w, .i = i, .act = atomic_space};
    if (i->pd[0] == PREDICATE_DISCARD && m & in_local) {
        stop(c, UNIMPLEMENTED);
        blame(c, w, m & in_local);
        return;
    }
    set_predicate(w, i->pd[0], elsewhere, m);
    access_part(c, &access, a, elsewhere, SPACE_GLOBAL, 0);
    if (i->pd[0] == PREDICATE_DISCARD) access_shared_parts(c, &access, a, m & in_shared);
}

OPERATION(ATOMIC) {
    const u32 space = i->flags >> SPACE_SHIFT & 7;
    u64 a[LANES];
    addresses(w, i, m, a);
    if (space == SPACE_GENERIC) {
        generic_atomic(core, w, i, m, a);
        return;
    }
    if ((i->aux & 0xff) != ATOMIC_CAST) set_predicate(w, i->pd[0], FULL, m);
    atomic_space(core, w, i, m, space, a);
}

/* QSPC: whether a generic address is in the space aux. */
OPERATION(IN_SPACE) {
    u64 a[LANES];
    u32 inside_it = 0;
    addresses(w, i, m, a);
    if (i->aux == SPACE_SHARED) LANE_BITS(inside_it, in_shared_window(core, a[l]));
    if (i->aux == SPACE_LOCAL) LANE_BITS(inside_it, in_local_window(core, a[l]));
    if (i->aux == SPACE_GLOBAL)
        LANE_BITS(inside_it, !in_shared_window(core, a[l]) && !in_local_window(core, a[l]));
    set_predicate(w, i->pd[0], inside_it, m);
}

/* Where the bytes of partial copies are: only those that are read must be in a buffer. */
static int resolve_partial(Worker *c, Warp *w, const Ins *i, const u64 *from, const u32 *bytes,
                           u32 m, u8 **origin) {
    FOR_LANES_OF(m) {
        const Allocation *one = allocation_of(c, from[l], from[l] + bytes[l]);
        if (!one) {
            memory_fault(c, w, i, OUT_OF_BOUNDS, SPACE_GLOBAL, l, from[l], 0);
            c->fault.width = bytes[l];
            return 0;
        }
        origin[l] = one->host + (from[l] - one->base);
    }
    return 1;
}

/* LDGSTS: from global memory (s[2] a pair, s[3] uniform pair, imm) to shared (s[0], s[1], aux).
 * Lanes whose predicate ps[0] is false get zeros. */
OPERATION(COPY_ASYNC) {
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
    own_shared(core, to);
    if (!resolve(core, w, &shared, to, m, SPACE_SHARED, 1, target)) return;
    FOR_LANES bytes[l] = 0;
    if (reading) {
        addresses(w, &global, reading, from);
        FOR_LANES {
            const u32 part = (u32)from[l] & (i->width - 1);
            bytes[l] = i->width;
            if (!(i->flags & COPY_PARTIAL)) continue;
            bytes[l] -= part;
            from[l] -= part;
        }
        if (!(i->flags & COPY_PARTIAL)
                ? !resolve(core, w, &global, from, reading, SPACE_GLOBAL, 0, origin)
                : !resolve_partial(core, w, &global, from, bytes, reading, origin))
            return;
        count_copy(core, &global, from, reading);
        if (core->trace) trace_request(core, w, from, i->width, reading, TRACE_READ);
        if (core->stream) stream_request(core, from, i->width, reading, 0);
        if (core->requests) note_request(core, w, from, reading, SPACE_GLOBAL);
    }
    FOR_LANES_OF(m) {
        const u32 n = reading >> l & 1 ? bytes[l] : 0;
        if (n) memcpy(target[l], origin[l], n);
        memset(target[l] + n, 0, i->width - n);
    }
    count_copy_to_shared(core, &shared, to, m);
    if (core->requests) note_request(core, w, to, m, SPACE_SHARED);
    mark_written(core, &shared, target, m);
}
