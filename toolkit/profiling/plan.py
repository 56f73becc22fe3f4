"""Plan of a run, checked before anything is compiled, allocated or measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from analysis.devices import Device
from analysis.errors import InputError, ShapeError
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.problem import Gemm, parse_shape
from kernels.ladder import BEST
from kernels.selection import Selection, parse_selection, whole_ladder
from kernels.variant import Variant
from toolkit.gpu.sampling import Sampling
from toolkit.rungs.best import best_for
from toolkit.rungs.matrices import chosen_seed
from toolkit.store.constants_file import predicting_with


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """Shapes × selections, and how they are timed and predicted.

    `explicit` says that the user named the variants, so that one which cannot take a shape is
    an error and not a remark. `constants` (a file) and `clock_mhz` are None unless they were given.
    """

    shapes: tuple[Gemm, ...]
    selections: tuple[Selection, ...]
    explicit: bool
    sampling: Sampling
    seed: int
    l2: L2State = DEFAULT_L2
    constants: str | Path | None = None
    clock_mhz: float | None = None

    def predicting(self, device: Device) -> Device:
        """The device to predict times for, with the constants and the clock that were given."""
        return predicting_with(device, self.constants, self.clock_mhz)

    def at(self, problem: Gemm, device: Device) -> RunPlan:
        """The plan with `best` replaced by the rung that it selects for a shape on a device."""
        chosen = tuple(
            best_for(device, problem) if selection.variant is BEST else selection
            for selection in self.selections
        )
        return replace(self, selections=chosen)

    def check_fits(self, device: Device) -> None:
        """Raise ShapeError for a shape that `device` cannot hold.

        Raises UnavailableError for a named variant that `device` cannot run.
        """
        for selection in self.selections if self.explicit else ():
            if isinstance(selection.variant, Variant):
                selection.variant.check_device(selection.parameters, device)
        for problem in self.shapes:
            if problem.matrix_bytes > device.dram_bytes:
                raise ShapeError(
                    f"shape {problem}: A, B and C take {problem.matrix_bytes / 1e9:.1f} GB, "
                    f"{device.name} has {device.dram_bytes / 1e9:.1f} GB: take a smaller shape"
                )


def make_plan(
    shapes: Sequence[str | int | Gemm],
    variants: Sequence[str] | None,
    *,
    sampling: Sampling,
    seed: int | None,
    l2: L2State = DEFAULT_L2,
    constants: str | Path | None = None,
    clock_mhz: float | None = None,
) -> RunPlan:
    """The plan of a run; repeated shapes and variants count once.

    Raises InputError for a value that cannot be used, ShapeError for a shape that a named rung
    cannot take.
    """
    for name, values, example in (("shapes", shapes, "4096"), ("variants", variants, "tiled")):
        if isinstance(values, str):  # a sequence of its characters
            raise InputError(f"{name} is {values!r}: give a list, such as [{example!r}]")
    if not shapes:
        raise InputError("no shape to profile: give at least one, such as 4096")
    problems = parse_shapes(shapes)
    named = _selections(variants or ())
    for selection, problem in product(named, problems):
        if isinstance(selection.variant, Variant):
            selection.variant.check_shape(problem)
    return RunPlan(
        shapes=problems,
        selections=named or whole_ladder(),
        explicit=bool(variants),
        sampling=sampling,
        seed=chosen_seed(seed),
        l2=l2,
        constants=constants,
        clock_mhz=clock_mhz,
    )


def parse_shapes(shapes: Iterable[str | int | Gemm]) -> tuple[Gemm, ...]:
    """The shapes that are named, each once; raises ShapeError."""
    found = (shape if isinstance(shape, Gemm) else parse_shape(str(shape)) for shape in shapes)
    return tuple(dict.fromkeys(found))


def _selections(variants: Sequence[str]) -> tuple[Selection, ...]:
    by_label = {selection.label: selection for selection in map(parse_selection, variants)}
    return tuple(by_label.values())
