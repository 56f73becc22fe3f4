/* Cycle-level model of one streaming multiprocessor: four schedulers issue the recorded streams of the
 * resident warps, in order, as the control bits of the machine code allow. The load/store unit, L1 and
 * this SM's share of L2 and DRAM serve their requests.
 *
 * Times are clocks of the SM. docs/timing.md describes the model and the source of each rule; all
 * numbers are parameters in `Machine`.
 *
 * This file has the state of a run. The files, from low to high. Each includes only files before it, as
 * a test checks, and none that its own header includes already:
 *
 *     stream_format machine sm events
 *     l2 l1 mbarriers load_store
 *     registers code blocks
 *     issue run
 */
#pragma once

#include "machine.h"

/* NOT_KEPT: no register. STATES: sets of clocks in which banks may be taken, CLOCKS each. */
enum { NOT_KEPT = 0xffff, REG_SHIFT = 48, CLOCKS = 3, STATES = 64, ROWS = 4096, NO_ROOM = 0xff };

/* Operand slot of an instruction: its register, and the same if the reuse cache keeps it. */
typedef struct { u16 reg, kept; u8 bank; } Operand;

/* Operands of an instruction. `row`: its row of `Sm.reads` for each set of slots whose operand the reuse
 * cache has, one bit each. `is_plain`: it is no request and sets no scoreboard. */
typedef struct { Operand at[SLOTS]; u16 row[1 << SLOTS]; u8 is_plain; } Operands;

/* Event at a time; `age` is that of the warp. The data of missed loads take `clocks` of L1's data path
 * then. */
typedef struct { double at, clocks; u64 age; u32 warp; u8 scoreboard, registers; } Event;

/* A barrier in shared memory, and an arrival at it at a time. */
typedef struct { u64 id, generation; u32 expected, pending; i64 bytes; } Mbarrier;
typedef struct { double at; u64 age, id; u32 block, arrivals; i64 bytes; } Arrival; /* age: of the block */

typedef struct {
    const Step *step, *end;
    const u64 *line;
    double async_done, bulk_done; /* when the copies and the bulk stores so far are complete */
    u64 ready;            /* earliest issue */
    u64 space;
    u32 pc, left;         /* pc of the next instruction; further instructions of a straight run */
    u32 pending[SCOREBOARDS];
    u8 waits;             /* scoreboards with pending results, one bit each */
    u8 from[SCOREBOARDS]; /* reason of each wait: LOST_* */
    u32 block;            /* slot of the block; */
    u8 alive, at_barrier, blocked_on;
    u64 age;
} Warp;

typedef struct {
    u32 alive, waiting;
    u64 opens_after, start;
    u32 job, first, warps;
    u8 has_barriers, decided, waits;
    u32 phases; /* phases between barriers in which the block missed L1 */
    double flags_at; /* when the flags that it waits for are set; 0: not polled yet */
    u64 age;
    u32 mbarriers;
    Mbarrier mbarrier[MOST_MBARRIERS];
} Block;

typedef struct {
    const Step *step;
    const u64 *line;
    u64 from, age, space; /* earliest service; age and space of the warp */
    u64 turn;             /* order among the requests of its scheduler: the smallest is first */
    double left;
    u32 warp, block;
} Request;

/* Requests of a scheduler that wait for the load/store unit, with a separate queue for global memory. */
typedef struct { Request at[MOST_QUEUED]; u32 head, count; } Queue;
enum { QUEUE_GLOBAL, QUEUE_SHARED, QUEUES };

typedef struct {
    u64 free, sleep;      /* when the dispatch is free; nothing can change before `sleep` */
    u64 reads_free;       /* the same for instructions that read registers */
    u64 slip_free;        /* the same for the warp that issued last, except for multiply-adds */
    u64 reads[BANKS], reads_from; /* per bank: one bit for each clock, from `reads_from` on, in which the
                                       * bank is read */
    double write_due;     /* issue slots that written registers still have to take */
    u64 write_since;      /* when `write_due` was updated last */
    u64 port;             /* when the next request can be handed over */
    u64 unit_free[UNITS]; /* UNIT_FMA: the half that makes no integer products */
    /* Reuse cache, for operand slots of the warp that issued last: a register, above REG_SHIFT, and the
     * number of the instruction that kept it. */
    u64 kept[SLOTS][BANKS + 1];
    u64 number;           /* of instructions; it skips numbers where the reuse cache is invalidated */
    u32 kept_warp;
    i64 last;             /* warp that issued last */
    u32 count, *warps;
    Queue queue[QUEUES];
    u32 global_places;    /* entries of the global queue that its requests take */
    u8 why;
} Scheduler;

typedef struct { u64 key; double ready[4]; u32 next, newer, older; u8 mask; } Line;

typedef struct {
    const Machine *m;
    const Instruction *code;
    Operands *operands;   /* operands of each instruction */
    u8 (*reads)[STATES];  /* what instructions read in which clocks: see plan_reads() */
    const Step *steps;
    const u64 *lines;
    const Stream *streams;
    const Job *jobs;
    u32 job_count, next_job;
    u32 fewer;            /* number of first jobs whose run alone is also reported; 0: none */
    u64 *fetched;         /* when each code line arrives or arrived; 0: not requested yet */
    u64 *used;            /* last use of each code line, in `uses`; 0: not cached */
    u64 uses, refetched;  /* uses of code lines so far; when the last evicted line arrived again */
    u32 code_length;      /* in code lines */
    Warp *warps;
    Block *blocks;
    u32 warps_per_block;
    u32 *ended, ended_count; /* slots of blocks that ended in this clock */
    Scheduler scheduler[SCHEDULERS];
    Event *heap;
    u32 events, event_room;
    Arrival *arrivals;    /* future arrivals, in any order */
    u32 arrival_count, arrival_room;
    Line *cache;
    u32 *bucket;
    u32 buckets, cached;
    double l2_free, write_free, dram_free, dram_due;
    double dram_work; /* clocks of DRAM requested so far */
    double lsu_free, data_free, barrier_free;
    u64 now, block_free;
    u32 turn;
    u64 ages, block_ages, requests;
    u32 global_places;    /* entries taken in the queues of global memory */
    u32 waiting;          /* requests in all queues */
    u8 failed;
    Result *r;
    u64 *starts, *ends;
} Sm;
