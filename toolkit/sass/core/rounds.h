/* Rounds, in which each warp runs for a while, and what is done when none can. */
#pragma once

#include "core.h"

int run_round(Worker *c);
void note_deadlock(Worker *c);
int in_vain(Worker *c);
int expire(Worker *c);
