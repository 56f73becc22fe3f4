"""Checks the parts of predicted times: of kernels with flaws, at a roof, and of rungs.

python -m benchmarks.parts_of_times [--device KEY] [--workers 16] [--json FILE]

Parts and the remainder sum to the time, no part is negative, and no named cause is below 2%. It
prints each launch whose remainder is above 10% of the time, and counts the others.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import isclose, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analysis.errors import ToolkitError
from analysis.timing.predicted import NAMED, Effect, Predicted
from benchmarks.report_speed import KERNELS, LAUNCHES
from kernels.ladder import LADDER
from reports.sections.answer import cause_of
from toolkit.execution.simulate import simulate

if TYPE_CHECKING:
    from validation.flaws.cases import Flaw, Roof

MOST_REMAINDER = 0.1  # of the time
SHAPES = (512, 1024, 4096)


class Parts(NamedTuple):
    """A launch: its time, the share of the remainder, and what is wrong with its parts."""

    group: str
    name: str
    time_s: float
    remainder: float
    wrong: str


def checked(group: str, name: str, found: Predicted) -> Parts:
    costs = found.costs
    remainder_s = sum(one.time_s for one in costs if one.effect == Effect.REMAINDER)
    cause, wrong = cause_of(found), []
    if not isclose(sum(one.time_s for one in costs), found.time_s, rel_tol=1e-6):
        wrong.append("parts do not sum to the time")
    if any(one.time_s < 0 or one.alone_s < 0 for one in costs):
        wrong.append("negative part")
    if (cause and cause.time_s < NAMED * found.time_s) or any(
        one.share < NAMED for one in found.causes
    ):
        wrong.append("a cause below 2% is named")
    if found.causes and found.causes[0].cause == Effect.REMAINDER:
        wrong.append("the remainder is the first cause")
    above = [one.name for one in found.bounds if one.time_s > found.time_s * (1 + 1e-6)]
    if above:
        wrong.append(f"bound above the time: {', '.join(above)}")
    return Parts(group, name, found.time_s, remainder_s / found.time_s, "; ".join(wrong))


def _argument(text: str) -> Any:
    """A value of `LAUNCHES`: 'f32[4096,64]', 'f32[1]=zeros' or 'i32=64'."""
    if text.startswith("i32="):
        return np.int32(text[4:])
    sizes = re.findall(r"\d+", text.partition("[")[2].partition("]")[0])
    count = prod(map(int, sizes))
    if text.endswith("=zeros"):
        return np.zeros(count, np.float32)
    return np.random.default_rng(1).random(count, np.float32)


def of_users_kernel(name: str, device: str) -> Predicted | None:
    kernel, grid, block, *arguments = LAUNCHES[name].split()
    source = next(file for file in KERNELS.iterdir() if f" {kernel}(" in file.read_text())
    return simulate(
        source,
        kernel=kernel,
        grid=[int(size) for size in grid.split(",")],
        block=[int(size) for size in block.split(",")],
        arguments=[_argument(one) for one in arguments],
        device=device,
        blocks="representative",
    ).predicted


def _flaws_and_roofs() -> tuple[list[Flaw], list[Roof]]:
    """Kernels with a flaw, and kernels at a roof, of all sets."""
    from validation.flaws.cases import FLAWS, HELD_OUT_SETS, ROOFS  # fills arrays of gigabytes

    sets = HELD_OUT_SETS.values()
    flaws = [*FLAWS, *(one for of, _ in sets for one in of)]
    return flaws, [*ROOFS, *(one for _, of in sets for one in of)]


def launch_names() -> list[tuple[str, str]]:
    """Group and name of each launch."""
    flaws, roofs = _flaws_and_roofs()
    rungs = [f"{rung.name}:{shape}" for shape in SHAPES for rung in LADDER]
    groups = {
        "flaws": [one.kernel for one in flaws],
        "roofs": [one.kernel for one in roofs],
        "users' kernels": list(LAUNCHES),
        "rungs": rungs,
    }
    return [(group, name) for group, names in groups.items() for name in names]


def parts_of(device: str, launch: tuple[str, str]) -> Parts:
    group, name = launch
    flaws, roofs = _flaws_and_roofs()
    try:
        if group == "flaws":
            flaw = next(one for one in flaws if one.kernel == name)
            found: Predicted | None = flaw.predicted(device, is_fixed=False)
        elif group == "roofs":
            roof = next(one for one in roofs if one.kernel == name)
            launch_of = {**roof.launch, "device": device, "blocks": "representative"}
            found = simulate(roof.source, **launch_of).predicted
        elif group == "rungs":
            rung, _, shape = name.partition(":")
            found = simulate(rung, shape=int(shape), device=device).predicted
        else:
            found = of_users_kernel(name, device)
    except ToolkitError as error:
        return Parts(group, name, 0.0, 0.0, f"not predicted: {error}")
    return checked(group, name, found) if found else Parts(group, name, 0.0, 0.0, "no time")


def main(device: str, workers: int, file: Path | None, launches: Sequence[tuple[str, str]]) -> None:
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(partial(parts_of, device), launches))
    for one in found:
        if one.wrong or one.remainder > MOST_REMAINDER:
            print(f"{one.group}: {one.name}: {one.remainder:.1%} remainder. {one.wrong}")
    for group in dict.fromkeys(one.group for one in found):
        of = [one for one in found if one.group == group]
        few = sum(one.remainder <= MOST_REMAINDER for one in of)
        right = sum(not one.wrong for one in of)
        print(f"{group}: {len(of)}; remainder at most 10%: {few}; parts as they should be: {right}")
    if file:
        file.write_text(json.dumps([one._asdict() for one in found], indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", help="launches whose name has this")
    given = parser.parse_args()
    chosen = [one for one in launch_names() if (given.only or "") in one[1]]
    main(given.device, given.workers, given.json, chosen)
