#include "operands.h"

#include "convert.h"
#include "costs.h"
#include "gmma.h"
#include "integer.h"
#include "memory.h"
#include "mma.h"
#include "operations.h"
#include "texture.h"
#include "warp.h"

/* Words that source k has, and that are written. */
u32 words_read(const Ins *i, int k) {
    const u32 words = i->width < WORD ? 1 : i->width / WORD;
    switch (i->op) {
    case OP_MOV64: case OP_ADD64: case OP_ISETP64: case OP_MINMAX64: case OP_SEL64:
    case OP_DADD: case OP_DMUL: case OP_DFMA: case OP_DSETP: case OP_DSETP_EXTREME:
    case OP_FADD2: case OP_FMUL2: case OP_FFMA2: case OP_F64_TO_F32: case OP_MBARRIER_EXCHANGE:
        return 2;
    case OP_F2I: case OP_FRND: return i->flags & SOURCE_F64 ? 2 : 1;
    case OP_I2F: case OP_I2D: case OP_I2H: return (i->aux & BITS_MASK) == 64 ? 2 : 1;
    case OP_IMAD_WIDE: return k == 2 ? 2 : 1;
    case OP_MATCH: return i->flags & MATCH_64 ? 2 : 1;
    case OP_STORE: case OP_CHECK_STORE:
        return i->width == WIDE_BYTES ? (k < 2 ? 1 : HALF_WORDS) : k == 2 ? words : 1;
    case OP_ATOMIC: case OP_CHECK_ATOMIC: return k >= 2 ? words : 1;
    case OP_MATRIX_STORE: case OP_CHECK_MATRIX_STORE: return k == 2 ? i->aux : 1;
    case OP_MMA: case OP_MMA_INTEGER: case OP_MMA_BITS: case OP_MMA_DOUBLE: case OP_MMA_QUADS:
    case OP_MMA_SCALED: case OP_MMA_SCALED_FOURS:
        return k < 3 ? mma_field(i, MMA_OF_A + 8 * (u32)k) : 1;
    case OP_GMMA: case OP_CHECK_GMMA: return k == 0 ? gmma_sums(i) : k == 1 ? gmma_registers_of_a(i) : 4;
    default: return 1;
    }
}

u32 words_written(const Ins *i) {
    switch (i->op) {
    case OP_MOV64: case OP_ADD64: case OP_MINMAX64: case OP_SEL64: case OP_DADD: case OP_DMUL: case OP_DFMA:
    case OP_FADD2: case OP_FMUL2: case OP_FFMA2: case OP_I2D: case OP_TO_F64: case OP_CLOCK64:
    case OP_MBARRIER_EXCHANGE: case OP_MBARRIER_ARRIVE: case OP_MATRIX_WIDEN:
        return 2;
    case OP_F2I: return (i->aux & BITS_MASK) == 64 ? 2 : 1;
    case OP_FRND: return i->flags & SOURCE_F64 ? 2 : 1;
    case OP_IMAD_WIDE: return i->flags & UPPER_HALF ? 1 : 2;
    case OP_TEXTURE: case OP_TEXTURE_QUERY: return channels_of(i) < 2 ? 1 : 2;
    case OP_LOAD: case OP_CHECK_LOAD:
        if (i->width == WIDE_BYTES) return wide_words(i, 0);
        /* fall through */
    case OP_LOAD_CONSTANT: case OP_ATOMIC: case OP_SURFACE_LOAD: case OP_CHECK_ATOMIC:
        return i->width < WORD ? 1 : i->width / WORD;
    case OP_MATRIX_LOAD: case OP_CHECK_MATRIX_LOAD: return i->aux;
    case OP_MMA: case OP_MMA_INTEGER: case OP_MMA_BITS: case OP_MMA_DOUBLE: case OP_MMA_QUADS:
    case OP_MMA_SCALED: case OP_MMA_SCALED_FOURS:
        return mma_field(i, MMA_OF_D);
    case OP_GMMA: case OP_CHECK_GMMA: return gmma_sums(i);
    default: return 1;
    }
}

/* Words of the second vector that is written. */
u32 words_written_beside(const Ins *i) {
    if ((i->op == OP_LOAD || i->op == OP_CHECK_LOAD) && i->width == WIDE_BYTES) return wide_words(i, 1);
    const int fetches = i->op == OP_TEXTURE || i->op == OP_TEXTURE_QUERY;
    return fetches && channels_of(i) > 2 ? channels_of(i) - 2 : 0;
}
