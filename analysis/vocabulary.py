"""Vocabularies: enums that print, compare and are stored as their text."""

from __future__ import annotations

from enum import StrEnum


class Vocabulary(StrEnum):
    """Base of the enums of words; a prompt shows a member as its text."""

    def __repr__(self) -> str:
        return repr(self.value)
