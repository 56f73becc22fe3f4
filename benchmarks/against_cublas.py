"""The ladder against cuBLAS, interleaved in one run, by two protocols. Needs a GPU.

    python -m benchmarks.against_cublas [--variant best ...] [--shape 4096 ...] [--output FILE]

Every competitor is checked on random tiles of C against float64, then timed in turns with cuBLAS:
back to back in a CUDA graph, where L2 is warm, and one launch at a time, L2 flushed before each.
The ratio is the median of cuBLAS's time over the competitor's, with its 95 % interval: above 1, the
competitor is faster. `--keep` adds the fastest of each shape, back to back, to the
user's tuned configurations, of which `best` takes its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

from analysis.comparison.statistics import ratio_interval
from analysis.errors import ToolkitError
from analysis.problem import Gemm, parse_shape
from analysis.records.profile import Interval
from benchmarks.gpu_operands import GpuOperands
from benchmarks.graphs import GraphTimer
from kernels.ladder import BEST
from kernels.selection import Selection, parse_selection
from kernels.variant import Variant
from toolkit import __version__
from toolkit.gpu.context import POISON, Gpu
from toolkit.gpu.cublas import Cublas
from toolkit.gpu.environment import commit
from toolkit.gpu.sampling import Sampling, interleave
from toolkit.rungs.best import best_for
from toolkit.rungs.matrices import Workload
from toolkit.store.tuned import Tuned, keep

SQUARES = (512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
OTHERS = (
    "1000x1000x1000",
    "4097x4095x4093",
    "8192x128x4096",
    "128x8192x4096",
    "64x64x65536",
    "16384x16384x256",
)
GRAPH_S = 4e-3  # of one graph: long against the two events around it
MOST_REPEATS = 50
CHECKED_TILES, TILE = 6, 128
SEED = 20261121

Launch = Callable[[], None]
Cell = dict[str, Any]


def checked_tiles(problem: Gemm, random: np.random.Generator) -> list[tuple[range, range]]:
    """Corners and random places of C."""

    def part(extent: int) -> range:
        first = int(random.integers(0, max(1, extent - TILE + 1)))
        return range(first, min(first + TILE, extent))

    corner = (
        range(max(0, problem.m - TILE), problem.m),
        range(max(0, problem.n - TILE), problem.n),
    )
    return [corner, *((part(problem.m), part(problem.n)) for _ in range(CHECKED_TILES))]


class Contest:
    """All competitors at one shape."""

    def __init__(self, gpu: Gpu, graphs: GraphTimer, cublas: Cublas, problem: Gemm) -> None:
        self.gpu, self.graphs, self.problem = gpu, graphs, problem
        self.workload = Workload(problem, SEED)
        self.operands = GpuOperands(gpu, self.workload)
        tiles = checked_tiles(problem, np.random.default_rng(SEED))
        self.references = self.workload.tile_references(tiles)
        here = self.operands.at(problem)
        cublas.use_stream(graphs.stream)
        self.peer = cublas.sgemm(problem, here.a, here.b, here.c)

    def launch(self, selection: Selection) -> Launch:
        """The launch of a rung on the graphs' stream; raises ToolkitError where it is wrong."""
        variant = selection.variant
        assert isinstance(variant, Variant)
        shape = variant.executed(self.problem)
        kernel = self.gpu.load(
            variant.source,
            variant.entry,
            name=variant.file,
            defines=variant.macros(selection.parameters),
        )
        made = kernel.prepared(
            variant.geometry(selection.parameters, shape),
            self.operands.arguments(variant, selection.parameters, shape),
            self.graphs.stream,
        )
        self._check(made, shape, selection.label)
        return made

    def _check(self, launch: Launch, shape: Gemm, label: str) -> None:
        c = self.operands.at(shape).c
        for _ in range(2):  # the second finds what the first left in its workspace
            self.gpu.fill(c, POISON, shape.c_elements)
            self.gpu.synchronize()
            launch()
            self.graphs.synchronize()
        result = np.empty((shape.m, shape.n), np.float32)
        self.gpu.download(c, into=result)
        inside = np.ascontiguousarray(result[: self.problem.m, : self.problem.n])
        if np.isnan(inside).any():
            raise ToolkitError(f"{label} at {self.problem}: some of C was not written")
        for reference in self.references.values():
            if not (check := reference.check(inside)).passed:
                raise ToolkitError(
                    f"{label} at {self.problem}: the error of C[{check.worst_row}]"
                    f"[{check.worst_column}] is {check.worst_ratio} times its bound"
                )

    def back_to_back(self, launches: dict[str, Launch]) -> dict[str, Callable[[], float]]:
        expected_s = self.problem.flop / 40e12 + 5e-6
        repeats = max(1, min(MOST_REPEATS, int(GRAPH_S / expected_s)))
        return {label: self.graphs.timer(one, repeats) for label, one in launches.items()}

    def one_by_one(self, launches: dict[str, Launch]) -> dict[str, Callable[[], float]]:
        return {
            label: partial(self._flushed, self.graphs.timer(one, 1))
            for label, one in launches.items()
        }

    def _flushed(self, timer: Callable[[], float]) -> float:
        self.gpu.timer.fill_l2()
        self.gpu.synchronize()
        return timer()


def ratios(timers: dict[str, Callable[[], float]], seconds: float) -> Iterator[tuple[str, Cell]]:
    """Per competitor the ratio to cuBLAS with its interval, and its median time."""
    for timer in timers.values():
        for _ in range(3):
            timer()
    sampling = Sampling(precision=0.002, time_limit_s=seconds, max_samples=200)
    series, interrupted = interleave(timers, sampling, peer="cublas")
    for label, one in series.items():
        if label == "cublas" or one.error:
            if one.error:
                print(f"{label}: {one.error}", file=sys.stderr)
            continue
        median, interval = ratio_interval(one.peer_s, one.samples_s[: len(one.peer_s)])
        yield (
            label,
            {
                "ratio": median,
                "interval": None if interval is None else [interval.low, interval.high],
                "time_s": float(np.median(one.samples_s)),
                "cublas_s": float(np.median(one.peer_s)),
                "samples": len(one.samples_s),
            },
        )
    if interrupted:
        raise KeyboardInterrupt


def contest(
    gpu: Gpu,
    graphs: GraphTimer,
    cublas: Cublas,
    problem: Gemm,
    names: Sequence[str],
    seconds: float,
) -> dict[str, Cell]:
    """Per competitor its protocols' cells."""
    here = Contest(gpu, graphs, cublas, problem)
    launches: dict[str, Launch] = {"cublas": here.peer}
    cells: dict[str, Cell] = {}
    for name in names:
        selection = parse_selection(name)
        if selection.variant is BEST:
            selection = best_for(gpu.device, problem)
        variant = selection.variant
        assert isinstance(variant, Variant)
        if name != BEST.name and variant.executed(problem) != problem:
            continue  # the padding would not be timed
        try:
            launches[name] = here.launch(selection)
        except ToolkitError as error:
            print(f"{name} at {problem}: {error}", file=sys.stderr)
            continue
        cells[name] = {
            "variant": variant.name,
            "parameters": dict(selection.parameters),
            "configuration": variant.label(selection.parameters),
        }
    for protocol, timers in (
        ("back to back", here.back_to_back(launches)),
        ("flushed", here.one_by_one(launches)),
    ):
        for label, cell in ratios(timers, seconds):
            cells[label][protocol] = cell
    return cells


def shown(problem: Gemm, cells: dict[str, Cell]) -> Iterator[str]:
    for label, cell in sorted(cells.items(), key=lambda one: -one[1]["back to back"]["ratio"]):
        graph, flushed = cell["back to back"], cell["flushed"]
        low, high = graph["interval"] or (graph["ratio"],) * 2
        yield (
            f"{problem!s:>24} {label:>24} {graph['ratio']:.3f} [{low:.3f}, {high:.3f}] "
            f"{problem.flop / graph['time_s'] / 1e12:5.1f} of "
            f"{problem.flop / graph['cublas_s'] / 1e12:5.1f} TFLOP/s; "
            f"flushed {flushed['ratio']:.3f}  {cell['configuration']}"
        )


def summary(results: dict[str, dict[str, Cell]], shapes: Sequence[Gemm], title: str) -> str:
    """The geometric mean of the fastest of each shape, and the smallest, per protocol."""
    found = [results[str(shape)] for shape in shapes if results.get(str(shape))]
    if not found:
        return f"{title}: nothing"
    parts = []
    for protocol in ("back to back", "flushed"):
        best = [
            max(c[protocol]["ratio"] for c in cells.values() if protocol in c) for cells in found
        ]
        mean = exp(sum(map(log, best)) / len(best))
        parts.append(f"{protocol} {mean:.3f} (least {min(best):.3f})")
    return f"{title}, {len(found)} shapes, geometric mean of the best: {'; '.join(parts)}"


def winners(results: dict[str, dict[str, Cell]], gpu: Gpu) -> Iterator[Tuned]:
    for shape, cells in results.items():
        label, cell = max(cells.items(), key=lambda one: one[1]["back to back"]["ratio"])
        graph = cell["back to back"]
        tied = [
            other["parameters"]
            for name, other in cells.items()
            if name != label
            and other["variant"] == cell["variant"]
            and (other["back to back"]["interval"] or [0, 0])[1] >= (graph["interval"] or [9])[0]
        ]
        yield Tuned(
            device=gpu.device.name,
            architecture=gpu.device.sm_arch,
            shape=shape,
            variant=cell["variant"],
            parameters=cell["parameters"],
            time_s=graph["time_s"],
            ratio_to_cublas=graph["ratio"],
            interval=None
            if graph["interval"] is None
            else Interval(low=graph["interval"][0], high=graph["interval"][1]),
            tied_with=tuple(tied),
            date=datetime.now(UTC).date().isoformat(),
            toolkit_version=__version__,
            commit=commit(),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variant", action="append", help="a rung with its parameters; repeatable")
    parser.add_argument("--shape", action="append", help="'4096' or 'MxNxK'; repeatable")
    parser.add_argument("--seconds", type=float, default=1.0, help="per competitor and protocol")
    parser.add_argument("--output", type=Path, help="all figures as JSON")
    parser.add_argument("--keep", action="store_true", help="keep what won, for `best`")
    chosen = parser.parse_args()
    shapes = [parse_shape(text) for text in chosen.shape or (*map(str, SQUARES), *OTHERS)]
    results: dict[str, dict[str, Cell]] = {}
    with Gpu() as gpu, GraphTimer() as graphs, Cublas() as cublas:
        print(f"{gpu.device.name}, cuBLAS {cublas.version}")
        for problem in shapes:
            cells = contest(
                gpu, graphs, cublas, problem, chosen.variant or [BEST.name], chosen.seconds
            )
            results[str(problem)] = cells
            for line in shown(problem, cells):
                print(line, flush=True)
        about = {"device": gpu.device.name, "cublas": cublas.version, "results": results}
        if chosen.keep:
            print(f"kept in {keep(winners(results, gpu))}")
    for title, group in (("squares", SQUARES), ("others", OTHERS)):
        print(summary(results, [parse_shape(str(one)) for one in group], title))
    if chosen.output:
        chosen.output.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
