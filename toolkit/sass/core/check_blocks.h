/* Accesses of global memory, against those of other blocks. */
#pragma once

#include "check.h"

void free_checks(Checks *all, u32 allocations);
Checks *new_checks(const Launch *launch);
void check_bulk_write(Worker *c, u64 address, u64 bytes);
void check_bulk_read(Worker *c, const Warp *w, int lane, u64 address, u64 bytes);
void forget_bytes(const Worker *c, const Allocation *all, u64 address, u64 bytes);
void check_buffers(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a, const Extent *e,
                   int is_store, int relaxed, const u32 *x);
