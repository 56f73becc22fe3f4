"""Launches on tensor cores by which predicted times are judged: the kernels of the folder tensor.

The list was written before any of them was predicted or measured. `recorded/tensor_cubins.zip` has
their machine code (nvcc 13.0 and Triton 3.6, sm_90a), so that what is predicted is what was timed;
`tensor/build.py` made it. Kernels of NVIDIA's libraries are not among them.

A kernel is in one of two halves, with all of its launches: within each family the kernels are
sorted by a hash of their names, and every second one is in the first half. Rules may be made on the
first half; the second one is predicted once.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.launch.launch import buffers_of
from toolkit.launch.tensor_map import TensorMap
from toolkit.machine_code.kernel import Kernel
from validation import recordings

CUBINS = Path(__file__).parent / "recorded" / "tensor_cubins.zip"
RECORDED = Path(__file__).parent / "recorded" / "tensor_h200.json"
FAMILIES = ("mma", "wmma", "wgmma", "attention", "int8", "fp8", "tf32", "dmma")
HALVES = ("first", "second")
ROW_BYTES = 128  # of a tile that a tensor map copies
LOG2_E = 1.4426950408889634
Arguments = list[Any]
Extent = tuple[int, int, int]
Size = tuple[int, ...]
i32, f32 = np.int32, np.float32


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Division of C among the blocks of a kernel of products, and its launch."""

    m: int
    n: int
    threads: Extent
    dynamic_shared_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class TensorLaunch:
    """One launch. `image` is a member of the archive of cubins, `symbol` a kernel in it."""

    kernel: str
    family: str
    size: Size
    image: str
    symbol: str
    grid: Extent
    block: Extent
    dynamic_shared_bytes: int
    make: Callable[[], Arguments]
    expected: Callable[[Arguments], np.ndarray[Any, Any] | None]

    @property
    def label(self) -> str:
        return f"{self.kernel} {'x'.join(map(str, self.size))}"

    @property
    def code(self) -> Kernel:
        return Kernel.from_image(image_of(self.image), self.symbol)

    def output_of(self, arguments: Arguments) -> int:
        """Position of the argument that holds the result."""
        return max(buffers_of(arguments))

    def checks(self, arguments: Arguments) -> list[tuple[int, np.ndarray[Any, Any]]]:
        """Numbers of the result in float64, and where they begin in it; none if nothing says."""
        found = self.expected(arguments)
        return [] if found is None else [(0, found)]

    @property
    def half(self) -> str:
        """The half that its kernel is in."""
        names = {one.kernel for one in LAUNCHES if one.family == self.family}
        ranked = sorted(names, key=lambda name: sha256(name.encode()).hexdigest())
        return HALVES[ranked.index(self.kernel) % 2]


def recorded() -> Mapping[str, Any]:
    """Times of the launches on an H200, by label."""
    launches: Mapping[str, Any] = recordings.read(RECORDED)["launches"]
    return launches


@cache
def image_of(name: str) -> bytes:
    with zipfile.ZipFile(CUBINS) as store:
        return store.read(f"{name}.cubin")


@cache
def _triton() -> Mapping[str, Any]:
    with zipfile.ZipFile(CUBINS) as store:
        found: Mapping[str, Any] = json.loads(store.read("triton.json"))
    return found


# Operands: random numbers of each type, as the words that memory holds.


PERIOD = 1_000_003  # after so many numbers they repeat: drawing more takes long


def _normal(count: int, seed: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    drawn = np.random.default_rng(seed).standard_normal(min(count, PERIOD), dtype=f32)
    return np.resize(drawn, count)


_OF_NORMAL: Mapping[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "half": lambda drawn: drawn.astype(np.float16),
    "brain": lambda drawn: (drawn.view(np.uint32) >> 16).astype(np.uint16),
    "float": lambda drawn: drawn,
    "double": lambda drawn: drawn.astype(np.float64),
}


def random_words(kind: str, count: int, seed: int) -> np.ndarray[Any, Any]:
    """`count` random numbers of a type, as the words that memory holds.

    Types: "half", "brain", "float", "double", "int8", "uint8", "int32" (all bits random), "int8 in
    int32", "e4m3", "bit". Those of FP8 have magnitudes from 1/8 to 2. Of single bits, `count` is
    that of bytes.
    """
    if kind in _OF_NORMAL:
        return _OF_NORMAL[kind](_normal(count, seed))
    if kind == "int32":
        return random_words("uint8", 4 * count, seed).view(np.int32)
    drawn = np.random.default_rng(seed).integers(0, 256, min(count, PERIOD), dtype=np.uint8)
    drawn = np.resize(drawn, count)
    if kind == "e4m3":
        return drawn & 0x9F | 0x20  # sign, exponents of 4 to 7, mantissa
    if kind == "int8 in int32":
        return drawn.view(np.int8).astype(np.int32)
    return drawn if kind == "uint8" else drawn.view(np.int8)


_BYTES = {"half": 2, "brain": 2, "float": 4, "double": 8, "int8": 1, "e4m3": 1, "bit": 1}


def numbers_of(kind: str, words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The numbers that words stand for, as float64."""
    found: np.ndarray[Any, Any]
    if kind == "brain":
        words = (words.astype(np.uint32) << 16).view(f32)
    if kind == "e4m3":
        sign = np.where(words & 0x80, -1.0, 1.0)
        found = sign * (8 + (words & 7)) * 2.0 ** ((words >> 3 & 15).astype(int) - 10)
        return found
    return words.view(np.int8 if kind == "int8" else words.dtype).astype(np.float64)


CHECKED = 8  # rows of a result that are compared with float64


def _first_rows(kind: str, m: int, n: int, k: int, *, rows: bool) -> Callable[[Arguments], Any]:
    """The first rows of A times B, `rows`: B has k rows, not n."""

    def expected(arguments: Arguments) -> np.ndarray[Any, Any] | None:
        if kind == "bit":
            return None
        a, b = (one.array if isinstance(one, TensorMap) else one for one in arguments[:2])
        left = numbers_of(kind, np.ravel(a)[: CHECKED * k]).reshape(CHECKED, k)
        right = numbers_of(kind, np.ravel(b)[: k * n])
        product: np.ndarray[Any, Any] = left @ (
            right.reshape(k, n) if rows else right.reshape(n, k).T
        )
        return product

    del m
    return expected


def _sums(kind: str, count: int) -> np.ndarray[Any, Any]:
    if kind in ("int8", "bit"):
        return np.zeros(count, i32)
    return np.zeros(count, np.float64 if kind == "double" else f32)


def _products(
    kernel: str,
    family: str,
    kind: str,
    tile: Tile,
    *sizes: Size,
    image: str = "warps",
    half_sums: bool = False,
    counts_bytes: bool = True,
) -> Iterator[TensorLaunch]:
    """Launches of (a, b, c, n, bytes of a row or k)."""
    for m, n, k in sizes:
        assert m % tile.m == n % tile.n == 0

        def make(m: int = m, n: int = n, k: int = k) -> Arguments:
            c = np.zeros(m * n, np.float16) if half_sums else _sums(kind, m * n)
            a, b = (random_words(kind, rows * k, seed) for seed, rows in ((1, m), (2, n)))
            return [a, b, c, i32(n), i32(_BYTES[kind] * k if counts_bytes else k)]

        yield TensorLaunch(
            kernel=kernel,
            family=family,
            size=(m, n, k),
            image=image,
            symbol=kernel,
            grid=(n // tile.n, m // tile.m, 1),
            block=tile.threads,
            dynamic_shared_bytes=tile.dynamic_shared_bytes,
            make=make,
            expected=_first_rows(kind, m, n, k, rows=False),
        )


def _as_copied(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Words of a type that tensor maps know."""
    return words.view(np.uint8) if words.dtype == np.int8 else words


def _pair(kind: str, m: int, n: int, k: int, tile: Tile) -> list[TensorMap]:
    per_row = ROW_BYTES // _BYTES[kind]
    return [
        TensorMap(
            _as_copied(random_words(kind, rows * k, seed)).reshape(rows, k),
            (box, per_row),
            swizzle=ROW_BYTES,
        )
        for seed, rows, box in ((1, m, tile.m), (2, n, tile.n))
    ]


def _by_maps(
    kernel: str,
    family: str,
    kind: str,
    tile: Tile,
    *sizes: Size,
    blocks: int = 0,
    half_sums: bool = False,
) -> Iterator[TensorLaunch]:
    """Launches with tensor maps; `blocks`: at most so many, which take tile after tile (roles)."""
    for m, n, k in sizes:
        assert m % tile.m == n % tile.n == 0
        steps = k * _BYTES[kind] // ROW_BYTES
        tiles = m // tile.m * (n // tile.n)

        def make(m: int = m, n: int = n, k: int = k, steps: int = steps) -> Arguments:
            c = np.zeros(m * n, np.float16) if half_sums else _sums(kind, m * n)
            extents = [i32(m), i32(n)] if blocks else [i32(n)]
            return [*_pair(kind, m, n, k, tile), c, *extents, i32(steps)]

        yield TensorLaunch(
            kernel=kernel,
            family=family,
            size=(m, n, k),
            image="warpgroups",
            symbol=kernel,
            grid=(min(blocks, tiles), 1, 1) if blocks else (n // tile.n, m // tile.m, 1),
            block=tile.threads,
            dynamic_shared_bytes=tile.dynamic_shared_bytes,
            make=make,
            expected=_first_rows(kind, m, n, k, rows=False),
        )


def _attentions(
    kernel: str, head: int, queries: int, *sizes: Size, image: str = "warps", pitch: int = 0
) -> Iterator[TensorLaunch]:
    """Launches of (q, k, v, out, length, scale); a size is heads and length."""
    about = _triton().get(kernel, {})
    for heads, length in sizes:

        def make(heads: int = heads, length: int = length) -> Arguments:
            count = heads * length * head
            inputs = [random_words("half", count, seed) for seed in (1, 2, 3)]
            scale = f32(LOG2_E / head**0.5)
            hidden = [np.uint64(0), np.uint64(0)] if about else []
            return [*inputs, np.zeros(count, np.float16), i32(length), scale, *hidden]

        def expected(arguments: Arguments, length: int = length) -> np.ndarray[Any, Any] | None:
            q, k, v = (one[: length * head].astype(np.float64) for one in arguments[:3])
            scores = q[: CHECKED * head].reshape(CHECKED, head) @ k.reshape(length, head).T
            if "causal" in kernel:
                scores[np.arange(length) > np.arange(CHECKED)[:, None]] = -np.inf
            weights = np.exp((scores - scores.max(1, keepdims=True)) / head**0.5)
            found: np.ndarray[Any, Any] = weights @ v.reshape(length, head)
            found /= weights.sum(1, keepdims=True)
            return found

        yield TensorLaunch(
            kernel=kernel,
            family="attention",
            size=(heads, length),
            image=kernel if about else image,
            symbol=about.get("symbol", kernel),
            grid=(length // queries, heads, 1),
            block=(about.get("threads", 128), 1, 1),
            dynamic_shared_bytes=about.get("dynamic_shared_bytes", pitch),
            make=make,
            expected=expected,
        )


def _of_triton(
    kernel: str,
    family: str,
    kind: str,
    out: type[np.generic],
    tile: tuple[int, int],
    *sizes: Size,
    rows: bool = True,
) -> Iterator[TensorLaunch]:
    about = _triton()[kernel]
    is_fused = about["symbol"] == "fused"
    for m, n, k in sizes:
        down, across = -(-m // tile[0]), -(-n // tile[1])

        def make(m: int = m, n: int = n, k: int = k) -> Arguments:
            a, b = (random_words(kind, count * k, seed) for seed, count in ((1, m), (2, n)))
            c = np.zeros(m * n, np.uint16 if kind == "brain" else out)
            bias = [random_words("half", n, 3)] if is_fused else []
            hidden = [np.uint64(0), np.uint64(0)]  # scratch memory that it does not use
            return [a, b, *bias, c, i32(m), i32(n), i32(k), *hidden]

        plain = _first_rows(kind, m, n, k, rows=rows)
        yield TensorLaunch(
            kernel=kernel,
            family=family,
            size=(m, n, k),
            image=kernel,
            symbol=about["symbol"],
            grid=(across, down, 1) if is_fused else (down * across, 1, 1),
            block=(about["threads"], 1, 1),
            dynamic_shared_bytes=about["dynamic_shared_bytes"],
            make=make,
            expected=(lambda arguments: None) if is_fused else plain,
        )


def _staged(m: int, n: int, threads: int, stages: int, pitch: int = 64) -> Tile:
    """A tile of warps.cu, whose rows take `pitch` bytes."""
    return Tile(m=m, n=n, threads=(threads, 1, 1), dynamic_shared_bytes=stages * (m + n) * pitch)


def _grouped(groups: int, n: int, stages: int, roles: bool = False) -> Tile:
    """A tile of warpgroups.cu, with room for its alignment."""
    m = 64 * groups
    return Tile(
        m=m,
        n=n,
        threads=(128 * (groups + roles), 1, 1),
        dynamic_shared_bytes=1024 + stages * (m + n) * ROW_BYTES,
    )


_PLAIN_64 = Tile(m=64, n=64, threads=(128, 1, 1))
_WARPS_64 = Tile(m=64, n=64, threads=(128, 4, 1))
_SMS = 132

LAUNCHES: Sequence[TensorLaunch] = (
    *_products("half_direct", "mma", "half", _PLAIN_64, (512, 512, 512), (1024, 1024, 1024)),
    *_products(
        "half_words", "mma", "half", _staged(64, 64, 128, 1), (512, 512, 512), (2048, 2048, 1024)
    ),
    *_products(
        "half_words_padded",
        "mma",
        "half",
        _staged(128, 128, 128, 1, 80),
        (1024, 1024, 1024),
        (3072, 1536, 768),
    ),
    *_products(
        "half_matrices",
        "mma",
        "half",
        _staged(128, 128, 128, 1),
        (1024, 1024, 512),
        (2048, 2048, 2048),
    ),
    *_products(
        "half_padded",
        "mma",
        "half",
        _staged(128, 128, 128, 1, 80),
        (1024, 1024, 1024),
        (2048, 3072, 1024),
    ),
    *_products(
        "half_two_stages",
        "mma",
        "half",
        _staged(128, 128, 256, 2),
        (1024, 1024, 1024),
        (4096, 4096, 1024),
    ),
    *_products(
        "half_four_stages",
        "mma",
        "half",
        _staged(128, 128, 128, 4),
        (768, 1536, 2048),
        (4096, 4096, 2048),
    ),
    *_products(
        "half_wide",
        "mma",
        "half",
        _staged(128, 256, 256, 3),
        (2048, 2048, 1024),
        (4096, 4096, 4096),
    ),
    *_products(
        "half_small", "mma", "half", _staged(64, 64, 128, 3), (512, 512, 2048), (1536, 1536, 1536)
    ),
    *_products(
        "half_conflicts",
        "mma",
        "half",
        _staged(128, 128, 256, 3),
        (1024, 1024, 1024),
        (2048, 2048, 1024),
    ),
    *_products(
        "brain_three_stages",
        "mma",
        "brain",
        _staged(128, 128, 256, 3),
        (1280, 1280, 1280),
        (4096, 2048, 2048),
    ),
    *_products(
        "half_sums_of_half",
        "mma",
        "half",
        _staged(128, 128, 128, 3),
        (1024, 2048, 1024),
        (4096, 4096, 1024),
        half_sums=True,
    ),
    *_of_triton(
        "triton_few_rows", "mma", "half", f32, (16, 64), (16, 4096, 4096), (16, 11008, 4096)
    ),
    *_products(
        "wmma_half",
        "wmma",
        "half",
        _WARPS_64,
        (512, 512, 512),
        (2048, 2048, 512),
        counts_bytes=False,
    ),
    *_products(
        "wmma_tiles",
        "wmma",
        "half",
        _PLAIN_64,
        (1024, 1024, 1024),
        (2048, 2048, 1024),
        counts_bytes=False,
    ),
    *_products(
        "wmma_tiles_padded",
        "wmma",
        "brain",
        _PLAIN_64,
        (1024, 1024, 2048),
        (3072, 3072, 1024),
        counts_bytes=False,
    ),
    *_products(
        "group_unstaged",
        "wgmma",
        "half",
        _grouped(1, 64, 1),
        (512, 512, 512),
        (2048, 2048, 512),
        image="warpgroups",
    ),
    *_products(
        "group_two_stages",
        "wgmma",
        "half",
        _grouped(1, 128, 2),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        image="warpgroups",
    ),
    *_products(
        "group_copies",
        "wgmma",
        "half",
        _grouped(2, 128, 4),
        (1024, 1024, 1024),
        (4096, 4096, 1024),
        image="warpgroups",
    ),
    *_products(
        "group_registers",
        "wgmma",
        "half",
        _grouped(2, 128, 4),
        (1024, 1024, 2048),
        (2048, 4096, 2048),
        image="warpgroups",
    ),
    *_by_maps(
        "group_maps", "wgmma", "half", _grouped(2, 128, 4), (1024, 2048, 1024), (4096, 4096, 2048)
    ),
    *_by_maps(
        "group_maps_small", "wgmma", "half", _grouped(1, 64, 4), (768, 768, 768), (2048, 2048, 1024)
    ),
    *_by_maps(
        "group_roles",
        "wgmma",
        "half",
        _grouped(2, 128, 4, True),
        (1024, 1024, 4096),
        (4096, 4096, 4096),
        blocks=_SMS,
    ),
    *_by_maps(
        "group_roles_wide",
        "wgmma",
        "half",
        _grouped(2, 256, 4, True),
        (2048, 2048, 2048),
        (8192, 4096, 2048),
        blocks=_SMS,
    ),
    *_by_maps(
        "group_roles_brain",
        "wgmma",
        "brain",
        _grouped(1, 128, 4, True),
        (1024, 1024, 1024),
        (2048, 2048, 4096),
        blocks=2 * _SMS,
    ),
    *_by_maps(
        "group_roles_half_sums",
        "wgmma",
        "half",
        _grouped(2, 128, 5, True),
        (1536, 1536, 1536),
        (4096, 2048, 2048),
        blocks=_SMS,
        half_sums=True,
    ),
    *_of_triton(
        "triton_half",
        "wgmma",
        "half",
        np.float16,
        (128, 128),
        (1024, 1024, 1024),
        (4096, 4096, 2048),
    ),
    *_of_triton(
        "triton_half_wide",
        "wgmma",
        "half",
        np.float16,
        (128, 256),
        (2048, 2048, 2048),
        (4096, 4096, 4096),
    ),
    *_of_triton(
        "triton_half_small",
        "wgmma",
        "half",
        np.float16,
        (64, 64),
        (512, 512, 512),
        (2048, 2048, 1024),
    ),
    *_of_triton(
        "triton_half_narrow", "wgmma", "half", f32, (64, 32), (512, 1024, 2048), (2048, 1024, 1024)
    ),
    *_of_triton(
        "triton_half_transposed",
        "wgmma",
        "half",
        f32,
        (128, 128),
        (1024, 1024, 2048),
        (3072, 3072, 1536),
        rows=False,
    ),
    *_of_triton(
        "triton_brain",
        "wgmma",
        "brain",
        np.uint16,
        (128, 64),
        (1024, 1536, 1024),
        (4096, 2048, 1024),
    ),
    *_of_triton(
        "triton_fused",
        "wgmma",
        "half",
        np.float16,
        (128, 128),
        (1000, 1104, 520),
        (2048, 4096, 1024),
    ),
    *_attentions("attention_64", 64, 64, (16, 1024), (32, 2048), pitch=4 * 64 * 144),
    *_attentions("attention_64_causal", 64, 64, (16, 1024), (64, 1024), pitch=4 * 64 * 144),
    *_attentions("attention_128", 128, 64, (16, 512), (32, 1536), pitch=4 * 64 * 272),
    *_attentions("attention_64_unstaged", 64, 64, (8, 1024), (32, 1024), pitch=2 * 64 * 144),
    *_attentions("triton_attention_64", 64, 128, (16, 1024), (128, 2048)),
    *_attentions("triton_attention_64_causal", 64, 128, (16, 1024), (128, 2048)),
    *_attentions("triton_attention_128", 128, 128, (16, 1024), (64, 2048)),
    *_attentions("triton_attention_few_warps", 64, 64, (8, 512), (64, 1024)),
    *_products("int8_padded", "int8", "int8", _staged(64, 64, 128, 1, 80), (1024, 1024, 1024)),
    *_products(
        "int8_three_stages",
        "int8",
        "int8",
        _staged(128, 128, 128, 3),
        (1024, 2048, 2048),
        (4096, 4096, 2048),
    ),
    *_products("bits_three_stages", "int8", "bit", _staged(128, 128, 256, 3), (2048, 2048, 2048)),
    *_products("wmma_int8", "int8", "int8", _WARPS_64, (1024, 1024, 512), counts_bytes=False),
    *_products(
        "group_copies_int8",
        "int8",
        "int8",
        _grouped(2, 128, 4),
        (2048, 2048, 2048),
        image="warpgroups",
    ),
    *_by_maps(
        "group_roles_int8",
        "int8",
        "int8",
        _grouped(2, 128, 4, True),
        (4096, 4096, 4096),
        blocks=_SMS,
    ),
    *_of_triton("triton_int8", "int8", "int8", i32, (128, 128), (2048, 2048, 4096), rows=False),
    *_products("e4m3_warps", "fp8", "e4m3", _staged(128, 128, 256, 3), (2048, 2048, 2048)),
    *_products(
        "group_copies_e4m3",
        "fp8",
        "e4m3",
        _grouped(2, 64, 4),
        (1024, 1024, 2048),
        image="warpgroups",
    ),
    *_by_maps(
        "group_roles_e4m3",
        "fp8",
        "e4m3",
        _grouped(2, 128, 4, True),
        (4096, 4096, 4096),
        blocks=_SMS,
    ),
    *_of_triton(
        "triton_e4m3",
        "fp8",
        "e4m3",
        f32,
        (128, 128),
        (1024, 1024, 4096),
        (4096, 4096, 4096),
        rows=False,
    ),
    *_products("tf32_padded", "tf32", "float", _staged(64, 128, 128, 1, 80), (1024, 1024, 1024)),
    *_products(
        "tf32_three_stages",
        "tf32",
        "float",
        _staged(128, 128, 256, 3),
        (1024, 1024, 2048),
        (2048, 2048, 2048),
    ),
    *_products("wmma_tf32", "tf32", "float", _WARPS_64, (1024, 1024, 512), counts_bytes=False),
    *_by_maps("group_maps_tf32", "tf32", "float", _grouped(1, 128, 4), (1024, 1024, 1024)),
    *_by_maps(
        "group_roles_tf32",
        "tf32",
        "float",
        _grouped(2, 128, 4, True),
        (4096, 4096, 2048),
        blocks=_SMS,
    ),
    *_of_triton("triton_tf32", "tf32", "float", f32, (128, 128), (2048, 2048, 2048), rows=False),
    *_products(
        "double_tiles",
        "dmma",
        "double",
        _PLAIN_64,
        (512, 512, 512),
        (1536, 1536, 768),
        counts_bytes=False,
    ),
    *_products(
        "double_direct",
        "dmma",
        "double",
        Tile(m=32, n=32, threads=(128, 1, 1)),
        (256, 512, 256),
        (1024, 1024, 512),
        counts_bytes=False,
    ),
)
