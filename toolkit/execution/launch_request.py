"""Request of a launch by a caller of `simulate` or `check`: an own kernel, or a rung."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from analysis.devices import Device
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.problem import Gemm
from analysis.records.launch import COMPILER, LINE_INFORMATION
from toolkit.frontends.front_end import FrontEndRequest, Grid, PreparedLaunch, front_end_of
from toolkit.launch.heap import HEAP_BYTES
from toolkit.launch.launch import Argument, launch_geometry
from toolkit.launch.setup import PLAIN, LaunchSetup
from toolkit.machine_code.compile import Compiler
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import Source, compile_kernel, is_machine_code
from toolkit.rungs.launch import RungLaunch, check_nothing_given, rung_launch
from toolkit.rungs.names import is_name

NO_FUNCTION = "grid is a function, which only a kernel of Triton takes: give sizes"
NO_NAMES = "arguments by their names are for CUDA C++: give them in a list"
NO_RUNG = "a kernel that is not a rung takes grid, block and arguments, and no shape"


def with_compiler(options: Sequence[str], compiler: Compiler) -> tuple[str, ...]:
    """The options, with one that names the compiler unless it is NVRTC."""
    return (*options, f"{COMPILER}{compiler}") if compiler != "nvrtc" else tuple(options)


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """Arguments of `simulate` that define the launch. A rung takes only `shape` and `seed`."""

    source: Source | Any
    kernel: str | None = None
    grid: Grid | None = None
    block: int | Sequence[int] | None = None
    arguments: Sequence[Any] | Mapping[str, Argument] | None = None
    shape: str | int | Gemm | None = None
    dynamic_shared_bytes: int | None = None
    defines: Mapping[str, object] | None = None
    options: Sequence[str] = (LINE_INFORMATION,)
    source_dirs: Sequence[str | Path] = ()
    setup: LaunchSetup = PLAIN
    launch_line: int | None = None

    @property
    def is_complete(self) -> bool:
        """True if grid, block and all arguments are given, and no kernel by its number."""
        is_number = self.kernel is not None and self.kernel.isdecimal()
        has_arguments = self.arguments is not None and not isinstance(self.arguments, Mapping)
        is_given = self.grid is not None and self.block is not None and has_arguments
        return is_given and not is_number and self.launch_line is None

    @property
    def is_rung(self) -> bool:
        return isinstance(self.source, str) and is_name(self.source)

    def repeated(self, seed: int | None, arch: str) -> dict[str, Any]:
        """Arguments of `find_remedies` for the same launch."""
        left_out = ("shape", "setup", "source_dirs", "launch_line")
        asked = {x.name: getattr(self, x.name) for x in fields(self) if x.name not in left_out}
        asked["dynamic_shared_bytes"] = self.dynamic_shared_bytes or 0
        setup = {x.name: getattr(self.setup, x.name) for x in fields(self.setup)}
        return asked | setup | {"seed": seed, "arch": arch}

    def rung(self, device: Device | None) -> RungLaunch | None:
        """The launch if `source` names a rung, else None.

        Raises InputError for an argument that the rung itself defines, and as `rung_launch` does.
        """
        if not (isinstance(self.source, str) and self.is_rung):
            return None
        check_nothing_given(
            self.source,
            {
                "kernel": self.kernel,
                "grid": self.grid,
                "block": self.block,
                "arguments": self.arguments,
                "shared memory": self.dynamic_shared_bytes,
                "defines": self.defines,
                "symbols": self.setup.symbols,
                "a cooperative launch": self.setup.cooperative,
                "heap": self.setup.heap_bytes != HEAP_BYTES,
            },
        )
        return rung_launch(self.source, self.shape, device)

    def in_machine_code(self, arch: str) -> tuple[LaunchRequest, PreparedLaunch | None]:
        """The request, with a kernel of a front end as machine code and all its parameters.

        Raises InputError for arguments that the front end does not take and for defines of machine
        code, and CompileError as it compiles.
        """
        front_end = front_end_of(self.source)
        if front_end is None:
            if self.defines and is_machine_code(self.source):
                raise InputError("defines: the kernel is compiled already: leave them out")
            return self, None
        self.check_no_shape()
        if isinstance(self.arguments, Mapping):
            raise InputError(NO_NAMES)
        prepared = front_end.prepared(
            self.source,
            FrontEndRequest(
                kernel=self.kernel,
                grid=self.grid,
                block=self.block,
                arguments=self.arguments or (),
                dynamic_shared_bytes=self.dynamic_shared_bytes or 0,
                defines=self.defines or {},
                options=self.options,
                arch=arch,
            ),
        )
        if self.kernel not in (None, prepared.kernel.name, prepared.kernel.symbol):
            raise InputError(f"the kernel is {prepared.kernel.name}, not {self.kernel}")
        request = replace(
            self,
            source=replace(prepared.kernel, declared=prepared.declared),
            kernel=None,
            grid=prepared.grid,
            block=prepared.block,
            arguments=prepared.arguments,
            dynamic_shared_bytes=prepared.dynamic_shared_bytes,
        )
        return request, prepared

    def check_no_shape(self) -> None:
        """Raise InputError for the shape of a rung."""
        if self.shape is not None:
            raise InputError(NO_RUNG)

    def launched(self) -> tuple[Geometry, Sequence[Argument]]:
        """Geometry and arguments of a kernel that is not a rung. Raises InputError without them."""
        arguments = self.arguments
        self.check_no_shape()
        if self.grid is None or self.block is None or arguments is None:
            raise InputError(NO_RUNG)
        if callable(self.grid):
            raise InputError(NO_FUNCTION)
        if isinstance(arguments, Mapping):
            raise InputError(NO_NAMES)
        geometry = launch_geometry(self.grid, self.block, self.dynamic_shared_bytes or 0)
        return geometry, arguments

    def compiled(self, target: str | Device | None) -> Kernel:
        """Machine code of a kernel that is not a rung. None is the default, as `compile_kernel`."""
        return compile_kernel(
            self.source,
            self.kernel,
            target=target,
            defines=self.defines,
            options=self.options,
            source_dirs=self.source_dirs,
        )
