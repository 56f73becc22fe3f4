/* Cycle-level model of one streaming multiprocessor: four schedulers issue the recorded streams of the
 * resident warps, in order, as the control bits of the machine code allow. The load/store unit, L1 and
 * this SM's share of L2 and DRAM serve their requests.
 *
 * Times are clocks of the SM. docs/timing.md describes the model and the source of each rule; all
 * numbers are parameters in `Machine`. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

enum { SCHEDULERS = 4, SCOREBOARDS = 6, NONE = 7, SLOTS = 3, BANKS = 2, NO_BANK = BANKS, KEPT_FOR = 2, CLOCKS_AHEAD = 48,
       MOST_QUEUED = 32, ON_THEIR_WAY = 3, SECTOR = 32, LANES = 32, CODE_LINE = 8, CODE_WAYS = 4,
       CODE_AHEAD = 5, PHASES = 1 << 16, COPY_PLACES = 2 };
#define LN2 0.6931471805599453
#define INLINED static inline __attribute__((always_inline)) /* a run takes up to a tenth longer where it is not */
enum { UNIT_CONTROL, UNIT_FMA, UNIT_FMA_HEAVY, UNIT_FMA_WIDE, UNIT_HALF, UNIT_ALU, UNIT_FP64, UNIT_XU, UNIT_UNIFORM, UNIT_LSU,
       UNITS };
enum { KIND_PLAIN, KIND_SHARED_LOAD, KIND_SHARED_STORE, KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_COPY,
       KIND_COPY_GROUP, KIND_WAIT_GROUP, KIND_BARRIER, KIND_BRANCH, KIND_EXIT, KIND_MBARRIER_BEGIN,
       KIND_MBARRIER_ARRIVE, KIND_MBARRIER_WAIT, KIND_BULK_LOAD, KIND_BULK_STORE, KIND_BULK_GROUP };
enum { STEP_TAKEN = 1, STEP_OFF = 2, STEP_RUN = 4 };

/* Raise x to a minimum, lower x to a maximum; the greater of two values. */
#define RAISE(x, least) do { if ((x) < (least)) (x) = (least); } while (0)
#define LOWER(x, most) do { if ((x) > (most)) (x) = (most); } while (0)
#define GREATER(a, b) ((a) > (b) ? (a) : (b))

#define WHOLE 0xffffffffu /* bytes of a store that is assumed to write whole sectors */
#define COMMON (1ull << 63) /* a line that all blocks access: repeated blocks share it */
#define IN_L2 (1ull << 62)  /* a line that another block has written: no request waits for DRAM */
#define FLAG (1ull << 61)   /* a line with a flag that another block has written data: not cached in L1 */

/* An instruction of the program, decoded from its 128 bits. */
typedef struct {
    u8 stall, yield, write_barrier, read_barrier, wait, unit, kind, registers; /* written */
    i16 source[SLOTS]; /* general registers read by each slot, -1: none */
    u8 reuse;          /* slots whose value the reuse cache keeps for the next instruction */
    u8 operands;       /* registers that a request hands to the load/store unit */
    u16 banks;         /* the bank of each operand, one bit each */
    u8 argument;       /* KIND_WAIT_GROUP: scoreboard << 4 | groups that may be pending; KIND_STORE: bytes
                        * per lane */
    u16 latency;       /* clocks of variable-latency arithmetic until its scoreboard is released */
    u16 pipe_clocks;   /* clocks for which its unit accepts no other warp instruction */
    u16 free_clocks;   /* clocks of the load/store unit without bank conflicts; 0: as recorded */
} Instruction;

/* An instruction, or, with STEP_RUN, `clocks` instructions from `pc` on without memory requests.
 * `lines`: number of lines that it accesses; for barriers in shared memory and bulk copies, number of
 * words that describe them, plus 256 times `clocks`. */
typedef struct { u32 pc; u16 clocks; u8 lines, flags; } Step;
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
    u32 barrier_latency, barrier_per_warp, branch_clocks, block_start, block_interval;
    u32 fetch_latency;    /* latency of a 128-byte code line that the SM has not executed before */
    u32 fetch_clocks;     /* clocks after the previous line, if the SM executes lines in order */
    u32 integers_share;   /* 1: integer ALU work runs on the FMA half that also makes integer products */
    u32 fma_halves;       /* 2: multiply-adds have two pipes of half the width */
    double request_clocks; /* minimum clocks of a request */
    double load_clocks;   /* minimum clocks of a load of a line of global memory */
    double sector_clocks; /* minimum clocks of a load of one sector */
    double store_line_bytes; /* minimum bytes that a line counts in a store */
    double write_slots;   /* issue slots that writing one register of a load takes */
    double barrier_unit_clocks; /* clocks that the arrival of a warp occupies the barrier unit */
    double miss_clocks;   /* minimum clocks of the path to L2 for a request that misses L1 */
    double l2_bytes_per_clock, write_bytes_per_clock; /* this SM's share */
    double dram_scatter;  /* average of the random additional clocks per line of DRAM */
    double dram_spread;   /* maximum of the random additional clocks if DRAM is always busy */
    /* Of a launch, in the order of `Machine` in Python. */
    u32 slots;            /* resident blocks */
    u32 l1_lines;         /* capacity of L1 */
    u32 code_lines;       /* code lines in the instruction cache; 0: unlimited */
    u32 flag_clocks;      /* clocks until a block that polls flags of other blocks finds all of them set */
    u32 free_memory;      /* 1: requests take no clocks of the load/store unit */
    u32 free_conflicts;   /* 1: no bank conflicts */
    u32 stops_at_mark;    /* 1: the run ends at `mark` */
    double wavefront_clocks; /* clocks of the load/store unit for a wavefront of shared memory */
    double dram_bytes_per_clock; /* this SM's share */
    double dram_share;    /* bytes of DRAM work per byte read from L2 */
    double dram_write_share; /* bytes of DRAM work per byte written to L2 */
    double waiting_share; /* fraction of the requests to L2 that wait for DRAM */
    volatile u64 most_clocks; /* 0 ends the run, also while it goes on */
    u64 mark;             /* number of instructions; a run records when they were issued */
} Machine;

/* NOT_KEPT: no register. STATES: sets of clocks in which banks may be taken, CLOCKS each. */
enum { NOT_KEPT = 0xffff, REG_SHIFT = 48, CLOCKS = 3, STATES = 64, ROWS = 4096, NO_ROOM = 0xff };

/* Operand slot of an instruction: its register, and the same if the reuse cache keeps it. */
typedef struct { u16 reg, kept; u8 bank; } Operand;

/* Operands of an instruction. `row`: its row of `Sm.reads` for each set of slots whose operand the reuse
 * cache has, one bit each. `is_plain`: it is no request and sets no scoreboard. */
typedef struct { Operand at[SLOTS]; u16 row[1 << SLOTS]; u8 is_plain; } Operands;

/* Why a scheduler issued nothing in a clock. */
enum { LOST_BANK, LOST_WRITE, LOST_STALL, LOST_PIPE, LOST_QUEUE, LOST_SHARED, LOST_GLOBAL,
       LOST_ARITHMETIC, LOST_BARRIER, LOST_FETCH, LOST_EMPTY, LOST };

typedef struct {
    u64 clocks, issued, unit_busy[UNITS], l2_read_bytes, l2_write_bytes, l1_misses,
        lost[LOST];
    double lsu_busy, shared_busy, write_clocks;
    u64 unfinished, marked;
} Result;

/* Event at a time; `age` is that of the warp. The data of missed loads take `clocks` of L1's data path
 * then. */
typedef struct { double at, clocks; u64 age; u32 warp; u8 scoreboard, registers; } Event;

/* A barrier in shared memory, and an arrival at it at a time. */
typedef struct { u64 id, generation; u32 expected, pending; i64 bytes; } Mbarrier;
typedef struct { double at; u64 age, id; u32 block, arrivals; i64 bytes; } Arrival; /* age: of the block */
enum { MOST_MBARRIERS = 64, RANK_SHIFT = 24 };

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

/* An array with twice the room; the same one if there is no memory, and the run has failed. */
static void *grown(Sm *s, void *array, u32 *room, size_t size) {
    const u32 wanted = 2 * *room;
    void *larger = realloc(array, wanted * size);
    s->failed |= !larger;
    if (larger) *room = wanted;
    return larger ? larger : array;
}

/* Make room for one more element of an array, if it is full. */
#define GROW(s, array, count, room) \
    do { if ((count) == (room)) (array) = grown(s, array, &(room), sizeof *(array)); } while (0)

/* Events in order of time. */

static void push(Sm *s, Event e) {
    GROW(s, s->heap, s->events, s->event_room);
    if (s->failed) return;
    u32 k = s->events++;
    while (k && s->heap[(k - 1) / 2].at > e.at) {
        s->heap[k] = s->heap[(k - 1) / 2];
        k = (k - 1) / 2;
    }
    s->heap[k] = e;
}

static Event pop(Sm *s) {
    const Event first = s->heap[0], e = s->heap[--s->events];
    u32 k = 0;
    for (;;) {
        u32 child = 2 * k + 1;
        if (child >= s->events) break;
        if (child + 1 < s->events && s->heap[child + 1].at < s->heap[child].at) child++;
        if (s->heap[child].at >= e.at) break;
        s->heap[k] = s->heap[child];
        k = child;
    }
    s->heap[k] = e;
    return first;
}

/* L1, with least-recently-used eviction: its lines are a ring, from the end behind them to the newest one,
 * and from the oldest one to the end. */

#define NO_LINE 0xffffffffu

static u32 bucket_of(const Sm *s, u64 key) {
    return (u32)((key * 0x9e3779b97f4a7c15ull) >> 40) & (s->buckets - 1);
}

static void unlink_line(Sm *s, u32 k) {
    const Line *x = &s->cache[k];
    s->cache[x->newer].older = x->older;
    s->cache[x->older].newer = x->newer;
}

static void make_newest(Sm *s, u32 k) {
    const u32 end = s->m->l1_lines, newest = s->cache[end].older;
    s->cache[k].newer = end;
    s->cache[k].older = newest;
    s->cache[newest].newer = s->cache[end].older = k;
}

static Line *line_of(Sm *s, u64 key) {
    u32 *head = &s->bucket[bucket_of(s, key)], k = *head;
    while (k != NO_LINE && s->cache[k].key != key) k = s->cache[k].next;
    if (k != NO_LINE) {
        unlink_line(s, k);
    } else {
        if (s->cached < s->m->l1_lines) {
            k = s->cached++;
        } else {
            k = s->cache[s->m->l1_lines].newer;
            unlink_line(s, k);
            u32 *at = &s->bucket[bucket_of(s, s->cache[k].key)];
            while (*at != k) at = &s->cache[*at].next;
            *at = s->cache[k].next;
        }
        s->cache[k] = (Line){.key = key, .next = *head};
        *head = k;
    }
    make_newest(s, k);
    return &s->cache[k];
}

/* Occupy DRAM for `clocks` from now on. */
static void ask_dram(Sm *s, double now, double clocks) {
    RAISE(s->dram_free, now);
    s->dram_free += clocks;
    s->dram_work += clocks;
}

/* When the last of the sectors of a mask, which are requested from L2 now, arrives. */
static double fetch(Sm *s, u64 sectors, double now) {
    const Machine *m = s->m;
    RAISE(s->l2_free, now);
    for (u32 n = __builtin_popcountll(sectors); n; n--) {
        s->l2_free += SECTOR / m->l2_bytes_per_clock;
        s->r->l2_read_bytes += SECTOR;
        if (m->dram_share > 0) ask_dram(s, now, SECTOR * m->dram_share / m->dram_bytes_per_clock);
    }
    return s->l2_free + m->l2_latency;
}

/* When what arrives at a time without DRAM arrives behind what DRAM was asked for, and after a wait. */
static double behind_dram(const Sm *s, double now, double at, double wait) {
    const double later = GREATER(s->dram_free, now) + s->m->l2_latency;
    return GREATER(at, later) + wait;
}

/* Pseudorandom bits. */
static u64 hash_of(u64 x) {
    x += 0x9e3779b97f4a7c15ull;
    x ^= x >> 30; x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27; x *= 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Pseudorandom number from 0 to 1. */
static double spread(u64 x) { return (hash_of(x) >> 11) / 9007199254740992.0; }

/* Sectors of a line that are in L2 if those of `mask` are: DRAM transfers pairs of sectors. */
static u32 with_neighbour(u32 mask) { return mask | (mask & 5) << 1 | (mask & 10) >> 1; }

/* Clocks that a block waits for a line of DRAM: a minimum plus an exponentially distributed part. The
 * last of several lines decides, so a block waits longer for two lines than for one. */
static double dram_wait(const Machine *m, const Block *b, u64 number) {
    const u64 x = hash_of(number * PHASES + b->phases % PHASES) | 1;
    const u32 zeros = __builtin_clzll(x);
    const double rest = (x << zeros << 1) / 18446744073709551616.0; /* below the leading one bit */
    return m->dram_latency + m->dram_scatter * LN2 * (zeros + 1 - rest);
}

/* True for the share of the requests to L2 that waits for DRAM. */
static u8 waits_for_dram(Sm *s) {
    s->dram_due += s->m->waiting_share;
    const u8 waits = s->dram_due >= 1;
    s->dram_due -= waits;
    return waits;
}

/* When all lines of a load have arrived. The sectors of a line arrive together. The latency of hits
 * counts from `from`, when the request would have been issued without queueing. */
static double load_lines(Sm *s, const Request *q, double from, double now, int *has_missed) {
    const Machine *m = s->m;
    double here = from + m->l1_latency;
    Block *b = &s->blocks[q->block];
    const double least = GREATER(s->l2_free, now) + m->miss_clocks;
    const u64 missed = s->r->l1_misses;
    if (!b->has_barriers) b->decided = 0;
    for (u32 k = 0; k < q->step->lines; k++) {
        const u64 line = q->line[k];
        const u32 wanted = line & 15;
        if (line & FLAG) {
            const double at = fetch(s, 1, now) - m->l2_latency + m->atomic_latency;
            if (!b->flags_at) b->flags_at = now + m->flag_clocks;
            RAISE(here, at);
            RAISE(here, b->flags_at);
            continue;
        }
        const u64 number = (line & ~(COMMON | IN_L2)) >> 4;
        Line *entry = line_of(s, line & COMMON ? number : number | q->space);
        const u32 missing = wanted & ~entry->mask;
        if (missing) {
            double at = fetch(s, missing, now);
            s->r->l1_misses += __builtin_popcount(missing);
            /* all misses of a block between two barriers wait for DRAM, or none does */
            if (!b->decided && !(line & IN_L2)) {
                b->decided = 1;
                b->phases++;
                b->waits = waits_for_dram(s);
            }
            if (b->waits && !(line & IN_L2) && missing & ~with_neighbour(entry->mask)) {
                at = behind_dram(s, now, at, dram_wait(m, b, number));
                /* the random part of a wait grows with the load of DRAM: a warp waits for the last
                 * of its lines, and the next block for the last warp of this one */
                const double busy = s->dram_work / (now + 1), full = busy < 1 ? busy : 1;
                at += m->dram_spread * full * full * spread(s->r->l1_misses + entry->key);
            }
            for (u32 n = 0; n < 4; n++)
                if (missing >> n & 1) entry->ready[n] = at;
            entry->mask |= missing;
        }
        for (u32 n = 0; n < 4; n++) {
            if (!(wanted >> n & 1)) continue;
            const double at = entry->ready[n] + (missing >> n & 1 ? 0 : m->l1_latency);
            RAISE(here, at);
        }
    }
    *has_missed = s->r->l1_misses > missed;
    if (*has_missed) RAISE(s->l2_free, least);
    return here;
}

static u32 sectors_of(const u64 *line, u32 lines) {
    u32 sectors = 0;
    for (u32 k = 0; k < lines; k++) sectors += __builtin_popcount(line[k] & 15);
    return sectors;
}

/* Store at most `stored` bytes to some lines. If their sectors hold more bytes, they are written
 * partially: such a line takes as long as one with one more sector. */
static void store_lines(Sm *s, u32 lines, const u64 *line, u32 stored, double now) {
    const u32 sectors = sectors_of(line, lines);
    const double in_part = SECTOR * sectors > stored ? SECTOR : 0;
    double bytes = 0;
    for (u32 k = 0; k < lines; k++) {
        const double of_line = SECTOR * __builtin_popcount(line[k] & 15) + in_part;
        bytes += GREATER(of_line, s->m->store_line_bytes);
    }
    s->r->l2_write_bytes += SECTOR * sectors;
    RAISE(s->write_free, now);
    s->write_free += bytes / s->m->write_bytes_per_clock;
    s->r->write_clocks += bytes / s->m->write_bytes_per_clock;
    if (s->m->dram_write_share > 0) /* as much is evicted from L2 as enters; loads wait behind it */
        ask_dram(s, now, SECTOR * sectors * s->m->dram_write_share / s->m->dram_bytes_per_clock);
}

/* Barriers in shared memory. A block is replayed without the other blocks of its cluster. These are
 * assumed to do the same to it as it does to them: it arrives at its own barrier instead of theirs. */

static u64 word(const u64 *words, u32 k) { return words[k] & ~COMMON; }

static Mbarrier *mbarrier_of(Block *b, u64 address) {
    const u64 id = address & ((1u << RANK_SHIFT) - 1);
    for (u32 k = 0; k < b->mbarriers; k++)
        if (b->mbarrier[k].id == id) return &b->mbarrier[k];
    const u32 k = b->mbarriers < MOST_MBARRIERS ? b->mbarriers++ : MOST_MBARRIERS - 1;
    b->mbarrier[k] = (Mbarrier){.id = id};
    return &b->mbarrier[k];
}

/* Wake the scheduler of a warp at a time. */
static void wake(Sm *s, u32 warp, u64 at) { LOWER(s->scheduler[warp % SCHEDULERS].sleep, at); }

static void end_phase(Sm *s, Block *b, Mbarrier *x) {
    x->pending = x->expected;
    x->bytes = 0;
    x->generation++;
    b->has_barriers = 1; /* its warps wait together */
    b->decided = 0;
    for (u32 k = 0; k < b->warps; k++) wake(s, b->first + k, s->now);
}

static void count_down(Sm *s, const Arrival *a) {
    Block *b = &s->blocks[a->block];
    if (b->age != a->age) return;
    Mbarrier *x = mbarrier_of(b, a->id);
    x->pending -= x->pending < a->arrivals ? x->pending : a->arrivals;
    x->bytes += a->bytes;
    if (!x->pending && x->bytes <= 0) end_phase(s, b, x);
}

static void expect_arrival(Sm *s, Arrival a) {
    GROW(s, s->arrivals, s->arrival_count, s->arrival_room);
    if (!s->failed) s->arrivals[s->arrival_count++] = a;
}

static void let_arrive(Sm *s) {
    for (u32 k = 0; k < s->arrival_count;) {
        if (s->arrivals[k].at > s->now) { k++; continue; }
        const Arrival a = s->arrivals[k];
        s->arrivals[k] = s->arrivals[--s->arrival_count];
        count_down(s, &a);
    }
}

/* Effect of a served request on barriers. Copies have theirs when they are complete. */
static void count_request(Sm *s, const Request *q, const Instruction *i, double now) {
    Block *b = &s->blocks[q->block];
    const Warp *w = &s->warps[q->warp];
    const double at = w->async_done > now && i->argument ? w->async_done : now;
    for (u32 k = 0; k + 1 < q->step->lines; k += 2) {
        const u64 id = word(q->line, k), number = word(q->line, k + 1);
        if (i->kind == KIND_MBARRIER_BEGIN) {
            Mbarrier *x = mbarrier_of(b, id);
            *x = (Mbarrier){.id = x->id, .expected = number, .pending = number};
            continue;
        }
        expect_arrival(s, (Arrival){.at = at, .age = b->age, .id = id, .block = q->block,
                                    .arrivals = number >> 32, .bytes = (i32)number});
    }
}

/* True if the phase that a warp waits for in its next step is over. */
static int phase_is_over(Sm *s, const Warp *w) {
    if (w->step->lines < 2) return 1;
    return mbarrier_of(&s->blocks[w->block], word(w->line, 0))->generation >= word(w->line, 1);
}

/* No warp can continue: the first one waits for another block of the cluster. End its phase. */
static int help_one(Sm *s) {
    for (u32 k = 0; k < s->m->slots * s->warps_per_block; k++) {
        Warp *w = &s->warps[k];
        if (!w->alive || s->code[w->pc].kind != KIND_MBARRIER_WAIT || phase_is_over(s, w)) continue;
        Block *b = &s->blocks[w->block];
        end_phase(s, b, mbarrier_of(b, word(w->line, 0)));
        return 1;
    }
    return 0;
}

static int is_bulk_copy(const Instruction *i) { return i->kind == KIND_BULK_LOAD || i->kind == KIND_BULK_STORE; }

static u32 words_of(const Instruction *i, const Step *step) {
    return step->lines + (is_bulk_copy(i) ? 256u * step->clocks : 0);
}

/* A bulk copy uses this SM's share of L2, but neither the load/store unit nor L1. Its first words are
 * the barrier, and the number of blocks that receive it together with its bytes. */
static void copy_bulk(Sm *s, Warp *w, const Instruction *i, const Step *step, const u64 *line) {
    const Machine *m = s->m;
    const u32 words = words_of(i, step);
    const double now = s->now;
    if (words < 2) return;
    if (i->kind == KIND_BULK_STORE) {
        store_lines(s, words - 2, line + 2, WHOLE, now);
        w->bulk_done = s->write_free;
        return;
    }
    Block *b = &s->blocks[w->block];
    double at = now + m->shared_latency;
    for (u32 k = 2; k < words; k++) at = fetch(s, line[k] & 15, now);
    if (words > 2 && waits_for_dram(s)) {
        double wait = 0;
        for (u32 k = 2; k < words; k++) {
            const double of_line = dram_wait(m, b, word(line, k) >> 4);
            RAISE(wait, of_line);
        }
        at = behind_dram(s, now, at, wait);
        b->phases++;
    }
    const u64 number = word(line, 1);
    expect_arrival(s, (Arrival){.at = at, .age = b->age,
                                .id = word(line, 0), .block = w->block,
                                .bytes = -(i64)((number >> 32) * (u32)number)});
}

/* Release a scoreboard at a time, when `registers` are written back. */
INLINED void release(Sm *s, u32 warp, u64 age, u8 scoreboard, double at, u32 registers) {
    if (registers > 1) at += (registers - 1) * s->m->register_latency;
    if (scoreboard != NONE || registers)
        push(s, (Event){.at = at, .age = age, .warp = warp, .scoreboard = scoreboard, .registers = registers});
}

/* Complete a request after its last wavefront. */
static void served(Sm *s, const Request *q, double now) {
    const Machine *m = s->m;
    Warp *w = &s->warps[q->warp];
    const Instruction *i = &s->code[q->step->pc];
    const u32 registers = q->step->flags & STEP_OFF ? 0 : i->registers;
    /* latencies are measured from issue, for a request of one wavefront without contention */
    double at = now - i->operands * m->operand_clocks - 1;
    int has_missed = 0;
    switch (i->kind) {
    case KIND_LOAD:
        at = load_lines(s, q, at, now, &has_missed);
        break;
    case KIND_COPY:
        at = load_lines(s, q, at, now, &has_missed);
        if (w->age == q->age) RAISE(w->async_done, at);
        break;
    case KIND_COPY_GROUP: /* requests are served in order, so the earlier copies have been served */
        if (w->age == q->age) RAISE(at, w->async_done);
        break;
    case KIND_STORE:
        store_lines(s, q->step->lines, q->line, LANES * i->argument, now);
        break;
    case KIND_ATOMIC:
        if (q->step->lines) store_lines(s, q->step->lines, q->line, WHOLE, now);
        at += q->step->lines ? m->atomic_latency : m->shared_atomic_latency;
        break;
    case KIND_MBARRIER_BEGIN:
    case KIND_MBARRIER_ARRIVE:
        if (w->age == q->age) count_request(s, q, i, now);
        at += m->shared_latency;
        break;
    default: /* KIND_SHARED_LOAD and KIND_SHARED_STORE (with SHFL), KIND_MBARRIER_WAIT */
        at += m->shared_latency;
    }
    if (has_missed && i->kind == KIND_LOAD && q->left > 0) /* the data arrive in L1, and pass its data path */
        push(s, (Event){.at = at, .clocks = q->left, .age = q->age, .warp = q->warp,
                        .scoreboard = i->write_barrier, .registers = registers});
    else release(s, q->warp, q->age, i->write_barrier, at, registers);
    if (!has_missed && q->left > 0) RAISE(s->data_free, now);
    release(s, q->warp, q->age, i->read_barrier, now, 0);
}

/* The queue of a request, and the number of entries that it takes in the queue of global memory. */
static u32 queue_of(const Instruction *i, const Step *step) {
    switch (i->kind) {
    case KIND_LOAD: case KIND_STORE: case KIND_COPY: case KIND_COPY_GROUP: return QUEUE_GLOBAL;
    case KIND_ATOMIC: return step->lines ? QUEUE_GLOBAL : QUEUE_SHARED;
    default: return QUEUE_SHARED;
    }
}

static u32 places_of(const Instruction *i) { return i->kind == KIND_COPY ? COPY_PLACES : 1; }

/* True if the queue of a request has a free entry. */
static int has_room(const Sm *s, const Scheduler *x, const Instruction *i, const Step *step) {
    if (queue_of(i, step) == QUEUE_SHARED) return x->queue[QUEUE_SHARED].count < MOST_QUEUED;
    const u32 more = places_of(i), own = x->global_places + more;
    return own <= s->m->global_queue / SCHEDULERS || s->global_places + more <= s->m->global_queue;
}

/* Add a request to its queue. Requests to shared memory overtake those of their scheduler to global
 * memory, except for the first few, which are already in flight. */
static void enqueue(Sm *s, Scheduler *x, Request q) {
    const Instruction *i = &s->code[q.step->pc];
    const u32 kind = queue_of(i, q.step);
    q.turn = ++s->requests;
    if (kind == QUEUE_GLOBAL) {
        s->global_places += places_of(i);
        x->global_places += places_of(i);
    } else if (x->queue[QUEUE_GLOBAL].count > ON_THEIR_WAY) {
        const Queue *global = &x->queue[QUEUE_GLOBAL];
        q.turn = global->at[(global->head + ON_THEIR_WAY - 1) % MOST_QUEUED].turn;
    }
    Queue *queue = &x->queue[kind];
    queue->at[(queue->head + queue->count++) % MOST_QUEUED] = q;
    s->waiting++;
}

/* True if a request needs the L1 data path when it is served. Loads of global memory need it when their
 * lines arrive; predicated-off requests and ends of copy groups never do. */
static int needs_data(const Sm *s, const Request *q) {
    const u8 kind = s->code[q->step->pc].kind;
    const int is_global_load = q->step->lines && (kind == KIND_LOAD || kind == KIND_COPY);
    return q->left > 0 && !is_global_load && kind != KIND_COPY_GROUP;
}

/* If the load/store unit is free, serve all wavefronts of its next request. False if there is none. */
static int serve(Sm *s) {
    const double now = s->now;
    if (!s->waiting || s->lsu_free >= now + 1) return 0;
    Scheduler *best = NULL;
    Queue *next = NULL;
    for (u32 k = 0; k < SCHEDULERS && !best; k++) {
        Scheduler *x = &s->scheduler[(s->turn + k) % SCHEDULERS];
        for (u32 n = 0; n < QUEUES; n++) {
            Queue *queue = &x->queue[n];
            const Request *q = &queue->at[queue->head];
            if (!queue->count || q->from > s->now) continue;
            if (!next || q->turn < next->at[next->head].turn) best = x, next = queue;
        }
    }
    if (!best) return 0;
    const Request q = next->at[next->head];
    s->turn = (u32)(best - s->scheduler + 1) % SCHEDULERS;
    next->head = (next->head + 1) % MOST_QUEUED;
    next->count--;
    s->waiting--;
    if (next == &best->queue[QUEUE_GLOBAL]) {
        const u32 places = places_of(&s->code[q.step->pc]);
        s->global_places -= places;
        best->global_places -= places;
        for (u32 k = 0; k < SCHEDULERS; k++) wake(s, k, s->now + 1); /* any of them may take the free entry */
    }
    LOWER(best->sleep, s->now + 1);
    if (needs_data(s, &q)) RAISE(s->lsu_free, s->data_free);
    s->lsu_free = GREATER(s->lsu_free, now) + q.left;
    s->r->lsu_busy += q.left;
    if (!q.step->lines) s->r->shared_busy += q.left;
    served(s, &q, s->lsu_free);
    return 1;
}

/* Start and end of blocks. */

/* Set the next instruction of a warp to the first one of its step. */
static void take_step(Warp *w) {
    w->pc = w->step->pc;
    w->left = w->step->flags & STEP_RUN ? w->step->clocks - 1u : 0;
}

/* Advance a warp to its next instruction, if there is one. */
static void go_on(Warp *w) {
    if (w->left) {
        w->left--;
        w->pc++;
    } else if (++w->step < w->end) {
        take_step(w);
    }
}

static void start_block(Sm *s, u32 slot, u64 at) {
    if (s->next_job == s->job_count) return;
    const u32 job = s->next_job++;
    RAISE(at, s->block_free);
    s->block_free = at + s->m->block_interval;
    const Job *j = &s->jobs[job];
    Block *b = &s->blocks[slot];
    *b = (Block){.alive = j->warps, .job = job, .first = slot * s->warps_per_block, .warps = j->warps,
                 .start = at, .age = ++s->block_ages};
    s->starts[job] = at;
    for (u32 k = 0; k < j->warps; k++) {
        Warp *w = &s->warps[b->first + k];
        const Stream *stream = &s->streams[j->first_stream + k];
        *w = (Warp){.step = s->steps + stream->first_step, .line = s->lines + stream->first_line,
                    .ready = at, .space = j->space, .block = slot, .alive = 1,
                    .blocked_on = LOST_EMPTY, .age = s->ages++};
        w->end = w->step + stream->steps;
        take_step(w);
        wake(s, b->first + k, at);
    }
}

static void open_barrier(Sm *s, Block *b) {
    if (!b->waiting || b->waiting < b->alive) return;
    u64 at = s->now + s->m->barrier_latency;
    RAISE(at, b->opens_after + s->m->barrier_latency);
    b->waiting = 0;
    b->has_barriers = 1;
    b->decided = 0;
    for (u32 k = 0; k < b->warps; k++) {
        Warp *w = &s->warps[b->first + k];
        if (!w->at_barrier) continue;
        w->at_barrier = 0;
        w->ready = at;
        w->blocked_on = LOST_BARRIER;
        wake(s, b->first + k, at);
    }
}

static void leave(Sm *s, Warp *w) {
    Block *b = &s->blocks[w->block];
    w->alive = 0;
    b->alive--;
    if (b->alive) { open_barrier(s, b); return; }
    s->ends[b->job] = s->now + 1;
    s->ended[s->ended_count++] = w->block;
}

/* Shift the recorded reads of the register banks so that they begin now. */
static void look_ahead(Scheduler *x, u64 now) {
    const u64 gone = now - x->reads_from;
    for (u32 bank = 0; bank < BANKS; bank++) x->reads[bank] = gone < 64 ? x->reads[bank] >> gone : 0;
    x->reads_from = now;
}

/* Clocks in which a slot may read its register, one bit each, counted from the clock in which its
 * instruction leaves the dispatch. It is read in the first of them in which the bank is free. */
enum { AT_ONCE = 1, BY_SECOND = 3, NOT_NEXT = 5, LATER = 6, ANY = 7 };

/* Clocks of a slot. They depend on earlier slots with registers in the same bank. Two operands are read
 * by the second clock, three by the third. */
static u8 clocks_of(const Instruction *i, u32 slot, int is_second_known) {
    const int bank = i->source[slot] % BANKS, are_three = i->source[2] >= 0;
    if (!slot) return are_three ? ANY : AT_ONCE;
    const int is_behind_first = i->source[0] >= 0 && i->source[0] % BANKS == bank;
    if (slot == 1) return !is_behind_first ? AT_ONCE : are_three ? ANY : BY_SECOND;
    if (is_behind_first || i->source[1] < 0 || i->source[1] % BANKS != bank) return ANY;
    return is_second_known ? LATER : NOT_NEXT;
}

/* Clocks that an instruction waits for its registers; all instructions that read registers wait with
 * it. For `slip` clocks, only later instructions of its warp wait, except for multiply-adds. */
static u32 bank_clocks(Sm *s, Scheduler *x, u32 warp, u32 pc, u32 *slip) {
    const Operand *o = s->operands[pc].at;
    u32 late = 0, known = 0;
    *slip = 0;
    if (!s->m->bank_count) return 0;
    x->number += x->kept_warp == warp ? 1 : KEPT_FOR + 1;
    x->kept_warp = warp;
    look_ahead(x, s->now);
    for (u32 k = 0; k < SLOTS; k++) {
        u64 *kept = &x->kept[k][o[k].bank];
        known |= (((u64)o[k].reg << REG_SHIFT) + x->number - *kept <= KEPT_FOR) << k;
        *kept = ((u64)o[k].kept << REG_SHIFT) + x->number;
    }
    const u8 *row = s->reads[s->operands[pc].row[known]];
    u64 found;
    while ((found = row[(x->reads[0] >> late & ANY) | (x->reads[1] >> late & ANY) << CLOCKS]) == NO_ROOM) late++;
    x->reads[0] |= (found & ANY) << late;
    x->reads[1] |= (found >> CLOCKS & ANY) << late;
    *slip = found >> CLOCKS * BANKS;
    if (s->code[pc].yield) x->number += KEPT_FOR;
    return late;
}

/* Read the registers of a request, one per clock: for stores after the issue slot, for others the last
 * one within it. They occupy the scheduler's port to the load/store unit. */
static void hand_over(Sm *s, Scheduler *x, const Instruction *i) {
    const u64 begin = GREATER(x->port, s->now);
    const int is_store = i->kind == KIND_SHARED_STORE || i->kind == KIND_STORE;
    x->port = begin + i->operands * s->m->operand_clocks;
    for (u32 k = 0; k < i->operands && s->m->bank_count; k++) {
        const u32 turn = is_store ? k : (k + 1u) % i->operands;
        const u64 at = begin - s->now + turn + (is_store ? 1 : 0);
        if (at >= CLOCKS_AHEAD) continue;
        u64 *bank = &x->reads[i->banks >> k & 1];
        const u64 open = ~*bank & ~0ull << at;
        *bank |= open & -open;
    }
}

/* True for instructions that the load/store unit processes in order: requests and ends of copy groups. */
static int is_request(const Instruction *i) {
    return i->unit == UNIT_LSU || i->kind == KIND_COPY_GROUP;
}

/* Fill a row of `reads`: for each state of the banks, CLOCKS bits per bank that is read in these clocks,
 * what an instruction reads, in the same bits, and above them the delay of the first slot's read; NO_ROOM
 * if not all reads fit. `number` has the clocks of each slot (none: no read), then their banks. A bank
 * reads one register per clock. */
static void plan_reads(u8 *row, u32 number) {
    for (u32 state = 0; state < STATES; state++) {
        u32 taken = state, lacks = 0, slip = 0;
        for (u32 k = 0; k < SLOTS; k++) {
            const u32 clocks = number >> CLOCKS * k & ANY, bank = number >> (CLOCKS * SLOTS + k) & 1;
            const u32 open = clocks & ~(taken >> CLOCKS * bank), first = open & -open;
            lacks |= clocks && !open;
            taken |= first << CLOCKS * bank;
            if (!k) slip = first >> 1; /* the first, second or third bit */
        }
        row[state] = lacks ? NO_ROOM : slip << CLOCKS * BANKS | (taken ^ state);
    }
}

/* Fill what is known of an instruction's operands before the run. */
static void plan_operands(Sm *s, u32 pc) {
    const Instruction *i = &s->code[pc];
    Operands *found = &s->operands[pc];
    u32 again = 0, banks = 0; /* again: slots with the register of an earlier slot, which is read once */
    found->is_plain = i->kind == KIND_PLAIN && !is_request(i) && (i->write_barrier & i->read_barrier) == NONE;
    for (u32 k = 0; k < SLOTS; k++) {
        const u16 r = i->source[k];
        found->at[k] = (Operand){r, i->reuse >> k & 1 ? r : NOT_KEPT, r == NOT_KEPT ? NO_BANK : r % BANKS};
        for (u32 n = 0; n < k; n++) again |= (i->source[n] == i->source[k]) << k;
        banks |= r % BANKS << (CLOCKS * SLOTS + k);
    }
    for (u32 known = 0; known < 1 << SLOTS; known++) {
        u32 number = banks;
        for (u32 k = 0; k < SLOTS; k++)
            if (i->source[k] >= 0 && !((known | again) >> k & 1))
                number |= clocks_of(i, k, (known | again) >> 1 & 1) << CLOCKS * k;
        found->row[known] = number;
        if (!s->reads[number][STATES - 1]) plan_reads(s->reads[number], number);
    }
}

/* Reason (LOST_*) of a warp that waits for the result of an instruction. */
static u8 waits_for(const Instruction *i, const Step *step) {
    if (!is_request(i)) return LOST_ARITHMETIC;
    return queue_of(i, step) == QUEUE_GLOBAL ? LOST_GLOBAL : LOST_SHARED;
}

/* When the pipe of an instruction is free. One half of the multiply-add unit executes wide products and,
 * on some architectures, all integer instructions; plain multiply-adds take the half that is free. */
static u64 *pipe_of(const Sm *s, Scheduler *x, const Instruction *i) {
    u64 *own = &x->unit_free[i->unit], *heavy = &x->unit_free[UNIT_FMA_HEAVY];
    if (i->unit == UNIT_FMA) return s->m->fma_halves == 2 && (*own <= s->now || *own < *heavy) ? own : heavy;
    return i->unit == UNIT_FMA_WIDE || (i->unit == UNIT_ALU && s->m->integers_share) ? heavy : own;
}

static int reads_registers(const Instruction *i) {
    return i->operands || i->source[0] >= 0 || i->source[1] >= 0 || i->source[2] >= 0;
}

/* A warp cannot issue before a time, for a reason. */
static int not_before(u64 time, u8 reason, u64 *again, u8 *why) {
    LOWER(*again, time);
    *why = reason;
    return 0;
}

/* True if a warp can issue now; if not, `why`, and `again`: when that may change. */
INLINED int can_issue(Sm *s, Scheduler *x, Warp *w, u64 *again, u8 *why) {
    const u64 unknown = ~0ull; /* an event will say so */
    if (!w->alive || w->at_barrier)
        return not_before(unknown, w->alive ? LOST_BARRIER : LOST_EMPTY, again, why);
    if (w->ready > s->now) return not_before(w->ready, w->blocked_on, again, why);
    const Instruction *i = &s->code[w->pc];
    if (i->wait & w->waits) return not_before(unknown, w->from[__builtin_ctz(i->wait & w->waits)], again, why);
    if (!s->operands[w->pc].is_plain) {
        if (i->kind == KIND_WAIT_GROUP && w->pending[i->argument >> 4] > (i->argument & 15u))
            return not_before(unknown, LOST_GLOBAL, again, why);
        if (i->kind == KIND_MBARRIER_WAIT && !phase_is_over(s, w)) return not_before(unknown, LOST_BARRIER, again, why);
        if (is_request(i) && !has_room(s, x, i, w->step)) return not_before(unknown, LOST_QUEUE, again, why);
    }
    if (x->reads_free > s->now && reads_registers(i)) return not_before(x->reads_free, LOST_BANK, again, why);
    const int may_slip = i->unit == UNIT_FMA || i->unit == UNIT_CONTROL;
    if (x->slip_free > s->now && !may_slip && x->last >= 0 && w == &s->warps[x->last])
        return not_before(x->slip_free, LOST_BANK, again, why);
    const u64 free = *pipe_of(s, x, i);
    return free <= s->now || not_before(free, LOST_PIPE, again, why);
}

/* Write waiting registers back in the clocks without issue. */
static void write_back(Scheduler *x, u64 now) {
    const u64 from = GREATER(x->free, x->write_since);
    if (now <= from) return;
    const double unused = now - from;
    x->write_due -= x->write_due < unused ? x->write_due : unused;
    x->write_since = now;
}

/* Arrival of a code line that was not requested before; `before` is the arrival of the previous line. */
static u64 fetch_code(const Sm *s, u64 before) {
    const u64 in_order = before + s->m->fetch_clocks;
    const u64 at = !before ? s->now + s->m->fetch_latency : in_order > s->now ? in_order : s->now;
    return at ? at : 1;
}

/* Evict the least recently used line of the set of a code line, if the set is full. */
static void evict_code(Sm *s, u32 line) {
    const u32 sets = s->m->code_lines / CODE_WAYS;
    u32 here = 0, oldest = line;
    for (u32 k = line % sets; k < s->code_length; k += sets) {
        if (!s->used[k]) continue;
        here++;
        if (oldest == line || s->used[k] < s->used[oldest]) oldest = k;
    }
    if (here == CODE_WAYS) s->used[oldest] = 0;
}

/* Arrival of the code line of an instruction. Evicted lines are fetched again one after the other. */
static u64 code_is_here(Sm *s, u32 pc) {
    const u32 line = pc / CODE_LINE;
    u64 *at = &s->fetched[line];
    if (!s->used[line] && s->m->code_lines) evict_code(s, line);
    if (!*at) {
        *at = fetch_code(s, line ? at[-1] : 0);
    } else if (!s->used[line]) {
        const u64 again = s->refetched + s->m->fetch_clocks;
        *at = s->refetched = GREATER(again, s->now);
    }
    s->used[line] = ++s->uses;
    return *at;
}

/* Fetch the lines after a jump, before it is known to be taken; they evict other lines. */
static void fetch_ahead(Sm *s, u32 pc) {
    const u32 line = pc / CODE_LINE;
    if (!s->m->code_lines) return;
    for (u32 k = line + 1; k <= line + CODE_AHEAD && k < s->code_length; k++) {
        if (s->used[k]) continue;
        evict_code(s, k);
        s->used[k] = ++s->uses;
    }
}

/* A result of a warp releases a scoreboard; who waits for that has a reason. */
static void expect(Warp *w, u8 scoreboard, u8 reason) {
    if (scoreboard == NONE) return;
    w->pending[scoreboard]++;
    w->waits |= 1u << scoreboard;
    w->from[scoreboard] = reason;
}

static void issue(Sm *s, Scheduler *x, u32 warp) {
    const Machine *m = s->m;
    Warp *w = &s->warps[warp];
    const Step *step = w->step;
    const u32 pc = w->pc;
    const Instruction *i = &s->code[pc];
    u32 slip;
    const u32 late = bank_clocks(s, x, warp, pc, &slip);
    write_back(x, s->now);
    x->last = warp;
    x->free = s->now + 1;
    x->reads_free = x->free + late;
    x->slip_free = x->reads_free + slip;
    s->r->issued++;
    *pipe_of(s, x, i) = s->now + i->pipe_clocks;
    s->r->unit_busy[i->unit] += i->pipe_clocks;
    w->ready = s->now + late + (i->stall > 1 ? i->stall + slip : 1);
    w->blocked_on = LOST_STALL;
    const u64 fetched = code_is_here(s, pc);
    if (w->ready < fetched) {
        w->ready = fetched;
        w->blocked_on = LOST_FETCH;
    }
    if (s->operands[pc].is_plain) {
        go_on(w);
        if (w->step == w->end) leave(s, w);
        return;
    }
    expect(w, i->write_barrier, waits_for(i, step));
    expect(w, i->read_barrier, is_request(i) ? LOST_QUEUE : LOST_ARITHMETIC);
    const u64 *line = w->line;
    w->line += words_of(i, step);
    go_on(w);
    if (is_bulk_copy(i)) copy_bulk(s, w, i, step, line);
    if (is_request(i)) {
        double clocks = step->clocks, least = i->free_clocks;
        if (!step->lines) {
            clocks *= m->wavefront_clocks;
            least *= m->wavefront_clocks;
        }
        if (least) RAISE(least, m->request_clocks);
        if (step->clocks) RAISE(clocks, m->request_clocks);
        if (i->unit == UNIT_LSU && !(step->flags & STEP_OFF)) RAISE(clocks, 1);
        if (i->kind == KIND_LOAD && step->lines && clocks) { /* more for more sectors, up to a line */
            const u32 sectors = sectors_of(line, step->lines);
            const double more = (m->load_clocks - m->sector_clocks) * (sectors < 4 ? sectors - 1 : 3) / 3;
            RAISE(clocks, m->sector_clocks + more);
        }
        if (m->free_conflicts && least) LOWER(clocks, least);
        if (m->free_memory) clocks = 0;
        hand_over(s, x, i);
        enqueue(s, x, (Request){.step = step, .line = line, .from = x->port, .age = w->age,
                                .space = w->space, .left = clocks, .warp = warp, .block = w->block});
    } else if (i->kind == KIND_BULK_GROUP) {
        const double made = GREATER(w->bulk_done, s->now);
        release(s, warp, w->age, i->write_barrier, made, 0);
        release(s, warp, w->age, i->read_barrier, made, 0);
    } else {
        release(s, warp, w->age, i->write_barrier, s->now + i->latency, 0);
        release(s, warp, w->age, i->read_barrier, s->now, 0);
    }
    if (i->kind == KIND_BRANCH && step->flags & STEP_TAKEN) {
        fetch_ahead(s, pc);
        RAISE(w->ready, s->now + m->branch_clocks);
    }
    if (w->step == w->end) {
        leave(s, w);
    } else if (i->kind == KIND_BARRIER && !(step->flags & STEP_OFF)) {
        Block *b = &s->blocks[w->block];
        w->at_barrier = 1;
        b->waiting++;
        s->barrier_free = GREATER(s->barrier_free, s->now) +
                          m->barrier_unit_clocks;
        b->opens_after = GREATER(b->opens_after, s->now) + m->barrier_per_warp;
        if (b->opens_after < s->barrier_free) b->opens_after = s->barrier_free;
        open_barrier(s, b);
    }
}

/* One clock of a scheduler. */
static void schedule(Sm *s, Scheduler *x) {
    if (x->sleep > s->now) { s->r->lost[x->why]++; return; }
    if (x->free > s->now) return; /* counted at its cause */
    u64 again = ~0ull;
    u8 why = LOST_EMPTY, first_why = LOST_EMPTY;
    i64 chosen = -1;
    if (x->last >= 0 && can_issue(s, x, &s->warps[x->last], &again, &why)) {
        chosen = x->last;
    } else {
        u64 oldest = ~0ull;
        for (u32 k = 0; k < x->count; k++) {
            Warp *w = &s->warps[x->warps[k]];
            if (w->age >= oldest) continue;
            if (can_issue(s, x, w, &again, &why)) {
                oldest = w->age;
                chosen = x->warps[k];
            } else if (first_why == LOST_EMPTY) {
                first_why = why;
            }
        }
    }
    if (chosen >= 0) {
        issue(s, x, chosen);
        return;
    }
    x->why = first_why;
    x->sleep = again;
    s->r->lost[first_why]++;
}

static void happen(Sm *s, Event e) {
    if (e.clocks > 0) {
        s->data_free = GREATER(s->data_free, e.at) + e.clocks;
        e.at = s->data_free + (e.registers > 1 ? (e.registers - 1) * s->m->register_latency : 0);
        e.clocks = 0;
        push(s, e);
        return;
    }
    Warp *w = &s->warps[e.warp];
    Scheduler *x = &s->scheduler[e.warp % SCHEDULERS];
    if (e.scoreboard != NONE && w->age == e.age && !--w->pending[e.scoreboard])
        w->waits &= ~(1u << e.scoreboard);
    write_back(x, s->now);
    x->write_due += e.registers * s->m->write_slots;
    if (x->write_due >= 1) {
        const u32 lost = x->write_due;
        x->write_due -= lost;
        x->free = GREATER(x->free, s->now) + lost;
        s->r->lost[LOST_WRITE] += lost;
        x->why = LOST_WRITE;
    }
    LOWER(x->sleep, s->now);
}

static u64 rounded_up(double clocks) { return (u64)clocks + (clocks > (double)(u64)clocks); }

static u64 next_time(const Sm *s) {
    u64 next = ~0ull;
    for (u32 k = 0; k < SCHEDULERS; k++) {
        const Scheduler *x = &s->scheduler[k];
        const u64 at = GREATER(x->sleep, x->free);
        if (at <= s->now + 1) return s->now + 1;
        LOWER(next, at);
        for (u32 n = 0; n < QUEUES; n++) {
            const Queue *queue = &x->queue[n];
            if (!queue->count) continue;
            u64 from = s->lsu_free > (double)s->now + 1 ? (u64)s->lsu_free : s->now + 1;
            RAISE(from, queue->at[queue->head].from);
            LOWER(next, from);
        }
    }
    for (u32 k = 0; k < s->arrival_count; k++) LOWER(next, rounded_up(s->arrivals[k].at));
    if (s->events) LOWER(next, rounded_up(s->heap[0].at));
    return next > s->now ? next : s->now + 1;
}

/* True if all blocks have ended, and the load/store unit has served all of their requests. */
static int all_done(const Sm *s) {
    if (s->waiting || s->next_job < s->job_count) return 0;
    for (u32 k = 0; k < s->m->slots; k++)
        if (s->blocks[k].alive) return 0;
    return 1;
}

/* Clocks of the run: until the last block has ended and its stores have left. */
static void finish(Sm *s) {
    u64 end = 0;
    for (u32 k = 0; k < s->next_job; k++) RAISE(end, s->ends[k]);
    RAISE(end, rounded_up(s->lsu_free));
    RAISE(end, rounded_up(s->write_free));
    for (u32 k = 0; k < SCHEDULERS; k++) { /* they have counted the clocks before `done` */
        const Scheduler *x = &s->scheduler[k];
        const u64 done = GREATER(x->free, s->now);
        s->r->lost[done > end ? x->why : LOST_EMPTY] += end - done;
    }
    s->r->clocks = end;
}

/* Simulate one clock. */
static void clock_of_all(Sm *s) {
    while (s->events && s->heap[0].at <= s->now) happen(s, pop(s));
    while (serve(s)) {} /* several, if they take no clocks */
    if (s->arrival_count) let_arrive(s);
    for (u32 k = 0; k < SCHEDULERS; k++) schedule(s, &s->scheduler[k]);
}

/* Advance to the next clock in which something can happen. False if there is none. */
static int advance(Sm *s) {
    const u64 next = next_time(s);
    if (next == ~0ull && !all_done(s) && help_one(s)) return 1;
    if (next == ~0ull) { /* no warp can continue */
        s->r->unfinished = all_done(s) ? 0 : 2;
        s->now += !s->r->unfinished; /* this clock is counted */
        return 0;
    }
    for (u32 k = 0; k < SCHEDULERS && next > s->now + 1; k++) {
        const Scheduler *x = &s->scheduler[k];
        const u64 from = s->now + 1;
        if (x->sleep > from && next > from) s->r->lost[x->why] += (x->sleep < next ? x->sleep : next) - from;
    }
    s->now = next;
    return 1;
}

/* True unless a run is done, takes too long, or may end at its mark. */
static int goes_on(Sm *s) {
    if (s->failed || all_done(s)) return 0;
    s->r->unfinished = s->now > s->m->most_clocks;
    if (s->r->issued >= s->m->mark && !s->r->marked) s->r->marked = s->now;
    return !s->r->unfinished && !(s->r->marked && s->m->stops_at_mark);
}

static void run_fewer(Sm *s);

/* Start new blocks in the slots of blocks that have ended. */
static void start_others(Sm *s) {
    for (u32 k = 0; k < s->ended_count; k++) {
        if (s->next_job == s->fewer) run_fewer(s);
        start_block(s, s->ended[k], s->now + s->m->block_start);
    }
    s->ended_count = 0;
}

static void run(Sm *s) {
    int can = 1;
    while (can && goes_on(s)) {
        clock_of_all(s);
        start_others(s);
        can = advance(s);
    }
    if (s->r->unfinished || (s->r->marked && s->m->stops_at_mark)) s->r->clocks = s->now;
    else finish(s);
    if (!s->r->marked) s->r->marked = s->r->clocks;
}

/* The arrays that a run changes, without its results, and how long each is. */
#define ARRAYS(OF, s)                                                                                       \
    OF(warps, (s)->m->slots * (s)->warps_per_block) OF(blocks, (s)->m->slots) OF(ended, (s)->m->slots)      \
    OF(cache, (s)->m->l1_lines + 1) OF(bucket, (s)->buckets) OF(fetched, (s)->code_length)                      \
    OF(used, (s)->code_length) OF(heap, (s)->event_room) OF(arrivals, (s)->arrival_room)

static void *copied(Sm *s, const void *of, size_t bytes) {
    void *copy = malloc(bytes);
    if (!copy) s->failed = 1;
    else memcpy(copy, of, bytes);
    return copy;
}

static void set_free(Sm *s) {
#define FREE(array, count) free(s->array);
    ARRAYS(FREE, s)
#undef FREE
}

/* From here on the first jobs run without further blocks, on a copy of the state. */
static void run_fewer(Sm *s) {
    Sm x = *s;
    s->fewer = x.fewer = x.ended_count = 0;
    x.job_count = x.next_job;
#define COPY(array, count) x.array = copied(&x, s->array, (count) * sizeof *s->array);
    ARRAYS(COPY, s)
#undef COPY
    x.r++;
    *x.r = *s->r;
    x.starts += s->job_count;
    x.ends += s->job_count;
    memcpy(x.starts, s->starts, x.job_count * sizeof *x.starts);
    memcpy(x.ends, s->ends, x.job_count * sizeof *x.ends);
    if (!x.failed && advance(&x)) run(&x);
    s->failed |= x.failed;
    set_free(&x);
}

/* Run `job_count` blocks, and also only the first `fewer` of them (at least as many as slots, but not
 * all; 0: none). `result`, and `starts` and `ends` of each block in clocks, are those of all blocks,
 * then of the first ones. Nonzero: out of memory. */
EXPORT u32 sm_run(const Machine *machine, const Instruction *code, u32 length, const Step *steps,
                  const u64 *lines, const Stream *streams, const Job *jobs, u32 job_count, u32 fewer,
                  Result *result, u64 *starts, u64 *ends) {
    u32 most = 1;
    for (u32 k = 0; k < job_count; k++) RAISE(most, jobs[k].warps);
    const u32 all = machine->slots * most;
    Sm s = {.m = machine, .code = code, .steps = steps, .lines = lines, .streams = streams,
            .jobs = jobs, .job_count = job_count, .fewer = fewer, .warps_per_block = most, .r = result,
            .starts = starts, .ends = ends};
    memset(result, 0, sizeof *result);
    for (s.buckets = 1; s.buckets < 2 * machine->l1_lines;) s.buckets *= 2;
    s.code_length = length / CODE_LINE + 1;
    s.event_room = s.arrival_room = 64;
    s.operands = calloc(length, sizeof *s.operands);
    s.reads = calloc(ROWS, sizeof *s.reads);
    u32 *of_scheduler = calloc(SCHEDULERS * (all / SCHEDULERS + 1), sizeof *of_scheduler);
    s.failed = !s.operands || !s.reads || !of_scheduler;
#define ZEROS(array, count) s.failed |= !(s.array = calloc(count, sizeof *s.array));
    ARRAYS(ZEROS, &s)
#undef ZEROS
    if (!s.failed) {
        for (u32 k = 0; k < length; k++) plan_operands(&s, k);
        memset(s.bucket, 0xff, s.buckets * sizeof *s.bucket);
        s.cache[machine->l1_lines].newer = s.cache[machine->l1_lines].older = machine->l1_lines;
        for (u32 k = 0; k < SCHEDULERS; k++) {
            Scheduler *x = &s.scheduler[k];
            x->warps = of_scheduler + k * (all / SCHEDULERS + 1);
            for (u32 w = k; w < all; w += SCHEDULERS) x->warps[x->count++] = w;
            x->last = -1;
            x->why = LOST_EMPTY;
            x->kept_warp = ~0u;
        }
        for (u32 k = 0; k < machine->slots; k++) start_block(&s, k, 0);
        run(&s);
    }
    set_free(&s);
    free(of_scheduler); free(s.operands); free(s.reads);
    return s.failed;
}

EXPORT const char built_from[] = BUILT_FROM;
