"""Tables of the flaws, with the cause and the remedy that are named, and of kernels at a roof.

docs/validation.md has what it prints; a cross marks what is not as expected or as measured.

python -m validation.flaws [--device KEY] [--kernel NAME]    predicted, beside what was measured
python -m validation.flaws --workers 16                      by so many processes
python -m validation.flaws --held-out [2|3]                  those that tuned nothing, by set
python -m validation.flaws --measure FILE                    on a GPU: adds measured times to FILE
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from analysis.devices import find_device
from analysis.errors import ToolkitError
from analysis.records.remedy import Remedy
from analysis.timing.predicted import Cost, Effect, Predicted
from reports.sections.answer import cause_of
from toolkit.execution.simulate import simulate
from toolkit.gpu.context import gpu_here
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.remedies.find import remedies_of
from toolkit.remedies.kernel_launch import KernelLaunch
from validation import recordings
from validation.flaws.cases import (
    FAST_SGEMM,
    FLAWS,
    FOURTH_HELD_OUT_ROOFS,
    FOURTH_TIMED,
    HELD_OUT_SETS,
    PROGRAMS,
    ROOFS,
    Flaw,
    Roof,
)

RECORDED = Path(__file__).parent / "recorded"
SAMPLES = 20
CLOSE = 0.3  # relative, of a predicted saving to the measured one
NAMED = 0.02  # of the time: no cause or remedy below it is offered
NOT_AVOIDABLE = (Effect.LAUNCH, Effect.REMAINDER)


def named_causes(predicted: Predicted) -> list[Effect]:
    """The largest part of a time, and the largest that can be avoided: those that are named."""
    parts = [one for one in predicted.costs if one.effect not in NOT_AVOIDABLE]
    first = max(parts, key=lambda one: one.time_s)
    avoidable = [one for one in parts if not one.is_roof]
    return [first.effect, *(one.effect for one in sorted(avoidable, key=lambda x: -x.time_s)[:1])]


def largest(predicted: Predicted) -> Cost:
    """The largest part of a time."""
    return max(predicted.costs, key=lambda one: one.time_s)


def examined(
    source: Path, launch: Mapping[str, Any], device: str
) -> tuple[Predicted, tuple[Remedy, ...]]:
    """Predicted time of a launch, and its remedies, the largest saving first."""
    chosen = find_device(device)
    x, y, z = (*launch["grid"], 1, 1)[:3]
    i, j, k = (*launch["block"], 1, 1)[:3]
    asked = KernelLaunch(
        text=source.read_text(encoding="utf-8"),
        name=source.name,
        folder=source.parent,
        kernel=launch["kernel"],
        grid=(x, y, z),
        block=(i, j, k),
        arguments=launch["arguments"],
        device=chosen,
        arch=chosen.sm_arch,
        defines=launch.get("defines", {}),
        seed=1,
    )
    execution = asked.simulated(asked.compiled())
    assert execution.predicted is not None
    return execution.predicted, remedies_of(asked, execution).found


def measure(file: Path) -> None:
    """Measure the pairs that `file` lacks; those that it has, of the same GPU, stay."""
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    gpu = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    known: dict[str, Any] = {"gpu": gpu, "times_us": {}}
    if file.exists():
        known = json.loads(file.read_text())
    if known["gpu"] != gpu:
        sys.exit(f"{file} was measured on {known['gpu']}, and this is {gpu}: give another file")
    times = known["times_us"]
    for flaw in (*FLAWS, *(one for flaws, _ in HELD_OUT_SETS.values() for one in flaws)):
        if flaw.kernel in times:
            continue
        pair = []
        for is_fixed in (False, True):
            pair.append(_measured_us(flaw.source, flaw.launch(is_fixed=is_fixed)))
        times[flaw.kernel] = pair
        print(f"{flaw.kernel:18} {pair[0]:9.2f} {pair[1]:9.2f} µs", flush=True)
        recordings.write(file, known)
    for one in (*FOURTH_HELD_OUT_ROOFS, *FOURTH_TIMED):
        if one.kernel in times:
            continue
        times[one.kernel] = [_measured_us(one.source, one.launch)]
        print(f"{one.kernel:18} {times[one.kernel][0]:9.2f} µs", flush=True)
        recordings.write(file, known)


def _measured_us(source: Path, launch: Mapping[str, Any]) -> float:
    from toolkit import run

    how = {key: launch[key] for key in ("grid", "block", "arguments")}
    if source.parent == PROGRAMS:  # the kernel may be a template
        kernel = compile_kernel(
            source, launch["kernel"], target=gpu_here().device, defines=launch["defines"]
        )
        found = run(kernel, **how, samples=SAMPLES)
    else:
        defines = launch.get("defines")
        found = run(source, launch["kernel"], **how, defines=defines, samples=SAMPLES)
    return 1e6 * median(found.samples_s)


class Row(NamedTuple):
    """A row of a table, and whether cause, first remedy and saving, or the roof, are right."""

    text: str
    right: tuple[bool, ...]


def compare(device: str, chosen: Sequence[Flaw], pool: ProcessPoolExecutor) -> None:
    path = RECORDED / f"{device}.json"
    measured = json.loads(path.read_text())["times_us"] if path.exists() else {}
    print(
        "| kernel | cause | predicted, µs | measured, µs | saving, predicted / measured | "
        "first remedy |\n|---|---|---|---|---|---|"
    )
    right = []
    for row in pool.map(partial(_compared, device, measured), chosen):
        print(row.text, flush=True)
        right.append(row.right)
    causes, remedies, close = (sum(one[k] for one in right) for k in range(3))
    known = sum(1 for flaw in chosen if flaw.kernel in measured)
    print(
        f"causes right: {causes} of {len(chosen)}; first remedies right: {remedies}; savings "
        f"within {CLOSE:.0%}: {close} of {known}"
    )


def _arrow(before_us: float, after_us: float) -> str:
    return f"{before_us:,.1f} → {after_us:,.1f}"


def _compared(device: str, measured: Mapping[str, list[float]], flaw: Flaw) -> Row:
    times_us = measured.get(flaw.kernel)
    try:
        before, remedies = examined(flaw.source, flaw.launch(is_fixed=False), device)
        after = flaw.predicted(device, is_fixed=True)
    except ToolkitError as error:
        return Row(f"| {flaw.kernel} | ✗ not predicted: {error} | | | | |", (False, False, False))
    named = named_causes(before)
    is_right = bool(flaw.causes & set(named))
    cause = next((one for one in named if one in flaw.causes), named[0])
    first = remedies[0] if remedies else None
    is_remedy = first is not None and first.effect in flaw.causes
    saved = 1e6 * (before.time_s - after.time_s)
    is_close, times, savings = False, "", f"{saved:.1f}"
    if times_us:
        own = times_us[0] - times_us[1]
        is_close = abs(saved - own) <= CLOSE * abs(own)
        times = _arrow(*times_us)
        savings += f" / {own:.1f}{'' if is_close else ' ✗'}"
    remedy = "✓" if is_remedy else f"✗ {first.title if first else 'none'}"
    predicted = _arrow(1e6 * before.time_s, 1e6 * after.time_s)
    shown = f"{'' if is_right else '✗ '}{cause}"
    text = f"| {flaw.kernel} | {shown} | {predicted} | {times} | {savings} | {remedy} |"
    return Row(text, (is_right, is_remedy, is_close))


def compare_roofs(
    device: str,
    chosen: Sequence[Roof],
    rungs: Sequence[tuple[str, int]],
    pool: ProcessPoolExecutor,
) -> None:
    right = 0
    print("| kernel | predicted, µs | largest part | named beside it |\n|---|---|---|---|")
    for row in pool.map(partial(_roof_row, device), [*chosen, *rungs]):
        print(row.text, flush=True)
        right += all(row.right)
    print(f"at their roof, with no cause and no remedy: {right} of {len(chosen) + len(rungs)}")


def _roof_row(device: str, one: Roof | tuple[str, int]) -> Row:
    if isinstance(one, Roof):
        found, remedies = examined(one.source, one.launch, device)
        return _at_roof(one.kernel, found, one.roofs, remedies)
    name, shape = one
    rung = simulate(name, shape=shape, device=device).predicted
    assert rung is not None
    return _at_roof(name, rung, frozenset({Effect.FP32_PIPE}), ())


def _at_roof(
    name: str, found: Predicted, roofs: frozenset[Effect], remedies: tuple[Remedy, ...]
) -> Row:
    """Right if a roof is the largest part, without cause or remedy beside it."""
    first, cause = largest(found), cause_of(found)
    offered = [x for x in remedies if x.saved_s is None or x.saved_s > NAMED * found.time_s]
    is_right = first.effect in roofs and cause is None and not offered
    also = [f"{cause.effect} {cause.time_s / found.time_s:.1%}"] if cause else []
    beside = "; ".join([*also, *(one.title for one in offered)])
    share = f"{first.effect}, {first.time_s / found.time_s:.1%}"
    mark = "" if is_right else "✗ "
    return Row(f"| {name} | {1e6 * found.time_s:,.1f} | {mark}{share} | {beside} |", (is_right,))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--device", default="h200")
parser.add_argument("--kernel")
parser.add_argument("--held-out", type=int, nargs="?", const=1, choices=HELD_OUT_SETS)
parser.add_argument("--measure", type=Path)
parser.add_argument("--workers", type=int, default=1)
if __name__ != "__main__":
    pass  # a worker
elif (given := parser.parse_args()).measure:
    measure(given.measure)
else:
    flaws: Sequence[Flaw] = FLAWS
    roofs: Sequence[Roof] = ROOFS
    rungs: Sequence[tuple[str, int]] = FAST_SGEMM
    if given.held_out:
        (flaws, roofs), rungs = HELD_OUT_SETS[given.held_out], ()
    if given.kernel is not None:
        flaws = [one for one in flaws if one.kernel == given.kernel]
        roofs = [one for one in roofs if one.kernel == given.kernel]
        rungs = [one for one in rungs if one[0] == given.kernel]
    with ProcessPoolExecutor(given.workers) as workers:
        compare(given.device, flaws, workers)
        compare_roofs(given.device, roofs, rungs, workers)
