"""The stages of tuning one rung: ranked on any machine; on a GPU swept and raced too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from analysis.devices import Device
from analysis.errors import InputError
from analysis.problem import Gemm
from analysis.records.tuning import Candidate, Swept, TunedShape, leaders
from kernels.selection import Selection
from kernels.variant import PLAIN_ARGUMENTS, Variant
from toolkit.gpu.context import Gpu
from toolkit.gpu.nvcc import nvcc_version
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.profiling.on_gpu import GpuBench
from toolkit.profiling.record import Records
from toolkit.store.cache import cache_directory
from toolkit.tuning.cache import Known, SweepCache
from toolkit.tuning.final import Final, plan_of, race
from toolkit.tuning.ranking import ranked
from toolkit.tuning.request import BRUTE_FORCE, Request, key_of
from toolkit.tuning.space import Space
from toolkit.tuning.sweep import check_available, sweep

ITERATIONS = 7  # of a sweep, Kernel Tuner's own default: enough to tell 5 %, too few for a verdict
FINAL = "then the leaders in rounds with cuBLAS, as many samples as it takes"
PREDICTED_ONLY = "prediction alone: nothing was measured"


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How many configurations each stage sees at most, and how a sweep chooses and runs them.

    `strategy` is one of Kernel Tuner's: brute force takes the best by prediction, any other chooses
    among all that were predicted. `workers` spreads the sweep over so many GPUs through Ray.
    """

    predictions: int = 64
    measurements: int = 16
    finalists: int = 6
    strategy: str = BRUTE_FORCE
    workers: int | None = None
    cache: Path | None = None
    sampling: Sampling = field(default_factory=Sampling)

    def check(self) -> None:
        """Raise InputError for an unknown strategy, or for what cannot go together.

        A strategy cannot be checked without Kernel Tuner: that raises UnavailableError.
        """
        if self.workers is not None and self.strategy != BRUTE_FORCE:
            raise InputError(
                f"--workers {self.workers} with strategy {self.strategy}, which measures one "
                f"configuration at a time: take strategy {BRUTE_FORCE}"
            )
        if self.strategy != BRUTE_FORCE:
            check_available(self.strategy, None)


class Tuner:
    """Ranks the configurations of one space for one device."""

    def __init__(
        self, space: Space, device: Device, effort: Effort, seed: int, progress: Progress
    ) -> None:
        self.space, self.device, self.effort = space, device, effort
        self.seed, self.progress = seed, progress
        self.selections = {selection.label: selection for selection in space.selections}

    def predicted(self, problem: Gemm) -> TunedShape:
        """What is known of a shape without a GPU."""
        return TunedShape(
            shape=problem,
            executed_shape=self.space.variant.executed(problem),
            combinations=self.space.combinations,
            exclusions=self.space.exclusions,
            method=PREDICTED_ONLY,
            candidates=tuple(
                ranked(
                    self.space.selections,
                    problem,
                    self.device,
                    seed=self.seed,
                    most=self.effort.predictions,
                    progress=self.progress,
                )
            ),
        )


class GpuTuner(Tuner):
    """Measures them on a GPU too."""

    def __init__(
        self, space: Space, gpu: Gpu, effort: Effort, seed: int, progress: Progress, driver: str
    ) -> None:
        super().__init__(space, gpu.device, effort, seed, progress)
        self.gpu, self.driver = gpu, driver
        self.by_kernel_tuner = expressible(space.variant)
        if self.by_kernel_tuner:
            check_available(effort.strategy, effort.workers)
        else:
            progress.notice(
                f"{space.variant.name} takes arguments that Kernel Tuner cannot pass: its best by "
                "prediction are sampled in rounds instead"
            )

    def measured(self, problem: Gemm) -> TunedShape:
        """What is known of a shape with a GPU: swept, then raced."""
        shape = self.predicted(problem)
        chosen = self._to_measure(shape.candidates)
        measure = self._swept if self.by_kernel_tuner else self._sampled
        swept = measure(problem, chosen)
        shape = replace(
            shape,
            candidates=tuple(swept.get(one.label, _not_chosen(one)) for one in shape.candidates),
            method=self._method(),
        )
        return self._raced(problem, shape)

    def _method(self) -> str:
        if not self.by_kernel_tuner:
            return f"{ITERATIONS} samples each, in rounds; {FINAL}"
        version = metadata.version("kernel_tuner")
        return (
            f"Kernel Tuner {version}, strategy {self.effort.strategy}, {ITERATIONS} samples each; "
            f"{FINAL}"
        )

    def _to_measure(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The best by prediction, with the rung's defaults as a yardstick."""
        fit = [one for one in candidates if one.status == "ok"]
        if self.effort.strategy != BRUTE_FORCE and self.by_kernel_tuner:
            return fit
        best = fit[: self.effort.measurements]
        return best + [one for one in fit if self._is_default(one) and one not in best]

    def _is_default(self, candidate: Candidate) -> bool:
        return candidate.parameters == self.space.variant.defaults

    # By Kernel Tuner.

    def _swept(self, problem: Gemm, chosen: Sequence[Candidate]) -> dict[str, Candidate]:
        cache = self._cache(problem)
        if (notice := cache.open()) is not None:
            self.progress.notice(notice)
        keys = {key_of(one.parameters): one for one in chosen}
        before = {key: known for key, known in cache.known().items() if key in keys}
        if before:
            self.progress.notice(
                f"{len(before)} of {len(keys)} configurations of {problem} were measured before: "
                f"taken from {cache.path}"
            )
        self.progress.stage(f"{problem}: sweep", len(keys) - len(before))
        try:
            known = sweep(self._request(problem, chosen, cache), cache, self.progress)
        except KeyboardInterrupt:
            kept = sum(key in keys for key in cache.known())
            self.progress.notice(
                f"{kept} of {len(keys)} configurations of {problem} are kept in {cache.path}: "
                "repeat the command to go on"
            )
            raise
        return {
            one.label: _with_known(one, known.get(key), from_cache=key in before)
            for key, one in keys.items()
        }

    def _request(self, problem: Gemm, chosen: Sequence[Candidate], cache: SweepCache) -> Request:
        return Request(
            variant=self.space.variant.name,
            shape=str(problem),
            seed=self.seed,
            configurations=tuple(one.parameters for one in chosen),
            cache=str(cache.path),
            iterations=ITERATIONS,
            strategy=self.effort.strategy,
            most=self.effort.measurements,
            workers=self.effort.workers,
        )

    def _cache(self, problem: Gemm) -> SweepCache:
        folder = self.effort.cache or cache_directory() / "tuning"
        path = folder.resolve() / f"{self.space.variant.name}-{problem}-{self.device.key}.json"
        return SweepCache(path, self.space.variant, self._identity())

    def _identity(self) -> dict[str, str]:
        """What times depend on beside the configuration."""
        rung = self.space.variant
        return {
            "GPU": self.device.name,
            "driver": self.driver,
            "compiler": nvcc_version(),
            "Kernel Tuner": metadata.version("kernel_tuner"),
            "kernel source": sha256(rung.source.encode()).hexdigest()[:16],
        }

    # Without it.

    def _sampled(self, problem: Gemm, chosen: Sequence[Candidate]) -> dict[str, Candidate]:
        """The project's own rounds, with as few samples as a sweep takes."""
        records: Records = {}
        selections = tuple(self.selections[one.label] for one in chosen)
        plan = plan_of((problem,), selections, Sampling(max_samples=ITERATIONS), self.seed)
        with self.gpu, GpuBench(self.gpu) as bench:
            self.progress.stage(f"{problem}: rounds", bench.steps(plan))
            bench.profile_shape(problem, plan, records, self.progress)
        found = {record.label: record for record in records.values()}
        known = {
            label: Known(samples_s=record.measured.samples_s)
            if record.measured is not None
            else Known(failure=record.reason or "it was not timed")
            for label, record in found.items()
        }
        return {one.label: _with_known(one, known[one.label], from_cache=False) for one in chosen}

    # The final.

    def _raced(self, problem: Gemm, shape: TunedShape) -> TunedShape:
        """The shape with its winners: where all leaders are wrong, those behind them follow."""
        while True:
            ahead = self._leaders(shape)
            if not ahead:
                raise InputError(_nobody_left(shape))
            final = self._race(problem, self._finalists(shape, ahead))
            self._remember(problem, final)
            shape = _with_final(shape, final)
            if any(one.label in ahead and one.status == "ok" for one in shape.candidates):
                return shape

    def _leaders(self, shape: TunedShape) -> tuple[str, ...]:
        swept = [one for one in shape.candidates if one.swept and one.status == "ok"]
        times = {one.label: one.swept.median_s for one in swept if one.swept}
        return leaders(times, self.effort.finalists)

    def _finalists(
        self, shape: TunedShape, ahead: Sequence[str]
    ) -> list[tuple[Candidate, Selection]]:
        """The leaders of the sweep, and the defaults as a yardstick."""
        return [
            (one, self.selections[one.label])
            for one in shape.candidates
            if one.swept and one.status == "ok" and (one.label in ahead or self._is_default(one))
        ]

    def _remember(self, problem: Gemm, final: Final) -> None:
        """Note who failed in the final, so that the next run goes without them."""
        failed = [one for one in final.candidates if one.status == "failed"]
        if failed and self.by_kernel_tuner:
            cache = self._cache(problem)
            cache.open()
            for one in failed:
                cache.fail(key_of(one.parameters), one.reason or "it failed in the final")

    def _race(self, problem: Gemm, finalists: list[tuple[Candidate, Selection]]) -> Final:
        with self.gpu, GpuBench(self.gpu) as bench:
            return race(
                bench,
                finalists,
                problem,
                sampling=self.effort.sampling,
                seed=self.seed,
                progress=self.progress,
            )


def expressible(rung: Variant) -> bool:
    """Whether Kernel Tuner can launch a rung: it passes buffers and numbers, and no structs."""
    return set(rung.arguments) <= set(PLAIN_ARGUMENTS)


def _with_final(shape: TunedShape, final: Final) -> TunedShape:
    by_label = {one.label: one for one in final.candidates}
    return replace(
        shape,
        candidates=tuple(by_label.get(one.label, one) for one in shape.candidates),
        cublas=final.cublas.measured,
        also_checked=final.also_checked,
        notes=(f"no cuBLAS beside it: {final.cublas.reason}",) if final.cublas.reason else (),
    )


def _not_chosen(candidate: Candidate) -> Candidate:
    if candidate.status != "ok":
        return candidate
    return replace(candidate, status="left out", reason="not measured: others should be faster")


def _with_known(candidate: Candidate, known: Known | None, *, from_cache: bool) -> Candidate:
    if known is None:
        why = "not measured: the strategy did not choose it"
        return replace(candidate, status="left out", reason=why)
    if known.failure is not None:
        return replace(candidate, status="failed", reason=known.failure)
    return replace(candidate, swept=Swept(samples_s=known.samples_s, from_cache=from_cache))


def _nobody_left(shape: TunedShape) -> str:
    failed = [one for one in shape.candidates if one.status == "failed"]
    example = f": {failed[0].label}: {failed[0].reason}" if failed else ""
    return f"no configuration could be measured, {len(failed)} failed{example}"
