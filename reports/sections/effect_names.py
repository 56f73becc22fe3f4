"""Names of the parts of a predicted time, as short as the place asks."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.timing.predicted import Effect

_IN_TABLES: Mapping[str, str] = {
    Effect.CONFLICTS: "shared bank conflicts",
    Effect.DEPENDENCES: "waiting for instructions",
    Effect.COPIES: "waiting for copies",
    Effect.PRODUCTS: "waiting for products",
    Effect.OTHER_INSTRUCTIONS: "non-FP32 instructions",
}
_IN_BARS: Mapping[str, str] = {
    **_IN_TABLES,
    Effect.CONFLICTS: "bank conflicts",
    Effect.REGISTER_BANKS: "register banks",
    Effect.SHARED_WAVEFRONTS: "shared wavefronts",
    Effect.REMAINDER: "no overlap",
}
_IN_COLUMNS: Mapping[str, str] = {
    **_IN_BARS,
    Effect.OTHER_INSTRUCTIONS: "non-FP32",
    Effect.SHARED_WAVEFRONTS: "wavefronts",
    Effect.UNCOALESCED: "uncoalesced",
    Effect.BARRIERS: "barriers",
}


def in_table(part: str) -> str:
    """Name of a part for tables and sentences: 'non-FP32 instructions'."""
    return _IN_TABLES.get(part, part)


def in_bar(part: str) -> str:
    """Name of a part that fits into a bar: 'shared wavefronts'."""
    return _IN_BARS.get(part, part)


def in_column(part: str) -> str:
    """Name of a part for a narrow column: 'wavefronts'."""
    return _IN_COLUMNS.get(part, part)
