"""A sweep: few samples of each configuration, by the bench that profiles, some side by side.

Each configuration has a process of its own (docs/decisions/0021-rungs-in-children.md). What is
timed is kept at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from analysis.problem import Gemm
from kernels.selection import Selection
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.profiling.on_gpu import AHEAD, GpuBench
from toolkit.tuning.cache import SweepCache
from toolkit.tuning.final import plan_of

ITERATIONS = 7  # enough to tell 5 %, too few for a verdict
# As many as are prepared side by side: more would only be lost together on Ctrl-C.
BATCH = AHEAD


def measure(
    bench: GpuBench,
    problem: Gemm,
    selections: Sequence[Selection],
    cache: SweepCache,
    *,
    seed: int,
    progress: Progress,
) -> None:
    """Put a record of each configuration at one shape into the cache, unless it has one.

    Raises InputError where the cache cannot be written.
    """
    left = tuple(one for one in selections if (problem, one.label) not in cache.records)
    for start in range(0, len(left), BATCH):
        batch, sampling = left[start : start + BATCH], Sampling(max_samples=ITERATIONS)
        plan = plan_of(problem, batch, sampling, seed)
        bench.profile_shape(problem, plan, cache.records, progress)
