"""A launch of a kernel in a Python file, as the options of `simulate` and `check` ask for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.errors import InputError
from toolkit.cli.argument_syntax import BufferArgument, parse_arguments
from toolkit.cli.launch_options import (
    Call,
    Extent,
    SimulatedCall,
    declared_in,
    extent_of,
    saved_files,
)
from toolkit.cli.launch_source import defines_of
from toolkit.cli.options import KernelOptions, RunOptions
from toolkit.frontends.scripts import ScriptKernel, script_kernel
from toolkit.launch.launch import Argument, Execution
from toolkit.machine_code.kernel_source import read_source

_INTEGER = re.compile(r"[-+]?(\d+|0[xX][0-9a-fA-F]+)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class ScriptLaunch:
    """The kernel, and the options that its front end may choose itself: None if it should.

    `numbers` are the positions of arguments that were given as bare numbers, of which the front end
    chooses the type.
    """

    kernel: ScriptKernel
    grid: Extent | None
    block: Extent | None
    numbers: frozenset[int]

    @property
    def named(self) -> str:
        return f"{self.kernel.path.name}:{self.kernel.name}"

    @property
    def text(self) -> str | None:
        return self.kernel.text

    def launch(self, made: Sequence[Argument], call: Call) -> dict[str, Any]:
        """Arguments of `simulate` and `check`."""
        return {
            "source": self.kernel.compiled,
            "kernel": call.kernel,
            "grid": self.grid,
            "block": self.block,
            "arguments": [
                value.item() if k in self.numbers and isinstance(value, np.generic) else value
                for k, value in enumerate(made)
            ],
            "dynamic_shared_bytes": call.dynamic_shared_bytes,
            "defines": call.defines,
        }

    def simulated(self, call: Call, execution: Execution) -> SimulatedCall:
        """The result, of the launch that the front end made."""
        note = self.kernel.note
        execution = replace(execution, notes=(*execution.notes, *([note] if note else [])))
        if (geometry := execution.geometry) is not None:
            call = replace(
                call,
                grid=geometry.grid,
                block=geometry.block,
                dynamic_shared_bytes=geometry.dynamic_shared_bytes,
            )
        return SimulatedCall(call=call, execution=execution)


def script_call(launch: KernelOptions, saves: Sequence[str], common: Mapping[str, Any]) -> Call:
    """The launch of `script.py:kernel`, whose file is read or imported now.

    Raises as `script_kernel` does, and InputError for arguments that are not understood.
    """
    if isinstance(launch, RunOptions):
        raise InputError(
            "run takes CUDA C++ or a cubin, not a kernel of a Python file: simulate takes it"
        )
    found = script_kernel(launch.source)
    kernel = launch.kernel or found.module_kernel
    arguments = launch.arguments or ()
    if found.text is not None:
        own = kernel or getattr(found.compiled, "name", None)
        numbers: list[int] = []
        parsed = parse_arguments(arguments, declared_in(found.text, own))
    else:
        typed = list(map(_typed, arguments))
        numbers = [k for k, text in enumerate(typed) if text != arguments[k]]
        parsed = parse_arguments(typed)
    buffers = {k: item.fill for k, item in enumerate(parsed) if isinstance(item, BufferArgument)}
    grid = extent_of("--grid", launch.grid) if launch.grid is not None else None
    block = extent_of("--block", launch.block) if launch.block is not None else None
    return Call(
        source=found.path,
        text=read_source(found.path)[0],
        kernel=kernel,
        grid=grid or (1, 1, 1),
        block=block or (1, 1, 1),
        dynamic_shared_bytes=launch.shared,
        written=tuple(arguments),
        arguments=parsed,
        defines=defines_of(launch),
        saves=saved_files(saves, buffers, [found.path]),
        script=ScriptLaunch(kernel=found, grid=grid, block=block, numbers=frozenset(numbers)),
        **common,
    )


def _typed(text: str) -> str:
    """A bare number with the widest type of its kind; others as they are."""
    if _INTEGER.fullmatch(text):
        return f"i64={text}"
    return f"f64={text}" if _FLOAT.fullmatch(text) else text
