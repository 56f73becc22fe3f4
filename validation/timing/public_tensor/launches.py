"""The list: launches of the kernels of `sources`, with sizes, operands, and what must come out.

The list was committed before any of them was predicted or measured. All of them are held out.
Operands are random numbers with a seed, as in the first list (`validation.timing.tensor_launches`);
grids, blocks and shared memory are those that the programs of the kernels choose for such sizes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from analysis.errors import InputError
from toolkit.launch.tensor_map import TensorMap
from toolkit.machine_code.kernel import Kernel
from validation.timing.public_tensor.sources import CUDA, TRITON
from validation.timing.tensor_launches import (
    Arguments,
    Extent,
    Size,
    TensorLaunch,
    numbers_of,
    random_words,
)

PART = "public"
RECORDED = Path(__file__).parents[1] / "recorded"
CODE = RECORDED / "public_tensor_code.json"  # sha256 of each cubin, and what Triton says of it
FAMILIES = ("mma", "wmma", "wgmma", "attention", "int8", "fp8", "tf32", "dmma", "scan", "four bits")
EDGE = 4  # rows at either end of a result that are compared with float64
SMS = 132
Array = np.ndarray[Any, Any]
Expected = list[tuple[int, Array]]  # numbers, and where they begin in the output
i32, u32, u64, f32, f16 = np.int32, np.uint32, np.uint64, np.float32, np.float16


@dataclass(frozen=True)
class Operand:
    """Array of random numbers; zeros without a seed. `kind`: as of `random_words`."""

    kind: str
    count: int
    seed: int = 0

    def make(self) -> Array:
        found = random_words(self.kind, self.count if self.seed else 1, self.seed)
        return found if self.seed else np.zeros(self.count, found.dtype)


@dataclass(frozen=True)
class Tiled:
    """Tensor map of a row-major matrix of BF16 in columns of 64, as fast.cu makes it.

    `rows` and `columns` of the box; 2, 3 or 5 axes.
    """

    operand: Operand
    height: int
    width: int
    rows: int
    columns: int
    axes: int = 3
    swizzle: int = 128

    def make(self) -> TensorMap:
        words, pitch = self.operand.make(), 2 * self.width
        if self.axes == 2:
            return TensorMap(
                words.reshape(self.height, self.width),
                (self.rows, self.columns),
                swizzle=self.swizzle,
                l2_promotion=0,
            )
        more = self.axes - 3
        return TensorMap(
            words,
            (*(1,) * more, self.columns // 64, self.rows, 64),
            swizzle=self.swizzle,
            l2_promotion=0,
            shape=(*(1,) * more, self.width // 64, self.height, 64),
            pitches=(*(words.nbytes,) * more, 128, pitch),
        )


Value = Operand | Tiled | np.generic


@dataclass(frozen=True, kw_only=True)
class PublicTensorLaunch(TensorLaunch):
    """A launch of a public kernel. `output`: position of the argument that holds its result."""

    cubins: Path
    output: int
    numbers: Callable[[Arguments], Expected]

    @property
    def half(self) -> str:
        return PART

    @cached_property
    def code(self) -> Kernel:
        """Raises InputError if the folder has other machine code than the list."""
        image = (self.cubins / f"{self.image}.cubin").read_bytes()
        if sha256(image).hexdigest() != described()[self.image]["sha256"]:
            raise InputError(f"{self.cubins}: {self.image}.cubin is not that of the list")
        return Kernel.from_image(image, self.symbol)

    def output_of(self, arguments: Arguments) -> int:
        return self.output

    def checks(self, arguments: Arguments) -> Expected:
        return self.numbers(arguments)


@cache
def described() -> Mapping[str, Any]:
    """Each cubin by name: its sha256 and, of Triton, kernel, threads and shared memory."""
    if not CODE.exists():  # before the first build
        return {}
    found: Mapping[str, Any] = json.loads(CODE.read_text(encoding="utf-8"))["cubins"]
    return found


def made(values: Sequence[Value]) -> Arguments:
    return [one.make() if isinstance(one, Operand | Tiled) else one for one in values]


def _content(argument: Any, kind: str) -> Array:
    """Numbers of an operand in float64."""
    return numbers_of(
        kind, np.ravel(argument.array if isinstance(argument, TensorMap) else argument)
    )


def product(
    kind: str,
    m: int,
    n: int,
    k: int,
    *,
    a: int = 0,
    b: int = 1,
    by_rows: bool = False,
    by_columns: bool = False,
    then: Callable[[Array, Arguments, slice], Array] = lambda sums, arguments, rows: sums,
) -> Callable[[Arguments], Expected]:
    """The first and last rows of C = A B.

    `by_rows`: B is stored as k rows, not n; `by_columns`: C is stored as n columns, of which the
    first and the last are computed. `then` gives what becomes of the sums of these rows.
    """

    def numbers(arguments: Arguments) -> Expected:
        left = _content(arguments[a], kind).reshape(m, k)
        right = _content(arguments[b], kind)
        right = right.reshape(k, n) if by_rows else right.reshape(n, k).T
        if by_columns:
            left, right = right.T, left.T
        found = []
        for rows in (slice(0, EDGE), slice(len(left) - EDGE, len(left))):
            sums = then(left[rows] @ right, arguments, rows)
            found.append((rows.start * right.shape[1], sums))
        return found

    return numbers


def _scaled(alpha: float, beta: float, c: int) -> Callable[[Array, Arguments, slice], Array]:
    """alpha times the sums plus beta times C, argument `c`."""

    def then(sums: Array, arguments: Arguments, rows: slice) -> Array:
        width = sums.shape[1]
        before = arguments[c][rows.start * width : rows.stop * width].astype(np.float64)
        found: Array = alpha * sums + beta * before.reshape(sums.shape)
        return found

    return then


def attention(
    kind: str, heads: int, length: int, head: int, *, is_causal: bool = False, q: int = 0
) -> Callable[[Arguments], Expected]:
    """First rows of the first head and last rows of the last one; arrays are (heads, length, head).

    Q, K and V are arguments `q` to q + 2.
    """

    def numbers(arguments: Arguments) -> Expected:
        of = [_content(one, kind).reshape(heads, length, head) for one in arguments[q : q + 3]]
        return [
            (
                start * head + of_head * length * head,
                _attended(*(x[of_head] for x in of), start, is_causal),
            )
            for of_head, start in ((0, 0), (heads - 1, length - EDGE))
        ]

    return numbers


def _attended(q: Array, k: Array, v: Array, start: int, is_causal: bool) -> Array:
    """Attention of EDGE rows from `start` on, in one head."""
    scores = q[start : start + EDGE] @ k.T / q.shape[1] ** 0.5
    if is_causal:
        scores[np.arange(len(k)) > start + np.arange(EDGE)[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    found: Array = weights @ v / weights.sum(1, keepdims=True)
    return found


def _zeros(kind: str, count: int) -> Operand:
    return Operand(kind, count)


def _pair(kind: str, m: int, n: int, k: int) -> tuple[Operand, Operand]:
    return Operand(kind, m * k, 1), Operand(kind, n * k, 2)


class Listing:
    """The list, for a folder of cubins that `build` made."""

    def __init__(self, cubins: Path) -> None:
        self._cubins = cubins

    def launches(self) -> Iterator[PublicTensorLaunch]:
        yield from self._cuda()
        yield from self._triton()

    def _one(
        self,
        kernel: str,
        family: str,
        size: Size,
        values: Sequence[Value],
        numbers: Callable[[Arguments], Expected],
        *,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        image: str = "",
        symbol: str = "",
        shared: int = 0,
        output: int = 2,
    ) -> PublicTensorLaunch:
        return PublicTensorLaunch(
            kernel=kernel,
            family=family,
            size=size,
            image=image or kernel,
            symbol=symbol,
            grid=_extent(grid),
            block=_extent(block),
            dynamic_shared_bytes=shared,
            make=lambda: made(values),
            expected=lambda arguments: None,
            cubins=self._cubins,
            output=output,
            numbers=numbers,
        )

    # CUDA C++

    def _cuda(self) -> Iterator[PublicTensorLaunch]:
        yield from self._hgemm()
        yield from self._of_learning()
        yield from self._of_wmma()
        yield from self._of_samples()
        yield from self._fast()
        yield from self._attentions()

    def _hgemm(self) -> Iterator[PublicTensorLaunch]:
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
            yield self._one(
                f"hgemm_{name}",
                family,
                (m, n, k),
                [*_pair("half", m, n, k), _zeros("half", m * n), *map(u64, (m, n, k))],
                product("half", m, n, k),
                symbol=symbol,
                grid=(16, m // 256, -(-n // 2048)) if shared else (n // 8, m // 16),
                block=(256 if shared else 32,),
                shared=shared,
            )

    def _of_learning(self) -> Iterator[PublicTensorLaunch]:
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
                yield self._one(
                    name,
                    "mma",
                    (m, n, k),
                    [*_pair("brain", m, n, k), _zeros("brain", m * n), *map(i32, (m, n, k))],
                    product("brain", m, n, k),
                    image=image,
                    symbol=symbol,
                    grid=(m // 128 * (n // 128),),
                    block=(128,),
                    shared=shared,
                )
        for m, n, k in ((1024, 1024, 1024), (4096, 2048, 2048)):
            yield self._one(
                "swizzle_x4",
                "mma",
                (m, n, k),
                [*_pair("half", m, n, k), _zeros("half", m * n), *map(i32, (m, n, k))],
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
        yield self._one(
            "playground_6",
            "mma",
            (m, n, k),
            [
                *_pair("half", m, n, k),
                Operand("half", m * n, 3),
                _zeros("half", m * n),
                f32(1),
                f32(0.5),
                *map(u32, (m, n, k)),
            ],
            product("half", m, n, k, by_rows=True, then=_scaled(1, 0.5, 2)),
            symbol="_Z8kernel_6ILj256ELj256ELj32ELj128ELj64ELj8ELj256EEvP6__halfS1_S1_S1_ffjjj",
            grid=(n // 256, m // 256),
            block=(128, 2),
            shared=65_536,
            output=3,
        )

    def _of_wmma(self) -> Iterator[PublicTensorLaunch]:
        """cuda-tensorcore-hgemm and CUDA-GEMM-Optimization: B of k rows."""
        for version, (m, n, k) in ((3, (1024, 1024, 1024)), (5, (2048, 4096, 1024))):
            yield self._one(
                f"aligned_v{version}",
                "wmma",
                (m, n, k),
                [*_pair("half", m, n, k), _zeros("half", m * n), *map(i32, (m, n, k))],
                product("half", m, n, k, by_rows=True),
                image="aligned",
                symbol=f"_Z16myHGEMMAlignedV{version}P6__halfS0_S0_iii",
                grid=(n // 256, m // 128),
                block=(256,),
                shared=54_272,
            )
        for m, n, k in ((1024, 1024, 1024),):
            a, b = _pair("half", m, n, k)
            yield self._one(
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
                    _zeros("half", m * n),
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

    def _of_samples(self) -> Iterator[PublicTensorLaunch]:
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
            yield self._of_sample(
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
        yield self._of_sample(
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
        yield self._of_sample(
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
        self,
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
        return self._one(
            name,
            family,
            size,
            [
                *_pair(kind, m, n, k),
                Operand("int8 in int32" if sums == "int32" else sums, m * n, 3),
                _zeros(sums, m * n),
                *([] if shared else map(i32, (m, n, k))),
                number(alpha),
                number(beta),
            ],
            product(kind, m, n, k, then=_scaled(alpha, beta, 2)),
            image=f"samples_{image}",
            symbol=symbol,
            grid=grid,
            block=block,
            shared=shared,
            output=3,
        )

    def _fast(self) -> Iterator[PublicTensorLaunch]:
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
            last = (
                "14CUtensorMap_stS1_S1_" if version == 10 else "P13__nv_bfloat1614CUtensorMap_stS3_"
            )
            kernel = f"matmulKernel{version}"
            symbol = f"_ZN{len(f'M{version}')}M{version}{len(kernel)}{kernel}{tile}EEviii{last}"
            axes = {6: 2, 7: 5}.get(version, 3)
            for m, n, k in several:
                a, b = _pair("brain", m, n, k)
                maps = [Tiled(a, m, k, 128, 64, axes), Tiled(b, n, k, 256, 64, axes)]
                c: Value = _zeros("brain", m * n)
                if version == 10:
                    c = Tiled(_zeros("brain", m * n), n, m, 256, 128, swizzle=0)
                yield self._one(
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

    def _attentions(self) -> Iterator[PublicTensorLaunch]:
        """learn-cuda (heads of 128, BF16) and LeetCUDA (FP16); a size is heads and length."""
        for version, queries, keys, shared, *sizes in (
            (1, 128, 64, 32_768, (16, 1024)),
            (3, 64, 32, 32_768, (8, 2048)),
            (5, 64, 64, 49_152, (16, 512), (32, 2048)),
        ):
            for heads, length in sizes:
                several = [Operand("brain", heads * length * 128, seed) for seed in (1, 2, 3)]
                yield self._one(
                    f"learn_attention_v{version}",
                    "attention",
                    (heads, length),
                    [
                        *several,
                        _zeros("brain", several[0].count),
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
        of_q = (
            f"_Z36flash_attn_mma_stages_split_q_kernelILi64E{atom}Li4ELi1ELi4ELi1ELi1ELi8ELi1ELi8E"
        )
        of_kv = (
            f"_Z37flash_attn_mma_stages_split_kv_kernelILi64E{atom}Li2ELi4ELi2ELi4ELi2ELi2ELi2ELi2E"
        )
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
                yield self._one(
                    f"flash_{name}",
                    "attention",
                    (heads, length),
                    [*several, _zeros("half", several[0].count), i32(length), i32(heads)],
                    attention("half", heads, length, head),
                    symbol=symbol,
                    grid=(length // queries, heads),
                    block=(threads,),
                    shared=shared,
                    output=3,
                )

    # Triton

    def _of_triton(
        self,
        kernel: str,
        family: str,
        size: Size,
        call: Mapping[str, Any],
        numbers: Callable[[Mapping[str, Any]], Expected],
        *,
        grid: tuple[int, ...],
        output: str,
    ) -> PublicTensorLaunch:
        """A launch with the arguments of a call, of which Triton makes some constants."""
        about = described().get(kernel, {})
        passed = {name: call[name] for name in call if not is_constant(kernel, name, call[name])}
        names = list(passed)
        values: list[Value] = [
            i32(one) if isinstance(one, int) else f32(one) if isinstance(one, float) else one
            for one in passed.values()
        ]
        return self._one(
            kernel,
            family,
            size,
            [*values, u64(0), u64(0)],  # scratch memory that they do not use
            lambda arguments: numbers(dict(zip(names, arguments, strict=False))),
            symbol=about.get("symbol", ""),
            grid=grid,
            block=(about.get("threads", 0),),
            shared=about.get("dynamic_shared_bytes", 0),
            output=names.index(output),
        )

    def _triton(self) -> Iterator[PublicTensorLaunch]:
        for launch, _ in self.calls():
            yield launch

    def calls(self) -> Iterator[tuple[PublicTensorLaunch, Mapping[str, Any]]]:
        """Launches of Triton's kernels, and the calls that make them."""
        for several in (
            self._persistent(),
            self._ordered(),
            self._split(),
            self._four_bits(),
            self._flash(),
            self._grouped_attention(),
            self._chunks(),
        ):
            for kernel, family, size, call, numbers, grid, output in several:
                yield (
                    self._of_triton(kernel, family, size, call, numbers, grid=grid, output=output),
                    call,
                )

    def _persistent(self) -> Iterator[Any]:
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
                a, b = _pair(kind, m, n, k)
                bias = Operand(kind, n, 3) if kind == "brain" else None
                call = {
                    "a_ptr": a,
                    "b_ptr": b,
                    "c_ptr": _zeros(kind, m * n),
                    "bias_ptr": bias,
                    **{"M": m, "N": n, "K": k},
                    **_strides(am=k, ak=1, bk=n, bn=1, cm=n, cn=1),
                }
                tiles = m // tile[0] * -(-n // tile[1])
                numbers = _named(product, kind, m, n, k, by_rows=True, bias=bias is not None)
                yield kernel, family, (m, n, k), call, numbers, (min(SMS, tiles),), "c_ptr"

    def _ordered(self) -> Iterator[Any]:
        """triton-lang/kernels: products whose blocks are ordered in groups of eight rows."""
        for kernel, family, kind, out, tile, by_rows, size in (
            ("ordered_half", "wgmma", "half", "half", (64, 256), True, (1024, 2048, 1024)),
            ("ordered_half", "wgmma", "half", "half", (64, 256), True, (4096, 4096, 1024)),
            ("ordered_int8", "int8", "int8", "int32", (128, 256), False, (2048, 2048, 2048)),
        ):
            m, n, k = size
            a, b = _pair(kind, m, n, k)
            call = {
                "A": a,
                "B": b,
                "C": _zeros(out, m * n),
                **{"M": m, "N": n, "K": k},
                **_strides(am=k, ak=1, **_of_b(n, k, by_rows), cm=n, cn=1),
            }
            numbers = _named(product, kind, m, n, k, by_rows=by_rows, names=("A", "B"))
            yield kernel, family, size, call, numbers, (m // tile[0] * (n // tile[1]), 1), "C"

    def _split(self) -> Iterator[Any]:
        """applied-ai: FP8, sums of four parts of k added by atomics; B of n rows."""
        for kernel, size in (
            ("split_e4m3", (64, 4096, 4096)),
            ("split_e4m3", (512, 2048, 4096)),
            ("scaled_e4m3", (128, 4096, 2048)),
        ):
            m, n, k = size
            a, b = _pair("e4m3", m, n, k)
            scales = {"scale_a": 0.5, "scale_b": 0.25} if kernel == "scaled_e4m3" else {}
            call = {
                "a_ptr": a,
                "b_ptr": b,
                "c_ptr": _zeros("half", m * n),
                **_strides(am=k, ak=1, bk=1, bn=k, cm=n, cn=1),
                **scales,
                **{"m": m, "n": n, "k": k},
            }
            numbers = _named(product, "e4m3", m, n, k, scale=0.125 if scales else 1.0)
            yield kernel, "fp8", size, call, numbers, (m // 64 * (n // 64), 4), "c_ptr"

    def _four_bits(self) -> Iterator[Any]:
        """applied-ai: B as numbers of four bits with a scale and a zero for 128 rows (GPTQ)."""
        for m, n, k in ((16, 11_008, 4096),):
            call = {
                "a_ptr": Operand("half", m * k, 1),
                "b_ptr": Operand("int32", k // 8 * n, 2),
                "c_ptr": _zeros("half", m * n),
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
            yield "four_bits", "four bits", (m, n, k), call, numbers, grid, "c_ptr"

    def _flash(self) -> Iterator[Any]:
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
                    "L": _zeros("float", heads * length),
                    "Out": _zeros("half", heads * length * head),
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
                yield kernel, "attention", (heads, length), call, numbers, grid, "Out"

    def _grouped_attention(self) -> Iterator[Any]:
        """flash-linear-attention: causal, four heads of queries share one of keys."""
        for kernel, head, heads, of_keys, length in (
            ("grouped_attention_128", 128, 32, 8, 2048),
            ("grouped_attention_64", 64, 16, 4, 1024),
        ):
            call = {
                "q": Operand("half", length * heads * head, 1),
                "k": Operand("half", length * of_keys * head, 2),
                "v": Operand("half", length * of_keys * head, 3),
                "o": _zeros("half", length * heads * head),
                "g_cumsum": None,
                "sink_bias": None,
                "lse": _zeros("float", length * heads),
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
                    _content(of[name], "half").reshape(length, -1, head).transpose(1, 0, 2)
                    for name in "qkv"
                )
                group = heads // of_keys
                found = []
                for start in (0, length - EDGE):
                    each = [
                        _attended(q[h], k[h // group], v[h // group], start, True)
                        for h in range(heads)
                    ]
                    found.append((start * heads * head, np.stack(each, 1)))
                return found

            grid = (1, length // 128, heads)
            yield kernel, "attention", (heads, length), call, numbers, grid, "o"

    def _chunks(self) -> Iterator[Any]:
        """Products of the chunks of state space models and of linear attention."""
        yield from self._chunk_products()
        yield from self._chunk_states()
        yield from self._chunk_outputs()

    def _chunk_products(self) -> Iterator[Any]:
        """mamba: C Bᵀ of each chunk; a size is batch, length, groups, states and chunk."""
        for size in ((2, 4096, 8, 128, 256), (1, 8192, 2, 64, 256)):
            batch, length, groups, k, chunk = size
            chunks = length // chunk
            call = {
                "a_ptr": Operand("brain", batch * length * groups * k, 1),
                "b_ptr": Operand("brain", batch * length * groups * k, 2),
                "out_ptr": _zeros("float", batch * length * groups * chunk),
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
                    _content(of[name], "brain").reshape(batch * length, groups, k)
                    for name in ("a_ptr", "b_ptr")
                )
                whole = batch * length * groups * chunk
                first = a[:EDGE, 0] @ b[:chunk, 0].T
                last = a[-EDGE:, -1] @ b[-chunk:, -1].T
                return [(0, first), (whole - EDGE * chunk, last)]

            grid = (-(-chunk // 128) * -(-chunk // 64), batch, chunks * groups)
            yield "chunk_products", "scan", size, call, numbers, grid, "out_ptr"

    def _chunk_states(self) -> Iterator[Any]:
        """mamba: state at the end of each chunk; (batch, length, heads, width, states, chunk)."""
        size = batch, length, heads, width, states, chunk = 1, 4096, 64, 64, 128, 256
        chunks = length // chunk
        steps = {"batch": heads * length, "chunk": chunk, "head": length, "csize": 1}
        call = {
            "x_ptr": Operand("brain", batch * length * heads * width, 1),
            "b_ptr": Operand("brain", batch * length * states, 2),
            "states_ptr": _zeros("float", batch * chunks * heads * width * states),
            "dt_ptr": Operand("float", batch * heads * length, 3),
            "dA_cumsum_ptr": Operand("float", batch * heads * length, 4),
            "seq_idx_ptr": None,
            **{"hdim": width, "dstate": states, "chunk_size": chunk},
            **{"batch": batch, "seqlen": length, "nheads_ngroups_ratio": heads},
            **_strides(
                x_batch=length * heads * width, x_seqlen=heads * width, x_head=width, x_hdim=1
            ),
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
            x = _content(of["x_ptr"], "brain").reshape(length, heads, width)
            b = _content(of["b_ptr"], "brain").reshape(length, states)
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
        yield "chunk_states", "scan", size, call, numbers, grid, "states_ptr"

    def _chunk_outputs(self) -> Iterator[Any]:
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
                "o": _zeros("brain", count),
                "cu_seqlens": None,
                "chunk_indices": None,
                "scale": scale,
                "T": length,
            }

            def numbers(of: Mapping[str, Any], rows: int = batch * length) -> Expected:
                q, k, v = (_content(of[x], "brain").reshape(rows, heads, width) for x in "qkv")
                h = _content(of["h"], "brain").reshape(rows // chunk, heads, width, width)
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
            yield "chunk_outputs", "scan", (batch, length), call, numbers, grid, "o"


def _extent(sizes: tuple[int, ...]) -> Extent:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


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
        added = _content(arguments["bias_ptr"], kind) if bias else 0.0
        return [(start, scale * sums + added) for start, sums in found]

    return numbers


def is_constant(kernel: str, name: str, value: Any) -> bool:
    """Whether Triton compiles an argument into the kernel: None, and 1 unless it is exempt."""
    return value is None or (
        isinstance(value, int) and value == 1 and name not in TRITON[kernel].plain
    )


def launches(cubins: Path) -> tuple[PublicTensorLaunch, ...]:
    """The list. Raises InputError, when machine code is asked for, if `cubins` has another."""
    found = tuple(Listing(cubins).launches())
    unknown = {one.image for one in found} - {*CUDA, *TRITON}
    if unknown:
        raise InputError(f"no source of {', '.join(sorted(unknown))}")
    return found
