"""What the sanitizer costs: a checked simulation over a plain one, both on one core, in one run.

    python -m benchmarks.sanitizer_cost

Prints a line per rung, and fails where one costs more than three times the plain simulation. Each
time is the median of some, one of each in turn, so that a busy machine hits both alike.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np

from analysis.problem import Gemm
from kernels.ladder import LADDER
from kernels.variant import Variant
from toolkit.machine_code.compile import compile_cubin
from toolkit.rungs.arguments import rung_arguments
from toolkit.sass.check import run_watched, watched
from toolkit.sass.machine import run_blocks
from toolkit.sass.translate import bind, translate

MOST = 3.0
ROUNDS = 31
SHAPE = Gemm(m=256, n=256, k=256)
ONE_BLOCK = Gemm(m=32, n=32, k=4096)
BLOCKS = 8
ARCHITECTURES = ("sm_86", "sm_90")


def main() -> int:
    """Compare the two for every rung and architecture."""
    worst = 0.0
    for arch in ARCHITECTURES:
        for variant in (v for v in LADDER if v.runs_on(int(arch.removeprefix("sm_")))):
            plain_s, checked_s = seconds(variant, arch)
            ratio = checked_s / plain_s
            worst = max(worst, ratio)
            times = f"{1e3 * plain_s:8.2f} ms plain {1e3 * checked_s:8.2f} ms checked"
            print(f"{arch:6} {variant.name:20} {times} {ratio:5.2f}x")
    print(f"at most {worst:.2f}x, allowed {MOST:.0f}x")
    return int(not worst <= MOST)


def seconds(variant: Variant, arch: str) -> tuple[float, float]:
    """The median time of a plain and of a checked simulation of some blocks, taken in turns."""
    parameters = variant.defaults
    shape = variant.executed(ONE_BLOCK if variant.rung == 1 else SHAPE)
    cubin = compile_cubin(
        variant.source,
        name=variant.file,
        kernel=variant.entry,
        arch=arch,
        defines=variant.macros(parameters),
    )
    translated, geometry = translate(cubin), variant.geometry(parameters, shape)
    together = bool(variant.workspace(parameters, shape))
    blocks = range(geometry.blocks if together else min(BLOCKS, geometry.blocks))
    a = np.ones((shape.m, shape.k), np.float32)
    b = np.ones((shape.k, shape.n), np.float32)
    c = np.zeros((shape.m, shape.n), np.float32)
    arguments = rung_arguments(variant, parameters, shape, (a, b, c))
    bound, _ = bind(translated, geometry, arguments)
    checked = watched(translated, bound)
    times: tuple[list[float], list[float]] = ([], [])
    runs: tuple[Callable[[], object], ...] = (
        lambda: run_blocks(bound, [blocks], workers=1),
        lambda: run_watched(checked, blocks),
    )
    for _ in range(ROUNDS):
        for which, run in enumerate(runs):
            started = process_time()
            run()
            times[which].append(process_time() - started)
    return median(times[0]), median(times[1])


if __name__ == "__main__":
    sys.exit(main())
