/* Runs a warp, instruction by instruction. */
#pragma once

#include "core.h"

void run_warp(Worker *c, Warp *w);
