/* Loads of constants whose addresses are in registers, and the SM's cache of constants. */
#pragma once

#include "sm.h"

double load_constants(Sm *s, Scheduler *x, const Step *step, const u64 *line);
