"""Entries of `explain` on predicted times: causes and limiters."""

from __future__ import annotations

from analysis.records.entry import EntryGroup, WordEntry
from analysis.timing.predicted import Effect, GapCause, Resource

_PRICE = "time of the launch - time of a replay without it, after the larger causes were removed"
_AT_ROOF = "work of the busiest SM / rate of the unit, once all that can be avoided is removed"
_PARTS = "page: Parts of the time; terminal: second line, and the bars below the remedies"
_UNITS = "page: How near each unit is to its limit; terminal: `busy`"
_BOTH = f"{_PARTS}; as a limiter: {_UNITS}"

_COALESCED = """\
lane      0    1    2    3  ...  31
address   0    4    8   12  ... 124   4 sectors of 32 bytes
address   0  128  256  384  ...       32 sectors"""
_BANKS = """\
tile[32][32]: tile[lane][0] is word 32 * lane: bank 0 for all, 32 wavefronts
tile[32][33]: tile[lane][0] is word 33 * lane: bank = lane,     1 wavefront"""


def _cause(
    word: str,
    one: str,
    two: str,
    three: str,
    guide: str,
    *,
    also: tuple[str, ...] = (),
    figure: str = "",
    more: tuple[EntryGroup, ...] = (),
    formula: str = _PRICE,
    where: str = "",
) -> WordEntry:
    return WordEntry(
        word=word,
        groups=(EntryGroup.CAUSE, *more),
        sentences=(one, two, three),
        formula=formula,
        where=where or (_BOTH if EntryGroup.LIMITER in more else _PARTS),
        guide=guide,
        figure=figure,
        also=also,
    )


_LIMITS = (EntryGroup.LIMITER,)
_STALLS_TOO = (EntryGroup.STALL,)


def _roof(word: str, one: str, two: str, three: str, guide: str, *also: str) -> WordEntry:
    """A roof is a cause, and the unit a limiter."""
    return _cause(word, one, two, three, guide, also=also, more=_LIMITS, formula=_AT_ROOF)


CAUSES = (
    _cause(
        Effect.IDLE_SMS,
        "SMs have nothing to do for a part of the time.",
        "The grid has fewer blocks than SMs, its last wave is partial, or blocks take different "
        "times.",
        "More blocks of equal size remove it.",
        "guide/05-tile-size.md#The idea",
        also=("tail effect", "partial wave", "waves", "tail wave"),
    ),
    _cause(
        Effect.CONFLICTS,
        "Lanes of one warp access different words of the same bank of shared memory.",
        "Shared memory has 32 banks of 4 bytes, and a bank serves one word per wavefront, so that "
        "the access is repeated.",
        "Padding each row by one element, or exchanging columns, spreads the lanes over all banks.",
        "guide/07-coarsening-2d.md#A bank conflict",
        also=("bank conflicts", "bank conflict", "bank", "shared bank conflicts"),
        figure=_BANKS,
    ),
    _cause(
        Effect.UNCOALESCED,
        "Requests to global memory take more 32-byte sectors than their bytes fill.",
        "Neighbouring lanes access addresses that are not neighbours, so that each sector carries "
        "few useful bytes through L1, L2 and DRAM.",
        "Let neighbouring threads access neighbouring addresses, through shared memory if need be.",
        "guide/01-coalescing.md#The idea",
        also=("coalescing", "coalesced", "uncoalesced", "uncoalesced global accesses"),
        figure=_COALESCED,
    ),
    _cause(
        Effect.LOCAL_MEMORY,
        "Threads load and store variables that did not fit into registers, or arrays that are "
        "indexed by variables.",
        "Local memory is a part of global memory: its accesses pass L1, L2 and DRAM.",
        "Fewer live variables, constant indices or more registers per thread remove it.",
        "guide/05-tile-size.md#Compiled",
        also=("spills", "register spills", "spilling"),
    ),
    _cause(
        Effect.ATOMICS,
        "Atomic operations on global memory wait for each other at L2.",
        "An address takes one operation at a time, and so does each slice of L2.",
        "Sum in registers, within a warp or in shared memory first, and add once per block.",
        "timing.md#Atomic operations at L2",
        also=("atomics", "atomicAdd"),
        more=_LIMITS,
    ),
    _cause(
        Effect.STORES,
        "Stores of many warps to the same sector of global memory wait for each other at L2.",
        "A slice of L2 takes one store at a time, however many lanes of the warp make it.",
        "Store once per block, or read the value first and store only what is new.",
        "timing.md#Stores to one address",
        also=("same-address stores", "stores to a flag"),
        more=_LIMITS,
    ),
    _cause(
        Effect.OTHER_BLOCKS,
        "Blocks wait until other blocks have written a flag, a sum or a lock.",
        "A value takes over 400 clocks from block to block, and over 800 more with two fences.",
        "More work between two waits, fewer blocks in the chain, or a second launch remove it.",
        "timing.md#What waits for others, in time",
        also=("look-back", "grid barrier", "spin lock"),
        more=_LIMITS,
    ),
    _cause(
        Effect.CONSTANTS,
        "Warps load from constant memory by an index in a register: their lanes different words, "
        "or many warps one word each of a table of more than 512 bytes.",
        "The constant cache serves one word per pass, so that 32 words take 32 passes. Of words "
        "that all lanes share, a scheduler keeps few lines, which its warps evict.",
        "Put the table into shared memory. If lanes read different words, let them use one index.",
        "timing.md#Loads of constants",
        also=(Resource.CONSTANTS, "constant memory", "__constant__"),
        more=_LIMITS,
    ),
    _cause(
        Effect.ONE_THREAD,
        "One thread of a warp executes instructions alone, such as an elected thread that computes "
        "addresses, starts copies or adds up a sum.",
        "An instruction of a warp costs the same for one lane as for 32, and others may wait for "
        "its result.",
        "Let the threads of the warp share the work, or do it before others wait for it.",
        "guide/04-guards.md#Counts",
        also=("single thread", "elected thread", "one thread", "producer thread"),
    ),
    _cause(
        Effect.DIVERGENCE,
        "Branches split warps, and each side is executed while the lanes of the other wait.",
        "An instruction of a warp costs the same for one lane as for 32.",
        "Let all lanes of a warp take the same branch, or order the data so that they do.",
        "guide/04-guards.md#Counts",
        also=("divergence", "branch divergence"),
    ),
    _cause(
        Effect.BARRIERS,
        "Warps wait at __syncthreads() for the slowest warp of their block.",
        "If an SM has few blocks, no other warp issues meanwhile.",
        "Fewer barriers, smaller blocks, or loads that start before the barrier remove it.",
        "guide/03-tiling.md#Its phases",
        also=("__syncthreads", "synchronization", "barriers"),
    ),
    _cause(
        Effect.COPIES,
        "Warps wait for a tile that is still on its way to shared memory, at an mbarrier or for a "
        "group of copies.",
        "Tensor cores empty a tile faster than L2 or DRAM fills the next one.",
        "More stages, larger tiles or copies that are issued earlier help.",
        "timing.md#Tensor cores",
        also=("mbarrier", "cp.async", "waiting for copies"),
    ),
    _cause(
        Effect.PRODUCTS,
        "Warps wait at wgmma.wait_group for products, or with a full queue of them.",
        "A result arrives 43 clocks after its product was computed. An SM queues seven products.",
        "Leave a group in flight (wait_group 1), issue longer groups, or let two warpgroups "
        "alternate.",
        "timing.md#Tensor cores",
        also=("wgmma", "waiting for WGMMA", "WGMMA", "waiting for products"),
    ),
    _cause(
        Effect.DRAM_LATENCY,
        "Warps wait for data from DRAM while its bandwidth is not used up.",
        "A load from DRAM takes hundreds of clocks, and too few bytes are in flight to hide them "
        "(Little's law).",
        "More warps on an SM, more loads per thread before their first use, or wider loads help.",
        "guide/06-coarsening-1d.md#What the ceiling misses",
        also=("memory latency",),
    ),
    _cause(
        Effect.L2_LATENCY,
        "Warps wait for data that L2 holds.",
        "A load that misses L1 takes more than a hundred clocks even if L2 has the line.",
        "More warps, more independent loads per thread, or a tile in shared memory help.",
        "guide/03-tiling.md#The idea",
    ),
    _cause(
        Effect.L1_LATENCY,
        "Warps wait for data that L1 holds.",
        "A load that hits L1 takes tens of clocks until a dependent instruction can issue.",
        "More independent instructions between a load and its use, or more warps, help.",
        "guide/06-coarsening-1d.md#The idea",
    ),
    _cause(
        Effect.SHARED_LATENCY,
        "Warps wait for data from shared memory.",
        "A load without bank conflicts takes tens of clocks until a dependent instruction can "
        "issue.",
        "Load the operands of the next step early, or let each thread compute more per load.",
        "guide/09-beyond-cublas.md#Waiting: rungs 10 and 11",
    ),
    _cause(
        Effect.DEPENDENCES,
        "Instructions wait for results of earlier arithmetic of the same warp.",
        "An FP32 instruction takes four clocks, a special function more, and too few other warps "
        "issue meanwhile.",
        "Several independent sums per thread, or more warps on an SM, hide it.",
        "guide/06-coarsening-1d.md#The idea",
        also=("instruction-level parallelism", "ILP", "waiting for instructions"),
    ),
    _cause(
        Effect.REGISTER_BANKS,
        "Instructions wait because their operands lie in one bank of the register file.",
        "A bank delivers one register per clock.",
        "The compiler assigns registers: other tile sizes or another order of the sums may help.",
        "guide/09-beyond-cublas.md#Registers: rungs 12 to 14",
        also=("register bank conflicts", "register banks", "stall_dispatch"),
        more=_STALLS_TOO,
    ),
    _cause(
        Effect.FETCH,
        "Warps wait for machine code that the instruction cache does not hold.",
        "Straight code is fetched ahead, but a loop that exceeds the cache is fetched again in "
        "each iteration.",
        "Less unrolling keeps a loop within the cache.",
        "timing.md#Issue",
        also=("instruction cache", "no instruction", "stall_no_instruction"),
        more=_STALLS_TOO,
    ),
    _cause(
        Effect.BLOCK_START,
        "An SM starts blocks one after the other, each with its registers and shared memory.",
        "Short blocks spend a visible part of their time on that.",
        "Fewer blocks with more work each remove it.",
        "timing.md#Blocks of an SM",
    ),
    _roof(
        Effect.DRAM_BANDWIDTH,
        "The bytes that the launch reads and writes at DRAM take this time at its full rate.",
        "It is a roof: only fewer bytes make the launch faster.",
        "Read each byte once, keep intermediate results on the chip, or use a smaller type.",
        "guide/02-flop-per-byte.md#The idea",
        Resource.DRAM,
        "memory bandwidth",
    ),
    _roof(
        Effect.L2_BANDWIDTH,
        "The bytes that SMs exchange with L2 take this time at the full rate of L2.",
        "It is a roof for accesses that miss L1, whether DRAM is busy or not.",
        "Tiles in shared memory or registers let each byte leave L2 fewer times.",
        "guide/02-flop-per-byte.md#Which bytes?",
        Resource.L2,
    ),
    _roof(
        Effect.SHARED_WAVEFRONTS,
        "The wavefronts of shared memory take one clock of an SM each.",
        "Without bank conflicts it is a roof: 128 bytes per clock and SM.",
        "Wider accesses, or more results per loaded value, need fewer wavefronts.",
        "guide/08-vectorizing.md#The idea",
        Resource.SHARED_MEMORY,
        "wavefront",
        "shared wavefronts",
    ),
    _roof(
        Effect.L1_WAVEFRONTS,
        "Requests to global and local memory occupy the tags and the data of L1 for this time.",
        "Sectors in many different lines take more clocks than sectors of one line.",
        "Coalesced and wider accesses need fewer of them.",
        "guide/01-coalescing.md#Where the clocks go",
        Resource.L1,
        "shared and L1 wavefronts",
        "wavefronts",
    ),
    _roof(
        Effect.FP32_PIPE,
        "FP32 arithmetic, and products and copies of integers (IMAD), take this time on the FP32 "
        "pipes.",
        "It is the roof of a kernel that computes: 128 lanes per clock and SM on most devices.",
        "Only fewer operations, or tensor cores, make the launch faster.",
        "guide/02-flop-per-byte.md#The idea",
        Resource.FP32,
        "FMA pipe",
    ),
    _roof(
        Effect.FP64_PIPE,
        "FP64 arithmetic takes this time on the FP64 pipes.",
        "On consumer devices FP64 has 1/32 or 1/64 of the rate of FP32.",
        "If FP64 is unintended, use literals with the suffix f and functions such as sqrtf.",
        "timing.md#Units",
        Resource.DOUBLE,
        "double precision",
    ),
    _roof(
        Effect.FP16_PIPE,
        "Half-precision arithmetic takes this time on its pipes.",
        "An instruction computes two values per lane.",
        "Tensor cores are faster for matrix products.",
        "timing.md#Units",
        Resource.HALF,
    ),
    _roof(
        Effect.INTEGER_PIPE,
        "Integer multiplications take this time on the pipes that they share with FP32.",
        "Index computations are the usual source.",
        "Increment pointers, or use powers of two as strides, to need fewer.",
        "timing.md#Units",
        Resource.PRODUCTS,
        "IMAD pipe",
    ),
    _roof(
        Effect.LOGIC_PIPE,
        "Integer additions, comparisons, shifts and logic take this time on the ALU pipes.",
        "They issue 16 lanes per clock and scheduler.",
        "Fewer guards and index computations inside loops reduce it.",
        "timing.md#Units",
        Resource.LOGIC,
        "ALU pipe",
    ),
    _roof(
        Effect.SPECIAL_PIPE,
        "Operations such as exp2, sin and conversions take this time on the XU pipe.",
        "It has a quarter or less of the rate of FP32.",
        "Fewer calls, or one reciprocal instead of many divisions, help.",
        "timing.md#Units",
        Resource.SPECIAL,
        "XU pipe",
        "MUFU pipe",
    ),
    _roof(
        Effect.TENSOR_PIPE,
        "Matrix products take this time on the tensor cores.",
        "Their full rate takes wgmma with 128 columns or more; mma.sync reaches two thirds of it.",
        "Use wgmma instead of mma.sync, wider tiles or a narrower type.",
        "timing.md#Tensor cores",
        "tensor pipe",
        "tensor core",
    ),
    _roof(
        Effect.OTHER_INSTRUCTIONS,
        "Issue slots go to instructions other than FP32 arithmetic, such as loads and branches, "
        "and to registers that loads write.",
        "A scheduler issues one instruction per clock, whatever it is.",
        "More results per thread, wider loads or unrolled loops reduce them per result.",
        "guide/06-coarsening-1d.md#Counts",
        Resource.ISSUE,
        "other instructions",
        "issue slots",
        "instruction issue",
        "non-FP32 instructions",
        "non-FP32",
    ),
    _cause(
        Effect.LAUNCH,
        "An empty kernel takes this time between two CUDA events.",
        "It is a part of every launch and does not depend on the kernel.",
        "Fewer launches with more work each, or CUDA graphs, save it.",
        "timing.md#The whole launch",
        formula="time of an empty kernel, measured",
        also=("launch overhead", "launch cost"),
    ),
    _cause(
        Effect.REMAINDER,
        "Time that is left above the roof once everything that can be removed is removed.",
        "Loads, arithmetic and stores of a block do not overlap perfectly.",
        "It is not a cause that can be removed, and it is never named first.",
        "timing.md#Costs",
        formula="time without all removable causes - time at the roof",
        also=("no overlap",),
    ),
    _cause(
        "other",
        "The smallest parts of a time, drawn as one bar.",
        "Parts of less than 1 %, and those after the six largest, are added up.",
        "Each of them is in the list of causes: page, or Python's `causes`.",
        "timing.md#Costs",
        formula="sum of the parts that have no bar of their own",
    ),
)


def _step(word: str, one: str, two: str, three: str, *also: str) -> WordEntry:
    """A step from a predicted to a measured time."""
    return _cause(
        word,
        one,
        two,
        three,
        "trust.md#Error seen, and when not to trust it",
        also=also,
        formula="measured time - predicted time, in two steps",
        where="page and terminal of `profile` and `run`: the last of the bars",
    )


STEPS = (
    _step(
        GapCause.HELD_CLOCK,
        "The clock that the device held during the measurement differs from the predicted one.",
        "It is a step from the predicted to the measured time.",
        "The state of the GPU in the profile shows the clock.",
    ),
    _step(
        GapCause.REMAINDER,
        "What is left between the predicted and the measured time.",
        "The model does not explain it.",
        "Its size is the error of the prediction.",
        "unexplained",
    ),
)

LIMITERS = (
    WordEntry(
        word=Resource.LATENCY,
        groups=(EntryGroup.LIMITER,),
        sentences=(
            "No unit is busy for most of the time: warps wait for results.",
            "By Little's law the throughput is the work in flight over its latency.",
            "The causes say what is waited for; more work in flight makes the launch faster.",
        ),
        formula="shortest replayed block * blocks of an SM one after the other",
        where=_UNITS,
        guide="guide/06-coarsening-1d.md#What the ceiling misses",
        also=("latency bound",),
    ),
    WordEntry(
        word="occupancy",
        groups=(EntryGroup.LIMITER,),
        sentences=(
            "The share of an SM's warp slots that resident warps can fill.",
            "Registers, shared memory, threads and block slots limit the blocks on an SM.",
            "A low occupancy is no fault by itself: it costs time where latency is exposed.",
        ),
        formula="warps that fit on an SM / warps that an SM has room for",
        where="page: Launch and occupancy; terminal: `occupancy`",
        guide="guide/05-tile-size.md#The limits of a block",
        also=("theoretical occupancy",),
    ),
)


ENTRIES = (*CAUSES, *STEPS, *LIMITERS)
