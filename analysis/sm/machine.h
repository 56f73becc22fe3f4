/* The machine that is modelled, the instructions that it runs, and what a run finds out. */
#pragma once

#include "stream_format.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { SCHEDULERS = 4, SCOREBOARDS = 6, NONE = 7, SLOTS = 3, BANKS = 2, MOST_QUEUED = 32 };
#define INLINED static inline __attribute__((always_inline)) /* a run takes up to a tenth longer where it is not */
enum { UNIT_CONTROL, UNIT_FMA, UNIT_FMA_HEAVY, UNIT_FMA_WIDE, UNIT_HALF, UNIT_ALU, UNIT_FP64, UNIT_XU, UNIT_UNIFORM, UNIT_LSU,
       UNIT_CONVERT_64, UNIT_TENSOR, UNIT_TENSOR_SHORT, UNIT_TENSOR_DOUBLE, UNITS };
enum { KIND_PLAIN, KIND_SHARED_LOAD, KIND_SHARED_STORE, KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_COPY,
       KIND_COPY_GROUP, KIND_WAIT_GROUP, KIND_BARRIER, KIND_BRANCH, KIND_EXIT, KIND_MBARRIER_BEGIN,
       KIND_MBARRIER_ARRIVE, KIND_MBARRIER_WAIT, KIND_BULK_LOAD, KIND_BULK_STORE, KIND_BULK_GROUP,
       KIND_CONSTANT, KIND_MATRIX_LOAD, KIND_FENCE, KIND_PRODUCT, KIND_PRODUCT_WAIT, KIND_PRODUCT_FENCE,
       KIND_UNIFORM_CONSTANT };
/* `argument` of a product of a warpgroup: columns of B / 8 - 1; A is in registers; it ends a group. */
enum { PRODUCT_COLUMNS = 31, PRODUCT_OF_REGISTERS = 32, PRODUCT_ENDS_GROUP = 64 };
/* `argument` of a barrier: its number in the block; the warps that it waits for, from BARRIER_WARPS_SHIFT on, 0 for
 * all that live; the warp arrives and does not wait. */
enum { BARRIERS = 16, BARRIER_WARPS_SHIFT = 4, BARRIER_WARPS = 63, BARRIER_ARRIVES = 1024 };

/* Raise x to a minimum, lower x to a maximum; the greater of two values. */
#define RAISE(x, least) do { if ((x) < (least)) (x) = (least); } while (0)
#define LOWER(x, most) do { if ((x) > (most)) (x) = (most); } while (0)
#define GREATER(a, b) ((a) > (b) ? (a) : (b))

/* An instruction of the program, decoded from its 128 bits. */
typedef struct {
    u8 stall, yield, write_barrier, read_barrier, wait, unit, kind, registers; /* written */
    i16 source[SLOTS]; /* general registers read by each slot, -1: none */
    u8 reuse;          /* slots whose value the reuse cache keeps for the next instruction */
    u8 operands;       /* registers that a request hands to the load/store unit */
    u16 banks;         /* the bank of each operand, one bit each */
    u16 argument;      /* KIND_WAIT_GROUP: scoreboard << 4 | groups that may be pending; KIND_STORE: bytes
                        * per lane; KIND_PRODUCT and KIND_BARRIER: see above; KIND_PRODUCT_WAIT: groups that may be pending;
                        * KIND_PRODUCT_FENCE: 1 between the proxies, 0 of a warpgroup; KIND_COPY and KIND_LOAD: 1 past L1 */
    u8 skipped;        /* of 32 executions: how many the replay leaves out, evenly spread; for what-if runs */
    u16 latency;       /* clocks of variable-latency arithmetic until its scoreboard is released */
    u16 pipe_clocks;   /* clocks for which its unit accepts no other warp instruction */
    u16 free_clocks;   /* clocks of the load/store unit without bank conflicts; 0: as recorded */
} Instruction;

typedef struct { u64 first_step, steps, first_line; } Stream; /* of one warp */
typedef struct { u32 first_stream, warps; u64 space; } Job;  /* one block */

typedef struct {
    /* Fixed by the architecture, in the order of `Numbers` in Python. */
    u32 bank_count;       /* banks of the register file, per scheduler */
    u32 global_queue;     /* requests of all schedulers that can wait for global memory; a copy counts twice */
    u32 operand_clocks;   /* clocks that an operand of a request occupies its scheduler's port */
    u32 register_latency; /* clocks for each further register that a load writes */
    u32 shared_latency, l1_latency; /* from issue, without contention */
    u32 l2_latency, dram_latency; /* from the load/store unit; dram_latency is added to l2_latency */
    u32 atomic_latency, shared_atomic_latency;
    u32 constant_latency; /* of a load of one word of constants, at an address in a register */
    u32 constant_word_latency; /* of each further word */
    u32 constant_miss_latency; /* added if the line is not in the SM's cache of constants */
    u32 fence_clocks;     /* clocks until a warp goes on behind a fence for the device */
    u32 barrier_latency, barrier_per_warp, branch_clocks, block_start, block_interval;
    u32 fetch_latency;    /* clocks of the first line of code, if it is not in the instruction cache */
    u32 fetch_clocks;     /* clocks of a 128-byte code line that is not in the instruction cache */
    u32 integers_share;   /* 1: integer ALU work runs on the FMA half that also makes integer products */
    u32 fma_halves;       /* 2: multiply-adds have two pipes of half the width */
    u32 products_in_flight; /* products of warpgroups that an SM has queued before warp 0 of one waits */
    u32 product_latency;  /* of a product, beyond its clocks of the tensor cores, from issue to its wait */
    u32 product_latency_of_registers; /* the same if A is in registers */
    u32 product_register_clocks; /* in which A is read from registers, if the product before is of the same group */
    u32 product_release;  /* clocks before that at which it leaves the queue */
    u32 group_fence_clocks, proxy_fence_clocks; /* of WARPGROUP.ARRIVE and of a fence between the proxies */
    double request_clocks; /* minimum clocks of a request */
    double load_clocks;   /* minimum clocks of a load of a line of global memory */
    double sector_clocks; /* minimum clocks of a load of one sector */
    double bypass_clocks; /* of the load/store unit, for a copy past L1 */
    double store_line_bytes; /* minimum bytes that a line counts in a store */
    double whole_line_bytes; /* the same in a store that fills its sectors */
    double part_bytes;    /* bytes that a partly written sector counts in a store */
    double l2_line_bytes; /* minimum bytes that a line counts in a load from L2 */
    double lookup_clocks; /* of a line that L2 looks up, for loads and stores in turn: this SM's share */
    double write_slots;   /* issue slots that writing one register of a load takes */
    double barrier_unit_clocks; /* clocks that the arrival of a warp occupies the barrier unit */
    double constant_clocks; /* clocks of the SM for each word of a load of constants */
    double constant_clocks_of_one; /* the same of each scheduler */
    double least_constant_clocks; /* minimum clocks of a scheduler for a load of constants */
    double constant_line_clocks; /* clocks of a line that is not in that cache */
    double product_column_clocks; /* clocks of the tensor cores for a column of B */
    double least_product_clocks; /* minimum clocks of a product with A in registers */
    double least_beside_products; /* share of shared memory that requests get beside products that use all of it */
    double idle_beside_products; /* the same of what these products leave */
    double miss_clocks;   /* minimum clocks of the path to L2 for a request that misses L1 */
    double l2_bytes_per_clock, write_bytes_per_clock; /* this SM's share */
    double dram_scatter;  /* average of the random additional clocks per line of DRAM */
    double dram_spread;   /* maximum of the random additional clocks if DRAM is always busy */
    /* Of a launch, in the order of `Machine` in Python. */
    u32 slots;            /* resident blocks */
    u32 first_start;      /* clock at which the first block starts */
    u32 l1_lines;         /* capacity of L1 */
    u32 code_lines;       /* code lines in the instruction cache; 0: unlimited */
    u32 flag_clocks;      /* clocks until a block that polls flags of other blocks finds all of them set */
    u32 free_memory;      /* 1: requests take no clocks of the load/store unit */
    u32 free_conflicts;   /* 1: no bank conflicts */
    u32 free_copies;      /* 1: copies to shared memory take no time */
    u32 stops_at_mark;    /* 1: the run ends at `mark` */
    u32 end_clocks;       /* clocks from the last store to the end of the run */
    u32 code_is_cached;   /* 1: the instruction cache has the code when the launch begins */
    u32 first_fetch_clocks; /* added to `fetch_clocks` when a line arrives for the first time */
    double wavefront_clocks; /* clocks of the load/store unit for a wavefront of shared memory */
    double merged_share;  /* fetches of L2 per fetch of this SM, as one may serve several SMs */
    double l2_reach_bytes; /* this SM's share of what L2 holds */
    double dram_start;    /* clocks from the first request until DRAM serves it */
    double dram_bytes_per_clock; /* this SM's share */
    double dram_share;    /* bytes of DRAM work per byte read from L2 */
    double filled_share;  /* fraction of the bytes read from L2 that come from DRAM */
    double stores_filled_share; /* the same of the sectors that stores write in part */
    double dram_write_share; /* bytes of DRAM work per byte written to L2 */
    double local_bytes;   /* that the resident blocks have of local memory */
    double local_read_from, local_read_all; /* bytes that the SM moves between two accesses to a line of local memory,
                                             * from which on the second one may, or does, read it from DRAM */
    double local_written_from, local_written_all; /* the same from which on DRAM has written it before */
    double waiting_share; /* fraction of the requests to L2 that wait for DRAM */
    volatile u64 most_clocks; /* 0 ends the run, also while it goes on */
    u64 mark;             /* number of instructions; a run records when they were issued or left out */
} Machine;

/* Why a scheduler issued nothing in a clock. */
enum { LOST_BANK, LOST_WRITE, LOST_STALL, LOST_PIPE, LOST_QUEUE, LOST_SHARED, LOST_GLOBAL,
       LOST_ARITHMETIC, LOST_BARRIER, LOST_FETCH, LOST_PRODUCT, LOST_EMPTY, LOST };

typedef struct {
    u64 clocks, issued, unit_busy[UNITS], l2_read_bytes, l2_write_bytes, l1_misses,
        lost[LOST];
    double lsu_busy, shared_busy, bypass_busy, product_reads, write_clocks, lookup_clocks, constant_busy, written_slots;
    u64 unfinished, marked;
} Result;

/* Sectors of a line, one bit each. */
static inline u32 sectors_in(u64 line) { return line & ((1u << SECTORS_OF_LINE) - 1); }

/* True for instructions that the load/store unit processes in order: requests and ends of copy groups. */
static inline int is_request(const Instruction *i) {
    return i->unit == UNIT_LSU || i->kind == KIND_COPY_GROUP;
}

/* True for copies that L1 does not keep: they have a path of their own, beside the load/store unit. */
static inline int is_past_l1(const Instruction *i) { return i->kind == KIND_COPY && i->argument; }

/* True for these, and for coherent loads, which see what other SMs have stored. */
static inline int never_hits(const Instruction *i) { return i->argument && (i->kind == KIND_COPY || i->kind == KIND_LOAD); }
