/* Starts clusters of blocks, and says whose the counts of a block are. */
#pragma once

#include "core.h"

void take_up(Worker *c, Block *b);
void start_cluster(Worker *c, u64 cluster, const Kept *kept, u64 kept_count);
