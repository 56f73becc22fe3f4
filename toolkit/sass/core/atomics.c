#include "atomics.h"

#include <string.h>

#include "costs.h"
#include "floating.h"
#include "half.h"
#include "lanes.h"
#include "operations.h"
#include "requests.h"
#include "space.h"
#include "stream.h"
#include "tally.h"
#include "trace.h"

/* The sum, or the extreme, of two pairs of halves: of a number and a NaN the number, +0 above -0. */
static u32 combined_pairs(u32 what, u32 flags, u32 x, u32 y) {
    u32 found = 0;
    for (u32 shift = 0; shift < 32; shift += 16) {
        const u32 a = widened(x >> shift & 0xffff, flags), b = widened(y >> shift & 0xffff, flags);
        const u32 r = what == ATOMIC_ADD ? as_bits(as_float(a) + as_float(b)) : extreme(a, b, what == ATOMIC_MIN);
        found |= narrowed(r, flags) << shift;
    }
    return found;
}

static u64 sum_of(u32 type, int ftz, u64 x, u64 y) {
    const u32 a = ftz ? flushed32((u32)x) : (u32)x, b = ftz ? flushed32((u32)y) : (u32)y;
    if (type == TYPE_F64) return as_bits64(as_double(x) + as_double(y));
    if (type != TYPE_F32) return x + y;
    const u32 sum = as_bits(as_float(a) + as_float(b));
    return ftz ? flushed32(sum) : sum;
}

/* The value that replaces `old`; `x` is the operand (compared with in CAS), `y` the new value. */
u64 combined(u32 what, u32 type, int ftz, u64 old, u64 x, u64 y) {
    const int less = type == TYPE_S32 ? (i32)x < (i32)old : type == TYPE_S64 ? (i64)x < (i64)old : x < old;
    if (what <= ATOMIC_MAX && (type == TYPE_F16X2 || type == TYPE_BF16X2))
        return combined_pairs(what, type == TYPE_BF16X2 ? BF16 : 0, (u32)old, (u32)x);
    switch (what) {
    case ATOMIC_ADD: return sum_of(type, ftz, old, x);
    case ATOMIC_MIN: return less ? x : old;
    case ATOMIC_MAX: return less ? old : x;
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

/* True if an earlier lane of the same pass has already stored to the address of lane l. A pass serves all
 * lanes, or half of the warp for 64 bits. Even a value that stays the same lets one lane
 * through, on an H200: 32 sums of 0 to one float take 32 passes, to one double 16. */
static int comes_late(u8 *const *at, u32 stored, int l, u32 words) {
    const u32 together = words == 2 ? 0xffffu << (l & 16) : FULL;
    for (u32 left = stored & together; left; left &= left - 1)
        if (at[__builtin_ctz(left)] == at[l]) return 1;
    return 0;
}

/* How shared memory serves an operation. A compare-and-swap reads in a wavefront and writes in another. Lanes with one
 * address take turns, but for those that are counted together, or of which one succeeds. */
static int served_as(const Ins *i, u32 what) {
    const int together = i->aux & ATOMIC_COUNTS || what == ATOMIC_CAST;
    return (together ? 0 : LANES_IN_TURN) | (what == ATOMIC_CAS || what == ATOMIC_CAST ? TWICE : 0);
}

static void atomic_space(Worker *c, Warp *w, const Ins *i, u32 m, u32 space, u64 *a, int is_store) {
    u8 *at[LANES];
    const u32 what = i->aux & 0xff, type = i->aux >> ATOMIC_TYPE_SHIFT & 0xff;
    const u32 *x = RAW(2), *y = RAW(3);
    u32 *d = DESTINATION;
    const u32 words = words_of_type(type);
    u32 stored = 0;
    if (space == SPACE_SHARED) own_shared(c, a);
    if (!resolve(c, w, i, a, m, space, is_store, at)) return;
    count_request(c, i, a, m, space, is_store | served_as(i, what));
    note_access(c, w, i, a, m, space, TRACE_ATOMIC);
    if (space == SPACE_GLOBAL && c->requests && c->launch->notes_atomics) note_request(c, w, a, m, space);
    if (space == SPACE_GLOBAL && c->tally) {
        const int adds_floats = what == ATOMIC_ADD && type >= TYPE_F32 && type <= TYPE_BF16X2;
        tally_request(c->tally, a, i->width, m, w->atomics++, adds_floats, type == TYPE_F64);
    }
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
            const int is_late = what == ATOMIC_CAST && comes_late(at, stored, l, words);
            const u64 new = is_late ? old : combined(what, type, (i->aux & ATOMIC_FTZ) != 0, old, operand, other);
            memcpy(at[l] + k * WORD, &new, words * WORD);
            c->changes += new != old;
            c->asked_again |= new == old;
            if (what == ATOMIC_CAST) { /* the answer is whether it was stored */
                old = old == operand && !is_late;
                stored |= (u32)old << l;
            }
            d[k * LANES + l] = (u32)old;
            if (words == 2) d[(k + 1) * LANES + l] = (u32)(old >> 32);
        }
    }
    if (what == ATOMIC_CAST) WRITE_PREDICATE(0, stored);
}

/* A generic atomic whose predicate is read leaves shared and local memory to the code behind it: the
 * predicate says where it worked. One without works on shared memory too. */
static void generic_atomic(Worker *c, Warp *w, const Ins *i, u32 m, u64 *a) {
    const Spaces in = spaces_of(c, a, m);
    const Access access = {.w = w, .i = i, .act = atomic_space, .is_store = 1};
    if (i->pd[0] == PREDICATE_DISCARD && in.local) {
        stop(c, UNIMPLEMENTED);
        blame(c, w, in.local);
        return;
    }
    WRITE_PREDICATE(0, in.global);
    access_part(c, &access, a, in.global, SPACE_GLOBAL, 0);
    if (i->pd[0] == PREDICATE_DISCARD) access_shared_parts(c, &access, a, in.shared);
}

OPERATION(ATOMIC) {
    const u32 space = space_of(i);
    u64 a[LANES];
    addresses(w, i, m, a);
    if (space == SPACE_GENERIC) {
        generic_atomic(core, w, i, m, a);
        return;
    }
    if ((i->aux & 0xff) != ATOMIC_CAST) WRITE_PREDICATE(0, FULL);
    atomic_space(core, w, i, m, space, a, 1);
}

/* QSPC: whether a generic address is in the space aux. */
OPERATION(IN_SPACE) {
    u64 a[LANES];
    addresses(w, i, m, a);
    const Spaces in = spaces_of(core, a, m);
    const u32 found[] = {[SPACE_GLOBAL] = in.global, [SPACE_SHARED] = in.shared, [SPACE_LOCAL] = in.local,
                         [SPACE_CONSTANT] = 0};
    WRITE_PREDICATE(0, found[i->aux]);
}

/* Host addresses of the bytes of partial copies: only bytes that are read must be in a buffer. */
static int resolve_partial(Worker *c, const Warp *w, const u64 *from, const u32 *bytes,
                           u32 m, u8 **origin) {
    FOR_LANES_OF(m) {
        const Allocation *one = allocation_of(c, from[l], from[l] + bytes[l]);
        if (!one) {
            memory_fault(c, w, OUT_OF_BOUNDS, SPACE_GLOBAL, l, from[l], bytes[l], 0);
            return 0;
        }
        origin[l] = host_of(one, from[l], from[l] + bytes[l], 0);
    }
    return 1;
}

/* Writes of a copy past L1 to shared memory, each of some sectors of a line to a line. Sectors whose halves come
 * to different sectors are written half by half. */
static u32 writes_of_copy(const u64 *from, const u64 *to, u32 m) {
    u64 write[LANES];
    u32 n = 0;
    FOR_LANES_OF(m) {
        const int other = l ^ 1, is_pair = m >> other & 1 && from[l] / SECTOR == from[other] / SECTOR;
        const int is_split = is_pair && to[l] / SECTOR != to[other] / SECTOR;
        const u64 half = is_split ? 1 + (from[l] > from[other]) : 0;
        const u64 own = (from[l] / LINE << 32 | to[l] / LINE) << 2 | half;
        u32 k = 0;
        while (k < n && write[k] != own) k++;
        if (k == n) write[n++] = own;
    }
    return n;
}

/* LDGSTS: from global memory (s[2] a pair, s[3] uniform pair, imm) to shared (s[0], s[1], aux).
 * Lanes whose predicate ps[0] is false get zeros. */
OPERATION(COPY_ASYNC) {
    u64 to[LANES], from[LANES];
    u8 *target[LANES], *origin[LANES];
    u32 bytes[LANES], conflict_free;
    Count *count = &core->count[core->pc];
    const u32 reading = m & READ_PREDICATE(0);
    const Ins shared = shared_side(i), global = global_side(i);
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
                : !resolve_partial(core, w, from, bytes, reading, origin))
            return;
        count->sectors += sectors_of(from, reading);
        count->ideal += ceil_div((u32)distinct(from, reading) * i->width, SECTOR);
        count->requests++; /* one request with two sides */
        note_access(core, w, i, from, reading, SPACE_GLOBAL, TRACE_READ);
        if (core->requests) note_request(core, w, from, reading, SPACE_GLOBAL);
        if (core->stream && i->flags & COPY_PAST_L1) add_wavefronts(core->stream, writes_of_copy(from, to, reading));
    }
    FOR_LANES_OF(m) {
        const u32 n = reading >> l & 1 ? bytes[l] : 0;
        if (n) memcpy(target[l], origin[l], n);
        memset(target[l] + n, 0, i->width - n);
    }
    count->wavefronts += wavefronts_of(to, i->width, 1, m, &conflict_free);
    count->conflict_free += conflict_free;
    if (core->requests) note_request(core, w, to, m, SPACE_SHARED);
    mark_written(core, &shared, target, m);
}
