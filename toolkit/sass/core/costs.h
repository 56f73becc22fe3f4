/* Costs of a request in the memory system: sectors, banks and wavefronts. */
#pragma once

#include "core.h"

enum { LINE = SECTORS_OF_LINE * SECTOR, WORD = 4, BANKS = 32 };

static inline u32 ceil_div(u32 x, u32 y) { return (x + y - 1) / y; }

u32 first_lanes(const u64 *x, u32 m);
int distinct(const u64 *x, u32 m);
u32 sectors_of(const u64 *a, u32 m);
u32 fullest_bank(const u64 *a, u32 width, u32 m);
u32 wavefronts_of(const u64 *a, u32 width, int is_store, u32 m, u32 *conflict_free);
u32 turns_of(const u64 *a, u32 width, u32 m, u32 *conflict_free);
