"""Compile the kernels of this folder for sm_90a and store their machine code.

    python validation/timing/tensor/build.py        # needs nvcc and Triton

Writes ../recorded/tensor_cubins.zip: one member per kernel file of CUDA C++, and one per kernel and
set of constants of Triton, with what its launch needs beside it. Times were measured with that
machine code, so a new compiler needs new measurements.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import triton
import triton_kernels  # type: ignore[import-not-found]
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FOLDER = Path(__file__).parent
OUTPUT = FOLDER.parent / "recorded" / "tensor_cubins.zip"
FILES = ("warps", "warpgroups")
ALIGNED = [["tt.divisibility", 16]]

Described = dict[str, Any]  # of a kernel of Triton
HALF, BRAIN, FLOAT, INT8, E4M3 = "*fp16", "*bf16", "*fp32", "*i8", "*fp8e4nv"
F32, I32 = triton.language.float32, triton.language.int32


def matmul(
    a: str, c: str, tile: tuple[int, int, int], *, rows: bool = True, out: object = F32
) -> Described:
    m, n, k = tile
    return {
        "kernel": "matmul",
        "signature": {"a": a, "b": a, "c": c, "m": "i32", "n": "i32", "k": "i32"},
        "constants": {"tile_m": m, "tile_n": n, "tile_k": k, "kind": out, "by_rows": rows},
    }


def attention(head: int, queries: int, keys: int, causal: bool) -> Described:
    return {
        "kernel": "attention",
        "signature": {
            **dict.fromkeys(("q", "k", "v", "out"), HALF),
            "length": "i32",
            "scale": "fp32",
        },
        "constants": {"width": head, "several": queries, "at_once": keys, "is_causal": causal},
    }


def with_options(one: Described, warps: int, stages: int) -> Described:
    return {**one, "options": {"num_warps": warps, "num_stages": stages}}


TRITON = {
    "triton_half": with_options(matmul(HALF, HALF, (128, 128, 64)), 8, 3),
    "triton_half_wide": with_options(matmul(HALF, HALF, (128, 256, 64)), 8, 3),
    "triton_half_small": with_options(matmul(HALF, HALF, (64, 64, 64)), 4, 4),
    "triton_half_narrow": with_options(matmul(HALF, FLOAT, (64, 32, 64)), 4, 3),
    "triton_half_transposed": with_options(matmul(HALF, FLOAT, (128, 128, 32), rows=False), 4, 4),
    "triton_brain": with_options(matmul(BRAIN, BRAIN, (128, 64, 64)), 4, 4),
    "triton_tf32": with_options(matmul(FLOAT, FLOAT, (128, 128, 32), rows=False), 8, 3),
    "triton_e4m3": with_options(matmul(E4M3, FLOAT, (128, 128, 128), rows=False), 8, 3),
    "triton_int8": with_options(matmul(INT8, "*i32", (128, 128, 64), rows=False, out=I32), 8, 3),
    "triton_few_rows": with_options(matmul(HALF, FLOAT, (16, 64, 64)), 4, 3),
    "triton_fused": with_options(
        {
            "kernel": "fused",
            "signature": {
                **dict.fromkeys(("a", "b", "bias", "c"), HALF),
                "m": "i32",
                "n": "i32",
                "k": "i32",
            },
            "constants": {"tile_m": 128, "tile_n": 128, "tile_k": 32},
        },
        8,
        3,
    ),
    "triton_attention_64": with_options(attention(64, 128, 64, False), 4, 3),
    "triton_attention_64_causal": with_options(attention(64, 128, 64, True), 4, 3),
    "triton_attention_128": with_options(attention(128, 128, 64, False), 8, 2),
    "triton_attention_few_warps": with_options(attention(64, 64, 64, False), 4, 2),
}


def of_cuda(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "kernels.cubin"
        source = FOLDER / f"{name}.cu"
        subprocess.run(["nvcc", "-cubin", "-arch=sm_90a", "-o", image, source], check=True)
        return image.read_bytes()


def of_triton(one: Described) -> tuple[bytes, Described]:
    names = [*one["signature"], *one["constants"]]
    places = {name: k for k, name in enumerate(names)}
    compiled = triton.compile(
        ASTSource(
            fn=getattr(triton_kernels, one["kernel"]),
            signature={**one["signature"], **dict.fromkeys(one["constants"], "constexpr")},
            constexprs={(places[name],): value for name, value in one["constants"].items()},
            attrs={
                (places[name],): ALIGNED
                for name, kind in one["signature"].items()
                if kind[0] == "*" or kind == "i32"
            },
        ),
        target=GPUTarget("cuda", 90, 32),
        options=one["options"],
    )
    data = compiled.metadata
    return compiled.asm["cubin"], {
        "symbol": data.name,
        "threads": 32 * data.num_warps,
        "dynamic_shared_bytes": data.shared,
        "triton": triton.__version__,
    }


def main() -> None:
    about = {}
    with zipfile.ZipFile(OUTPUT, "w", zipfile.ZIP_LZMA) as store:
        for name in FILES:
            store.writestr(f"{name}.cubin", of_cuda(name))
        for name, one in TRITON.items():
            image, about[name] = of_triton(one)
            store.writestr(f"{name}.cubin", image)
        store.writestr("triton.json", json.dumps(about, indent=1))
    print(f"{OUTPUT.name}: {OUTPUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
