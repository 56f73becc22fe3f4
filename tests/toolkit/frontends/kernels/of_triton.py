"""Kernels of Triton: `python -m toolkit simulate of_triton.py:add -g 64 ... -D BLOCK=1024`."""

# ruff: noqa: N803 - constexprs are in capitals by convention

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    y = tl.load(y_ptr + at, mask=mask)
    tl.store(out_ptr + at, x + y, mask=mask)


@triton.jit
def softmax(x_ptr, out_ptr, columns, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, COLUMNS)
    mask = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + at, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def layernorm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, COLUMNS)
    mask = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    weight = tl.load(weight_ptr + at, mask=mask)
    bias = tl.load(bias_ptr + at, mask=mask)
    tl.store(out_ptr + row * columns + at, centred * scale * weight + bias, mask=mask)


@triton.jit
def transpose(x_ptr, out_ptr, rows, columns, TILE: tl.constexpr):
    r = tl.program_id(0) * TILE + tl.arange(0, TILE)
    c = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + r[:, None] * columns + c[None, :])
    tl.store(out_ptr + c[None, :] * rows + r[:, None], x)


@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0))


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 256}, num_warps=2),
        triton.Config({"BLOCK": 1024}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def tuned(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


@triton.heuristics({"BLOCK": lambda values: triton.next_power_of_2(values["n"])})
@triton.jit
def by_heuristics(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)


@triton.jit
def mistaken(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, nothing)  # noqa: F821


@triton.jit
def product(a_ptr, b_ptr, c_ptr, N, K, M: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr):
    row, column = tl.arange(0, M), tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, STEP)
    a, b = a_ptr + row[:, None] * K + k[None, :], b_ptr + k[:, None] * N + column[None, :]
    sum = tl.zeros((M, COLUMNS), tl.float32)
    for _ in range(0, K, STEP):
        sum = tl.dot(tl.load(a), tl.load(b), sum)
        a += STEP
        b += STEP * N
    tl.store(c_ptr + row[:, None] * N + column[None, :], sum)
