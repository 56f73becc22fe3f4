/* Texture and surface objects: arrays that are fetched by coordinates, with filters and address modes.
 *
 * CUDA Programming Guide, "Texture Fetching", has the formulas. Their arrays lie here row by row; how a
 * CUDA array lies in the memory of a GPU is not known. */
#pragma once

#include "core.h"

enum { TEXTURE_AXES = 3, CHANNELS = 4, CORNERS = 8 };

/* What an object is, the types of its channels, and its filter and address modes: as
 * toolkit/sass/textures.py numbers them. */
enum { OF_ARRAY = 0, OF_MEMORY, OF_SURFACE };
enum { TEXEL_UNSIGNED = 0, TEXEL_SIGNED, TEXEL_FLOAT };
enum { ADDRESS_CLAMP = 0, ADDRESS_WRAP, ADDRESS_MIRROR, ADDRESS_BORDER };

/* A texture or surface object, as toolkit/sass/textures.py describes it; axes from the innermost on. */
struct TextureObject {
    u64 address, handle;
    u32 size[TEXTURE_AXES], layers; /* layers 0: it has none */
    u8 kind, axes, channels, bytes; /* bytes of a channel */
    u8 type, linear, normalized, to_float;
    u8 mode[TEXTURE_AXES], reserved[5];
};

/* Ins.aux of TEXTURE, SURFACE_*: axes and layers; of TEXTURE: the channels that are written, integer
 * coordinates (TLD), a gather and its channel; of SURFACE_*: what an access outside does; of SURFACE_REDUCE the operation and type as of ATOMIC, from REDUCE_SHIFT on. */
enum {
    AXES_MASK = 3, LAYERED = 4, MASK_SHIFT = 3, FETCHES = 1 << 7, GATHERS = 1 << 8, CHANNEL_SHIFT = 9,
    OUTSIDE_IGNORED = 8, OUTSIDE_CLAMPED = 16, REDUCE_SHIFT = 8
};

/* What a TEXTURE or TEXTURE_QUERY writes: channels of d[0], and of d[1]. */
static inline u32 channels_of(const Ins *i) { return popcount(i->aux >> MASK_SHIFT & 15); }
