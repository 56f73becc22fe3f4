"""An entry of `explain`: what a word of this toolkit or of Nsight Compute means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from textwrap import wrap as wrapped

from analysis.vocabulary import Vocabulary

LABEL_WIDTH = 10
wrap = partial(wrapped, break_long_words=False, break_on_hyphens=False)


class EntryGroup(Vocabulary):
    """Group of an entry; `explain` without a word lists the groups in this order."""

    CAUSE = "cause"
    LIMITER = "limiter"
    REMEDY = "remedy"
    STALL = "stall reason"
    METRIC = "metric"
    COUNTER = "counter"
    OPCODE = "opcode"
    RESULT = "result"


@dataclass(frozen=True, kw_only=True, repr=False)
class WordEntry:
    """Meaning of a word, in three sentences."""

    word: str
    groups: tuple[EntryGroup, ...]
    sentences: tuple[str, str, str]
    formula: str  #: how the number is computed; of a remedy, the edit
    where: str  #: place on the page and in the terminal
    guide: str  #: file below docs/, and the heading in it: "guide/03-tiling.md#Counts"
    figure: str = ""  #: a few lines of text
    also: tuple[str, ...] = ()  #: other names of the same, such as those of Nsight Compute

    def __repr__(self) -> str:
        return self.text()

    def text(self, width: int = 80) -> str:
        """The entry in lines of at most `width` columns, except for what cannot be broken."""
        also = f"; also {', '.join(self.also)}" if self.also else ""
        file, _, heading = self.guide.partition("#")
        facts = {
            "formula": self.formula,
            "read it": self.where,
            "guide": f'docs/{file}, "{heading}"',
        }
        lines = [
            *wrap(f"{self.word} ({', '.join(self.groups)}{also})", width),
            *wrap(" ".join(self.sentences), width),
            *(f"  {line}" for line in self.figure.splitlines()),
        ]
        for label, fact in facts.items():
            first = f"{label:<{LABEL_WIDTH}}"
            lines += wrap(first + fact, width, subsequent_indent=" " * LABEL_WIDTH)
        return "\n".join(lines)
