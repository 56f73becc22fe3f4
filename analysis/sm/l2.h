/* What lies below L1: this SM's share of L2 and of DRAM. */
#pragma once

#include "sm.h"

#define WHOLE 0xffffffffu /* bytes of a store that is assumed to write whole sectors */

double fetch_from_dram(Sm *s, u64 sectors, double now);
void write_to_dram(Sm *s, u64 sectors, int is_whole, double now);
double fetch(Sm *s, u64 sectors, double now);
double fetch_again(Sm *s, u64 sectors, double now);
double behind_dram(const Sm *s, double now, double at, double wait);
double spread(u64 x);
double dram_wait(const Machine *m, const Block *b, u64 number);
u8 waits_for_dram(Sm *s);
void store_lines(Sm *s, u64 age, u32 lines, const u64 *line, u32 stored, double now);

static inline u32 sectors_of(const u64 *line, u32 lines) {
    u32 sectors = 0;
    for (u32 k = 0; k < lines; k++) sectors += __builtin_popcount(sectors_in(line[k]));
    return sectors;
}
