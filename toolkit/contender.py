"""One contender of a comparison on a GPU: a rung or cuBLAS, compiled, checked and timed.

It has a CUDA context of its own and lives in a process of its own (`toolkit.isolated`), with guard
bands around its buffers: what it breaks, it breaks alone
(docs/decisions/0021-rungs-in-children.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from analysis.errors import LaunchError
from analysis.geometry import Geometry
from analysis.problem import FLOAT_BYTES, Gemm
from toolkit.cubin import Kernel
from toolkit.cublas import Cublas
from toolkit.gpu import Gpu
from toolkit.gpu_operands import Operands, launch_arguments
from toolkit.isolated import Isolated
from toolkit.tiles import Maps
from toolkit.workload import Matrix, Workload

LAUNCHES = 3  # before it is timed: a fault may take what an earlier launch left
# A minute to open the GPU, compile and copy; a kernel slower than this is none that anyone times.
START_S = 60.0
SLOWEST_FLOP_PER_S = 1e10
# Of one launch of a kernel that is loaded: what the driver may do first, such as to load cuBLAS.
LAUNCH_GRACE_S = 20.0

GUARD_WORD = 0x7FC0A11E  # a NaN with a payload: read as a float it shows in every result
GUARD_WORDS = 1 << 16  # a row of the widest matrix that anyone multiplies: 256 KiB


@dataclass(frozen=True, kw_only=True)
class Code:
    """A kernel as CUDA C++, and how it is launched.

    `maps` are those of A and B for a rung that takes tensor maps; `workspace_bytes` of zeros are
    its last argument where that is not None.
    """

    source: str
    entry: str
    name: str
    defines: Mapping[str, object]
    geometry: Geometry
    maps: Maps | None = None
    workspace_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a contender computes: `problem`, padded to `executed`, with `code` or else cuBLAS."""

    code: Code | None
    problem: Gemm
    executed: Gemm
    seed: int

    @property
    def buffer_bytes(self) -> int:
        """What its buffers take on the GPU, guard bands left aside."""
        workspace_bytes = (self.code and self.code.workspace_bytes) or 0
        return self.executed.matrix_bytes + workspace_bytes

    @property
    def limit_s(self) -> float:
        """How long it may take until it was checked."""
        return START_S + LAUNCHES * self.executed.flop / SLOWEST_FLOP_PER_S

    @property
    def launch_limit_s(self) -> float:
        """How long one launch, and what stands around it when it is timed, may take."""
        return LAUNCH_GRACE_S + LAUNCHES * self.executed.flop / SLOWEST_FLOP_PER_S


class Contending(Protocol):
    """What is asked of a contender, be it in this process or in another; a context manager.

    All methods raise ToolkitError with one line for what failed.
    """

    def __enter__(self) -> Contending: ...

    def __exit__(self, *exception: object) -> None: ...

    def cubin(self) -> Kernel | None:
        """The machine code that is launched; None for cuBLAS."""

    def product(self) -> Matrix:
        """C (m×n of the problem) after some launches, the last on a C that was poisoned."""

    def sample(self, flush_l2: bool) -> float:
        """Seconds of one launch, with L2 flushed before it, or warm of another."""

    def raise_damage(self) -> None:
        """Raise where something is not as it was that no kernel may write to."""

    def dismiss(self) -> None:
        """Free what it holds: nothing more is asked."""


class Contender:
    """One kernel on the GPU that is here, with buffers of its own."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._held = ExitStack()

    def __enter__(self) -> Contender:
        with ExitStack() as held:
            self._gpu = held.enter_context(Gpu())
            self._guarded = Guarded(self._gpu)
            self._cubin, self._launch = self._prepared(held)
            self._gpu.flush_l2()  # there is room for what that takes, or it fails here
            self._held = held.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self.dismiss()
        self._held.close()

    def dismiss(self) -> None:
        self._guarded.release()

    def _prepared(self, held: ExitStack) -> tuple[Kernel | None, Callable[[], None]]:
        task, code = self._task, self._task.code
        kernel = None
        if code is not None:
            kernel = self._gpu.load(code.source, code.entry, name=code.name, defines=code.defines)
        a, b = Workload(task.problem, task.seed).padded(task.executed)
        self._operands = Operands(
            shape=task.executed,
            a=self._guarded.buffer("A", a.nbytes, a),
            b=self._guarded.buffer("B", b.nbytes, b),
            c=self._guarded.buffer("C", FLOAT_BYTES * task.executed.c_elements),
        )
        if code is None or kernel is None:
            cublas = held.enter_context(Cublas())
            of = self._operands
            return None, cublas.sgemm(of.shape, of.a, of.b, of.c)
        workspace = None
        if code.workspace_bytes is not None:
            workspace = self._guarded.scratch("the workspace", code.workspace_bytes)
        arguments = launch_arguments(self._operands, code.maps, workspace)
        return kernel.cubin, kernel.prepared(code.geometry, arguments)

    def cubin(self) -> Kernel | None:
        return self._cubin

    def product(self) -> Matrix:
        shape, problem = self._task.executed, self._task.problem
        with self._gpu.launch_errors("launch"):
            for _ in range(LAUNCHES - 1):
                self._launch()
                self._gpu.synchronize()
            self._gpu.poison(self._operands.c, shape.c_elements)
            self._launch()
            self._gpu.synchronize()
        result: Matrix = np.empty((shape.m, shape.n), np.float32)
        self._gpu.download(self._operands.c, into=result)
        self.raise_damage()
        return result[: problem.m, : problem.n]

    def sample(self, flush_l2: bool) -> float:
        return self._gpu.time(self._launch, flush_l2=flush_l2)

    def raise_damage(self) -> None:
        damage = self._guarded.damage()
        if damage is not None:
            raise LaunchError(damage)


class Guarded:
    """Buffers between guard bands, and inputs that must stay as they are."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._held: list[Any] = []
        self._buffers: list[tuple[str, int, int, int | None]] = []

    def buffer(self, name: str, size_bytes: int, content: Any = None) -> int:
        """The address of a buffer, filled with `content` or with NaN."""
        words = 2 * GUARD_WORDS + -(-size_bytes // 4)
        whole = self._gpu.allocate(4 * words)
        self._gpu.fill(whole, GUARD_WORD, words)
        address = int(whole) + 4 * GUARD_WORDS
        checksum = None
        if content is not None:
            content = np.ascontiguousarray(content)
            self._gpu.write(address, content)
            checksum = crc32(content.data)
        self._held.append(whole)
        self._buffers.append((name, address, size_bytes, checksum))
        return address

    def scratch(self, name: str, size_bytes: int) -> int:
        """The address of zeros that may be written."""
        address = self.buffer(name, size_bytes)
        self._gpu.write(address, np.zeros(size_bytes, np.uint8))
        return address

    def release(self) -> None:
        """Free the buffers."""
        self._held.clear()

    def damage(self) -> str | None:
        """The first thing that no kernel may write to and that is not as it was."""
        for name, address, size_bytes, checksum in self._buffers:
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
            if checksum is not None and checksum != self._checksum(address, size_bytes):
                return f"wrote to {name}, which is an input"
        return None

    def _checksum(self, address: int, size_bytes: int) -> int:
        content = np.empty(size_bytes, np.uint8)
        self._gpu.download(address, into=content)
        return crc32(content.data)


class InAChild:
    """A contender in a process of its own, under a limit of time.

    Raises LaunchError with one line for whatever went wrong, the end of that process included.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._child = Isolated(Contender, task)

    def __enter__(self) -> InAChild:
        return self

    def __exit__(self, *exception: object) -> None:
        self._child.close()

    def dismiss(self) -> None:
        self._child.dismiss()

    def cubin(self) -> Kernel | None:
        found: Kernel | None = self._child.ask("cubin", limit_s=self._task.limit_s)
        return found

    def product(self) -> Matrix:
        product: Matrix = self._child.ask("product", limit_s=self._task.limit_s)
        return product

    def sample(self, flush_l2: bool) -> float:
        return float(self._child.ask("sample", flush_l2, limit_s=self._task.launch_limit_s))

    def raise_damage(self) -> None:
        self._child.ask("raise_damage", limit_s=self._task.limit_s)
