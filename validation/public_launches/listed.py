"""The lists of public launches, and their records: measured times and counters of an H200.

`list.json` has two halves. `third_list.json`, `fourth_list.json` and `fifth_list.json` have further
parts, each of programs that no part before it has, drawn by what machine code shows.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, Literal

from analysis.geometry import Geometry
from analysis.l2_state import L2State
from toolkit.machine_code.demangled import parameters_of
from toolkit.machine_code.kernel import Kernel
from validation import recordings
from validation.public_launches.arguments import Array, arguments_of, symbols_of

FOLDER = Path(__file__).parent / "recorded"
SEED = 56  # of the order of programs, of what is drawn, and of the halves
Part = Literal["first", "second", "third", "fourth", "fifth"]
HALVES: tuple[Part, ...] = ("first", "second")
#: Parts that are drawn by what machine code shows, with their seeds.
SEEDS: dict[Part, int] = {"third": 1129, "fourth": 1130, "fifth": 1131}
PARTS: tuple[Part, ...] = (*HALVES, *SEEDS)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A launch of the list."""

    name: str
    part: Part
    l2: L2State  #: the state of L2 that the bars are of
    family: str
    symbol: str
    cubin: str  #: file name in the folder of cubins
    geometry: Geometry
    parameters: Sequence[Mapping[str, Any]]
    symbol_rules: Mapping[str, Mapping[str, Any]]
    rows: Sequence[str]  #: of the table of mechanisms, as machine code shows them

    def code(self, cubins: Path) -> Kernel:
        return Kernel.from_image((cubins / self.cubin).read_bytes(), self.symbol)

    @cached_property
    def arguments(self) -> list[Any]:
        """Arrays and values, in the kernel's order. Two calls return the same arrays."""
        return self.made()

    def made(self) -> list[Any]:
        """The same, made anew."""
        return arguments_of(self.parameters, parameters_of(self.symbol), self.name)

    def symbols(self) -> dict[str, Array]:
        return symbols_of(self.symbol_rules, self.name)


def list_of(part: Part) -> Path:
    """File that lists the launches of a part. The halves have one together."""
    return FOLDER / ("list.json" if part in HALVES else f"{part}_list.json")


def before(part: Part) -> list[Listed]:
    """The launches of all parts before a part."""
    return [one for earlier in PARTS[: PARTS.index(part)] for one in listed(earlier)]


def listed(part: Part | None = None) -> list[Listed]:
    """The launches of a part, or all. A part that is not drawn yet has none."""
    files = dict.fromkeys(map(list_of, [part] if part else PARTS))
    return [
        Listed(
            name=one["name"],
            part=one["half"],
            l2=L2State(one["l2"]),
            family=one["family"],
            symbol=one["kernel"],
            cubin=one["cubin"],
            geometry=Geometry(
                grid=tuple(one["grid"]),
                block=tuple(one["block"]),
                dynamic_shared_bytes=one["shared"],
            ),
            parameters=one["parameters"],
            symbol_rules=one["symbols"],
            rows=one.get("rows", ()),
        )
        for path in files
        if path.exists()
        for one in recordings.read(path)["launches"]
        if part in (None, one["half"])
    ]


RECORDS: dict[Part, str] = {
    "first": "first_half.json",
    "second": "second_half.json.xz",
    **{part: f"{part}_part.json.xz" for part in SEEDS},
}


def record_of(part: Part) -> Path:
    """File of the measurements of a part. Held-out parts are packed, to stay unread."""
    return FOLDER / RECORDS[part]


TIMES = (*(f"{state}_s" for state in L2State), "again_s")
SHORT_S = 100e-6  # of launches that show a gap


def without_gap(row: dict[str, Any], gap: Mapping[str, float]) -> dict[str, Any]:
    """The times of a launch without the gap between it and its events, and the gap.

    A record may have a gap, of launches behind a hold of up to `hold_ns`. With a hold of 50 µs,
    launches of up to 50 µs took 1.63 µs longer than with 200 µs (median of 117 pairs of times); 42
    launches of the halves were not measured again. All launches of later parts have the gap of
    `gap_of`.
    """
    if "failed" in row or not gap or row.get("hold_ns", 0) > gap["hold_ns"]:
        return row
    return row | {key: row[key] - gap["time_s"] for key in TIMES} | {"gap_s": gap["time_s"]}


def gap_of(beside: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The gap of a machine: how much longer short launches of the first half took there.

    It is the median over the launches and states of L2, against what is recorded of the first half,
    and zero where they took no longer.
    """
    recorded = {row["name"]: row for row in measurements("first")["times"]}
    pairs = [
        (row[f"{state}_s"], recorded[row["name"]][f"{state}_s"])
        for row in beside
        for state in L2State
    ]
    longer_s = median(now_s - then_s for now_s, then_s in pairs if then_s < SHORT_S)
    return {
        "hold_ns": max(row["hold_ns"] for row in beside),
        "time_s": max(0.0, round(longer_s, 9)),
    }


def measurements(part: Part) -> dict[str, Any]:
    """Times that an H200 took for the launches of a part."""
    path = record_of(part)
    content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    found: dict[str, Any] = json.loads(content)
    gap = found.get("gap", {})
    return found | {"times": [without_gap(row, gap) for row in found["times"]]}


def write_measurements(part: Part, document: Mapping[str, Any]) -> None:
    text = recordings.text_of(document)
    path = record_of(part)
    if path.suffix == ".xz":
        path.write_bytes(lzma.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
