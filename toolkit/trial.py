"""A variant's first launches, in a process of its own: what it breaks there, it breaks alone.

On a GPU a fault takes the whole context with it, and an endless loop the whole run. Each variant is
therefore compiled and launched in a child process first, under a watchdog, with guard bands around
its buffers; only those that come back whole are checked and timed together
(docs/decisions/0021-trials-in-children.md).
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analysis.errors import ToolkitError, first_line
from analysis.geometry import Geometry
from analysis.problem import FLOAT_BYTES, Gemm
from toolkit.gpu import Gpu
from toolkit.gpu_operands import Operands, launch_arguments
from toolkit.tiles import Maps
from toolkit.watchdog import HUNG
from toolkit.workload import Workload

LAUNCHES = 3  # a fault may take what an earlier launch left
# A minute to open the GPU, compile and copy; a kernel slower than this is none that anyone times.
START_S = 60.0
SLOWEST_FLOP_PER_S = 1e10
# Of one launch of a kernel that is loaded: what the driver may do first, such as to load cuBLAS.
LAUNCH_GRACE_S = 20.0
GRACE_S = 5.0  # between asking a process to end and ending it

GUARD_WORD = 0x7FC0A11E  # a NaN with a payload: read as a float it shows in every result
GUARD_WORDS = 1 << 16  # a row of the widest matrix that anyone multiplies: 256 KiB


@dataclass(frozen=True, kw_only=True)
class Trial:
    """All that a child process needs to launch one variant.

    `maps` are those of A and B for a rung that takes tensor maps; `workspace_bytes` of zeros are
    its last argument where that is not None.
    """

    source: str
    entry: str
    name: str
    defines: Mapping[str, object]
    geometry: Geometry
    problem: Gemm
    executed: Gemm
    seed: int
    maps: Maps | None = None
    workspace_bytes: int | None = None

    @property
    def limit_s(self) -> float:
        """How long it may take."""
        return START_S + LAUNCHES * self.executed.flop / SLOWEST_FLOP_PER_S


def launch_limit_s(shape: Gemm) -> float:
    """How long one launch, and what stands around it when it is timed, may take."""
    return LAUNCH_GRACE_S + LAUNCHES * shape.flop / SLOWEST_FLOP_PER_S


Body = Callable[[Trial], str | None]


def survives(trial: Trial, body: Body | None = None, limit_s: float | None = None) -> str | None:
    """Why a variant must not run beside others, None where it may.

    `body` is what the child does, `launched` unless a test says otherwise.
    """
    limit_s = limit_s or trial.limit_s
    # A fresh interpreter, since CUDA does not survive a fork, and not multiprocessing, which would
    # run the script of whoever calls this again. Ctrl-C is this process's to handle.
    child = subprocess.Popen(
        [sys.executable, "-m", "toolkit.trial"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
        start_new_session=True,
    )
    try:
        answer, _ = child.communicate(pickle.dumps((body or launched, trial)), timeout=limit_s)
    except subprocess.TimeoutExpired:
        return (
            f"{HUNG} {limit_s:.0f} s and was stopped: an endless loop, or threads that "
            "wait for each other? `python -m toolkit check` says where, with no GPU"
        )
    finally:
        _end(child)
    if not answer:
        return f"the process that ran it died ({_how(child.returncode)})"
    reason: str | None = json.loads(answer)
    return reason


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask it to end, then end it."""
    for stop in (child.terminate, child.kill):
        if child.poll() is None:
            stop()
            with suppress(subprocess.TimeoutExpired):
                child.wait(GRACE_S)
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()


def main() -> None:
    """Be the child: a body and its trial come in, a reason or null goes out."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what kernels print is no answer
        body, trial = pickle.load(sys.stdin.buffer)
        answers.write(json.dumps(_answer(body, trial)))
    os._exit(0)  # PyCUDA aborts where a context was lost


def _answer(body: Body, trial: Trial) -> str | None:
    try:
        return body(trial)
    except ToolkitError as error:
        return str(error)
    except MemoryError:
        return "the host's memory is exhausted: take a smaller shape"
    except Exception as error:
        return f"{type(error).__name__}: {first_line(error)}"


# What the child does.


def launched(trial: Trial) -> str | None:
    """Launch it on the GPU that is here. Raises ToolkitError for what fails there."""
    with Gpu() as gpu:
        return launched_on(gpu, trial)


def launched_on(gpu: Gpu, trial: Trial) -> str | None:
    """What is wrong with the buffers after some launches, None where nothing is."""
    kernel = gpu.load(trial.source, trial.entry, name=trial.name, defines=trial.defines)
    guarded = Guarded(gpu)
    a, b = Workload(trial.problem, trial.seed).padded(trial.executed)
    operands = Operands(
        shape=trial.executed,
        a=guarded.buffer("A", a.nbytes, a),
        b=guarded.buffer("B", b.nbytes, b),
        c=guarded.buffer("C", FLOAT_BYTES * trial.executed.c_elements),
    )
    workspace = None
    if trial.workspace_bytes is not None:
        workspace = guarded.scratch("the workspace", trial.workspace_bytes)
    launch = kernel.prepared(trial.geometry, launch_arguments(operands, trial.maps, workspace))
    for _ in range(LAUNCHES):
        with gpu.launch_errors("launch"):
            launch()
            gpu.synchronize()
    return guarded.damage()


class Guarded:
    """Buffers between guard bands, and inputs that must stay as they are."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._held: list[Any] = []
        self._buffers: list[tuple[str, int, int, np.ndarray[Any, Any] | None]] = []

    def buffer(self, name: str, size_bytes: int, content: Any = None) -> int:
        """The address of a buffer, filled with `content` or with NaN."""
        words = 2 * GUARD_WORDS + -(-size_bytes // 4)
        whole = self._gpu.allocate(4 * words)
        self._gpu.fill(whole, GUARD_WORD, words)
        address = int(whole) + 4 * GUARD_WORDS
        if content is not None:
            self._gpu.write(address, content)
        self._held.append(whole)
        self._buffers.append((name, address, size_bytes, content))
        return address

    def scratch(self, name: str, size_bytes: int) -> int:
        """The address of zeros that may be written."""
        address = self.buffer(name, size_bytes)
        self._gpu.write(address, np.zeros(size_bytes, np.uint8))
        return address

    def damage(self) -> str | None:
        """The first thing that no kernel may write to and that is not as it was."""
        for name, address, size_bytes, content in self._buffers:
            end = address + -(-size_bytes // 4) * 4
            for where, start, first in (
                ("in front of", address - 4 * GUARD_WORDS, -4 * GUARD_WORDS),
                ("behind", end, 0),
            ):
                band = np.empty(GUARD_WORDS, dtype=np.uint32)
                self._gpu.download(start, into=band)
                wrong = np.flatnonzero(band != GUARD_WORD)
                if wrong.size:
                    offset = abs(first + 4 * int(wrong[-1 if first else 0]))
                    return (
                        f"wrote out of bounds: {wrong.size:,} words {where} {name} were "
                        f"overwritten, the nearest {offset:,} bytes away: "
                        "`python -m toolkit check` names the line"
                    )
            if content is not None and self._changed(address, content):
                return f"wrote to {name}, which is an input"
        return None

    def _changed(self, address: int, content: Any) -> bool:
        after = np.empty_like(content, order="C")
        self._gpu.download(address, into=after)
        return not np.array_equal(after.view(np.uint32), content.view(np.uint32))


if __name__ == "__main__":
    main()
