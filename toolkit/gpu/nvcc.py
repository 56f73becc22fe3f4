"""NVIDIA's compiler nvcc, run through PyCUDA."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

from analysis.errors import CompileError, UnavailableError, first_line
from toolkit.machine_code.architectures import names_features, with_features

LANGUAGE_OPTIONS = ("-std=c++17",)
FILE = "kernel.cu"  # name that PyCUDA gives to a source, and so that of its lines

# "kernel.cu(3): error: ..." of nvcc, "kernel.cu:3:10: fatal error: ..." of the host's compiler
_NVCC_ERROR = re.compile(
    r"^[^\s(:]+(?:\((\d+)\)|:(\d+)(?::\d+)?): (?:catastrophic |fatal )?error: (.+)$",
    re.MULTILINE,
)


def compiled(source: str, options: Sequence[str], name: str) -> bytes:
    """The machine code of `source`, as a SourceModule has it.

    Raises CompileError with the compiler's first error, UnavailableError without nvcc.
    """
    from pycuda import driver
    from pycuda.compiler import compile as compile_source

    try:
        with warnings.catch_warnings():  # remarks of a compiler that succeeded
            warnings.simplefilter("ignore", UserWarning)
            image: bytes = compile_source(
                source,
                options=[*LANGUAGE_OPTIONS, *options],
                no_extern_c=True,
                **_architecture(driver, source),
            )
            return image
    except driver.CompileError as error:
        raise compile_error(name, str(error.stderr)) from None
    except OSError as error:
        raise UnavailableError(
            f"nvcc cannot be run ({first_line(error)}): install NVIDIA's CUDA toolkit and "
            "put nvcc on the PATH"
        ) from None


def _architecture(driver: Any, source: str) -> dict[str, str]:
    """sm_90a and the like where a source needs it on this GPU; else PyCUDA chooses."""
    if not names_features(source):
        return {}
    major, minor = driver.Context.get_device().compute_capability()
    return {"arch": with_features(f"sm_{major}{minor}", source)}


def nvcc_version() -> str:
    """The compiler behind SourceModule, such as "nvcc 13.0"."""
    from pycuda.compiler import get_nvcc_version

    text = get_nvcc_version("nvcc")
    match = re.search(r"release ([\d.]+)", text)
    return f"nvcc {match.group(1)}" if match else "nvcc"


def compile_error(name: str, log: str) -> CompileError:
    match = _NVCC_ERROR.search(log)
    if match is None:
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        blunt = lines[0] if lines else "nvcc failed without a message"
        first = next((line for line in lines if "error" in line), blunt)
        return CompileError(f"{name} does not compile: {first}", log=log)
    line = match.group(1) or match.group(2)
    text = match.group(3).strip()
    return CompileError(f"{name}, line {line}: does not compile: {text}", log=log)
