/* Accesses of shared memory, against those that came before. */
#pragma once

#include "check.h"

void report_pair(Worker *c, const Warp *w, u32 kind, int lane, u32 cell, u32 width,
                 u32 before, u32 pc_before, u32 is_async);
int races_with_write(const Checker *k, const Written *last, u32 thread, u32 kind);
void begin_phase(const Checker *k, const Warp *w, ReadBy *read, int lane);
void check_fresh_read(Worker *c, const Warp *w, int lane, u32 first, u32 cell, u32 width, u32 kind);
void check_shared_read(Worker *c, const Warp *w, int lane, u32 lanes, u64 address, u32 width, u32 kind);
void check_against_reads(Worker *c, const Warp *w, int lane, u32 cell, u32 width, u32 is_async);
void check_against_copies(Worker *c, const Warp *w, int lane, u32 cell, u32 width);
void check_against_products(Worker *c, const Warp *w, int lane, u32 cell, u32 width);
void check_shared_write(Worker *c, const Warp *w, const Ins *i, int lane, u64 address,
                        u32 kind, const u32 *x);
int all_in_shared(const Worker *c, const Extent *e, u32 width);
void check_own_shared(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a, const Extent *e,
                      int is_store, u32 kind, const u32 *x);
