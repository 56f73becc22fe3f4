"""A sweep: few samples of each configuration, by the bench that profiles, some side by side.

Each configuration has a process of its own (docs/decisions/0021-rungs-in-children.md). What is
timed is kept at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.problem import Gemm
from analysis.records.profile import Record
from kernels.selection import Selection
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.profiling.on_gpu import AHEAD, GpuBench
from toolkit.tuning.cache import SweepCache
from toolkit.tuning.final import plan_of

ITERATIONS = 7  # enough to tell 5 %, too few for a verdict
# As many as are prepared side by side: more would only be lost together on Ctrl-C.
BATCH = AHEAD


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Measures configurations of a rung at one shape."""

    bench: GpuBench
    problem: Gemm
    seed: int
    cache: SweepCache
    progress: Progress

    def measured(self, selections: Sequence[Selection]) -> list[Record]:
        """A record of each; those of earlier sweeps are taken from the cache.

        Raises InputError where the cache cannot be written.
        """
        known = self.cache.records
        left = tuple(one for one in selections if (self.problem, one.label) not in known)
        for start in range(0, len(left), BATCH):
            batch, sampling = left[start : start + BATCH], Sampling(max_samples=ITERATIONS)
            plan = plan_of((self.problem,), batch, sampling, self.seed)
            self.bench.profile_shape(self.problem, plan, known, self.progress)
        return [known[self.problem, one.label] for one in selections]
