/* Operations on barriers in shared memory: arrivals and bytes are counted down, phase by phase. */
#pragma once

#include "core.h"

static inline u64 arrival_word(u32 arrivals, i64 bytes) { return (u64)arrivals << 32 | (u32)(i32)bytes; }

void count_down(Worker *c, u64 address, u32 arrivals, i64 bytes, u32 leaving);
void stream_mbarrier(Worker *c, u64 address, u64 number);
