"""The stages of tuning one rung: ranked on any machine; on a GPU swept and raced too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from analysis.devices import Device
from analysis.errors import InputError
from analysis.geometry import ceil_div
from analysis.problem import Gemm
from analysis.records.profile import SCHEMA_VERSION, Environment, Profile, Record
from analysis.records.tuning import Candidate, Swept, TunedShape, leaders
from kernels.selection import Selection
from toolkit.gpu.context import Gpu
from toolkit.gpu.nvcc import nvcc_version
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.profiling.on_gpu import GpuBench
from toolkit.profiling.record import failed
from toolkit.profiling.resume import SOURCES, digest
from toolkit.store.cache import cache_directory
from toolkit.store.profile_json import JOURNAL_SUFFIX
from toolkit.tuning.cache import SweepCache, is_timed
from toolkit.tuning.final import race, without_time
from toolkit.tuning.ranking import ranked
from toolkit.tuning.space import Space
from toolkit.tuning.sweep import BATCH, ITERATIONS, measure

METHOD = (
    f"the best by prediction, {ITERATIONS} samples each; then the leaders in turn with cuBLAS, "
    "until the order is clear or the time is up"
)
PREDICTED_ONLY = "predicted only: nothing was measured"


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Maximum number of configurations in each stage, and the folder of a sweep's times."""

    predictions: int = 64
    measurements: int = 16
    finalists: int = 6
    cache: Path | None = None
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True)
class Tuner:
    """Ranks the configurations of one space for one device, and measures them on its GPU."""

    space: Space
    device: Device
    environment: Environment
    effort: Effort
    seed: int
    progress: Progress

    @cached_property
    def selections(self) -> dict[str, Selection]:
        """The configurations by label."""
        return {selection.label: selection for selection in self.space.selections}

    def predicted(self, problem: Gemm) -> TunedShape:
        """Results at a shape without a GPU: predictions."""
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

    def measured(self, problem: Gemm, gpu: Gpu) -> TunedShape:
        """Results at a shape with a GPU: sweep, then final."""
        shape = self.predicted(problem)
        cache = self._cache(problem)
        if (notice := cache.open()) is not None:
            self.progress.notice(notice)
        with gpu, GpuBench(gpu, simulates=False) as bench:
            swept = self._swept(problem, self._to_measure(shape.candidates), bench, cache)
            shape = replace(
                shape,
                candidates=tuple(
                    swept.get(one.label, _not_chosen(one)) for one in shape.candidates
                ),
                method=METHOD,
            )
            return self._raced(problem, shape, bench, cache)

    def _to_measure(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The best by prediction, with the rung's defaults as a yardstick."""
        fit = [one for one in candidates if one.status == "ok"]
        best = fit[: self.effort.measurements]
        return best + [one for one in fit if self._is_default(one) and one not in best]

    def _is_default(self, candidate: Candidate) -> bool:
        return candidate.parameters == self.space.variant.defaults

    def _swept(
        self, problem: Gemm, chosen: Sequence[Candidate], bench: GpuBench, cache: SweepCache
    ) -> dict[str, Candidate]:
        selections = [self.selections[one.label] for one in chosen]
        labels = {one.label for one in chosen}
        before = {label for _, label in cache.records} & labels
        of_all = f"of {len(labels)} configurations of {problem}"
        if before:
            self.progress.notice(
                f"{len(before)} {of_all} were measured before: taken from {cache.path}"
            )
        left = len(labels) - len(before)
        # each is checked; of each batch there is a reference, and a time for all
        self.progress.stage(f"{problem}: sweep", left + 2 * ceil_div(left, BATCH))
        try:
            measure(bench, problem, selections, cache, seed=self.seed, progress=self.progress)
        except KeyboardInterrupt:
            kept = {x.label for x in cache.records.values() if is_timed(x)} & labels
            self.progress.notice(
                f"{len(kept)} {of_all} are kept in {cache.path}: repeat the command to go on"
            )
            raise
        return {
            one.label: _with_swept(
                one, cache.records[problem, one.label], from_cache=one.label in before
            )
            for one in chosen
        }

    def _cache(self, problem: Gemm) -> SweepCache:
        rung = self.space.variant
        folder = self.effort.cache or cache_directory() / "tuning"
        name = f"{rung.name}-{problem}-{self.device.key}.json{JOURNAL_SUFFIX}"
        with_what = {
            "NVIDIA driver": self.environment.software.get("NVIDIA driver", "not known"),
            "compiler": nvcc_version(),
            SOURCES: digest([Selection(variant=rung)]),
        }
        empty = Profile(
            schema_version=SCHEMA_VERSION,
            created="",
            command=f"python -m toolkit tune {rung.name}",
            status="interrupted",
            executor="gpu",
            seed=self.seed,
            device=self.device,
            environment=replace(self.environment, software=with_what),
            records=(),
        )
        return SweepCache(folder.resolve() / name, empty)

    # The final.

    def _raced(
        self, problem: Gemm, shape: TunedShape, bench: GpuBench, cache: SweepCache
    ) -> TunedShape:
        """The shape with its winners: where all leaders are wrong, those behind them follow."""
        while True:
            ahead = self._leaders(shape)
            if not ahead:
                raise InputError(_nobody_left(shape))
            finalists = {
                one.label: self.selections[one.label]
                for one in shape.candidates
                if one.swept and one.status == "ok"
                if one.label in ahead or self._is_default(one)
            }
            shape = race(
                bench,
                shape,
                finalists,
                sampling=self.effort.sampling,
                seed=self.seed,
                progress=self.progress,
            )
            for one in shape.candidates:
                if one.label in finalists and one.status == "failed":  # the next run goes without
                    cache.fail(failed(cache.records[problem, one.label], one.reason or ""))
            if any(one.label in ahead and one.status == "ok" for one in shape.candidates):
                return shape

    def _leaders(self, shape: TunedShape) -> tuple[str, ...]:
        times = {
            one.label: one.swept.median_s
            for one in shape.candidates
            if one.swept and one.status == "ok"
        }
        return leaders(times, self.effort.finalists)


def _not_chosen(candidate: Candidate) -> Candidate:
    if candidate.status != "ok":
        return candidate
    return replace(candidate, status="left out", reason="not measured: others should be faster")


def _with_swept(candidate: Candidate, record: Record, *, from_cache: bool) -> Candidate:
    if record.measured is None or record.status != "ok":
        return without_time(candidate, record)
    swept = Swept(samples_s=record.measured.samples_s, from_cache=from_cache)
    return replace(candidate, swept=swept)


def _nobody_left(shape: TunedShape) -> str:
    failed = [one for one in shape.candidates if one.status == "failed"]
    example = f": {failed[0].label}: {failed[0].reason}" if failed else ""
    return f"no configuration could be measured, {len(failed)} failed{example}"
