/* Barriers in shared memory: arrivals and bytes of copies are counted down, phase by phase.
 *
 * One is 64 bits, laid out as compiled code initializes it and takes it apart: bit 63 the parity of
 * the phase, bits 43-62 the arrivals that lack and bits 1-20 those of a phase, both counted up to
 * 2^20; bits 21-42 hold the bytes that lack here.
 *
 * Before sm_90 the lower word is 2^30 less the arrivals of a phase, the upper one 2^31 less those that
 * lack, so that the last arrival carries into bit 31, the parity. Code waits by loads of the upper word.
 */
#pragma once

#include "core.h"

enum { COUNT_BITS = 20, MOST_COUNT = 1 << COUNT_BITS, BYTES_BITS = 22 };
enum { EXPECTED_SHIFT = 1, BYTES_SHIFT = 21, PENDING_SHIFT = 43, PHASE_SHIFT = 63 };
enum { MBARRIER_BYTES = 8, UPPER_WORD = 4, CARRIED = 1 << 30 };

typedef struct { u32 expected, pending, phase; i32 bytes; } Mbarrier;

/* SYNCS.ARRIVE: aux says how many arrivals (none, 1, s[2]) and how many bytes are added (none, 1,
 * s[2]) or came (s[2]); d the value before. MBARRIER_LEAVE: who arrives does so for the last time. */
enum { ARRIVE_NONE = 0, ARRIVE_ONE, ARRIVE_SOURCE, ARRIVE_MASK = 3 };
enum { BYTES_NONE = 0, BYTES_ONE, BYTES_SOURCE, BYTES_CAME, BYTES_MODE_SHIFT = 2 };
enum { MBARRIER_LEAVE = 1 << 17, MBARRIER_TRYWAIT = 1 << 18, MBARRIER_OF_COPIES = 1 << 19 };
/* Lanes of one barrier and one count arrive together: d is the upper word before all of them, and in place of the
 * lower one their mask (measured on an H200). */
enum { MBARRIER_TOGETHER = 1 << 20 };

/* The block of the cluster that an address of shared memory is in; NULL where there is none. */
static inline Block *block_at(const Worker *c, u64 address) {
    const u64 rank = address >> RANK_SHIFT;
    return rank < c->cluster_size ? c->block->cluster + rank : NULL;
}

static inline u32 offset_at(u64 address) { return (u32)address & ((1u << RANK_SHIFT) - 1); }

Mbarrier unpacked(u64 x);
u64 packed(Mbarrier b);
int in_shared_memory(const Worker *c, u64 address, u64 bytes);
u64 read_mbarrier(const Worker *c, u64 address);
void write_mbarrier(Worker *c, u64 address, u64 x);
void wake(Worker *c);
void blame_mbarrier(Worker *c, u64 address, Mbarrier b);
Generation *generation_at(Worker *c, u64 address);
