"""The configurations of a rung: all values of its parameters that its constraints allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.errors import InputError
from analysis.records.tuning import Exclusion
from kernels.ladder import LADDER
from kernels.selection import Selection, parse_settings
from kernels.variant import Reference, Variant, combinations


@dataclass(frozen=True, kw_only=True)
class Space:
    """Legal configurations of a rung, and the number that each constraint removed.

    `combinations` counts all values of all parameters that were not fixed.
    """

    variant: Variant
    combinations: int
    exclusions: tuple[Exclusion, ...]
    selections: tuple[Selection, ...]


def parse_space(text: str) -> Space:
    """The space that `text` names: "coarsened-1d", or "coarsened-1d:tm=8" for a part of it.

    Raises UnknownNameError or InputError, also where no configuration is legal.
    """
    variant, fixed = parse_settings(text)
    if isinstance(variant, Reference) or not variant.parameters:
        of_its_own = " of its own" if isinstance(variant, Reference) else ""
        tunable = ", ".join(rung.name for rung in LADDER if rung.parameters)
        raise InputError(
            f"{variant.name} has no parameters{of_its_own} to tune: choose one of {tunable}"
        )
    return space(variant, fixed)


def space(variant: Variant, fixed: Mapping[str, int]) -> Space:
    """The legal configurations that have the values of `fixed`.

    Raises InputError where there are none, with the constraint that removed the last.
    """
    left = combinations(variant.parameters, fixed)
    at_first, exclusions = len(left), []
    for constraint in variant.constraints:
        kept = [one for one in left if constraint.holds(one)]
        if not kept:
            shown = ", ".join(f"{name} = {value}" for name, value in left[-1].items())
            raise InputError(
                f"{variant.name} has no legal configuration with these values: {constraint.text}, "
                f"which excludes {shown}: fix other values, or fewer"
            )
        exclusions.append(
            Exclusion(constraint=constraint.text, configurations=len(left) - len(kept))
        )
        left = kept
    return Space(
        variant=variant,
        combinations=at_first,
        exclusions=tuple(exclusions),
        selections=tuple(Selection(variant=variant, parameters=one) for one in left),
    )
