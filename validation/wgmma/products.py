"""Kernels that execute one form of `wgmma.mma_async`, on given operands.

`Form` names the form. `source` is a kernel of it: each block copies an image of shared memory,
multiplies on its warpgroup with given descriptors, and stores its sums. A row of A and a column of
B are 32 bytes, whatever their type.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROWS, ROW_BYTES, THREADS = 64, 32, 128
SWIZZLES = (0, 128, 64, 32)  # bytes, by their number in a descriptor
_K = {"f16": 16, "bf16": 16, "tf32": 8, "b1": 256}  # 32 of bytes
_INTEGERS = ("s8", "u8")

Words = NDArray[np.uint32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Form:
    """One form of the instruction. `links`: so many are executed one after another on one sum."""

    a: str
    b: str
    sums: str  # "f32", "f16" or "s32"
    n: int = 8
    in_registers: bool = False
    transposed: tuple[bool, bool] = (False, False)
    negated: tuple[bool, bool] = (False, False)
    saturates: bool = False
    links: int = 1

    @property
    def k(self) -> int:
        return _K.get(self.a, 32)

    @property
    def words(self) -> int:
        """Registers of the sums, of each thread."""
        return self.n // (4 if self.sums == "f16" else 2)

    @property
    def name(self) -> str:
        parts = [f"m64n{self.n}k{self.k}", self.sums, self.a, self.b]
        parts += ["rs" if self.in_registers else "ss"]
        parts += [f"t{x}" for x, on in zip("AB", self.transposed, strict=True) if on]
        parts += [f"neg{x}" for x, on in zip("AB", self.negated, strict=True) if on]
        parts += ["sat" if self.saturates else "", f"x{self.links}" if self.links > 1 else ""]
        return "_".join(filter(None, parts))

    def ptx(self, link: int) -> str:
        """The statement of one link, on `x`, `a`, `descriptors` and `scale` of the kernel."""
        immediates = list[int]()
        if self.a not in (*_INTEGERS, "b1"):
            immediates = [-1 if on else 1 for on in self.negated]
        if self.a in ("f16", "bf16"):
            immediates += [int(on) for on in self.transposed[self.in_registers :]]
        suffix = ".and.popc" if self.a == "b1" else ".satfinite" if self.saturates else ""
        left = [f'"r"(a[{4 * link + k}])' for k in range(4)]
        inputs = left if self.in_registers else [f'"l"(descriptors[{2 * link}])']
        inputs = [*inputs, f'"l"(descriptors[{2 * link + 1}])', '"r"(scale)']
        outputs = [f'"+{"f" if self.sums == "f32" else "r"}"(x[{k}])' for k in range(self.words)]
        number = self.words + len(inputs)
        rows = _listed(self.words, number - 2) if self.in_registers else f"%{self.words}"
        operands = [_listed(0, self.words), rows, f"%{number - 2}", "p", *map(str, immediates)]
        opcode = f"m64n{self.n}k{self.k}.{self.sums}.{self.a}.{self.b}{suffix}"
        return (
            f'asm volatile("{{.reg .pred p; setp.ne.b32 p, %{number - 1}, 0; '
            f'wgmma.mma_async.sync.aligned.{opcode} {", ".join(operands)};}}" '
            f": {', '.join(outputs)} : {', '.join(inputs)});"
        )


def _listed(first: int, end: int) -> str:
    """Operands of inline assembly, as a vector."""
    return "{" + ", ".join(f"%{k}" for k in range(first, end)) + "}"


def source(form: Form) -> str:
    """CUDA C++ of the kernel `product`."""
    kind = "float" if form.sums == "f32" else "unsigned"
    links = "\n    ".join(form.ptx(link) for link in range(form.links))
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS}) product(
    const uint4 *images, const unsigned *registers_of_a, const {kind} *c, {kind} *d,
    const unsigned long long *all_descriptors, int units, int scale) {{
    extern __shared__ __align__(1024) uint4 shared[];
    for (int i = threadIdx.x; i < units; i += {THREADS})
        shared[i] = images[(size_t)blockIdx.x * units + i];
    unsigned long long descriptors[{2 * form.links}];
    for (int i = 0; i < {2 * form.links}; i++)
        descriptors[i] = all_descriptors[blockIdx.x * {2 * form.links} + i];
    unsigned a[{4 * form.links}];
    for (int i = 0; i < {4 * form.links}; i++)
        a[i] = registers_of_a[(blockIdx.x * {4 * form.links} + i) * {THREADS} + threadIdx.x];
    {kind} x[{form.words}];
    for (int i = 0; i < {form.words}; i++)
        x[i] = c[(blockIdx.x * {form.words} + i) * {THREADS} + threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    {links}
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < {form.words}; i++)
        d[(blockIdx.x * {form.words} + i) * {THREADS} + threadIdx.x] = x[i];
}}
"""


def descriptor(start: int, leading: int, stride: int, *, swizzle: int = 0, base: int = 0) -> int:
    """A matrix descriptor; offsets in bytes."""
    number = SWIZZLES.index(swizzle)
    fields = ((start, 0), (leading, 16), (stride, 32))
    return sum((x >> 4 & 0x3FFF) << bit for x, bit in fields) | base << 49 | number << 62


# Places of the sums and of A: warp, lane, and what each register holds (PTX ISA, wgmma).


def _places(form: Form) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of each element of the sums: [register][thread][half, of FP16]."""
    thread = np.arange(THREADS)
    halves = 2 if form.sums == "f16" else 1
    number = np.arange(form.words * halves).reshape(form.words, halves)[:, None, :]
    group, within = number // 4, number % 4
    row = 16 * (thread // 32) + thread % 32 // 4
    return (
        row[None, :, None] + 8 * (within // 2),
        8 * group + 2 * (thread % 4)[None, :, None] + within % 2,
    )


def sums_to_registers(form: Form, sums: Words) -> Words:
    """[blocks][64][n] as [blocks][register][thread]."""
    row, column = _places(form)
    found = sums[:, row, column].astype(np.uint32)
    if form.sums != "f16":
        return found[..., 0]
    return (found[..., 0] | found[..., 1] << 16).astype(np.uint32)


def sums_of_registers(form: Form, registers: Words) -> Words:
    row, column = _places(form)
    sums = np.zeros((len(registers), ROWS, form.n), dtype=np.uint32)
    parts = [registers & 0xFFFF, registers >> 16] if form.sums == "f16" else [registers]
    sums[:, row, column] = np.stack(parts, axis=-1)
    return sums


def rows_to_registers(rows: Bytes) -> Words:
    """Rows of A, [blocks][64][32 bytes a link], as [blocks][link and register][thread]."""
    blocks, _, size = rows.shape
    words = np.ascontiguousarray(rows).view(np.uint32).reshape(blocks, ROWS, size // ROW_BYTES, 8)
    thread = np.arange(THREADS)
    row = 16 * (thread // 32) + thread % 32 // 4
    found = [
        words[:, row + 8 * (r % 2), link, 4 * (r // 2) + thread % 4]
        for link in range(size // ROW_BYTES)
        for r in range(4)
    ]
    return np.stack(found, axis=1)


def _image(rows: Bytes) -> Bytes:
    """Rows of 32 bytes as they are in shared memory, K-major and without a swizzle."""
    blocks, count, _ = rows.shape
    pieces = rows.reshape(blocks, count // 8, 8, 2, 16).swapaxes(2, 3)
    return np.ascontiguousarray(pieces).reshape(blocks, -1)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Arguments of `product` for a number of blocks."""

    arguments: list[NDArray[np.generic] | np.generic]
    blocks: int
    shared_bytes: int


def inputs(form: Form, a: Bytes, b: Bytes, c: Words, *, scale: int = 1) -> Inputs:
    """Of a, [blocks][64][32 bytes a link], b, [blocks][n][..], and c, [blocks][64][n], as bits."""
    blocks = len(a)
    images, descriptors = list[Bytes](), list[tuple[int, int, int]]()
    for link in range(form.links):
        part = slice(ROW_BYTES * link, ROW_BYTES * (link + 1))
        for rows in (a, b):
            place = sum(x.shape[1] for x in images)
            images.append(_image(rows[:, :, part]))
            descriptors.append((place, 128, 256))
    image = np.concatenate(images, axis=1)
    return Inputs(
        arguments=launch_arguments(
            form,
            image,
            np.array([[descriptor(place + 0x400, *x) for place, *x in descriptors]] * blocks),
            rows_to_registers(a),
            sums_to_registers(form, c),
            scale,
        ),
        blocks=blocks,
        shared_bytes=image.shape[1],
    )


def launch_arguments(
    form: Form,
    images: Bytes,
    descriptors: NDArray[np.generic],
    registers_of_a: Words,
    c: Words,
    scale: int = 1,
) -> list[NDArray[np.generic] | np.generic]:
    """The arguments of `product`; `c` and the result are [blocks][register][thread]."""
    kind = np.float32 if form.sums == "f32" else np.uint32
    start = np.ascontiguousarray(c).view(kind)
    return [
        np.ascontiguousarray(images).view(np.uint32),
        np.ascontiguousarray(registers_of_a),
        start,
        np.zeros_like(start),
        descriptors.astype(np.uint64),
        np.int32(images.shape[1] // 16),
        np.int32(scale),
    ]


def results(form: Form, d: NDArray[np.generic]) -> Words:
    """The sums [blocks][64][n] of what the kernel stored."""
    return sums_of_registers(form, d.view(np.uint32).reshape(-1, form.words, THREADS))
