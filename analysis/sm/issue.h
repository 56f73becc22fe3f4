/* The schedulers: each issues at most one instruction per clock. */
#pragma once

#include "sm.h"

void schedule(Sm *s, Scheduler *x);
void happen(Sm *s, Event e);
