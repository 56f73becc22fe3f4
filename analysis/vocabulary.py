"""Words of a vocabulary: enums that print, compare and are stored as their text."""

from __future__ import annotations

from enum import StrEnum


class Vocabulary(StrEnum):
    """Base of the enums of words; at a prompt a member shows as its text does."""

    def __repr__(self) -> str:
        return repr(self.value)
