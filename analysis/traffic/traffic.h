/* Declarations that the sources of the traffic model share. */
#pragma once
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

enum { SECTORS = 4 /* of a line */, SECTOR_BYTES = 32 };
enum { FAILED = -1 };

/* Sorts at most 2^32 keys, and stores the previous position of each key. Equal keys keep their order.
 * Returns 0, or FAILED without memory. */
EXPORT int sort_keys(u64 *keys, u64 count, u32 *positions);
