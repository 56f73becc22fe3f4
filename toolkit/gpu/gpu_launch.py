"""A launch as the process that makes it on the GPU gets it: code, geometry and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from analysis.geometry import Geometry
from toolkit.launch.launch import Argument, check_numpy
from toolkit.launch.setup import PLAIN, LaunchSetup
from toolkit.machine_code.signature import Declared


@dataclass(frozen=True, kw_only=True)
class GpuLaunch:
    """One launch on a GPU: the code to compile, the geometry and the arguments.

    Raises InputError for an argument that is not an array, a NumPy scalar, a tensor map, a texture
    or a surface.
    """

    source: str | bytes  #: CUDA C++ text, or machine code; empty for cuBLAS
    name: str  #: file name of the source in messages
    kernel: str
    geometry: Geometry
    #: arrays are device buffers; NumPy scalars, tensor maps and handles are passed by value
    arguments: Sequence[Argument]
    defines: Mapping[str, object] = field(default_factory=dict)
    options: Sequence[str] = ("-lineinfo",)
    inputs: Sequence[int] = ()  #: positions of arrays that the kernel must not write to
    unwritten: Sequence[int] = ()  #: positions of arrays without contents, such as outputs
    declared: Sequence[Declared] | None = None  #: parameters as the source declares them
    setup: LaunchSetup = PLAIN  #: variables, heap, and the kind of launch
    text: str = ""  #: the source of machine code, which says the types of variables

    def __post_init__(self) -> None:
        check_numpy(self.kernel, self.arguments)
