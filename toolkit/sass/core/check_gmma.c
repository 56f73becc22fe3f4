#include "check_gmma.h"

#include "check_copies.h"
#include "check_products.h"
#include "check_shared.h"
#include "costs.h"
#include "grow.h"
#include "lanes.h"
#include "operands.h"
#include "operations.h"

/* An operand of a product in shared memory, and the last pair of thread and phase whose fence was looked for. */
typedef struct {
    Worker *c;
    const Warp *w;
    const MatrixDescriptor *m;
    int transposed;
    u32 thread, stamp;
    int is_covered, is_told;
} Operand;

static int races_with_warp(const Checker *k, const Written *last, const Warp *w) {
    FOR_LANES
        if (!races_with_write(k, last, thread_of(w, l), WRITE_PLAIN)) return 0;
    return 1;
}

static void report_operand(const Operand *x, u32 kind, u32 address, const Written *last, u32 flag) {
    report_pair(x->c, x->w, kind, 0, address >> x->c->checker->shift, 1 << UNIT_SHIFT, last->thread, last->pc, flag);
}

/* A thread stored this: it is ordered before the product, and fenced. */
static void check_stored(Operand *x, u32 address, const Written *last) {
    const Checker *k = x->c->checker;
    if (x->thread != last->thread || x->stamp != last->stamp) {
        x->thread = last->thread;
        x->stamp = last->stamp;
        x->is_covered = is_fenced(k, x->w, last->thread, last->stamp);
    }
    if (!x->is_covered) report_operand(x, FOUND_NO_PROXY_FENCE, address, last, 0);
}

/* Threads that write a swizzled tile count rows from its start; the pattern does from a multiple of 8 rows. */
static int is_misaligned(const Operand *x) {
    const u32 first = x->m->start >> 7 & (x->m->swizzle / 16 - 1);
    return x->m->swizzle && first != x->m->base;
}

/* A tensor copy wrote this with a swizzle: the descriptor has the same one. */
static void check_layout(Operand *x, u32 address, const Written *last, u8 layout) {
    if (x->is_told) return;
    if (layout == BY_THREADS ? is_misaligned(x) && last->kind == WRITE_PLAIN && last->epoch < BY_COPY
                             : layout - BY_TILE != (int)x->m->swizzle || x->m->base) {
        x->is_told = 1;
        report_operand(x, layout == BY_THREADS ? FOUND_MISALIGNED_MATRIX : FOUND_OTHER_SWIZZLE, address, last,
                       layout == BY_THREADS ? x->m->start : (u32)(layout - BY_TILE) << 16 | x->m->swizzle);
    }
}

static void check_piece(void *operand, UNUSED u32 n, u32 address) {
    Operand *x = operand;
    Worker *c = x->c;
    Checker *k = c->checker;
    if (address < c->launch->shared_base || address + (1 << UNIT_SHIFT) > c->launch->shared_bytes) return;
    const u32 unit = address >> UNIT_SHIFT;
    GroupProducts *of = &k->products->group[x->w->index / WARPS_OF_GROUP];
    const u32 number = k->products->warp[x->w->index].groups + 1;
    if (of->group[unit] <= number) of->group[unit] = number, of->pc[unit] = c->pc;
    for (u32 cell = address >> k->shift; cell < (address + (1 << UNIT_SHIFT)) >> k->shift; cell++) {
        const Written *last = &k->written[cell];
        if (last->epoch < k->first_epoch) continue; /* rows whose sums are not needed may stay unwritten */
        if (races_with_write(k, last, x->w->index * LANES, WRITE_PLAIN) && races_with_warp(k, last, x->w))
            report_operand(x, FOUND_READ_AFTER_WRITE, cell << k->shift, last,
                           last->kind == WRITE_BULK ? IS_BULK : last->epoch == UNSETTLED ? IS_ASYNC : IS_PRODUCT);
        else if (last->epoch < BY_COPY && last->mbarrier != WAITED_FOR && last->kind != WRITE_BULK)
            check_stored(x, cell << k->shift, last);
    }
    check_layout(x, address, &k->written[address >> k->shift], k->products->layout[unit]);
}

static void check_operand(Worker *c, const Warp *w, const Ins *i, u32 is_b) {
    const MatrixDescriptor m = descriptor_at(w, i, is_b);
    Operand x = {.c = c, .w = w, .m = &m, .thread = NOBODY,
                 .transposed = (i->flags & (is_b ? GMMA_TRANSPOSED_B : GMMA_TRANSPOSED_A)) != 0};
    if (!has_clocks(c)) return;
    each_piece(&m, x.transposed, is_b ? 0 : w->index % WARPS_OF_GROUP * GMMA_ROWS, is_b ? i->width : GMMA_ROWS,
               check_piece, &x);
}

/* Registers. */

static void report_register(Worker *c, const Warp *w, u32 kind, u32 slot, u32 before) {
    Finding f = finding_of(c, kind, SPACE_GENERIC, w->index * LANES);
    f.pc_before = before;
    f.thread_before = f.thread;
    f.address = slot;
    report(c, &f);
}

static int is_in_flight(const WarpProducts *p, u32 slot) { return p->use[slot] && p->group[slot] > p->waited; }

/* Another instruction uses registers that products of its warp read or write. */
void check_registers(Worker *c, const Warp *w, const Ins *i) {
    WarpProducts *p = &c->checker->products->warp[w->index];
    const u32 slots = c->launch->slots;
    const u32 written[] = {words_written(i), words_written_beside(i)};
    const int waits = p->open || p->groups > p->waited;
    for (int k = 0; waits && k < SOURCES; k++)
        for (u32 n = 0; !(i->s[k] & POOL) && n < words_read(i, k) && i->s[k] + n < slots; n++)
            if (is_in_flight(p, i->s[k] + n) && p->use[i->s[k] + n] == RESULT)
                report_register(c, w, FOUND_EARLY_RESULT, i->s[k] + n, p->pc[i->s[k] + n]);
    for (int k = 0; k < 2; k++)
        for (u32 n = 0; n < written[k] && i->d[k] + n < slots; n++) {
            const u32 slot = i->d[k] + n;
            if (waits && is_in_flight(p, slot)) report_register(c, w, FOUND_EARLY_CHANGE, slot, p->pc[slot]);
            p->changed[slot] = 1;
        }
}

static void use_registers(Worker *c, const Warp *w, u32 first, u32 count, u8 use) {
    WarpProducts *p = &c->checker->products->warp[w->index];
    for (u32 slot = first; slot < first + count; slot++) {
        if (p->changed[slot]) report_register(c, w, FOUND_NO_ARRIVE, slot, NOBODY);
        if (use == OPERAND && is_in_flight(p, slot) && p->use[slot] == RESULT)
            report_register(c, w, FOUND_EARLY_RESULT, slot, p->pc[slot]);
        p->group[slot] = p->groups + 1;
        p->pc[slot] = c->pc;
        p->use[slot] = use;
    }
}

/* The operations. */

OPERATION(CHECK_GMMA) {
    const int fits = m == FULL && (w->index | (WARPS_OF_GROUP - 1)) < core->warp_count;
    if (fits && !(i->flags & GMMA_EMPTY)) {
        if (i->flags & GMMA_REGISTERS) use_registers(core, w, i->s[1], gmma_registers_of_a(i), OPERAND);
        else check_operand(core, w, i, 0);
        check_operand(core, w, i, 1);
        use_registers(core, w, i->d[0], gmma_sums(i), RESULT);
    }
    WarpProducts *p = &core->checker->products->warp[w->index];
    p->open++;
    if (i->flags & GMMA_COMMITS) p->groups++, p->open = 0;
    op_GMMA(core, w, i, m);
}

OPERATION(CHECK_GMMA_ARRIVE) {
    WarpProducts *p = &core->checker->products->warp[w->index];
    memset(p->changed, 0, core->launch->slots);
    op_GMMA_ARRIVE(core, w, i, m);
}

/* The warp has waited for all but the last aux of its groups. */
OPERATION(CHECK_GMMA_WAIT) {
    Checker *k = core->checker;
    if (!wait_for_products(core, w, i, m)) return;
    WarpProducts *p = &k->products->warp[w->index];
    GroupProducts *of = &k->products->group[w->index / WARPS_OF_GROUP];
    const u32 over = p->groups > i->aux ? p->groups - i->aux : 0;
    if (over && !GROWN(of->ended, of->room, over)) { stop(core, NO_MEMORY); return; }
    for (; of->count < over; of->count++) of->ended[of->count] = (GroupEnd){{0}};
    for (; p->waited < over; p->waited++) of->ended[p->waited].stamp[w->index % WARPS_OF_GROUP] = k->phase[w->index];
}

/* fence.proxy.async: it is a MEMBAR too, where it is of the device. */
OPERATION(CHECK_PROXY_FENCE) { note_proxy_fence(core, w, m); }
