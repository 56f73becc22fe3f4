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
EXAMINE = "run `python -m toolkit doctor`"
HOPELESS = 2  # launches that fail before any was counted: then it is not the launch

Results = dict[str, Counted | str]  # by label: counters, or why there are none


@dataclass(kw_only=True)
class _Heard:
    """Messages of the launching process so far."""

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
    """The ncu of this machine, the launches of a shape, and the metrics that ncu does not know.

    `expected_s` is the time of one launch, by label.
    """

    progress: Progress
    folder: LaunchFolder = field(init=False)
    path: str = ""
    version: str = ""
    unknown: set[str] = field(default_factory=set)
    expected_s: Mapping[str, float] = field(default_factory=dict)

    def known(self, counters: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in counters if name not in self.unknown)

    def run(
        self, launches: Sequence[CountableLaunch], asked: Sequence[str], heard: _Heard
    ) -> ncu.NcuRun:
        """Count these launches of the folder once; `heard` gets the messages of the process."""
        labels = {launch.marker: launch.label for launch in launches}
        log = self.folder.path / "ncu.log"
        log.unlink(missing_ok=True)

        def on_line(line: str) -> float:
            heard.line(line)
            label = labels.get(heard.begun[-1], "") if heard.begun else ""
            self.progress.detail(f"counters of {label}: {len(heard.begun)} of {len(labels)}")
            return PATIENCE_S + PATIENCE_LAUNCHES * self.expected_s.get(label, 0.0)

        options = [*ncu.counting_options(self.known(asked)), *ncu.AS_RAW_CSV]
        return ncu.run(
            [self.path, *options, "--log-file", str(log), *self.folder.command(list(labels))],
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


@dataclass(kw_only=True)
class Pass:
    """Counts some metrics of launches, in as many runs of ncu as that takes.

    `what` are the metrics, in words. `problem` says why nothing more is counted, with the remedy;
    empty where that is not so.
    """

    profiler: _Profiler
    asked: tuple[str, ...]
    what: str
    problem: str = ""
    counted_any: bool = False
    hopeless: int = 0

    def give_up(self, problem: str) -> None:
        """Count nothing more, for a reason that concerns every launch."""
        self.problem = problem
        self.profiler.progress.notice(f"no {self.what}: {problem}")

    def count(self, launches: Sequence[CountableLaunch]) -> Results:
        """Counters of each launch, or the reason why not; empty if there is a problem for all."""
        if self.problem or not launches:
            return {}
        heard = _Heard()
        try:
            outcome = self.profiler.run(launches, self.asked, heard)
        except OSError as error:  # a full disk, a command that cannot be started
            self.give_up(f"{error}: {EXAMINE}")
            return {}
        if ncu.not_permitted(outcome.everything):
            self.give_up(f"only administrators may read them here: {ncu.ALLOW_COUNTERS}")
            return {}
        kernels = _kernels_of(outcome)
        if not kernels and (lacking := self.profiler.drop_unknown(outcome.everything, self.asked)):
            self.profiler.progress.notice(
                f"hardware counters that this GPU lacks: {', '.join(lacking)}"
            )
            return self.count(launches)
        settled = self._settled(launches, kernels, heard)
        unsettled = [launch for launch in launches if launch.label not in settled]
        return settled | self._rest(unsettled, heard, outcome) if unsettled else settled

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
        source = f"Nsight Compute {'.'.join(self.profiler.version.split('.')[:3])}"
        try:
            result = counted(launch, kernels, asked=self.asked, source=source)
        except CountersError as error:
            return str(error)
        self.counted_any = True
        return result

    def _rest(
        self, unsettled: Sequence[CountableLaunch], heard: _Heard, outcome: ncu.NcuRun
    ) -> Results:
        """Count the launches that a run left out, except the one in which it broke off."""
        reason = _reason(outcome)
        if not heard.begun:
            self.give_up(reason)
            return {}
        culprits = [u for u in unsettled if u.marker == heard.begun[-1] and not heard.ended]
        if not culprits and len(unsettled) > 1:  # ncu lost what it counted: find out of which
            half = len(unsettled) // 2
            return self.count(unsettled[:half]) | self.count(unsettled[half:])
        culprit = culprits[0] if culprits else unsettled[0]
        self.hopeless += 1
        if self.hopeless >= HOPELESS and not self.counted_any:
            self.give_up(reason)
            return {}
        others = [launch for launch in unsettled if launch is not culprit]
        return {culprit.label: reason} | self.count(others)


class Counting:
    """Counts launches, shape by shape; a context manager that keeps them in a folder.

    `problem` says why nothing is counted, with the remedy; empty where that is not so.
    """

    def __init__(self, progress: Progress) -> None:
        self._profiler = _Profiler(progress=progress)
        self._instructions = self._pass(ncu.INSTRUCTIONS, "hardware counters")
        self._has_traffic = True  # until it is counted in vain

    def _pass(self, asked: tuple[str, ...], what: str) -> Pass:
        return Pass(profiler=self._profiler, asked=asked, what=what)

    def __enter__(self) -> Counting:
        profiler = self._profiler
        profiler.folder = LaunchFolder(Path(mkdtemp(prefix="gemm-ladder-")))
        profiler.path = ncu.path() or ""
        if not profiler.path:
            self.give_up(f"there is no ncu on this machine: {ncu.INSTALL}")
            return self
        try:
            profiler.version = ncu.version(profiler.path)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.give_up(f"{profiler.path} does not work ({first_line(error)}): {ncu.INSTALL}")
        return self

    def __exit__(self, *exception: object) -> None:
        shutil.rmtree(self._profiler.folder.path, ignore_errors=True)

    @property
    def problem(self) -> str:
        return self._instructions.problem

    def give_up(self, problem: str) -> None:
        """Count nothing more, for a reason that concerns every launch."""
        self._instructions.give_up(problem)

    def software(self) -> dict[str, str]:
        """Entries for a profile's environment: the version, and the problem if there is one."""
        told = {"Nsight Compute": version} if (version := self._profiler.version) else {}
        return told | ({"Hardware counters": f"none: {self.problem}"} if self.problem else {})

    def count(
        self,
        launches: Sequence[CountableLaunch],
        *,
        seed: int,
        images: Mapping[str, bytes],
        markers: bytes,
        expected_s: Mapping[str, float],
    ) -> Results:
        """Counters of each launch, or the reason why not; empty if there is a problem for all.

        `images` is the machine code of the rungs and `expected_s` the time of one launch, by
        label; `markers` holds the kernels that announce the launches.
        """
        if self.problem:
            return {}
        try:
            self._profiler.folder.add(launches, seed=seed, images=images, markers=markers)
        except OSError as error:
            self.give_up(f"{error}: {EXAMINE}")
            return {}
        self._profiler.expected_s = expected_s
        results = self._instructions.count(launches)
        return results | self._with_traffic(launches, results)

    def _with_traffic(
        self, launches: Sequence[CountableLaunch], results: Results
    ) -> dict[str, Counted]:
        """Counted launches with their traffic, which is counted again for these launches only.

        A failure here costs only the traffic counters; after the first pass it costs nothing.
        """
        so_far = {label: r for label, r in results.items() if isinstance(r, Counted)}
        again = [launch for launch in launches if launch.label in so_far]
        traffic = f"counters from {ncu.TRAFFIC[0]} to {ncu.TRAFFIC[-1]}"
        found: list[Results] = []
        while again and not self.problem and self._has_traffic and len(found) < ncu.TRAFFIC_TIMES:
            one = self._pass(ncu.TRAFFIC, f"further {traffic}" if found else traffic)
            counts = one.count(again)
            self._has_traffic = bool(found) or not one.problem
            found.append(counts)
            again = [x for x in again if isinstance(counts.get(x.label), Counted)]
        joined = {}
        for label, first in so_far.items():
            then = middle([one.get(label) for one in found])
            if isinstance(then, str):
                self._profiler.progress.notice(f"no {traffic} of {label}: {then}")
            joined[label] = _joined(first, then, ncu.TRAFFIC)
        return joined


def _kernels_of(outcome: ncu.NcuRun) -> dict[str, list[ncu.ProfiledKernel]]:
    """The kernels by the launch that they belong to; none of a table that was cut short."""
    with suppress(CountersError):
        return by_marker(ncu.kernels_in(outcome.log))
    return {}


def middle(found: Sequence[Counted | str | None]) -> Counted | str | None:
    """Median of each counter over several counts of one launch, if it was counted each time.

    If the launch was never counted: the first known reason.
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
    """Counters of a launch from all runs; if the second run failed, its counters are missing."""
    if not isinstance(then, Counted):
        return replace(first, missing=(*first.missing, *asked))
    return replace(
        first, counters=first.counters | then.counters, missing=(*first.missing, *then.missing)
    )


def _reason(outcome: ncu.NcuRun) -> str:
    """Reason why a run did not count everything: from ncu, the program, or its exit status."""
    if outcome.timed_out:
        return "ncu took too long and was stopped"
    own = (BEGINS, FAILS, ENDS)
    said = [line for line in outcome.output.splitlines() if line and not line.startswith(own)]
    last = said[-1].removeprefix("error: ") if said else ""
    return ncu.complaint_in(outcome.everything) or last or f"ncu ended with {outcome.returncode}"
