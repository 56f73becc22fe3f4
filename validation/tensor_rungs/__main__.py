"""Tables of the rungs on tensor cores, as an H200 measured them.

    python -m validation.tensor_rungs                        prints the tables
    python -m validation.tensor_rungs record PROFILE ...     makes the recording from profiles
    python -m validation.tensor_rungs predict                predicts the recorded times again

A profile is a record of `python -m toolkit profile --executor gpu --accuracy`; a JSON file of
`python -m benchmarks.sustained` is taken too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.problem import Gemm
from analysis.product_errors import DATA_CLASSES
from analysis.records.profile import Profile, Record
from reports import text
from toolkit import profile
from toolkit.store.profile_json import load
from validation import recordings

RECORDING = Path(__file__).with_name("recorded") / "h200.json"
TENSOR = ("tf32-parts", "fp16-parts", "best-fp32x")
TERA = 1e12
LARGE = Gemm(m=2048, n=2048, k=2048)  # of the table of errors


def recorded(paths: list[Path]) -> dict[str, Any]:
    """The recording of some profiles and rates."""
    times: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    found: dict[str, Any] = {"about": {}, "times": times, "errors": errors, "rates": []}
    for path in paths:
        document = json.loads(path.read_text(encoding="utf-8"))
        if "rows" in document:
            found["rates"] += [{"shape": document["shape"], **row} for row in document["rows"]]
            continue
        made = load(path)
        found["about"] = _about(made)
        times += [row for one in made.records if (row := _time(one))]
        errors += [row for one in made.records for row in _errors(one)]
    return found


def predicted_again(found: dict[str, Any]) -> dict[str, Any]:
    """A recording with the times that the model predicts now for the rungs on tensor cores."""
    times = [
        row | {"predicted_s": _predicted_s(row["label"], row["shape"])}
        if row["label"] in TENSOR and row["predicted_s"] is not None
        else row
        for row in found["times"]
    ]
    return found | {"times": times}


def _predicted_s(label: str, shape: str) -> float:
    done = profile(shapes=[shape], variants=[label], device="h200", executor="simulate", seed=1)
    predicted = done.records[0].predicted
    assert predicted is not None
    return predicted.time_s


def _about(made: Profile) -> dict[str, Any]:
    return {
        "device": made.device.name,
        "created": made.created,
        "seed": made.seed,
        "software": made.environment.software,
    }


def _time(record: Record) -> dict[str, Any] | None:
    measured, predicted = record.trusted, record.trusted_prediction
    if measured is None:
        return None
    return {
        "label": record.label,
        "shape": str(record.shape),
        "measured_s": measured.median_s,
        "samples": len(measured.samples_s),
        "predicted_s": predicted.time_s if predicted else None,
        "of_cublas": measured.relative_to_cublas.median if measured.relative_to_cublas else None,
    }


def _errors(record: Record) -> Iterator[dict[str, Any]]:
    for one in record.errors:
        yield {
            "label": record.label,
            "shape": str(one.shape),
            "data": one.data,
            "elements": one.elements,
            "rms": one.rms,
            "maximum": one.maximum,
        }


def tables(found: dict[str, Any]) -> Iterator[str]:
    """Lines of the tables of times, rates and errors."""
    yield f"{found['about']['device']}, single launches, L2 dirty"
    yield f"{'rung':12} {'shape':>14} {'measured':>9} {'predicted':>9} {'off':>7} {'of cuBLAS':>9}"
    rungs = [row for row in found["times"] if row["label"] in TENSOR]
    for row in sorted(rungs, key=lambda row: (TENSOR.index(row["label"]), row["measured_s"])):
        yield _line_of_time(row)
    yield ""
    yield f"{'TFLOP/s':12} {'shape':>14} {'burst':>9} {'sustained':>9}"
    for row in found["rates"]:
        burst, sustained = row["burst_flop_per_s"] / TERA, row["sustained_flop_per_s"] / TERA
        yield f"{row['name']:12} {row['shape']:>14} {burst:9.1f} {sustained:9.1f}"
    yield ""
    yield f"{'rms, ' + str(LARGE):18}" + "".join(f"{name:>12}" for name in (*TENSOR, "cublas"))
    for data in DATA_CLASSES:
        yield f"{data:18}" + "".join(
            f"{text.relative_error(rms):>12}" for rms in _rms(found, data, str(LARGE))
        )


def _line_of_time(row: dict[str, Any]) -> str:
    measured, predicted = row["measured_s"], row["predicted_s"]
    foreseen = f"{text.predicted_seconds(predicted):>9}" if predicted else f"{'':9}"
    off = f"{100 * (predicted / measured - 1):+6.1f}%" if predicted else f"{'':7}"
    share = f"{100 * row['of_cublas']:8.0f}%" if row["of_cublas"] else ""
    return (
        f"{row['label']:12} {row['shape']:>14} {text.seconds(measured):>9} {foreseen} {off} {share}"
    )


def _rms(found: dict[str, Any], data: str, shape: str) -> list[float | None]:
    """Errors of a class. Profiles may share a label, such as cuBLAS, if they agree on its error."""
    by_label: dict[str, float] = {}
    for row in found["errors"]:
        if (row["data"], row["shape"]) != (data, shape):
            continue
        if by_label.setdefault(row["label"], row["rms"]) != row["rms"]:
            raise ValueError(f"{row['label']}, {data}, {shape}: the recording has two errors")
    return [by_label.get(name) for name in (*TENSOR, "cublas")]


def main() -> None:
    """Print the tables, make the recording, or predict its times again."""
    if sys.argv[1:2] == ["record"]:
        recordings.write(RECORDING, recorded([Path(name) for name in sys.argv[2:]]))
        return
    if sys.argv[1:2] == ["predict"]:
        recordings.write(RECORDING, predicted_again(recordings.read(RECORDING)))
    for line in tables(recordings.read(RECORDING)):
        print(line.rstrip())


if __name__ == "__main__":
    main()
