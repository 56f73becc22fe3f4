"""The machine code that a file means: a cubin as it is, or CUDA C++ compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.errors import InputError
from toolkit.compile import compile_cubin
from toolkit.cubin import Kernel
from toolkit.executor import read_source
from toolkit.simulator import compiled_elsewhere


def machine_code_of(
    source: Path,
    kernel: str | None,
    *,
    arch: str | None,
    defines: Mapping[str, str],
    options: Sequence[str],
    default_arch: str,
) -> Kernel:
    """One kernel of a .cu or .cubin.

    Raises InputError for a cubin that is asked to be of another architecture; else as `Kernel` and
    `compile_cubin` do.
    """
    found = compiled_elsewhere(source, kernel)
    if found is None:
        text, name = read_source(source)
        return compile_cubin(
            text,
            name=name,
            kernel=kernel,
            arch=arch or default_arch,
            defines=defines,
            options=options,
            folder=source.resolve().parent,
        )
    if arch not in (None, found.architecture):
        raise InputError(f"{source} is of {found.architecture}, not of {arch}: leave out --arch")
    return found
