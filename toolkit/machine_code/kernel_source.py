"""The kernel that a source means: CUDA C++ that is compiled here, or machine code as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path

from analysis.argument_types import shown
from analysis.devices import Device, nearest_compilable
from analysis.errors import InputError, ToolkitError, shortened
from toolkit.machine_code.compile import compile_cubin, supported_architectures
from toolkit.machine_code.include_paths import text_with_headers
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.signature import signature
from toolkit.store.user_files import read_file

Source = str | Path | bytes | Kernel
CUBIN = ".cubin"  # how the path of machine code ends


def compile_kernel(
    source: Source,
    kernel: str | None = None,
    *,
    target: str | Device,
    name: str | None = None,
    folder: Path | None = None,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] = ("-lineinfo",),
) -> Kernel:
    """One kernel of a source, which is what `simulate` takes.

    Sources are compiled for `target`, or for the nearest architecture that the compiler knows: the
    resources have a note then. A source that is a text has a `name` in messages, and its headers
    are in `folder`. Raises as `Kernel.from_image` and `compile_cubin` do.
    """
    found = _compiled_elsewhere(source, kernel)
    if found is not None:
        return found
    if not isinstance(source, str | Path):
        raise InputError(f"source = {shown(source)}: give a path, CUDA C++ text or machine code")
    text, file = (source, name) if name is not None else read_source(source)
    is_file = text != source
    architecture, note = (
        known_architecture(target)
        if isinstance(target, str)
        else nearest_compilable(target.compute_capability, supported_architectures())
    )
    folder = Path(source).resolve().parent if is_file and name is None else folder
    cubin = compile_cubin(
        str(text),
        name=file,
        kernel=kernel,
        arch=architecture,
        defines=defines,
        options=options,
        folder=folder,
    )
    whole = text_with_headers(str(text), file, folder, options)
    return replace(
        cubin,
        resources=replace(cubin.resources, note=note),
        declared=signature(whole, cubin.name),
        target=target if isinstance(target, str) else target.sm_arch,
        file=Path(file).name,
        source=str(text),
    )


def known_architecture(arch: str) -> tuple[str, str | None]:
    """`arch`, or the nearest one that the compiler knows where it is too old, with a note.

    Names that are no architecture pass unchanged: the compiler's check refuses them.
    """
    match = re.fullmatch(r"sm_(\d{2,4})", arch, re.ASCII)
    if match is None:
        return arch, None
    number, supported = int(match[1]), supported_architectures()
    if number in supported or number > min(supported):
        return arch, None
    return nearest_compilable((number // 10, number % 10), supported)


@contextmanager
def naming(source: Source) -> Iterator[None]:
    """Begin every error about a .cubin with its path."""
    try:
        yield
    except ToolkitError as error:
        path = _cubin_file(source)
        if path is not None and str(path) not in str(error):
            error.args = (f"{path}: {error}",)
        raise


def _cubin_file(source: Source) -> Path | None:
    if isinstance(source, str | Path) and str(source).endswith(CUBIN):
        return Path(source)
    return None


def _compiled_elsewhere(source: Source, kernel: str | None) -> Kernel | None:
    """Kernel that was already compiled (a cubin); None for source code."""
    if isinstance(source, Kernel):
        if kernel not in (None, source.name, source.symbol):
            raise InputError(f"the cubin is of kernel {source.name}, not of {kernel}")
        return source
    if isinstance(source, bytes | bytearray):
        return Kernel.from_image(bytes(source), kernel)
    if (path := _cubin_file(source)) is not None:
        try:
            return Kernel.from_image(read_file(str(path)), kernel)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{path} cannot be read: {reason}") from error
    return None


def read_source(source: str | Path) -> tuple[str, str]:
    """(text, name) of `source`: a path to a file, or CUDA C++ text itself.

    Text is what holds a line break or a brace. Raises InputError for a file that cannot be read.
    """
    if isinstance(source, str) and any(mark in source for mark in "\n{"):
        return source, "kernel.cu"
    path = Path(source)
    try:
        text = TextIOWrapper(BytesIO(read_file(path)), encoding="utf-8").read()
        return text, path.name
    except UnicodeDecodeError:
        reason = "not UTF-8 text"
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = getattr(error, "strerror", None) or str(error)
    raise InputError(f"kernel source {shortened(str(path), 200)!r} cannot be read: {reason}")
