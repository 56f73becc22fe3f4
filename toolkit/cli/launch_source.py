"""Kernel of a launch, compiled while its command does other work at the start."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path

from analysis.comparison.accuracy import device_of
from analysis.devices import Device, find_device
from analysis.errors import ToolkitError
from analysis.records.launch import COMPILER
from toolkit.cli.options import KernelOptions, LaunchOptions
from toolkit.frontends.script_names import is_script
from toolkit.machine_code.architectures import architecture_of
from toolkit.machine_code.include_paths import files_read
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import (
    Source,
    compile_kernel,
    is_machine_code,
    kernel_of_machine_code,
    naming,
    read_source,
)
from toolkit.machine_code.programs import stop_children
from toolkit.rungs.names import is_name

# An interrupt within an import may leave a lock behind, for which the thread then waits for ever.
STUCK_S = 3.0


@contextmanager
def compiled_beside(launch: KernelOptions, here: Device | None = None) -> Iterator[Future[Source]]:
    """The source of a launch as `simulate` takes it, compiled in a thread.

    `here` is the GPU that it is for, unless the options name a device.

    The result of the future raises errors of the compilation. On an error in the `with` block, and
    on Ctrl-C, the compilation ends.
    """
    pool = ThreadPoolExecutor(1)
    compiled = pool.submit(_compiled, launch, here)
    try:
        yield compiled
    except BaseException:
        until_s = time.monotonic() + STUCK_S
        while wait([compiled], timeout=0.01).not_done and time.monotonic() < until_s:
            stop_children()  # it may just begin
        raise
    finally:
        pool.shutdown(wait=False)


def _compiled(launch: KernelOptions, here: Device | None) -> Source:
    """The kernel of CUDA C++, disassembled; other sources as they were named."""
    others = is_name(launch.source) or is_script(launch.source)
    if others or is_machine_code(launch.source):
        return launch.source
    kernel = compile_kernel(
        Path(launch.source),
        launch.kernel,
        target=target_of(launch, here)[0],
        defines=defines_of(launch),
        options=options_of(launch),
    )
    with suppress(ToolkitError):  # who needs them finds the error again
        _ = kernel.instructions
    return kernel


def target_of(
    launch: KernelOptions, here: Device | None = None, code: Kernel | None = None
) -> tuple[str, Device | None]:
    """The architecture, which machine code (`code`) has, and the device.

    The device is the one that was named, else the GPU that is `here`, else one of the architecture.
    """
    device = _named_device(launch, here)
    arch = code.architecture if code else architecture_of(launch.arch, device)
    return arch, device or device_of(arch)


def machine_code_of(launch: KernelOptions, here: Device | None = None) -> Kernel | None:
    """The kernel that was compiled elsewhere, for the device; None for CUDA C++ and rungs."""
    if is_name(launch.source) or not is_machine_code(launch.source):
        return None
    with naming(launch.source):
        return kernel_of_machine_code(
            launch.source,
            launch.kernel,
            target=launch.arch or _named_device(launch, here),
            source_dirs=launch.source_dirs or (),
        )


def _named_device(launch: KernelOptions, here: Device | None) -> Device | None:
    named = launch.device if isinstance(launch, LaunchOptions) else None
    return find_device(named) if named is not None else here


def inputs_of(source: Path, options: Sequence[str]) -> list[Path]:
    """Files that are read for a source, including its includes.

    For machine code and for a Python file it is the file alone.
    """
    if is_script(source.name) or is_machine_code(source):
        return [source]
    return [source, *files_read(source, read_source(source)[0], options)]


def defines_of(launch: KernelOptions) -> dict[str, str]:
    """Values of the macros of --define, by name."""
    return dict(map(_parse_define, launch.defines or ()))


def _parse_define(text: str) -> tuple[str, str]:
    """NAME=VALUE, or NAME alone, which defines 1 as compilers do."""
    name, given, value = text.partition("=")
    return name, value if given else "1"


def options_of(launch: KernelOptions) -> tuple[str, ...]:
    """Options of the compiler: line information, its name if it was given, those of the user."""
    compiler = [] if launch.compiler is None else [f"{COMPILER}{launch.compiler}"]
    return ("-lineinfo", *compiler, *(launch.options or ()))
