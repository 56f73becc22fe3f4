"""A float32 product by Triton, whose `tl.dot` splits operands: a peer of `split_products`."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

CONFIGURATIONS = [
    triton.Config({"bm": bm, "bn": bn, "bk": bk}, num_stages=stages, num_warps=warps)
    for bm, bn, bk, stages, warps in (
        *((128, 128, 32, 3, 8), (128, 128, 32, 4, 8), (128, 64, 32, 4, 4)),
        *((64, 128, 32, 4, 4), (64, 64, 32, 4, 4)),
    )
]


@triton.autotune(configs=CONFIGURATIONS, key=["size", "precision"])  # type: ignore[untyped-decorator]
@triton.jit  # type: ignore[untyped-decorator]
def _product(  # type: ignore[no-untyped-def]
    a,
    b,
    c,
    size,
    precision: tl.constexpr,
    bm: tl.constexpr,
    bn: tl.constexpr,
    bk: tl.constexpr,
):
    columns = tl.cdiv(size, bn)
    group = 8 * columns
    first = tl.program_id(0) // group * 8
    rows = min(tl.cdiv(size, bm) - first, 8)
    row = (first + tl.program_id(0) % group % rows) * bm + tl.arange(0, bm)
    column = tl.program_id(0) % group // rows * bn + tl.arange(0, bn)
    k = tl.arange(0, bk)
    from_a = a + row[:, None] * size + k[None, :]
    from_b = b + k[:, None] * size + column[None, :]
    total = tl.zeros((bm, bn), dtype=tl.float32)
    for _ in range(0, size, bk):
        total = tl.dot(tl.load(from_a), tl.load(from_b), total, input_precision=precision)
        from_a += bk
        from_b += bk * size
    tl.store(c + row[:, None] * size + column[None, :], total)


def product(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, precision: str) -> None:
    """c = a·b of square matrices whose size is a multiple of 128."""
    size = a.shape[0]
    assert size % 128 == 0

    def grid(chosen: dict[str, Any]) -> tuple[int]:
        return (triton.cdiv(size, chosen["bm"]) * triton.cdiv(size, chosen["bn"]),)

    _product[grid](a, b, c, size, precision)
