#include "stream.h"

#include <stdlib.h>

#include "costs.h"
#include "lanes.h"

enum { CONSTANT_LINE = 64, LOCAL_LINES = 1 << 16, WARPS_OF_BLOCK = 32, MOST_OF_RUN = 0xffff };
#define SPREAD_SPACE (1ull << 46) /* addresses, apart from those of all buffers */

Stream *new_stream(u64 most) {
    Stream *s;
    if (ZEROS(s, 1)) s->most = most;
    return s;
}

void free_stream(Stream *s) {
    if (!s) return;
    free(s->steps); free(s->lines); free(s->segments); free(s);
}

/* From here on, steps are of this warp. */
void stream_warp(Worker *c, const Warp *w) {
    Stream *s = c->stream;
    GROW(s, segments, segment_room, s->segment_count + 1);
    if (s->lost) return;
    s->segments[s->segment_count++] =
        (Segment){.block = c->block->index, .warp = w->index, .is_late = c->is_late, .first = s->count,
                  .first_line = s->line_count};
}

/* n instructions that follow each other and ask nothing of memory. */
void stream_run(Stream *s, u32 pc, u32 n) {
    if (s->lost) return;
    if (n > s->most - s->executed) { s->lost = 1; return; }
    s->executed += n;
    for (u32 some; n && !s->lost; pc += some, n -= some) {
        some = n < MOST_OF_RUN ? n : MOST_OF_RUN;
        GROW(s, steps, room, s->count + 1);
        if (!s->lost) s->steps[s->count++] = (Step){.pc = pc, .clocks = (u16)some, .flags = STEP_RUN};
    }
}

/* The last step was not executed after all, but will be. */
void take_step_back(Stream *s) {
    if (s->lost || !s->count) return;
    s->count--;
    s->executed--;
}

/* A word for the timing model, among the lines of the last step. */
void stream_word(Stream *s, u64 word) {
    Step *step = last_step(s);
    if (!step) return;
    GROW(s, lines, line_room, s->line_count + 1);
    if (s->lost) return;
    s->lines[s->line_count++] = word;
    if (++step->lines == 0) step->clocks++; /* of these steps, more than 255 are counted on there */
}

/* The distinct lines of a constant bank in which words of the lanes in m begin. */
void stream_constants(Stream *s, u32 bank, const u32 *offset, u32 imm, u32 m) {
    u64 found[LANES];
    u32 n = 0;
    FOR_LANES_OF(m) {
        const u64 line = CONSTANT | ((u64)bank << 32 | (offset[l] + imm) / CONSTANT_LINE) << SECTORS_OF_LINE;
        u32 k = 0;
        while (k < n && found[k] != line) k++;
        if (k == n) stream_word(s, found[n++] = line);
    }
}

/* Lines in the fullest of L1's tag banks, which look up one line per clock each. */
static u32 fullest_tag_bank(const u64 *line, u32 n) {
    u32 lines[TAG_BANKS] = {0}, most = 0;
    for (u32 k = 0; k < n; k++) {
        const u32 bank = tag_bank(line[k]);
        if (++lines[bank] > most) most = lines[bank];
    }
    return most;
}

/* Address in the spread matrix, whose rows are further apart; other addresses are unchanged. */
static u64 as_kept(const Launch *launch, u64 a) {
    const u64 offset = a - launch->spread_base;
    if (offset >= launch->spread_bytes) return a;
    return SPREAD_SPACE + offset / launch->spread_from * launch->spread_to + offset % launch->spread_from;
}

u64 kept_line(const Launch *launch, u64 line) { return as_kept(launch, line * LINE) / LINE; }

/* Base that makes the lines of a warp's local memory distinct from all others. */
u64 local_space(const Worker *c, const Warp *w) {
    return LOCAL >> SECTORS_OF_LINE | (c->block->index * WARPS_OF_BLOCK + w->index) * LOCAL_LINES;
}

/* The distinct lines of a request of the lanes in m, with their sectors, and its clocks: the most of
 * those of the data banks, of the tags, and of its width, as analysis.coalescing.global_cycles. */
void stream_request(Worker *c, const u64 *executed, u32 width, u32 m, u64 space) {
    Stream *s = c->stream;
    u64 a[LANES];
    FOR_LANES a[l] = as_kept(c->launch, executed[l]);
    u64 line[2 * LANES];
    u32 mask[2 * LANES], n = 0, last = 0;
    FOR_LANES_OF(m) {
        for (u64 sector = a[l] / SECTOR; sector <= (a[l] + width - 1) / SECTOR; sector++) {
            const u64 wanted = space | sector / SECTORS_OF_LINE;
            u32 k = last; /* neighbours mostly share a line */
            if (!n || line[k] != wanted)
                for (k = 0; k < n && line[k] != wanted; k++) {}
            if (k == n) { line[n] = wanted; mask[n++] = 0; }
            mask[k] |= 1u << sector % SECTORS_OF_LINE;
            last = k;
        }
    }
    Step *step = last_step(s);
    for (u32 k = 0; k < n && step && step->lines < MOST_LINES_OF_STEP; k++)
        stream_word(s, line[k] << SECTORS_OF_LINE | mask[k]);
    step = last_step(s);
    if (!step) return;
    u32 clocks = fullest_bank(a, width, m);
    const u32 tags = fullest_tag_bank(line, n), wide = width >= 16 ? width / WORD : 1;
    if (clocks < tags) clocks = tags;
    if (clocks < wide) clocks = wide;
    step->clocks = (u16)(step->clocks + clocks);
}
