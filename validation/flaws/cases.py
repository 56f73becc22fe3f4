"""Launches with one flaw each; expected answers were written down before causes were ranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis.timing.predicted import Effect, Predicted
from toolkit.execution.completed_request import completed
from toolkit.execution.launch_request import LaunchRequest
from toolkit.execution.simulate import simulate
from toolkit.launch.launch import Argument

FOLDER = Path(__file__).parent
ROOF_SOURCE = FOLDER / "roofs.cu"
PROGRAMS = FOLDER / "programs"
M = 1 << 20


def floats(count: int, high: float = 1.0) -> np.ndarray:
    return (high * np.random.default_rng(1).random(count)).astype(np.float32)


def doubles(count: int) -> np.ndarray:
    return np.random.default_rng(1).random(count)


def integers(count: int, high: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, high, count, dtype=np.int32)


def cycle(count: int) -> np.ndarray:
    """The next number of each number in a random cycle of all."""
    order = np.random.default_rng(1).permutation(count).astype(np.int32)
    found = np.empty(count, dtype=np.int32)
    found[order] = np.roll(order, -1)
    return found


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """A launch of a kernel with a flaw, and the same kernel without it.

    `causes`: effects of which the largest avoidable part of the time has to be one; also roofs,
    where the flaw is too much work for one unit. `grid`, `block`, `arguments`: empty if the host
    code of the file says them; `kernel` is then the name of the file. `fixed`: what the launch
    without the flaw has otherwise (grid, block). `file`: that of the kernel, unless it has its own.
    `origin`: file of a public repository whose kernel has the same flaw.
    """

    kernel: str
    causes: frozenset[Effect]
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    arguments: tuple[Argument, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    file: str = "kernels.cu"
    origin: str = ""

    @property
    def source(self) -> Path:
        own = FOLDER / f"{self.kernel}.cu"
        return own if own.exists() else FOLDER / self.file

    def launch(self, *, is_fixed: bool) -> dict[str, Any]:
        """Arguments of `simulate` and `run`."""
        if not self.grid:
            return launch_of_host_code(self.source, {"FIXED": int(is_fixed)})
        geometry: dict[str, Any] = {"grid": self.grid, "block": self.block}
        if is_fixed:
            geometry |= self.fixed
        arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments]
        defines = {"FIXED": int(is_fixed)}
        return {**geometry, "kernel": self.kernel, "arguments": arguments, "defines": defines}

    def predicted(self, device: str, *, is_fixed: bool) -> Predicted:
        return predicted(self.source, self.launch(is_fixed=is_fixed), device)


@dataclass(frozen=True, kw_only=True)
class Roof:
    """A launch that no edit makes faster, and the roofs of which its time is to name one.

    `given`: arguments of `simulate`; empty if host code says them.
    """

    kernel: str
    given: Mapping[str, Any]
    roofs: frozenset[Effect]
    source: Path = ROOF_SOURCE

    @property
    def launch(self) -> Mapping[str, Any]:
        """Arguments of `simulate` and `run`."""
        return self.given or launch_of_host_code(self.source)


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A launch of a program whose time alone is compared. `arguments`: those that need data."""

    kernel: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)

    @property
    def source(self) -> Path:
        return PROGRAMS / f"{self.kernel}.cu"

    @property
    def launch(self) -> dict[str, Any]:
        """Arguments of `simulate` and `run`."""
        return launch_of_host_code(self.source, arguments=self.arguments)


def launch_of_host_code(
    source: Path,
    defines: Mapping[str, object] | None = None,
    arguments: Mapping[str, Argument] | None = None,
) -> dict[str, Any]:
    """The launch that the host code of a program says, as arguments of `simulate` and `run`."""
    asked = LaunchRequest(source=source, arguments=arguments or {}, defines=defines)
    found = completed(asked, None, 1, guesses=True).request
    return {
        "kernel": found.kernel,
        "grid": found.grid,
        "block": found.block,
        "arguments": found.arguments,
        "defines": dict(defines or {}),
    }


def predicted(source: Path, launch: Mapping[str, Any], device: str) -> Predicted:
    found = simulate(source, **launch, device=device, blocks="representative").predicted
    assert found is not None
    return found


def _flaw(
    kernel: str,
    grid: Any,
    block: Any,
    arguments: tuple[Any, ...],
    *causes: Effect,
    fixed: Mapping[str, Any] | None = None,
    file: str = "kernels.cu",
    origin: str = "",
) -> Flaw:
    return Flaw(
        kernel=kernel,
        grid=_tuple(grid),
        block=_tuple(block),
        arguments=arguments,
        causes=frozenset(causes),
        fixed=fixed or {},
        file="public.cu" if origin else file,
        origin=origin,
    )


def _roof(
    kernel: str,
    grid: Any,
    block: Any,
    arguments: tuple[Any, ...],
    *roofs: Effect,
    source: Path = ROOF_SOURCE,
) -> Roof:
    launch = {"grid": _tuple(grid), "block": _tuple(block), "arguments": arguments}
    return Roof(
        kernel=kernel,
        given={"kernel": kernel, **launch},
        roofs=frozenset(roofs),
        source=source,
    )


def _tuple(extent: Any) -> tuple[int, ...]:
    return extent if isinstance(extent, tuple) else (extent,)


PLANTED = (
    _flaw(
        "conflicts",
        (128, 128),
        (32, 8),
        (floats(16 * M), floats(16 * M), np.int32(4096)),
        Effect.CONFLICTS,
    ),
    _flaw(
        "few_blocks",
        8,
        256,
        (floats(4 * M), floats(4 * M), np.int32(4 * M)),
        Effect.IDLE_SMS,
        fixed={"grid": (1056,)},
    ),
    _flaw(
        "fields", 16384, 256, (floats(4 * M), floats(32 * M), np.int32(4 * M)), Effect.UNCOALESCED
    ),
    _flaw(
        "scattered_stores",
        (128, 512),
        (32, 8),
        (floats(16 * M), floats(16 * M), np.int32(4096)),
        Effect.UNCOALESCED,
    ),
    _flaw(
        "doubles",
        16384,
        256,
        (floats(4 * M), floats(4 * M)),
        Effect.FP64_PIPE,
        Effect.SPECIAL_PIPE,
    ),
    _flaw("branches", 16384, 256, (floats(4 * M), floats(4 * M)), Effect.DIVERGENCE),
    _flaw("one_sum", 528, 256, (floats(1), floats(M), np.int32(M)), Effect.ATOMICS),
    _flaw(
        "bins",
        528,
        256,
        (integers(256, 1), integers(4 * M, 1 << 30), np.int32(4 * M)),
        Effect.ATOMICS,
    ),
    _flaw(
        "lookup", 1056, 256, (floats(1056 * 256), integers(1056 * 256, 1 << 30)), Effect.CONSTANTS
    ),
    _flaw(
        "walk_rows", 64, 256, (floats(16384), floats(16 * M), np.int32(1024)), Effect.UNCOALESCED
    ),
    _flaw(
        "in_local_memory",
        4096,
        256,
        (floats(M), floats(M), np.int32(3)),
        Effect.LOCAL_MEMORY,
    ),
    _flaw(
        "barriers", 16384, 1024, (floats(16384), floats(16 * M)), Effect.BARRIERS, Effect.DIVERGENCE
    ),
    _flaw(
        "gemv",
        32,
        256,
        (floats(256), floats(M), floats(4096), np.int32(4096)),
        Effect.IDLE_SMS,
        fixed={"grid": (256,), "block": (32,)},
    ),
    _flaw(
        "tail",
        1057,
        256,
        (floats(1057 * 256), floats(1057 * 256)),
        Effect.IDLE_SMS,
        fixed={"grid": (1056,)},
    ),
    _flaw(
        "single_floats",
        65536,
        256,
        (floats(16 * M), floats(16 * M)),
        Effect.DRAM_LATENCY,
        fixed={"grid": (16384,)},
    ),
    _flaw("one_load", 64, 256, (floats(16384), floats(4 * M), np.int32(256)), Effect.DRAM_LATENCY),
    _flaw("chases", 132, 128, (integers(132 * 128, 1), cycle(M), np.int32(M)), Effect.L2_LATENCY),
    _flaw("shared_chases", 132, 128, (integers(132 * 128, 1), cycle(1024)), Effect.SHARED_LATENCY),
    _flaw("one_chain", 132, 128, (floats(132 * 128), floats(132 * 128)), Effect.DEPENDENCES),
    _flaw("exponentials", 2112, 256, (floats(2112 * 256), floats(2112 * 256)), Effect.SPECIAL_PIPE),
    _flaw(
        "wide_integers",
        2112,
        256,
        (integers(2112 * 256, 1), integers(2112 * 256, 1 << 30)),
        Effect.INTEGER_PIPE,
    ),
    _flaw("triangle", 132, 256, (floats(264 * 256), floats(256), np.int32(264)), Effect.IDLE_SMS),
    _flaw("long_code", 264, 256, (floats(264 * 256), floats(264 * 256), np.int32(4)), Effect.FETCH),
    _flaw(
        "spills",
        1024,
        256,
        (floats(262144), floats(64 * 262144), np.int32(262144)),
        Effect.LOCAL_MEMORY,
    ),
)

# Own kernels with the flaw of a kernel of a public repository.
PUBLIC = (
    _flaw(
        "naive_sgemm",
        (32, 32),
        (32, 32),
        (floats(M), floats(M), floats(M), np.int32(1024)),
        Effect.UNCOALESCED,
        origin="siboehm/SGEMM_CUDA, src/kernels/1_naive.cuh",
    ),
    _flaw(
        "softmax",
        64,
        128,
        (floats(8 * M), floats(8 * M), np.int32(1024)),
        Effect.UNCOALESCED,
        Effect.IDLE_SMS,
        fixed={"grid": (2048,)},
        origin="karpathy/llm.c, dev/cuda/softmax_forward.cu, kernel 1",
    ),
    _flaw(
        "weight_gradient",
        256,
        256,
        (floats(768), floats(8192 * 768), floats(8192 * 768), np.int32(8192)),
        Effect.ATOMICS,
        origin="karpathy/llm.c, dev/cuda/layernorm_backward.cu, kernel 1",
    ),
    _flaw(
        "strided_reduction",
        32768,
        256,
        (floats(32768), floats(8 * M)),
        Effect.CONFLICTS,
        origin="NVIDIA/cuda-samples, reduction/reduction_kernel.cu, reduce1",
    ),
    _flaw(
        "bias_gradient",
        768,
        1024,
        (floats(768), floats(8192 * 768), np.int32(8192), np.int32(768)),
        Effect.UNCOALESCED,
        fixed={"grid": (24,)},
        origin="karpathy/llm.c, dev/cuda/matmul_backward_bias.cu, kernel 1",
    ),
)
FLAWS = PLANTED + PUBLIC

_CHAINS = 2112 * 256
# Copies of 64 MiB were predicted to wait for DRAM for 3.6% of the time; these are twice as large.
ROOFS = (
    _roof("copy", 32768, 256, (floats(32 * M), floats(32 * M)), Effect.DRAM_BANDWIDTH),
    _roof("fill", 32768, 256, (floats(32 * M),), Effect.DRAM_BANDWIDTH, Effect.L2_BANDWIDTH),
    _roof("triad", 32768, 256, tuple(floats(32 * M) for _ in range(3)), Effect.DRAM_BANDWIDTH),
    _roof(
        "saxpy", 32768, 256, (floats(32 * M), floats(32 * M), np.float32(2)), Effect.DRAM_BANDWIDTH
    ),
    _roof(
        "padded_transpose",
        (128, 128),
        (32, 8),
        (floats(16 * M), floats(16 * M), np.int32(4096)),
        Effect.DRAM_BANDWIDTH,
    ),
    _roof(
        "stencil",
        32768,
        256,
        (floats(32 * M), floats(32 * M), np.int32(8 * M)),
        Effect.DRAM_BANDWIDTH,
    ),
    _roof(
        "total",
        1056,
        256,
        (floats(1056 * 8), floats(32 * M), np.int32(8 * M)),
        Effect.DRAM_BANDWIDTH,
    ),
    _roof("fp32", 2112, 256, (floats(_CHAINS), floats(_CHAINS)), Effect.FP32_PIPE),
    _roof("fp64", 2112, 256, (doubles(_CHAINS), doubles(_CHAINS)), Effect.FP64_PIPE),
    _roof("products", 2112, 256, (integers(_CHAINS, 9), integers(_CHAINS, 9)), Effect.INTEGER_PIPE),
    _roof("logic", 2112, 256, (integers(_CHAINS, 9), integers(_CHAINS, 9)), Effect.LOGIC_PIPE),
    _roof("sines", 2112, 256, (floats(_CHAINS), floats(_CHAINS)), Effect.SPECIAL_PIPE),
    _roof("shared_reads", 528, 256, (floats(528 * 256), floats(4096)), Effect.SHARED_WAVEFRONTS),
    _roof(
        "l2_reads",
        1056,
        256,
        (floats(1056 * 256), floats(4 * M), np.int32(M)),
        Effect.L2_BANDWIDTH,
    ),
)
FAST_SGEMM = (("realigned", 8192), ("wide-thread-tile", 8192))  # rungs at the roof of FP32

# Written before the ranking of causes and remedies was changed: they judge it, and tune nothing.
HELD_OUT = (
    _flaw(
        "smoothed_columns",
        (32, 128),
        256,
        (floats(16 * M), floats(16 * M), np.int32(4096)),
        Effect.CONFLICTS,
        file="held_out.cu",
    ),
    _flaw(
        "normalized_rows",
        64,
        1024,
        (floats(8 * M), floats(8 * M), np.int32(4096)),
        Effect.IDLE_SMS,
        fixed={"grid": (256,), "block": (256,)},
        file="held_out.cu",
    ),
    _flaw(
        "group_maximum",
        528,
        256,
        (integers(64, 1), integers(2 * M, 1 << 30), integers(2 * M, 1 << 30), np.int32(2 * M)),
        Effect.ATOMICS,
        file="held_out.cu",
    ),
    _flaw(
        "permuted",
        32768,
        256,
        (floats(8 * M), floats(8 * M), np.int32(64), np.int32(128), np.int32(32)),
        Effect.OTHER_INSTRUCTIONS,
        Effect.INTEGER_PIPE,
        Effect.LOGIC_PIPE,
        file="held_out.cu",
    ),
    _flaw(
        "late_loads",
        2112,
        128,
        (floats(2112 * 128), floats(64 * 2112 * 128), np.int32(2112 * 128)),
        Effect.DRAM_LATENCY,
        file="held_out.cu",
    ),
)

_HELD_OUT_SOURCE = FOLDER / "held_out.cu"
HELD_OUT_ROOFS = (
    _roof(
        "reversed",
        32768,
        256,
        (floats(32 * M), floats(32 * M), np.int32(8 * M)),
        Effect.DRAM_BANDWIDTH,
        source=_HELD_OUT_SOURCE,
    ),
    _roof(
        "widened",
        16384,
        256,
        (floats(32 * M), integers(16 * M, 1 << 30)),
        Effect.DRAM_BANDWIDTH,
        source=_HELD_OUT_SOURCE,
    ),
    _roof(
        "partial_columns",
        (16, 64),
        256,
        (floats(M), floats(64 * M), np.int32(4096)),
        Effect.DRAM_BANDWIDTH,
        source=_HELD_OUT_SOURCE,
    ),
    _roof(
        "half_pairs",
        2112,
        256,
        (integers(_CHAINS, 9), integers(_CHAINS, 9)),
        Effect.FP16_PIPE,
        source=_HELD_OUT_SOURCE,
    ),
    _roof(
        "powers_of_two",
        2112,
        256,
        (floats(_CHAINS), floats(_CHAINS)),
        Effect.SPECIAL_PIPE,
        source=_HELD_OUT_SOURCE,
    ),
)

# Written before rules of decisions 109 and 110, as the first set was before those of decision 95.
_SECOND_SOURCE = FOLDER / "second_held_out.cu"
SECOND_HELD_OUT = (
    _flaw(
        "transposed_pairs",
        (64, 64),
        (32, 8),
        (floats(8 * M), floats(8 * M), np.int32(2048)),
        Effect.CONFLICTS,
        file="second_held_out.cu",
    ),
    _flaw(
        "chunks",
        2048,
        256,
        (floats(16 * M), floats(16 * M)),
        Effect.UNCOALESCED,
        file="second_held_out.cu",
    ),
    _flaw(
        "embedding_gradient",
        1024,
        256,
        (floats(64 * 256), floats(16 * M), np.sort(integers(65536, 64)), np.int32(64)),
        Effect.ATOMICS,
        file="second_held_out.cu",
    ),
    _flaw(
        "uneven_loops",
        4224,
        256,
        (floats(4224 * 256), floats(4224 * 256)),
        Effect.DIVERGENCE,
        file="second_held_out.cu",
    ),
    _flaw(
        "sorted_eight",
        1056,
        256,
        (floats(8 * 1056 * 256), floats(8 * 1056 * 256), np.int32(1056 * 256)),
        Effect.LOCAL_MEMORY,
        file="second_held_out.cu",
    ),
    _flaw(
        "horner",
        132,
        128,
        (floats(132 * 128), floats(132 * 128)),
        Effect.DEPENDENCES,
        file="second_held_out.cu",
    ),
    _flaw(
        "substituted",
        1056,
        256,
        (integers(1056 * 256, 1), integers(1056 * 256, 1 << 30)),
        Effect.CONSTANTS,
        file="second_held_out.cu",
    ),
    _flaw(
        "large_tiles",
        (8, 8),
        256,
        (floats(M), floats(M), np.int32(1024)),
        Effect.IDLE_SMS,
        fixed={"grid": (32, 128)},
        file="second_held_out.cu",
    ),
)
SECOND_HELD_OUT_ROOFS = (
    _roof(
        "added_doubles",
        32768,
        256,
        (doubles(16 * M), doubles(16 * M), doubles(16 * M)),
        Effect.DRAM_BANDWIDTH,
        source=_SECOND_SOURCE,
    ),
    _roof(
        "row_maximum",
        8192,
        256,
        (floats(8192), floats(32 * M)),
        Effect.DRAM_BANDWIDTH,
        source=_SECOND_SOURCE,
    ),
    _roof(
        "powers_of_matrices",
        2112,
        256,
        (floats(_CHAINS), floats(_CHAINS)),
        Effect.FP32_PIPE,
        source=_SECOND_SOURCE,
    ),
    _roof(
        "roots",
        2112,
        256,
        (floats(_CHAINS), floats(_CHAINS)),
        Effect.SPECIAL_PIPE,
        source=_SECOND_SOURCE,
    ),
)
# Kernels as users write them, before the rules of decision 121. Expected first remedies, in order:
# FP32 literals; combining keys before the atomic operation; neighbouring threads at neighbouring
# addresses; constant indices of the window; other banks for the lanes of a warp.
_THIRD_SOURCE = FOLDER / "third.cu"
_ROWS = 132 * 1024
THIRD_HELD_OUT = (
    _flaw(
        "softmax_temperature",
        4096,
        256,
        (floats(4 * M), floats(4 * M), np.int32(1024)),
        Effect.FP64_PIPE,
        Effect.SPECIAL_PIPE,
        file="third.cu",
    ),
    _flaw(
        "argmax",
        528,
        256,
        (np.zeros(1, dtype=np.uint64), integers(M, 1 << 30), np.int32(M)),
        Effect.ATOMICS,
        file="third.cu",
    ),
    _flaw(
        "spmv",
        _ROWS // 256,
        256,
        (
            floats(_ROWS),
            np.arange(0, 64 * _ROWS + 1, 64, dtype=np.int32),
            integers(64 * _ROWS, 16384),
            floats(64 * _ROWS),
            floats(16384),
            np.int32(_ROWS),
        ),
        Effect.UNCOALESCED,
        fixed={"grid": (_ROWS // 8,)},
        file="third.cu",
    ),
    _flaw(
        "convolution",
        1056,
        128,
        (
            floats(1056 * 128 * 144),
            floats(1056 * 128 * 144),
            floats(16),
            *map(np.int32, (1056 * 128, 144)),
        ),
        Effect.LOCAL_MEMORY,
        file="third.cu",
    ),
    _flaw("scan", 8192, 512, (floats(8 * M), floats(8 * M)), Effect.CONFLICTS, file="third.cu"),
)
THIRD_HELD_OUT_ROOFS = (
    _roof(
        "layernorm",
        8192,
        256,
        (floats(32 * M), floats(32 * M), np.float32(1e-5)),
        Effect.DRAM_BANDWIDTH,
        source=_THIRD_SOURCE,
    ),
    _roof(
        "matrix_vector",
        1024,
        256,
        (floats(8192), floats(64 * M), floats(8192), np.int32(8192)),
        Effect.DRAM_BANDWIDTH,
        source=_THIRD_SOURCE,
    ),
    _roof(
        "bodies",
        1056,
        256,
        (floats(4 * 1056 * 256), floats(4 * 1056 * 256), floats(4 * 4096), np.int32(4096)),
        Effect.FP32_PIPE,
        Effect.OTHER_INSTRUCTIONS,
        source=_THIRD_SOURCE,
    ),
    _roof(
        "seven_points",
        (1, 127, 126),
        (128, 4),
        (floats(512 * 510 * 128), floats(512 * 510 * 128), np.int32(128), np.int32(510)),
        Effect.DRAM_BANDWIDTH,
        source=_THIRD_SOURCE,
    ),
    _roof(
        "bitonic",
        2112,
        256,
        (integers(_CHAINS, 1 << 30), np.int32(64)),
        Effect.LOGIC_PIPE,
        Effect.SHARED_WAVEFRONTS,
        Effect.OTHER_INSTRUCTIONS,
        source=_THIRD_SOURCE,
    ),
)


# Programs as users write them, with host code, before the rules of decision 155. Expected first
# remedies, in order: sums of a warp or a block before the atomic operation; one array per
# dimension (neighbouring threads at neighbouring addresses); constant indices of the rows; more
# and smaller blocks; weights in registers, shared or global memory; neighbouring threads at
# neighbouring addresses; padded rows; FP32 literals; shuffles, which need no barriers; counts of a
# block in shared memory before the atomic operation.
def _program(name: str, *causes: Effect) -> Flaw:
    return Flaw(kernel=name, causes=frozenset(causes), file=f"programs/{name}.cu")


def _program_at_roof(name: str, *roofs: Effect) -> Roof:
    return Roof(kernel=name, given={}, roofs=frozenset(roofs), source=PROGRAMS / f"{name}.cu")


FOURTH_HELD_OUT = (
    _program("jacobi_residual", Effect.ATOMICS),
    _program("kmeans_assign", Effect.UNCOALESCED),
    _program("batched_lu", Effect.LOCAL_MEMORY),
    _program("nbody_small", Effect.IDLE_SMS),
    _program("depthwise", Effect.CONSTANTS),
    _program("im2col", Effect.UNCOALESCED),
    _program("attention_scores", Effect.CONFLICTS),
    _program("mandelbrot", Effect.FP64_PIPE),
    _program("hillis_steele", Effect.BARRIERS),
    _program("radix_pass", Effect.ATOMICS),
)
FOURTH_HELD_OUT_ROOFS = (
    _program_at_roof("cross_entropy", Effect.DRAM_BANDWIDTH),
    _program_at_roof("rope", Effect.DRAM_BANDWIDTH),
    _program_at_roof("xorshift_pi", Effect.LOGIC_PIPE, Effect.OTHER_INSTRUCTIONS),
    _program_at_roof("fir_taps", Effect.FP32_PIPE),
)


def uneven_graph() -> dict[str, Argument]:
    """A graph as `bfs_step.cu` makes it: every 64th vertex has 128 edges, others up to 11."""
    draw = np.random.default_rng(1)
    degrees = draw.integers(0, 12, M)
    degrees[::64] = 128
    levels = np.full(M, -1, dtype=np.int32)
    levels[::3] = 4
    return {
        "offsets": np.concatenate(([0], np.cumsum(degrees))).astype(np.int32),
        "edges": integers(int(degrees.sum()), M),
        "levels": levels,
    }


FOURTH_TIMED = (Timed(kernel="bfs_step", arguments=uneven_graph()), Timed(kernel="black_scholes"))
HELD_OUT_SETS = {
    1: (HELD_OUT, HELD_OUT_ROOFS),
    2: (SECOND_HELD_OUT, SECOND_HELD_OUT_ROOFS),
    3: (THIRD_HELD_OUT, THIRD_HELD_OUT_ROOFS),
    4: (FOURTH_HELD_OUT, FOURTH_HELD_OUT_ROOFS),
}
