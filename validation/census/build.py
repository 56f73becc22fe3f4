"""Compile the kernels of the census with nvcc, as many files at once as the machine has cores.

What a compiler refuses for an architecture, a function that it does not have or a combination of
modifiers, is left out.
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from analysis.errors import CompileError, UnavailableError
from validation.census.own import Source, sources

_ERROR = re.compile(r"\((\d+)\): error|line (\d+); *(?:error|fatal) *:")
MOST_ATTEMPTS = 40  # a parser of PTX stops at the first error


def build(folder: Path, architectures: list[str]) -> int:
    """Write cubins, unless they are there, as NAME.ARCH.cubin; returns how many were made."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [
        (source, arch, target)
        for arch in architectures
        for source in sources(arch)
        if not (target := folder / f"{source.name}.{arch}.cubin").exists()
    ]
    missing.sort(key=lambda x: x[0].name != "library.cu")  # it takes longest
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda x: _compile(*x), missing))
    return len(missing)


def _compile(source: Source, arch: str, target: Path) -> None:
    file = target.with_suffix(".cu")
    fast = ["--use_fast_math"] if source.name.startswith("fast_") else []
    options = ["-std=c++17", "-w", f"-arch={arch}", *fast]
    if source.name.startswith("ptx_"):
        ptx = target.with_suffix(".ptx")
        _without_errors(source.text, file, ["nvcc", "-ptx", *options, "-o", str(ptx)], made=ptx)
        text = ptx.read_text(encoding="utf-8")
        _without_errors(text, ptx, ["ptxas", f"-arch={arch}", "-o", str(target)])
    else:
        _without_errors(source.text, file, ["nvcc", "-cubin", *options, "-o", str(target)])


def _without_errors(text: str, file: Path, command: list[str], made: Path | None = None) -> None:
    """Run a compiler on a text, less the kernels in which it finds errors.

    nvcc lets ptxas look at its PTX: `made` is there although that found errors.
    """
    for _ in range(MOST_ATTEMPTS):
        file.write_text(text, encoding="utf-8")
        try:
            result = subprocess.run(
                [*command, str(file)], capture_output=True, text=True, check=False
            )
        except FileNotFoundError as error:
            raise UnavailableError(
                f"{command[0]} is not on PATH: install the CUDA toolkit"
            ) from error
        numbers = {int(a or b) for a, b in _ERROR.findall(result.stderr)}
        of_ptx = made is not None and ".ptx, line" in result.stderr and made.exists()
        if not result.returncode or of_ptx:
            return
        lines = text.split("\n")
        starts = [k for k, x in enumerate(lines) if x.startswith(("__global__", ".visible .entry"))]
        bad = {max((k for k in starts if k < number), default=-1) for number in numbers} - {-1}
        if not bad:
            break
        ends = dict(zip(starts, [*starts[1:], len(lines)], strict=True))
        is_ptx = file.suffix == ".ptx"
        gone = {n for k in bad for n in range(k, ends[k] if is_ptx else k + 1)}
        text = "\n".join(x for k, x in enumerate(lines) if k not in gone)
    raise CompileError(f"{command[0]} refuses {file.name}: {result.stderr[:1000]}")
