#include "events.h"

/* An array with twice the room; the same one if there is no memory, and the run has failed. */
void *grown(Sm *s, void *array, u32 *room, size_t size) {
    const u32 wanted = 2 * *room;
    void *larger = realloc(array, wanted * size);
    s->failed |= !larger;
    if (larger) *room = wanted;
    return larger ? larger : array;
}

void push(Sm *s, Event e) {
    GROW(s, s->events.heap, s->events.count, s->events.room);
    if (s->failed) return;
    u32 k = s->events.count++;
    while (k && s->events.heap[(k - 1) / 2].at > e.at) {
        s->events.heap[k] = s->events.heap[(k - 1) / 2];
        k = (k - 1) / 2;
    }
    s->events.heap[k] = e;
}

Event pop(Sm *s) {
    const Event first = s->events.heap[0], e = s->events.heap[--s->events.count];
    u32 k = 0;
    for (;;) {
        u32 child = 2 * k + 1;
        if (child >= s->events.count) break;
        if (child + 1 < s->events.count && s->events.heap[child + 1].at < s->events.heap[child].at) child++;
        if (s->events.heap[child].at >= e.at) break;
        s->events.heap[k] = s->events.heap[child];
        k = child;
    }
    s->events.heap[k] = e;
    return first;
}
