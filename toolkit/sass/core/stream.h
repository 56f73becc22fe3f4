/* Stream of the instructions of each warp, in order, in the format of analysis/sm/stream_format.h: one Step per
 * instruction, with the load of a memory request on the load/store unit and the lines that it accesses; one
 * Step for a straight run without requests. The timing model (analysis/sm) replays it. Warps run one after
 * another here, in segments between barriers. */
#pragma once

#include "grow.h"

enum { MOST_LINES_OF_STEP = 255 };

/* Python reads it as it is here. */
struct Stream {
    Step *steps;
    u64 count, room;
    u64 executed, most; /* instructions, and how many there may be: of more `lost` says so */
    u64 *lines;
    u64 line_count, line_room;
    Segment *segments;
    u64 segment_count, segment_room;
    u32 lost;
};

/* Room in an array of a stream, which is lost where there is none. */
#define GROW(stream, array, room, wanted)                                            \
    do {                                                                             \
        if (!GROWN((stream)->array, (stream)->room, wanted)) (stream)->lost = 1;     \
    } while (0)

/* The instruction at pc; what it asks of memory is added while it is executed. */
static inline void stream_step(Stream *s, u32 pc, u32 m) {
    if (s->lost) return;
    if (s->executed == s->most) { s->lost = 1; return; }
    GROW(s, steps, room, s->count + 1);
    if (s->lost) return;
    s->executed++;
    s->steps[s->count++] = (Step){.pc = pc, .flags = m ? 0 : STEP_OFF};
}

static inline Step *last_step(Stream *s) { return s->lost || !s->count ? NULL : &s->steps[s->count - 1]; }

/* Clocks of shared memory: a copy, which has lines, passes both of its sides at a time. */
static inline void add_wavefronts(Stream *s, u64 clocks) {
    Step *step = s ? last_step(s) : NULL;
    if (!step) return;
    const u64 all = step->lines ? (clocks > step->clocks ? clocks : step->clocks) : step->clocks + clocks;
    step->clocks = (u16)all;
}

static inline void add_clocks(Stream *s, u64 clocks) {
    Step *step = s ? last_step(s) : NULL;
    if (step) step->clocks = (u16)(step->clocks + clocks);
}

Stream *new_stream(u64 most);
void free_stream(Stream *s);
void stream_warp(Worker *c, const Warp *w);
void stream_run(Stream *s, u32 pc, u32 n);
void take_step_back(Stream *s);
void stream_word(Stream *s, u64 word);
u64 kept_line(const Launch *launch, u64 line);
void stream_constants(Stream *s, u32 bank, const u32 *offset, u32 imm, u32 m);
u64 local_space(const Worker *c, const Warp *w);
void stream_request(Worker *c, const u64 *executed, u32 width, u32 m, u64 space);
