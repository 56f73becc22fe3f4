/* Functions of the system that kernels call: printf, assert, malloc and free. */
#pragma once

#include "core.h"

/* They, by the numbers that stand for their addresses. */
enum { SYSTEM_ASSERTFAIL = 1, SYSTEM_VPRINTF, SYSTEM_MALLOC, SYSTEM_FREE };

int call_system(Worker *c, Warp *w, const Ins *i, u32 m);
