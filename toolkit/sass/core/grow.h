/* Memory: arrays that grow, and what is zero at first. */
#pragma once

#include <stdlib.h>

#include "core.h"

/* Room for as many of what p points to, all zero; NULL where there is no memory. */
#define ZEROS(p, count) ((p) = calloc(count, sizeof *(p)))

/* Room in `array` for `wanted`, of which `room` says how many there are; false where there is none. */
#define GROWN(array, room, wanted)                                               \
    ({                                                                           \
        void *const grown_ = grown(array, &(room), wanted, sizeof *(array));     \
        if (grown_) (array) = grown_;                                            \
        grown_ != NULL;                                                          \
    })

static inline void *grown(void *old, u64 *room, u64 wanted, size_t size) {
    if (wanted <= *room) return old;
    u64 larger = *room ? 2 * *room : 1 << 12;
    while (larger < wanted) larger *= 2;
    void *found = realloc(old, larger * size);
    if (found) *room = larger;
    return found;
}
