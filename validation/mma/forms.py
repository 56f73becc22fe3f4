"""Forms of `mma.sync`, a kernel of each, and where its operands are in the registers of a warp.

Matrices are arrays of bits: A [tiles, m, k], B [tiles, n, k] (a row for each column), C and D
[tiles, m, n]. Elements below 8 bits have a byte each; bits have a word for 32 of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES, THREADS = 32, 128
N = 8
BITS = {
    **{"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "f32": 32, "s32": 32, "b1": 1},
    **dict.fromkeys(("e4m3", "e5m2", "s8", "u8"), 8),
    **dict.fromkeys(("s4", "u4"), 4),
}

Array = NDArray[Any]


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

    @property
    def name(self) -> str:
        parts = [f"m{self.m}n{N}k{self.k}", self.sums, self.a]
        parts += [self.b] * (self.a != self.b) + [self.option.replace(".popc", "")]
        return "_".join(filter(None, parts)).replace("satfinite", "sat")

    @property
    def family(self) -> str:
        """The instruction of machine code, of forms that it has."""
        if self.a in ("e4m3", "e5m2"):
            return "FP8"
        if self.a in ("s4", "u4"):
            return "4 bits"
        return {"f64": "DMMA", "b1": "BMMA", "s8": "IMMA", "u8": "IMMA"}.get(self.a, "HMMA")

    @property
    def length(self) -> int:
        """Elements of a row of A as arrays have them: words of 32 bits, else K."""
        return self.k // 32 if self.a == "b1" else self.k

    @property
    def element(self) -> np.dtype[Any]:
        return np.dtype(f"u{max(1, (32 if self.a == 'b1' else BITS[self.a]) // 8)}")

    @property
    def sum(self) -> np.dtype[Any]:
        return np.dtype(f"u{BITS[self.sums] // 8}")

    def registers(self, operand: str) -> int:
        """Registers of 32 bits of each lane."""
        rows, columns = {"a": (self.m, self.k), "b": (N, self.k)}.get(operand, (self.m, N))
        bits = BITS[self.a if operand in "ab" else self.sums]
        return rows * columns * bits // (32 * LANES)

    def ptx(self) -> str:
        types = f"{self.sums}.{self.a}.{self.b}.{self.sums}"
        shape = f"mma.sync.aligned.m{self.m}n{N}k{self.k}.row.col"
        if self.option.endswith("popc"):
            return f"{shape}.{types}.{self.option}"
        return f"{shape}.{self.option}.{types}" if self.option else f"{shape}.{types}"


def _all() -> list[Form]:
    found = []
    for k in (8, 16):
        for kind, sums in (("f16", "f32"), ("bf16", "f32"), ("f16", "f16")):
            least = 75 if (kind, k) == ("f16", 8) else 80
            found.append(Form(m=16, k=k, a=kind, b=kind, sums=sums, capability=least))
    found += [Form(m=16, k=k, a="tf32", b="tf32", sums="f32") for k in (4, 8)]
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            for k in (16, 32):
                for sums in ("f32", "f16"):
                    found.append(Form(m=16, k=k, a=a, b=b, sums=sums, capability=89))
    for bits in ("8", "4"):
        for a in "su":
            for b in "su":
                for option in ("", "satfinite"):
                    for m, k in ((8, 16), (16, 16), (16, 32)):
                        long = k if bits == "8" else 2 * k
                        found.append(
                            Form(
                                **{"m": m, "k": long, "a": a + bits, "b": b + bits},
                                **{"sums": "s32", "option": option},
                                capability=75 if m == 8 else 80,
                            )
                        )
    for option in ("and.popc", "xor.popc"):
        for m, k in ((8, 128), (16, 128), (16, 256)):
            least = 75 if m == 8 and option[0] == "x" else 80
            found.append(
                Form(m=m, k=k, a="b1", b="b1", sums="s32", option=option, capability=least)
            )
    for m, k in ((8, 4), (16, 4), (16, 8), (16, 16)):
        for option in ("", "rz", "rm", "rp"):
            least = 80 if m == 8 else 90
            found.append(
                Form(m=m, k=k, a="f64", b="f64", sums="f64", option=option, capability=least)
            )
    return found


FORMS = {form.name: form for form in _all()}


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
    inputs = [f'"{of_inputs}"({x}[{k}])' for x, n in zip("ab", counts, strict=False) for k in range(n)]
    inputs += [f'"{letter}"(c[{k}])' for k in range(counts[2])]
    outputs = [f'"={letter}"(d[{k}])' for k in range(counts[3])]
    element = "double" if double else "unsigned"
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS}) {form.name}(
    const {element} *of_a, const {element} *of_b, const {kind} *of_c, {kind} *of_d, int tiles)
{{
    const int tile = blockIdx.x * {THREADS // LANES} + threadIdx.x / {LANES};
    const int lane = threadIdx.x % {LANES};
    if (tile >= tiles) return;
    {element} a[{counts[0]}], b[{counts[1]}];
    {kind} c[{counts[2]}], d[{counts[3]}];
    for (int k = 0; k < {counts[0]}; ++k) a[k] = of_a[(tile * {counts[0]} + k) * {LANES} + lane];
    for (int k = 0; k < {counts[1]}; ++k) b[k] = of_b[(tile * {counts[1]} + k) * {LANES} + lane];
    for (int k = 0; k < {counts[2]}; ++k) c[k] = of_c[(tile * {counts[2]} + k) * {LANES} + lane];
    asm volatile("{form.ptx()} {", ".join(operands)};"
                 : {", ".join(outputs)}
                 : {", ".join(inputs)});
    for (int k = 0; k < {counts[3]}; ++k) of_d[(tile * {counts[3]} + k) * {LANES} + lane] = d[k];
}}
"""


def _packed(form: Form, rows: Array) -> Array:
    """Rows of elements as words of 32 bits, or of 64 for double precision."""
    if BITS[form.a] == 4:
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


def arguments(form: Form, a: Array, b: Array, c: Array) -> list[Any]:
    """Arguments of the kernel; the last array is its result (`sums_of_registers`)."""
    real = {"f64": np.float64, "f32": np.float32}
    of_sums = real.get(form.sums, np.uint32)
    start = sums_to_registers(form, c).view(of_sums)
    inputs = [operand_to_registers(form, x) for x in (a, b)]
    if form.a == "f64":
        inputs = [x.view(np.float64) for x in inputs]
    return [*inputs, start, np.zeros_like(start), np.int32(len(a))]


def blocks(tiles: int) -> int:
    return -(-tiles * LANES // THREADS)
