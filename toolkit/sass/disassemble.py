"""Machine code to text with nvdisasm from its pip wheel: no CUDA toolkit needed.

What it prints is cached by content in the user's cache directory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path

from analysis.errors import ToolkitError, UnavailableError, first_line

WHEEL = "nvidia-cuda-nvdisasm"
REMEDY = f"pip install {WHEEL}"


def disassemble(image: bytes) -> str:
    """What `nvdisasm -json` prints of a cubin.

    Raises UnavailableError without nvdisasm, and ToolkitError for an image that it cannot read.
    """
    program = _nvdisasm()
    with tempfile.TemporaryDirectory(prefix="gemm-ladder-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(image)
        result = subprocess.run(
            [program, "-json", path], capture_output=True, text=True, check=False
        )
    if result.returncode != 0 or not result.stdout:
        raise ToolkitError(f"nvdisasm cannot read the machine code: {first_line_of(result.stderr)}")
    return result.stdout


def first_line_of(text: str) -> str:
    return first_line(Exception(text))


@cache
def _nvdisasm() -> Path:
    """The program: of the wheel, else on PATH, else of $CUDA_HOME."""
    try:
        files = metadata.files(WHEEL) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in ("nvdisasm", "nvdisasm.exe"):
            return Path(str(file.locate()))
    places = [Path(home) / "bin" for home in (os.environ.get("CUDA_HOME", ""),) if home]
    found = shutil.which("nvdisasm") or next(
        (shutil.which("nvdisasm", path=place) for place in places), None
    )
    if found is None:
        raise UnavailableError(f"nvdisasm is not installed: {REMEDY}")
    return Path(found)
