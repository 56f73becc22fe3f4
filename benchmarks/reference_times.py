"""Times of the ladder, of cuBLAS and of other kernels, as a reference for predictions.

    python -m benchmarks.reference_times --output reference_times.json      # needs a GPU
    python -m benchmarks.reference_times --only trial --output trial.json   # of the trial alone

Each launch is checked against NumPy once, then timed by events with L2 flushed before every
sample, and with L2 as the launch before left it. The machine code is NVRTC's, so that
`toolkit.simulate` compiles the very same without a GPU; a hash of it stands in the file. The
launches are those of `validation/timing/timed_launches.py`, `kernels.LADDER` and cuBLAS; where
asked, those of `validation/timing/trial_launches.py` instead, of which half are nvcc's. What fails
is recorded with its error, and the file is written anew after every launch or shape.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from posixpath import normpath
from statistics import median
from typing import Any

import numpy as np

from analysis.comparison.statistics import median_interval
from analysis.errors import ToolkitError, UnavailableError, first_line
from analysis.geometry import Geometry
from analysis.problem import Gemm, parse_shape
from benchmarks.gpu_operands import GpuOperands
from kernels import LADDER
from kernels.selection import Selection
from kernels.variant import Variant
from toolkit.gpu.context import POISON, Gpu, LoadedKernel
from toolkit.gpu.cublas import Cublas
from toolkit.gpu.environment import GpuMonitor, environment
from toolkit.gpu.sampling import Sampling, Series, interleave
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from toolkit.microbenchmarks.bench import Bench
from toolkit.rungs.matrices import Workload
from toolkit.store.user_files import write_atomically
from validation import recordings
from validation.corpus.case import Case
from validation.timing.timed_launches import LAUNCHES, OPTIONS, SEED, rng
from validation.timing.trial_launches import TRIALS, Trial

SHAPES = (
    "512", "1024", "1536", "2048", "4096", "8192", "1000x333x65", "4097x4095x4093", "127x129x31",
    "3000", "2048x64x4096", "32", "32x32x4096",
)  # fmt: skip
ALL_PARAMETERS = ("1024", "2048")  # shapes that every legal set of parameters is timed at
CHECKED_ROWS = 64  # of C: the float64 product of all would take longer than the timing
L2_STATES = {"flushed": True, "warm": False}
LADDER_SEED = 0
LIMIT_S = 235.0  # what is left then is recorded as not timed
SAMPLING = Sampling(precision=0.003, time_limit_s=0.2, max_samples=80)
# Three samples of what takes seconds: the limit is stretched ten times for the fewest.
SLOW = Sampling(precision=0.003, time_limit_s=1.0, max_samples=80)
SLOW_FLOP = 2.0**38
FEWEST = 3
FEWEST_ON_TRIAL = 15
FLUSH = "memset of twice the bytes of L2"
WARM_UP_S = 0.05

Timed = Callable[[], None]
Cell = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A launch that was checked, and what is to be written about it."""

    launch: Timed
    about: Cell


class Session:
    """One GPU, the file, and the time that is left."""

    def __init__(self, gpu: Gpu, output: Path, limit_s: float) -> None:
        self.gpu = gpu
        self.monitor = GpuMonitor(gpu.pci_bus_id)
        self._output = output
        self._deadline = time.monotonic() + limit_s
        self._started = time.monotonic()
        self.cells: list[Cell] = []
        self._about: Cell = {
            "schema_version": 1,
            "device": gpu.device.key,
            "architecture": gpu.device.sm_arch,
            "recorded_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "environment": asdict(environment(self.monitor)),
            "ladder_seed": LADDER_SEED,
            "launches_seed": SEED,
            "options": list(OPTIONS),
            "flush": FLUSH,
        }

    @property
    def over(self) -> bool:
        return time.monotonic() > self._deadline

    def note_clock(self, when: str) -> None:
        """Record the SM clock that is held while one SM is busy, by the device's own timers."""
        try:
            self._about[f"measured_sm_clock_hz_{when}"] = Bench(self.gpu).clock_hz()
        except Exception as error:  # NVML's clocks stand beside every cell
            self._about[f"measured_sm_clock_hz_{when}"] = first_line(error)

    def write(self) -> None:
        self._about["seconds"] = round(time.monotonic() - self._started, 1)
        content = recordings.text_of({**self._about, "cells": self.cells})
        write_atomically(self._output, content.encode())

    def fail(self, about: Mapping[str, Any], reason: object) -> None:
        """Record that a launch has no times."""
        why = (
            f"{type(reason).__name__}: {first_line(reason)}"
            if isinstance(reason, Exception)
            else str(reason)
        )
        self.cells.append({**about, "error": why})

    def kernel(self, source: str, **how: Any) -> tuple[LoadedKernel, Cell]:
        """A kernel by NVRTC, by nvcc where that is missing; with what is written about its code."""
        try:
            cubin = compile_cubin(source, arch=self.gpu.device.sm_arch, **how)
            kernel = self.gpu.load_image(cubin.image, cubin.symbol)
        except UnavailableError:
            kernel = self.gpu.load(source, how.pop("kernel"), **how)
            cubin = kernel.cubin
        return kernel, _code(cubin)

    def _warm_up(self, ready: Sequence[Ready]) -> None:
        """Launch what was added last, cuBLAS where it is there, until the clocks are up."""
        started = time.monotonic()
        while ready and time.monotonic() - started < WARM_UP_S:
            self.gpu.timer.time(ready[-1].launch, flush_l2=False)

    def time(self, ready: Sequence[Ready], sampling: Sampling, *, fewest: int = FEWEST) -> None:
        """Time launches in turn, in both states of L2, and record a cell for each."""
        for state, flush in L2_STATES.items():
            if self.over:
                for one in ready:
                    self.fail({**one.about, "l2": state}, "not timed: the time is over")
                continue
            timers = {
                str(i): partial(self.gpu.timer.time, one.launch, flush_l2=flush)
                for i, one in enumerate(ready)
            }
            self._warm_up(ready)
            before = self.monitor.state()
            found, _ = interleave(timers, sampling, fewest=fewest, usable=lambda: self.gpu.alive)
            after = self.monitor.state()
            for i, one in enumerate(ready):
                clocks = {
                    "sm_clock_hz_before": before.sm_clock_hz,
                    "sm_clock_hz_after": after.sm_clock_hz,
                    "throttle_reasons": list(after.throttle_reasons),
                }
                self.cells.append({**one.about, "l2": state, **_times(found[str(i)]), **clocks})


def _code(cubin: Kernel) -> Cell:
    resources = cubin.resources
    return {
        "compiler": cubin.compiler,
        "cubin_sha256": sha256(cubin.image).hexdigest(),
        "code_sha256": sha256(cubin.code).hexdigest(),
        "registers_per_thread": resources.registers_per_thread,
        "static_shared_bytes": resources.static_shared_bytes,
    }


def _times(series: Series) -> Cell:
    samples = series.samples_s
    if not samples:
        return {"error": series.error or "no sample was taken"}
    interval = median_interval(samples)
    return {
        "median_s": median(samples),
        "interval_s": [interval.low, interval.high] if interval else None,
        "least_s": min(samples),
        "greatest_s": max(samples),
        "samples": len(samples),
        "samples_s": samples,
        "stopped_by": series.stopped_by,
        **({"error": series.error} if series.error else {}),
    }


def _geometry(geometry: Geometry) -> Cell:
    return {
        "grid": list(geometry.grid),
        "block": list(geometry.block),
        "dynamic_shared_bytes": geometry.dynamic_shared_bytes,
    }


# The ladder and cuBLAS.


def ladder(session: Session, cublas: Cublas | None) -> Iterator[str]:
    """Time all shapes, each with all competitors in turn; yields what was done."""
    for text in SHAPES:
        problem = parse_shape(text)
        started = time.monotonic()
        try:
            if session.over:
                session.fail({"kind": "ladder", "shape": str(problem)}, "the time is over")
            else:
                _shape(session, problem, _selections(problem, text in ALL_PARAMETERS), cublas)
        except Exception as error:  # the other shapes go on
            session.fail({"kind": "ladder", "shape": str(problem)}, error)
        session.write()
        yield f"ladder at {problem}: {time.monotonic() - started:.1f} s"


def _selections(problem: Gemm, all_parameters: bool) -> list[Selection]:
    """The rungs that take the shape, with their defaults or all legal parameters."""
    return [
        Selection(variant=variant, parameters=parameters)
        for variant in LADDER
        if not variant.max_extent or max(problem.m, problem.n) <= variant.max_extent
        for parameters in (variant.parameter_sets() if all_parameters else [variant.defaults])
    ]


def _shape(
    session: Session, problem: Gemm, selections: Sequence[Selection], cublas: Cublas | None
) -> None:
    workload = Workload(problem, LADDER_SEED)
    reference = workload.reference(most_rows=CHECKED_ROWS)
    operands = GpuOperands(session.gpu, workload)
    ready = []

    def checked(shape: Gemm, launch: Timed, about: Cell) -> None:
        """Keep the launch if the product that it leaves in a poisoned C is right."""
        here = operands.at(shape)
        with session.gpu.launch_errors(about["label"]):
            session.gpu.fill(here.c, POISON, shape.c_elements)
            launch()
            session.gpu.synchronize()
        result = np.empty((shape.m, shape.n), np.float32)
        session.gpu.download(here.c, into=result)
        check = reference.check(result[: problem.m, : problem.n])
        if check.passed:
            ready.append(Ready(launch=launch, about=about))
        else:
            session.fail(about, "the product is wrong")

    for selection in selections:
        about: Cell = {"kind": "ladder", "label": selection.label, "shape": str(problem)}
        try:
            checked(*_rung(session, selection, problem, operands, about))
        except ToolkitError as error:
            session.fail(about, error)
    if cublas is not None:
        about = {"kind": "cublas", "label": "cublas", "shape": str(problem)}
        try:
            here = operands.at(problem)
            checked(problem, cublas.sgemm(problem, here.a, here.b, here.c), about)
        except ToolkitError as error:
            session.fail(about, error)
    flop = 2.0 * problem.m * problem.n * problem.k
    session.time(ready, SLOW if flop > SLOW_FLOP else SAMPLING)


def _rung(
    session: Session, selection: Selection, problem: Gemm, operands: GpuOperands, about: Cell
) -> tuple[Gemm, Timed, Cell]:
    """The executed shape, the launch, and what is written about it."""
    variant = selection.variant
    assert isinstance(variant, Variant)
    shape = variant.executed(problem)
    kernel, code = session.kernel(
        variant.source,
        name=variant.file,
        kernel=variant.entry,
        defines=variant.macros(selection.parameters),
        options=OPTIONS,
    )
    geometry = variant.geometry(selection.parameters, shape)
    launch = kernel.prepared(geometry, operands.arguments(variant, selection.parameters, shape))
    return (
        shape,
        launch,
        {
            **about,
            "variant": variant.name,
            "parameters": dict(selection.parameters),
            "executed_shape": str(shape),
            **_geometry(geometry),
            **code,
        },
    )


# Other kernels.


def others(session: Session) -> Iterator[str]:
    """Time the launches of validation/timing, one after the other."""
    for case in LAUNCHES:
        yield _timed(session, case, _about(case), partial(_by_nvrtc, session, case))


def on_trial(session: Session) -> Iterator[str]:
    """Time the launches on trial, one after the other."""
    for trial in TRIALS:
        for case in trial.cases:
            about = {**_about(case), "kind": "trial", "part": trial.part}
            about["compiled_by"] = trial.compiler
            code = partial(_of_trial, session, trial)
            yield _timed(session, case, about, code, fewest=FEWEST_ON_TRIAL)


def _by_nvrtc(session: Session, case: Case) -> tuple[LoadedKernel, Cell]:
    return session.kernel(
        case.source, name=Path(case.file).name, kernel=case.kernel, options=OPTIONS
    )


def _of_trial(session: Session, trial: Trial) -> tuple[LoadedKernel, Cell]:
    cubin = trial.code(session.gpu.device.sm_arch)
    return session.gpu.load_image(cubin.image, cubin.symbol), _code(cubin)


def _timed(
    session: Session,
    case: Case,
    about: Cell,
    code: Callable[[], tuple[LoadedKernel, Cell]],
    *,
    fewest: int = FEWEST,
) -> str:
    started = time.monotonic()
    try:
        if session.over:
            session.fail(about, "not timed: the time is over")
        else:
            kernel, facts = code()
            launch, _buffers = _checked(session.gpu, case, kernel)
            session.time([Ready(launch=launch, about={**about, **facts})], SAMPLING, fewest=fewest)
    except Exception as error:  # the others go on
        session.fail(about, error)
    session.write()
    return f"{case.name}: {time.monotonic() - started:.1f} s"


def _about(case: Case) -> Cell:
    return {
        "kind": "kernel",
        "label": case.name,
        "kernel": case.kernel,
        "file": normpath(f"validation/corpus/{case.file}"),
        **_geometry(case.geometry),
    }


def _checked(gpu: Gpu, case: Case, kernel: LoadedKernel) -> tuple[Timed, list[Any]]:
    """The launch of a case, and what keeps its buffers; AssertionError where it goes wrong."""
    arguments = case.make(rng())
    buffers = [gpu.upload(a) if isinstance(a, np.ndarray) else a for a in arguments]
    launch = kernel.prepared(case.geometry, buffers)
    with gpu.launch_errors(case.name):
        launch()
        gpu.synchronize()
    outputs = []
    for buffer, argument in zip(buffers, arguments, strict=True):
        if isinstance(argument, np.ndarray):
            outputs.append(np.empty_like(argument, order="C"))
            gpu.download(buffer, into=outputs[-1])
    case.check(outputs, arguments)
    return launch, buffers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("reference_times.json"))
    parser.add_argument("--only", choices=("ladder", "kernels", "trial"), help="one part")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S)
    chosen = parser.parse_args()
    try:
        with Gpu() as gpu, ExitStack() as stack:
            session = Session(gpu, chosen.output, chosen.limit_s)
            session.note_clock("before")
            if chosen.only == "trial":
                for line in on_trial(session):
                    print(line, flush=True)
            if chosen.only in (None, "kernels"):
                for line in others(session):
                    print(line, flush=True)
            if chosen.only in (None, "ladder"):
                for line in ladder(session, _cublas(stack)):
                    print(line, flush=True)
            session.note_clock("after")
            session.write()
    except ToolkitError as error:
        sys.exit(f"error: {error}")
    failed = [cell for cell in session.cells if "error" in cell]
    for cell in failed:
        print("failed:", cell.get("label", ""), cell.get("shape", ""), cell["error"])
    print(f"{len(session.cells)} cells, {len(failed)} failed: {chosen.output}")


def _cublas(stack: ExitStack) -> Cublas | None:
    try:
        return stack.enter_context(Cublas())
    except UnavailableError as error:
        print(f"without cuBLAS: {error}", flush=True)
        return None


if __name__ == "__main__":
    main()
