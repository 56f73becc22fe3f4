"""How far predicted times are from those that were measured on an H200. Needs no GPU.

    python benchmarks/prediction_errors.py                       # a table per part
    python benchmarks/prediction_errors.py --json errors.json    # and what stands in it

The part "kernels": the launches of `tests/timing/timed_launches.py`, simulated for the device of
tests/timing/recorded/ and compared with the times there. The model takes L2 as flushed; times with
a warm one stand beside. What is not predicted, or takes longer to simulate than `--limit-s`, is
listed with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests" / "timing"))
from timed_launches import LAUNCHES, OPTIONS, Case, rng

from analysis.errors import ToolkitError
from toolkit.simulator import simulate

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "timing" / "recorded" / "times_h200.json"
LIMIT_S = 20.0
# of a warp: what the slowest core of these machines executes in a second, at the least
INSTRUCTIONS_PER_S = 10**7

Cell = dict[str, Any]


class TakesTooLongError(Exception):
    """A launch that is not worth waiting for."""


def recorded() -> Mapping[str, Any]:
    """The times that a GPU took."""
    document: Mapping[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return document


def measured(times: Mapping[str, Any], kind: str) -> dict[str, dict[str, float]]:
    """The medians of one kind of launch, by label and state of L2."""
    found: dict[str, dict[str, float]] = {}
    for cell in times["cells"]:
        if cell["kind"] == kind and "median_s" in cell:
            found.setdefault(cell["label"], {})[cell["l2"]] = cell["median_s"]
    return found


def kernels(limit_s: float = LIMIT_S) -> Iterator[Cell]:
    """Each launch of the table of which a time was recorded, predicted."""
    times = recorded()
    found = measured(times, "kernel")
    for case in LAUNCHES:
        if case.name in found:
            yield {"label": case.name, **_predicted(case, times["device"], limit_s)} | {
                f"measured_{l2}_s": median_s for l2, median_s in found[case.name].items()
            }


def _predicted(case: Case, device: str, limit_s: float) -> Cell:
    started = time.monotonic()

    def advance(done: int, of: int) -> None:
        if time.monotonic() - started > limit_s:
            raise TakesTooLongError

    try:
        execution = simulate(
            ROOT / "tests" / "corpus" / case.file,
            case.kernel,
            grid=case.grid,
            block=case.block,
            dynamic_shared_bytes=case.dynamic_shared_bytes,
            arguments=case.make(rng()),
            options=OPTIONS,
            device=device,
            advance=advance,
            max_instructions=int(limit_s * INSTRUCTIONS_PER_S),
        )
    except TakesTooLongError:
        return {"left_out": f"its simulation takes more than {limit_s:g} s"}
    except ToolkitError as error:
        return {"left_out": str(error)}
    if execution.predicted is None:
        return {"left_out": execution.prediction_basis}
    found = execution.predicted
    return {
        "predicted_s": found.time_s,
        "limiter": found.limiter,
        "limiter_share": found.limiter_share,
        "next_limiter": found.next_limiter,
        "next_share": found.next_share,
        "bounds_s": {bound.name: bound.time_s for bound in found.bounds},
        "basis": execution.prediction_basis,
    }


def ratio(cell: Cell, l2: str = "flushed") -> float | None:
    """Predicted over measured, None where one of them is not there."""
    seen = cell.get(f"measured_{l2}_s")
    return cell["predicted_s"] / seen if seen and "predicted_s" in cell else None


def mean_error(cells: Sequence[Cell], l2: str = "flushed") -> float:
    """The mean of |ratio - 1|."""
    errors = [abs(found - 1) for cell in cells if (found := ratio(cell, l2)) is not None]
    return sum(errors) / len(errors)


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """One line per launch, the mean error, and what was left out."""
    yield f"{'':31}predicted  flushed  ratio     warm  ratio  limiter, share (µs)"
    shown = [cell for cell in cells if "predicted_s" in cell]
    for cell in shown:
        columns = [f"{cell['label']:31}{cell['predicted_s'] * 1e6:9.1f}"]
        for l2 in ("flushed", "warm"):
            found = ratio(cell, l2)
            columns.append(
                f"{cell[f'measured_{l2}_s'] * 1e6:9.1f}{found:7.2f}" if found else " " * 16
            )
        yield f"{''.join(columns)}  {cell['limiter']}, {cell['limiter_share']:.0%}"
    if shown:
        yield (
            f"mean absolute error of {len(shown)}: {mean_error(shown):.1%} against flushed, "
            f"{mean_error(shown, 'warm'):.1%} against warm"
        )
    for cell in cells:
        if "left_out" in cell:
            yield f"left out: {cell['label']}: {cell['left_out']}"


PARTS: dict[str, Callable[[float], Iterator[Cell]]] = {"kernels": kernels}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, help="one of the parts")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="of each simulation")
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(argv)
    parts = [chosen.part] if chosen.part else list(PARTS)
    document: dict[str, list[Cell]] = {}
    for part in parts:
        document[part] = list(PARTS[part](chosen.limit_s))
        print("\n".join(table(document[part])), flush=True)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
