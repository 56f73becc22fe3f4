#include "bulk.h"

#include "core.h"

u32 rows_of(const TensorMap *map) {
    u32 rows = 1;
    for (u32 k = 1; k < map->axes; k++) rows *= map->box[k];
    return rows;
}

Row row_at(const Bulk *b, u32 number) {
    const TensorMap *map = &b->map;
    u64 address = map->address;
    int outside = 0;
    for (u32 k = 1; k < map->axes; k++) {
        const i64 at = (i64)b->at[k] + number % map->box[k];
        number /= map->box[k];
        outside |= at < 0 || (u64)at >= map->size[k];
        address += (u64)at * map->pitch[k];
    }
    const i64 start = b->at[0], end = start + map->box[0], size = (i64)map->size[0];
    const i64 first = start < 0 ? -start : 0, beyond = end > size ? end - size : 0;
    if (outside || first + beyond >= map->box[0]) return (Row){0};
    return (Row){.address = address + (u64)(start * map->element),
                 .first = (u32)first * map->element,
                 .last = (u32)(map->box[0] - beyond) * map->element};
}

/* Whether rows lie side by side and swizzling moves no piece out of its row. */
int is_dense(const TensorMap *map) {
    return row_bytes(map) == row_pitch(map) && row_bytes(map) % (map->swizzle ? map->swizzle : 1) == 0;
}
