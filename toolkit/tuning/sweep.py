"""A sweep: few samples of each configuration, by the bench that profiles, some side by side.

Each configuration has a process of its own (docs/decisions/0021-rungs-in-children.md). What is
timed is kept at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from analysis.errors import InputError, LaunchError, UnavailableError, first_line
from analysis.problem import Gemm
from analysis.records.profile import Record
from kernels.selection import Selection, parse_selection
from toolkit.gpu.context import Gpu
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.profiling.on_gpu import AHEAD, GpuBench
from toolkit.profiling.record import Records
from toolkit.tuning.cache import SweepCache
from toolkit.tuning.final import plan_of

ITERATIONS = 7  # enough to tell 5 %, too few for a verdict
# As many as are prepared side by side: more would only be lost together on Ctrl-C.
BATCH = AHEAD


def check_workers(workers: int | None) -> None:
    """Raise UnavailableError where Ray is wanted and not installed."""
    if workers is not None and find_spec("ray") is None:
        raise UnavailableError("--workers needs Ray, which is not installed: pip install ray")


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Measures configurations of a rung at one shape: here, or by workers that Ray has."""

    bench: GpuBench
    problem: Gemm
    seed: int
    workers: int | None
    cache: SweepCache
    progress: Progress

    def measured(self, selections: Sequence[Selection]) -> list[Record]:
        """A record of each; those of earlier sweeps are taken from the cache.

        Raises InputError where the cache cannot be written, or Ray has too few GPUs.
        """
        known = self.cache.records
        left = [one for one in selections if (self.problem, one.label) not in known]
        if self.workers is None:
            for batch in _batches(left, BATCH):
                _time(self.bench, self.problem, batch, self.seed, known, self.progress)
        elif left:
            for record in self._by_ray(self.workers, left):
                self.progress.step(f"measured {record.label}")
                known[self.problem, record.label] = record
        return [known[self.problem, one.label] for one in selections]

    def _by_ray(self, workers: int, selections: Sequence[Selection]) -> Iterator[Record]:
        """The records as they come, each worker on a GPU of its own."""
        ray = import_module("ray")
        ray.init()
        try:
            found = int(ray.cluster_resources().get("GPU", 0))
            if found < workers:
                raise InputError(
                    f"{workers} workers were asked for, and Ray has {found} GPUs: ask for fewer, "
                    "or add machines with `ray start`"
                )
            task = ray.remote(num_gpus=1, max_calls=1, max_retries=0)(of_worker)
            size = min(BATCH, -(-len(selections) // workers))
            waiting = [
                (self.problem, [one.label for one in batch], self.seed)
                for batch in _batches(selections, size)
            ]
            running: list[Any] = []
            while waiting or running:
                while waiting and len(running) < workers:
                    running.append(task.remote(*waiting.pop(0)))
                (done,), running = ray.wait(running)
                yield from ray.get(done)
        except ray.exceptions.RayError as error:
            why = first_line(getattr(error, "cause", None) or error)
            raise LaunchError(f"a worker of Ray stopped: {why}") from None
        finally:
            ray.shutdown()


def of_worker(problem: Gemm, labels: Sequence[str], seed: int) -> list[Record]:
    """The records of some configurations, measured on the GPU of this process."""
    records: Records = {}
    with Gpu() as gpu, GpuBench(gpu, simulates=False) as bench:
        _time(bench, problem, list(map(parse_selection, labels)), seed, records, Progress())
    return list(records.values())


def _time(
    bench: GpuBench,
    problem: Gemm,
    batch: Sequence[Selection],
    seed: int,
    records: Records,
    progress: Progress,
) -> None:
    plan = plan_of((problem,), tuple(batch), Sampling(max_samples=ITERATIONS), seed)
    bench.profile_shape(problem, plan, records, progress)


def _batches(selections: Sequence[Selection], size: int) -> list[Sequence[Selection]]:
    return [selections[start : start + size] for start in range(0, len(selections), size)]
