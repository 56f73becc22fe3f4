/* Atomic operations and asynchronous copies. */
#pragma once

#include <string.h>

#include "memory.h"

/* Ins.aux of ATOMIC: what is done, and to which type. Ins.width may hold several values of it. */
enum {
    ATOMIC_ADD = 0, ATOMIC_MIN, ATOMIC_MAX, ATOMIC_AND, ATOMIC_OR, ATOMIC_XOR, ATOMIC_INC,
    ATOMIC_DEC, ATOMIC_EXCH, ATOMIC_CAS, ATOMIC_CAST
};
enum {
    TYPE_U32 = 0, TYPE_S32, TYPE_U64, TYPE_S64, TYPE_F32, TYPE_F64, TYPE_F16X2, TYPE_BF16X2,
    TYPE_B128
};
enum { ATOMIC_TYPE_SHIFT = 8, ATOMIC_FTZ = 1 << 16 };
enum { ATOMIC_COUNTS = 1 << 17 }; /* the lanes with one address at once (.POPC) */

enum { COPY_PAST_L1 = 1 << 16 }; /* L1 does not keep what it copies */
enum { COPY_PARTIAL = 1 << 17 }; /* the last bits of the source address say how many bytes are zeros */

/* Words of one value. */
static inline u32 words_of_type(u32 type) {
    return type == TYPE_U64 || type == TYPE_S64 || type == TYPE_F64 ? 2 : 1;
}

/* An asynchronous copy as a store to shared memory and as a load. */
static inline Ins shared_side(const Ins *i) {
    Ins shared = *i;
    shared.flags = SPACE_SHARED << SPACE_SHIFT | (i->flags & (7u << SCALE_SHIFT));
    shared.imm = (i32)i->aux;
    return shared;
}
static inline Ins global_side(const Ins *i) {
    Ins global = *i;
    global.flags = (i->flags & (ADDRESS_64 | UNIFORM_64)) | SPACE_GLOBAL << SPACE_SHIFT;
    memcpy(global.s, i->s + 2, 2 * sizeof *i->s);
    return global;
}

u64 combined(u32 what, u32 type, int ftz, u64 old, u64 x, u64 y);
