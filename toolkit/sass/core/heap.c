#include "heap.h"

#include <stdlib.h>

#include "grow.h"

/* By unit of 16 bytes. A block, live or free, begins at a unit that has its `length`. */
struct Heap {
    u64 base;
    u32 units, top;   /* top: units that were ever used */
    u32 *length;      /* of the block that begins here, in units */
    u32 *owner;       /* first unit of the live block that this unit is of, plus one; 0: none */
    u64 *bytes;       /* of the live block that begins here, as malloc was asked for */
    u32 *head, *next; /* free blocks by their length; numbers are those of the first unit plus one */
    u32 least_failed; /* no block of so many units was left when that was last tried; 0: unknown */
};

void free_heap(Heap *heap) {
    if (!heap) return;
    free(heap->length); free(heap->owner); free(heap->bytes); free(heap->head); free(heap->next);
    free(heap);
}

/* NULL where there is not enough memory. */
Heap *new_heap(u64 base, u64 bytes) {
    Heap *heap;
    if (!ZEROS(heap, 1)) return NULL;
    heap->base = base;
    heap->units = (u32)(bytes / HEAP_UNIT);
    const size_t count = (size_t)heap->units + 1;
    if (ZEROS(heap->length, count) && ZEROS(heap->owner, count) && ZEROS(heap->bytes, count) &&
        ZEROS(heap->head, count) && ZEROS(heap->next, count))
        return heap;
    free_heap(heap);
    return NULL;
}

static void put_free(Heap *heap, u32 first, u32 length) {
    heap->length[first] = length;
    heap->next[first] = heap->head[length];
    heap->head[length] = first + 1;
}

static u32 take_free(Heap *heap, u32 length) {
    const u32 first = heap->head[length] - 1;
    heap->head[length] = heap->next[first];
    return first;
}

/* Join free blocks that are neighbours; those at the end count as never used. */
static void join_free(Heap *heap) {
    u32 end = 0, open = 0, first = 0;
    for (u32 n = 0; n <= heap->units; n++) heap->head[n] = 0;
    for (u32 at = 0; at < heap->top; at = end) {
        end = at + heap->length[at];
        if (heap->owner[at]) {
            if (open) put_free(heap, first, at - first);
            open = 0;
        } else if (!open) {
            open = 1;
            first = at;
        }
    }
    if (open) heap->top = first;
}

/* First unit of a free block of so many; the number of units where there is none. */
static u32 found(Heap *heap, u32 wanted) {
    if (heap->head[wanted]) return take_free(heap, wanted);
    if (wanted <= heap->units - heap->top) {
        heap->top += wanted;
        return heap->top - wanted;
    }
    for (u32 length = wanted + 1; length <= heap->units; length++) {
        if (!heap->head[length]) continue;
        const u32 first = take_free(heap, length);
        put_free(heap, first + wanted, length - wanted);
        return first;
    }
    return heap->units;
}

/* Address of a new block; 0 where the heap has no room for it, or where no byte is asked for. */
u64 heap_take(Heap *heap, u64 bytes) {
    if (!bytes || bytes > (u64)heap->units * HEAP_UNIT) return 0;
    const u32 wanted = (u32)((bytes + HEAP_UNIT - 1) / HEAP_UNIT);
    if (heap->least_failed && wanted >= heap->least_failed) return 0;
    u32 first = found(heap, wanted);
    if (first == heap->units) {
        join_free(heap);
        first = found(heap, wanted);
    }
    if (first == heap->units) {
        heap->least_failed = wanted;
        return 0;
    }
    heap->length[first] = wanted;
    heap->bytes[first] = bytes;
    for (u32 k = first; k < first + wanted; k++) heap->owner[k] = first + 1;
    return heap->base + (u64)first * HEAP_UNIT;
}

/* Free the live block at this address and tell its size. Whether there is one. */
int heap_give(Heap *heap, u64 address, u64 *bytes) {
    const u64 offset = address - heap->base, unit = offset / HEAP_UNIT;
    if (offset % HEAP_UNIT || unit >= heap->units || heap->owner[unit] != unit + 1) return 0;
    const u32 first = (u32)unit, length = heap->length[first];
    *bytes = heap->bytes[first];
    for (u32 k = first; k < first + length; k++) heap->owner[k] = 0;
    put_free(heap, first, length);
    heap->least_failed = 0;
    return 1;
}

/* True if one live block holds these bytes of the heap. */
int heap_holds(const Heap *heap, u64 low, u64 high) {
    const u32 owner = heap->owner[(low - heap->base) / HEAP_UNIT];
    return owner && high <= heap->base + (u64)(owner - 1) * HEAP_UNIT + heap->bytes[owner - 1];
}

/* The last live block that begins at or before an address of the heap. Whether there is one. */
int heap_before(const Heap *heap, u64 address, u64 *block, u64 *bytes) {
    const u64 unit = (address - heap->base) / HEAP_UNIT;
    for (u64 k = (unit < heap->units ? unit : heap->units - 1) + 1; k-- > 0;)
        if (heap->owner[k]) {
            const u32 first = heap->owner[k] - 1;
            *block = heap->base + (u64)first * HEAP_UNIT;
            *bytes = heap->bytes[first];
            return 1;
        }
    return 0;
}
