"""The tables of README.md and docs/validation.md that come from the recorded run on an H200.

    python benchmarks/recorded_tables.py

A test compares what this prints with what stands there.
"""

from __future__ import annotations

from analysis.problem import Gemm
from analysis.result import Profile, Record
from reports import text
from reports.ladder import measurement, records_at, shapes
from toolkit.recorded import recorded_run

SQUARE = Gemm(m=4096, n=4096, k=4096)


def readme_table(run: Profile) -> str:
    """Every variant at 4096: rate, share of cuBLAS, roof."""
    rows = ["| rung | TFLOP/s | of cuBLAS | roof (theory) |", "|---|---|---|---|"]
    for record in records_at(run, SQUARE):
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
    labels = [r.label for r in records_at(run, SQUARE) if r.theory and measurement(r)]
    heads = [text.shape(shape) for shape in shapes(run)]
    rows = [f"| rung | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for label in labels:
        shares = [_share(found.get((label, shape))) for shape in shapes(run)]
        rows.append(f"| {label} | {' | '.join(shares)} |")
    return "\n".join(rows)


def _share(record: Record | None) -> str:
    measured = record and measurement(record)
    if not record or not measured or not record.theory:
        return "–"
    return f"{100 * measured.flop_per_s / record.theory.attainable_flop_per_s:.0f}%"


def _tera(flop_per_s: float) -> str:
    return f"{flop_per_s / 1e12:.2f}"


if __name__ == "__main__":
    recorded = recorded_run("h200")
    assert recorded is not None
    print(readme_table(recorded), roofs_table(recorded), sep="\n\n")
