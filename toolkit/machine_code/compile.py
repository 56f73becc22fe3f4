"""CUDA C++ to machine code with NVRTC from its pip wheel: no driver and no CUDA toolkit needed.

Compiled kernels are cached by content in the user's cache directory.

The code is not always that of nvcc of the same version: NVRTC addresses shared memory with 64-bit
pointers where nvcc takes 32 bits, so registers per thread may differ by a few (coarsened_1d on
sm_86: 57 here, 53 with nvcc 13.0). For a kernel that ran on a GPU, the driver's numbers are
reported.
"""

from __future__ import annotations

import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib import metadata
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn, get_args

from analysis.errors import (
    CompileError,
    InputError,
    UnavailableError,
    UnknownNameError,
    shortened,
)
from analysis.records.launch import COMPILER
from toolkit.machine_code import (
    compiler_process,
    host_macros,
    include_paths,
    kernel_names,
    source_items,
)
from toolkit.machine_code import (
    device_side as _sides,
)
from toolkit.machine_code import (
    remarks as _remarks,
)
from toolkit.machine_code.compiled_before import about_compiler, note_compiled
from toolkit.machine_code.compiler_process import CompilerAnswer, compile_apart
from toolkit.machine_code.complaints import FRONT_END_ERROR, complaints_of, raise_explained
from toolkit.machine_code.cuda_tools import nvidia_remedy
from toolkit.machine_code.device_side import (
    ALL_ON_DEVICE,
    DeviceSide,
    check_calls,
    device_side,
)
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.host_macros import HOST_HEADERS
from toolkit.machine_code.include_paths import (
    check_readable,
    explained,
    include_options,
    includes,
)
from toolkit.machine_code.kernel import Kernel, read_kernel
from toolkit.machine_code.kernel_names import (
    TEMPLATES,
    is_left_out,
    kernels_there,
    symbol_of,
)
from toolkit.machine_code.left_out import LeftOut
from toolkit.machine_code.nvcc import compile_with_nvcc, nvcc_version
from toolkit.machine_code.remarks import about_kernel, remarks
from toolkit.machine_code.source_items import namespaces_of
from toolkit.store.cache import cached, digest_of_files, keep
from toolkit.store.watched_files import folders_of

if TYPE_CHECKING:
    from pathlib import Path

Compiler = Literal["nvrtc", "nvcc"]
COMPILERS: tuple[Compiler, ...] = get_args(Compiler)
REMEDY = nvidia_remedy("pip install 'cuda-bindings==13.0.*' 'nvidia-cuda-nvrtc==13.0.88'")

_MODULES = (
    _remarks,
    compiler_process,
    host_macros,
    include_paths,
    kernel_names,
    _sides,
    source_items,
)
_SOURCES = digest_of_files(__file__, *(module.__file__ for module in _MODULES))
_ARCHITECTURE = re.compile(r"sm_(\d+)[af]?", re.ASCII)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PTXAS_ERROR = re.compile(r"^ptxas .*?(?:error|fatal) *: *(?P<text>.+)$", re.MULTILINE)
_SEEMS_MIXED = re.compile(r"\bmain\s*\(|<<<|#[ \t]*include[ \t]*<(?:vector|iostream)>")
MOST_ROUNDS = 5  # in each, the compiler names items that it cannot compile
# NVRTC takes that of a header for a token; `device_side` reads headers without it
_BYTE_ORDER_MARK = BOM_UTF8.decode()
_NAME_EXPRESSION = "__nv_name_map"  # the "file" in which NVRTC finds mistakes of a kernel's name
_NO_CODE = "with these options the compiler makes no machine code: leave out --option"


def compile_cubin(
    source: str,
    *,
    name: str,
    kernel: str | None,
    arch: str,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] = ("-lineinfo",),
    folder: Path | None = None,
    headers: Sequence[str] = (),
) -> Kernel:
    """The machine code of `kernel`: an `extern "C"` name or a C++ name expression.

    Without a name it is the only kernel that the source defines. `name` is the file name in
    messages, `arch` such as "sm_86", `folder` where the source's own headers are, `headers` the
    folders of the front end whose text this is. The compiler is NVRTC, or nvcc with
    `--compiler=nvcc` among the options; `left_out` of the result is the host code that NVRTC was
    not given. Raises CompileError where the source is wrong, InputError where the kernel,
    architecture, a define or an option is, and UnavailableError without the compiler.
    """
    capability = _capability(arch)
    check_readable(source, name, folder, options)
    compiler, options = chosen_compiler(options)
    if compiler == "nvcc":
        own = [*options, *_define_options(defines or {})]
        image, log = compile_with_nvcc(source, name=name, folder=folder, arch=arch, options=own)
        symbols = cubin_file(image).kernels
        found = read_kernel(image, symbol_of(kernel, symbols, name, source), kernel)
        resources = replace(found.resources, architecture=arch, compiler=nvcc_version())
        notes = (*found.notes, *about_kernel(remarks(log), found.symbol))
        return replace(found, resources=resources, notes=notes)
    request = _Request(
        source=source,
        name=name,
        kernel=kernel,
        options=(
            f"--gpu-architecture={arch}",
            *options,
            *_define_options(defines or {}),
            *include_options(source, folder),
            *(f"--include-path={place}" for place in headers),
        ),
        compiler=compiler_version(),
    )
    left_out: tuple[LeftOut, ...] = ()
    if headers:  # the text of a front end, which NVRTC takes as it is
        made = _compiled(request)
    else:
        made, left_out = _compiled_or_cut(request, folder, folders_of(options))
    if request.cacheable:
        note_compiled(source)
    try:
        found = read_kernel(made.image, made.symbol, kernel)
    except KeyError:
        raise InputError(_NO_CODE) from None
    if found.capability != capability:
        raise InputError(
            f"the options compile for {found.architecture}, not for {arch}: leave out the one that "
            "names an architecture"
        )
    resources = replace(found.resources, architecture=arch, compiler=request.compiler)
    notes = (*found.notes, *about_kernel(made.remarks, found.symbol))
    return replace(found, resources=resources, left_out=left_out, notes=notes)


def chosen_compiler(options: Sequence[str]) -> tuple[Compiler, list[str]]:
    """The compiler that `--compiler=` among the options names, and the other options.

    >>> chosen_compiler(("-lineinfo", "--compiler=nvcc"))
    ('nvcc', ['-lineinfo'])
    """
    named = [one.removeprefix(COMPILER) for one in options if one.startswith(COMPILER)]
    for one in named:
        if one not in COMPILERS:
            raise UnknownNameError("compiler", one, COMPILERS)
    others = [one for one in options if not one.startswith(COMPILER)]
    return ("nvcc" if named[-1:] == ["nvcc"] else "nvrtc"), others


def supported_architectures() -> list[int]:
    """The compute capabilities that the compiler knows, such as 86 for sm_86."""
    return list(_about()[1])


@cache
def compiler_version() -> str:
    """The compiler's name and version, with the wheel's patch number where it is from there."""
    (major, minor), _ = _about()
    with suppress(metadata.PackageNotFoundError):
        wheel = metadata.version("nvidia-cuda-nvrtc")
        if wheel.startswith(f"{major}.{minor}."):
            return f"NVRTC {wheel}"
    return f"NVRTC {major}.{minor}"


@cache
def _about() -> tuple[tuple[int, int], list[int]]:
    try:
        return about_compiler()
    except (ImportError, OSError) as error:
        raise _unreachable(error) from error


def _unreachable(error: Exception) -> UnavailableError:
    if isinstance(error, ImportError):
        return UnavailableError(f"NVRTC is not installed: {REMEDY}")
    return UnavailableError(f"the compiler cannot be started: {error}: reinstall it: {REMEDY}")


@dataclass(frozen=True, kw_only=True)
class _Request:
    """Everything that decides the machine code."""

    source: str
    name: str
    kernel: str | None
    options: tuple[str, ...]
    compiler: str
    headers: Mapping[str, str] = field(default_factory=lambda: HOST_HEADERS, hash=False)

    @property
    def cacheable(self) -> bool:
        """True if no other file decides too: included files may change unnoticed."""
        own = [text for name, text in self.headers.items() if name not in HOST_HEADERS]
        texts = self.source, *own, self.kernel or "", *self.options
        return not any(includes(text, self.headers) for text in texts)

    @property
    def entry(self) -> str:
        """The name of its entry in the cache."""
        appended = os.environ.get("NVRTC_APPEND_FLAGS", "")  # NVRTC adds these to every call
        parts = [
            self.source,
            self.name,
            self.kernel,
            self.options,
            self.compiler,
            {name: text for name, text in self.headers.items() if name not in HOST_HEADERS},
            appended,
            _SOURCES,
        ]
        return f"{sha256(json.dumps(parts).encode()).hexdigest()}.cubin"


def _capability(arch: str) -> int:
    match = _ARCHITECTURE.fullmatch(arch)
    known = supported_architectures()
    if match is None or int(match[1]) not in known:
        names = [f"sm_{number}" for number in known]
        raise UnknownNameError("architecture", arch, names, others=f"known: {', '.join(names)}")
    return int(match[1])


def _define_options(defines: Mapping[str, object]) -> list[str]:
    for name, value in defines.items():
        if not (isinstance(name, str) and _IDENTIFIER.fullmatch(name)) or "\n" in str(value):
            raise InputError(
                f"define {name!r} = {shortened(str(value))!r}: give a C identifier and one line"
            )
    return [  # C has no True
        f"-D{name}={int(value) if isinstance(value, bool) else value}"
        for name, value in defines.items()
    ]


class _Made(NamedTuple):
    """Symbol and image of a kernel, and what ptxas says of it, a line each."""

    symbol: str
    image: bytes
    remarks: tuple[str, ...]


def _compiled(request: _Request) -> _Made:
    """From the cache if it has it: an entry holds symbol, remarks and image, zeros between."""
    if not request.cacheable:
        return _compile(request)
    content = cached(request.entry)
    if content is None:
        made = _compile(request)
        texts = made.symbol, "\n".join(made.remarks)
        content = b"".join(text.encode() + b"\0" for text in texts) + made.image
        keep(request.entry, content)
    name, said, image = content.split(b"\0", 2)
    return _Made(name.decode(), image, tuple(said.decode().splitlines()))


# Sources with host code.


def _compiled_or_cut(
    request: _Request, folder: Path | None, folders: Sequence[Path]
) -> tuple[_Made, tuple[LeftOut, ...]]:
    """Symbol and image of the source as it is or, if it does not compile, of its device side."""
    is_mixed = _SEEMS_MIXED.search(request.source) and ALL_ON_DEVICE not in request.options
    if is_mixed and (side := _side(request, folder, folders)).certainly_has_host_code:
        return _compiled_side(request, side)
    try:
        return _compiled(request), ()
    except CompileError as error:
        if not FRONT_END_ERROR.search(error.log or ""):
            raise
        side = _side(request, folder, folders)
        if not side.reasons and _BYTE_ORDER_MARK not in (error.log or ""):
            raise
    return _compiled_side(request, side)


def _side(request: _Request, folder: Path | None, folders: Sequence[Path]) -> DeviceSide:
    return device_side(
        request.source,
        name=request.name,
        kernel=request.kernel,
        folder=folder,
        folders=folders,
    )


def _compiled_side(request: _Request, side: DeviceSide) -> tuple[_Made, tuple[LeftOut, ...]]:
    """The same of a device side, from which ever more is left out until it compiles."""
    if not side.roots:
        raise InputError(
            f"{request.name} holds no kernel: it has no __global__ function, nor have its headers"
        )
    check_calls(side)
    for _ in range(MOST_ROUNDS):
        try:
            return _compiled(_of_side(request, side)), side.left_out
        except CompileError as error:
            smaller = side.without(complaints_of(error))
            if smaller is None:
                raise_explained(error, side)
                raise
            side = smaller
    side = side.only_needed()
    try:
        return _compiled(_of_side(request, side)), side.left_out
    except CompileError as error:
        raise_explained(error, side)
        raise


def _of_side(request: _Request, side: DeviceSide) -> _Request:
    return replace(
        request,
        source=side.source,
        headers=side.headers,
        options=(*request.options, *side.options),
    )


# The compiler.


def _compile(request: _Request) -> _Made:
    answer = _answered(request, request.kernel and _in_namespaces(request.kernel, request))
    if not answer.image:
        raise InputError(_NO_CODE)
    said = tuple(remarks(answer.log, answer.ptx))
    if request.kernel is not None:
        return _Made(answer.symbol, answer.image, said)
    symbols = cubin_file(answer.image).kernels
    symbol = symbol_of(None, symbols, request.name, request.source)
    return _Made(symbol, answer.image, said)


def _in_namespaces(kernel: str, request: _Request) -> str:
    """The name of a kernel with the namespaces of its definition, if it is given without them."""
    name = kernel.partition("<")[0]
    own = {one: text for one, text in request.headers.items() if one not in HOST_HEADERS}
    found = {
        scope
        for file, text in {request.name: request.source, **own}.items()
        if "::" not in name and "namespace" in text and name in text and "__global__" in text
        for scope in namespaces_of(name.strip(), file, text)
    }
    return f"{found.pop()}{kernel}" if len(found) == 1 else kernel


def _answered(request: _Request, expression: str | None) -> CompilerAnswer:
    """The compiler's answer to a source that is right."""
    try:
        answer = compile_apart(
            request.source,
            name=request.name,
            headers=request.headers,
            options=request.options,
            expression=expression,
        )
    except TimeoutError:
        raise CompileError(
            f"{request.name} did not compile within {compiler_process.LIMIT_S} s, and the compiler "
            "was stopped: look for macros or templates that double each other"
        ) from None
    except ChildProcessError as error:
        raise CompileError(
            f"{request.name}: the compiler crashed ({error}): compile parts of it to see which"
        ) from error
    except (ImportError, OSError) as error:
        raise _unreachable(error) from error
    if answer.status == "NVRTC_SUCCESS":
        return answer
    if answer.status == "NVRTC_ERROR_INVALID_OPTION":
        log = answer.log.removeprefix("nvrtc: error: ")
        raise InputError(f"{request.name}: compiler options: {log}")
    if answer.status != "NVRTC_ERROR_COMPILATION":
        raise UnavailableError(f"NVRTC stopped with {answer.status}: reinstall it: {REMEDY}")
    _raise_first_error(answer.log, request)


def _raise_first_error(log: str, request: _Request) -> NoReturn:
    found = FRONT_END_ERROR.search(log)
    if found is None:
        ptxas = _PTXAS_ERROR.search(log)
        text = explained(f"ptxas: {ptxas['text']}") if ptxas else " ".join(log.split())
        raise CompileError(f"{request.name}: {text}", log=log)
    if found["file"] == _NAME_EXPRESSION:
        _raise_no_kernel(found["text"], request)
    if '"__global__" does not apply' in found["text"]:  # what follows from a type that is not known
        found = next(
            (e for e in FRONT_END_ERROR.finditer(log) if "is undefined" in e["text"]), found
        )
    _raise_collision(found, log, request)
    place = f"{found['file']}, line {found['line']}" if found["file"] else request.name
    others = len(FRONT_END_ERROR.findall(log)) - 1
    more = ""
    if others:
        more = f" (and {others} more {'error' if others == 1 else 'errors'})"
    raise CompileError(f"{place}: {explained(found['text'])}{more}", log=log)


def _raise_collision(found: re.Match[str], log: str, request: _Request) -> None:
    """Raise InputError if a macro of --define stands in the line of a header that is refused."""
    if not found["file"] or found["file"] == request.name:
        return
    line = log[found.end() :].lstrip("\n").partition("\n")[0]
    words = set(re.findall(r"\w+", line))
    for option in request.options:
        name, _, value = option.removeprefix("-D").partition("=")
        if option.startswith("-D") and name in words:
            raise InputError(
                f"{request.name}: define {name} = {value} changes CUDA's own headers, which use "
                "this name: give the macro another name"
            )


def _raise_no_kernel(reason: str, request: _Request) -> NoReturn:
    symbols = cubin_file(_answered(request, None).image).kernels
    known = kernels_there(symbols, request.source)
    if is_left_out(request.kernel or "", symbols, request.source):
        raise InputError(
            f"kernel {request.kernel!r} stands in a part of {request.name} that an #if leaves out; "
            f"the kernels there: {', '.join(known) or 'none'}"
        )
    if known and reason.endswith("is undefined") and f'"{request.kernel}"' in reason:
        raise UnknownNameError("kernel", request.kernel or "", known)
    there = f"the kernels there: {', '.join(known)}" if known else "no kernel is defined there"
    raise InputError(
        f"kernel {request.kernel!r} is not in {request.name}: {reason}; {there} ({TEMPLATES})"
    )
