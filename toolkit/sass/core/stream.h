/* What each warp executes, in order: one Step per instruction, with what a memory request asks of
 * the load/store unit, and the lines that it touches. The timing model (analysis/cycles) replays it.
 * Warps run one after another here, in segments between barriers. */
#ifndef STREAM_H
#define STREAM_H

#include "core.h"

enum { STEP_TAKEN = 1, STEP_OFF = 2 }; /* a jump was taken; all lanes' guards were false */
enum { LOCAL_LINES = 1 << 16, MOST_LINES_OF_STEP = 255 };
#define LOCAL_SPACE (1ull << 55) /* lines of local memory, apart from all others */

struct Stream {
    Step *steps;
    u64 count, room, most; /* `most`: when there would be more, `lost` says so */
    u64 *lines;            /* a line's number << 4 | its sectors */
    u64 line_count, line_room;
    Segment *segments;
    u64 segment_count, segment_room;
    u32 lost;
};

static void *grown(void *old, u64 *room, u64 wanted, size_t size) {
    if (wanted <= *room) return old;
    u64 larger = *room ? 2 * *room : 1 << 12;
    while (larger < wanted) larger *= 2;
    void *found = realloc(old, larger * size);
    if (found) *room = larger;
    return found;
}

#define GROW(stream, array, room, wanted)                                               \
    do {                                                                                \
        void *found_ = grown((stream)->array, &(stream)->room, wanted,                  \
                             sizeof *(stream)->array);                                  \
        if (found_) (stream)->array = found_;                                           \
        else (stream)->lost = 1;                                                        \
    } while (0)

static Stream *new_stream(u64 most) {
    Stream *s = calloc(1, sizeof *s);
    if (s) s->most = most;
    return s;
}

static void free_stream(Stream *s) {
    if (!s) return;
    free(s->steps); free(s->lines); free(s->segments); free(s);
}

/* From here on, steps are of this warp. */
static void stream_warp(Worker *c, const Warp *w) {
    Stream *s = c->stream;
    GROW(s, segments, segment_room, s->segment_count + 1);
    if (s->lost) return;
    s->segments[s->segment_count++] =
        (Segment){.block = c->block, .warp = w->index, .first = s->count, .first_line = s->line_count};
}

/* The instruction at pc; what it asks of memory is added while it is executed. */
static void stream_step(Stream *s, u32 pc, u32 m) {
    if (s->lost) return;
    if (s->count == s->most) { s->lost = 1; return; }
    GROW(s, steps, room, s->count + 1);
    if (s->lost) return;
    s->steps[s->count++] = (Step){.pc = pc, .flags = m ? 0 : STEP_OFF};
}

static Step *last_step(Stream *s) { return s->lost || !s->count ? NULL : &s->steps[s->count - 1]; }

static void add_clocks(Stream *s, u64 clocks) {
    Step *step = s ? last_step(s) : NULL;
    if (step) step->clocks = (u16)(step->clocks + clocks);
}

static void stream_line(Stream *s, u64 line, u32 mask) {
    Step *step = last_step(s);
    if (!step || step->lines == MOST_LINES_OF_STEP) return;
    GROW(s, lines, line_room, s->line_count + 1);
    if (s->lost) return;
    s->lines[s->line_count++] = line << SECTORS_OF_LINE | mask;
    step->lines++;
}

/* The distinct lines of a request of the lanes in m, with their sectors, and its clocks in the data
 * stage: the rule of analysis.coalescing.global_cycles but for the lines, which the model counts. */
static void stream_request(Worker *c, const u64 *a, u32 width, u32 m, u64 space) {
    Stream *s = c->stream;
    u64 line[2 * LANES];
    u32 mask[2 * LANES], n = 0, last = 0;
    for (int l = 0; l < LANES; l++) {
        if (!(m >> l & 1)) continue;
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
    for (u32 k = 0; k < n; k++) stream_line(s, line[k], mask[k]);
    Step *step = last_step(s);
    if (!step) return;
    const u32 data = fullest_bank(a, width, m), wide = width == 16 ? 4 : 1;
    step->clocks = (u16)(step->clocks + (data > wide ? data : wide));
}

#endif
