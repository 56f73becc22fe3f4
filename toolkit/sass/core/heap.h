/* The heap of malloc and free in kernels: blocks in global memory, each aligned to 16 bytes.
 *
 * Addresses depend on the order of calls alone. A block is taken from the free ones of its size, else
 * from what was never used, else from a larger free one, after neighbours that are free were joined.
 */
#pragma once

#include "core.h"

enum { HEAP_UNIT = 16 };

Heap *new_heap(u64 base, u64 bytes);
void free_heap(Heap *heap);
u64 heap_take(Heap *heap, u64 bytes);
int heap_give(Heap *heap, u64 address, u64 *bytes);
int heap_holds(const Heap *heap, u64 low, u64 high);
int heap_before(const Heap *heap, u64 address, u64 *block, u64 *bytes);
