"""Times of matrix products that texts published: facts and sources, which nothing was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

FILE = Path(__file__).with_name("published_times.json")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One kernel of a source: its name there, the rung it is taken for, a time for each size."""

    label: str
    rung: str
    seconds: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Publication:
    """Times that one source states for one device, by its key; `sizes` are M = N = K."""

    device: str
    source: str
    caveat: str
    sizes: tuple[int, ...]
    timings: tuple[Timing, ...]


@cache
def publications() -> tuple[Publication, ...]:
    """All that is known."""
    return TypeAdapter(tuple[Publication, ...]).validate_json(FILE.read_bytes(), strict=True)
