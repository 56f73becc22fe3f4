/* Data of bulk copies: tiles of arrays through tensor maps, and plain runs of bytes. */
#pragma once

#include "core.h"

enum { AXES = 5 };                               /* of a tensor map, at most */
enum { MOST_BOX = 256 };                         /* elements of a box along one axis */
enum { MOST_ELEMENT = 8 };                       /* bytes of an element */
enum { UNIT = 16 };                              /* bytes: sizes and addresses of bulk copies are multiples */
enum { BOX_ALIGNMENT = 128 };                    /* bytes, of a box in shared memory */
enum { MAP_BYTES = 128, MAP_ALIGNMENT = 64 };    /* of a tensor map in memory */
enum { AXES_BITS = 3 };                          /* bits of Ins.aux with the number of axes */
#define MAP_MARK 0x50414d524f534e54ull

/* A tensor map as toolkit/sass/tensor_maps.py describes it; axes from the innermost on. */
typedef struct {
    u64 mark, address, size[AXES], pitch[AXES];
    u16 box[AXES];
    u8 axes, element, type, swizzle;
    u8 reserved[18];
} TensorMap;

enum { TO_SHARED = 0, TO_GLOBAL, WITHIN_SHARED };

struct Bulk {
    Block *issuer;
    u32 pc, warp, group;
    u32 direction;
    u32 reduces;      /* adds, or what `aux` says, rather than copies */
    u32 aux;          /* as of ATOMIC */
    u32 is_tile;
    u32 blocks;       /* of the cluster, that get it: one bit each */
    u64 shared, from; /* addresses in the cluster's shared memory */
    u64 global;
    u64 mbarrier;
    u64 bytes;        /* in shared memory */
    u64 due;          /* ticks when it is done, where blocks run in time (pace.h) */
    i32 at[AXES];
    TensorMap map;
};

/* Flags of bulk operations. */
enum { BULK_MULTICAST = 1, BULK_REDUCES = 2 };

/* The bytes of a row in shared memory, and from row to row: swizzled rows take all of their span. */
static inline u32 row_bytes(const TensorMap *map) { return (u32)map->box[0] * map->element; }
static inline u32 row_pitch(const TensorMap *map) {
    return row_bytes(map) < map->swizzle ? map->swizzle : row_bytes(map);
}

/* Pieces of 16 bytes change places within a row by the number of the row, modulo 2, 4 or 8 lines of
 * 128 bytes (CUDA C++ Programming Guide, Tensor Memory Access, swizzle). */
static inline u32 swizzled(u32 offset, u32 swizzle) {
    return swizzle ? offset ^ (offset >> 3 & (swizzle - UNIT)) : offset;
}

/* One row of a tile: where it is in global memory, and which of its bytes are inside of the array. */
typedef struct { u64 address; u32 first, last; } Row;

typedef void OnRun(void *context, u32 offset, u32 bytes);

u32 rows_of(const TensorMap *map);
Row row_at(const Bulk *b, u32 number);
typedef void OnGlobalRun(const void *context, u64 address, u64 bytes);

void each_global_run(const Bulk *b, OnGlobalRun *act, const void *context);
void each_run(const Bulk *b, u32 offset, OnRun *act, void *context);
