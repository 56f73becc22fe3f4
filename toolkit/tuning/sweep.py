"""A sweep by Kernel Tuner, in processes of their own, until every configuration has its outcome.

A process that breaks off costs the configurations that it had begun and not finished: where it was
one, that one failed; where several workers were at it, each of these is run alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.errors import InputError, LaunchError, UnavailableError, UnknownNameError
from toolkit.gpu.nsight_compute.ncu import Outcome, run
from toolkit.gpu.nsight_compute.replay_process import process_environment
from toolkit.launch.progress import Progress
from toolkit.tuning.cache import Known, SweepCache
from toolkit.tuning.request import BEGINS, BREAKS, BRUTE_FORCE, FAILS, STOPS, Request, key_of

# Compiling takes seconds and a launch far less; nobody waits for a kernel that hangs for ever.
PATIENCE_S = 180.0
_EVENT = re.compile(rf"\b({BEGINS}|{FAILS}|{BREAKS}|{STOPS}) (.*)")
_RAY_COLOUR = re.compile(r"\x1b\[\d*m")

INSTALL = "pip install '.[tune]'"


def check_available(strategy: str, workers: int | None) -> None:
    """Raise UnavailableError where Kernel Tuner, or Ray for workers, is not installed.

    Raises UnknownNameError for a strategy that Kernel Tuner does not have.
    """
    if find_spec("kernel_tuner") is None:
        raise UnavailableError(f"Kernel Tuner is not installed: {INSTALL}")
    if workers is not None and find_spec("ray") is None:
        raise UnavailableError("--workers needs Ray, which is not installed: pip install ray")
    from kernel_tuner.interface import strategy_map

    if strategy not in strategy_map:
        raise UnknownNameError("--strategy", strategy, strategy_map)


def sweep(request: Request, cache: SweepCache, progress: Progress) -> dict[str, Known]:
    """What is known of the configurations afterwards, by key; earlier runs' results count.

    Raises InputError where the cache cannot be written, LaunchError where Kernel Tuner stops
    without a configuration to blame.
    """
    alone: list[dict[str, int]] = []
    while missing := _missing(request, cache, alone):
        heard = _run(replace(request, configurations=tuple(missing)), cache, progress)
        if heard.ended_well:
            break
        alone += _blamed(heard, missing, cache)
    for one in alone:
        single = replace(request, configurations=(one,), workers=None, strategy=BRUTE_FORCE)
        heard = _run(single, cache, progress)
        if not heard.ended_well:
            _blamed(heard, [one], cache)
    return cache.known()


@dataclass(kw_only=True)
class _Heard:
    """What a process of a sweep has said."""

    begun: list[str] = field(default_factory=list)
    stopped: str | None = None
    ended_well: bool = False
    reason: str = ""


def _missing(
    request: Request, cache: SweepCache, alone: list[dict[str, int]]
) -> list[dict[str, int]]:
    known = cache.known()
    return [one for one in request.configurations if key_of(one) not in known and one not in alone]


def _blamed(heard: _Heard, asked: list[dict[str, int]], cache: SweepCache) -> list[dict[str, int]]:
    """The configurations to be run alone; a single culprit has failed, and is noted so."""
    if heard.stopped is not None:
        raise InputError(f"the sweep cannot go on: {heard.stopped}")
    known = cache.known()
    by_key = {key_of(one): one for one in asked}
    unfinished = [key for key in dict.fromkeys(heard.begun) if key in by_key and key not in known]
    if not unfinished:
        raise LaunchError(f"Kernel Tuner stopped: {heard.reason}")
    if len(unfinished) > 1:
        return [by_key[key] for key in unfinished]
    cache.fail(unfinished[0], heard.reason)
    return []


def _run(request: Request, cache: SweepCache, progress: Progress) -> _Heard:
    """One process over the configurations of `request`."""
    heard = _Heard()

    def on_line(line: str) -> float:
        event = _EVENT.search(_RAY_COLOUR.sub("", line))
        if event is not None:
            word, _, rest = event[0].partition(" ")
            if word == BEGINS and rest not in heard.begun:  # the first one warms up first
                progress.step(f"measure {rest}")
            _hear(heard, cache, word, rest)
        return PATIENCE_S

    with TemporaryDirectory(prefix="gemm-ladder-") as folder:
        asked = Path(folder) / "request.json"
        request.save(asked)
        outcome = run(
            [sys.executable, "-m", "toolkit.tuning.worker", str(asked)],
            log=Path(folder) / "none",
            on_line=on_line,
            patience_s=PATIENCE_S,
            environment=_environment(),
        )
    heard.ended_well = outcome.returncode == 0 and not outcome.timed_out
    heard.reason = heard.reason or _reason(outcome)
    return heard


def _hear(heard: _Heard, cache: SweepCache, word: str, rest: str) -> None:
    key, _, reason = rest.partition(" ")
    if word == STOPS:
        heard.stopped = rest
    elif word == BREAKS:
        heard.reason = rest
    elif word == BEGINS:
        heard.begun.append(key)
    else:
        cache.fail(key, reason)


def _environment() -> Mapping[str, str]:
    """That of a launching process; Ray prints every line of its workers, and tells nobody."""
    ray = {"RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    return {**ray, **process_environment()}


def _reason(outcome: Outcome) -> str:
    """Why a process ended early that could not say so itself: its last line."""
    if outcome.timed_out:
        return f"it took more than {PATIENCE_S:.0f} s and was stopped"
    said = [line.strip() for line in outcome.output.splitlines() if not _EVENT.search(line)]
    last = [line for line in said if line][-1:]
    return f"its process ended with {outcome.returncode}{''.join(f': {line}' for line in last)}"
