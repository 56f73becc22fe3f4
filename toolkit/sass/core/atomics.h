/* Atomic operations and asynchronous copies. */
#ifndef ATOMICS_H
#define ATOMICS_H

#include "core.h"

/* Ins.aux of ATOMIC: what is done, and to which type. Ins.width may hold several values of it. */
enum {
    ATOMIC_ADD = 0, ATOMIC_MIN, ATOMIC_MAX, ATOMIC_AND, ATOMIC_OR, ATOMIC_XOR, ATOMIC_INC,
    ATOMIC_DEC, ATOMIC_EXCH, ATOMIC_CAS, ATOMIC_CAST
};
enum {
    TYPE_U32 = 0, TYPE_S32, TYPE_U64, TYPE_S64, TYPE_F32, TYPE_F64, TYPE_F16X2, TYPE_BF16X2,
    TYPE_B128
};
enum { ATOMIC_TYPE_SHIFT = 8, ATOMIC_FTZ = 1 << 16, ATOMIC_SPIN_RESULT = 1 << 17 };

enum { COPY_PARTIAL = 1 << 17 }; /* the last bits of the source address say how many bytes are zeros */

u64 combined(u32 what, u32 type, int ftz, u64 old, u64 x, u64 y);

#endif
