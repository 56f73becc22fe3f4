"""The CPU reference: SciPy's BLAS sgemm, timed with the host's clock.

Nothing else runs at the same time. Without a GPU, its measurement on this machine is kept in the
cache, and its record gives the date.
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib import metadata

from analysis import rounding
from analysis.problem import Gemm
from analysis.records.profile import Record
from analysis.rounding import Check
from toolkit.gpu import sampling as sampling_module
from toolkit.gpu.environment import cpu
from toolkit.gpu.sampling import Series, interleave
from toolkit.launch.host_resources import available_cores, shortage
from toolkit.profiling.plan import RunPlan
from toolkit.profiling.record import skipped, with_check, with_measurement
from toolkit.rungs import matrices
from toolkit.rungs.matrices import Matrix, ReferenceProduct, Workload
from toolkit.store.cache import cached, digest_of_files, keep

TRIAL = Gemm(m=768, n=768, k=768)  # large enough for BLAS to use its threads: about 10 ms
TIME_SHARE = 0.25  # of a variant's time, unless it was asked for: a yardstick, not the subject
PATIENCE = 10  # left out where one product takes this many time limits
CHECKED_ROWS = 64  # of the result, where nothing else needs the whole float64 product
WORKING_COPIES = 5  # A, B and C in float32, and what the float64 check adds to them


AGAIN = "--variant cpu measures again"
_SOURCES = digest_of_files(__file__, matrices.__file__, rounding.__file__, sampling_module.__file__)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # of BLAS


def known_cpu(record: Record, workload: Workload, plan: RunPlan) -> tuple[Record, bool]:
    """Result of `measure_cpu`, or an earlier one of this machine unless the CPU was requested."""
    entry = _entry(workload.problem, plan)
    if not plan.explicit and (kept := cached(entry)) is not None:
        found = json.loads(kept)
        record = with_check(record, Check(**found["check"]))
        record = with_measurement(record, Series(**found["series"]), clock="host clock", l2="host")
        return record.noted(f"measured on this machine on {found['day']}; {AGAIN}"), False
    record, interrupted = measure_cpu(record, workload, plan)
    if record.measured and record.check and not interrupted:
        series = Series(
            samples_s=list(record.measured.samples_s), stopped_by=record.measured.stopped_by
        )
        day = datetime.now(UTC).date().isoformat()
        found = {"day": day, "check": asdict(record.check), "series": asdict(series)}
        keep(entry, json.dumps(found).encode())
    return record, interrupted


def _entry(problem: Gemm, plan: RunPlan) -> str:
    """The name of a measurement in the cache: of everything that decides it, but for the day."""
    versions = [metadata.version(name) for name in ("numpy", "scipy")]
    threads = [os.environ.get(name) for name in _THREADS]
    machine = [platform.node(), cpu(), available_cores(), platform.python_version()]
    parts = [repr(problem), repr(plan.sampling), versions, threads, machine, _SOURCES]
    return f"cpu-{sha256(json.dumps(parts).encode()).hexdigest()}.json"


def measure_cpu(
    record: Record, workload: Workload, plan: RunPlan, reference: ReferenceProduct | None = None
) -> tuple[Record, bool]:
    """The record of the CPU at one shape, measured, and whether Ctrl-C ended that early.

    Skipped where it would take too long or too much memory. One product that takes the whole time
    limit is the only sample, unless the CPU was asked for. `reference` is that of the whole
    product where it is known; otherwise some rows are checked.
    """
    problem = workload.problem
    if lack := shortage(WORKING_COPIES * problem.matrix_bytes):
        return skipped(record, f"needs about {lack}: take a smaller shape"), False
    expected_s = 0.0 if plan.explicit else _expected_seconds(problem, plan.seed)
    if expected_s > PATIENCE * plan.sampling.time_limit_s:
        reason = f"one product would take about {expected_s:.0f} s: ask for it with --variant cpu"
        return skipped(record, reason), False
    started = time.perf_counter()
    result: Matrix = _sgemm(workload.a, workload.b)
    first_s = time.perf_counter() - started
    record = with_check(record, (reference or workload.reference(CHECKED_ROWS)).check(result))
    if record.status != "ok":
        return record, False
    share = 1.0 if plan.explicit else TIME_SHARE
    sampling = replace(plan.sampling, time_limit_s=share * plan.sampling.time_limit_s)
    if not plan.explicit and first_s >= sampling.time_limit_s:  # the trial was its warm-up
        series = {"cpu": Series(samples_s=[first_s], spent_s=first_s, stopped_by="time limit")}
        interrupted = False
    else:
        series, interrupted = interleave({"cpu": lambda: _seconds(workload)}, sampling)
    return with_measurement(record, series["cpu"], clock="host clock", l2="host"), interrupted


def _expected_seconds(problem: Gemm, seed: int) -> float:
    trial = Workload(TRIAL, seed)
    _sgemm(trial.a, trial.b)  # starts the threads of BLAS
    return _seconds(trial) * problem.flop / TRIAL.flop


def _seconds(workload: Workload) -> float:
    a, b = workload.a, workload.b
    started = time.perf_counter()
    _sgemm(a, b)
    return time.perf_counter() - started


def _sgemm(a: Matrix, b: Matrix) -> Matrix:
    """A·B of row-major matrices, which BLAS sees as Bᵀ·Aᵀ of column-major ones: no copies."""
    from scipy.linalg.blas import sgemm

    product: Matrix = sgemm(1.0, b.T, a.T).T
    return product
