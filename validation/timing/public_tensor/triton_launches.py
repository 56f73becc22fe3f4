"""Launches of public kernels in Triton, as the calls that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from validation.timing.public_tensor.launch import PublicTensorLaunch, described, public_launch
from validation.timing.public_tensor.operands import (
    EDGE,
    Expected,
    Operand,
    Value,
    attended,
    attention,
    content_of,
    pair,
    product,
    zeros,
)
from validation.timing.public_tensor.sources import TRITON
from validation.timing.tensor_launches import Arguments, Size

SMS = 132
i32, u64, f32 = np.int32, np.uint64, np.float32


class Call(NamedTuple):
    """A call of a kernel by its program, with the arguments in their order."""

    kernel: str
    family: str
    size: Size
    arguments: Mapping[str, Any]
    numbers: Callable[[Mapping[str, Any]], Expected]  # of the arguments that are not constants
    grid: tuple[int, ...]
    output: str


def triton_launches() -> Iterator[PublicTensorLaunch]:
    for one in calls():
        about = described().get(one.kernel, {})
        passed = {
            name: value
            for name, value in one.arguments.items()
            if not is_constant(one.kernel, name, value)
        }
        values = map(_as_passed, passed.values())
        yield public_launch(
            one.kernel,
            one.family,
            one.size,
            [*values, u64(0), u64(0)],  # scratch memory that they do not use
            partial(_numbers, one.numbers, [*passed]),
            symbol=about.get("symbol", ""),
            grid=one.grid,
            block=(about.get("threads", 0),),
            shared=about.get("dynamic_shared_bytes", 0),
            output=[*passed].index(one.output),
        )


def _as_passed(value: Any) -> Value:
    """An argument as the machine code takes it."""
    if isinstance(value, int):
        return i32(value)
    found: Value = f32(value) if isinstance(value, float) else value
    return found


def _numbers(
    of_call: Callable[[Mapping[str, Any]], Expected], names: Sequence[str], arguments: Arguments
) -> Expected:
    return of_call(dict(zip(names, arguments, strict=False)))


def calls() -> Iterator[Call]:
    """The call that makes each launch."""
    yield from _persistent()
    yield from _ordered()
    yield from _split()
    yield from _four_bits()
    yield from _flash()
    yield from _grouped_attention()
    yield from _chunk_products()
    yield from _chunk_states()
    yield from _chunk_outputs()


def _persistent() -> Iterator[Call]:
    """batch_invariant_ops: C = A B + bias, B of k rows."""
    for kernel, family, kind, tile, *sizes in (
        (
            "persistent_brain",
            "wgmma",
            "brain",
            (128, 128),
            (1024, 1024, 1024),
            (4096, 2048, 2048),
        ),
        ("persistent_half", "wgmma", "half", (128, 256), (1536, 1280, 2048)),
        (
            "persistent_float",
            "tf32",
            "float",
            (128, 128),
            (1024, 1024, 1024),
            (2048, 2048, 2048),
        ),
    ):
        for m, n, k in sizes:
            a, b = pair(kind, m, n, k)
            bias = Operand(kind, n, 3) if kind == "brain" else None
            call = {
                "a_ptr": a,
                "b_ptr": b,
                "c_ptr": zeros(kind, m * n),
                "bias_ptr": bias,
                **{"M": m, "N": n, "K": k},
                **_strides(am=k, ak=1, bk=n, bn=1, cm=n, cn=1),
            }
            tiles = m // tile[0] * -(-n // tile[1])
            numbers = _named(product, kind, m, n, k, by_rows=True, bias=bias is not None)
            yield Call(kernel, family, (m, n, k), call, numbers, (min(SMS, tiles),), "c_ptr")


def _ordered() -> Iterator[Call]:
    """triton-lang/kernels: products whose blocks are ordered in groups of eight rows."""
    for kernel, family, kind, out, tile, by_rows, size in (
        ("ordered_half", "wgmma", "half", "half", (64, 256), True, (1024, 2048, 1024)),
        ("ordered_half", "wgmma", "half", "half", (64, 256), True, (4096, 4096, 1024)),
        ("ordered_int8", "int8", "int8", "int32", (128, 256), False, (2048, 2048, 2048)),
    ):
        m, n, k = size
        a, b = pair(kind, m, n, k)
        call = {
            "A": a,
            "B": b,
            "C": zeros(out, m * n),
            **{"M": m, "N": n, "K": k},
            **_strides(am=k, ak=1, **_of_b(n, k, by_rows), cm=n, cn=1),
        }
        numbers = _named(product, kind, m, n, k, by_rows=by_rows, names=("A", "B"))
        yield Call(kernel, family, size, call, numbers, (m // tile[0] * (n // tile[1]), 1), "C")


def _split() -> Iterator[Call]:
    """applied-ai: FP8, sums of four parts of k added by atomics; B of n rows."""
    for kernel, size in (
        ("split_e4m3", (64, 4096, 4096)),
        ("split_e4m3", (512, 2048, 4096)),
        ("scaled_e4m3", (128, 4096, 2048)),
    ):
        m, n, k = size
        a, b = pair("e4m3", m, n, k)
        scales = {"scale_a": 0.5, "scale_b": 0.25} if kernel == "scaled_e4m3" else {}
        call = {
            "a_ptr": a,
            "b_ptr": b,
            "c_ptr": zeros("half", m * n),
            **_strides(am=k, ak=1, bk=1, bn=k, cm=n, cn=1),
            **scales,
            **{"m": m, "n": n, "k": k},
        }
        numbers = _named(product, "e4m3", m, n, k, scale=0.125 if scales else 1.0)
        yield Call(kernel, "fp8", size, call, numbers, (m // 64 * (n // 64), 4), "c_ptr")


def _four_bits() -> Iterator[Call]:
    """applied-ai: B as numbers of four bits with a scale and a zero for 128 rows (GPTQ)."""
    for m, n, k in ((16, 11_008, 4096),):
        call = {
            "a_ptr": Operand("half", m * k, 1),
            "b_ptr": Operand("int32", k // 8 * n, 2),
            "c_ptr": zeros("half", m * n),
            "scales_ptr": Operand("half", k // 128 * n, 3),
            "zeros_ptr": Operand("int32", k // 128 * (n // 8), 4),
            **_strides(am=k, ak=1, bk=n, bn=1, cm=n, cn=1),
            **_strides(scales_g=n, scales_n=1, zeros_g=n // 8, zeros_n=1),
            "groupsize": 128,
            **{"m": m, "n": n, "k": k},
        }

        def numbers(of: Mapping[str, Any], m: int = m, n: int = n, k: int = k) -> Expected:
            places = 4 * np.arange(8)
            b = of["b_ptr"].reshape(k // 8, 1, n) >> places[:, None] & 15
            zeros = of["zeros_ptr"].reshape(k // 128, n // 8, 1) >> places & 15
            zeros = np.repeat(zeros.reshape(k // 128, n) + 1, 128, axis=0)
            scales = of["scales_ptr"].astype(np.float64).reshape(k // 128, n)
            whole = (b.reshape(k, n) - zeros) * np.repeat(scales, 128, axis=0)
            return [(0, of["a_ptr"].astype(np.float64).reshape(m, k) @ whole)]

        grid = (-(-m // 16) * (n // 32), 4)
        yield Call("four_bits", "four bits", (m, n, k), call, numbers, grid, "c_ptr")


def _flash() -> Iterator[Call]:
    """triton-lang/kernels: flash attention; a size is heads and length."""
    for kernel, head, is_causal, *sizes in (
        ("flash_64_causal", 64, True, (16, 1024), (64, 2048)),
        ("flash_128", 128, False, (16, 1024)),
    ):
        for heads, length in sizes:
            several = {
                name: Operand("half", heads * length * head, seed)
                for seed, name in enumerate("QKV", 1)
            }
            steps = (heads * length * head, length * head, head, 1)
            strides = {
                f"{x}{axis}": step
                for x, axes in (("q", "zhmk"), ("k", "zhnk"), ("v", "zhnk"), ("o", "zhmn"))
                for axis, step in zip(axes, steps, strict=True)
            }
            call = {
                **several,
                "sm_scale": head**-0.5,
                "L": zeros("float", heads * length),
                "Out": zeros("half", heads * length * head),
                **_strides(**strides),
                "Z": 1,
                "H": heads,
                "N_CTX": length,
                "Z_H_N_CTX": heads * length,
            }

            def numbers(
                of: Mapping[str, Any],
                heads: int = heads,
                length: int = length,
                head: int = head,
                is_causal: bool = is_causal,
            ) -> Expected:
                return attention("half", heads, length, head, is_causal=is_causal)(
                    [of[name] for name in "QKV"]
                )

            grid = (length // 128, heads)
            yield Call(kernel, "attention", (heads, length), call, numbers, grid, "Out")


def _grouped_attention() -> Iterator[Call]:
    """flash-linear-attention: causal, four heads of queries share one of keys."""
    for kernel, head, heads, of_keys, length in (
        ("grouped_attention_128", 128, 32, 8, 2048),
        ("grouped_attention_64", 64, 16, 4, 1024),
    ):
        call = {
            "q": Operand("half", length * heads * head, 1),
            "k": Operand("half", length * of_keys * head, 2),
            "v": Operand("half", length * of_keys * head, 3),
            "o": zeros("half", length * heads * head),
            "g_cumsum": None,
            "sink_bias": None,
            "lse": zeros("float", length * heads),
            "scale": head**-0.5,
            "cu_seqlens": None,
            "chunk_indices": None,
            "T": length,
        }

        def numbers(
            of: Mapping[str, Any],
            head: int = head,
            heads: int = heads,
            of_keys: int = of_keys,
            length: int = length,
        ) -> Expected:
            q, k, v = (
                content_of(of[name], "half").reshape(length, -1, head).transpose(1, 0, 2)
                for name in "qkv"
            )
            group = heads // of_keys
            found = []
            for start in (0, length - EDGE):
                each = [
                    attended(q[h], k[h // group], v[h // group], start, True) for h in range(heads)
                ]
                found.append((start * heads * head, np.stack(each, 1)))
            return found

        grid = (1, length // 128, heads)
        yield Call(kernel, "attention", (heads, length), call, numbers, grid, "o")


def _chunk_products() -> Iterator[Call]:
    """mamba: C Bᵀ of each chunk; a size is batch, length, groups, states and chunk."""
    for size in ((2, 4096, 8, 128, 256), (1, 8192, 2, 64, 256)):
        batch, length, groups, k, chunk = size
        chunks = length // chunk
        call = {
            "a_ptr": Operand("brain", batch * length * groups * k, 1),
            "b_ptr": Operand("brain", batch * length * groups * k, 2),
            "out_ptr": zeros("float", batch * length * groups * chunk),
            "seq_idx_ptr": None,
            **{"seqlen": length, "chunk_size": chunk, "K": k, "ngroups": groups},
            **_strides(a_batch=length * groups * k, a_seqlen=groups * k, a_head=k, ak=1),
            **_strides(b_batch=length * groups * k, b_seqlen=groups * k, b_head=k, bk=1),
            **_strides(
                out_batch=length * groups * chunk,
                out_chunk=groups * chunk**2,
                out_head=chunk**2,
                outm=chunk,
                outn=1,
            ),
            **_strides(seq_idx_batch=0, seq_idx_seqlen=0),
        }

        def numbers(of: Mapping[str, Any], size: Size = size) -> Expected:
            batch, length, groups, k, chunk = size
            a, b = (
                content_of(of[name], "brain").reshape(batch * length, groups, k)
                for name in ("a_ptr", "b_ptr")
            )
            whole = batch * length * groups * chunk
            first = a[:EDGE, 0] @ b[:chunk, 0].T
            last = a[-EDGE:, -1] @ b[-chunk:, -1].T
            return [(0, first), (whole - EDGE * chunk, last)]

        grid = (-(-chunk // 128) * -(-chunk // 64), batch, chunks * groups)
        yield Call("chunk_products", "scan", size, call, numbers, grid, "out_ptr")


def _chunk_states() -> Iterator[Call]:
    """mamba: state at the end of each chunk; (batch, length, heads, width, states, chunk)."""
    size = batch, length, heads, width, states, chunk = 1, 4096, 64, 64, 128, 256
    chunks = length // chunk
    steps = {"batch": heads * length, "chunk": chunk, "head": length, "csize": 1}
    call = {
        "x_ptr": Operand("brain", batch * length * heads * width, 1),
        "b_ptr": Operand("brain", batch * length * states, 2),
        "states_ptr": zeros("float", batch * chunks * heads * width * states),
        "dt_ptr": Operand("float", batch * heads * length, 3),
        "dA_cumsum_ptr": Operand("float", batch * heads * length, 4),
        "seq_idx_ptr": None,
        **{"hdim": width, "dstate": states, "chunk_size": chunk},
        **{"batch": batch, "seqlen": length, "nheads_ngroups_ratio": heads},
        **_strides(x_batch=length * heads * width, x_seqlen=heads * width, x_head=width, x_hdim=1),
        **_strides(b_batch=length * states, b_seqlen=states, b_head=states, b_dstate=1),
        **_strides(
            states_batch=chunks * heads * width * states,
            states_chunk=heads * width * states,
            states_head=width * states,
            states_hdim=states,
            states_dstate=1,
        ),
        **_strides(**{f"dt_{axis}": step for axis, step in steps.items()}),
        **_strides(**{f"dA_cs_{axis}": step for axis, step in steps.items()}),
        **_strides(seq_idx_batch=0, seq_idx_seqlen=0),
    }

    def numbers(of: Mapping[str, Any]) -> Expected:
        x = content_of(of["x_ptr"], "brain").reshape(length, heads, width)
        b = content_of(of["b_ptr"], "brain").reshape(length, states)
        dt, sums = (
            of[name].astype(np.float64).reshape(heads, length)
            for name in ("dt_ptr", "dA_cumsum_ptr")
        )
        found = []
        for of_chunk, head in ((0, 0), (chunks - 1, heads - 1)):
            rows = slice(of_chunk * chunk, (of_chunk + 1) * chunk)
            decay = np.exp(np.minimum(sums[head, rows][-1] - sums[head, rows], 0))
            scaled = b[rows] * (decay * dt[head, rows])[:, None]
            start = (of_chunk * heads + head) * width * states
            found.append((start, x[rows, head].T @ scaled))
        return found

    grid = (-(-width // 64) * -(-states // 128), batch * chunks, heads)
    yield Call("chunk_states", "scan", size, call, numbers, grid, "states_ptr")


def _chunk_outputs() -> Iterator[Call]:
    """flash-linear-attention: 8 heads of 128, chunks of 64; a size is batch and length."""
    heads, width, chunk = 8, 128, 64
    scale = width**-0.5
    for batch, length in ((1, 2048), (4, 4096)):
        count = batch * length * heads * width
        call = {
            "q": Operand("brain", count, 1),
            "k": Operand("brain", count, 2),
            "v": Operand("brain", count, 3),
            "h": Operand("brain", count * width // chunk, 4),
            "g": None,
            "g_gamma": None,
            "o": zeros("brain", count),
            "cu_seqlens": None,
            "chunk_indices": None,
            "scale": scale,
            "T": length,
        }

        def numbers(of: Mapping[str, Any], rows: int = batch * length) -> Expected:
            q, k, v = (content_of(of[x], "brain").reshape(rows, heads, width) for x in "qkv")
            h = content_of(of["h"], "brain").reshape(rows // chunk, heads, width, width)
            found = []
            for first in (0, rows - chunk):
                part = slice(first, first + chunk)
                each = [
                    q[part, x] @ h[first // chunk, x]
                    + np.tril(q[part, x] @ k[part, x].T) @ v[part, x]
                    for x in range(heads)
                ]
                found.append((first * heads * width, scale * np.stack(each, 1)))
            return found

        grid = (width // 64, length // chunk, batch * heads)
        yield Call("chunk_outputs", "scan", (batch, length), call, numbers, grid, "o")


def _strides(**steps: int) -> dict[str, int]:
    return {f"stride_{name}": step for name, step in steps.items()}


def _of_b(n: int, k: int, by_rows: bool) -> dict[str, int]:
    return {"bk": n, "bn": 1} if by_rows else {"bk": 1, "bn": k}


def _named(
    of: Callable[..., Callable[[Arguments], Expected]],
    kind: str,
    m: int,
    n: int,
    k: int,
    *,
    by_rows: bool = False,
    bias: bool = False,
    scale: float = 1.0,
    names: tuple[str, str] = ("a_ptr", "b_ptr"),
) -> Callable[[Mapping[str, Any]], Expected]:
    """Expected numbers of a product whose operands, and bias, have names."""

    def numbers(arguments: Mapping[str, Any]) -> Expected:
        found = of(kind, m, n, k, by_rows=by_rows)([arguments[name] for name in names])
        added = content_of(arguments["bias_ptr"], kind) if bias else 0.0
        return [(start, scale * sums + added) for start, sums in found]

    return numbers


def is_constant(kernel: str, name: str, value: Any) -> bool:
    """True if Triton compiles an argument into the kernel: None, and 1 unless it is exempt."""
    return value is None or (
        isinstance(value, int) and value == 1 and name not in TRITON[kernel].plain
    )
