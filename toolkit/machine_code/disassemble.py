"""Machine code to text with nvdisasm from its pip wheel: no CUDA toolkit needed.

What nvdisasm prints is kept in the user's cache, by content: each run of it takes a third of a
second, for one short kernel or for twenty. Who needs several calls `disassemble_together` first.
"""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from analysis.errors import ToolkitError, UnavailableError, first_line
from toolkit.machine_code import merge
from toolkit.machine_code.cuda_tools import (
    command_path,
    cuda_folders,
    files_of_wheel,
    nvidia_remedy,
)
from toolkit.machine_code.merge import disassemblies, mergeable, merged
from toolkit.machine_code.programs import (
    MOST_OUTPUT_BYTES,
    run_program,
)
from toolkit.store.cache import cached, digest_of_files, keep

WHEEL = "nvidia-cuda-nvdisasm"
REMEDY = nvidia_remedy(f"pip install {WHEEL}")

# Limits that only a damaged image reaches. On a busy machine nvdisasm took 2 s for 27 KB of
# templates. For 23 MB it took 33 s and 0.4 GB of memory, and printed 16 MB.
LIMIT_S = 30  # time for a small image
BYTES_PER_S = 100_000  # a larger image gets additional time at this rate
TIMES_OUTPUT = 16  # additional bytes of output per byte of the image
TIMES_MEMORY = 256  # additional bytes of memory per byte of the image
MOST_MEMORY_BYTES = 2**32

_SOURCES = digest_of_files(__file__, merge.__file__)
_PREFIX = re.compile(r"nvdisasm \w+ *: *")  # of its messages: "nvdisasm fatal   : "
_VERSION = re.compile(rb'"Producer" *: *"nvdisasm V(\d+)\.(\d+)')
_OLDEST = (12, 8)  # whose output `decode` is tested on


@dataclass(frozen=True, kw_only=True)
class Disassembler:
    """Path of nvdisasm, and text that tells its version from others."""

    path: str
    version: str


def disassemble(image: bytes) -> str:
    """Output of `nvdisasm -json` for a cubin.

    Raises UnavailableError without nvdisasm, and ToolkitError for an image that it cannot read.
    """
    program = disassembler()
    entry = _entry(program, image)
    content = cached(entry)
    if content is None:
        content = _run(program, image)
        keep(entry, content)
    return content.decode(errors="replace")


def disassemble_together(images: Iterable[bytes]) -> None:
    """Keep the output of nvdisasm for many cubins, after one run for each architecture.

    An image that cannot be merged with others is left to `disassemble`, which says why where it
    cannot be read at all.
    """
    with suppress(ToolkitError):
        program = disassembler()
        new = [x for x in dict.fromkeys(images) if cached(_entry(program, x)) is None]
        for group in mergeable(new):
            if len(group) > 1:
                _run_merged(program, group)


def _run_merged(program: Disassembler, images: list[bytes]) -> None:
    with suppress(ToolkitError, ValueError):
        printed = disassemblies(_run(program, merged(images)).decode(), len(images))
        for image, one in zip(images, printed, strict=True):
            keep(_entry(program, image), one.encode())


def _entry(program: Disassembler, image: bytes) -> str:
    """Name in the cache of the output of nvdisasm for an image."""
    decides = f"{program.version} {_SOURCES} ".encode() + image
    return f"{sha256(decides).hexdigest()}.sass.json"


@cache
def disassembler() -> Disassembler:
    """The nvdisasm of the wheel, else one on PATH or of $CUDA_HOME; UnavailableError for none."""
    found = _of_the_wheel() or _of_a_toolkit()
    if found is None:
        raise UnavailableError(f"nvdisasm is not installed: {REMEDY}")
    return found


def _of_the_wheel() -> Disassembler | None:
    path = next(filter(Path.exists, files_of_wheel(WHEEL, "nvdisasm", "nvdisasm.exe")), None)
    return Disassembler(path=str(path), version=metadata.version(WHEEL)) if path else None


def _of_a_toolkit() -> Disassembler | None:
    path = command_path("nvdisasm", *cuda_folders())
    if path is None:
        return None
    status = Path(path).stat()  # to ask for the version takes as long as to disassemble
    return Disassembler(path=path, version=f"{path} {status.st_size} {status.st_mtime_ns}")


def _run(program: Disassembler, image: bytes) -> bytes:
    limit_s = LIMIT_S + len(image) / BYTES_PER_S
    try:
        with tempfile.TemporaryDirectory(prefix="gemm-ladder-") as folder:
            path = Path(folder) / "kernel.cubin"
            path.write_bytes(image)
            result = run_program(
                [program.path, "-json", str(path)],
                limit_s=limit_s,
                most_output_bytes=MOST_OUTPUT_BYTES + TIMES_OUTPUT * len(image),
                most_memory_bytes=MOST_MEMORY_BYTES + TIMES_MEMORY * len(image),
            )
    except OSError as error:
        raise UnavailableError(
            f"nvdisasm cannot be run: {error}: reinstall it: {REMEDY}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ToolkitError(
            f"nvdisasm did not end within {limit_s:.1f} s: the machine code is damaged"
        ) from error
    version = _VERSION.search(result.stdout)
    is_old = version is not None and tuple(map(int, version.groups())) < _OLDEST
    if is_old or b"option '-json'" in result.stderr:
        oldest = ".".join(map(str, _OLDEST))
        raise UnavailableError(f"{program.path} is older than nvdisasm {oldest}: {REMEDY}")
    if result.returncode != 0 or not result.stdout:
        silent = f"it ended with status {result.returncode} and said nothing"
        if result.returncode < 0:
            silent = f"it was ended ({signal.Signals(-result.returncode).name})"
        said = first_line(ToolkitError(result.stderr.decode(errors="replace").strip() or silent))
        reason = _PREFIX.sub("", said).replace(str(path), "the image")
        raise ToolkitError(f"nvdisasm cannot read the machine code: {reason}")
    return result.stdout
