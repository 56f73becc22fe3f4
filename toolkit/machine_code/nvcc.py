"""CUDA C++ to machine code with nvcc: the untouched file, where nvcc and a host compiler are."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from subprocess import SubprocessError, TimeoutExpired
from tempfile import TemporaryDirectory

from analysis.errors import CompileError, InputError, UnavailableError
from toolkit.machine_code.compiler_process import LIMIT_S, MOST_MEMORY_BYTES
from toolkit.machine_code.cuda_tools import (
    command_path,
    cuda_folders,
    files_of_wheel,
    nvidia_remedy,
    version_printed_by,
)
from toolkit.machine_code.programs import run_program

REMEDY = nvidia_remedy("pip install 'gemm-ladder[nvcc]'")
_WHEEL = "nvidia-cuda-nvcc"
_HOST_COMPILERS = ("g++", "cl")
# `file.cu(12): error: text` of nvcc, `file.cu:12:3: fatal error: text` of the host's preprocessor,
# `nvcc fatal   : text`
_ERROR = re.compile(
    r"^(?:(?P<file>[^\n(:]+)(?:\((?P<line>\d+)\)|:(?P<row>\d+):\d+))?"
    r"[: ]*(?:(?:catastrophic |fatal )?error(?: #\S+)?|(?:nvcc|ptxas) (?:fatal|error))"
    r" *: *(?P<text>.+)$",
    re.MULTILINE,
)
_MISSING = re.compile(r"(\S+): No such file or directory")
_NOT_ALONE = re.compile(r"(?:-rdc|--relocatable-device-code|-dc\b|--device-c\b|-dlink|-ptx|--ptx)")


def compile_with_nvcc(
    source: str, *, name: str, folder: Path | None, arch: str, options: Sequence[str]
) -> tuple[bytes, str]:
    """The cubin of a source, and what the compiler said.

    Raises CompileError where nvcc refuses it, UnavailableError without.

    The text is compiled, whatever its file holds meanwhile; its own headers are in `folder`.
    """
    nvcc = path_of_nvcc()
    if (not_alone := next(filter(_NOT_ALONE.match, options), None)) is not None:
        raise InputError(f"{not_alone}: nvcc then makes no cubin: leave out --option")
    if not any(one.startswith(("-ccbin", "--compiler-bindir")) for one in options):
        _check_host_compiler()
    with TemporaryDirectory() as made:
        file, cubin = Path(made, Path(name).name), Path(made, "out.cubin")
        file.write_text(source, encoding="utf-8")
        own = [f"-I{folder}"] if folder is not None else []
        command = [nvcc, "-cubin", f"-arch={arch}", *options, *own, "-x", "cu", str(file)]
        try:
            ran = run_program(
                [*command, "-o", str(cubin)], limit_s=LIMIT_S, most_memory_bytes=MOST_MEMORY_BYTES
            )
        except TimeoutExpired:
            raise CompileError(f"{name} did not compile within {LIMIT_S} s with nvcc") from None
        except OSError as error:
            raise UnavailableError(f"nvcc cannot be started: {error}: {REMEDY}") from error
        if ran.returncode or not cubin.is_file():
            log = (ran.stderr + ran.stdout).decode(errors="replace").replace(f"{made}/", "")
            raise CompileError(_first_error(log, name), log=log)
        return cubin.read_bytes(), (ran.stderr + ran.stdout).decode(errors="replace")


@cache
def nvcc_version() -> str:
    """Name and version, such as "nvcc 13.0.88". Raises UnavailableError without nvcc."""
    try:
        return f"nvcc {version_printed_by(path_of_nvcc(), r'V([0-9.]+)')}"
    except (OSError, ValueError, SubprocessError) as error:
        raise UnavailableError(f"nvcc cannot be started: {error}: {REMEDY}") from error


def path_of_nvcc() -> str:
    """The nvcc on PATH, of a toolkit that the environment names, or of the wheel."""
    of_wheel = [file.parent for file in files_of_wheel(_WHEEL, "nvcc", "nvcc.exe")]
    found = command_path("nvcc", *cuda_folders(), Path("/usr/local/cuda/bin"), *of_wheel)
    if found is None:
        raise UnavailableError(f"nvcc is not installed: {REMEDY}, or leave out --compiler nvcc")
    return found


def _check_host_compiler() -> None:
    if not any(map(shutil.which, _HOST_COMPILERS)):
        raise UnavailableError(
            "nvcc needs a compiler of the host, and there is no g++: install it (apt install g++), "
            "or leave out --compiler nvcc"
        )


def _first_error(log: str, name: str) -> str:
    found = _ERROR.search(log)
    if found is None:
        lines = log.strip().splitlines()
        return f"{name}: nvcc: {lines[0] if lines else 'it made no cubin and said nothing'}"
    line = found["line"] or found["row"]
    place = f"{found['file'].strip()}, line {line}" if line else name
    missing = _MISSING.search(found["text"])
    if missing:
        return f"{place}: there is no {missing[1]}: name its folder: --option -IFOLDER"
    others = len(_ERROR.findall(log)) - 1
    more = f" (and {others} more {'error' if others == 1 else 'errors'})" if others else ""
    return f"{place}: {found['text']}{more}"
