/* Loads and stores: addresses, bounds, what the memory system would count, and the data. */
#pragma once

#include "core.h"

/* Ins.flags of memory operations. */
enum {
    ADDRESS_64 = 1,       /* s[0] is a register pair */
    UNIFORM_64 = 2,       /* s[1] is a pair of uniform registers */
    ADDRESS_SIGNED = 4,   /* s[0] is sign-extended, not zero-extended */
    SIGNED_DATA = 8,      /* 8- and 16-bit loads extend the sign */
    SPACE_SHIFT = 8,      /* bits 8-10: SPACE_* */
    SCALE_SHIFT = 12,     /* bits 12-14: s[0] is shifted left by so many */
    STRONG = 1 << 18,     /* a load that asks for what other blocks just wrote */
    INDEXED = 1 << 19     /* a load of constants whose address is in a register */
};

static inline u32 space_of(const Ins *i) { return i->flags >> SPACE_SHIFT & 7; }

enum { PHASES = 32 };

/* Accesses of 256 bits: the lower half is in d[0] or s[2], the upper one in d[1] or s[3]. The aux of a load
 * has a bit for each word that is written. */
enum { HALF_WORDS = 4, WIDE_WORDS = 2 * HALF_WORDS };

/* Words of a half that a wide load writes: 0 the lower one, 1 the upper one. */
static inline u32 wide_words(const Ins *i, int half) {
    return popcount(i->aux >> half * HALF_WORDS & ((1 << HALF_WORDS) - 1));
}

/* The shape of a request and what it cost, by the first lane's place in a sector: most instructions
 * repeat one shape all their life, or, where addresses are swizzled, a few in turn. */
typedef struct {
    u32 mask;  /* 0: nothing is known */
    u32 known; /* phases whose cost is known */
    u32 kind;
    u32 ideal;
    u32 conflict_free;
    u32 owners;       /* of each address the first lane that has it */
    i32 low, high;    /* the least and the greatest delta */
    u32 delta[LANES]; /* from the first active lane, of active lanes */
    u16 cost[PHASES]; /* sectors, or wavefronts */
} Memo;

/* Entries for the last shapes of an instruction: `delta`, the distance of the last active lane's address
 * from the first one's, selects the entry. More entries take more memory of each worker. */
enum { SHAPES = 8, SHAPE_SHIFT = 5 };

/* Access of a warp to addresses that are all in one space. */
typedef struct {
    Warp *w;
    const Ins *i;
    void (*act)(Worker *c, Warp *w, const Ins *i, u32 m, u32 space, u64 *a, int is_store);
    int is_store;
} Access;

/* How shared memory serves a request: lanes with one address take turns; each wavefront comes twice. */
enum { STORES = 1, LANES_IN_TURN = 2, TWICE = 4 };
u32 count_request(Worker *c, const Ins *i, const u64 *a, u32 m, u32 space, int is_store);
void note_access(Worker *c, Warp *w, const Ins *i, const u64 *a, u32 m, u32 space, u32 kind);
void addresses(const Warp *w, const Ins *i, u32 m, u64 *a);
void access_part(Worker *c, const Access *x, const u64 *a, u32 part, u32 space, u64 start);
void access_shared_parts(Worker *c, const Access *x, const u64 *a, u32 part);
