/* Bulk copies: tiles of arrays through tensor maps, and plain runs of bytes, past registers and L1.
 *
 * A copy is noted where it is issued and made as late as anyone can wait for it: what it will write is
 * unwritten until then, so that neither reading too early nor overwriting too soon goes unnoticed. Where
 * blocks run in time (pace.h), it is made when its latency is over.
 */
#pragma once

#include "core.h"

int make_oldest(Worker *c);
void make_due(Worker *c);
u64 first_due(const Worker *c);
void make_all_of(Worker *c, const Block *cluster);
