"""Random operands of a form, by class and seed: the same bits on a GPU and on the simulator."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from validation.wgmma.products import ROW_BYTES, ROWS, Bytes, Form, Words

# exponent bits, fraction bits, bias; TF32 fills a word, of which 13 bits are not read
_FORMATS = {
    "f16": (5, 10, 15),
    "bf16": (8, 7, 127),
    "tf32": (8, 23, 127),
    "e4m3": (4, 3, 7),
    "e5m2": (5, 2, 15),
    "f32": (8, 23, 127),
}
_UNSIGNED: dict[int, Any] = {8: np.uint8, 16: np.uint16, 32: np.uint32}
OF_FLOATS = ("random", "whole range", "cancellation", "subnormal", "zeros", "Inf and NaN")
OF_INTEGERS = ("random", "extremes", "zeros")
BLOCKS = 8  # of 64 x 256 outputs: 131,072 of each class


def classes(form: Form) -> tuple[str, ...]:
    return OF_FLOATS if form.a in _FORMATS else OF_INTEGERS


def all_forms() -> list[Form]:
    """Every type of operands and sums, with A in shared memory and in registers, at N = 256."""
    kinds = [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32")]
    kinds += [("tf32", "tf32", "f32"), ("b1", "b1", "s32")]
    bytes_of = ("e4m3", "e5m2")
    kinds += [(a, b, sums) for a in bytes_of for b in bytes_of for sums in ("f32", "f16")]
    kinds += [(a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")]
    found = [
        Form(a=a, b=b, sums=sums, n=256, in_registers=rs)
        for a, b, sums in kinds
        for rs in (False, True)
    ]
    found += [
        Form(a=a, b=b, sums="s32", n=256, saturates=True) for a in ("s8", "u8") for b in ("s8",)
    ]
    for kind in ("f16", "bf16"):
        found.append(Form(a=kind, b=kind, sums="f32", n=256, negated=(True, True)))
    return found


def drawn(form: Form, name: str, seed: int, blocks: int = BLOCKS) -> tuple[Bytes, Bytes, Words]:
    """A [blocks][64][32], B [blocks][n][32] as bytes, and C [blocks][64][n] as bits."""
    rng = np.random.default_rng([seed, crc32(f"{form.name} {name}".encode())])
    shapes = (blocks, ROWS, form.k), (blocks, form.n, form.k)
    if form.a not in _FORMATS:
        a, b = (_whole(rng, name, (*x[:2], ROW_BYTES)) for x in shapes)
        c = rng.integers(0, 1 << 32, (blocks, ROWS, form.n), dtype=np.uint32)
        if name == "extremes":
            c = np.where(rng.random(c.shape) < 0.5, 0x7FFFF000 + c % 4096, 0x80000000 + c % 4096)
        return a, b, c.astype(np.uint32)
    a, b = (_floats(rng, kind, name, x) for kind, x in zip((form.a, form.b), shapes, strict=True))
    if name == "cancellation":  # pairs along K that cancel, but for a few bits
        sign = a.dtype.type(1 << (8 * a.itemsize - 1))
        flips = (rng.random((*a.shape[:2], form.k // 2)) < 0.1).astype(a.dtype)
        a[..., 1::2] = a[..., ::2] ^ sign ^ flips
        b[..., 1::2] = b[..., ::2]
    c = _floats(rng, form.sums, name, (blocks, ROWS, form.n)).astype(np.uint32)
    rows = [np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape[:2], ROW_BYTES) for x in (a, b)]
    return rows[0], rows[1], c


def _whole(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Bytes:
    x = rng.integers(0, 256, shape, dtype=np.uint8)
    if name == "extremes":
        return np.array([0, 1, 127, 128, 129, 255], dtype=np.uint8)[x % 6]
    return np.where(rng.random(shape) < 0.8, 0, x).astype(np.uint8) if name == "zeros" else x


def _floats(rng: np.random.Generator, kind: str, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    exponents, fraction, bias = _FORMATS[kind]
    bits = 1 + exponents + fraction
    most = (1 << exponents) - (1 if kind == "e4m3" else 2)  # the largest finite one
    e = bias + rng.integers(-3, 4, shape)
    if name == "whole range":
        e = rng.integers(0, most + 1, shape)
    elif name == "subnormal":
        e = np.where(rng.random(shape) < 0.6, 0, rng.integers(0, bias + 1, shape))
    significand = rng.integers(0, 1 << fraction, shape)
    if kind == "e4m3":  # 0x7f is a NaN
        significand = np.where(e == most, significand % 7, significand)
    x = e << fraction | significand
    if name == "zeros":
        x = np.where(rng.random(shape) < 0.8, 0, x)
    if name == "Inf and NaN":
        nan = (1 << bits - 1) - 1
        inf = nan if kind == "e4m3" else ((1 << exponents) - 1) << fraction
        pick = rng.random(shape)
        x = np.where(pick < 0.02, inf, np.where(pick < 0.025, nan, np.where(pick < 0.1, 0, x)))
    x |= rng.integers(0, 2, shape) << bits - 1
    return x.astype(_UNSIGNED[bits])
