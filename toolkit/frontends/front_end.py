"""The contract of a front end: all that you need to write one.

A front end is another language or compiler. Users give its kernels to `simulate` and `check` as
objects. Writing one takes two steps:

1. Write a module with the function `prepared(compiled, request)`. `compiled` is the object that the
   user gave. `request` is the launch as the user wrote it (`FrontEndRequest`). Return the launch in
   terms of machine code (`PreparedLaunch`): a `Kernel`, grid, block, and one `Parameter` for each
   parameter of the machine code, in their order.
2. Describe the front end by a `FrontEnd`: add it to `FRONT_ENDS` below, or `register` it from a
   package of your own. The module is imported when the first of its kernels is launched.

`simulate`, `check` and `script.py:kernel` then take its kernels. Nothing else names a front end.

The `Kernel` comes from `compile_kernel` (`toolkit/machine_code/kernel_source.py`), which takes
CUDA C++ or the bytes of PTX or of a cubin, or from `Kernel.from_image` (cubins). To show lines of
another source text, replace its fields `file` and `source`. `as_array` and `buffer` make the
parameter of an array, and `hidden` makes one that your launcher would add. A number is
`Parameter(value=...)` with a NumPy type of the parameter's size. `split_structs` is for structs
that hold pointers. Raise `InputError` for a launch that the front end would not make, and
`UnsupportedError` for what you do not support. Each error is one line: what, where, value, remedy.

A complete front end, the module `mine.py`. It takes CUDA C++ text, launches 4 blocks of 64 threads,
and adds the size of the array:

    from analysis.errors import InputError
    from toolkit.frontends.front_end import (
        FrontEnd, PreparedLaunch, as_array, buffer, hidden, own_launch, register
    )
    from toolkit.machine_code.kernel_source import compile_kernel

    class Text:
        def __init__(self, text):
            self.text = text

    def prepared(compiled, request):
        kernel = compile_kernel(compiled.text, request.kernel, target=request.arch)
        grid, block = (4, 1, 1), (64, 1, 1)
        own_launch(request, kernel.name, "mine", grid, block)
        values = [as_array(argument) for argument in request.arguments]
        if len(values) != 1 or values[0] is None:
            raise InputError(f"{kernel.name} takes one array: give arguments=[x]")
        parameters = buffer(values[0], "x", 0), hidden(values[0].size, "size")
        return PreparedLaunch(kernel=kernel, grid=grid, block=block, parameters=parameters)

    register(FrontEnd(name="Mine", kernels=("mine.Text",), module="mine"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import shown
from analysis.errors import InputError, UnsupportedError, first_line
from toolkit.launch.checks import POINTER_BYTES
from toolkit.launch.launch import Argument, buffers_of, three
from toolkit.machine_code.attributes import KernelParameter
from toolkit.machine_code.kernel import Kernel
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
    """A launch in terms of machine code, and how its buffers belong to the user's arguments.

    Outputs and messages count the arguments of the user, not the parameters.
    """

    kernel: Kernel
    grid: Extent
    block: Extent
    parameters: tuple[Parameter, ...]
    dynamic_shared_bytes: int = 0
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


# Registered front ends.


@dataclass(frozen=True, kw_only=True)
class FrontEnd:
    """Description of a front end. Its module is imported when a kernel is launched, not before."""

    name: str  #: as its users call it, for error messages
    #: kinds of kernels: the first package and the class, such as "triton.JITFunction"
    kernels: tuple[str, ...]
    module: str  #: module with the function `prepared(compiled, request)`
    install: str | None = None  #: command that installs the package of its kernels
    #: objects of its packages that hold no code for a launch without a GPU, and the remedy of each
    refused: Mapping[str, str] = field(default_factory=dict)

    def prepared(self, compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
        """The launch of a kernel in terms of machine code. Raises as the front end does."""
        return cast(PreparedLaunch, import_module(self.module).prepared(compiled, request))

    def installs(self, package: str) -> bool:
        """True if `install` is the command for a package that scripts import."""
        return self.install is not None and package in {
            kernel.partition(".")[0] for kernel in self.kernels
        }


FRONT_ENDS = (
    FrontEnd(
        name="Triton",
        kernels=(
            "triton.JITFunction",
            "triton.Autotuner",
            "triton.Heuristics",
            "triton.CompiledKernel",
        ),
        module="toolkit.frontends.triton_kernels",
        install="pip install triton",
        refused={
            "triton.InterpretedFunction": "unset TRITON_INTERPRET, so that Triton compiles",
        },
    ),
    FrontEnd(
        name="Numba",
        kernels=("numba.CUDADispatcher",),
        module="toolkit.frontends.numba_kernels",
        install="pip install 'numba-cuda[cu13]'",
        refused={
            "numba.FakeCUDAKernel": "unset NUMBA_ENABLE_CUDASIM, so that Numba compiles",
            "numba._Kernel": "give the function that @cuda.jit decorates",
            "numba._LaunchConfiguration": "give the function that @cuda.jit decorates",
            "numba.DeclareDeviceFunction": "it is a function of the device: give a kernel",
        },
    ),
    FrontEnd(
        name="CuPy",
        kernels=(
            "cupy.RawKernel",
            "cupy.RawModule",
            "cupy.ElementwiseKernel",
            "cupy.ReductionKernel",
        ),
        module="toolkit.frontends.cupy_kernels",
        install="pip install cupy-cuda13x",
        refused={
            "cupy.ufunc": "it is many kernels: write the one that you mean as "
            "cupy.ElementwiseKernel",
            "cupy._SimpleReductionKernel": "it is many kernels: write the one that you mean as "
            "cupy.ReductionKernel",
            "cupy.Function": "a driver has loaded it: give the cupy.RawKernel",
            "cupyx._JitRawKernel": "cupyx.jit compiles for the GPU that is here: give a RawKernel",
        },
    ),
    FrontEnd(
        name="PyCUDA",
        kernels=("toolkit.CudaText",),
        module="toolkit.frontends.cuda_text",
        refused={
            "pycuda.SourceModule": "a driver has loaded it: give toolkit.CudaText(its text)",
            "pycuda.Function": "a driver has loaded it: give toolkit.CudaText(the module's text)",
        },
    ),
    FrontEnd(
        name="the CuTe DSL",
        kernels=("cutlass.CudaDialectJitCompiledFunction",),
        module="toolkit.frontends.cute_kernels",
        install="pip install nvidia-cutlass-dsl",
    ),
)

_registered = {one.name: one for one in FRONT_ENDS}


def register(front_end: FrontEnd) -> None:
    """Add a front end, or replace the one of the same name.

    Raises InputError if another front end has the same kernels.
    """
    for other in _registered.values():
        if other.name != front_end.name and (taken := {*other.kernels} & {*front_end.kernels}):
            raise InputError(
                f"front end {front_end.name}: {min(taken)} is a kernel of {other.name}: name the "
                "package and the class of a kernel of your own"
            )
    _registered[front_end.name] = front_end


def front_ends() -> Iterable[FrontEnd]:
    """All front ends: those of this project, and those that were registered."""
    return _registered.values()


def front_end_of(compiled: object) -> FrontEnd | None:
    """The front end of a kernel, None for any other object. Imports no front end.

    Raises UnsupportedError for an object of a front end that holds no code for a launch.
    """
    kinds = [f"{one.__module__.partition('.')[0]}.{one.__name__}" for one in type(compiled).__mro__]
    for kind in kinds:
        for front_end in front_ends():
            if kind in front_end.kernels:
                return front_end
    for kind in kinds:
        for front_end in front_ends():
            if remedy := front_end.refused.get(kind):
                raise UnsupportedError(f"{kind} cannot be simulated: {remedy}")
    return None
