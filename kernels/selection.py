"""Selection of a rung or a reference by name, with parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from analysis.argument_types import checked
from analysis.errors import InputError, UnknownNameError
from kernels.ladder import LADDER, REFERENCES
from kernels.variant import Reference, Variant, check_values

BY_NAME: Mapping[str, Variant | Reference] = MappingProxyType(
    {variant.name: variant for variant in LADDER}
    | {reference.name: reference for reference in REFERENCES}
)


@checked
def find(name: str) -> Variant | Reference:
    """Rung or reference of that name. Raises UnknownNameError, which suggests the nearest name."""
    if name not in BY_NAME:
        raise UnknownNameError("variant", name, BY_NAME)
    return BY_NAME[name]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A rung with all of its parameters, or a reference, which has none."""

    variant: Variant | Reference
    parameters: Mapping[str, int] = field(default_factory=dict)
    stands_for: Reference | None = None  #: `BEST` if the dispatcher chose the rung

    @property
    def label(self) -> str:
        """Name for users, with the parameters that differ from their defaults."""
        if self.stands_for is not None:
            return self.stands_for.name
        if isinstance(self.variant, Reference):
            return self.variant.name
        return self.variant.label(self.parameters)


@checked
def parse_selection(text: str) -> Selection:
    """Selection that `text` names: "tiled", "tiled:tile=16", "coarsened-1d:bk=8,tm=8".

    Raises UnknownNameError or InputError, whose message contains the remedy.
    """
    variant, chosen = parse_settings(text)
    if isinstance(variant, Reference):
        return Selection(variant=variant)
    return Selection(variant=variant, parameters=variant.resolve(chosen))


def parse_settings(text: str) -> tuple[Variant | Reference, dict[str, int]]:
    """Rung or reference that `text` names, and its parameters. Constraints are not checked."""
    name, colon, settings = text.strip().lower().replace("_", "-").partition(":")
    variant = find(name)
    pairs = [_parse_setting(text, one) for one in settings.split(",")] if colon else []
    chosen = dict(pairs)
    if len(chosen) < len(pairs):
        raise InputError(f"{text!r}: a parameter is given twice: give each one value")
    if isinstance(variant, Variant):
        check_values(variant.name, variant.parameters, chosen)
    elif chosen:
        raise InputError(f"{text!r}: {name} is a reference and has no parameters")
    return variant, chosen


def _parse_setting(text: str, setting: str) -> tuple[str, int]:
    name, _, value = setting.partition("=")
    try:
        return name.strip(), int(value)
    except ValueError:
        raise InputError(
            f"{text!r}: {setting!r} is not a setting: write name=integer, as in tiled:tile=16"
        ) from None


def whole_ladder() -> tuple[Selection, ...]:
    """Return every rung with its default parameters, then the references."""
    rungs = tuple(Selection(variant=v, parameters=v.defaults) for v in LADDER)
    return rungs + tuple(Selection(variant=reference) for reference in REFERENCES)
