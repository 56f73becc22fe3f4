/* Arrays that grow. */
#ifndef GROW_H
#define GROW_H

#include <stdlib.h>

#include "core.h"

static inline void *grown(void *old, u64 *room, u64 wanted, size_t size) {
    if (wanted <= *room) return old;
    u64 larger = *room ? 2 * *room : 1 << 12;
    while (larger < wanted) larger *= 2;
    void *found = realloc(old, larger * size);
    if (found) *room = larger;
    return found;
}

#endif
