/* The native core of the simulator: a machine of 32-lane vectors.
 *
 * A SASS instruction is lowered (toolkit/sass/isa, Python) to one `Ins`; each names an operation of
 * this core and where its operands are. Everything that a lane can name is a vector of 32 words:
 * registers of the warp, uniform registers (all lanes alike), and the launch's constants, which
 * stand in a pool, so that an operation never asks what kind of operand it reads.
 *
 * The files, from low to high. Each includes only files before it, as a test checks, and none that
 * its own header includes already:
 *
 *     core lanes compare operations grow
 *     costs trace tally stream requests heap space memory matrix
 *     integer floating double half tensor_sum mma gmma atomics convert special_tables
 *     special warp texture operands
 *     check check_products check_order check_cluster check_threads check_shared check_blocks
 *     groups printed system control mbarrier bulk check_copies mbarrier_ops bulk_ops
 *     check_gmma check_ops
 *     origins follow follow_swap follow_integer follow_warp follow_memory
 *     straight waits pace run blocks rounds entry probe
 */
#pragma once

#include <stddef.h>

#include "../../../analysis/sm/stream_format.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Attributes: ALWAYS_INLINE compiles a function anew for each of its constant arguments. */
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { KEPT_PRODUCT_GROUPS = 16 }; /* of a warp: who waits names how many of the last may be left */
enum { WIDE_BYTES = 32 }; /* of the widest access of a lane */
enum { SOURCES = 6, PREDICATES = 32, CONVERGENCE_BARRIERS = 16, CTA_BARRIERS = 16 };
#define FULL 0xffffffffu

/* A slot names a vector: one of the warp's, or, with POOL set, one of the launch's constants. */
#define POOL 0x80000000u

/* Predicate slots: P0-P6 0-6, PT 7, UP0-UP6 8-14, UPT 15; results that nobody wants go to 31. */
enum { PT = 7, UPT = 15, PREDICATE_DISCARD = 31, PREDICATE_NOT = 0x80 };

/* Modifiers of a source operand, applied before use. */
enum {
    MOD_F32_NEG = 1, MOD_F32_ABS = 2, MOD_NOT = 4, MOD_INT_NEG = 8, MOD_F64_NEG = 16,
    MOD_F64_ABS = 32, MOD_F16_NEG = 64, MOD_F16_ABS = 128
};

/* One instruction. `toolkit/sass/core/binding.py` holds the same layout; a test compares the sizes. */
typedef struct {
    u16 op;
    u8 guard;        /* predicate slot, with PREDICATE_NOT */
    u8 uniform;      /* runs on the uniform datapath: writes all lanes that run together (lanes.h) */
    u32 flags;       /* meaning by operation */
    u32 d[2];        /* vectors written */
    u32 s[SOURCES];  /* vectors read */
    u8 mod[SOURCES]; /* MOD_* of each */
    u8 pd[2];        /* predicates written */
    u8 ps[4];        /* predicates read, with PREDICATE_NOT */
    u32 width;       /* memory: bytes per lane */
    u32 aux;         /* meaning by operation */
    u32 reserved;    /* CHECK_* of operations that are checked (check.h) */
    i64 imm;         /* memory: offset; control: index of the target; others: by operation */
} Ins;

/* Counts of one instruction, over all warps. */
typedef struct {
    u64 executed;     /* warps that issued it */
    u64 threads;      /* lanes active when it was issued */
    u64 predicated;   /* those whose guard was true */
    u64 requests;     /* memory: warps with at least one such lane */
    u64 sectors;      /* memory: distinct 32-byte sectors */
    u64 wavefronts;   /* shared memory */
    u64 conflict_free; /* shared memory: wavefronts without bank conflicts */
    u64 ideal;        /* memory: the fewest sectors, or wavefronts, for the bytes that differ */
    u64 taken;        /* branches: lanes that took it */
    u64 divergent;    /* branches: warps that split */
    u64 reissued;     /* times that hardware issued it once more for lanes that waited at it */
    u64 reissued_threads; /* lanes of those, and lanes that it counts with others' */
    u64 refused;      /* branches: lanes whose guard was true and whose other predicate was not */
} Count;

/* Reason why a launch stopped. */
enum {
    OK = 0, OUT_OF_BOUNDS, MISALIGNED, DEADLOCK, LIMIT, CANCELLED, BAD_TARGET, TRAP, UNIMPLEMENTED,
    NO_MEMORY, WRITE_TO_CONSTANT, ARRIVALS, NO_TENSOR_MAP, BAD_FREE, PARTIAL_WARP, NO_TEXTURE, SURFACE_BOUNDS,
    SURFACE_MISALIGNED, DESCRIPTOR, PARTIAL_GROUP
};
enum { SPACE_GLOBAL = 0, SPACE_SHARED, SPACE_LOCAL, SPACE_CONSTANT, SPACE_GENERIC };

typedef struct {
    u32 kind;      /* one of the above */
    u32 pc;        /* index of the instruction */
    u32 space;
    u32 width;     /* bytes per lane */
    u64 address;
    u64 block;     /* linear index in the grid */
    u32 warp;
    u32 lane;
    u32 is_store;
    u32 waiting;   /* DEADLOCK: threads at this instruction; PARTIAL_WARP: of the warp; a surface: x in bytes */
    u32 resident;  /* DEADLOCK: blocks that wait for each other, or for those that never ran; y */
    u32 pending;   /* of an mbarrier: arrivals that lack; z */
    i32 bytes;     /* and bytes of copies that were announced and did not come */
    u32 phase;     /* and the parity of the phase in which they do; the layer */
    u64 words[4];  /* an assert: what it was called with; in the heap: the live block before, its bytes */
} Fault;

typedef struct {
    u64 base, bytes;
    u8 *host;
    u8 *source;         /* a page is copied from there to `host` when it is written */
    _Atomic u32 *pages; /* from COPIED on: it was copied (space.c); NULL: all of `host` is valid */
    u32 writable, unwritten; /* unwritten: nobody may read it before a block has written it */
    u32 is_heap;             /* only live blocks of malloc may be accessed (heap.h) */
    _Atomic u32 touched;     /* WAS_READ, WAS_WRITTEN */
} Allocation;

enum { WAS_READ = 1, WAS_WRITTEN = 2 };

/* `read`: a byte for each word, 1 once an instruction has read it at an address from a register. */
typedef struct { u8 *data; u64 bytes; u8 *read; } Bank;

typedef struct TextureObject TextureObject;

enum { BANKS_OF_CONSTANTS = 8 };

/* Warp instructions that a block executed: of all its warps, and of the one that executed most. */
typedef struct { u64 executed, longest; } BlockWork;

/* How long a warp takes for an instruction, in ticks: until it can issue the next one, and until the
 * result is there, of which `scoreboard` tells (SCOREBOARDS: none). It waits for those in `wait`.
 * `of_unit`: of a slice of L2, for each sector, or with `is_of_sm` of the load/store unit of the SM.
 * `is_load`: lanes with one address are one operation of the slice, and wait for an atomic operation on the
 * sector just before, LOAD_AFTER_ADD ticks. `is_private`: no other warp can observe it. */
enum { LOAD_AFTER_ADD = 42 };
enum { SCOREBOARDS = 6 };
typedef struct { u32 stall, latency, of_unit; u8 wait, scoreboard, is_of_sm, is_load, is_private; } Pace;

/* A number in global memory that a block finds as the blocks before it leave it: `first` plus `by` for each. */
typedef struct { u64 address; i64 first, by; u64 bytes; } Ticket;

/* A bound launch: what all workers share. Read-only while they run, but for `cancel`. */
typedef struct {
    const Ins *program;
    u32 length;            /* instructions */
    u32 slots;             /* vectors of a warp */
    const u32 *pool;
    Allocation *allocations; /* ascending, apart from each other */
    u32 allocation_count;
    Bank banks[BANKS_OF_CONSTANTS];
    u32 grid[3], block[3];
    u32 shared_base;       /* first byte that a kernel may use (0x400 from sm_90 on) */
    u32 shared_bytes;      /* end of what it may use, from 0 */
    u32 local_bytes;       /* per thread */
    u64 shared_window, local_window; /* generic addresses of the two spaces */
    volatile u32 cancel;
    u32 check;             /* bytes of a cell of the sanitizer (check.h); 0: nothing is checked */
    u64 most_accesses;      /* to note of each worker's blocks (trace.h); 0: none are */
    u64 most_steps;        /* of each worker's warps (stream.h); 0: none are kept */
    u64 spread_base, spread_bytes; /* a matrix whose lines are kept as if its rows lay further apart */
    u64 spread_from, spread_to;    /* bytes from row to row, as executed and as kept */
    u32 cluster[3];        /* blocks of a cluster along each axis */
    u32 most_resident;     /* clusters that run at a time where those before them wait for more */
    u32 notes_requests;    /* the first of each instruction (requests.h) */
    u32 follows;           /* where values come from (origins.h) */
    u32 at_once;           /* `most_resident` clusters run from the beginning */
    u32 gives_up;          /* a warp that polls in vain leaves its loop; otherwise this is a deadlock (waits.h) */
    const u8 *under;       /* [length]: what decides whether a block executes it, SAME, BLOCK_INDEX or DATA */
    const u32 *region_ends; /* [length + 1]: where the list of each branch ends in `region_writes` */
    const u32 *region_writes; /* what code may write that this branch decides about (origins.h) */
    BlockWork *work;       /* [blocks], of those that somebody keeps; NULL: it is not noted */
    u64 heap_base, heap_bytes; /* of malloc; 0 bytes: nothing calls it */
    const TextureObject *textures; /* texture and surface objects (texture.h) */
    u32 texture_count;
    u32 registers;         /* of each thread at the start */
    u32 checks_products;   /* the checker follows products of warpgroups and proxy fences */
    u32 start_ticks;       /* from the end of a block to the next one, where they run in time */
    const Pace *paces;     /* [length]: blocks run in time (pace.h); NULL: they do not */
    u64 quantum;           /* ticks for which warps then run side by side, one after the other */
    u32 leaves_bounds;     /* beyond all allocations, global reads give zeros and stores are lost (space.c) */
    u32 notes_atomics;     /* with notes_requests: also the first request of each atomic operation */
    u32 ticket_count, unused;
    const Ticket *tickets; /* where only some blocks are executed */
    u64 window, period;    /* of each period of executed instructions a window is kept; 0: all are (in time only) */
} Launch;

/* Sectors of one 128-byte line that a block reads or writes for the first time. */
typedef struct {
    u64 line, block;
    u32 step; /* instructions that the warp had executed */
    u16 warp;
    u8 mask, kind;
} TracedAccess;

typedef struct Trace Trace;
typedef struct Tally Tally;

/* Steps that one warp executed in a row, from `first` on, with their lines. `is_late`: in the second half of a window. */
typedef struct { u64 block, first, first_line; u32 warp, is_late; } Segment;

typedef struct Stream Stream;
typedef struct Straight Straight;
typedef struct Checker Checker;
typedef struct Checks Checks;
typedef struct Origins Origins;
typedef struct Heap Heap;
typedef struct MatrixRoom MatrixRoom;
typedef struct Printed Printed;

/* A memory request of a warp: the lanes in `mask` and where each of them accesses `space`. */
typedef struct { u64 block; u32 pc, warp, mask, space; u64 address[LANES]; } Request;

enum { SLICES_IN_TIME = 64 };
enum { READY = 0, AT_BSYNC, AT_WARPSYNC, AT_BARRIER, AT_CLUSTER, AT_MBARRIER };

/* Lanes of a warp that run together. */
typedef struct {
    u32 mask, pc, state;
    u32 wait;    /* AT_BSYNC, AT_WARPSYNC: the lanes waited for */
    u32 barrier; /* AT_BSYNC: the convergence barrier; AT_BARRIER: that of the block */
    u32 order; /* of those put aside, the last one first */
    u32 fresh; /* put aside, and nothing executed since */
    u32 again; /* executes its instruction once more */
    u32 firm;  /* AT_BSYNC: waits whatever the others do */
    u32 woken; /* AT_BSYNC, AT_WARPSYNC: while others were let go from a BSYNC */
    u32 retries; /* tries its instruction again, which was counted */
    u32 expired; /* the time for which it may wait is over */
    u64 mbarrier; /* AT_MBARRIER: address in the cluster's shared memory */
} Group;

/* Counts that one instruction of a loop that only waits added, and the numbers of steps and lines at
 * that time (stream.h). */
typedef struct { u64 step, line; u32 pc; Count count; } Passed;

enum { MOST_OF_PASS = 24 };

/* A pass through such a loop: the lanes that go through, and what they executed. */
typedef struct { u32 lanes, length; Passed passed[MOST_OF_PASS]; } Pass;

/* Last memory request of a warp. */
typedef struct { u64 changes, address; u32 pc, lanes; } Question;

typedef struct {
    u32 *v;              /* [slots][LANES] */
    const u32 *pool;
    u32 p[PREDICATES];   /* predicates, one bit per lane */
    u32 b[CONVERGENCE_BARRIERS][LANES]; /* convergence barriers: each lane knows who takes part */
    u32 begun[CONVERGENCE_BARRIERS][LANES]; /* when: the regions so far */
    u32 regions;
    u32 restored; /* a bit for each barrier whose mask came from a register */
    Group group[LANES];
    u32 groups, current;
    u32 pushes; /* groups put aside so far */
    u32 born, alive;
    u32 left[LANES];     /* where each lane left the kernel */
    u32 yielded; /* lanes that executed YIELD in this slice */
    u32 stuck;   /* slices that ended with lanes waiting for such ones */
    u32 index;           /* in the block */
    u32 steps;           /* instructions executed so far */
    u32 atomics, stores; /* atomic requests to global memory so far, and requests to store there */
    u32 barrier_result[CTA_BARRIERS]; /* of BAR.RED */
    u32 reduced;         /* the barrier of the last BAR.RED */
    u32 cluster_phase;   /* of its cluster's barrier, when it arrived there */
    u32 bulk_groups;     /* groups of bulk copies that it closed */
    u32 products;        /* matrix products that it made with its warpgroup */
    u32 last_product;    /* the instruction of the last one */
    u32 product_groups;  /* groups of them that it closed */
    u32 closed[KEPT_PRODUCT_GROUPS]; /* products when it closed each of the last groups */
    u32 registers;       /* of each thread, where setmaxnreg changed them; 0: as launched */
    u32 ends_slice;      /* it found nothing to do but to ask again */
    Question asked;
    Pass pass;
    u8 *local;           /* [LANES][local_bytes] */
    u64 time, ready[SCOREBOARDS]; /* in ticks: when it goes on, and when results are there (pace.h) */
    u64 issued;                   /* likewise: its last instruction */
} Warp;

typedef struct { u32 arrived, expected, red_and, red_or, red_popc; } Barrier;

typedef struct Worker Worker;

/* Number of phase changes of a barrier in shared memory. */
typedef struct { u32 offset; u64 generation; } Generation;

/* A block that runs, or room for one. */
typedef struct Block {
    u64 index;             /* linear, in the grid */
    u32 ctaid[3];
    u32 rank;              /* in its cluster */
    u64 tag;               /* tells its lines from those of others that run with it */
    Worker *keeper;        /* who counts what it does and keeps what it accesses; NULL: nobody */
    struct Block *cluster; /* the first block of its cluster */
    Warp *warps;
    Barrier barrier[CTA_BARRIERS];
    u8 *shared;
    u16 *shared_written;   /* one bit for each byte of shared memory */
    u32 shared_unwritten;  /* bytes that nobody has written yet, or that a copy will write */
    u32 lives;
    u32 cluster_arrived;   /* threads that arrived at the barrier of the cluster that begins here */
    u32 cluster_phase;     /* how often that has opened */
    i32 spare_registers;   /* of each thread of a warp, that warps gave back (setmaxnreg) */
    u32 mbarriers;
    Generation mbarrier[MOST_MBARRIERS];
    Checker *checker;      /* NULL: nothing is checked */
    u8 *arena;
} Block;

/* A copy that was issued and has not been made yet. */
typedef struct Bulk Bulk;

/* Whose counts, accesses and streams a block's are. */
typedef struct { u64 block; Worker *keeper; } Kept;

/* When a warp of a block can issue again, and when one issued last, in ticks; 0: it is not known. */
typedef struct { u64 until, issued; } Pause;

/* A state of all threads, for how many rounds it is compared with later ones, and of which of them. */
typedef struct { u64 changes, places, registers; u32 rounds, most; } Watch;

/* One thread of the host that runs blocks, with all that is its own. */
struct Worker {
    const Launch *launch;
    Count *count;          /* [length]: of the keeper of the block in hand */
    Count *counts;         /* [length]: its own */
    Count *uncounted;      /* [length]: of blocks that only run because others need them */
    i64 *turns, *own_turns; /* [length + 1]: straight runs that began at each, less those that ended */
    Straight *straight;    /* [length + 1] */
    u32 *last_allocation;  /* [length]: where each instruction's last address was */
    void *memo;            /* [length]: the last access pattern of each instruction */
    Block *block;          /* in hand */
    Block *blocks;         /* [slots], cluster by cluster */
    u32 slots, cluster_size, warp_count;
    u32 running;           /* clusters */
    u32 pc;                /* index of the instruction in hand */
    i64 budget, granted;   /* warp instructions left, and at the beginning */
    u32 is_late;           /* what is kept is of the second half of a window */
    u64 started;           /* blocks, since none ran */
    u64 finished;          /* blocks that somebody keeps; the host reads it meanwhile */
    u64 changes;           /* of memory, of barriers, of who lives: what one who asks again may see */
    u32 phases;            /* of mbarriers that ended: who waits for one shall look again */
    u32 asked_again;       /* somebody asked once more in this round, and heard nothing new */
    Bulk *bulk;            /* copies under way, the oldest first */
    u32 bulk_count;
    u64 bulk_room;
    u64 unwritten_reads;   /* of shared memory */
    Fault unwritten;       /* the first of them */
    Fault fault;
    Trace *trace;          /* of the keeper of the block in hand; NULL: nothing is noted */
    Stream *stream;        /* likewise; NULL: nothing is kept */
    Tally *tally, *own_tally;   /* likewise, of atomic operations */
    Tally *stores, *own_stores; /* likewise, of stores */
    Trace *own_trace;
    Stream *own_stream;
    Request *requests, *own_requests; /* [length]: likewise; NULL: none are noted; `mask` 0: none was */
    Checker *checker;      /* of the block in hand; NULL: nothing is checked */
    Origins *origins, *own_origins; /* likewise; NULL: values are not followed */
    Checks *checks;        /* what the blocks' checkers have in common */
    Heap *heap;            /* of malloc; NULL: nothing calls it */
    MatrixRoom *matrices;  /* of products of warpgroups; NULL: there were none */
    Printed *printed, *own_printed; /* likewise as `count`, what printf was called with */
    Watch watch;           /* whether anything still changes */
    u64 expired_at;        /* changes when those who waited were told last that their time is over */
    u64 now, soonest;      /* in ticks: the quantum, and when a later warp goes on (pace.h) */
    u64 idle_since;        /* nothing has changed */
    u32 any_due;           /* a warp that issues in this quantum */
    Pause *pauses;         /* [slots]: of blocks of which no warp could issue */
    u64 slice_free[SLICES_IN_TIME]; /* when each slice of L2 has made its operations */
    u64 slice_added[SLICES_IN_TIME]; /* the sector of its last atomic operation, if no load has followed */
    u64 unit_free;         /* and the load/store unit of the SM */
    u8 beyond[LANES][WIDE_BYTES]; /* what each lane accesses beyond all allocations */
};

static inline u32 popcount(u32 lanes) { return (u32)__builtin_popcount(lanes); }

/* For each block of the cluster that begins with `first`, each warp of a block, and each group of
 * lanes of a warp. */
#define EACH_BLOCK(b, first) for (Block *b = (first); b < (first) + c->cluster_size; b++)
#define EACH_WARP(w, b) for (Warp *w = (b)->warps; w < (b)->warps + c->warp_count; w++)
#define EACH_GROUP(g, w) \
    for (__typeof__(&(w)->group[0]) g = (w)->group; g < (w)->group + (w)->groups; g++)

/* Loop over the first block of each running cluster, in order. */
#define EACH_CLUSTER(first)                                                                \
    for (Block *first = c->blocks; first < c->blocks + c->slots; first += c->cluster_size) \
        if (first->lives)

/* Loop over all groups of all running blocks. */
#define EACH_GROUP_OF_ALL(g) EACH_CLUSTER(first) EACH_BLOCK(b, first) EACH_WARP(w, b) EACH_GROUP(g, w)

static inline void stop(Worker *c, u32 kind) {
    if (c->fault.kind) return;
    c->fault.kind = kind;
    c->fault.pc = c->pc;
    c->fault.block = c->block ? c->block->index : 0;
}

/* The thread that a fault is of: the first lane of m. */
static inline void blame(Worker *c, const Warp *w, u32 m) {
    c->fault.warp = w->index;
    c->fault.lane = (u32)__builtin_ctz(m);
}
