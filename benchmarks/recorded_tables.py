"""The tables of docs/against_cublas.md and docs/validation.md that come from the recorded runs.

    python -m benchmarks.recorded_tables

A test compares what this prints with what stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from analysis.problem import Gemm
from analysis.records.profile import Profile, Record
from kernels.ladder import BEST
from reports import text
from reports.ladder import View, measurement, shapes
from toolkit.store.recorded_runs import recorded_run

SHORT_S = 15e-6  # launches that are little more than their own cost
SQUARE = Gemm(m=4096, n=4096, k=4096)


def rungs_table(run: Profile) -> str:
    """Every variant at 4096: rate, share of cuBLAS, roof."""
    rows = ["| rung | TFLOP/s | of cuBLAS | roof (theory) |", "|---|---|---|---|"]
    for record in View(run, SQUARE).records:
        if measured := measurement(record):
            ratio, theory = measured.relative_to_cublas, record.theory
            cells = (
                f"`{record.label}`",
                _tera(measured.flop_per_s),
                text.percent(ratio.median) if ratio else "–",
                _tera(theory.attainable_flop_per_s) if theory else "–",
            )
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def roofs_table(run: Profile) -> str:
    """Measured over the lowest roof, every rung at every shape."""
    found = {(record.label, record.shape): record for record in run.records}
    labels = [r.label for r in View(run, SQUARE).records if r.theory and measurement(r)]
    heads = [text.shape(shape) for shape in shapes(run)]
    rows = [f"| rung | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for label in labels:
        shares = [_share(found.get((label, shape))) for shape in shapes(run)]
        rows.append(f"| {label} | {' | '.join(shares)} |")
    return "\n".join(rows)


def predictions_table(runs: Sequence[Profile]) -> str:
    """Predicted over measured, every rung at every shape, a number for each run."""
    found = [{(record.label, record.shape): record for record in run.records} for run in runs]
    labels = [
        r.label for r in View(runs[0], SQUARE).records if r.predicted and r.label != BEST.name
    ]
    heads = [text.shape(shape) for shape in shapes(runs[0])]
    rows = [f"| rung | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for label in labels:
        cells = [
            " / ".join(_off(records.get((label, shape))) for records in found)
            for shape in shapes(runs[0])
        ]
        rows.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(rows)


def prediction_errors(run: Profile) -> list[float]:
    """Relative errors of predicted times against measured times of at least 15 µs."""
    return [
        abs(record.predicted.time_s / record.measured.median_s - 1)
        for record in run.records
        if record.label != BEST.name
        and record.predicted
        and record.measured
        and record.measured.median_s >= SHORT_S
    ]


def _off(record: Record | None) -> str:
    if record is None or record.predicted is None or record.measured is None:
        return "–"
    is_short = record.measured.median_s < SHORT_S
    return f"{record.predicted.time_s / record.measured.median_s:.2f}{'†' if is_short else ''}"


def _share(record: Record | None) -> str:
    measured = record and measurement(record)
    if not record or not measured or not record.theory:
        return "–"
    return f"{100 * measured.flop_per_s / record.theory.attainable_flop_per_s:.0f}%"


def _tera(flop_per_s: float) -> str:
    return f"{flop_per_s / 1e12:.2f}"


if __name__ == "__main__":
    h100, h200 = recorded_run("h100-sxm"), recorded_run("h200")
    assert h100 is not None
    assert h200 is not None
    print(rungs_table(h200), roofs_table(h200), predictions_table((h100, h200)), sep="\n\n")
    for run in (h100, h200):
        errors = prediction_errors(run)
        print(f"{run.device.name}: {len(errors)} launches, mean error {mean(errors):.1%}")
