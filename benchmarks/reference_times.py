"""Times of kernels that are no rungs, as a reference for predictions.

    python -m benchmarks.reference_times --output reference_times.json      # needs a GPU
    python -m benchmarks.reference_times --only trial --output trial.json   # of the trial alone

Each launch is timed by events with L2 flushed before every sample, and with L2 as the launch before
left it, after the small launch of its kernel left what is recorded. The machine code is NVRTC's, so
that `toolkit.simulate` compiles the very same without a GPU; a hash of it stands in the file. The
launches are those of `validation/timing/timed_launches.py`; where asked, those of
`validation/timing/trial_launches.py` instead, of which half are nvcc's. What fails is recorded with
its error, and the file is written anew after every launch. `profile` times rungs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from posixpath import normpath
from statistics import median
from typing import Any

import numpy as np

from analysis.comparison.statistics import median_interval
from analysis.errors import ToolkitError, first_line
from analysis.geometry import Geometry
from analysis.l2_state import L2State
from toolkit.gpu.context import Gpu
from toolkit.gpu.environment import GpuMonitor, environment
from toolkit.gpu.sampling import Sampling, Series, interleave
from toolkit.machine_code.kernel import Kernel
from toolkit.microbenchmarks.bench import Bench
from toolkit.store.user_files import write_atomically
from validation import recordings
from validation.corpus.case import Case
from validation.counters.counting import launch
from validation.timing.declared import OPTIONS, SEED, Declared, rng
from validation.timing.timed_launches import TIMED
from validation.timing.trial_launches import TRIALS, Trial

LIMIT_S = 235.0  # what is left then is recorded as not timed
SAMPLING = Sampling(precision=0.003, time_limit_s=0.2, max_samples=80)
FEWEST = 3
FEWEST_ON_TRIAL = 15
FLUSH = "memset of twice the bytes of L2"
WARM_UP_S = 0.05

Timed = Callable[[], None]
Cell = dict[str, Any]


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

    def _warm_up(self, launch: Timed) -> None:
        """Launch until the clocks are up."""
        started = time.monotonic()
        while time.monotonic() - started < WARM_UP_S:
            self.gpu.timer.time(launch, l2=L2State.WARM)

    def time(self, launch: Timed, about: Cell, *, fewest: int = FEWEST) -> None:
        """Time a launch that was checked, in both states of L2, and record a cell for each."""
        for state in (L2State.DIRTY, L2State.WARM):
            if self.over:
                self.fail({**about, "l2": state}, "not timed: the time is over")
                continue
            timers = {"0": partial(self.gpu.timer.time, launch, l2=state)}
            self._warm_up(launch)
            before = self.monitor.state()
            found, _ = interleave(timers, SAMPLING, fewest=fewest, usable=lambda: self.gpu.alive)
            after = self.monitor.state()
            clocks = {
                "sm_clock_hz_before": before.sm_clock_hz,
                "sm_clock_hz_after": after.sm_clock_hz,
                "throttle_reasons": list(after.throttle_reasons),
            }
            self.cells.append({**about, "l2": state, **_times(found["0"]), **clocks})


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


def time_all(session: Session, declared: Sequence[Declared]) -> Iterator[str]:
    """Time the launches of some kernels, one after the other."""
    for one in declared:
        for case in one.cases:
            started = time.monotonic()
            about = _about(case) | (_about_trial(one) if isinstance(one, Trial) else {})
            try:
                if session.over:
                    session.fail(about, "not timed: the time is over")
                else:
                    fewest = FEWEST_ON_TRIAL if isinstance(one, Trial) else FEWEST
                    _time(session, one, case, about, fewest)
            except Exception as error:  # the others go on
                session.fail(about, error)
            session.write()
            yield f"{case.name}: {time.monotonic() - started:.1f} s"


def _time(session: Session, one: Declared, case: Case, about: Cell, fewest: int) -> None:
    """Check the small launch of a kernel, and time another one."""
    gpu, code, small = session.gpu, one.code(session.gpu.device.sm_arch), one.small_case
    arguments = small.make(rng())
    small.check(launch(gpu, code, small.geometry, arguments), arguments)
    kernel = gpu.load_image(code.image, code.symbol)
    buffers = [gpu.upload(a) if isinstance(a, np.ndarray) else a for a in case.make(rng())]
    with gpu.launch_errors(case.name):
        session.time(
            kernel.prepared(case.geometry, buffers), {**about, **_code(code)}, fewest=fewest
        )


def _about_trial(trial: Trial) -> Cell:
    return {"kind": "trial", "part": trial.part, "compiled_by": trial.compiler}


def _about(case: Case) -> Cell:
    return {
        "kind": "kernel",
        "label": case.name,
        "kernel": case.kernel,
        "file": normpath(f"validation/corpus/{case.file}"),
        **_geometry(case.geometry),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("reference_times.json"))
    parser.add_argument("--only", choices=("kernels", "trial"), help="which launches")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S)
    chosen = parser.parse_args()
    try:
        with Gpu() as gpu:
            session = Session(gpu, chosen.output, chosen.limit_s)
            session.note_clock("before")
            for line in time_all(session, TRIALS if chosen.only == "trial" else TIMED):
                print(line, flush=True)
            session.note_clock("after")
            session.write()
    except ToolkitError as error:
        sys.exit(f"error: {error}")
    failed = [cell for cell in session.cells if "error" in cell]
    for cell in failed:
        print("failed:", cell["label"], cell["error"])
    print(f"{len(session.cells)} cells, {len(failed)} failed: {chosen.output}")


if __name__ == "__main__":
    main()
