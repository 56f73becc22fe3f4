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
 *     l2 l1 constants mbarriers products load_store
 *     registers code blocks
 *     issue run
 */
#pragma once

#include "machine.h"

enum { NOT_KEPT = 0xffff }; /* Planned.reg and .kept: no register */
enum { REG_SHIFT = 48 };    /* in Registers.kept: the register is above these bits */
enum { CLOCKS = 3 };        /* clocks in which an instruction may read its registers */
enum { STATES = 64 };       /* sets of clocks in which banks may be taken, CLOCKS bits for each bank */
enum { ROWS = 4096 };       /* rows of Program.reads */
#define NO_WARP (~0u)
#define UNKNOWN (~0ull)     /* a time that an event will say */
enum { NO_ROOM = 0xff };    /* entry of a row: the registers cannot be read in this state */

/* An instruction, and what is known of it before the run, in one line of the CPU's cache. Of each operand
 * slot: its register, the same if the reuse cache keeps it, and its bank. `row`: its row of `Program.reads`
 * for each set of slots whose operand the reuse cache has, one bit each. `is_plain`: it is no request and
 * sets no scoreboard. `may_slip`: it does not wait for late reads of its warp. */
typedef struct {
    _Alignas(64) Instruction i;
    u8 is_plain, reads_registers, may_slip, bank[SLOTS];
    u16 reg[SLOTS], kept[SLOTS], row[1 << SLOTS];
} Planned;
_Static_assert(sizeof(Planned) == 64, "a planned instruction fills one line of the CPU's cache");

/* Event at a time; `age` is that of the warp. The data of missed loads take `clocks` of L1's data path
 * then, and `tags` of its tags. */
typedef struct { double at, clocks; u64 age; u32 warp; u8 scoreboard, registers, tags; } Event;

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
    u32 groups;           /* of products, that the warp has issued */
    u8 waits;             /* scoreboards with pending results, one bit each */
    u8 from[SCOREBOARDS]; /* reason of each wait: LOST_* */
    u32 block;            /* slot of the block */
    u8 alive, at_barrier; /* number of the barrier + 1, 0: at none */
    u16 arrived_at;       /* barriers that wait for others, not for this warp, one bit each */
    u64 age;
} Warp;

/* A warpgroup: products that each warp has issued and that have begun, and groups that have ended. */
enum { GROUPS = 8 };
typedef struct { u32 issued[4], begun, ended; } Group;

/* A barrier of a block: warps that have arrived, those of them that have ended since, and for how many it waits; 0:
 * all that live. */
typedef struct { u32 arrived, ended, warps; u64 opens_after; } Barrier;

typedef struct {
    u32 alive;
    u64 start;
    u32 job, first, warps;
    u8 has_barriers, decided, waits;
    u32 phases; /* phases between barriers in which the block missed L1 */
    double flags_at; /* when the flags that it waits for are set; 0: not polled yet */
    u64 age;
    u32 mbarriers;
    Mbarrier mbarrier[MOST_MBARRIERS];
    Barrier barrier[BARRIERS];
    Group group[GROUPS];
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

/* A line of the constant banks. `used`: its last use, in `uses`; 0: none. */
typedef struct { u64 key, used; double ready; } ConstantLine;

/* Constants at addresses that are the same for all lanes: the lines that a scheduler has, and the one that it fetches
 * for a warp, or 0. `evicts`: a line has been evicted. `last`: the line that was fetched last, which its owner may
 * load from until a clock. */
enum { UNIFORM_LINES = 8, WARPS_IN_STEP = 8, BLOCKS_IN_STEP = 2, BACK_TO_BACK = 3, EVICTED_CLOCKS = 172 };
typedef struct {
    ConstantLine cached[UNIFORM_LINES];
    u64 uses, wanted, ready, last, until;
    u32 asking, owner;
    u8 evicts;
} UniformConstants;

/* What a scheduler reads of the register banks, and its reuse cache. */
typedef struct {
    u64 reads[BANKS], from; /* per bank: one bit for each clock, from `from` on, in which it is read */
    /* For operand slots of the warp that issued last: a register, above REG_SHIFT, and the number of the
     * instruction that kept it. */
    u64 kept[SLOTS][BANKS + 1];
    u64 number;           /* of instructions; it skips numbers where the reuse cache is invalidated */
    u32 kept_warp;
    u32 read[BANKS];      /* registers that the instruction that issued last reads from each bank */
} Registers;

typedef struct {
    u64 free, sleep;      /* when the dispatch is free; nothing can change before `sleep` */
    u64 reads_free;       /* the same for instructions that read registers */
    u64 slip_free;        /* the same for the warp that issued last, except for multiply-adds */
    Registers registers;
    double write_due;     /* issue slots that written registers still have to take */
    u64 write_since;      /* when `write_due` was updated last */
    u64 port;             /* when the next request can be handed over */
    double constants_free; /* when its next load of constants can begin */
    UniformConstants uniform;
    u64 product_at;       /* when the last product of a warp was issued */
    u32 product_banks[BANKS]; /* clocks for which each bank is read since then, for the product and for others */
    u64 unit_free[UNITS]; /* UNIT_FMA: the half that makes no integer products */
    u32 last;             /* warp that issued last, or NO_WARP */
    u32 number, count;    /* from 0 on; of its warps: warps `number`, `number` + SCHEDULERS and so on */
    Queue queue[QUEUES];
    u32 global_places;    /* entries of the global queue that its requests take */
    u8 why;
} Scheduler;

/* The program, and what is known of its instructions before the run. */
typedef struct {
    Planned *code;
    const u8 (*reads)[STATES]; /* what instructions read in which clocks: see sm_reads() */
    u8 has_skipped;       /* some executions are left out */
} Program;

/* What was recorded of the warps. */
typedef struct {
    const Step *steps;
    const u64 *lines;
    const Stream *streams;
} Recorded;

/* Blocks to run, one after another. */
typedef struct {
    const Job *job;
    u32 count, next;
    u32 fewer;            /* number of first jobs whose run alone is also reported; 0: none */
    u64 free;             /* earliest start of the next block */
    u64 warp_ages, block_ages; /* of the next warp, of the last block */
    u32 *ended, ended_count; /* slots of blocks that ended in this clock */
    u64 *starts, *ends;
} Jobs;

/* The instruction cache and its fetches. */
typedef struct {
    u64 *arrival;         /* of each code line; 0: not requested yet */
    u64 *used;            /* last use of each code line, in `uses`; 0: not cached */
    u64 uses, refetched;  /* uses of code lines so far; when the last evicted line arrived again */
    u64 begun;            /* when the first line arrived; 0: not requested yet */
    u32 lines;            /* code lines of the program */
} CodeFetch;

typedef struct { Event *heap; u32 count, room; } Events;
typedef struct { Arrival *list; u32 count, room; } Arrivals; /* in any order */

/* The load/store unit. */
typedef struct {
    double free;
    double tags_free;     /* of the tags of L1, which are looked up ahead of the data */
    double bypass_free;   /* of the path of copies past L1 */
    u32 turn;             /* scheduler whose requests come first */
    u64 requests;         /* so far */
    u32 global_places;    /* entries taken in the queues of global memory */
    u32 waiting;          /* requests in all queues */
} LoadStore;

/* A line of L1: when each of its sectors arrives, and its neighbours in the bucket and in the order of use.
 * `block` is the age of the block that fetched it last, `fetched` the bytes that the SM had moved then, and
 * `known` are the sectors that this block fetched before the line was evicted. */
typedef struct {
    u64 key, block, fetched;
    double ready[SECTORS_OF_LINE];
    u32 next, newer, older;
    u8 mask, known, set;
} Line;

/* A line that was evicted from L1, as it was then. */
enum { EVICTED = 1 << 16 }; /* places; a line has one place, and a later one may take it */
typedef struct { u64 key, block, fetched; u8 mask; } Evicted;

/* L1 has some sets, and a line belongs to one of them; a small one has one. */
enum { MOST_SETS = 16, LEAST_LINES_OF_SETS = 64 };
typedef struct {
    Line *line;           /* those of each set; behind the last one: the end of the ring of each set */
    u32 *bucket;
    u32 buckets, capacity, sets, count[MOST_SETS];
    Evicted *evicted;
    double data_free;     /* of the data path */
} L1;

/* Constants at addresses in registers: the lines that are cached, and those on their way, in order. */
enum { CACHED_CONSTANT_LINES = 32, MOST_CONSTANT_LINES = 2048, WAITING_CONSTANT_LOADS = 5 };
typedef struct {
    ConstantLine cached[CACHED_CONSTANT_LINES], flight[MOST_CONSTANT_LINES];
    u32 first, flying;
    u64 uses, waits;
    double waited[WAITING_CONSTANT_LOADS]; /* when the lines of the last loads that missed some are there */
    double free, fetch_free; /* when the next load can begin, and the next line be fetched */
} Constants;

/* The unit for products of warpgroups: when it takes the next one, the share of shared memory that they use,
 * how many are queued, and the number, from 1 on, of the first warp of the group whose product began last. */
typedef struct { double free, shared; u32 queued, after; } Products;

/* A store on its way to L2: its lines with the sectors that it and those merged with it write, their bytes,
 * the clocks that they take, and when they have been sent. */
enum { MERGING_STORES = 16, MOST_MERGED_LINES = 31 };
typedef struct { u64 line[MOST_MERGED_LINES], age; u32 lines, stored; double clocks, until; } SentStore;

/* This SM's share of L2 and of DRAM. `sent`: the last stores, the newest at `newest`. `stored`: when the last one to
 * global memory left, 0 before the first one. */
typedef struct { double free, write_free, stored; SentStore sent[MERGING_STORES]; u32 newest; } L2;
typedef struct {
    double free;
    double due;           /* requests to L2 that still have to wait for DRAM */
    double work;          /* clocks of DRAM requested so far */
} Dram;

typedef struct {
    const Machine *m;
    Program program;
    Recorded recorded;
    Jobs jobs;
    u64 now;
    u64 skipped;          /* instructions that the replay has left out so far */
    Warp *warps;
    u64 *until;           /* at which a warp may issue, at `place_among` all; UNKNOWN: an event will say so */
    u8 *why_until;        /* why not before: LOST_* */
    Block *blocks;        /* by slot */
    u32 warps_per_block, warps_per_scheduler;
    Scheduler scheduler[SCHEDULERS];
    CodeFetch fetch;
    Events events;
    Arrivals arrivals;    /* at barriers in shared memory */
    Constants constants;
    double barrier_free;  /* of the unit for barriers of a block */
    LoadStore lsu;
    Products products;
    L1 l1;
    L2 l2;
    Dram dram;
    u8 failed;
    Result *r;
} Sm;

static inline const Instruction *instruction_at(const Sm *s, u32 pc) { return &s->program.code[pc].i; }

/* Place of a warp in `until`: those of a scheduler are neighbours. */
static inline u32 place_among(const Sm *s, u32 warp) { return warp % SCHEDULERS * s->warps_per_scheduler + warp / SCHEDULERS; }

/* A warp cannot issue before a time, for a reason. */
static inline void wait_until(Sm *s, u32 warp, u64 time, u8 why) {
    const u32 place = place_among(s, warp);
    s->until[place] = time;
    s->why_until[place] = why;
}
