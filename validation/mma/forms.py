"""Forms of `mma.sync`, a kernel of each, and where its operands are in the registers of a warp.

Matrices are arrays of bits: A [tiles, m, k], B [tiles, n, k] (a row for each column), C and D
[tiles, m, n]. Elements below 8 bits have a byte each; bits have a word for 32 of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES, THREADS = 32, 128
N = 8
BITS = {
    **{"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "f32": 32, "s32": 32, "b1": 1},
    **dict.fromkeys(("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "s8", "u8"), 8),
    **dict.fromkeys(("s4", "u4"), 4),
}
OF_FOUR_BITS = ("mxf4", "mxf4nvf4")  # kinds whose elements of E2M1 have no bytes of their own

Array = NDArray[Any]


# Byte and lanes of the scales of A, byte and lane of those of B.
Where = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True)
class Scales:
    """Scales of blocks: `count` for a row of A and for a column of B, of `kind` ue8m0 or ue4m3."""

    count: int
    kind: str
    where: Where

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.count}x_at_{''.join(map(str, self.where))}"

    def operands(self, first: int) -> str:
        """Operands of PTX that begin with operand `first`: a register and two constants each."""
        texts = (f"{{%{k}}}, {{%{k + 1}, %{k + 2}}}" for k in (first, first + 3))
        return ", " + ", ".join(texts)

    def inputs(self) -> list[str]:
        a_byte, a_lanes, b_byte, b_lane = self.where
        of_a = ['"r"(scales[0])', f'"n"({a_byte})', f'"n"({a_lanes})']
        return [*of_a, '"r"(scales[1])', f'"n"({b_byte})', f'"n"({b_lane})']


@dataclass(frozen=True, kw_only=True)
class Form:
    """One form of the instruction. `option`: "satfinite", "rz", "xor.popc" and the like."""

    m: int
    k: int
    a: str
    b: str
    sums: str
    option: str = ""
    capability: int = 80  # the least that has it
    kind: str = ""  # of sm_120a: "f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4"
    scales: Scales | None = None

    @property
    def name(self) -> str:
        parts = [f"m{self.m}n{N}k{self.k}", self.sums, self.a]
        parts += ["" if self.a == self.b else self.b, self.option.replace(".popc", "")]
        parts += [self.kind, self.scales.name if self.scales else ""]
        return "_".join(filter(None, parts)).replace("satfinite", "sat")

    @property
    def family(self) -> str:
        """The instruction of machine code, of forms that it has."""
        if self.kind in OF_FOUR_BITS:
            return "OMMA"
        if self.kind:
            return "QMMA"
        if self.a in ("e4m3", "e5m2"):
            return "FP8"
        if self.a in ("s4", "u4"):
            return "4 bits"
        return {"f64": "DMMA", "b1": "BMMA", "s8": "IMMA", "u8": "IMMA"}.get(self.a, "HMMA")

    @property
    def bits(self) -> int:
        """Bits of an element of A."""
        return 4 if self.kind in OF_FOUR_BITS else BITS[self.a]

    @property
    def length(self) -> int:
        """Elements of a row of A as arrays have them: words of 32 bits, else K."""
        return self.k // 32 if self.a == "b1" else self.k

    @property
    def element(self) -> np.dtype[Any]:
        return np.dtype(f"u{max(1, (32 if self.a == 'b1' else self.bits) // 8)}")

    @property
    def sum(self) -> np.dtype[Any]:
        return np.dtype(f"u{BITS[self.sums] // 8}")

    def registers(self, operand: str) -> int:
        """Registers of 32 bits of each lane."""
        rows, columns = {"a": (self.m, self.k), "b": (N, self.k)}.get(operand, (self.m, N))
        bits = self.bits if operand in "ab" else BITS[self.sums]
        return rows * columns * bits // (32 * LANES)

    def ptx(self) -> str:
        types = f"{self.sums}.{self.a}.{self.b}.{self.sums}"
        shape = f"mma.sync.aligned.m{self.m}n{N}k{self.k}.row.col"
        if self.kind:
            shape += f".kind::{self.kind}"
        if self.scales:
            vector = f"block_scale.scale_vec::{self.scales.count}X"
            return f"{shape}.{vector}.{types}.{self.scales.kind}"
        if self.option.endswith("popc"):
            return f"{shape}.{types}.{self.option}"
        return f"{shape}.{self.option}.{types}" if self.option else f"{shape}.{types}"


def _of_reals() -> Iterator[Form]:
    for k, (kind, sums) in product((8, 16), (("f16", "f32"), ("bf16", "f32"), ("f16", "f16"))):
        least = 75 if (kind, k) == ("f16", 8) else 80
        yield Form(m=16, k=k, a=kind, b=kind, sums=sums, capability=least)
    for k in (4, 8):
        yield Form(m=16, k=k, a="tf32", b="tf32", sums="f32")
    for a, b, k, sums in product(("e4m3", "e5m2"), ("e4m3", "e5m2"), (16, 32), ("f32", "f16")):
        yield Form(m=16, k=k, a=a, b=b, sums=sums, capability=89)


def _of_integers() -> Iterator[Form]:
    for bits, a, b, option in product((8, 4), "su", "su", ("", "satfinite")):
        for m, k in ((8, 16), (16, 16), (16, 32)):
            yield Form(
                m=m,
                k=k * 8 // bits,
                a=f"{a}{bits}",
                b=f"{b}{bits}",
                sums="s32",
                option=option,
                capability=75 if m == 8 else 80,
            )


def _of_bits() -> Iterator[Form]:
    for option, (m, k) in product(("and.popc", "xor.popc"), ((8, 128), (16, 128), (16, 256))):
        least = 75 if m == 8 and option.startswith("xor") else 80
        yield Form(m=m, k=k, a="b1", b="b1", sums="s32", option=option, capability=least)


def _of_doubles() -> Iterator[Form]:
    for (m, k), option in product(((8, 4), (16, 4), (16, 8), (16, 16)), ("", "rz", "rm", "rp")):
        least = 80 if m == 8 else 90
        yield Form(m=m, k=k, a="f64", b="f64", sums="f64", option=option, capability=least)


FIRST: Where = (0, 0, 0, 0)
PLACES: dict[int, tuple[Where, ...]] = {  # by the number of scales beside each other
    1: (FIRST, (1, 0, 2, 0), (0, 1, 3, 1), (2, 1, 0, 2), (3, 0, 1, 3)),
    2: (FIRST, (2, 0, 0, 1), (0, 1, 2, 2), (2, 1, 2, 3)),
    4: (FIRST, (0, 1, 0, 1), (0, 0, 0, 2), (0, 1, 0, 3)),
}


def _of_narrow() -> Iterator[Form]:
    """Forms of sm_120a with elements of 4 and 6 bits, and with block scales."""
    kinds = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
    of_bytes = partial(Form, m=16, k=32, capability=120)
    of_fours = partial(Form, m=16, k=64, a="e2m1", b="e2m1", sums="f32", capability=120)
    for a, b in product(kinds, kinds):
        yield of_bytes(a=a, b=b, sums="f32", kind="f8f6f4")
        yield of_bytes(a=a, b=b, sums="f16", kind="f8f6f4")
        places = PLACES[1] if (a, b) == ("e4m3", "e2m1") else (FIRST,)
        for where in places:
            scales = Scales(count=1, kind="ue8m0", where=where)
            yield of_bytes(a=a, b=b, sums="f32", kind="mxf8f6f4", scales=scales)
    for kind, scale, count in (
        ("mxf4", "ue8m0", 2),
        ("mxf4nvf4", "ue8m0", 2),
        ("mxf4nvf4", "ue4m3", 4),
    ):
        for where in PLACES[count]:
            yield of_fours(kind=kind, scales=Scales(count=count, kind=scale, where=where))


NARROW_FORMS = {form.name: form for form in _of_narrow()}
FORMS = {form.name: form for form in (*_of_reals(), *_of_integers(), *_of_bits(), *_of_doubles())}


SCALES_GIVEN = ", const unsigned *of_scales"
SCALES_READ = f"""const unsigned *const at = of_scales + 2 * {LANES} * tile + lane;
    const unsigned scales[2] = {{at[0], at[{LANES}]}};"""


def source(form: Form) -> str:
    """CUDA C++ of the kernel of a form, which has its name: a warp multiplies a tile."""
    counts = [form.registers(x) for x in "abcc"]
    double = form.sums == "f64"
    letter = {"f64": "d", "f32": "f"}.get(form.sums, "r")
    kind = {"f64": "double", "f32": "float"}.get(form.sums, "unsigned")
    if double:
        counts = [x // 2 for x in counts]
    number, operands = 0, []
    for count in (counts[3], *counts[:3]):
        operands.append("{" + ", ".join(f"%{number + k}" for k in range(count)) + "}")
        number += count
    of_inputs = "d" if double else "r"
    inputs = [
        f'"{of_inputs}"({x}[{k}])' for x, n in zip("ab", counts, strict=False) for k in range(n)
    ]
    inputs += [f'"{letter}"(c[{k}])' for k in range(counts[2])]
    more = read = scales = ""
    if form.scales:
        more, read, scales = SCALES_GIVEN, SCALES_READ, form.scales.operands(number)
        inputs += form.scales.inputs()
    outputs = [f'"={letter}"(d[{k}])' for k in range(counts[3])]
    element = "double" if double else "unsigned"
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS}) {form.name}(
    const {element} *of_a, const {element} *of_b, const {kind} *of_c, {kind} *of_d, int tiles{more})
{{
    const int tile = blockIdx.x * {THREADS // LANES} + threadIdx.x / {LANES};
    const int lane = threadIdx.x % {LANES};
    if (tile >= tiles) return;
    {element} a[{counts[0]}], b[{counts[1]}];
    {kind} c[{counts[2]}], d[{counts[3]}];
    for (int k = 0; k < {counts[0]}; ++k) a[k] = of_a[(tile * {counts[0]} + k) * {LANES} + lane];
    for (int k = 0; k < {counts[1]}; ++k) b[k] = of_b[(tile * {counts[1]} + k) * {LANES} + lane];
    for (int k = 0; k < {counts[2]}; ++k) c[k] = of_c[(tile * {counts[2]} + k) * {LANES} + lane];
    {read}
    asm volatile("{form.ptx()} {", ".join(operands)}{scales};"
                 : {", ".join(outputs)}
                 : {", ".join(inputs)});
    for (int k = 0; k < {counts[3]}; ++k) of_d[(tile * {counts[3]} + k) * {LANES} + lane] = d[k];
}}
"""


def _packed(form: Form, rows: Array) -> Array:
    """Rows of elements as words of 32 bits, or of 64 for double precision."""
    if form.bits == 4:
        rows = (rows[..., ::2] | rows[..., 1::2] << 4).astype(np.uint8)
    word = np.uint64 if form.a == "f64" else np.uint32
    return np.ascontiguousarray(rows).view(word)


def operand_to_registers(form: Form, rows: Array) -> Array:
    """A, or B, as [tiles, register, lane]: lane l has rows l / 4, and word l % 4 of each four."""
    words = _packed(form, rows)
    tiles, count, length = words.shape
    fourths = words.reshape(tiles, count // 8, 8, length // 4, 4)  # half, row, group, word of it
    return np.ascontiguousarray(fourths.transpose(0, 3, 1, 2, 4)).reshape(tiles, -1, LANES)


def sums_to_registers(form: Form, sums: Array) -> Array:
    """C as [tiles, register, lane]: lane l has two neighbours of rows l / 4 and 8 + l / 4."""
    tiles = len(sums)
    if form.sums == "f16":
        words = np.ascontiguousarray(sums).view(np.uint32)
        return words.reshape(tiles, form.m // 8, LANES)
    pairs = sums.reshape(tiles, form.m // 8, LANES, 2)
    return np.ascontiguousarray(pairs.transpose(0, 1, 3, 2)).reshape(tiles, -1, LANES)


def sums_of_registers(form: Form, registers: Array) -> Array:
    tiles = registers.size * registers.itemsize // (form.m * N * form.sum.itemsize)
    if form.sums == "f16":
        return registers.view(np.uint16).reshape(tiles, form.m, N)
    pairs = registers.view(form.sum).reshape(tiles, form.m // 8, 2, LANES)
    return np.ascontiguousarray(pairs.transpose(0, 1, 3, 2)).reshape(tiles, form.m, N)


def scales_to_registers(scales: Scales, of_a: Array, of_b: Array, others: Array) -> Array:
    """Words [tiles, operand, lane] that hold scales.

    Those of A are [tiles, 16, count], of B [tiles, 8, count]. `others` are the words before, of
    which every byte that holds no scale stays.
    """
    found = np.ascontiguousarray(others).view(np.uint8).reshape(len(of_a), 2, 8, 4, 4)
    a_byte, a_lanes, b_byte, b_lane = scales.where
    for n in range(scales.count):
        for half in range(2):
            rows = of_a[:, 8 * half : 8 * half + 8, n]
            found[:, 0, :, 2 * a_lanes + half, (a_byte + n) % 4] = rows
        found[:, 1, :, b_lane, (b_byte + n) % 4] = of_b[:, :, n]
    return found.view(np.uint32).reshape(len(of_a), 2, LANES)


def arguments(form: Form, a: Array, b: Array, c: Array, scales: Array | None = None) -> list[Any]:
    """Arguments of the kernel; the fourth is its result (`sums_of_registers`).

    `scales`: words of `scales_to_registers`, of a form that has them.
    """
    real = {"f64": np.float64, "f32": np.float32}
    of_sums = real.get(form.sums, np.uint32)
    start = sums_to_registers(form, c).view(of_sums)
    inputs = [operand_to_registers(form, x) for x in (a, b)]
    if form.a == "f64":
        inputs = [x.view(np.float64) for x in inputs]
    more = [] if scales is None else [scales]
    return [*inputs, start, np.zeros_like(start), np.int32(len(a)), *more]


def blocks(tiles: int) -> int:
    return -(-tiles * LANES // THREADS)
