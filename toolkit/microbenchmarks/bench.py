"""Probes on a GPU: compiled, rewritten, launched, and timed by the SMs' own clocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from analysis.errors import UnavailableError
from analysis.geometry import Geometry
from analysis.l2_state import L2State
from toolkit.gpu.context import Gpu, LoadedKernel
from toolkit.gpu.nvcc import nvcc_version
from toolkit.machine_code.compile import compile_cubin, compiler_version
from toolkit.machine_code.patching import rewritten
from toolkit.microbenchmarks.probe import Probe
from toolkit.microbenchmarks.record import Median

LANES = 32
OFFSETS = 2048  # ints that a probe may read; those that are not given are zero
MOST_WARPS = 1 << 16
REPEATS = 7  # odd: the median is one of them
FEW, MANY = 8, 40  # rounds: the difference between the two has no start and no end
HOLD_NS = 20_000_000  # for so long one SM is busy while its clock is read
HOLD_SOURCE = """
extern "C" __global__ void spin(long long* out, long long nanoseconds)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    const long long before = clock64();
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - start < nanoseconds);
    out[0] = clock64() - before;
    out[1] = now - start;
}
"""
SCHEDULERS = 4
ONE_SM, ALL_SMS = WHERE = ("one_sm", "all_sms")
Shared = TypeVar("Shared")


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """Clocks noted by the warps of one launch: (block, warp), in cycles of their own SM."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    @property
    def spans(self) -> NDArray[np.int64]:
        """Cycles of each block, from its first warp's start to its last one's end."""
        spans: NDArray[np.int64] = self.stop.max(axis=1) - self.start.min(axis=1)
        return spans


class Bench:
    """One GPU with the buffers that probes share."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.device = gpu.device
        self._images: dict[str, bytes] = {}
        self._kernels: dict[str, LoadedKernel] = {}
        self._clocks = gpu.allocate(16 * MOST_WARPS)
        self._sink = gpu.allocate(4 << 16)
        self._offsets = gpu.upload(np.zeros(OFFSETS, np.int32))
        self._shared: dict[Any, Any] = {}
        self.compiler = ""

    def shared(self, kind: Callable[[Bench], Shared]) -> Shared:
        """Object that several benchmarks share; the first that asks for it makes it."""
        if kind not in self._shared:
            self._shared[kind] = kind(self)
        found: Shared = self._shared[kind]
        return found

    def add(self, probes: Sequence[Probe]) -> None:
        """Compile probes of one suffix, all together."""
        source = "\n".join(probe.source for probe in probes)
        image, self.compiler = self.compiled(source, probes[0].name, suffix=probes[0].suffix)
        patches = {probe.name: probe.patch for probe in probes if probe.patch is not None}
        image = rewritten(image, patches)
        self._images |= {probe.name: image for probe in probes}

    def compiled(
        self, source: str, kernel: str, suffix: str = "", **macros: int | str
    ) -> tuple[bytes, str]:
        """Machine code by NVRTC, or by nvcc where that is not installed, and which it was."""
        how: dict[str, Any] = {"name": "probes.cu", "defines": macros, "options": ()}
        arch = self.device.sm_arch + suffix
        try:
            cubin = compile_cubin(source, kernel=kernel, arch=arch, **how)
            return cubin.image, compiler_version()
        except UnavailableError:
            if suffix:
                raise
            return self.gpu.load(source, kernel, **how).cubin.image, nvcc_version()

    def kernel(self, source: str, name: str, suffix: str = "", **macros: int | str) -> LoadedKernel:
        """A kernel that is no probe."""
        key = f"{name}{macros}"
        if key not in self._kernels:
            image, self.compiler = self.compiled(source, name, suffix, **macros)
            self._kernels[key] = self.gpu.load_image(image, name)
        return self._kernels[key]

    def clocks(
        self,
        probe: Probe,
        *,
        warps: int,
        rounds: int,
        blocks: int = 1,
        idle: int = 0,
        memory: Any = 0,
        dynamic_shared_bytes: int = 0,
    ) -> Clocks:
        """One launch; the offsets are those of the last `place`."""
        if probe.name not in self._kernels:
            image = self._images[probe.name]
            self._kernels[probe.name] = self.gpu.load_image(image, probe.name)
        launch = self._kernels[probe.name].prepared(
            Geometry.of(blocks, LANES * warps, dynamic_shared_bytes),
            [self._clocks, self._sink, self._offsets, memory, np.int32(rounds), np.int32(idle)],
        )
        noted = self.noted(probe.name, launch, self._clocks, (blocks, warps, 2))
        busy = [warp for warp in range(warps) if not warp & idle]
        return Clocks(start=noted[:, busy, 0], stop=noted[:, busy, 1])

    def noted(
        self, name: str, launch: Callable[[], None], out: Any, shape: tuple[int, ...]
    ) -> NDArray[np.int64]:
        """Content of the buffer `out` after one launch."""
        found = np.empty(shape, np.int64)
        with self.gpu.launch_errors(name):
            launch()
            self.gpu.synchronize()
        self.gpu.download(out, into=found)
        return found

    def place(self, offsets: Sequence[int] | NDArray[np.integer[Any]] = ()) -> None:
        """Set the `offsets` that probes read: the given ones, then zeros."""
        padded = np.zeros(OFFSETS, np.int32)
        padded[: len(offsets)] = offsets
        self._offsets = self.gpu.upload(padded)

    def cycles(
        self,
        probe: Probe,
        *,
        warps: int,
        blocks: int = 1,
        few: int = FEW,
        many: int = MANY,
        repeats: int = REPEATS,
        first: Callable[[], None] = lambda: None,
        **how: Any,
    ) -> Median:
        """Cycles per round: of a block between `few` and `many` rounds; the median over blocks.

        `first` is called before each launch.
        """
        samples = []
        for _ in range(repeats + 1):
            spans = []
            for rounds in (few, many):
                first()
                clocks = self.clocks(probe, warps=warps, blocks=blocks, rounds=rounds, **how)
                spans.append(np.median(clocks.spans))
            samples.append(float(spans[1] - spans[0]) / (many - few))
        return Median.of(samples[1:])  # the first warms the instruction caches

    def per_instruction(
        self, probe: Probe, number: int, *, schedulers: int = 1, **how: Any
    ) -> Median:
        """Cycles per instruction of the probe, with so many warps on each scheduler, or on the SM
        where `schedulers` is 1."""
        cycles = self.cycles(probe, warps=schedulers * number, **how)
        return cycles.scaled(1 / (number * probe.count))

    def by_warps(self, probe: Probe, numbers: Sequence[int], **how: Any) -> dict[int, Median]:
        """The same by the number of warps."""
        return {number: self.per_instruction(probe, number, **how) for number in numbers}

    def blocks(self, on: str) -> int:
        """Blocks for "one_sm", or a block each for "all_sms"."""
        return self.device.sm_count if on == ALL_SMS else 1

    def seconds(self, launch: Callable[[], None], *, repeats: int = REPEATS) -> Median:
        """The time of a launch between two events."""
        return Median.of([self.gpu.timer.time(launch, l2=L2State.WARM) for _ in range(repeats)])

    def clock_hz(self) -> float:
        """The SM clock that is held while one SM is busy."""
        spin = self.kernel(HOLD_SOURCE, "spin")
        out = self.gpu.allocate(16)
        launch = spin.prepared(Geometry.of(1, 1), [out, np.int64(HOLD_NS)])
        noted = self.noted("clock", launch, out, (2,))
        return float(noted[0] / (noted[1] * 1e-9))
