"""The protocol of front ends: a launch as their users write it, and the same for machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import shown
from analysis.errors import InputError, UnsupportedError, first_line
from toolkit.launch.checks import POINTER_BYTES
from toolkit.launch.launch import Argument, buffers_of, three
from toolkit.machine_code.kernel import Kernel, KernelParameter
from toolkit.machine_code.signature import Declared

Grid = int | Sequence[int] | Callable[[dict[str, Any]], Any]
Extent = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class FrontEndRequest:
    """A launch as the user of a front end writes it.

    `grid` is a function of the arguments' names and values for Triton only. `defines` holds
    compile-time values by name: macros, or Triton's constexprs and options.
    """

    kernel: str | None
    grid: Grid | None
    block: int | Sequence[int] | None
    arguments: Sequence[Any]
    dynamic_shared_bytes: int
    defines: Mapping[str, object]
    options: Sequence[str]
    arch: str

    def sizes(self, kernel: str) -> tuple[Extent, Extent]:
        """Grid and block where both are given. Raises InputError where one is not."""
        if self.grid is None or self.block is None or callable(self.grid):
            raise InputError(f"{kernel} takes grid and block, in blocks and in threads: give both")
        return three(self.grid, "grid"), three(self.block, "block")


@dataclass(frozen=True, kw_only=True)
class PreparedLaunch:
    """A launch in terms of machine code, and how its buffers belong to the user's arguments."""

    kernel: Kernel
    grid: Extent
    block: Extent
    dynamic_shared_bytes: int
    parameters: tuple[Parameter, ...]
    remarks: tuple[str, ...] = ()  # of the front end on its kernel

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The values of the machine code's parameters, in order."""
        return tuple(parameter.value for parameter in self.parameters)

    @property
    def declared(self) -> tuple[Declared, ...]:
        """The name of each parameter, and which argument of the user it belongs to."""
        return tuple(
            Declared(text=one.name, name=one.name, pointer=False, argument=one.argument)
            for one in self.parameters
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks, and a warning for arguments that are one array: each is a buffer of its own."""
        arrays = [
            (one.argument, one.value)
            for one in self.parameters
            if isinstance(one.value, np.ndarray) and one.argument is not None
        ]
        return self.remarks + tuple(
            f"arguments {k} and {other} share memory, and were simulated as two arrays: what is "
            "written to one is not seen in the other"
            for (k, array), (other, second) in combinations(arrays, 2)
            if np.may_share_memory(array, second)
        )

    def positions(self, arguments: Sequence[int]) -> list[int]:
        """Parameters that hold the arrays at these positions of the user's arguments.

        A position that has no array stays as it is, for the caller's check.
        """
        of = {
            one.argument: position
            for position, one in enumerate(self.parameters)
            if one.argument is not None and isinstance(one.value, np.ndarray)
        }
        return [of.get(argument, argument) for argument in arguments]

    def outputs(self, buffers: Sequence[NDArray[np.generic]]) -> tuple[NDArray[np.generic], ...]:
        """The user's arrays after the launch, in the user's axes and order."""
        places = buffers_of(self.arguments)
        after = dict(zip(places, buffers, strict=True)) if buffers else {}
        return tuple(
            after[position].T if one.is_transposed else after[position]
            for position, one in enumerate(self.parameters)
            if position in after and one.argument is not None
        )


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of the machine code: its value, and where that comes from.

    `argument` is the position among the user's arguments, None for a hidden parameter.
    `is_transposed`: the array is in Fortran order, and `value` is its transpose.
    """

    value: Argument
    name: str
    argument: int | None = None
    is_transposed: bool = False

    @property
    def size(self) -> int:
        """Bytes among the parameters."""
        value = self.value
        return value.nbytes if isinstance(value, np.generic) else POINTER_BYTES


def hidden(value: int, name: str) -> Parameter:
    """A parameter of 8 bytes that the front end adds."""
    return Parameter(value=np.int64(value), name=name)


def buffer(array: NDArray[np.generic], name: str, argument: int) -> Parameter:
    """The pointer to an array, whose bytes keep their order.

    Raises InputError for an array with gaps or of another order than C's or Fortran's.
    """
    if array.flags.c_contiguous:
        return Parameter(value=array, name=name, argument=argument)
    if array.flags.f_contiguous:
        return Parameter(value=array.T, name=name, argument=argument, is_transposed=True)
    raise InputError(
        f"argument {argument} `{name}` is a view with gaps (strides {array.strides} for shape "
        f"{array.shape}): give numpy.ascontiguousarray(x)"
    )


def as_array(value: Any) -> NDArray[np.generic] | None:
    """`value` as an array without a copy if it is one of NumPy or a CPU tensor, else None."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic) or not hasattr(value, "__array__"):
        return None
    try:
        array: NDArray[np.generic] = np.asarray(value)
    except Exception as error:
        raise InputError(
            f"argument {shown(value)} cannot be read as a NumPy array: {first_line(error)}: give "
            "an array or a tensor on the CPU"
        ) from error
    return array


def chosen_block(request: FrontEndRequest, block: Extent, kernel: str, remedy: str) -> Extent:
    """The block that a front end compiled for. Raises InputError if another one is given."""
    if request.block is not None and three(request.block, "block") != block:
        raise InputError(
            f"{kernel} is compiled for blocks of {'×'.join(map(str, block))} threads: {remedy}"
        )
    return block


def own_launch(
    request: FrontEndRequest, kernel: str, front_end: str, grid: Extent, block: Extent
) -> None:
    """Raise InputError if another grid or block is asked for than the front end launches."""
    for what, own, asked in (("grid", grid, request.grid), ("block", block, request.block)):
        if asked is not None and (callable(asked) or three(asked, what) != own):
            raise InputError(
                f"{kernel}: {front_end} launches a {what} of {own[0]}: leave the {what} out"
            )


def split_structs(
    kernel: Kernel, groups: Sequence[Sequence[Parameter]]
) -> tuple[Kernel, tuple[Parameter, ...]]:
    """Kernel whose parameters that are structs with pointers are split into their fields.

    Each group holds the fields of one parameter, without gaps. Raises UnsupportedError if a group
    has another size than the parameter.
    """
    if len(groups) != len(kernel.parameters):
        raise UnsupportedError(
            f"{kernel.name} has {len(kernel.parameters)} parameters in machine code, and "
            f"{len(groups)} were expected"
        )
    fields: list[KernelParameter] = []
    for whole, group in zip(kernel.parameters, groups, strict=True):
        offset = whole.offset
        for one in group:
            fields.append(KernelParameter(ordinal=len(fields), offset=offset, size=one.size))
            offset += one.size
        if offset - whole.offset != whole.size:
            raise UnsupportedError(
                f"parameter {whole.ordinal} of {kernel.name} (`{group[0].name}`) has {whole.size} "
                f"bytes in machine code, and {offset - whole.offset} were expected"
            )
    split = replace(kernel, parameters=tuple(fields), declared=None)
    return split, tuple(one for group in groups for one in group)
