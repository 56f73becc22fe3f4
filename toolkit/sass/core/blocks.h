/* Starts clusters of blocks, and chooses the worker that keeps the counts of a block. */
#pragma once

#include "core.h"

void take_up(Worker *c, Block *b);
void start_cluster(Worker *c, u64 cluster, const Kept *kept, u64 kept_count);
