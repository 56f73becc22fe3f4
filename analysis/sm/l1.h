/* L1, with least-recently-used eviction: the lines of a set are a ring, from its end to the newest one, and
 * from the oldest one to the end. */
#pragma once

#include "sm.h"

void set_up_l1(L1 *l1);
u32 tag_clocks(const Request *q);
void keep_stored_lines(Sm *s, const Request *q, u32 stored, double now);
double load_lines(Sm *s, const Request *q, double from, double now, u32 *tags);
