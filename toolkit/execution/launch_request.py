"""Request of a launch by a caller of `simulate` or `check`: the caller's own kernel, or a rung."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from analysis.devices import Device
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.problem import Gemm
from toolkit.launch.launch import Argument, launch_geometry
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import Source, compile_kernel
from toolkit.rungs.launch import RungLaunch, check_nothing_given, rung_launch
from toolkit.rungs.names import is_name

NO_RUNG = "a kernel that is not a rung takes grid, block and arguments, and no shape"


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """Arguments of `simulate` that define the launch. A rung takes only `shape` and `seed`."""

    source: Source
    kernel: str | None
    grid: int | Sequence[int] | None
    block: int | Sequence[int] | None
    arguments: Sequence[Argument] | Mapping[str, Argument] | None
    shape: str | int | Gemm | None
    dynamic_shared_bytes: int | None
    defines: Mapping[str, object] | None
    options: Sequence[str]
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
        asked = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("shape", "launch_line")
        }
        asked["dynamic_shared_bytes"] = self.dynamic_shared_bytes or 0
        return asked | {"seed": seed, "arch": arch}

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
            },
        )
        return rung_launch(self.source, self.shape, device)

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
        if isinstance(arguments, Mapping):
            raise InputError("arguments by their names are for CUDA C++: give them in a list")
        geometry = launch_geometry(self.grid, self.block, self.dynamic_shared_bytes or 0)
        return geometry, arguments

    def compiled(self, target: str | Device) -> Kernel:
        """Machine code of a kernel that is not a rung."""
        return compile_kernel(
            self.source, self.kernel, target=target, defines=self.defines, options=self.options
        )
