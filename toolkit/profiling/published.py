"""Timings that texts published of such kernels: facts and sources, shipped with the package."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from analysis.devices import Device
from analysis.errors import RecordError, first_line
from analysis.problem import Gemm
from analysis.records.profile import Published, Record
from analysis.theory import Ceiling
from kernels.selection import Selection, parse_selection
from toolkit.profiling.record import planned

FILE = Path(str(files("toolkit").joinpath("profiling", "published.json")))


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One kernel of a source: its name there, the rung it is taken for, a time for each size."""

    label: str
    rung: str
    seconds: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What one source states of one device, by its key; `sizes` are M = N = K."""

    device: str
    source: str
    caveat: str
    sizes: tuple[int, ...]
    timings: tuple[Timing, ...]


@cache
def publications() -> tuple[Publication, ...]:
    """All that is shipped; raises RecordError where the package is damaged."""
    from pydantic import TypeAdapter

    try:
        text = FILE.read_bytes()
        return TypeAdapter(tuple[Publication, ...]).validate_json(text, strict=True)
    except (OSError, ValueError) as error:
        raise RecordError(
            f"{FILE}: {first_line(error)}; it came with the package: install that again"
        ) from error


def with_published(records: Sequence[Record], device: Device) -> tuple[Record, ...]:
    """The records of a profile, each with what is published of its variant, shape and device.

    What was published of parameters that the profile has no record of stands with the variant's
    default ones.
    """
    labels = {record.label for record in records}
    found: dict[tuple[str, Gemm], list[Published]] = defaultdict(list)
    shapes = {record.shape for record in records}
    for publication in publications():
        if publication.device == device.key:
            for selection, shape, one in _entries(publication, device, shapes):
                home = selection.label if selection.label in labels else selection.variant.name
                found[home, shape].append(one)
    return tuple(
        replace(record, published=tuple(found[record.label, record.shape])) for record in records
    )


def _entries(
    publication: Publication, device: Device, shapes: set[Gemm]
) -> Iterator[tuple[Selection, Gemm, Published]]:
    for timing in publication.timings:
        selection = parse_selection(timing.rung)
        for size, time_s in zip(publication.sizes, timing.seconds, strict=True):
            shape = Gemm(m=size, n=size, k=size)
            if shape in shapes:
                yield (
                    selection,
                    shape,
                    Published(
                        label=timing.label,
                        rung=selection.label,
                        time_s=time_s,
                        flop_per_s=shape.flop / time_s,
                        roof=_roof(selection, shape, device),
                        source=publication.source,
                        caveat=publication.caveat,
                    ),
                )


def _roof(selection: Selection, shape: Gemm, device: Device) -> Ceiling | None:
    """The lowest ceiling of theory over a rung, None over a library."""
    theory = planned(selection, shape, device).theory
    return min(theory.ceilings, key=lambda one: one.flop_per_s) if theory else None
