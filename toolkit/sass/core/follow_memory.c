#include "atomics.h"
#include "follow.h"
#include "matrix.h"
#include "memory.h"
#include "operations.h"
#include "space.h"
#include "texture.h"

enum { SECTOR_BITS = 5, BANK_BITS = 7 }; /* of a sector and of a turn of all banks, in bytes */

/* The words of shared or local memory that lane l names, NULL where they are outside. */
static u16 *words_at(Follow *f, u32 space, int l, u64 address) {
    const Launch *launch = f->o->launch;
    const u64 word = address / WORD_BYTES, count = ((address + f->i->width + 3) / WORD_BYTES) - word;
    if (space == SPACE_SHARED) return word + count <= shared_words(launch) ? f->o->shared + word : NULL;
    const size_t each = local_words(launch);
    return word + count <= each ? f->o->local + ((size_t)f->w->index * LANES + (size_t)l) * each + word : NULL;
}

/* Origin of the address of lane l: its sources k and k + 1 are a register or pair, and a uniform one. */
static u16 address_origin(Follow *f, const Ins *i, int k, int l) {
    const u16 *lane = read_origins(f->o, f->w, i, k), *uniform = read_origins(f->o, f->w, i, k + 1);
    const u32 *low = vector(f->w, i->s[k]), *base = vector(f->w, i->s[k + 1]);
    u16 found = word_scaled_by(f->o, lane[l], 1ll << (i->flags >> SCALE_SHIFT & 7)), of_base = uniform[l];
    if (i->flags & ADDRESS_64) {
        keep_unsigned(f->o, lane[l], low[l]);
        found = combination(f->o, lane[l], 1, lane[LANES + l], WRAP_32);
    } else if (i->flags & UNIFORM_64) {
        keep_sign(f->o, lane[l], low[l], i->flags & ADDRESS_SIGNED);
        found = scaled_by(f->o, lane[l], 1ll << (i->flags >> SCALE_SHIFT & 7));
    }
    if (i->flags & UNIFORM_64) {
        keep_unsigned(f->o, uniform[l], base[l]);
        of_base = combination(f->o, uniform[l], 1, uniform[LANES + l], WRAP_32);
    }
    return combination(f->o, found, 1, of_base, 1);
}

/* Note what the addresses of a request depend on, beyond a shift of all by whole sectors or turns of the
 * banks, 2^bits bytes. Returns their origin, or what they depend on where lanes have several; `of_lanes` has
 * those of each lane. */
static u16 follow_addresses(Follow *f, const Ins *i, int k, u32 bits, Lanes *of_lanes) {
    Dependence *const of = &f->o->of[f->c->pc];
    Lanes lanes;
    FOR_LANES_OF(f->m) of_lanes->x[l] = lanes.x[l] = address_origin(f, i, k, l);
    const u16 kind = kind_of_lanes(lanes.x, f->m), first = lanes.x[__builtin_ctz(f->m)];
    FOR_LANES_OF(f->m) {
        const u16 apart = combination(f->o, lanes.x[l], 1, first, -1);
        if (!is_known(apart)) note(&of->address, apart);
        else if (!is_whole(f->o, lanes.x[l], bits)) note(&of->address, BLOCK_INDEX);
        if (is_affine(apart) && !f->o->under) {
            affine_of(f->o, apart)->parts = 1;
            note(&of->parted, BLOCK_INDEX);
        }
    }
    return are_alike(lanes.x, f->m) ? first : kind;
}

/* Note how far each buffer is reached by addresses that do not depend on data. */
static void note_reach(Follow *f, const Ins *i, const Lanes *lanes) {
    u64 a[LANES];
    addresses(f->w, i, f->m, a);
    FOR_LANES_OF(f->m) {
        const u64 end = a[l] + i->width;
        const Allocation *const all = allocation_of(f->c, a[l], end);
        if (!all) continue;
        Reach *const reach = &f->o->reach[all - f->o->launch->allocations];
        reach->is_read |= i->op != OP_STORE && i->op != OP_ATOMIC;
        if (kind_of(lanes->x[l]) == DATA) reach->by_data = 1;
        else if (end - all->base > reach->bytes) reach->bytes = end - all->base;
    }
}

static void follow_global(Follow *f, const Ins *i, int k) {
    Lanes lanes;
    follow_addresses(f, i, k, SECTOR_BITS, &lanes);
    note_reach(f, i, &lanes);
}

static u16 *floor_of(Origins *o, u32 space) { return space == SPACE_SHARED ? &o->of_shared : &o->of_local; }

/* What any word of shared or local memory depends on. */
static u16 of_all_words(const Origins *o, u32 space) {
    const size_t all = space == SPACE_SHARED ? shared_words(o->launch)
                                             : (size_t)o->warps * LANES * local_words(o->launch);
    const u16 *const origins = space == SPACE_SHARED ? o->shared : o->local;
    u16 found = SAME;
    for (size_t k = 0; k < all && found != DATA; k++) worsen(&found, kind_of(origins[k]));
    return found;
}

/* `found`, or what a word depends on if that is worse. All words are looked at only where it matters: of local memory
 * there may be millions. */
static u16 with_all_words(const Origins *o, u32 space, u16 found) {
    return found == DATA ? DATA : worse(found, of_all_words(o, space));
}

/* What a read of shared memory at any place depends on. */
u16 of_shared_memory(const Origins *o) { return with_all_words(o, SPACE_SHARED, o->of_shared); }

/* An access of shared or local memory: a load takes over the origins of words, a store sets them, or
 * those of all words where it is not known which ones it writes. */
static void follow_near(Follow *f, const Ins *i, u32 space, int is_store, const u16 *data, u16 at_least) {
    Origins *const o = f->o;
    const u32 words = i->width < WORD_BYTES ? 1 : i->width / WORD_BYTES;
    u64 a[LANES];
    Lanes lanes;
    const u16 common = follow_addresses(f, i, 0, BANK_BITS, &lanes);
    if (common) {
        if (is_store) worsen(floor_of(o, space), kind_of(common));
        for (u32 k = 0; is_store && k < words; k++)
            worsen(floor_of(o, space), worse(kind_of_lanes(data + k * LANES, f->m), at_least));
        if (!is_store) set_result(f, with_all_words(o, space, worse(kind_of(common), *floor_of(o, space))));
        return;
    }
    addresses(f->w, i, f->m, a);
    if (space == SPACE_SHARED) own_shared(f->c, a);
    FOR_LANES_OF(f->m) {
        u16 *const at = words_at(f, space, l, a[l]);
        for (u32 k = 0; k < words; k++) {
            const int is_part = i->width < WORD_BYTES;
            if (!is_store) {
                const u16 found = at ? at[k] : DATA;
                f->d[k].x[l] = *floor_of(o, space) ? worse(kind_of(found), *floor_of(o, space))
                               : is_part ? kind_of(found) : found;
            } else if (at) {
                const u16 given = data[k * LANES + l], kept = o->under || at_least || is_part;
                at[k] = kept ? worse(worse(kind_of(given), is_part ? kind_of(at[k]) : SAME), worse(o->under, at_least))
                             : given;
            }
        }
    }
}

static void follow_generic(Follow *f, int is_store) {
    u64 a[LANES];
    follow_global(f, f->i, 0);
    addresses(f->w, f->i, f->m, a);
    const Spaces in = spaces_of(f->c, a, f->m);
    if (is_store && (in.shared || in.local)) f->o->of_shared = f->o->of_local = DATA;
    set_result(f, DATA);
    fill(&f->p[0], in.global == f->m || in.global == 0 ? SAME : DATA);
}

static void follow_memory(Follow *f, int is_store) {
    const u32 space = space_of(f->i);
    const u16 *data = is_store ? read_origins(f->o, f->w, f->i, 2) : same_in_all;
    if (space == SPACE_GENERIC) follow_generic(f, is_store);
    else if (space != SPACE_GLOBAL) follow_near(f, f->i, space, is_store, data, SAME);
    else {
        follow_global(f, f->i, 0);
        set_result(f, DATA);
    }
}

static void follow_atomic(Follow *f) {
    if (space_of(f->i) == SPACE_SHARED) follow_near(f, f->i, SPACE_SHARED, 1, same_in_all, DATA);
    else if (space_of(f->i) == SPACE_GENERIC) follow_generic(f, 1);
    else follow_global(f, f->i, 0);
    set_result(f, DATA);
    fill(&f->p[0], (f->i->aux & 0xff) == ATOMIC_CAST ? DATA : SAME);
}

static void follow_copy(Follow *f) {
    Ins to = shared_side(f->i), from = global_side(f->i);
    to.width = f->i->width;
    follow_near(f, &to, SPACE_SHARED, 1, same_in_all, DATA);
    follow_global(f, &from, 0);
}

/* Rows of matrices in shared memory: each lane holds parts of several, so all of them have one origin. */
static void follow_matrices(Follow *f, int is_store) {
    Origins *const o = f->o;
    const u32 m = f->m, rows = row_lanes(f->i);
    u64 a[LANES];
    Lanes lanes;
    f->m = rows;
    const u16 common = kind_of(follow_addresses(f, f->i, 0, BANK_BITS, &lanes));
    f->m = m;
    u16 found = worse(common, is_store ? o->under : o->of_shared);
    for (u32 k = 0; is_store && k < f->i->aux; k++)
        worsen(&found, kind_of_lanes(read_origins(o, f->w, f->i, 2) + k * LANES, FULL));
    if (common && is_store) worsen(&o->of_shared, found);
    if (common && !is_store) found = with_all_words(o, SPACE_SHARED, found);
    addresses(f->w, f->i, rows, a);
    own_shared(f->c, a);
    for (u32 l = 0; l < LANES && !common; l++) {
        u16 *const at = rows >> l & 1 ? words_at(f, SPACE_SHARED, (int)l, a[l]) : NULL;
        if (rows >> l & 1 && !at && !is_store) worsen(&found, DATA);
        for (u32 n = 0; at && n < ROW_WORDS; n++) {
            if (is_store) at[n] = o->under ? worse(kind_of(at[n]), found) : found;
            else worsen(&found, kind_of(at[n]));
        }
    }
    set_result(f, found);
}

static void follow_bulk(Follow *f) {
    for (int k = 0; k < SOURCES; k++)
        note(&f->o->of[f->c->pc].address, kind_of_lanes(read_origins(f->o, f->w, f->i, k), FULL));
    f->o->of_shared = DATA;
}

/* A fetch from a texture, or an access of a surface, whose addresses no affine function describes. */
static void follow_texture(Follow *f) {
    for (int k = 0; k < SOURCES; k++)
        note(&f->o->of[f->c->pc].address, kind_of_lanes(read_origins(f->o, f->w, f->i, k), f->m));
    if (f->i->op != OP_TEXTURE_QUERY) set_result(f, DATA);
}

/* An access to memory. Whether it is one. */
int follow_access(Follow *f) {
    switch (f->i->op) {
    case OP_LOAD: follow_memory(f, 0); return 1;
    case OP_STORE: follow_memory(f, 1); return 1;
    case OP_MATRIX_LOAD: follow_matrices(f, 0); return 1;
    case OP_MATRIX_STORE: follow_matrices(f, 1); return 1;
    case OP_ATOMIC: follow_atomic(f); return 1;
    case OP_COPY_ASYNC: follow_copy(f); return 1;
    case OP_TENSOR_LOAD: case OP_TENSOR_STORE: case OP_BULK_LOAD: case OP_BULK_STORE: case OP_BULK_SHARED:
    case OP_STORE_ASYNC: case OP_SHARED_ZEROS:
        follow_bulk(f);
        return 1;
    case OP_TEXTURE: case OP_TEXTURE_QUERY: case OP_SURFACE_LOAD: case OP_SURFACE_STORE: case OP_SURFACE_REDUCE:
        follow_texture(f);
        return 1;
    default: return 0;
    }
}
