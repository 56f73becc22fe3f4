#include "bulk.h"

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

/* True if rows are contiguous and swizzling moves no piece out of its row. */
static int is_dense(const TensorMap *map) {
    return row_bytes(map) == row_pitch(map) && row_bytes(map) % (map->swizzle ? map->swizzle : 1) == 0;
}

/* The runs of bytes that a copy accesses in shared memory, from an offset on. Rows that fill their swizzle
 * change places among themselves alone. */
void each_run(const Bulk *b, u32 offset, OnRun *act, void *context) {
    const TensorMap *map = &b->map;
    if (!b->is_tile || is_dense(map)) {
        act(context, offset, (u32)b->bytes);
        return;
    }
    for (u32 n = 0; n < rows_of(map); n++, offset += row_pitch(map))
        for (u32 k = 0; k < row_bytes(map); k += UNIT)
            act(context, swizzled(offset + k, map->swizzle), UNIT);
}

/* The runs of bytes that it accesses in global memory. */
void each_global_run(const Bulk *b, OnGlobalRun *act, const void *context) {
    if (!b->is_tile) act(context, b->global, b->bytes);
    for (u32 n = 0; b->is_tile && n < rows_of(&b->map); n++) {
        const Row r = row_at(b, n);
        if (r.last > r.first) act(context, r.address + r.first, r.last - r.first);
    }
}
