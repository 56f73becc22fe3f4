"""The kinds of edits, each with the causes that it may remove."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analysis.timing.predicted import Effect
from toolkit.remedies import compiler, literals, qualifiers, shared_arrays, threads, vectors
from toolkit.remedies.edit import Edit
from toolkit.remedies.facts import Facts


@dataclass(frozen=True, kw_only=True)
class RemedyKind:
    """A kind of edit: proposed only where one of its effects costs time.

    `word`: its entry of `explain` (analysis/records/words_of_code.py).
    """

    word: str
    effects: tuple[Effect, ...]
    proposed: Callable[[Facts], Iterator[Edit]]


KINDS = (
    RemedyKind(word="padding", effects=(Effect.CONFLICTS,), proposed=shared_arrays.padded),
    RemedyKind(word="swizzling", effects=(Effect.CONFLICTS,), proposed=shared_arrays.exchanged),
    RemedyKind(
        word="exchanged thread axes", effects=(Effect.UNCOALESCED,), proposed=threads.transposed
    ),
    RemedyKind(word="FP32 literals", effects=literals.EFFECTS, proposed=literals.single),
    RemedyKind(word="fast math", effects=compiler.EFFECTS, proposed=compiler.fast),
    RemedyKind(word="more blocks", effects=threads.EFFECTS, proposed=threads.more_blocks),
    RemedyKind(word="vectorized access", effects=vectors.EFFECTS, proposed=vectors.vectorized),
    RemedyKind(word="__restrict__", effects=qualifiers.LATENCIES, proposed=qualifiers.unaliased),
    RemedyKind(
        word="__launch_bounds__",
        effects=(*qualifiers.LATENCIES, Effect.LOCAL_MEMORY),
        proposed=qualifiers.bounded,
    ),
    RemedyKind(word="block size", effects=threads.EFFECTS, proposed=threads.resized),
)


def proposals(facts: Facts) -> list[Edit]:
    """Edits that may remove what costs time, those of the greatest cost first."""
    kinds = [kind for kind in KINDS if facts.matters(kind.effects)]
    kinds.sort(key=lambda kind: -facts.cost_s(kind.effects))
    return [edit for kind in kinds for edit in kind.proposed(facts)]
