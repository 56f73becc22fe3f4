#include "texture.h"

#include <math.h>
#include <string.h>

#include "atomics.h"
#include "costs.h"
#include "half.h"
#include "operations.h"
#include "space.h"
#include "stream.h"
#include "trace.h"

/* Of the linear filter: bits of fraction of a weight (1.8), and of a normalized coordinate. */
enum { FRACTION_BITS = 8, ONE = 1 << FRACTION_BITS, COORDINATE_BITS = 21 };

/* Texels that a fetch reads along one axis, and the weight of the second one; -1 is beyond the border. */
typedef struct { i64 texel[2]; i64 weight; } Along;

/* The accesses of a warp's fetch to memory, one per lane and corner. */
typedef struct { u64 address[CORNERS][LANES]; u32 lanes[CORNERS]; } Footprint;

static void texture_fault(Worker *c, const Warp *w, const Ins *i, u32 kind, int lane, u32 handle) {
    memory_fault(c, w, kind, SPACE_GLOBAL, lane, handle, i->aux & (AXES_MASK | LAYERED), 0);
}

/* The object that a lane names, if it suits the instruction; otherwise the fault is noted. */
static const TextureObject *object_of(Worker *c, const Warp *w, const Ins *i, int lane, u32 handle, int is_surface) {
    const Launch *launch = c->launch;
    for (u32 k = 0; k < launch->texture_count; k++) {
        const TextureObject *t = &launch->textures[k];
        if (t->handle != handle) continue;
        const u32 axes = i->aux & AXES_MASK;
        const int is_fetch = i->op == OP_TEXTURE && i->aux & FETCHES && axes == 1;
        const int of_line = t->axes == 1 && axes == 2 && !is_surface; /* tex1D is a fetch of 2D */
        if ((t->kind == OF_SURFACE) == is_surface && (t->axes == axes || of_line) &&
            !(i->aux & LAYERED) == !t->layers && is_fetch == (t->kind == OF_MEMORY))
            return t;
        break;
    }
    texture_fault(c, w, i, NO_TEXTURE, lane, handle);
    return NULL;
}

/* The texel of a row of n that a whole coordinate names in an address mode. */
static i64 in_row(i64 k, i64 n, u32 mode) {
    switch (mode) {
    case ADDRESS_WRAP: return (k % n + n) % n;
    case ADDRESS_MIRROR: k = (k % (2 * n) + 2 * n) % (2 * n); return k < n ? k : 2 * n - 1 - k;
    case ADDRESS_BORDER: return k < 0 || k >= n ? -1 : k;
    default: return k < 0 ? 0 : k >= n ? n - 1 : k;
    }
}

/* The multiple of 1 / 2^bits at or below x, in such units. NaN and subnormal numbers are 0; beyond
 * `most`, which is even, an address mode says the same of each coordinate. */
static i64 fixed_point(float x, u32 bits, double most) {
    const double wide = fabsf(x) >= 0x1p-126f ? x : 0;
    return (i64)floor((wide > most ? most : wide < -most ? -most : wide) * (double)(1ull << bits));
}

/* A coordinate in 1 / 2^bits of a texel, rounded down, or to the nearest where `half` is half of that. A
 * normalized one is cut to 21 bits of fraction first (measured on an H200, as is all of the filter). */
static i64 texels_of(const TextureObject *t, int axis, float x, u32 bits, u32 half) {
    if (!t->normalized) return (fixed_point(x, bits + 1, 0x1p30) + (i64)half) >> 1;
    const i64 scaled = fixed_point(x, COORDINATE_BITS, 0x1p24) * t->size[axis];
    return (scaled + ((i64)half << (COORDINATE_BITS - bits - 1))) >> (COORDINATE_BITS - bits);
}

static Along point_along(const TextureObject *t, int axis, float x) {
    const i64 k = in_row(texels_of(t, axis, x, 0, 0), t->size[axis], t->mode[axis]);
    return (Along){.texel = {k, k}};
}

/* A filter in clamp mode moves a coordinate to the centre of the first or the last texel; a gather takes the
 * texels around it as they are. */
static Along linear_along(const TextureObject *t, int axis, float x, int gathers) {
    const i64 n = t->size[axis], last = (n - 1) << FRACTION_BITS;
    i64 fixed = texels_of(t, axis, x, FRACTION_BITS, 1) - ONE / 2;
    if (t->mode[axis] == ADDRESS_CLAMP && !gathers) fixed = fixed < 0 ? 0 : fixed > last ? last : fixed;
    const i64 k = fixed >> FRACTION_BITS;
    return (Along){.texel = {in_row(k, n, t->mode[axis]), in_row(k + 1, n, t->mode[axis])},
                   .weight = fixed & (ONE - 1)};
}

/* A fetch by a whole coordinate (TLD): of linear memory it is zero outside. */
static Along whole_along(const TextureObject *t, int axis, i32 x) {
    const i64 k = in_row(x, t->size[axis], t->kind == OF_MEMORY ? ADDRESS_BORDER : t->mode[axis]);
    return (Along){.texel = {k, k}};
}

static u32 texel_bytes(const TextureObject *t) { return (u32)t->bytes * t->channels; }

/* One channel as it is stored: an integer, or the bits of a float. */
static u32 stored_at(const TextureObject *t, const u8 *p) {
    u32 x = 0;
    memcpy(&x, p, t->bytes);
    if (t->type == TEXEL_FLOAT) return t->bytes == 2 ? widened_half(x) : x;
    const u32 spare = 32 - 8 * t->bytes;
    return t->type == TEXEL_SIGNED ? (u32)((i32)(x << spare) >> spare) : x;
}

/* The greatest value of an integer type, which is fetched as 1. */
static i32 most_of(const TextureObject *t, u32 bytes) {
    return (1 << (8 * bytes - (t->type == TEXEL_SIGNED))) - 1;
}

static u32 as_share(i64 x, i64 most) { return as_bits((float)(x < -most ? -most : x) / (float)most); }

/* What a fetch without a filter returns of a channel. */
static u32 fetched(const TextureObject *t, u32 stored) {
    return t->to_float ? as_share((i32)stored, most_of(t, t->bytes)) : stored;
}

static u64 address_of(const TextureObject *t, i64 x, i64 y, i64 z, u32 layer) {
    const u64 row = ((t->layers ? layer : (u64)z) * t->size[1] + (u64)y) * t->size[0] + (u64)x;
    return t->address + row * texel_bytes(t);
}

/* The channels of a texel as they are stored; zeros for missing ones, and beyond the border. */
static void read_texel(Worker *c, const TextureObject *t, u64 address, u32 *channels) {
    memset(channels, 0, CHANNELS * sizeof *channels);
    if (!address) return;
    const u64 end = address + texel_bytes(t);
    const u8 *at = host_of(buffer_of(c, address, end, 0), address, end, 0);
    for (u32 k = 0; k < t->channels; k++) channels[k] = stored_at(t, at + k * t->bytes);
}

/* The corner of a footprint, bit by bit the second texel along each axis: its address, 0 beyond the border. */
static u64 corner_address(const TextureObject *t, const Along *along, u32 corner, u32 layer) {
    const i64 x = along[0].texel[corner & 1], y = along[1].texel[corner >> 1 & 1], z = along[2].texel[corner >> 2];
    return x < 0 || y < 0 || z < 0 ? 0 : address_of(t, x, y, z, layer);
}

static i64 eighth(i64 product) { return (product + ONE / 2) >> FRACTION_BITS; }

/* The weight of a corner; all of them add up to ONE. It is split along z, then x, then y: each split rounds
 * one of the two parts. */
static i64 weight_of(const Along *along, u32 corner) {
    const i64 a = along[0].weight, b = along[1].weight;
    const int x = corner & 1, y = corner >> 1 & 1, z = corner >> 2;
    const i64 slice = z ? along[2].weight : ONE - along[2].weight, right = eighth(a * slice);
    const i64 column = x ? right : slice - right, part = eighth(column * (x ? b : ONE - b));
    return x == y ? part : column - part;
}

/* Rounded to 24 bits of significand or, for half precision, 11; ties away from zero. */
static u32 rounded_away(double x, int is_half) {
    const u32 dropped = 53 - (is_half ? 11 : 24);
    const double least = is_half ? 0x1p-14 : 0x1p-126, unit = is_half ? 0x1p24 : 0x1p149;
    if (!isfinite(x)) return as_bits((float)x);
    if (fabs(x) < least) return as_bits((float)(copysign(floor(fabs(x) * unit + 0.5), x) / unit));
    return as_bits((float)as_double((as_bits64(x) + (1ull << (dropped - 1))) & ~((1ull << dropped) - 1)));
}

/* The weighted sum of the texels of a slice: each is cut off `bits` bits below the leading one of the largest. */
static double sum_of_slice(const i64 *weights, u32 (*texel)[CHANNELS], u32 corners, u32 k, u32 bits) {
    enum { EXPONENT_SHIFT = 23, EXPONENT = 0xff, BIAS = 127, WIDE_SHIFT = 52, WIDE_BIAS = 1023 };
    u32 exponent = 1;
    i64 sum = 0;
    for (u32 corner = 0; corner < corners; corner++) {
        const u32 own = weights[corner] ? texel[corner][k] >> EXPONENT_SHIFT & EXPONENT : 0;
        exponent = own > exponent ? own : exponent;
    }
    const double scale = as_double((u64)(WIDE_BIAS + BIAS + bits - exponent) << WIDE_SHIFT);
    if (exponent == EXPONENT) { /* an infinity or a NaN */
        double wide = 0;
        for (u32 corner = 0; corner < corners; corner++)
            if (weights[corner]) wide += (double)weights[corner] * as_float(texel[corner][k]);
        return wide;
    }
    for (u32 corner = 0; corner < corners; corner++)
        sum += weights[corner] * (i64)(as_float(texel[corner][k]) * scale);
    return (double)sum / scale;
}

/* The weighted sum of floats. How a GPU adds the slices of a 3D texture is known only if their texels are of
 * similar size. */
static u32 sum_of_floats(const TextureObject *t, const i64 *weights, u32 (*texel)[CHANNELS], u32 k) {
    enum { CORNERS_OF_SLICE = 4, BITS = 27, BITS_OF_HALF = 14 };
    const u32 corners = 1u << t->axes, each = corners < CORNERS_OF_SLICE ? corners : CORNERS_OF_SLICE;
    double sum = 0;
    for (u32 first = 0; first < corners; first += each)
        sum += sum_of_slice(weights + first, texel + first, each, k, t->bytes == 2 ? BITS_OF_HALF : BITS);
    return rounded_away(sum / ONE, t->bytes == 2);
}

/* The weighted sum of int8 in steps of 1 / 32767: a 127.5th of it is added, in two steps. */
static i64 widened_bytes(i64 sum) { return sum + ((sum + (sum >> 12 << 4) + 64) >> 7); }

/* The weighted sum of integers as a share of the greatest one, in steps of 1 / 65535 or 1 / 32767. */
static u32 sum_of_integers(const TextureObject *t, const i64 *weights, u32 (*texel)[CHANNELS], u32 k) {
    const i64 most = most_of(t, sizeof(u16)), over = 2 * (i64)ONE * most_of(t, t->bytes);
    i64 sum = 0;
    for (u32 corner = 0; corner < 1u << t->axes; corner++) sum += weights[corner] * (i32)texel[corner][k];
    if (t->type == TEXEL_SIGNED && t->bytes == 1) return as_share(widened_bytes(sum), most);
    const i64 scaled = 2 * sum * most + over / 2;
    return as_share(scaled / over - (scaled % over < 0), most);
}

static void filtered(const TextureObject *t, const Along *along, u32 (*texel)[CHANNELS], u32 *channels) {
    i64 weights[CORNERS];
    for (u32 corner = 0; corner < CORNERS; corner++) weights[corner] = weight_of(along, corner);
    for (u32 k = 0; k < CHANNELS; k++)
        channels[k] = t->type == TEXEL_FLOAT ? sum_of_floats(t, weights, texel, k)
                                             : sum_of_integers(t, weights, texel, k);
}

/* The four texels of a gather, in the order of the result: (0, 1), (1, 1), (1, 0), (0, 0). */
static const u32 gathered[CHANNELS] = {2, 3, 1, 0};

/* One lane: its channels, and where it read. */
static void fetch_lane(Worker *c, const TextureObject *t, const Ins *i, const u32 *coordinate, u32 layer, int lane,
                       Footprint *f, u32 *channels) {
    const int gathers = (i->aux & GATHERS) != 0, is_linear = gathers || (t->linear && !(i->aux & FETCHES));
    const u32 last = t->layers ? t->layers - 1 : 0, corners = is_linear ? 1u << t->axes : 1;
    Along along[TEXTURE_AXES] = {{{0, 0}, 0}, {{0, 0}, 0}, {{0, 0}, 0}};
    u32 texel[CORNERS][CHANNELS];
    for (int axis = 0; axis < t->axes; axis++) {
        const u32 x = coordinate[axis];
        along[axis] = i->aux & FETCHES ? whole_along(t, axis, (i32)x)
                      : is_linear      ? linear_along(t, axis, as_float(x), gathers)
                                       : point_along(t, axis, as_float(x));
    }
    for (u32 corner = 0; corner < corners; corner++) {
        const u64 address = corner_address(t, along, corner, layer < last ? layer : last);
        read_texel(c, t, address, texel[corner]);
        f->address[corner][lane] = address;
        f->lanes[corner] |= (u32)(address != 0) << lane;
    }
    if (is_linear && !gathers) {
        filtered(t, along, texel, channels);
        return;
    }
    for (u32 k = 0; k < CHANNELS; k++)
        channels[k] = fetched(t, gathers ? texel[gathered[k]][i->aux >> CHANNEL_SHIFT & 3] : texel[0][k]);
}

/* Clocks of the texture unit for a fetch of a warp whose texels are in L1, measured on an H200: a fetch of 2D
 * takes 8, one of linear memory half of that. Words of 32 bits beyond the first cost a linear filter 8 each,
 * and others a half of that; a filter of 3D takes twice as long. */
static u32 unit_clocks(const TextureObject *t) {
    const u32 words = t->bytes == WORD ? t->channels : 1, whole = t->kind == OF_MEMORY ? 4 : 8;
    const u32 clocks = whole * (t->linear ? words : words > 2 ? words / 2 : 1);
    return t->linear && t->axes == 3 ? 2 * clocks : clocks;
}

/* The lines of a footprint for the timing model, each once. A texel lies within a sector. */
static void stream_footprint(Worker *c, const Footprint *f, u32 clocks) {
    u64 line[CORNERS * LANES];
    u32 mask[CORNERS * LANES], n = 0, last = 0;
    for (u32 corner = 0; corner < CORNERS; corner++)
        FOR_LANES_OF(f->lanes[corner]) {
            const u64 sector = f->address[corner][l] / SECTOR, wanted = sector / SECTORS_OF_LINE;
            u32 k = last;
            if (!n || line[k] != wanted)
                for (k = 0; k < n && line[k] != wanted; k++) {}
            if (k == n) { line[n] = wanted; mask[n++] = 0; }
            mask[k] |= 1u << sector % SECTORS_OF_LINE;
            last = k;
        }
    for (u32 k = 0; k < n && k < MOST_LINES_OF_STEP; k++)
        stream_word(c->stream, kept_line(c->launch, line[k]) << SECTORS_OF_LINE | mask[k]);
    add_clocks(c->stream, n > clocks ? n : clocks);
}

/* Note the sectors that a request reads or writes, as those of a request to global memory. */
static void note_footprint(Worker *c, const Warp *w, Footprint *f, u32 bytes, u32 kind, u32 clocks) {
    for (u32 corner = 0; corner < CORNERS && c->trace; corner++) {
        if (!f->lanes[corner]) continue;
        narrow(f->address[corner], f->lanes[corner]);
        trace_request(c, w, f->address[corner], bytes, f->lanes[corner], kind);
    }
    if (c->stream) stream_footprint(c, f, clocks);
}

/* Write the channels of the mask, one after the other: two to d[0], the others to d[1]. */
static void write_channels(const Warp *w, const Ins *i, int lane, const u32 *channels) {
    u32 n = 0;
    for (u32 k = 0; k < CHANNELS; k++) {
        if (!(i->aux >> MASK_SHIFT >> k & 1)) continue;
        vector(w, i->d[n / 2])[n % 2 * LANES + (u32)lane] = channels[k];
        n++;
    }
}

/* s[0] the handle, s[1] to s[3] the coordinates, s[4] the layer; pd[0]: the texel is not resident. */
OPERATION(TEXTURE) {
    Footprint f = {.lanes = {0}};
    u32 bytes = 1, clocks = 1;
    FOR_LANES_OF(m) {
        const TextureObject *t = object_of(core, w, i, l, RAW(0)[l], 0);
        if (!t) return;
        const u32 coordinate[TEXTURE_AXES] = {RAW(1)[l], RAW(2)[l], RAW(3)[l]};
        u32 channels[CHANNELS];
        fetch_lane(core, t, i, coordinate, RAW(4)[l], l, &f, channels);
        write_channels(w, i, l, channels);
        bytes = texel_bytes(t);
        clocks = unit_clocks(t);
    }
    note_footprint(core, w, &f, bytes, TRACE_READ, clocks);
    WRITE_PREDICATE(0, 0);
}

/* s[0] the handle: width, height, and depth or layers. */
OPERATION(TEXTURE_QUERY) {
    FOR_LANES_OF(m) {
        const u32 handle = RAW(0)[l];
        const TextureObject *t = NULL;
        for (u32 k = 0; k < core->launch->texture_count; k++)
            if (core->launch->textures[k].handle == handle) t = &core->launch->textures[k];
        if (!t) {
            texture_fault(core, w, i, NO_TEXTURE, l, handle);
            return;
        }
        const u32 channels[CHANNELS] = {t->size[0], t->axes > 1 ? t->size[1] : 0,
                                        t->layers ? t->layers : t->axes > 2 ? t->size[2] : 0, 0};
        write_channels(w, i, l, channels);
    }
}

static i64 clamped(i64 k, i64 n) { return k < 0 ? 0 : k >= n ? n - 1 : k; }

/* Where a lane accesses a surface; 0 where the access is ignored, or it is a fault, which is noted.
 * s[1] to s[3] the coordinates, the first in bytes, and the layer behind them. */
static u64 surface_address(Worker *c, const Warp *w, const Ins *i, const TextureObject *t, int lane, int is_store) {
    const u32 *word[TEXTURE_AXES] = {RAW(1), RAW(2), RAW(3)};
    const i64 row = (i64)t->size[0] * texel_bytes(t), x = (i32)word[0][lane];
    i64 at[TEXTURE_AXES] = {x, 0, 0}, layer = 0;
    for (u32 axis = 1; axis < t->axes; axis++) at[axis] = (i32)word[axis][lane];
    if (t->layers) layer = (i32)word[t->axes][lane];
    int outside = x < 0 || x + i->width > row || (t->layers && (layer < 0 || layer >= t->layers));
    for (u32 axis = 1; axis < t->axes; axis++) outside |= at[axis] < 0 || at[axis] >= t->size[axis];
    const int is_misaligned = x % i->width != 0;
    if (is_misaligned || (outside && !(i->aux & (OUTSIDE_IGNORED | OUTSIDE_CLAMPED)))) {
        memory_fault(c, w, is_misaligned ? SURFACE_MISALIGNED : SURFACE_BOUNDS, SPACE_GLOBAL, lane, t->handle,
                     i->width, is_store);
        c->fault.waiting = (u32)at[0];
        c->fault.resident = (u32)at[1];
        c->fault.pending = (u32)at[2];
        c->fault.phase = (u32)layer;
        return 0;
    }
    if (outside && i->aux & OUTSIDE_IGNORED) return 0;
    for (u32 axis = 1; axis < t->axes; axis++) at[axis] = clamped(at[axis], t->size[axis]);
    if (t->layers) layer = clamped(layer, t->layers);
    at[0] = x < 0 ? 0 : x + i->width > row ? row - i->width : x;
    return address_of(t, 0, at[1], at[2], (u32)layer) + (u64)at[0];
}

typedef void SurfaceAct(Worker *c, const Warp *w, const Ins *i, int lane, u8 *at);

/* Do an access of each lane to its surface; `at` is NULL where it is ignored. */
static void access_surface(Worker *c, const Warp *w, const Ins *i, u32 m, u32 kind, SurfaceAct *act) {
    Footprint f = {.lanes = {0}};
    const int is_store = kind != TRACE_READ;
    FOR_LANES_OF(m) {
        const TextureObject *t = object_of(c, w, i, l, RAW(0)[l], 1);
        if (!t) return;
        const u64 address = surface_address(c, w, i, t, l, is_store), end = address + i->width;
        if (c->fault.kind) return;
        f.address[0][l] = address;
        f.lanes[0] |= (u32)(address != 0) << l;
        act(c, w, i, l, address ? host_of(buffer_of(c, address, end, is_store), address, end, is_store) : NULL);
    }
    c->changes += (u32)is_store;
    note_footprint(c, w, &f, i->width, kind, ceil_div(i->width, WORD));
}

static void load_surface(Worker *c, const Warp *w, const Ins *i, int lane, u8 *at) {
    u32 words[CHANNELS] = {0};
    (void)c;
    if (at) memcpy(words, at, i->width);
    for (u32 k = 0; k < (i->width < WORD ? 1 : i->width / WORD); k++) DESTINATION[k * LANES + (u32)lane] = words[k];
}

static void store_surface(Worker *c, const Warp *w, const Ins *i, int lane, u8 *at) {
    u32 words[CHANNELS] = {0};
    (void)c;
    for (u32 k = 0; k < (i->width < WORD ? 1 : i->width / WORD); k++) words[k] = RAW(4)[k * LANES + (u32)lane];
    if (at) memcpy(at, words, i->width);
}

static void reduce_surface(Worker *c, const Warp *w, const Ins *i, int lane, u8 *at) {
    const u32 type = i->aux >> REDUCE_SHIFT >> ATOMIC_TYPE_SHIFT & 0xff, bytes = words_of_type(type) * WORD;
    const u32 *data = RAW(4);
    u64 old = 0, x = data[lane];
    (void)c;
    if (bytes > WORD) x |= (u64)data[LANES + lane] << 32;
    if (!at) return;
    memcpy(&old, at, bytes);
    old = combined(i->aux >> REDUCE_SHIFT & 0xff, type, 0, old, x, 0);
    memcpy(at, &old, bytes);
}

/* s[0] the handle, s[1] to s[3] the coordinates, s[4] what is stored. */
OPERATION(SURFACE_LOAD) { access_surface(core, w, i, m, TRACE_READ, load_surface); }
OPERATION(SURFACE_STORE) { access_surface(core, w, i, m, TRACE_WRITE, store_surface); }
OPERATION(SURFACE_REDUCE) { access_surface(core, w, i, m, TRACE_ATOMIC, reduce_surface); }
