/* Runs a warp, instruction by instruction. */
#ifndef RUN_H
#define RUN_H

#include "core.h"

void run_warp(Worker *c, Warp *w);

#endif
