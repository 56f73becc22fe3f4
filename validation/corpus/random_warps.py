"""Random kernels whose lanes come apart and work together again, with one meaning in C.

Between the statements of `random_programs` stand shuffles, votes and matches of the lanes that are
there, shared memory with barriers, atomic operations whose order does not matter, early exits, and
calls through pointers that differ between lanes. The host runs each thread as a context of its own
(ucontext), which waits where lanes or threads meet.

    python -m validation.corpus.random_warps 7                 # the kernel of seed 7, on stdout
    python -m validation.corpus.random_warps 0 2000            # compare the kernels of 2,000 seeds

The second command compiles each kernel for one of the architectures, in turn, simulates it, and
compares all that it leaves in memory with the host's results, bit by bit.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import ToolkitError
from toolkit.execution.simulate import simulate
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from toolkit.native import compile_library, compiler
from validation.corpus.inventory import ARCHITECTURES
from validation.corpus.random_programs import ON_A_GPU, ON_THE_HOST, Writer

BLOCKS, BLOCK, TALLIES = 2, 45, 6  # a full warp and a part of one in each block
AT_A_TIME = 8  # kernels that are compiled together
TYPES = ("int", "unsigned", "unsigned long long")
# no contraction to a multiply-add, and integers that wrap, as on the GPU
FLAGS = ("-O1", "-w", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing")

COMMON = f"""
#define BLOCK {BLOCK}u
typedef unsigned (*Step)(int, unsigned, const int *, int *);
FUNCTION unsigned lane_from(int how, unsigned lane, unsigned by, unsigned width) {{
    switch (how) {{
    case 0: return by & 31;
    case 1: return (lane & (width - 1)) >= by ? lane - by : lane;
    case 2: return (lane & (width - 1)) + by < width ? lane + by : lane;
    default: return lane ^ by;
    }}
}}
"""
OF_A_GPU = f"""{COMMON}
#define NOINLINE __noinline__
#define SHARED __shared__ unsigned shared[BLOCK];
#define LANE (threadIdx.x & 31u)
__device__ void meet() {{ __syncthreads(); }}
__device__ unsigned ballot(unsigned mask, int x) {{ return __ballot_sync(mask, x); }}
__device__ unsigned alike(unsigned mask, unsigned x) {{ return __match_any_sync(mask, x); }}
template <typename T>
__device__ T exchange(int how, unsigned mask, T x, unsigned by, unsigned width) {{
    const unsigned from = lane_from(how, LANE, by, width);
    const T got = how == 0   ? __shfl_sync(mask, x, by)
                  : how == 1 ? __shfl_up_sync(mask, x, by, width)
                  : how == 2 ? __shfl_down_sync(mask, x, by, width)
                             : __shfl_xor_sync(mask, x, by);
    return mask >> from & 1 ? got : x;
}}
__device__ void add_to(unsigned *p, unsigned x) {{ atomicAdd(p, x); }}
__device__ void raise_to(unsigned *p, unsigned x) {{ atomicMax(p, x); }}
__device__ void flip(unsigned *p, unsigned x) {{ atomicXor(p, x); }}
"""
OF_THE_HOST = f"""#include <ucontext.h>
{COMMON}
#define NOINLINE
#define SHARED
#define LANE ((unsigned)me & 31u)
enum {{ READY, AMONG_LANES, AT_BARRIER, GONE }};
typedef struct {{
    ucontext_t context;
    int state;
    unsigned mask;
    unsigned long long given, got[32];
    char stack[1 << 15];
}} Thread;
static Thread threads[BLOCK];
static ucontext_t scheduler;
static unsigned shared[BLOCK], *out_, *tally_;
static const int *in_;
static unsigned (*program_)(int, const int *, unsigned *);
static int me, first;
static void wait_as(int state) {{
    threads[me].state = state;
    swapcontext(&threads[me].context, &scheduler);
}}
static void meet(void) {{ wait_as(AT_BARRIER); }}
static const unsigned long long *of_lanes(unsigned mask, unsigned long long x) {{
    threads[me].mask = mask;
    threads[me].given = x;
    wait_as(AMONG_LANES);
    return threads[me].got;
}}
static unsigned ballot(unsigned mask, int x) {{
    const unsigned long long *all = of_lanes(mask, x != 0);
    unsigned found = 0;
    for (int k = 0; k < 32; k++) found |= (unsigned)(mask >> k & 1 && all[k]) << k;
    return found;
}}
static unsigned alike(unsigned mask, unsigned x) {{
    const unsigned long long *all = of_lanes(mask, x);
    unsigned found = 0;
    for (int k = 0; k < 32; k++) found |= (unsigned)(mask >> k & 1 && all[k] == x) << k;
    return found;
}}
static unsigned long long exchange(int how, unsigned mask, unsigned long long x, unsigned by,
                                   unsigned width) {{
    const unsigned from = lane_from(how, LANE, by, width);
    const unsigned long long *all = of_lanes(mask, x);
    return mask >> from & 1 ? all[from] : x;
}}
static void add_to(unsigned *p, unsigned x) {{ *p += x; }}
static void raise_to(unsigned *p, unsigned x) {{ *p = *p > x ? *p : x; }}
static void flip(unsigned *p, unsigned x) {{ *p ^= x; }}
static void thread(void) {{
    out_[first + me] = program_(first + me, in_, tally_);
    wait_as(GONE);
}}
static int lanes_are_there(int k) {{
    for (int l = 0; l < 32; l++) {{
        const Thread *other = &threads[(k & ~31) + l];
        if (!(threads[k].mask >> l & 1)) continue;
        if (other->state != AMONG_LANES || other->mask != threads[k].mask) return 0;
    }}
    return 1;
}}
static void exchange_of(int k) {{
    const unsigned mask = threads[k].mask;
    Thread *warp = &threads[k & ~31];
    for (int l = 0; l < 32; l++)
        for (int other = 0; mask >> l & 1 && other < 32; other++)
            if (mask >> other & 1) warp[l].got[other] = warp[other].given;
    for (int l = 0; l < 32; l++) if (mask >> l & 1) warp[l].state = READY;
}}
/* Whether all threads came to their end. */
static int run(unsigned (*program)(int, const int *, unsigned *), unsigned *out, const int *in,
               unsigned *tally) {{
    program_ = program, out_ = out, in_ = in, tally_ = tally;
    for (first = 0; first < {BLOCKS * BLOCK}; first += BLOCK) {{
        for (int k = 0; k < BLOCK; k++) {{
            getcontext(&threads[k].context);
            threads[k].context.uc_stack.ss_sp = threads[k].stack;
            threads[k].context.uc_stack.ss_size = sizeof threads[k].stack;
            threads[k].state = READY;
            makecontext(&threads[k].context, thread, 0);
        }}
        for (int ran = 1, gone = 0; gone < BLOCK; ran = 0) {{
            int at_barrier = 0;
            for (int k = gone = 0; k < BLOCK; k++) {{
                if (threads[k].state == AMONG_LANES && lanes_are_there(k)) exchange_of(k);
                while (threads[k].state == READY) {{
                    ran = 1;
                    me = k;
                    swapcontext(&scheduler, &threads[k].context);
                }}
                at_barrier += threads[k].state == AT_BARRIER;
                gone += threads[k].state == GONE;
            }}
            if (at_barrier && at_barrier + gone == BLOCK)
                for (int k = ran = 0; k < BLOCK; k++)
                    if (threads[k].state == AT_BARRIER) ran = 1, threads[k].state = READY;
            if (!ran && gone < BLOCK) return 0;
        }}
    }}
    return 1;
}}
"""


def on_the_host(seeds: Sequence[int]) -> str:
    runs = (
        f"int run_{seed}(unsigned *out, const int *in, unsigned *tally)"
        f" {{ return run(program_{seed}, out, in, tally); }}\n"
        for seed in seeds
    )
    return ON_THE_HOST + OF_THE_HOST + "".join(map(program, seeds)) + "".join(runs)


def on_a_gpu(seeds: Sequence[int]) -> str:
    runs = (
        f'extern "C" __global__ void run_{seed}(unsigned *out, const int *in, unsigned *tally) {{\n'
        "    const int t = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"    out[t] = program_{seed}(t, in, tally);\n}}\n"
        for seed in seeds
    )
    return ON_A_GPU + OF_A_GPU + "".join(map(program, seeds)) + "".join(runs)


def program(seed: int) -> str:
    """Functions and `unsigned program_SEED(int t, const int *in, unsigned *tally)`."""
    writer = WarpWriter(
        random=random.Random(seed), seed=seed, types=TYPES, expressions=1, intrinsics=0.05
    )
    steps = [line for number in range(3) for line in writer.step(number)]
    head = f"FUNCTION unsigned program_{seed}(int t, const int *in, unsigned *tally) {{"
    begin = [
        "SHARED",
        "const unsigned tid = t % BLOCK;",
        "unsigned mask = tid / 32 == BLOCK / 32 ? (1u << BLOCK % 32) - 1 : 0xffffffffu;",
        "unsigned total = in[t]; int array[8] = {in[0], in[1], t, 3, 2, 1, 7, in[t]};",
        "shared[tid] = total;",
    ]
    writer.returns = False
    body = [line for _ in range(7) for line in writer.together(2, at_top=True)]
    writer.returns = True
    body += writer.loop(2, in_loop=False)
    end = ["for (int k = 0; k < 8; k++) MIX(array[k]);", "return total;"]
    lines = (*begin, *body, *(f"MIX({writer.as_integer(*v)});" for v in writer.variables), *end)
    return "\n".join([*steps, head, *(f"    {line}" for line in lines), "}\n"])


@dataclass
class WarpWriter(Writer):
    """Writes statements in which lanes work together: all those of `mask` come to each."""

    seed: int = 0

    def step(self, number: int) -> Iterator[str]:
        """A function that stays one."""
        yield (
            f"FUNCTION NOINLINE unsigned step{number}_{self.seed}"
            "(int t, unsigned total, const int *in, int *array) {"
        )
        yield from self.block(2, in_loop=False)
        if number:  # a call in a call
            yield f"    if ({self.condition()})"
            yield f"        total += step{number - 1}_{self.seed}(t, total ^ 5, in, array);"
        yield "    return total;"
        yield "}"

    def together(self, depth: int, *, at_top: bool = False) -> Iterator[str]:
        writers = [self.exchange, self.vote, self.alone, self.pointer, self.count]
        if depth:
            writers += [self.part, self.rounds]
        if at_top:
            writers += [self.neighbours, self.histogram, self.exit]
        yield from self.random.choice(writers)(depth)

    def exchange(self, depth: int) -> Iterator[str]:
        how, by = self.random.randrange(4), self.random.randrange(1, 32)
        width = self.random.choice((8, 16, 32))
        name, kind = self.random.choice([*self.variables, ("total", "unsigned")])
        if kind not in ("int", "unsigned", "long long", "unsigned long long"):
            name, kind = "total", "unsigned"
        by %= width if how in (1, 2) else 32
        yield f"{name} = ({kind})exchange({how}, mask, {name}, {by}u, {width}u);"

    def vote(self, depth: int) -> Iterator[str]:
        if self.random.random() < 0.5:
            yield f"total ^= ballot(mask, {self.condition()});"
        else:
            yield f"total += alike(mask, {self.value('unsigned')} & 3u);"

    def alone(self, depth: int) -> Iterator[str]:
        yield from self.statement(depth, in_loop=False)

    def pointer(self, depth: int) -> Iterator[str]:
        """Call of one function in some lanes, and of another in the rest, through a pointer."""
        one, other = (f"step{self.random.randrange(3)}_{self.seed}" for _ in range(2))
        yield f"{{ const Step step = {self.condition()} ? {one} : {other};"
        yield "  total = step(t, total, in, array); }"

    def count(self, depth: int) -> Iterator[str]:
        how, place = self.random.choice((("add_to", 0), ("raise_to", 2), ("flip", 4)))
        yield f"if ({self.condition()}) {how}(&tally[{place} + (total & 1)], total);"

    def part(self, depth: int) -> Iterator[str]:
        """A branch whose lanes know which lanes take it."""
        yield f"{{ const int here = {self.condition()};"
        yield "  const unsigned before = mask, there = ballot(mask, here);"
        yield "  if (here) { const unsigned mask = there;"
        yield from self.several(depth)
        yield "  } else { const unsigned mask = before & ~there;"
        yield from self.several(depth)
        yield "  } }"

    def rounds(self, depth: int) -> Iterator[str]:
        """A loop that lanes leave one after the other."""
        self.names += 1
        turns = self.random.choice(("t & 3", "in[t] & 3", "(int)(total & 3) + 1", "2"))
        yield f"{{ unsigned there = mask; for (int i{self.names} = 0, n = {turns};; ) {{"
        yield f"    const int here = i{self.names}++ < n;"
        yield "    there = ballot(there, here);"
        yield "    if (!here) break;"
        yield "    const unsigned mask = there;"
        yield from self.several(depth)
        yield "} }"

    def several(self, depth: int) -> Iterator[str]:
        known = len(self.variables)
        for _ in range(self.random.randint(1, 3)):
            yield from (f"    {line}" for line in self.together(depth - 1))
        del self.variables[known:]

    def neighbours(self, depth: int) -> Iterator[str]:
        by = self.random.randrange(1, BLOCK)
        yield "meet(); shared[tid] = total; meet();"
        yield f"total += shared[(tid + {by}) % BLOCK];"

    def histogram(self, depth: int) -> Iterator[str]:
        how = self.random.choice(("add_to", "raise_to", "flip"))
        yield f"meet(); if ({self.condition()})"
        yield f"    {how}(&shared[total % 7], {self.value('unsigned')});"
        yield "meet(); total ^= shared[tid % 7];"

    def condition(self) -> str:
        if self.random.random() < 0.5:
            return super().condition()
        return self.random.choice(("(total & 3)", "(in[t] & 1)", "(t % 3 == 1)", "(total % 5 < 2)"))

    def exit(self, depth: int) -> Iterator[str]:
        yield f"{{ const int gone = {self.condition()} && (total & 8);"
        yield "  const unsigned stay = ballot(mask, !gone);"
        yield "  if (gone) return total;"
        yield "  mask = stay; }"


def inputs(seed: int) -> NDArray[np.int32]:
    threads = BLOCKS * BLOCK
    numbers = np.random.default_rng(seed).integers(-(2**31), 2**31, threads).astype(np.int32)
    numbers[::5] = np.arange(len(numbers[::5]))
    return numbers


def of_the_host(seeds: Sequence[int], folder: Path) -> dict[int, list[NDArray[np.uint32]]]:
    """By seed: what the threads return, and the tallies."""
    source, library = folder / f"{seeds[0]}.c", folder / f"{seeds[0]}.so"
    source.write_text(on_the_host(seeds), encoding="utf-8")
    command = compiler()
    assert command
    compile_library(command, [source], library, FLAGS)
    functions, found = ctypes.CDLL(str(library)), {}
    for seed in seeds:
        given = inputs(seed)
        out, tally = np.zeros(len(given), np.uint32), np.zeros(TALLIES, np.uint32)
        pointers = (x.ctypes.data_as(ctypes.c_void_p) for x in (out, given, tally))
        assert functions[f"run_{seed}"](*pointers), (
            f"seed {seed}: threads of the host wait for ever"
        )
        found[seed] = [out, tally]
    return found


def of_the_simulator(code: Kernel, seed: int) -> list[NDArray[Any]]:
    given = inputs(seed)
    arguments = [np.zeros(len(given), np.uint32), given, np.zeros(TALLIES, np.uint32)]
    outputs = simulate(
        Kernel.from_image(code.image, f"run_{seed}"),
        grid=BLOCKS,
        block=BLOCK,
        arguments=arguments,
        max_instructions=10**7,
        predict=False,
    ).outputs
    return [outputs[0], outputs[2]]


def mismatches(seeds: Sequence[int], arch: str, folder: Path) -> list[str]:
    """Mismatches by seed; the kernels are compiled together."""
    expected = of_the_host(seeds, folder)
    code = compile_cubin(
        on_a_gpu(seeds),
        name="kernel.cu",
        kernel=f"run_{seeds[0]}",
        arch=arch,
        options=("--fmad=false",),
    )
    found = []
    for seed in seeds:
        try:
            pairs = zip(of_the_simulator(code, seed), expected[seed], strict=True)
            is_right = all(np.array_equal(ours, theirs) for ours, theirs in pairs)
            complaint = "" if is_right else "other results than the host's"
        except ToolkitError as error:
            complaint = str(error)
        if complaint:
            found.append(f"seed {seed}, {arch}: {complaint}")
    return found


def main(first: int, count: int) -> int:
    """Compare `count` kernels. Exit code 1 if one differs."""
    wrong = 0
    with TemporaryDirectory() as folder:
        for k in range(0, count, AT_A_TIME):
            seeds = range(first + k, first + min(k + AT_A_TIME, count))
            arch = ARCHITECTURES[k // AT_A_TIME % len(ARCHITECTURES)]
            complaints = mismatches(seeds, arch, Path(folder))
            wrong += len(complaints)
            if complaints:
                print(*complaints, sep="\n", flush=True)
    print(f"{count} kernels on {', '.join(ARCHITECTURES)}: {wrong} differ from the host's results")
    return bool(wrong)


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    if len(numbers) == 1:
        print(on_a_gpu(numbers))
    else:
        sys.exit(main(*numbers))
