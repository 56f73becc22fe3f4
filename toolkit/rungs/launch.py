"""A rung by its name: its machine code, and its launch at a shape, as of any other kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from analysis.access import Tiling, access_counts
from analysis.devices import Device
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.problem import Gemm, parse_shape
from analysis.traffic.grid import Order, TileGrid
from kernels.ladder import BEST
from kernels.selection import Selection, parse_selection
from kernels.variant import Copies, Parameters, Variant, Words
from reports import text
from toolkit.launch.host_resources import sparse_zeros
from toolkit.launch.launch import Argument, buffers_of
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.rungs.arguments import rung_arguments
from toolkit.rungs.best import best_for
from toolkit.rungs.matrices import Matrix, Workload

INSTRUCTIONS_PER_ACCESS = 2  # the access, and what computes its address or its guard


@dataclass(frozen=True, kw_only=True)
class RungLaunch:
    """Launch of a rung: `problem` was requested, `executed` may be padded."""

    variant: Variant
    parameters: Parameters
    problem: Gemm

    @property
    def selection(self) -> Selection:
        return Selection(variant=self.variant, parameters=self.parameters)

    @property
    def label(self) -> str:
        return self.selection.label

    @cached_property
    def executed(self) -> Gemm:
        return self.variant.executed(self.problem)

    @cached_property
    def geometry(self) -> Geometry:
        return self.variant.geometry(self.parameters, self.executed)

    @cached_property
    def tiling(self) -> Tiling:
        return self.variant.tiling(self.parameters)

    @cached_property
    def tiles(self) -> TileGrid:
        return self.variant.tile_grid(self.parameters, self.executed)

    @cached_property
    def order(self) -> Order:
        return self.variant.order_of(self.parameters)

    @cached_property
    def copies(self) -> Copies:
        """Parts of the workspace that hold copies of A and B."""
        sharing = self.variant.sharing
        return sharing.copies(self.tiling, self.parameters, self.executed) if sharing else Copies()

    @cached_property
    def cost(self) -> float:
        """About how many thread instructions a block executes, by its closed forms.

        A multiply-add of tensor cores takes the simulator as long as one of an FP32 unit.
        """
        counts = access_counts(self.tiling, self.executed)
        accesses = sum(access.instructions for access in counts.accesses)
        multiply_adds = counts.multiply_adds + counts.tensor_multiply_adds
        return (multiply_adds + INSTRUCTIONS_PER_ACCESS * accesses) / self.geometry.blocks

    @property
    def busy_blocks(self) -> int:
        """Number of blocks that have work."""
        has_copies = self.copies != Copies()
        return self.geometry.blocks if has_copies else self.order.busy_blocks(self.tiles)

    def at(self, k: int) -> RungLaunch:
        """The same launch with another K, of the same remainder."""
        padding = self.executed.k - self.problem.k
        return replace(self, problem=replace(self.problem, k=k - padding))

    def ready_words(self, *, is_last: bool) -> tuple[Words, ...]:
        """Words of the workspace when all data that a block waits for is there."""
        if self.variant.sharing is None:
            return ()
        return self.variant.sharing.ready_words(
            self.tiling, self.parameters, self.tiles, self.executed, is_last
        )

    def arguments(self, seed: int) -> list[Argument]:
        """Arguments of C = A·B with random A and B; C holds NaN, because nothing reads it."""
        c = np.full((self.executed.m, self.executed.n), np.nan, np.float32)
        return self._with(*Workload(self.problem, seed).padded(self.executed), c)

    @property
    def buffers(self) -> list[int]:
        """Positions of the arrays among the arguments."""
        m, n, k = self.executed.m, self.executed.n, self.executed.k
        matrices = (sparse_zeros(extents, np.float32) for extents in ((m, k), (k, n), (m, n)))
        return list(buffers_of(self._with(*matrices)))

    def _with(self, a: Matrix, b: Matrix, c: Matrix) -> list[Argument]:
        return rung_arguments(self.variant, self.parameters, self.executed, (a, b, c))


def compile_for(
    target: str | Device, selection: Selection, options: Sequence[str] = ("-lineinfo",)
) -> Kernel:
    """The selected rung's machine code for a target, or for the nearest that NVRTC knows.

    Its resources say when it is not the target's own.
    """
    variant = selection.variant
    assert isinstance(variant, Variant)
    return compile_kernel(
        variant.source,
        variant.entry,
        target=target,
        name=variant.file,
        defines=variant.macros(selection.parameters),
        options=options,
    )


def check_nothing_given(name: str, brought: Mapping[str, object]) -> None:
    """Raise InputError for what a caller gives of what a rung brings itself, or an unknown name."""
    parse_selection(name)
    if given := [option for option, value in brought.items() if value]:
        raise InputError(
            f"{name} is a rung, which has its own {text.listing(given)}: leave yours out"
        )


def rung_launch(name: str, shape: str | int | Gemm | None, device: Device | None) -> RungLaunch:
    """The launch of the rung of that name at a shape.

    Raises InputError for an unknown name, and for a rung that takes no such shape or device.
    """
    selection = parse_selection(name)
    if shape is None:
        raise InputError(f"{name} is a rung: give the shape of its product, such as 1024 (--shape)")
    problem = shape if isinstance(shape, Gemm) else parse_shape(str(shape))
    if selection.variant is BEST:
        if device is None:
            raise InputError("which rung is the best depends on the device: name one")
        selection = best_for(device, problem)
    variant = selection.variant
    if not isinstance(variant, Variant):
        raise InputError(f"{name} is not a rung: `profile` measures it")
    variant.check_shape(problem)
    if device is not None:
        variant.check_device(selection.parameters, device)
    return RungLaunch(variant=variant, parameters=selection.parameters, problem=problem)


def padding(variant: Variant, problem: Gemm) -> str | None:
    """A note on the zeros that a product is padded with, None where it needs none."""
    executed = variant.executed(problem)
    if executed == problem:
        return None
    return (
        f"padded with zeros to {executed}, because N and K must be multiples of "
        f"{variant.multiple_of}; counts and times are those of the padded product, without the "
        "padding itself"
    )
