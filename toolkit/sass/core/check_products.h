/* Products of warpgroups (gmma.h), as far as they are ordered with other accesses of shared memory and of
 * registers.
 *
 * A product reads shared memory, and reads and writes registers, until a warp of its group waits for it: that it
 * is made, it is for all four. Who writes its operands comes after a warp that has waited. It reads by the async
 * proxy, as copies do (PTX ISA, "Proxies"): what a thread stored is there for it if a fence.proxy.async lies
 * between, of the thread that stored or of one that comes after it.
 */
#pragma once

#include "check.h"
#include "gmma.h"

enum { UNIT_SHIFT = 4, KEPT_FENCES = 8 }; /* units of 16 bytes; fences of a warp that are remembered */
enum { FREE = 0, RESULT, OPERAND };       /* use of a register by products that a warp has not waited for */
enum { BY_THREADS = 0, BY_TILE = 1 };     /* layout of a unit: BY_TILE + swizzle, of a tensor copy */

typedef struct {
    u32 groups, waited;  /* closed so far, and of those that it waited for */
    u32 open;            /* products that belong to no closed group */
    u32 *group, *pc;     /* [slots]: the group, plus one, of the last product that uses a register; and its place */
    u8 *use;             /* [slots] */
    u8 *changed;         /* [slots]: by other instructions, since WARPGROUP.ARRIVE */
} WarpProducts;

/* The phase of each warp of a group when it waited for a group of products; 0: it has not yet. */
typedef struct { u32 stamp[WARPS_OF_GROUP]; } GroupEnd;

typedef struct { GroupEnd *ended; u64 count, room; u32 *group, *pc; } GroupProducts; /* [units]: of the last read */

typedef struct { u32 stamp, *seen; } ProxyFence; /* [threads]: clocks up to which it covers them */

struct Products {
    u32 warps, groups, units, threads;
    WarpProducts *warp;    /* [warps] */
    GroupProducts *group;  /* [groups] */
    u8 *layout;            /* [units] */
    ProxyFence *fence;     /* [warps][KEPT_FENCES] */
    u32 *fences;           /* [warps]: so far */
};

void free_products(Products *p);
Products *new_products(const Launch *launch, u32 warps);
void begin_products(Products *p, const Launch *launch);
void note_layout(Checker *k, u32 offset, u32 bytes, u8 layout);
int is_read_by_products(const Checker *k, u32 thread, u32 offset, u32 *before, u32 *pc);
void note_proxy_fence(Worker *c, const Warp *w, u32 m);
int is_fenced(const Checker *k, const Warp *w, u32 thread, u32 stamp);
