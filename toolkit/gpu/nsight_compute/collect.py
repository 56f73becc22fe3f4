"""Hardware counters of launches: run once more, in a process of their own under Nsight Compute.

Whatever goes wrong costs counters and nothing else: one launch that ncu fails on costs its own, a
metric that this GPU lacks costs that metric, and only what concerns all launches ends the counting.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median_low
from tempfile import mkdtemp

from analysis.errors import CountersError, first_line
from analysis.records.profile import Counted
from toolkit.gpu.nsight_compute import ncu
from toolkit.gpu.nsight_compute.attribution import CountableLaunch, by_marker, counted
from toolkit.gpu.nsight_compute.replay_process import (
    BEGINS,
    ENDS,
    FAILS,
    LaunchFolder,
    process_environment,
)
from toolkit.launch.progress import Progress

# Nobody waits for ever on a hung driver, and no slow GPU is given up: a launch is replayed some
# tens of times, with caches flushed and memory restored, and instrumented code is slow.
PATIENCE_S = 120.0
PATIENCE_LAUNCHES = 300
ALL = "hardware counters"
HOPELESS = 2  # launches that fail before any was counted: then it is not the launch

Results = dict[str, Counted | str]  # by label: counters, or why there are none


@dataclass(kw_only=True)
class _Heard:
    """What the launching process has said so far."""

    begun: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    ended: bool = False

    def line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        marker, _, reason = rest.partition(" ")
        if word == BEGINS:
            self.begun.append(marker)
        elif word == FAILS:
            self.failed[marker] = reason
        elif word == ENDS:
            self.ended = True


@dataclass(kw_only=True)
class _Profiler:
    """The ncu of this machine, and the metrics that it says it does not know."""

    path: str = ""
    version: str = ""
    unknown: set[str] = field(default_factory=set)

    def known(self, counters: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in counters if name not in self.unknown)

    def run(
        self,
        launches: Sequence[CountableLaunch],
        asked: Sequence[str],
        folder: LaunchFolder,
        expected_s: Mapping[str, float],
        heard: _Heard,
        progress: Progress,
    ) -> ncu.Outcome:
        """Count these launches of the folder once; `heard` gets what they say meanwhile."""
        labels = {launch.marker: launch.label for launch in launches}
        log = folder.path / "ncu.log"
        log.unlink(missing_ok=True)

        def on_line(line: str) -> float:
            heard.line(line)
            label = labels.get(heard.begun[-1], "") if heard.begun else ""
            progress.detail(f"counters of {label}: {len(heard.begun)} of {len(labels)}")
            return PATIENCE_S + PATIENCE_LAUNCHES * expected_s.get(label, 0.0)

        options = [*ncu.counting_options(self.known(asked)), *ncu.AS_RAW_CSV]
        return ncu.run(
            [self.path, *options, "--log-file", str(log), *folder.command(list(labels))],
            log=log,
            on_line=on_line,
            patience_s=PATIENCE_S,
            environment=process_environment(),
        )

    def drop_unknown(self, said: str, asked: Sequence[str]) -> tuple[str, ...]:
        """Ask no more for the metrics that ncu says it does not know, which are returned."""
        unknown = tuple(ncu.unknown_metrics(said, self.known(asked)))
        self.unknown |= set(unknown)
        return unknown


class Counting:
    """Counts launches, shape by shape; a context manager that keeps them in a folder.

    Each of `runs` is what ncu counts in one of its own. `problem` says why nothing is counted, with
    the remedy; empty where that is not so.
    """

    def __init__(self, progress: Progress, runs: Sequence[tuple[str, ...]] = ncu.RUNS) -> None:
        self.problem = ""
        self._progress = progress
        self._runs = runs
        self._profiler = _Profiler()
        self._lost: set[tuple[str, ...]] = set()  # what further runs were asked in vain
        self._what = ALL
        self._asked = runs[0]  # in the run at hand
        self._counted_any = False
        self._hopeless = 0

    def __enter__(self) -> Counting:
        self._folder = LaunchFolder(Path(mkdtemp(prefix="gemm-ladder-")))
        self._profiler.path = ncu.path() or ""
        if not self._profiler.path:
            self.give_up(f"there is no ncu on this machine: {ncu.INSTALL}")
            return self
        try:
            self._profiler.version = ncu.version(self._profiler.path)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.give_up(
                f"{self._profiler.path} does not work ({first_line(error)}): {ncu.INSTALL}"
            )
        return self

    def __exit__(self, *exception: object) -> None:
        shutil.rmtree(self._folder.path, ignore_errors=True)

    def software(self) -> dict[str, str]:
        """What a profile's environment tells: the version, and the problem where there is one."""
        told = {"Nsight Compute": version} if (version := self._profiler.version) else {}
        return told | ({"Hardware counters": f"none: {self.problem}"} if self.problem else {})

    def give_up(self, problem: str) -> None:
        """Count nothing more, for a reason that concerns every launch."""
        self.problem = problem
        self._progress.notice(f"no {self._what}: {problem}")

    def count(
        self,
        launches: Sequence[CountableLaunch],
        *,
        seed: int,
        images: Mapping[str, bytes],
        markers: bytes,
        expected_s: Mapping[str, float],
    ) -> Results:
        """What was counted of each launch, or why not; nothing of any where there is a problem.

        `images` is the machine code of the rungs and `expected_s` the time of one launch, by
        label; `markers` holds the kernels that announce the launches.
        """
        if self.problem:
            return {}
        try:
            self._folder.add(launches, seed=seed, images=images, markers=markers)
            return self._count_in_runs(launches, expected_s)
        except OSError as error:  # a full disk, a command that cannot be started
            self.give_up(f"{error}: run `python -m toolkit doctor`")
            return {}

    def _count_in_runs(
        self, launches: Sequence[CountableLaunch], expected_s: Mapping[str, float]
    ) -> Results:
        self._asked = self._runs[0]
        results = self._count(launches, expected_s)
        for asked in self._runs[1:]:
            so_far = {label: r for label, r in results.items() if isinstance(r, Counted)}
            again = [launch for launch in launches if launch.label in so_far]
            found = self._count_several_times(again, expected_s, asked)
            for label, first in so_far.items():
                then = middle([one.get(label) for one in found])
                if isinstance(then, str):
                    self._progress.notice(f"no {_range(asked)} of {label}: {then}")
                results[label] = _joined(first, then, asked)
        return results

    def _count_several_times(
        self,
        launches: Sequence[CountableLaunch],
        expected_s: Mapping[str, float],
        asked: tuple[str, ...],
    ) -> list[Results]:
        """What a further run counts each time, as long as it does: again only what it counted."""
        found: list[Results] = []
        while launches and len(found) < ncu.TRAFFIC_TIMES:
            is_first = not found
            found.append(self._count_also(launches, expected_s, asked, is_needed=is_first))
            launches = [one for one in launches if isinstance(found[-1].get(one.label), Counted)]
        return found

    def _count_also(
        self,
        launches: Sequence[CountableLaunch],
        expected_s: Mapping[str, float],
        asked: tuple[str, ...],
        *,
        is_needed: bool,
    ) -> Results:
        """What a further run counts: whatever goes wrong there costs only what it is asked.

        Where it is not needed, for it has counted this before, not even that.
        """
        if self.problem or asked in self._lost:
            return {}
        before = self._counted_any, self._hopeless
        self._asked, self._counted_any, self._hopeless = asked, False, 0
        self._what = _range(asked) if is_needed else f"further {_range(asked)}"
        try:
            return self._count(launches, expected_s)
        except OSError as error:
            self.give_up(f"{error}: run `python -m toolkit doctor`")
            return {}
        finally:
            if self.problem and is_needed:
                self._lost.add(asked)
            self.problem, self._what = "", ALL
            self._counted_any, self._hopeless = before

    def _count(
        self, launches: Sequence[CountableLaunch], expected_s: Mapping[str, float]
    ) -> Results:
        if self.problem or not launches:
            return {}
        heard = _Heard()
        outcome = self._profiler.run(
            launches, self._asked, self._folder, expected_s, heard, self._progress
        )
        if ncu.not_permitted(outcome.everything):
            self.give_up(f"only administrators may read them here: {ncu.ALLOW_COUNTERS}")
            return {}
        kernels = _kernels_of(outcome)
        if not kernels and (
            lacking := self._profiler.drop_unknown(outcome.everything, self._asked)
        ):
            self._progress.notice(f"hardware counters that this GPU lacks: {', '.join(lacking)}")
            return self._count(launches, expected_s)
        settled = self._settled(launches, kernels, heard)
        unsettled = [launch for launch in launches if launch.label not in settled]
        if not unsettled:
            return settled
        return settled | self._rest(unsettled, expected_s, heard, _reason(outcome))

    def _settled(
        self,
        launches: Sequence[CountableLaunch],
        kernels: Mapping[str, Sequence[ncu.ProfiledKernel]],
        heard: _Heard,
    ) -> Results:
        """The launches that this run told of; the one that it broke off in is not among them."""
        results: Results = {}
        broken_off = heard.begun[-1:] if not heard.ended else []
        for launch in launches:
            if launch.marker in heard.failed:
                results[launch.label] = heard.failed[launch.marker]
            elif kernels.get(launch.marker) and launch.marker not in broken_off:
                results[launch.label] = self._counted(launch, kernels[launch.marker])
        return results

    def _counted(
        self, launch: CountableLaunch, kernels: Sequence[ncu.ProfiledKernel]
    ) -> Counted | str:
        source = f"Nsight Compute {'.'.join(self._profiler.version.split('.')[:3])}"
        try:
            result = counted(launch, kernels, asked=self._asked, source=source)
        except CountersError as error:
            return str(error)
        self._counted_any = True
        return result

    def _rest(
        self,
        unsettled: Sequence[CountableLaunch],
        expected_s: Mapping[str, float],
        heard: _Heard,
        reason: str,
    ) -> Results:
        """Count what a run left out, but the launch that it broke off in."""
        if not heard.begun:
            self.give_up(reason)
            return {}
        culprits = [u for u in unsettled if u.marker == heard.begun[-1] and not heard.ended]
        if len(unsettled) == 1:
            culprits = list(unsettled)
        if culprits:
            return self._without(culprits[0], unsettled, expected_s, reason)
        half = len(unsettled) // 2  # ncu lost what it counted: find out of which
        return self._count(unsettled[:half], expected_s) | self._count(unsettled[half:], expected_s)

    def _without(
        self,
        culprit: CountableLaunch,
        unsettled: Sequence[CountableLaunch],
        expected_s: Mapping[str, float],
        reason: str,
    ) -> Results:
        self._hopeless += 1
        if self._hopeless >= HOPELESS and not self._counted_any:
            self.give_up(reason)
            return {}
        others = [launch for launch in unsettled if launch is not culprit]
        return {culprit.label: reason} | self._count(others, expected_s)


def _kernels_of(outcome: ncu.Outcome) -> dict[str, list[ncu.ProfiledKernel]]:
    """The kernels by the launch that they belong to; none of a table that was cut short."""
    with suppress(CountersError):
        return by_marker(ncu.kernels_in(outcome.log))
    return {}


def _range(asked: Sequence[str]) -> str:
    return f"counters from {asked[0]} to {asked[-1]}"


def middle(found: Sequence[Counted | str | None]) -> Counted | str | None:
    """One launch counted several times: the median of each counter that was there each time.

    Where it was not counted at any time, the first reason that is known.
    """
    counts = [one for one in found if isinstance(one, Counted)]
    if not counts:
        return next((one for one in found if one), None)
    everywhere = set.intersection(*(set(one.counters) for one in counts))
    return replace(
        counts[0],
        counters={
            name: median_low(one.counters[name] for one in counts)
            for name in counts[0].counters
            if name in everywhere
        },
        missing=tuple(dict.fromkeys(name for one in counts for name in one.missing)),
    )


def _joined(first: Counted, then: Counted | str | None, asked: Sequence[str]) -> Counted:
    """What all runs counted of a launch; where one of them failed, what it was asked is missing."""
    if not isinstance(then, Counted):
        return replace(first, missing=(*first.missing, *asked))
    return replace(
        first, counters=first.counters | then.counters, missing=(*first.missing, *then.missing)
    )


def _reason(outcome: ncu.Outcome) -> str:
    """Why a run did not count everything: what ncu says, else the program, else how it ended."""
    if outcome.timed_out:
        return "ncu took too long and was stopped"
    own = (BEGINS, FAILS, ENDS)
    said = [line for line in outcome.output.splitlines() if line and not line.startswith(own)]
    last = said[-1].removeprefix("error: ") if said else ""
    return ncu.complaint_in(outcome.everything) or last or f"ncu ended with {outcome.returncode}"
