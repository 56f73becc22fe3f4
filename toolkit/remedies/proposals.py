"""The kinds of edits, each with the causes that it may remove."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analysis.timing.predicted import Effect
from toolkit.remedies import literals, qualifiers, shared_arrays, threads, vectors
from toolkit.remedies.edit import Edit
from toolkit.remedies.facts import Facts


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of edit: proposed only where one of its effects costs time."""

    effects: tuple[Effect, ...]
    proposed: Callable[[Facts], Iterator[Edit]]


KINDS = (
    Kind(effects=(Effect.CONFLICTS,), proposed=shared_arrays.padded),
    Kind(effects=(Effect.CONFLICTS,), proposed=shared_arrays.exchanged),
    Kind(effects=(Effect.UNCOALESCED,), proposed=threads.transposed),
    Kind(effects=literals.EFFECTS, proposed=literals.single),
    Kind(effects=threads.EFFECTS, proposed=threads.more_blocks),
    Kind(effects=vectors.EFFECTS, proposed=vectors.vectorized),
    Kind(effects=qualifiers.LATENCIES, proposed=qualifiers.unaliased),
    Kind(effects=(*qualifiers.LATENCIES, Effect.LOCAL_MEMORY), proposed=qualifiers.bounded),
    Kind(effects=threads.EFFECTS, proposed=threads.resized),
)


def proposals(facts: Facts) -> list[Edit]:
    """Edits that may remove what costs time, those of the greatest cost first."""
    kinds = [kind for kind in KINDS if facts.matters(kind.effects)]
    kinds.sort(key=lambda kind: -facts.cost_s(kind.effects))
    return [edit for kind in kinds for edit in kind.proposed(facts)]
