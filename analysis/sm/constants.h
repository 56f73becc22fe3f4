/* Loads of constants whose addresses are in registers, and the SM's cache of constants. */
#pragma once

#include "sm.h"

double load_constants(Sm *s, Scheduler *x, const Step *step, const u64 *line);
u64 uniform_constant_at(Sm *s, Scheduler *x, u32 warp, const Step *step, const u64 *line);
