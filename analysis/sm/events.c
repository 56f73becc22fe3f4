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
    GROW(s, s->heap, s->events, s->event_room);
    if (s->failed) return;
    u32 k = s->events++;
    while (k && s->heap[(k - 1) / 2].at > e.at) {
        s->heap[k] = s->heap[(k - 1) / 2];
        k = (k - 1) / 2;
    }
    s->heap[k] = e;
}

Event pop(Sm *s) {
    const Event first = s->heap[0], e = s->heap[--s->events];
    u32 k = 0;
    for (;;) {
        u32 child = 2 * k + 1;
        if (child >= s->events) break;
        if (child + 1 < s->events && s->heap[child + 1].at < s->heap[child].at) child++;
        if (s->heap[child].at >= e.at) break;
        s->heap[k] = s->heap[child];
        k = child;
    }
    s->heap[k] = e;
    return first;
}
