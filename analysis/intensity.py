"""Arithmetic intensity: FLOP per byte moved, for three definitions of the bytes.

The FLOP of a product are 2·m·n·k everywhere; the bytes differ:

- loads        global loads as the kernel issues them, as if none hit a cache
- accesses     these loads and the stores of C
- compulsory   every matrix once, as if every reuse hit a cache
"""

from __future__ import annotations

from analysis.access import AccessCounts
from analysis.argument_types import checked
from analysis.errors import InputError


@checked
def intensity_of_loads(counts: AccessCounts) -> float:
    """FLOP per byte of global loads: 2mnk / loaded bytes, as the source texts define it."""
    return _per_byte(counts, counts.bytes("global", "load"), "global loads")


@checked
def intensity_of_accesses(counts: AccessCounts) -> float:
    """FLOP per byte of global loads and stores."""
    return _per_byte(counts, counts.bytes("global"), "global accesses")


@checked
def intensity_of_compulsory_bytes(counts: AccessCounts) -> float:
    """FLOP per byte if every matrix moves once: the maximum that caches allow."""
    return _per_byte(counts, compulsory_bytes(counts), "compulsory traffic")


@checked
def compulsory_bytes(counts: AccessCounts) -> int:
    """Bytes of A and B read once and C written once."""
    return counts.problem.matrix_bytes


def _per_byte(counts: AccessCounts, moved_bytes: int, what: str) -> float:
    if moved_bytes == 0:
        raise InputError(f"no intensity of {what}: the kernel has none")
    return counts.problem.flop / moved_bytes
