"""Sources of the kernels: repositories, commits, files, and how each file is compiled.

Nothing of these repositories is kept here. A file of CUDA C++ is compiled as it stands, or included
by a few lines that name what it expects of its program (`before`) and the instances of its
templates (`after`). A kernel of Triton is compiled with the constants that its own caller gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REPOSITORIES: Mapping[str, tuple[str, str]] = {
    "fast.cu": ("pranjalssh/fast.cu", "38eb642e0c081231d6f695978be63604bd7c689b"),
    "cuda_hgemm": ("Bruce-Lee-LY/cuda_hgemm", "0d26c2e4415ab0d0af5a6bfae301275c608d46b4"),
    "learn-cuda": ("gau-nernst/learn-cuda", "1454f8b71499a68eacdbf44c08e36a7003d8ab99"),
    "cuda-tensorcore-hgemm": (
        "nicolaswilde/cuda-tensorcore-hgemm",
        "079d2863477af9dfbd7967ecfda4c95d30889c73",
    ),
    "CUDA-GEMM-Optimization": (
        "leimao/CUDA-GEMM-Optimization",
        "747e49b418bca18557581969c78333443055fd43",
    ),
    "matmul-playground": (
        "alexarmbr/matmul-playground",
        "e831e96680dedaad99d9786885278764f59cbde5",
    ),
    "LeetCUDA": ("xlite-dev/LeetCUDA", "cb6a0497e829741fc5e3ad5e43a5beed0d85edcd"),
    "cuda-samples": ("NVIDIA/cuda-samples", "c94ff366aed18c797b8a85dfaac7817b0228b420"),
    "mamba": ("state-spaces/mamba", "e9594ce1c732d97440f0332fdc43170a2294dbfa"),
    "flash-linear-attention": (
        "fla-org/flash-linear-attention",
        "bc3b101dcb713ddc5bd8924b66754eb68b5ccf89",
    ),
    "applied-ai": ("meta-pytorch/applied-ai", "2391954b19988bd76cf3c2ea84c1ce74b68d568b"),
    "batch_invariant_ops": (
        "thinking-machines-lab/batch_invariant_ops",
        "f22b1fbe534b1fe045080f44a970a441caaf3c4f",
    ),
    "kernels": ("triton-lang/kernels", "eeeebdd8be7d13629de22d600621e6234057eed3"),
}


@dataclass(frozen=True, kw_only=True)
class CudaSource:
    """A file of CUDA C++. `includes` are folders of its repository, `options` those of its Makefile
    that change the code."""

    repository: str
    file: str
    includes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    before: str = ""
    after: str = ""


@dataclass(frozen=True, kw_only=True)
class TritonSource:
    """A kernel of Triton, with the constants and options of one launch.

    `plain` are integers that its decorator exempts from specialisation (`do_not_specialize`).
    """

    repository: str
    file: str
    function: str
    constants: Mapping[str, Any]
    warps: int
    stages: int
    plain: tuple[str, ...] = ()


_OF_FAST = """
#include <cassert>
#include <cstdio>
#include <cuda.h>
#include <cuda/barrier>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
typedef __nv_bfloat16 bf16;
#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))
inline void cudaCheck(cudaError_t) {}
"""
_TENSORS = "(torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor);"
_FLASH = "kernels/flash-attn"
_SWIZZLED = "kernels/hgemm/mma/swizzle/hgemm_mma_stage_tn_swizzle_x4.cu"
_WMMA_OF_LEIMAO = (
    "src/07_2d_block_tiling_2d_warp_tiling_2d_thread_tiling_matrix_transpose_wmma_"
    "vectorized_memory_access_double_buffered.cu"
)

CUDA: Mapping[str, CudaSource] = {
    **{
        f"fast_{k}": CudaSource(
            repository="fast.cu",
            file=f"examples/matmul/matmul_{k}.cuh",
            options=("-DNDEBUG", "--use_fast_math"),
            before=_OF_FAST,
        )
        for k in (6, 7, 8, 9, 10)
    },
    **{
        f"hgemm_{name}": CudaSource(
            repository="cuda_hgemm",
            file=f"src/{name.split('_', 1)[0]}/{name}.cu",
            includes=("src/common",),
        )
        for name in (
            "mma_naive",
            "mma_base",
            "mma_permuted",
            "mma_async_stage4",
            "wmma_padding",
            "wmma_async_stage3",
        )
    },
    **{
        f"learn_matmul_v{k}": CudaSource(
            repository="learn-cuda", file=f"02b_matmul_sm80/matmul_v{k}.cu"
        )
        for k in (1, 5, 6)
    },
    **{
        f"learn_attention_v{k}": CudaSource(
            repository="learn-cuda", file=f"07_attention/attention_v{k}.cu"
        )
        for k in (1, 3, 5)
    },
    "aligned": CudaSource(
        repository="cuda-tensorcore-hgemm", file="gemm-tc-f16f16-128x256-public/gemm.cu"
    ),
    "leimao_wmma": CudaSource(
        repository="CUDA-GEMM-Optimization", file=_WMMA_OF_LEIMAO, includes=("include",)
    ),
    "playground_6": CudaSource(repository="matmul-playground", file="src/kernel6.cu"),
    **{
        f"samples_{kind}": CudaSource(
            repository="cuda-samples",
            file=f"Samples/3_CUDA_Features/{kind}TensorCoreGemm/{kind}TensorCoreGemm.cu",
            includes=("Common",),
        )
        for kind in ("cuda", "dmma", "imma", "tf32")
    },
    "swizzle_x4": CudaSource(
        repository="LeetCUDA",
        file=_SWIZZLED,
        includes=("kernels/hgemm/utils",),
        before="#define NO_MMA_HGEMM_BIN\n#define PYBIND11_MODULE(...) void unused()\n",
    ),
    "flash_split_q": CudaSource(
        repository="LeetCUDA",
        file=f"{_FLASH}/mma/basic/flash_attn_mma_split_q.cu",
        includes=(f"{_FLASH}/utils",),
    ),
    "flash_split_kv": CudaSource(
        repository="LeetCUDA",
        file=f"{_FLASH}/mma/basic/flash_attn_mma_split_kv.cu",
        includes=(f"{_FLASH}/utils",),
    ),
    "flash_share_qkv": CudaSource(
        repository="LeetCUDA",
        file=f"{_FLASH}/mma/basic/flash_attn_mma_share_qkv_F32F16F16F32.cu",
        includes=(f"{_FLASH}/utils",),
    ),
}

_OF_PRODUCTS = {  # of kernels/kernels/matmul.py
    "input_precision": None,
    "GROUP_M": 8,
    "EVEN_K": True,
    "AB_DTYPE": None,
}
_MATMUL = "kernels/matmul.py"
_FLASH_OF_TRITON = "kernels/flash_attention.py"
_FP8 = "kernels/triton/inference/fp8"
_ATTENTION_OF_FLA = {
    "W": None,
    "USE_G": False,
    "USE_SINK_BIAS": False,
    "USE_WINDOW": False,
    "IS_VARLEN": False,
    "BT": 128,
    "BS": 64,
}


def _persistent(m: int, n: int, k: int, has_bias: bool) -> TritonSource:
    return TritonSource(
        repository="batch_invariant_ops",
        file="batch_invariant_ops/batch_invariant_ops.py",
        function="matmul_kernel_persistent",
        constants={
            "BLOCK_SIZE_M": m,
            "BLOCK_SIZE_N": n,
            "BLOCK_SIZE_K": k,
            "GROUP_SIZE_M": 8,
            "NUM_SMS": 132,
            "A_LARGE": False,
            "B_LARGE": False,
            "C_LARGE": False,
            "HAS_BIAS": has_bias,
        },
        warps=8,
        stages=3,
    )


def _product(m: int, n: int, k: int, sums: str, warps: int, stages: int) -> TritonSource:
    return TritonSource(
        repository="kernels",
        file=_MATMUL,
        function="_kernel",
        constants={
            "BLOCK_M": m,
            "BLOCK_N": n,
            "BLOCK_K": k,
            "SPLIT_K": 1,
            "acc_dtype": sums,
            "fp8_fast_accum": True,
            **_OF_PRODUCTS,
        },
        warps=warps,
        stages=stages,
    )


def _flash(head: int, is_causal: bool) -> TritonSource:
    return TritonSource(
        repository="kernels",
        file=_FLASH_OF_TRITON,
        function="_fwd_kernel",
        constants={
            "BLOCK_M": 128,
            "BLOCK_N": 64,
            "BLOCK_DMODEL": head,
            "IS_CAUSAL": is_causal,
        },
        warps=4 if head <= 64 else 8,
        stages=4,
    )


def _grouped_attention(head: int, heads: int, heads_of_keys: int) -> TritonSource:
    return TritonSource(
        repository="flash-linear-attention",
        file="fla/ops/attn/parallel.py",
        function="parallel_attn_fwd_kernel",
        constants={
            **_ATTENTION_OF_FLA,
            "B": 1,
            "H": heads_of_keys,
            "HQ": heads,
            "G": heads // heads_of_keys,
            "K": head,
            "V": head,
            "BK": head,
            "BV": head,
        },
        warps=8,
        stages=3,  # what Triton takes if its caller gives none
    )


TRITON: Mapping[str, TritonSource] = {
    "persistent_brain": _persistent(128, 128, 64, True),
    "persistent_half": _persistent(128, 256, 64, False),
    "persistent_float": _persistent(128, 128, 32, False),
    "ordered_half": _product(64, 256, 32, "fp32", 4, 4),
    "ordered_int8": _product(128, 256, 128, "int32", 8, 3),
    "split_e4m3": TritonSource(
        repository="applied-ai",
        file=f"{_FP8}/splitk_gemm_fp8.py",
        function="gemm_split_k_kernel",
        constants={"block_m": 64, "block_n": 64, "block_k": 512, "split_k": 4, "group_m": 8},
        warps=8,
        stages=3,
    ),
    "scaled_e4m3": TritonSource(
        repository="applied-ai",
        file=f"{_FP8}/scaled_fp8_gemm.py",
        function="scaled_gemm_splitk",
        constants={"block_m": 64, "block_n": 64, "block_k": 256, "split_k": 4, "group_m": 8},
        warps=8,
        stages=3,
    ),
    "four_bits": TritonSource(
        repository="applied-ai",
        file="kernels/triton/inference/gptq/splitk_dequant_gemm.py",
        function="matmul_split_k_kernel",
        constants={"block_m": 16, "block_n": 32, "block_k": 128, "group_m": 8, "split_k": 4},
        warps=4,
        stages=3,
    ),
    "flash_64_causal": _flash(64, True),
    "flash_128": _flash(128, False),
    "grouped_attention_128": _grouped_attention(128, 32, 8),
    "grouped_attention_64": _grouped_attention(64, 16, 4),
    "chunk_products": TritonSource(
        repository="mamba",
        file="mamba_ssm/ops/triton/ssd_bmm.py",
        function="_bmm_chunk_fwd_kernel",
        constants={
            "IS_CAUSAL": False,
            "dot_dtype": "bf16",
            "HAS_SEQ_IDX": False,
            "BLOCK_SIZE_M": 128,
            "BLOCK_SIZE_N": 64,
            "BLOCK_SIZE_K": 32,
        },
        warps=4,
        stages=4,
    ),
    "chunk_states": TritonSource(
        repository="mamba",
        file="mamba_ssm/ops/triton/ssd_chunk_state.py",
        function="_chunk_state_fwd_kernel",
        constants={
            "HAS_SEQ_IDX": False,
            "BLOCK_SIZE_M": 64,
            "BLOCK_SIZE_N": 128,
            "BLOCK_SIZE_K": 32,
        },
        warps=4,
        stages=4,
    ),
    "chunk_outputs": TritonSource(
        repository="flash-linear-attention",
        file="fla/ops/common/chunk_o.py",
        function="chunk_fwd_kernel_o",
        constants={
            "H": 8,
            "HV": 8,
            "K": 128,
            "V": 128,
            "BT": 64,
            "BK": 64,
            "BV": 64,
            "USE_G": False,
            "USE_G_GAMMA": False,
            "STATE_V_FIRST": False,
            "IS_VARLEN": False,
        },
        warps=4,
        stages=3,
        plain=("T",),
    ),
}
