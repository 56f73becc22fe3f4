"""Contents of L2 before a launch: an input of each prediction and of each measurement."""

from __future__ import annotations

from analysis.errors import InputError
from analysis.vocabulary import Vocabulary


class L2State(Vocabulary):
    """State of L2 at the start of a launch.

    "clean" is after a launch that reads 256 MiB of other data, "dirty" after one that writes them,
    "warm" after the same launch. Records of earlier versions say "flushed", which is "dirty".
    """

    CLEAN = "clean"
    DIRTY = "dirty"
    WARM = "warm"

    @classmethod
    def _missing_(cls, value: object) -> L2State | None:
        return cls.DIRTY if value == "flushed" else None


# What a stream of launches leaves: the launches before wrote their results, and the lines of these
# are written back when the next launch needs room (docs/decisions/0082).
DEFAULT_L2 = L2State.DIRTY


def l2_state(text: str) -> L2State:
    """The state with this name. Raises InputError for another name."""
    if text not in list(L2State):
        raise InputError(f"l2 = {text!r}: give clean, dirty or warm")
    return L2State(text)
