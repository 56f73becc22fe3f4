"""Record what compute-sanitizer says of the planted bugs, on a GPU.

    python -m validation.planted.record_sanitizer recorded/compute_sanitizer_sm_90.json

Each kernel is compiled once, then launched by a small process of the driver API under each of the
four tools, several at a time; a launch that does not end is stopped. Takes a minute or two.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from analysis.problem import Gemm
from toolkit.cli.argument_syntax import UNWRITTEN, BufferArgument
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from validation import recordings
from validation.planted.bugs import SEED, bugs, make_arguments, without_barriers

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
ARCH = "sm_90"
LIMIT_S = 40  # a kernel that deadlocks never ends
AT_A_TIME = 8
FAILS_WITH = 86  # the exit code that compute-sanitizer is asked for where it found errors
SHAPE = Gemm(m=128, n=128, k=32)
KEPT_LINES = 12
LAUNCHER = Path(__file__).with_name("launch_planted.py")

_SUMMARY = re.compile(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)")
_MESSAGE = re.compile(
    r"^=+ (.*(?:Invalid|Error|Race|hazard|Barrier|Uninitialized|Warning).*)$", re.M
)


def main() -> int:
    """Compile, run everything, write one file."""
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    output = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_A_TIME) as pool:
        prepared = dict(_prepared(Path(folder)))
        jobs = {
            (name, tool): pool.submit(_run, sanitizer, tool, path)
            for name, path in prepared.items()
            for tool in TOOLS
        }
        kernels: dict[str, dict[str, Any]] = {name: {} for name in prepared}
        for (name, tool), job in jobs.items():
            kernels[name][tool] = job.result()
            print(f"{name:45} {tool:10} {kernels[name][tool]['errors']}")
    version = subprocess.run([sanitizer, "--version"], capture_output=True, text=True, check=True)
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    device = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    document = {
        "version": version.stdout.split("\n")[-2:],
        "device": device,
        "arch": ARCH,
        "kernels": kernels,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    recordings.write(output, document)
    return 0


def _prepared(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name, launch) of everything that is run: a file that the launcher reads."""
    for bug in bugs():
        call = bug.call(ARCH)
        cubin = compile_cubin(
            call.text or "", name=call.source.name, kernel=None, arch=ARCH, options=("-lineinfo",)
        )
        unwritten = [isinstance(x, BufferArgument) and x.fill == UNWRITTEN for x in call.arguments]
        arguments = make_arguments(call.arguments, seed=SEED)
        shared = call.dynamic_shared_bytes
        yield (
            bug.name,
            _kept(folder, bug.name, cubin, call.grid, call.block, shared, arguments, unwritten),
        )
    for name, variant, source in without_barriers():
        parameters, shape = variant.defaults, variant.executed(SHAPE)
        cubin = compile_cubin(
            source,
            name=variant.file,
            kernel=variant.entry,
            arch=ARCH,
            defines=variant.macros(parameters),
            options=("-lineinfo",),
        )
        geometry = variant.geometry(parameters, shape)
        shared = geometry.dynamic_shared_bytes
        arguments = [
            np.ones((shape.m, shape.k), np.float32),
            np.ones((shape.k, shape.n), np.float32),
            np.zeros((shape.m, shape.n), np.float32),
            *map(np.int32, (shape.m, shape.n, shape.k)),
            *map(np.float32, (1, 0)),
        ]
        unwritten = [position == 2 for position in range(len(arguments))]
        yield (
            name,
            _kept(folder, name, cubin, geometry.grid, geometry.block, shared, arguments, unwritten),
        )


def _kept(
    folder: Path,
    name: str,
    cubin: Kernel,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    arguments: Sequence[Any],
    unwritten: Sequence[bool],
) -> Path:
    """The launch as a file: machine code, sizes, and arguments by name."""
    path = folder / f"{name.replace(' ', '_')}.npz"
    arrays: dict[str, Any] = {f"argument_{k}": np.asarray(x) for k, x in enumerate(arguments)}
    np.savez(
        path,
        image=np.frombuffer(cubin.image, dtype=np.uint8),
        symbol=cubin.symbol,
        grid=grid,
        block=block,
        shared=shared,
        is_buffer=[isinstance(argument, np.ndarray) for argument in arguments],
        unwritten=unwritten,
        **arrays,
    )
    return path


def _run(sanitizer: str, tool: str, path: Path) -> dict[str, object]:
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(FAILS_WITH), "--print-limit", "8"]
    command += ["--show-backtrace", "no"]
    process = subprocess.Popen(
        [*command, sys.executable, str(LAUNCHER), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # what it starts can be ended with it
    )
    try:
        text, ended = process.communicate(timeout=LIMIT_S)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, ended = process.communicate()[0], None
    found = _SUMMARY.findall(text)
    messages = [line.strip() for line in _MESSAGE.findall(text)]
    return {
        "errors": int(found[-1]) if found else None if ended is None else int(ended == FAILS_WITH),
        "ended": ended,
        "messages": list(dict.fromkeys(messages))[:KEPT_LINES],
        "tail": text.splitlines()[-KEPT_LINES:] if not found else [],
    }


if __name__ == "__main__":
    sys.exit(main())
