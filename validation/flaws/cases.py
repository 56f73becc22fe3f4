"""Launches with one flaw each; expected answers were written down before causes were ranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis.timing.predicted import Effect, Predicted
from toolkit.execution.simulate import simulate
from toolkit.launch.launch import Argument

SOURCE = Path(__file__).parent / "kernels.cu"
M = 1 << 20


def floats(count: int, high: float = 1.0) -> np.ndarray:
    return (high * np.random.default_rng(1).random(count)).astype(np.float32)


def integers(count: int, high: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, high, count, dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """A launch of a kernel with a flaw, and the same kernel without it.

    `causes`: effects of which the largest avoidable part of the time has to be one; also roofs,
    where the flaw is too much work for one unit. `line`: source line that is to blame, None if
    several are. `fixed`: what the launch without the flaw has otherwise (grid, block).
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...]
    causes: frozenset[Effect]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def launch(self, *, is_fixed: bool) -> dict[str, Any]:
        """Arguments of `simulate` and `run`."""
        geometry: dict[str, Any] = {"grid": self.grid, "block": self.block}
        if is_fixed:
            geometry |= self.fixed
        arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments]
        defines = {"FIXED": int(is_fixed)}
        return {**geometry, "kernel": self.kernel, "arguments": arguments, "defines": defines}

    def predicted(self, device: str, *, is_fixed: bool) -> Predicted:
        found = simulate(SOURCE, **self.launch(is_fixed=is_fixed), device=device).predicted
        assert found is not None
        return found


def _flaw(
    kernel: str,
    grid: Any,
    block: Any,
    arguments: tuple[Any, ...],
    *causes: Effect,
    fixed: Mapping[str, Any] | None = None,
) -> Flaw:
    return Flaw(
        kernel=kernel,
        grid=grid if isinstance(grid, tuple) else (grid,),
        block=block if isinstance(block, tuple) else (block,),
        arguments=arguments,
        causes=frozenset(causes),
        fixed=fixed or {},
    )


FLAWS = (
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
)
