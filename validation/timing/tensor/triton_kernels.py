# mypy: ignore-errors
"""Kernels of Triton whose products run on tensor cores; compiled once, by `compile.py`."""

import triton
import triton.language as tl


@triton.jit
def matmul(
    a,
    b,
    c,
    m,
    n,
    k,
    tile_m: tl.constexpr,
    tile_n: tl.constexpr,
    tile_k: tl.constexpr,
    kind: tl.constexpr,
    by_rows: tl.constexpr,
):
    """C (m x n) = A (m x k) times B (k x n), or B (n x k) transposed."""
    number = tl.program_id(0)
    down, across = tl.cdiv(m, tile_m), tl.cdiv(n, tile_n)
    group = number // (8 * across) * 8
    height = min(down - group, 8)
    row = group + number % (8 * across) % height
    column = number % (8 * across) // height
    rows = row * tile_m + tl.arange(0, tile_m)
    columns = column * tile_n + tl.arange(0, tile_n)
    inner = tl.arange(0, tile_k)
    of_a = a + rows[:, None] * k + inner[None, :]
    if by_rows:
        of_b = b + inner[:, None] * n + columns[None, :]
    else:
        of_b = b + columns[None, :] * k + inner[:, None]
    sums = tl.zeros((tile_m, tile_n), dtype=kind)
    for _ in range(0, k, tile_k):
        sums = tl.dot(tl.load(of_a), tl.load(of_b), sums, out_dtype=kind)
        of_a += tile_k
        of_b += tile_k * n if by_rows else tile_k
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(c.dtype.element_ty))


@triton.jit
def fused(a, b, bias, c, m, n, k, tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr):
    """C = GELU(A B + bias), with guards."""
    rows = tl.program_id(1) * tile_m + tl.arange(0, tile_m)
    columns = tl.program_id(0) * tile_n + tl.arange(0, tile_n)
    inner = tl.arange(0, tile_k)
    sums = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    for step in range(0, k, tile_k):
        left = (step + inner) < k
        x = tl.load(
            a + rows[:, None] * k + (step + inner)[None, :],
            mask=(rows < m)[:, None] & left[None, :],
            other=0.0,
        )
        y = tl.load(
            b + (step + inner)[:, None] * n + columns[None, :],
            mask=left[:, None] & (columns < n)[None, :],
            other=0.0,
        )
        sums = tl.dot(x, y, sums)
    sums += tl.load(bias + columns, mask=columns < n, other=0.0)[None, :]
    sums = sums / (1 + tl.exp(-1.702 * sums))
    guard = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(c.dtype.element_ty), mask=guard)


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    length,
    scale,
    width: tl.constexpr,
    several: tl.constexpr,
    at_once: tl.constexpr,
    is_causal: tl.constexpr,
):
    """Flash attention, forward; arrays are (heads, length, width)."""
    first = tl.program_id(0) * several
    head = tl.program_id(1).to(tl.int64) * length * width
    queries = first + tl.arange(0, several)
    inner, keys = tl.arange(0, width), tl.arange(0, at_once)
    of_q = tl.load(q + head + queries[:, None] * width + inner[None, :])
    most = tl.full((several,), -1e30, tl.float32)
    weight = tl.zeros((several,), tl.float32)
    sums = tl.zeros((several, width), tl.float32)
    end = first + several if is_causal else length
    for start in range(0, end, at_once):
        of_k = tl.load(k + head + (start + keys)[None, :] * width + inner[:, None])
        scores = tl.dot(of_q, of_k) * scale
        if is_causal:
            scores = tl.where(queries[:, None] >= (start + keys)[None, :], scores, -1e30)
        largest = tl.maximum(most, tl.max(scores, 1))
        parts = tl.exp2(scores - largest[:, None])
        factor = tl.exp2(most - largest)
        weight = weight * factor + tl.sum(parts, 1)
        of_v = tl.load(v + head + (start + keys)[:, None] * width + inner[None, :])
        sums = tl.dot(parts.to(v.dtype.element_ty), of_v, sums * factor[:, None])
        most = largest
    tl.store(
        out + head + queries[:, None] * width + inner[None, :],
        (sums / weight[:, None]).to(out.dtype.element_ty),
    )
