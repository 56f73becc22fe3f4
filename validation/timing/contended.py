"""Launches in which atomic operations meet in L2, or lanes read constants by indices in registers.

`recorded/contended_h100.json` has what they took on an H100: medians of eight launches by CUDA
events, after a launch that writes 256 MiB ("flushed"), and after the same launch ("warm").
Constants of the model were measured by microbenchmarks, not on these. `atomic_window` and
`MOST_CROWDED` were chosen with `columns` and `columns_of_blocks` in view; the others, with the
part "evaluated", had no part in any rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from validation import recordings

FILE = Path(__file__).parent / "contention" / "kernels.cu"
RECORDED = Path(__file__).parent / "recorded" / "contended_h100.json"
KEYS, WORDS = 1 << 22, 1 << 16
Arguments = Sequence[Any]
i32, u32 = np.int32, np.uint32


@dataclass(frozen=True, kw_only=True)
class Contended:
    """One launch. `label` names it in the recording."""

    label: str
    kernel: str
    grid: int
    block: int
    make: Callable[[], Arguments]
    dynamic_shared_bytes: int = 0


def recorded() -> dict[str, Any]:
    """Times of the launches by label: {"flushed_s", "warm_s", "part"}."""
    launches: dict[str, Any] = recordings.read(RECORDED)["launches"]
    return launches


def _sums(kernel: str, grid: int, block: int, times: int, floats: int = WORDS) -> Contended:
    return Contended(
        label=f"{kernel} {grid}x{block}x{times}",
        kernel=kernel,
        grid=grid,
        block=block,
        make=lambda: [np.zeros(floats, np.float32), i32(times)],
    )


def _keys(kind: str) -> np.ndarray[Any, np.dtype[np.uint32]]:
    if kind == "in order":
        return np.arange(KEYS, dtype=u32)
    keys = np.random.default_rng(0).integers(0, 1 << 31, KEYS).astype(u32)
    if kind == "half zero":
        keys[::2] = 0
    return keys


def _bins(count: int, kind: str) -> Contended:
    return Contended(
        label=f"bins {count:,} of keys {kind}",
        kernel="bins",
        grid=1056,
        block=256,
        make=lambda: [np.zeros(count, u32), _keys(kind), i32(KEYS), u32(count - 1)],
    )


def _columns(kernel: str, block: int, rows: int, width: int) -> Contended:
    return Contended(
        label=f"{kernel} {rows}x{width} by {block}",
        kernel=kernel,
        grid=rows * 32 // block,
        block=block,
        make=lambda: [
            np.zeros(2 * width, np.float32),
            np.ones(rows * width, np.float32),
            i32(rows),
            i32(width),
        ],
        dynamic_shared_bytes=8 * width if kernel == "columns_of_blocks" else 0,
    )


def _look_up(grid: int, words: int, size: int) -> Contended:
    return Contended(
        label=f"look_up {words} words of {size:,}, {grid} blocks",
        kernel="look_up",
        grid=grid,
        block=256,
        make=lambda: [np.zeros(grid * 256, np.float32), i32(words), i32(size - 1)],
    )


LAUNCHES: Sequence[Contended] = (
    *(
        _sums("one_sum", *at)
        for at in ((132, 256, 16), (1, 256, 16), (1, 1024, 64), (16, 1024, 16))
    ),
    *(_sums("one_line", *at) for at in ((528, 256, 64), (1, 1024, 64))),
    *(_sums("own_words", *at, 1 << 24) for at in ((528, 256, 64), (528, 256, 16), (1056, 1024, 4))),
    *(_bins(count, "at random") for count in (16, 256, 4096, 65_536)),
    _bins(4096, "half zero"),
    *(_bins(count, "in order") for count in (256, 65_536)),
    *(
        _columns(kernel, block, 8192, 768)
        for kernel in ("columns", "columns_of_blocks")
        for block in (32, 128, 256, 512, 1024)
    ),
    _columns("columns", 64, 8192, 64),
    _columns("columns", 256, 4096, 1536),
    *(
        _look_up(grid, words, size)
        for grid, words, size in (
            *((132, words, 32) for words in (1, 8, 32)),
            *((528, words, 32) for words in (1, 2, 4, 8, 32)),
            *((1056, words, 32) for words in (1, 8, 32)),
            *((grid, 1, 1024) for grid in (132, 528, 1056)),
        )
    ),
)
