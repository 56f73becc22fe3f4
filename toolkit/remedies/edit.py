"""An edit of a kernel and its launch: replaced source, another grid or block, other options."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from analysis.timing.predicted import Effect

Extent = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """Bytes of a source from `start` to `end` that become `text`."""

    start: int
    end: int
    text: str

    def overlaps(self, other: Replacement) -> bool:
        """True if both change the same bytes, or insert at the same place."""
        is_same = (self.start, self.end) == (other.start, other.end)
        return is_same or (self.start < other.end and other.start < self.end)


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A change to a kernel that keeps its results, to how it is compiled, or to its launch.

    `effect`: the cause that it removes. `lines`: those of the source that the reader looks at.
    `compiler_options`: further options of nvcc. `may_round`: results may differ by rounding,
    because it changes the type or the order of sums. `all_blocks`: the work of each block changes,
    so that only whole launches are comparable.
    """

    effect: Effect
    lines: tuple[int, ...]
    title: str
    replacements: tuple[Replacement, ...] = ()
    grid: Extent | None = None
    block: Extent | None = None
    compiler_options: tuple[str, ...] = ()
    may_round: bool = False
    all_blocks: bool = False

    def applied(self, text: str) -> str:
        """The source with this change."""
        content = text.encode()
        for one in sorted(self.replacements, key=lambda one: (one.start, one.end), reverse=True):
            content = content[: one.start] + one.text.encode() + content[one.end :]
        return content.decode()

    @property
    def options(self) -> tuple[str, ...]:
        """Options of `simulate` for another grid or block."""
        given = {"--block": self.block, "--grid": self.grid}
        return tuple(
            word
            for option, extent in given.items()
            if extent is not None
            for word in (option, extent_text(extent))
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        """All options that `simulate` needs for this change."""
        return self.options + tuple(
            word for option in self.compiler_options for word in ("--option", option)
        )

    def has_other_options(self, other: Edit) -> bool:
        """True if both choose a size, or both have options of the compiler."""
        both_sized = bool(self.options and other.options)
        return both_sized or bool(self.compiler_options and other.compiler_options)

    def with_other(self, other: Edit) -> Edit | None:
        """Both changes as one; None if they change the same."""
        if self.has_other_options(other) or any(
            one.overlaps(two) for one in self.replacements for two in other.replacements
        ):
            return None
        return Edit(
            effect=self.effect,
            lines=tuple(sorted({*self.lines, *other.lines})),
            title=f"{self.title}; {other.title}",
            replacements=(*self.replacements, *other.replacements),
            grid=self.grid or other.grid,
            block=self.block or other.block,
            compiler_options=self.compiler_options or other.compiler_options,
            may_round=self.may_round or other.may_round,
            all_blocks=self.all_blocks or other.all_blocks,
        )


def extent_text(extent: Extent) -> str:
    """Sizes as options take them: '32,4'."""
    return ",".join(str(size) for k, size in enumerate(extent) if k == 0 or prod(extent[k:]) > 1)
