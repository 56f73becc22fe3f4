/* The operations that a launch which is checked runs in the place of the plain ones. */
#pragma once

#include "core.h"

/* Distinct instructions; and what a launch may execute after the first, as one that was given zeros may
 * never end: some seconds. */
enum { MOST_FAULTS = 100, AFTERLIFE = 1 << 25 };

void check_use(Worker *c, const Warp *w, const Ins *i, u32 m);
