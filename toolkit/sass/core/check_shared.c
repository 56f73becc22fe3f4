#include "check_shared.h"

#include "atomics.h"
#include "check_products.h"
#include "matrix.h"
#include "operations.h"

/* A read comes upon a write that was simulated earlier. The read is the first of the two if its warp has
 * yet to come as far as the warp of the write: then it reads what the write overwrites. */
static int comes_first(const Worker *c, const Warp *w, const Written *last) {
    return last->kind == WRITE_PLAIN && last->epoch == c->checker->epoch &&
           last->thread / LANES != w->index && w->steps < last->step && c->pc < last->pc;
}

void report_pair(Worker *c, const Warp *w, u32 kind, int lane, u32 cell, u32 width,
                 u32 before, u32 pc_before, u32 is_async) {
    Finding f = finding_of(c, kind, SPACE_SHARED, thread_of(w, lane));
    f.pc_before = pc_before;
    f.thread_before = before;
    f.address = (u64)cell * c->checker->grain;
    f.width = width;
    f.is_async = is_async;
    report(c, &f);
}

/* Flags of a finding for the first of two accesses, if it is a write by a copy. */
static u32 asynchrony(const Written *last) {
    return last->kind == WRITE_BULK || last->epoch == BY_COPY ? IS_BULK : last->epoch == UNSETTLED ? IS_ASYNC : 0;
}

static int is_unordered(const Checker *k, u32 thread, u32 earlier, u32 stamp) {
    return stamp && earlier != thread && !is_after(k, thread, earlier, stamp);
}

/* An access comes after a write that it is not ordered with; where both are atomic, after the plain write
 * that the earlier one hides, and where it is ordered with the last of several atomic ones, after another. */
static void report_write(Worker *c, const Warp *w, u32 finding, int lane, u32 cell, u32 width,
                         const Written *last, u32 kind) {
    u32 before = last->thread, pc = last->pc;
    if (last->kind == WRITE_ATOMIC && kind == WRITE_ATOMIC)
        before = last->plain_thread, pc = last->plain_pc;
    else if (last->kind == WRITE_ATOMIC &&
             !is_unordered(c->checker, thread_of(w, lane), last->thread, last->stamp))
        before = last->other_thread, pc = last->other_pc;
    report_pair(c, w, finding, lane, cell, width, before, pc,
                finding == FOUND_READ_AFTER_WRITE && comes_first(c, w, last) ? READ_IS_FIRST
                                                                             : asynchrony(last));
}

/* True if the last write of a cell is not ordered before an access of `thread` now. */
int races_with_write(const Checker *k, const Written *last, u32 thread, u32 kind) {
    if (last->epoch < k->first_epoch) return 0; /* of an earlier block */
    if (last->epoch == UNSETTLED) return 1;
    if (last->epoch == BY_COPY)
        return clock_of(k, thread)[k->threads + last->mbarrier] <= last->stamp;
    if (last->epoch != k->epoch) return 0;
    if (last->kind == WRITE_ATOMIC && kind == WRITE_ATOMIC)
        return is_unordered(k, thread, last->plain_thread, last->plain_stamp);
    if (last->kind == WRITE_ATOMIC && is_unordered(k, thread, last->other_thread, last->other_stamp))
        return 1;
    return is_unordered(k, thread, last->thread, last->stamp);
}

/* Keep one earlier atomic operation of a thread other than `thread`: the last one, if `thread` is not
 * ordered after it or if there is no other. */
static void keep_other(const Checker *k, const Written *last, u32 thread, Written *now) {
    const int is_other = last->thread != thread;
    const int had_other = last->other_stamp && last->other_thread != thread;
    if (is_other && (!had_other || is_unordered(k, thread, last->thread, last->stamp)))
        now->other_stamp = last->stamp, now->other_thread = last->thread, now->other_pc = last->pc;
    else if (had_other)
        now->other_stamp = last->other_stamp, now->other_thread = last->other_thread,
        now->other_pc = last->other_pc;
}

/* The cell's readers in this warp begin anew with the phase, but for those that `lane` is not ordered
 * after. */
void begin_phase(const Checker *k, const Warp *w, ReadBy *read, int lane) {
    u32 left = 0;
    if (read->stamp >= k->floor[w->index] && read->stamp)
        FOR_LANES
            if (read->mask >> l & 1 && l != (u32)lane &&
                !is_after(k, thread_of(w, lane), w->index * LANES + l, read->stamp))
                left |= 1u << l;
    read->stamp = k->phase[w->index];
    read->mask = left;
}

static void suspect(const Worker *c, const Warp *w, u32 slot, int lane, Unwritten read) {
    Suspect *x = suspect_of(c, w, slot);
    if (!x->lanes) c->checker->suspects[w->index]++;
    x->lanes |= 1u << lane;
    x->of[lane] = read;
}

/* The lanes that hold what a row of a matrix has at `offset`. */
static void suspect_row(const Worker *c, const Warp *w, const Ins *i, int lane, u32 offset, Unwritten read) {
    const u32 row = (u32)lane % SIDE, slot = i->d[0] + (u32)lane / SIDE, grain = c->checker->grain;
    const u32 bits = widened_bits(i);
    if (bits) {
        read.width = 1;
        for (u32 at = 8 * offset; at < 8 * (offset + grain) && at / bits < ROW_BYTES; at++)
            suspect(c, w, slot, (int)(4 * row + at / bits / BYTES_OF_WORD), read);
        return;
    }
    read.width = HALF_BYTES; /* a lane may hold one half of it */
    for (u32 at = offset; at < offset + grain; at += HALF_BYTES)
        suspect(c, w, slot, (int)holder_of(row, at / HALF_BYTES, i->flags & TRANSPOSED), read);
}

/* A lane reads unwritten memory. To load it is harmless, as code does that fetches ahead and
 * finds itself at its end: it is told where it is used. `first` is the first cell of the access. */
static void note_unwritten_read(Worker *c, const Warp *w, int lane, u32 first, u32 cell, u32 width) {
    Checker *k = c->checker;
    const Ins *i = &c->launch->program[c->pc];
    const Unwritten read = {.pc = c->pc, .cell = cell, .width = width};
    const u32 offset = (cell - first) << k->shift;
    if (handler_of(i->op) == op_CHECK_LOAD)
        suspect(c, w, i->d[0] + offset / WORD, lane, read);
    else if (handler_of(i->op) == op_CHECK_MATRIX_LOAD)
        suspect_row(c, w, i, lane, offset, read);
    else
        report_alone(c, w, FOUND_UNWRITTEN, SPACE_SHARED, lane, (u64)cell << k->shift, width);
}

/* A read of what was not written in an earlier epoch of this block. */
void check_fresh_read(Worker *c, const Warp *w, int lane, u32 first, u32 cell, u32 width, u32 kind) {
    const Checker *k = c->checker;
    const Written *written = &k->written[cell];
    if (written->epoch < k->first_epoch) note_unwritten_read(c, w, lane, first, cell, width);
    else if (races_with_write(k, written, thread_of(w, lane), kind))
        report_write(c, w, FOUND_READ_AFTER_WRITE, lane, cell, width, written, kind);
}

/* `lanes` of a warp, `lane` the first of them, read the same. */
void check_shared_read(Worker *c, const Warp *w, int lane, u32 lanes, u64 address, u32 width,
                       u32 kind) {
    Checker *k = c->checker;
    const u32 first = (u32)address >> k->shift, count = width >> k->shift;
    const u32 phase = k->phase[w->index], epochs = k->epoch - k->first_epoch;
    ReadBy *reads = k->read + (size_t)w->index * k->cells;
    for (u32 cell = first; cell < first + count; cell++) {
        Written *written = &k->written[cell];
        ReadBy *read = &reads[cell];
        if (written->epoch - k->first_epoch >= epochs)
            for (u32 left = lanes; left; left &= left - 1)
                check_fresh_read(c, w, __builtin_ctz(left), first, cell, width, kind);
        if (kind == WRITE_ATOMIC) continue;
        if (read->stamp != phase) begin_phase(k, w, read, lane);
        read->mask |= lanes;
        read->pc = c->pc;
        written->read_epoch = k->epoch;
    }
}

/* Note the common reads: of words that were written before the last barrier, or by a bulk copy for which
 * all lanes of the warp have waited, and that no lane is known to have read in an earlier phase of this
 * epoch. Returns the lanes with other reads. `is_run`: all lanes read consecutive words. */
ALWAYS_INLINE u32
note_shared_reads(Checker *k, const Warp *w, const u32 *cells, u32 m, const u32 count, u32 pc,
                  const int has_gates, const int is_run) {
    Written *restrict written = k->written;
    ReadBy *restrict reads = k->read + (size_t)w->index * k->cells;
    const u32 epoch = k->epoch, first = k->first_epoch;
    const u32 phase = k->phase[w->index], floor = k->floor[w->index];
    const u32 *restrict acquired = k->acquired + (size_t)w->index * MOST_MBARRIERS;
    u32 rare = 0;
    FOR_LANES {
        const u32 lane = is_run ? 1u << l : m & 1u << l;
        const u32 begin = is_run ? cells[0] + (u32)l * count : cells[l];
        if (!lane) continue;
        for (u32 cell = begin; cell < begin + count; cell++) {
            ReadBy *read = &reads[cell];
            const u32 stamp = read->stamp, mask = stamp < floor ? 0 : read->mask;
            const Written *last = &written[cell];
            const int is_copied =
                has_gates && (last->epoch == BY_COPY) & (acquired[last->mbarrier] > last->stamp);
            const int is_rare = ((last->epoch - first >= epoch - first) & !is_copied) |
                                ((stamp >= floor) & (stamp != phase));
            rare |= is_rare ? lane : 0;
            read->mask = mask | lane;
            read->stamp = is_rare ? stamp : phase;
            read->pc = pc;
            if (last->read_epoch != epoch) written[cell].read_epoch = epoch; /* most often it is */
        }
    }
    return rare;
}

/* Reads of this epoch that a write of `lane` is not ordered after. */
void check_against_reads(Worker *c, const Warp *w, int lane, u32 cell, u32 width, u32 is_async) {
    Checker *k = c->checker;
    if (k->written[cell].read_epoch != k->epoch) return;
    for (u32 n = 0; n < c->warp_count; n++) {
        const ReadBy *read = k->read + (size_t)n * k->cells + cell;
        if (read->stamp < k->floor[n] || !read->stamp) continue;
        u32 lanes = n == w->index ? read->mask & ~(1u << lane) : read->mask;
        for (; lanes; lanes &= lanes - 1) {
            const u32 reader = n * LANES + (u32)__builtin_ctz(lanes);
            if (is_after(k, thread_of(w, lane), reader, read->stamp)) continue;
            report_pair(c, w, FOUND_WRITE_AFTER_READ, lane, cell, width, reader, read->pc, is_async);
            return;
        }
    }
}

/* Bulk copies that still read what a lane writes. */
void check_against_copies(Worker *c, const Warp *w, int lane, u32 cell, u32 width) {
    const Checker *k = c->checker;
    for (u64 n = 0; n < k->reading_count; n++) {
        const Reading *r = &k->reading[n];
        if (cell - r->first < r->cells)
            report_pair(c, w, FOUND_WRITE_AFTER_READ, lane, cell, width, r->thread, r->pc, IS_BULK);
    }
}

/* Products that may still read what a lane writes, or a copy of its. */
void check_against_products(Worker *c, const Warp *w, int lane, u32 cell, u32 width) {
    u32 before, pc;
    if (!is_read_by_products(c->checker, thread_of(w, lane), cell << c->checker->shift, &before, &pc)) return;
    report_pair(c, w, FOUND_WRITE_AFTER_READ, lane, cell, width, before, pc, IS_PRODUCT);
}

/* A write by `lane`; x holds the registers that are stored, NULL where the value is not known. */
void check_shared_write(Worker *c, const Warp *w, const Ins *i, int lane, u64 address,
                        u32 kind, const u32 *x) {
    Checker *k = c->checker;
    const u32 first = (u32)address >> k->shift, count = i->width >> k->shift;
    const u32 thread = thread_of(w, lane);
    for (u32 cell = first; cell < first + count; cell++) {
        Written *written = &k->written[cell];
        if (kind == WRITE_ATOMIC && cell == first && written->epoch < k->first_epoch &&
            (i->aux & 0xff) != ATOMIC_EXCH)
            report_alone(c, w, FOUND_UNWRITTEN, SPACE_SHARED, lane, (u64)cell << k->shift, i->width);
        if (races_with_write(k, written, thread, kind)) {
            const u32 offset = cell * k->grain - (u32)address;
            const int together = written->pc == c->pc && written->step == w->steps &&
                                 written->thread / LANES == w->index;
            /* a write of the value that is there already changes nothing, in either order */
            const int alike = x && written->epoch < BY_COPY &&
                stored(k, x, lane, offset) ==
                    (together ? stored(k, x, written->thread % LANES, offset)
                              : held(k, c->block->shared + (size_t)cell * k->grain));
            if (!alike)
                report_write(c, w, FOUND_WRITE_AFTER_WRITE, lane, cell, i->width, written, kind);
        }
        check_against_reads(c, w, lane, cell, i->width, 0);
        if (k->reading_count) check_against_copies(c, w, lane, cell, i->width);
        if (k->products) check_against_products(c, w, lane, cell, i->width);
        const int hides = kind == WRITE_ATOMIC && written->epoch == k->epoch;
        const int is_plain = written->kind == WRITE_PLAIN;
        const u32 plain_pc = is_plain ? written->pc : written->plain_pc;
        Written now = {.epoch = kind == WRITE_ASYNC ? UNSETTLED : k->epoch,
                       .stamp = k->phase[w->index], .pc = c->pc,
                       .step = kind == WRITE_ATOMIC ? plain_pc : w->steps,
                       .read_epoch = written->read_epoch, .thread = (u16)thread,
                       .kind = (u8)kind,
                       .plain_stamp = !hides ? 0 : is_plain ? written->stamp : written->plain_stamp,
                       .plain_thread = is_plain ? written->thread : written->plain_thread};
        if (hides && written->kind == WRITE_ATOMIC) keep_other(k, written, thread, &now);
        *written = now;
    }
    note_layout(k, (u32)address, i->width, BY_THREADS);
}

int all_in_shared(const Worker *c, const Extent *e, u32 width) {
    return e->low >= c->launch->shared_base && e->high + width <= c->launch->shared_bytes;
}

static int is_run(const u32 *cells, u32 m) {
    u32 differs = ~m;
    FOR_LANES differs |= cells[l] ^ (cells[0] + l);
    return !differs;
}

ALWAYS_INLINE u32
note_reads_of(Checker *k, const Warp *w, const u32 *cells, u32 m, u32 count, u32 pc, const int has_gates) {
    switch (count) {
    case 1:
        return is_run(cells, m) ? note_shared_reads(k, w, cells, m, 1, pc, has_gates, 1)
                                : note_shared_reads(k, w, cells, m, 1, pc, has_gates, 0);
    case 4: return note_shared_reads(k, w, cells, m, 4, pc, has_gates, 0);
    default: return note_shared_reads(k, w, cells, m, count, pc, has_gates, 0);
    }
}

/* The lanes whose reads are not examined yet. */
static u32 check_common_reads(Worker *c, const Warp *w, const u64 *a, const Extent *e, u32 m, u32 width) {
    Checker *k = c->checker;
    u32 cells[LANES];
    if (e->low == e->high) return m;
    FOR_LANES cells[l] = (u32)a[l] >> k->shift;
    return k->has_gates ? note_reads_of(k, w, cells, m, width >> k->shift, c->pc, 1)
                        : note_reads_of(k, w, cells, m, width >> k->shift, c->pc, 0);
}

void check_own_shared(Worker *c, const Warp *w, const Ins *i, u32 m, const u64 *a, const Extent *e,
                      int is_store, u32 kind, const u32 *x) {
    if (!all_in_shared(c, e, i->width)) return; /* in a cluster, or about to stop */
    if (!is_store && kind == WRITE_PLAIN) m = check_common_reads(c, w, a, e, m, i->width);
    while (m) {
        const int l = __builtin_ctz(m);
        u32 lanes = m & -m;
        if (!is_store && e->low == e->high) lanes = m;
        else if (!is_store) /* neighbours that read the same */
            for (int n = l + 1; n < LANES && m >> n & 1 && a[n] == a[l]; n++) lanes |= 1u << n;
        m &= ~lanes;
        if (is_store) check_shared_write(c, w, i, l, a[l], kind, x);
        else check_shared_read(c, w, l, lanes, a[l], i->width, kind);
    }
}
