"""Launches of public kernels in CUDA C++."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from validation.timing.public_tensor.launch import PublicTensorLaunch, public_launch
from validation.timing.public_tensor.operands import (
    Operand,
    Tiled,
    Value,
    attention,
    pair,
    product,
    scaled,
    zeros,
)
from validation.timing.tensor_launches import Size

SMS = 132
i32, u32, u64, f32, f16 = np.int32, np.uint32, np.uint64, np.float32, np.float16


def cuda_launches() -> Iterator[PublicTensorLaunch]:
    yield from _hgemm()
    yield from _of_learning()
    yield from _of_wmma()
    yield from _of_samples()
    yield from _fast()
    yield from _attentions()


def _hgemm() -> Iterator[PublicTensorLaunch]:
    """Bruce-Lee-LY/cuda_hgemm: (A, B of n rows, C, m, n, k)."""
    tiles = {
        "mma_naive": ("mma", "_Z14mmaNaiveKernelPK6__halfS1_PS_mmm", 0),
        "mma_base": ("mma", "_Z13mmaBaseKernelPK6__halfS1_PS_mmm", 65_536),
        "mma_permuted": ("mma", "_Z17mmaPermutedKernelPK6__halfS1_PS_mmm", 65_536),
        "mma_async_stage4": ("mma", "_Z20mmaAsyncStage4KernelPK6__halfS1_PS_mmm", 98_304),
        "wmma_padding": ("wmma", "_Z17wmmaPaddingKernelPK6__halfS1_PS_mmm", 69_632),
        "wmma_async_stage3": ("wmma", "_Z21wmmaAsyncStage3KernelPK6__halfS1_PS_mmm", 92_160),
    }
    for name, (m, n, k) in (
        ("mma_naive", (1024, 1024, 512)),
        ("mma_base", (1024, 2048, 1024)),
        ("mma_permuted", (2048, 2048, 1024)),
        ("mma_async_stage4", (1024, 2048, 2048)),
        ("mma_async_stage4", (4096, 4096, 2048)),
        ("wmma_padding", (1024, 2048, 1024)),
        ("wmma_async_stage3", (2048, 2048, 2048)),
    ):
        family, symbol, shared = tiles[name]
        yield public_launch(
            f"hgemm_{name}",
            family,
            (m, n, k),
            [*pair("half", m, n, k), zeros("half", m * n), *map(u64, (m, n, k))],
            product("half", m, n, k),
            symbol=symbol,
            grid=(16, m // 256, -(-n // 2048)) if shared else (n // 8, m // 16),
            block=(256 if shared else 32,),
            shared=shared,
        )


def _of_learning() -> Iterator[PublicTensorLaunch]:
    """gau-nernst/learn-cuda, LeetCUDA and matmul-playground: kernels with mma.sync."""
    tile = "Li128ELi128ELi64ELi2ELi2E"
    arguments = "PK13__nv_bfloat16S2_PS0_iii"
    for name, image, symbol, shared, *sizes in (
        (
            "learn_plain",
            "learn_matmul_v1",
            f"_Z16matmul_v1_kernelI{tile}Li64ELb0ELb0EEv{arguments}",
            32_768,
            (1024, 1024, 1024),
        ),
        (
            "learn_padded",
            "learn_matmul_v1",
            f"_Z16matmul_v1_kernelI{tile}Li72ELb1ELb0EEv{arguments}",
            36_864,
            (2048, 2048, 2048),
        ),
        (
            "learn_swizzled",
            "learn_matmul_v5",
            f"_Z16matmul_v5_kernelI{tile}Ev{arguments}",
            32_768,
            (4096, 2048, 1024),
        ),
        (
            "learn_stages",
            "learn_matmul_v6",
            f"_Z16matmul_v6_kernelI{tile}Li2ELi8EEv{arguments}",
            65_536,
            (1536, 1536, 1536),
            (4096, 4096, 2048),
        ),
    ):
        for m, n, k in sizes:
            yield public_launch(
                name,
                "mma",
                (m, n, k),
                [*pair("brain", m, n, k), zeros("brain", m * n), *map(i32, (m, n, k))],
                product("brain", m, n, k),
                image=image,
                symbol=symbol,
                grid=(m // 128 * (n // 128),),
                block=(128,),
                shared=shared,
            )
    for m, n, k in ((1024, 1024, 1024), (4096, 2048, 2048)):
        yield public_launch(
            "swizzle_x4",
            "mma",
            (m, n, k),
            [*pair("half", m, n, k), zeros("half", m * n), *map(i32, (m, n, k))],
            product("half", m, n, k),
            symbol=(
                "_Z69hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stages_dsmem_tn_swizzle_x4_kernel"
                "ILi16ELi8ELi16ELi2ELi4ELi4ELi4ELi2ELi0ELi8ELi3ELb1ELb1EEvPK6__halfS2_PS0_iii"
            ),
            grid=(n // 128, m // 128),
            block=(256,),
            shared=61_440,
        )
    m, n, k = 2048, 2048, 1024
    yield public_launch(
        "playground_6",
        "mma",
        (m, n, k),
        [
            *pair("half", m, n, k),
            Operand("half", m * n, 3),
            zeros("half", m * n),
            f32(1),
            f32(0.5),
            *map(u32, (m, n, k)),
        ],
        product("half", m, n, k, by_rows=True, then=scaled(1, 0.5, 2)),
        symbol="_Z8kernel_6ILj256ELj256ELj32ELj128ELj64ELj8ELj256EEvP6__halfS1_S1_S1_ffjjj",
        grid=(n // 256, m // 256),
        block=(128, 2),
        shared=65_536,
        output=3,
    )


def _of_wmma() -> Iterator[PublicTensorLaunch]:
    """cuda-tensorcore-hgemm and CUDA-GEMM-Optimization: B of k rows."""
    for version, (m, n, k) in ((3, (1024, 1024, 1024)), (5, (2048, 4096, 1024))):
        yield public_launch(
            f"aligned_v{version}",
            "wmma",
            (m, n, k),
            [*pair("half", m, n, k), zeros("half", m * n), *map(i32, (m, n, k))],
            product("half", m, n, k, by_rows=True),
            image="aligned",
            symbol=f"_Z16myHGEMMAlignedV{version}P6__halfS0_S0_iii",
            grid=(n // 256, m // 128),
            block=(256,),
            shared=54_272,
        )
    for m, n, k in ((1024, 1024, 1024),):
        a, b = pair("half", m, n, k)
        yield public_launch(
            "leimao_wmma",
            "wmma",
            (m, n, k),
            [
                *map(u64, (m, n, k)),
                f16(1),
                a,
                u64(k),
                b,
                u64(n),
                f16(0),
                zeros("half", m * n),
                u64(n),
            ],
            product("half", m, n, k, a=4, b=6, by_rows=True),
            symbol=(
                "_Z35gemm_v07_vectorized_double_bufferedI6__halfLm128ELm128ELm16ELm16ELm16E"
                "Lm32ELm64ELm16ELm16ELm16ELm256EEvmmmT_PKS1_mS3_mS1_PS1_m"
            ),
            grid=(n // 128, m // 128),
            block=(256,),
            output=9,
        )


def _of_samples() -> Iterator[PublicTensorLaunch]:
    """NVIDIA's samples: D = alpha A B + beta C, B of n rows."""
    for name, image, family, kind, sums, symbol, size in (
        (
            "simple_half",
            "cuda",
            "wmma",
            "half",
            "float",
            "_Z16simple_wmma_gemmP6__halfS0_PfS1_iiiff",
            (1024, 1024, 256),
        ),
        (
            "simple_uint8",
            "imma",
            "int8",
            "uint8",
            "int32",
            "_Z21simple_wmma_gemm_immaPKhS0_PKiPiiiiii",
            (1024, 1024, 1024),
        ),
        (
            "simple_tf32",
            "tf32",
            "tf32",
            "float",
            "float",
            "_Z20simple_wmma_tf32gemmPfS_S_S_iiiff",
            (1024, 1024, 256),
        ),
        (
            "simple_double",
            "dmma",
            "dmma",
            "double",
            "double",
            "_Z16simple_wmma_gemmPdS_S_S_iiidd",
            (512, 512, 512),
        ),
        (
            "simple_double",
            "dmma",
            "dmma",
            "double",
            "double",
            "_Z16simple_wmma_gemmPdS_S_S_iiidd",
            (1024, 1024, 1024),
        ),
    ):
        m, n, _ = size
        tile = 8 if family == "dmma" else 16
        yield _of_sample(
            name,
            image,
            family,
            kind,
            sums,
            symbol,
            size,
            grid=(m // (4 * tile), n // (4 * tile)),
            block=(128, 4),
        )
    yield _of_sample(
        "shared_half",
        "cuda",
        "wmma",
        "half",
        "float",
        "_Z12compute_gemmPK6__halfS1_PKfPfff",
        (4096, 4096, 4096),
        grid=(SMS,),
        block=(256,),
        shared=65_536,
    )
    yield _of_sample(
        "shared_uint8",
        "imma",
        "int8",
        "uint8",
        "int32",
        "_Z17compute_gemm_immaPKhS0_PKiPiii",
        (4096, 4096, 4096),
        grid=(SMS,),
        block=(256,),
        shared=65_536,
    )


def _of_sample(
    name: str,
    image: str,
    family: str,
    kind: str,
    sums: str,
    symbol: str,
    size: Size,
    *,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int = 0,
) -> PublicTensorLaunch:
    m, n, k = size
    number: Any = {"float": f32, "int32": i32, "double": np.float64}[sums]
    alpha, beta = (2, 3) if sums == "int32" else (1.25, 0.75)
    # the kernel with tiles adds beta / alpha times C, in integers, before it multiplies by alpha
    added = alpha * (beta // alpha) if shared and sums == "int32" else beta
    return public_launch(
        name,
        family,
        size,
        [
            *pair(kind, m, n, k),
            Operand("int8 in int32" if sums == "int32" else sums, m * n, 3),
            zeros(sums, m * n),
            *([] if shared else map(i32, (m, n, k))),
            number(alpha),
            number(beta),
        ],
        product(kind, m, n, k, then=scaled(alpha, added, 2)),
        image=f"samples_{image}",
        symbol=symbol,
        grid=grid,
        block=block,
        shared=shared,
        output=3,
    )


def _fast() -> Iterator[PublicTensorLaunch]:
    """pranjalssh/fast.cu: wgmma with tensor maps, C by columns."""
    sizes = {
        6: [(2048, 2048, 1024)],
        7: [(4096, 2048, 2048)],
        8: [(2048, 2048, 2048), (4096, 4096, 2048)],
        9: [(2048, 4096, 1024)],
        10: [(2048, 2048, 4096), (4096, 4096, 4096)],
    }
    for version, several in sizes.items():
        tile = "ILi128ELi256ELi64ELi384ELi3ELi128E" + ("Li2ELi1E" if version > 7 else "")
        last = "14CUtensorMap_stS1_S1_" if version == 10 else "P13__nv_bfloat1614CUtensorMap_stS3_"
        kernel = f"matmulKernel{version}"
        symbol = f"_ZN{len(f'M{version}')}M{version}{len(kernel)}{kernel}{tile}EEviii{last}"
        axes = {6: 2, 7: 5}.get(version, 3)
        for m, n, k in several:
            a, b = pair("brain", m, n, k)
            maps = [Tiled(a, m, k, 128, 64, axes), Tiled(b, n, k, 256, 64, axes)]
            c: Value = zeros("brain", m * n)
            if version == 10:
                c = Tiled(zeros("brain", m * n), n, m, 256, 128, swizzle=0)
            yield public_launch(
                f"fast_{version}",
                "wgmma",
                (m, n, k),
                [*map(i32, (m, n, k)), c, *maps],
                product("brain", m, n, k, a=4, b=5, by_columns=True),
                symbol=symbol,
                grid=(128,),
                block=(384,),
                shared=213_120 if version == 10 else 147_456,
                output=3,
            )


def _attentions() -> Iterator[PublicTensorLaunch]:
    """learn-cuda (heads of 128, BF16) and LeetCUDA (FP16); a size is heads and length."""
    for version, queries, keys, shared, *sizes in (
        (1, 128, 64, 32_768, (16, 1024)),
        (3, 64, 32, 32_768, (8, 2048)),
        (5, 64, 64, 49_152, (16, 512), (32, 2048)),
    ):
        for heads, length in sizes:
            several = [Operand("brain", heads * length * 128, seed) for seed in (1, 2, 3)]
            yield public_launch(
                f"learn_attention_v{version}",
                "attention",
                (heads, length),
                [
                    *several,
                    zeros("brain", several[0].count),
                    *map(i32, (heads, length, length)),
                ],
                attention("brain", heads, length, 128),
                symbol=(
                    f"_Z19attention_v{version}_kernelILi{queries}ELi{keys}ELi128ELi4EEv"
                    "PK13__nv_bfloat16S2_S2_PS0_iii"
                ),
                grid=(heads * (length // queries),),
                block=(128,),
                shared=shared,
                output=3,
            )
    atom = "Li16ELi8ELi16E"
    of_q = f"_Z36flash_attn_mma_stages_split_q_kernelILi64E{atom}Li4ELi1ELi4ELi1ELi1ELi8ELi1ELi8E"
    of_kv = f"_Z37flash_attn_mma_stages_split_kv_kernelILi64E{atom}Li2ELi4ELi2ELi4ELi2ELi2ELi2ELi2E"
    of_qkv = "_Z55flash_attn_mma_stages_split_q_shared_qkv_acc_f32_kernel"
    arguments = "EEvP6__halfS1_S1_S1_ii"
    for name, head, symbol, queries, threads, shared, *sizes in (
        ("split_q", 64, f"{of_q}Li2ELi8{arguments}", 64, 128, 36_864, (8, 1024), (48, 2048)),
        ("split_kv", 64, f"{of_kv}Li1ELi8{arguments}", 64, 256, 36_864, (16, 1024)),
        (
            "share_qkv",
            128,
            f"{of_qkv}ILi128E{atom}Li8ELi1ELi8ELi1ELi1ELi8ELi1ELi16ELi1ELi1ELi8ELi8ELi8{arguments}",
            128,
            256,
            34_816,
            (16, 1024),
        ),
    ):
        for heads, length in sizes:
            several = [Operand("half", heads * length * head, seed) for seed in (1, 2, 3)]
            yield public_launch(
                f"flash_{name}",
                "attention",
                (heads, length),
                [*several, zeros("half", several[0].count), i32(length), i32(heads)],
                attention("half", heads, length, head),
                symbol=symbol,
                grid=(length // queries, heads),
                block=(threads,),
                shared=shared,
                output=3,
            )
