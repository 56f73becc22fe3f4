"""Launches of the kernels in `kernels`: C = A * B^T by warpgroups, for several types."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from toolkit import TensorMap

FOLDER = Path(__file__).parent / "kernels"
TILE, ROW_BYTES = 128, 128

# name of -DTYPE_: type of elements, and unit roundoff of the sums (of FP8 the fraction has 13 bits)
TYPES: dict[str, tuple[Any, float]] = {
    "F16": (np.float16, 2.0**-23),
    "BF16": (ml_dtypes.bfloat16, 2.0**-23),
    "TF32": (np.float32, 2.0**-23),
    "E4M3": (ml_dtypes.float8_e4m3fn, 2.0**-13),
    "S8": (np.int8, 0.0),
}


@dataclass(frozen=True, kw_only=True)
class Product:
    """A launch of a kernel: everything that `simulate` and `check` take."""

    kernel: str
    kind: str
    a: NDArray[Any]
    b: NDArray[Any]
    launch: dict[str, Any]

    @property
    def source(self) -> Path:
        return FOLDER / f"{self.kernel}.cu"

    @property
    def wanted(self) -> NDArray[np.float64]:
        return self.a.astype(np.float64) @ self.b.astype(np.float64).T

    @property
    def bound(self) -> float:
        """Upper bound on errors of the sums, each of which is cut off."""
        terms = np.abs(self.a.astype(np.float64)) @ np.abs(self.b.astype(np.float64)).T
        return float(terms.max() * TYPES[self.kind][1] * (self.a.shape[1] / 8 + 1))


def values(shape: tuple[int, int], kind: str, seed: int) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    if kind == "S8":
        return rng.integers(-128, 128, shape, dtype=np.int8)
    x = rng.standard_normal(shape, dtype=np.float32)
    if kind == "TF32":  # the low 13 bits are not read
        return (x.view(np.uint32) & 0xFFFFE000).view(np.float32)
    return x.astype(TYPES[kind][0])


def product(
    kernel: str, m: int, n: int, k: int, *, kind: str = "F16", blocks: int | None = None
) -> Product:
    """`specialised`, persistent with fewer `blocks` than tiles, `plain` or `left_in_registers`."""
    a, b = values((m, k), kind, 1), values((n, k), kind, 2)
    c = np.zeros((m, n), dtype=np.int32 if kind == "S8" else np.float32)
    box = (TILE, ROW_BYTES // a.dtype.itemsize)
    maps = [TensorMap(x, box, swizzle=ROW_BYTES) for x in (a, b)]
    sizes = [np.int32(x) for x in (m, n, k)]
    launch: dict[str, Any] = {"defines": {f"TYPE_{kind}": 1}}
    match kernel:
        case "specialised":
            tiles = m // TILE * (n // TILE)
            launch |= {"grid": blocks or tiles, "block": 384, "arguments": [*maps, c, *sizes]}
            launch["dynamic_shared_bytes"] = 4 * 2 * TILE * ROW_BYTES
        case "plain":
            launch |= {"grid": (n // TILE, m // TILE), "block": 256}
            launch["arguments"] = [*maps, c, *sizes]
            launch["dynamic_shared_bytes"] = 3 * 2 * TILE * ROW_BYTES
        case _:
            launch |= {"grid": (n // TILE, m // 64), "block": 128}
            launch["arguments"] = [a.view(np.uint32), b.view(np.uint32), c, *sizes[1:]]
            launch["defines"] = {}
    return Product(kernel=kernel, kind=kind, a=a, b=b, launch=launch)
