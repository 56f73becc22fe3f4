"""The kernel that a source means: CUDA C++ that is compiled here, or machine code as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO, TextIOWrapper
from pathlib import Path

from analysis.argument_types import shown
from analysis.devices import Device, nearest_compilable
from analysis.errors import CompileError, InputError, ToolkitError, shortened
from toolkit.machine_code.architectures import DEFAULT_ARCHITECTURE, with_features
from toolkit.machine_code.chosen_code import chosen_code
from toolkit.machine_code.compile import compile_cubin, supported_architectures
from toolkit.machine_code.containers import HEAD_BYTES, Form, form_of
from toolkit.machine_code.include_paths import text_with_headers
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_names import plain_name
from toolkit.machine_code.signature import signature
from toolkit.machine_code.source_text import with_source_text
from toolkit.store.user_files import check_regular, read_file

Source = str | Path | bytes | Kernel
SUFFIXES = (".cubin", ".fatbin", ".ptx", ".o", ".so", ".a", ".exe", ".dll", ".lib", ".obj")


def compile_kernel(
    source: Source,
    kernel: str | None = None,
    *,
    target: str | Device | None,
    name: str | None = None,
    folder: Path | None = None,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] = ("-lineinfo",),
    source_dirs: Sequence[str | Path] = (),
    headers: Sequence[str] = (),
) -> Kernel:
    """One kernel of a source, which is what `simulate` takes.

    For machine code, `target` and `source_dirs` are as of `kernel_of_machine_code`. Sources are
    compiled for `target` (None: that of the default device), or for the nearest architecture that
    the compiler knows: the resources have a note then. A source that is a text has a `name` in
    messages, and its headers are in `folder`; `headers` are folders of installed packages. Raises
    as `kernel_of_machine_code` and
    `compile_cubin` do.
    """
    if is_machine_code(source):
        return kernel_of_machine_code(source, kernel, target=target, source_dirs=source_dirs)
    if not isinstance(source, str | Path):
        raise InputError(f"source = {shown(source)}: give a path, CUDA C++ text or machine code")
    target = target or DEFAULT_ARCHITECTURE
    text, file = (source, name) if name is not None else read_source(source)
    is_file = text != source
    architecture, note = (
        known_architecture(target)
        if isinstance(target, str)
        else nearest_compilable(target.compute_capability, supported_architectures())
    )
    folder = Path(source).resolve().parent if is_file and name is None else folder
    whole = text_with_headers(str(text), file, folder, options)
    compiled_for = partial(
        compile_cubin,
        str(text),
        name=file,
        kernel=kernel,
        defines=defines,
        options=options,
        folder=folder,
        headers=headers,
    )
    architecture = with_features(architecture, whole)
    try:
        cubin = compiled_for(arch=architecture)
    except CompileError as error:
        featured = with_features(architecture, str(error))
        if featured == architecture:
            raise
        cubin = compiled_for(arch=featured)
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
    """Begin every error about machine code in a file with its path."""
    try:
        yield
    except ToolkitError as error:
        path = source.origin if isinstance(source, Kernel) else _machine_code_file(source)
        if path is not None and not re.search(rf"(?<!\w){re.escape(str(path))}(?!\w)", str(error)):
            error.args = (f"{path}: {error}",)
        raise


def is_machine_code(source: Source) -> bool:
    """True for what was compiled elsewhere: a cubin, a fatbin, a program with kernels, PTX, a
    `Kernel`. False for CUDA C++, a file that cannot be read, and the name of a rung.
    """
    if isinstance(source, str) and "\n" in source:
        return form_of(source.encode()) is not None
    if not isinstance(source, str | Path):
        return isinstance(source, Kernel | bytes | bytearray)
    return _machine_code_file(source) is not None


def is_of_many(source: Source) -> bool:
    """True for machine code that may be of many architectures: any but a cubin or a `Kernel`."""
    if isinstance(source, Kernel) or not is_machine_code(source):
        return False
    return form_of(_content(source)) not in (Form.CUBIN, None)


def kernel_of_machine_code(
    source: Source,
    kernel: str | None = None,
    *,
    target: str | Device | None = None,
    source_dirs: Sequence[str | Path] = (),
) -> Kernel:
    """One kernel of machine code that was compiled elsewhere, with the text of its source.

    Parameters
    ----------
    source
        A `Kernel`, which is returned as it is; or a cubin, a fatbin, an executable, an object file,
        a library or PTX: a path, or the content.
    kernel
        Its symbol or plain name; may be left out where there is just one.
    target
        Architecture or device to choose code for. Without it, the default device, if there is
        machine code for it, or else the newest machine code that is there.
    source_dirs
        Folders in which the source files that the line table names are looked for first.

    Raises
    ------
    InputError
        For content that is no machine code, or holds no such kernel or nothing for the target.
    UnsupportedError
        For machine code of architectures that are too old.
    CompileError, UnavailableError
        For PTX and relocatable machine code that nvJitLink refuses, or without nvJitLink.
    """
    if isinstance(source, Kernel):
        if kernel not in (None, source.name, source.symbol):
            raise InputError(
                f"the cubin is of kernel {source.name}, not of {kernel}: leave the kernel out"
            )
        return source
    origin = Path(str(source)) if isinstance(source, Path) or _is_path(source) else None
    content = _content(source)
    if form_of(content) is None and origin and (not content or origin.suffix != ".cubin"):
        raise InputError(
            f"it {'holds neither machine code nor PTX' if content else 'is empty'}: make it again"
        )
    if form_of(content) is None:
        return replace(Kernel.from_image(content, kernel), is_foreign=True)  # which says why not
    wanted = target.sm_arch if isinstance(target, Device) else target
    chosen = chosen_code(content, kernel, wanted or None)
    found = Kernel.from_image(chosen.image, chosen.symbol)
    found = replace(
        found,
        name=kernel or plain_name(chosen.symbol),
        origin=origin,
        is_foreign=True,
        notes=chosen.notes,
    )
    if chosen.compiler:
        found = replace(found, resources=replace(found.resources, compiler=chosen.compiler))
    return with_source_text(found, source_dirs, origin)


def _is_path(source: Source) -> bool:
    return isinstance(source, str) and not any(mark in source for mark in "\n{")


def _machine_code_file(source: Source) -> Path | None:
    """The path of a file with machine code, or that is to hold some by its name."""
    if not (isinstance(source, Path) or _is_path(source)):
        return None
    path = Path(str(source))
    if path.suffix in SUFFIXES:
        return path
    try:
        check_regular(path)
        with path.open("rb") as file:
            return path if form_of(file.read(HEAD_BYTES)) is not None else None
    except (OSError, ValueError):
        return None


def _content(source: Source) -> bytes:
    if isinstance(source, bytes | bytearray):
        return bytes(source)
    if isinstance(source, str) and not _is_path(source):
        return source.encode()
    try:
        return read_file(str(source))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{source} cannot be read: {reason}") from error


def read_source(source: str | Path) -> tuple[str, str]:
    """(text, name) of `source`: a path to a file, or CUDA C++ text itself.

    Text is what holds a line break or a brace. Raises InputError for a file that cannot be read.
    """
    if isinstance(source, str) and any(mark in source for mark in "\n{"):
        return source, "kernel.cu"
    path = Path(source)
    try:
        content = read_file(path)
        text = TextIOWrapper(BytesIO(content), encoding="utf-8-sig").read()
        if form_of(content) is None:
            return text, path.name
        reason = "it is machine code or PTX, not CUDA C++"
    except UnicodeDecodeError:
        reason = "not UTF-8 text"
        if path.suffix != ".cu":
            reason += ", nor a cubin, a fatbin, a program, an object file or a library"
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = getattr(error, "strerror", None) or str(error)
    raise InputError(f"kernel source {shortened(str(path), 200)!r} cannot be read: {reason}")
