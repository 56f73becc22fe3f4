"""PTX to machine code, and relocatable machine code linked, with nvJitLink: no driver needed.

nvJitLink runs in a process of its own, which executes this file: damaged inputs may crash it, and
ending the process is the only way to stop it. What it makes is kept in the user's cache.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from importlib import metadata
from pathlib import Path

LIMIT_S = 300
MOST_MEMORY_BYTES = 2**33
WHEEL = "nvidia-nvjitlink"
REQUEST, RESULT, LOG = "request.json", "linked.cubin", "log.txt"  # files in its folder
NOT_INSTALLED = 3  # exit status
_PTX_ERROR = re.compile(r"line (?P<line>\d+); (?:error|fatal) *: *(?P<text>.+)")


def linked(inputs: Sequence[tuple[str, str, bytes]], arch: str) -> tuple[bytes, str]:
    """The machine code for `arch` of inputs, and what made it ("nvJitLink 13.0.88").

    An input is its kind ("PTX" or "CUBIN"), its name in messages, and its content. Raises
    UnavailableError without nvJitLink, and CompileError where it refuses the inputs.
    """
    from analysis.errors import CompileError, UnavailableError
    from toolkit.machine_code.cuda_tools import nvidia_remedy
    from toolkit.machine_code.programs import run_program
    from toolkit.store.cache import cached, keep

    remedy = nvidia_remedy("pip install 'gemm-ladder[link]'")
    try:
        version = metadata.version(WHEEL)
    except metadata.PackageNotFoundError:
        raise UnavailableError(f"this takes nvJitLink, which is not installed: {remedy}") from None
    parts = [(kind, name, sha256(content).hexdigest()) for kind, name, content in inputs]
    entry = f"{sha256(json.dumps([parts, arch, version]).encode()).hexdigest()}.linked.cubin"
    image = cached(entry)
    if image is not None:
        return image, f"nvJitLink {version}"
    with tempfile.TemporaryDirectory(prefix="gemm-ladder-") as name:
        folder = Path(name)
        for number, (_, _, content) in enumerate(inputs):
            (folder / str(number)).write_bytes(content)
        request = {"path": sys.path, "arch": arch, "inputs": [one[:2] for one in inputs]}
        (folder / REQUEST).write_text(json.dumps(request))
        try:
            ran = run_program(
                [sys.executable, "-P", __file__, name],
                limit_s=LIMIT_S,
                most_memory_bytes=MOST_MEMORY_BYTES,
            )
        except subprocess.TimeoutExpired:
            raise CompileError(f"nvJitLink did not end within {LIMIT_S} s") from None
        if ran.returncode == NOT_INSTALLED:
            raise UnavailableError(f"nvJitLink cannot be started: reinstall it: {remedy}")
        if not (folder / RESULT).exists():
            log = (folder / LOG).read_text() if (folder / LOG).exists() else ""
            crashed = f"nvJitLink crashed (status {ran.returncode}): the input is damaged"
            raise CompileError(first_error(log) or crashed, log=log)
        image = (folder / RESULT).read_bytes()
    keep(entry, image)
    return image, f"nvJitLink {version}"


def first_error(log: str) -> str:
    """The first line of a log that states an error, without its marks; "" if there is none."""
    lines = [line.strip() for line in log.splitlines() if line.strip(" \0")]
    if of_ptx := next(filter(None, map(_PTX_ERROR.search, lines)), None):
        return f"line {of_ptx['line']}: {of_ptx['text']}"
    errors = [line for line in lines if "error" in line.lower()] or lines
    return errors[0].removeprefix("error").lstrip(" :") if errors else ""


# In the child, which imports nothing of the project.


def _link(folder: Path) -> int:
    request = json.loads((folder / REQUEST).read_text())
    sys.path[:] = request["path"]
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()
    except (ImportError, RuntimeError):  # RuntimeError: without the library
        return NOT_INSTALLED
    handle = nvjitlink.create(2, [f"-arch={request['arch']}", "-lineinfo"])
    try:
        for number, (kind, name) in enumerate(request["inputs"]):
            content = (folder / str(number)).read_bytes()
            content += b"\0" if kind == "PTX" else b""
            kind_of = getattr(nvjitlink.InputType, kind)
            nvjitlink.add_data(handle, kind_of, content, len(content), name)
        nvjitlink.complete(handle)
        image = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, image)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, log)
        text = log.decode(errors="replace").strip("\0 \n")
        (folder / LOG).write_text(text or f"nvJitLink stopped with {error}")
        return 1
    (folder / RESULT).write_bytes(image)
    return 0


if __name__ == "__main__":
    sys.exit(_link(Path(sys.argv[1])))
