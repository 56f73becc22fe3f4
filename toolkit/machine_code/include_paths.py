"""Include paths for NVRTC, and remedies for files that it does not find.

NVRTC searches no folder by itself, not even the source's own. It has neither CUDA's headers, which
come with a toolkit or a pip wheel, nor those of the host, some of which `host_headers` replaces.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from analysis.errors import InputError
from toolkit.machine_code.cuda_tools import files_of_wheel
from toolkit.machine_code.demangled import demangled
from toolkit.machine_code.host_macros import HEADER_OF, HOST_HEADERS
from toolkit.store.user_files import MOST_BYTES, check_regular, read_file
from toolkit.store.watched_files import files_of, folders_of

REMEDY = "pip install 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*'"
# That of CUDA 13.0; its headers include those of the others, which are in the same folder.
CURAND_REMEDY = REMEDY.replace("install", "install 'nvidia-curand==10.4.0.*'")

# The word anywhere counts: a comment or the end of a line may stand within a directive. Options
# that read files have it in their names, or one of the others.
_READS_OTHER_FILES = re.compile(r"include|pch|optf|options-file")
_INCLUDED = re.compile(r'#[ \t]*include[ \t]*[<"]([^">\n]+)[">]')
_CONTINUED = re.compile(r"(?:\\|\?\?/)\s+")  # `??/` is a backslash up to C++14
_WHEEL, _ONE_OF_ITS_FILES = "nvidia-cuda-runtime", "cuda_fp16.h"

_OF_CUDA = re.compile(
    r"cuda|nv/|cub/|thrust/|cooperative_groups|curand|device_|mma\.|sm_|vector_|builtin_types"
)
_OF_ANOTHER_WHEEL = re.compile(r"(?:cuda|nv|cub|thrust)/|curand")  # than that of cuda_fp16.h
# Headers without device code: of C and C++, of POSIX, and of libraries for hosts.
_OF_THE_HOST = re.compile(
    r"[a-z_]+|ciso646|c?(?:algorithm|bits|complex|ctype|errno|fcntl|fenv|getopt|inttypes|locale|malloc|memory"
    r"|omp|pthread|setjmp|signal|stdarg|stdatomic|string|strings|time|unistd|wchar|windows|mpi|(?:x86)?intrin"
    r"|immintrin|emmintrin|xmmintrin|nvtx3?|nvToolsExt|nvml|gl\w*|png|zlib|dirent|sched|semaphore"
    r"|direct|io|conio|process)\.h"
    r"|(?:sys|bits|GL|GLFW|arpa|netinet|linux|nvtx3|torch|ATen|c10|boost|Eigen|opencv2?|experimental)/.*"
    r"|cuda(?:_gl|_egl|_vdpau|_d3d\d+)_interop\.h|cuda(?:GL|EGL|VDPAU|D3D\d+)\.h"
    r"|helper_(?!math)\w+\.h(?:pp)?|exception\.h|timer\.h|cu(?:blas|fft|sparse|solver|rand|dnn)\w*(?<!_kernel)\.h"
)
_UNRESOLVED = re.compile(r"Unresolved extern (?:function|variable) '(\w+)'")
_REFERENCE = re.compile(r"(texture|surface) is not a template")
_DECLARED_REFERENCE = re.compile(r"\s*(?:(?:static|extern|const)\s+)*(texture|surface)\s*<")
_OBJECTS = {
    "texture": "take a cudaTextureObject_t as a parameter",
    "surface": "take a cudaSurfaceObject_t as a parameter",
}


def includes(text: str, given: Mapping[str, str] = HOST_HEADERS) -> bool:
    """True if a source or an option may read other files: false only if it certainly does not.

    The headers that NVRTC is `given` are no files: they go before any file of their names.
    """
    without = _INCLUDED.sub(lambda found: "" if found[1] in given else found[0], text)
    return bool(_READS_OTHER_FILES.search(_CONTINUED.sub("", without)))


def include_options(source: str, folder: Path | None) -> list[str]:
    """Options with which a source finds its includes: beside it in `folder`, or CUDA's."""
    if not includes(source):
        return []
    return [f"--include-path={place}" for place in (*filter(None, [folder]), *_folders_of_cuda())]


def in_folders_of_cuda(header: str) -> bool:
    """True if CUDA's headers, as they are installed here, have one of this name."""
    return any((folder / header).is_file() for folder in _folders_of_cuda())


def files_read(path: Path, source: str, options: Sequence[str]) -> list[Path]:
    """Files that the compiler reads for a source at `path`, and paths where it looks for them."""
    read = [Path(option.rpartition("=")[2]) for option in options if _reads_a_file(option)]
    if includes(source):
        read += files_of(path, folders_of(options), source)[1:]
    return read


def text_with_headers(source: str, name: str, folder: Path | None, options: Sequence[str]) -> str:
    """The source, then the headers of the user that it includes: kernels may stand there."""
    texts = [source]
    if folder is not None and includes(source):
        for path in files_of(folder / name, folders_of(options), source)[1:]:
            with suppress(OSError, ValueError):
                texts.append(read_file(path).decode("utf-8-sig"))
    return "\n".join(texts)


def check_readable(source: str, name: str, folder: Path | None, options: Sequence[str]) -> None:
    """Raise InputError where the compiler would read a device or a pipe, which may never end.

    Not seen are names that macros make, and the headers of CUDA.
    """
    for path in files_read((folder or Path()) / name, source, options):
        try:
            if path.exists() and not path.is_dir():
                check_regular(path, MOST_BYTES)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"{name}: {path}, which it includes, cannot be read: {reason}"
            ) from error


def _reads_a_file(option: str) -> bool:
    return _READS_OTHER_FILES.search(option) is not None or not option.startswith("-")


# Functions of a warp that CUDA has for compute capabilities below 7.0 alone
NO_LONGER = "CUDA has no "
_WITHOUT_MASK = ("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot")
DEVICE_LAUNCH = (
    "a kernel launches another one (dynamic parallelism), which is not supported: launch both from "
    "the host"
)


def is_of_host(header: str) -> bool:
    """True for a header that is known to have no device code."""
    return _OF_THE_HOST.fullmatch(header) is not None


def explained(message: str) -> str:
    """A message of the compiler, with the remedy where it is about what NVRTC leaves out.

    >>> explained('identifier "INFINITY" is undefined')
    'identifier "INFINITY" is undefined: #include <math.h>'
    >>> explained('identifier "TILE" is undefined')
    'identifier "TILE" is undefined: if it is a macro, give --define TILE=VALUE'
    >>> explained('identifier "__shfl_down" is undefined')
    'CUDA has no __shfl_down any more: take __shfl_down_sync with a mask of lanes'
    >>> explained("ptxas: Unresolved extern function '_Z5otherf'").partition(":")[0]
    'other is declared and not defined'
    """
    undefined = re.search(r'identifier "(\w+)" is undefined', message)
    if undefined and (explanation := _explained_name(undefined[1], message)):
        return explanation
    unresolved = _UNRESOLVED.search(message)
    if unresolved:
        found = demangled(unresolved[1])
        return (
            f"{found.name if found else unresolved[1]} is declared and not defined: include its "
            "definition, or give a linked program or an object file of nvcc -rdc"
        )
    message = _REFERENCE.sub(lambda found: _removed(found[1]), message)
    incomplete = re.search(r'incomplete type "(?:const )?(std::\w+)', message)
    if incomplete:
        return f"{incomplete[1]} is a type of the host, which device code cannot use"
    missing = re.search(r'(?:cannot|could not) open source file "([^"]+)"', message)
    if missing is None:
        is_launch = re.search("device-side kernel launch|kernel launch from __device__", message)
        return DEVICE_LAUNCH if is_launch else message
    return explained_missing(missing[1])


def _explained_name(name: str, message: str) -> str:
    """The message that a name is undefined, with the remedy; empty if none is known."""
    if name in _WITHOUT_MASK:
        return f"{NO_LONGER}{name} any more: take {name}_sync with a mask of lanes"
    if name in HEADER_OF:
        return f"{message}: #include <{HEADER_OF[name]}>"
    return f"{message}: if it is a macro, give --define {name}=VALUE" if name.isupper() else ""


def removed_reference(declaration: str) -> str | None:
    """The remedy if a declaration is of a texture or surface reference, which CUDA 12 removed.

    >>> removed_reference("texture<float, 2> image;")
    'CUDA 12 has no texture references: take a cudaTextureObject_t as a parameter'
    >>> removed_reference("float image;")
    """
    found = _DECLARED_REFERENCE.match(declaration)
    return _removed(found[1]) if found else None


def _removed(kind: str) -> str:
    return f"CUDA 12 has no {kind} references: {_OBJECTS[kind]}"


def explained_missing(header: str) -> str:
    """Say what to do about a header that is not found.

    >>> explained_missing("tile.cuh")
    'there is no tile.cuh beside the source: name its folder: --option -IFOLDER'
    """
    lacks_cuda = not in_folders_of_cuda(_ONE_OF_ITS_FILES)
    library = header.partition("/")[0] if "/" in header else ""
    has_library = library and any((folder / library).is_dir() for folder in _folders_of_cuda())
    of_another_wheel = _OF_ANOTHER_WHEEL.match(header) and not has_library
    if _OF_CUDA.match(header) and (lacks_cuda or of_another_wheel):
        remedy = CURAND_REMEDY if header.startswith("curand") else REMEDY
        return f"{header} of CUDA is not installed: {remedy}"
    return f"there is no {header} beside the source: name its folder: --option -IFOLDER"


@cache
def _folders_of_cuda() -> tuple[Path, ...]:
    """CUDA's headers: of the pip wheel, else of a toolkit; none where there is neither.

    Folders that lack the C++ library of CUDA (cccl) come last: its wheel may be missing.
    """
    nvcc = shutil.which("nvcc")
    homes = [os.environ.get("CUDA_HOME"), nvcc and Path(nvcc).parents[1], "/usr/local/cuda"]
    of_wheel = [file.parent for file in files_of_wheel(_WHEEL, _ONE_OF_ITS_FILES)]
    folders = (*of_wheel, *(Path(home) / "include" for home in homes if home))
    found = [
        (folder, folder / "cccl") if (folder / "cccl").exists() else (folder,)
        for folder in folders
        if (folder / _ONE_OF_ITS_FILES).exists()
    ]
    whole = [one for one in found if (one[-1] / "nv" / "target").exists()]
    return next(iter([*whole, *found]), ())
