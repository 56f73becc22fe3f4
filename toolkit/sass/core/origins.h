/* Origins of values, traced while a few blocks run: they prove that other blocks have the same counts.
 *
 * Every register, every predicate and every word of shared and local memory has an origin in each lane.
 * SAME: the value is equal in all blocks. BLOCK_INDEX: it depends on the index of the block. DATA: it
 * depends on global memory, an atomic operation, a clock or an SM. SIGN_ALIKE: it depends on the index, its
 * sign does not. PENDING: an exclusive or that may be part of a swap (follow_swap.c). Any larger number is an affine
 * function of the block's index: in a block that is (x, y, z) blocks further the value is larger by
 * c[0] * x + c[1] * y + c[2] * z, modulo 2^32.
 *
 * A comparison of affine values has the same outcome within some borders, and their low bits are the
 * same at whole periods of the index. Both are noted. So every block within the borders of a block that
 * was followed, whole periods away from it, takes the same path, and its addresses are shifted by known
 * distances; except where `Dependence` says otherwise.
 */
#pragma once

#include "lanes.h"

enum { SAME = 0, BLOCK_INDEX, DATA, SIGN_ALIKE, PENDING, FIRST_AFFINE };

/* An affine function of the block's index, in units of 2^-FRACTION_BITS: `c` per block along each axis.
 * Between `low` and `high` from its value in the block that was followed, all comparisons agree. `parts`: lanes
 * of some request are apart by a value that grows like this. */
typedef struct { i64 c[3], low, high, parts; } Affine;

enum { FRACTION_BITS = 16 };   /* of the coefficients of `Affine` */
enum { MOST_PERIOD_BITS = 6 }; /* logarithm of the largest period */
enum { MOST_AFFINE = 2048 };   /* affine functions that are distinguished */

/* Dependence of an instruction in other blocks: BLOCK_INDEX or DATA if the branch, the guard or an address
 * depends on it, SAME if it does not. `parted`: the same if the addresses of lanes are shifted by different
 * distances, unless these are zero for all blocks in question. */
typedef struct { u8 branch, guard, address, parted; } Dependence;

/* Accesses to an allocation by addresses that do not depend on data: the bytes up to the end of the highest one.
 * `by_data`: other addresses depend on data. `is_read`: some access reads it. */
typedef struct { u64 bytes; u32 by_data, is_read; } Reach;

/* Storage that code may write between a branch and the point where its sides meet again: slots of
 * registers, predicates with OF_PREDICATE, and memory. */
enum { OF_PREDICATE = 0x40000000, ALL_SHARED = 0x50000000, ALL_LOCAL = 0x50000001 };

Origins *new_origins(const Launch *launch, u32 warps);
void free_origins(Origins *o);
void begin_origins(Origins *o);
const Affine *affine_origins(const Origins *o, u32 *count, u32 periods[3]);
const Dependence *dependences(const Origins *o);
const Reach *reaches(const Origins *o);

/* Inside. */

enum { BUCKETS = 2 * MOST_AFFINE };          /* of the hash table of affine functions */
enum { WORD_BYTES = 4, MOST_WORDS = 8 };     /* bytes of a register, and registers of a result at most */
enum { SWAPS = 4 };                          /* entries of each warp in Origins.swaps */

static const i64 UNIT = 1ll << FRACTION_BITS, FAR_AWAY = 1ll << 44, WRAP_32 = 1ll << 32;

/* Operands of the exclusive or whose result is in a register, in the lanes where it is PENDING. */
typedef struct {
    u32 slot, is_used;
    u32 value[2][LANES];
    u16 of[2][LANES];
} Swap;

struct Origins {
    const Launch *launch;
    u32 warps, count;
    Affine affine[MOST_AFFINE];
    u16 bucket[BUCKETS];   /* an affine origin, 0: none */
    u32 period_bits[3];
    u16 of_shared, of_local, reduced; /* what all of a memory, and what barriers reduced, may depend on */
    u16 under;             /* what decides whether the instruction in hand is executed */
    u32 next_swap;
    Swap *swaps;           /* [warps][SWAPS] */
    u16 *registers;        /* [warps][slots][LANES] */
    u16 *predicates;       /* [warps][PREDICATES][LANES] */
    u16 *shared;           /* [words] */
    u16 *local;            /* [warps][LANES][words] */
    Dependence *of;        /* [length] */
    Reach *reach;          /* [allocations] */
};

static const u16 same_in_all[MOST_WORDS * LANES];

static inline size_t local_words(const Launch *launch) { return launch->local_bytes / WORD_BYTES; }
static inline size_t shared_words(const Launch *launch) { return launch->shared_bytes / WORD_BYTES + 1; }

/* Origins of single values. */

static inline u16 worse(u16 x, u16 y) { return x > y ? x : y; }
static inline void worsen(u16 *x, u16 y) { *x = worse(*x, y); }
static inline void note(u8 *x, u16 kind) { *x = (u8)worse(*x, kind); }

/* Origin of an arbitrary function of a value. */
static inline u16 kind_of(u16 origin) { return origin <= DATA ? origin : BLOCK_INDEX; }
static inline u16 kind_of_two(u16 x, u16 y) { return worse(kind_of(x), kind_of(y)); }
static inline int is_affine(u16 origin) { return origin >= FIRST_AFFINE; }
static inline int is_known(u16 origin) { return origin == SAME || is_affine(origin); }
static inline Affine *affine_of(Origins *o, u16 origin) { return &o->affine[origin - FIRST_AFFINE]; }

u16 growing(Origins *o, const __int128 c[3]);
u16 combination(Origins *o, u16 x, i64 by, u16 y, i64 times);
u16 scaled_by(Origins *o, u16 x, i64 by);
u16 word_scaled_by(Origins *o, u16 x, i64 by);
void limit(Origins *o, u16 origin, i64 low, i64 high);
void keep_within(Origins *o, u16 origin, i64 value, i64 least, i64 most);
void keep_unsigned(Origins *o, u16 origin, u32 value);
void keep_signed(Origins *o, u16 origin, u32 value);
void keep_sign(Origins *o, u16 origin, u32 value, u32 is_signed);
int is_whole(Origins *o, u16 origin, u32 bits);
int is_wide(Origins *o, u16 origin, u32 bits);
u16 shifted_right(Origins *o, u16 origin, u32 value, u32 n, u32 is_signed);
u16 shifted_out(Origins *o, u16 origin, u32 value, u32 n);
void keep_order(Origins *o, u16 origin, i64 difference, u32 truth);
