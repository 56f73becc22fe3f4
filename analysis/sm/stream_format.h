/* Streams: what warps executed, as the simulator's core (toolkit/sass/core) records it and as the model
 * of an SM replays it. Both libraries include this file. */
#pragma once

#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;

enum { LANES = 32, SECTOR = 32, SECTORS_OF_LINE = 4 };

/* One executed instruction of a warp: `clocks` of the shared or L1 data stage, or words that a load of
 * constants reads, and `lines` of global or local memory. For barriers in shared memory and bulk copies, `lines` is the number of words that
 * describe them, and a bulk copy has 256 more for each of its `clocks`. With STEP_RUN, a straight run of
 * `clocks` instructions from `pc` on, without memory requests. */
typedef struct { u32 pc; u16 clocks; u8 lines, flags; } Step;

/* A branch was taken; the guards of all lanes were false; a straight run; a step that counts as not
 * executed, which is removed before the replay. */
enum { STEP_TAKEN = 1, STEP_OFF = 2, STEP_RUN = 4, STEP_UNDONE = 8 };

/* A line is its number << SECTORS_OF_LINE | one bit for each sector, with marks. */
#define COMMON (1ull << 63) /* all blocks access it: repeated blocks share it */
#define IN_L2 (1ull << 62)  /* another block has written it: no request waits for DRAM */
#define FLAG (1ull << 61)   /* a warp polls it until another block has written it: not cached in L1 */
#define LOCAL (1ull << 59)   /* a line of local memory, which no other warp accesses */
#define CONSTANT (1ull << 60) /* a line of 64 bytes of a constant bank; it has no sectors */
#define LINE_UNDONE (~0ull) /* of a step with STEP_UNDONE */

/* An address of a barrier in shared memory has the rank of its block in the cluster above RANK_SHIFT bits.
 * At most MOST_MBARRIERS barriers of a block are told apart. */
enum { MOST_MBARRIERS = 64, RANK_SHIFT = 24 };

/* The tag bank of a line of L1, by the number of the line: the rule that tests/analysis/tag_banks.py holds against
 * recorded loads. */
enum { TAG_BANKS = 4 };
static inline u32 tag_bank(u64 line) {
    return 2 * (u32)__builtin_parityll(line & 0x1ad5daull) + (u32)__builtin_parityll(line & 0x1f7ab5ull);
}
