"""Entries of `explain` on remedies, and on opcodes of machine code."""

from __future__ import annotations

from analysis.records.entry import EntryGroup, WordEntry

_TRIED = (
    "The edit is made in memory and compiled, and the executed blocks must write the same values."
)
_REMEDIES = "page: Remedies; terminal: the table below the first lines; `--apply N` writes the file"
_MACHINE_CODE = "page: Machine code and counters; Python: `execution.instructions`"


def _remedy(
    word: str, one: str, two: str, formula: str, guide: str, *also: str, figure: str = ""
) -> WordEntry:
    return WordEntry(
        word=word,
        groups=(EntryGroup.REMEDY,),
        sentences=(one, two, _TRIED),
        formula=formula,
        where=_REMEDIES,
        guide=guide,
        figure=figure,
        also=also,
    )


REMEDIES = (
    _remedy(
        "padding",
        "Each row of a shared array gets one more element.",
        "Elements of a column then lie in different banks.",
        "tile[TILE][TILE] -> tile[TILE][TILE + 1]",
        "your_kernel.md#A bank conflict",
        "pad",
        figure="row 0 begins in bank 0, row 1 in bank 1, row 2 in bank 2, ...",
    ),
    _remedy(
        "swizzling",
        "The column of each access to a shared array is combined with its row by XOR.",
        "It spreads a column over all banks and needs no more shared memory.",
        "tile[row][column] -> tile[row][column ^ row]",
        "your_kernel.md#Remedies",
        "swizzle",
        "xor",
    ),
    _remedy(
        "exchanged thread axes",
        "The index computations exchange threadIdx.x and threadIdx.y.",
        "Neighbouring lanes then access neighbouring addresses.",
        "threadIdx.x <-> threadIdx.y",
        "guide/01-coalescing.md#The idea",
        "transposed threads",
    ),
    _remedy(
        "FP32 literals",
        "Literals without a suffix get an f, so that no value becomes FP64.",
        "Results may differ by rounding: `--apply` then needs `--rounding`.",
        "0.5 -> 0.5f",
        "your_kernel.md#Remedies",
        "f suffix",
        "literals",
    ),
    _remedy(
        "fast math",
        "FP32 functions, division and square roots take fewer instructions: -ftz=true treats "
        "subnormal numbers as 0, -use_fast_math also approximates.",
        "Results may differ by rounding: `--apply` then needs `--rounding`.",
        "simulate my.cu --option -ftz=true",
        "your_kernel.md#Remedies",
        "use_fast_math",
        "ftz",
    ),
    _remedy(
        "more blocks",
        "The work of a grid-stride loop is divided among more blocks.",
        "It helps if SMs have no block, or if the last wave is partial.",
        "--grid 8 -> --grid 1056",
        "your_kernel.md#Remedies",
        "grid size",
    ),
    _remedy(
        "vectorized access",
        "Four neighbouring accesses of 4 bytes become one of 16.",
        "It needs aligned addresses and takes fewer instructions and requests.",
        "float -> float4",
        "guide/08-vectorizing.md#The idea",
        "vectorize",
        "float4",
    ),
    _remedy(
        "__restrict__",
        "Pointers promise that their arrays do not overlap.",
        "The compiler may then load earlier, and through the read-only path.",
        "float *a -> float *__restrict__ a",
        "your_kernel.md#Remedies",
        "restrict",
        "aliasing",
    ),
    _remedy(
        "__launch_bounds__",
        "The kernel states its largest block, and how many blocks an SM should hold.",
        "The compiler then takes fewer registers for more blocks, or more registers to avoid "
        "spills.",
        "__global__ void k -> __global__ void __launch_bounds__(256, 4) k",
        "guide/05-tile-size.md#Compiled",
        "launch bounds",
    ),
    _remedy(
        "block size",
        "The block gets another number of threads, and the grid as many blocks as needed.",
        "It changes how many blocks fit on an SM and how evenly they fill the device.",
        "--block 512 -> --block 256",
        "guide/05-tile-size.md#The idea",
        "resize blocks",
    ),
)


def _opcode(word: str, one: str, two: str, three: str, guide: str, *also: str) -> WordEntry:
    return WordEntry(
        word=word,
        groups=(EntryGroup.OPCODE,),
        sentences=(one, two, three),
        formula="warps that issue it, each with up to 32 active threads",
        where=_MACHINE_CODE,
        guide=guide,
        also=also,
    )


OPCODES = (
    _opcode(
        "FFMA",
        "FFMA computes a * b + c in FP32, with one rounding.",
        "It counts as 2 FLOP per thread, FADD and FMUL as 1.",
        "The FP32 pipe executes it.",
        "guide/02-flop-per-byte.md#The kernel",
        "FADD",
        "FMUL",
        "fused multiply-add",
    ),
    _opcode(
        "DFMA",
        "DFMA computes a * b + c in FP64.",
        "It counts as 2 FLOP per thread, DADD and DMUL as 1.",
        "The FP64 pipe executes it, on consumer devices at 1/32 or 1/64 of the rate of FP32.",
        "timing.md#Units",
        "DADD",
        "DMUL",
    ),
    _opcode(
        "HFMA2",
        "HFMA2 computes a * b + c for two half-precision values.",
        "It counts as 4 FLOP per thread, HADD2 and HMUL2 as 2.",
        "The compiler also uses it to load constants, which counts as no FLOP.",
        "timing.md#Units",
        "HADD2",
        "HMUL2",
    ),
    _opcode(
        "IMAD",
        "IMAD computes a * b + c in integers.",
        "Index computations need it, and the compiler also moves registers with it.",
        "It shares the FP32 pipes.",
        "timing.md#Units",
        "IADD3",
        "LEA",
    ),
    _opcode(
        "MUFU",
        "MUFU computes a special function: reciprocal, square root, exp2, log2, sin or cos.",
        "Division and expf consist of it and of a few FP32 instructions.",
        "The special-function pipe executes it.",
        "timing.md#Units",
    ),
    _opcode(
        "LDG",
        "LDG and STG load from and store to global memory.",
        "A request takes as many sectors of 32 bytes as the addresses of its lanes touch.",
        "The suffix is the width of a lane in bits: LDG.E.128 loads a float4.",
        "guide/01-coalescing.md#The idea",
        "STG",
    ),
    _opcode(
        "LDS",
        "LDS and STS load from and store to shared memory.",
        "A request takes as many wavefronts as its lanes need words of one bank.",
        "LDS.128 loads 16 bytes per lane in at least 4 wavefronts.",
        "guide/08-vectorizing.md#The idea",
        "STS",
    ),
    _opcode(
        "LDL",
        "LDL and STL load from and store to local memory.",
        "They are spills, or accesses to an array of a thread by a variable index.",
        "A fast kernel has none in its loops.",
        "guide/05-tile-size.md#Compiled",
        "STL",
    ),
    _opcode(
        "LDC",
        "LDC loads from constant memory by an index in a register.",
        "Each different word that its lanes read takes a pass of its own.",
        "Parameters of the kernel at a constant index need no instruction.",
        "timing.md#Loads of constants",
    ),
    _opcode(
        "LDGSTS",
        "LDGSTS copies from global to shared memory without a register.",
        "The copy is asynchronous: the thread goes on, and waits for it later.",
        "Its sectors count as those of global loads.",
        "guide/09-beyond-cublas.md#Waiting: rungs 10 and 11",
        "cp.async",
    ),
    _opcode(
        "ATOMG",
        "ATOMG and RED read, change and write global memory in one step, at L2.",
        "RED returns nothing, so that no thread waits for it.",
        "Operations on one address wait for each other.",
        "timing.md#Atomic operations at L2",
        "RED",
        "ATOM",
        "ATOMS",
    ),
    _opcode(
        "SHFL",
        "SHFL gives each lane of a warp a value of another lane.",
        "It needs no shared memory and no barrier.",
        "It takes as long as a load of shared memory.",
        "timing.md#Load/store unit",
        "__shfl_sync",
    ),
    _opcode(
        "BAR",
        "BAR.SYNC is __syncthreads(): a warp waits there for its block.",
        "Writes to shared memory before it are visible after it.",
        "The time that warps wait is the cause 'waiting at barriers'.",
        "guide/03-tiling.md#Its phases",
        "BAR.SYNC",
    ),
)

ENTRIES = (*REMEDIES, *OPCODES)
