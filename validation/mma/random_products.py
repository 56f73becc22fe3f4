"""Random products of every form on a GPU, which the simulator repeats.

    python -m validation.mma.random_products record   on a GPU: digests of its results
    python -m validation.mma.random_products compare  the simulator's, beside them

Operands are drawn by a seed. The record has a digest of the results of each form and class.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from analysis.geometry import Geometry
from toolkit import simulate
from toolkit.gpu.context import Gpu
from toolkit.gpu.launch import placed
from toolkit.launch.launch import buffers_of
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from validation import recordings
from validation.mma.forms import (
    BITS,
    FORMS,
    THREADS,
    Array,
    Form,
    N,
    arguments,
    blocks,
    source,
    sums_of_registers,
)

RECORD = Path(__file__).parent / "recorded" / "random_sm_90.json"
SEED, OUTPUTS = 57, 100_000  # of each class at least
ARCHITECTURE = "sm_90"

# Exponent bits and fraction bits; TF32 fills a register.
REALS = {
    **{"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2)},
    **{"f32": (8, 23), "f64": (11, 52)},
}
INFINITE = {"e4m3": False}

Operands = tuple[Array, Array, Array]
Draw = Callable[[np.random.Generator, Form, int], Operands]


@dataclass(frozen=True)
class Shapes:
    """Shapes of A, B and C."""

    a: tuple[int, int, int]
    b: tuple[int, int, int]
    c: tuple[int, int, int]


def _shapes(form: Form, tiles: int) -> Shapes:
    return Shapes(
        (tiles, form.m, form.length), (tiles, N, form.length), (tiles, form.m, N)
    )


def _bits(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    size = max(8, 32 if kind == "b1" else BITS[kind])
    found = rng.integers(0, 1 << size, shape, dtype=np.dtype(f"u{size // 8}"))
    return (found & 15).astype(np.uint8) if BITS[kind] == 4 else found


def _real(
    rng: np.random.Generator, shape: tuple[int, ...], kind: str, low: int, high: int
) -> Array:
    """Numbers of random signs and fractions with exponent fields from `low` to `high`."""
    exponent_bits, fraction_bits = REALS[kind]
    top = (1 << exponent_bits) - 1
    found = _bits(rng, shape, kind)
    one = found.dtype.type(1)
    field = rng.integers(max(low, 0), min(high, top - 1) + 1, shape).astype(found.dtype)
    kept = found & ~found.dtype.type(top << fraction_bits)
    return (kept | field << (one * fraction_bits)).astype(found.dtype)


def _bias(kind: str) -> int:
    return (1 << REALS[kind][0] - 1) - 1


def _around(rng: np.random.Generator, form: Form, tiles: int, spread: int) -> Operands:
    """Exponents of A and B within `spread` of that of 1, of C within twice that."""
    at = _shapes(form, tiles)
    places = zip((at.a, at.b, at.c), (form.a, form.b, form.sums), (1, 1, 2), strict=True)
    a, b, c = (
        _real(rng, x, kind, _bias(kind) - times * spread, _bias(kind) + times * spread)
        for x, kind, times in places
    )
    return a, b, c


def _ordinary(rng: np.random.Generator, form: Form, tiles: int) -> Operands:
    return _around(rng, form, tiles, 3)


def _wide(rng: np.random.Generator, form: Form, tiles: int) -> Operands:
    return _around(rng, form, tiles, 1 << 20)


def _cancelling(rng: np.random.Generator, form: Form, tiles: int) -> Operands:
    """Neighbours in K cancel, but for the lowest bit of some."""
    a, b, c = _around(rng, form, tiles, 6)
    one = b.dtype.type(1)
    a[..., 1::2] = a[..., ::2]
    flipped = b[..., ::2] ^ one << one * (8 * b.itemsize - 1)
    lowest = one << one * (13 if form.b == "tf32" else 0)
    b[..., 1::2] = flipped ^ lowest * rng.integers(0, 2, flipped.shape).astype(b.dtype)
    small = rng.integers(0, 2, c.shape).astype(bool)
    c[small] = 0
    return a, b, c


def _subnormal(rng: np.random.Generator, form: Form, tiles: int) -> Operands:
    """Subnormal operands, and products as small as the least sums."""
    at = _shapes(form, tiles)
    a, c = _real(rng, at.a, form.a, 0, 2), _real(rng, at.c, form.sums, 0, 2)
    least = _bias(form.a) + _bias(form.b) - (_bias(form.sums) - 1)
    return a, _real(rng, at.b, form.b, max(0, least - 4), max(2, least + 4)), c


def _zeros(rng: np.random.Generator, form: Form, tiles: int) -> Operands:
    """Zeros of both signs, in most places."""
    operands = _around(rng, form, tiles, 3)
    for x in operands:
        sign = x & x.dtype.type(1 << 8 * x.itemsize - 1)
        x[...] = np.where(rng.random(x.shape, np.float32) < 0.8, sign, x)
    return operands


def _specials(rng: np.random.Generator, form: Form, tiles: int) -> Operands:
    """Inf, NaN and zeros among numbers."""
    operands = _around(rng, form, tiles, 3)
    for x, kind in zip(operands, (form.a, form.b, form.sums), strict=True):
        exponent_bits, fraction_bits = REALS[kind]
        inf = x.dtype.type((1 << exponent_bits) - 1 << fraction_bits)
        sign = x & x.dtype.type(1 << 8 * x.itemsize - 1)
        drawn = rng.random(x.shape, np.float32)
        if INFINITE.get(kind, True):
            x[...] = np.where(drawn < 0.02, sign | inf, x)
        x[...] = np.where((drawn > 0.02) & (drawn < 0.025), x | inf, x)
        x[...] = np.where(drawn > 0.95, sign, x)
    return operands


def _random(rng: np.random.Generator, form: Form, tiles: int) -> Operands:
    at = _shapes(form, tiles)
    return (
        _bits(rng, at.a, form.a),
        _bits(rng, at.b, form.b),
        _bits(rng, at.c, form.sums),
    )


def _extremes(rng: np.random.Generator, form: Form, tiles: int) -> Operands:
    """The least and the greatest integers; sums beside the ends of their range."""
    at = _shapes(form, tiles)
    values = {1: [0, 0xFFFFFFFF, 1, 0x80000000], 4: [0, 1, 7, 8, 15], 8: [0, 1, 127, 128, 255]}
    a, b = (
        rng.choice(np.array(values[BITS[kind]], dtype=form.element), shape)
        for kind, shape in ((form.a, at.a), (form.b, at.b))
    )
    near = rng.integers(0, 1 << 12, at.c, dtype=np.uint32)
    ends = rng.choice(np.array([0, 0x80000000, 0x7FFFF000, 0xFFFFF000], np.uint32), at.c)
    return a, b, ends + near


REAL_CLASSES: dict[str, Draw] = {
    "ordinary": _ordinary,
    "whole range": _wide,
    "cancellation": _cancelling,
    "subnormal": _subnormal,
    "signed zeros": _zeros,
    "Inf and NaN": _specials,
    "random bits": _random,
}
INTEGER_CLASSES: dict[str, Draw] = {"random bits": _random, "extremes": _extremes}


def classes(form: Form) -> dict[str, Draw]:
    return REAL_CLASSES if form.a in REALS else INTEGER_CLASSES


def operands(form: Form, name: str, outputs: int = OUTPUTS) -> Operands:
    """A, B and C of a class for at least so many outputs."""
    tiles = -(-outputs // (form.m * N))
    place = [list(FORMS).index(form.name), list(classes(form)).index(name)]
    return classes(form)[name](np.random.default_rng([SEED, *place]), form, tiles)


@cache
def code(arch: str = ARCHITECTURE) -> Kernel:
    """Machine code of all forms that `arch` has."""
    has = int(arch.removeprefix("sm_"))
    text = "".join(source(form) for form in FORMS.values() if form.capability <= has)
    return compile_cubin(text, name="forms.cu", kernel=next(iter(FORMS)), arch=arch)


def of_simulator(form: Form, given: Operands, arch: str = ARCHITECTURE) -> Array:
    execution = simulate(
        code(arch).image,
        form.name,
        grid=blocks(len(given[0])),
        block=THREADS,
        arguments=arguments(form, *given),
        blocks="all",
        predict=False,
    )
    return sums_of_registers(form, execution.outputs[3])


def of_gpu(gpu: Gpu, form: Form, given: Operands) -> Array:
    kernel = gpu.load_image(code(gpu.device.sm_arch).image, form.name)
    values = arguments(form, *given)
    buffers = {position: gpu.upload(array) for position, array in buffers_of(values).items()}
    geometry = Geometry(grid=(blocks(len(given[0])), 1, 1), block=(THREADS, 1, 1))
    kernel.prepared(geometry, placed(values, buffers, {}))()
    result = np.empty_like(values[3])
    gpu.download(buffers[3], into=result)
    return sums_of_registers(form, result)


def digest(sums: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(sums).tobytes()).hexdigest()[:16]


def results(compute: Callable[[Form, Operands], Array], forms: Iterable[Form]) -> Iterator[Any]:
    """Rows of the record."""
    for form in forms:
        for name in classes(form):
            sums = compute(form, operands(form, name))
            yield {
                "form": form.name,
                "class": name,
                "outputs": sums.size,
                "digest": digest(sums),
            }


def record() -> None:
    with Gpu() as gpu:
        rows = list(results(lambda form, given: of_gpu(gpu, form, given), FORMS.values()))
        about = {"device": gpu.device.name, "seed": SEED, "numpy": np.__version__}
    recordings.write(RECORD, {"about": about, "rows": rows})


def recorded() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = recordings.read(RECORD)["rows"]
    return found


def compare(names: Iterable[str]) -> int:
    """Print each form and class whose results differ from the record, and how many do not."""
    wanted = {(row["form"], row["class"]): row for row in recorded()}
    outputs = differing = 0
    for row in results(of_simulator, [FORMS[name] for name in names]):
        same = wanted[row["form"], row["class"]] == row
        outputs += row["outputs"]
        if not same:
            differing += 1
            print(f"{row['form']}, {row['class']}: another digest")
    print(f"{outputs:,} outputs; {differing} digests differ")
    return 1 if differing else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m validation.mma.random_products")
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("forms", nargs="*", default=list(FORMS), help="only these; by default all")
    chosen = parser.parse_args()
    if chosen.what == "record":
        record()
        return 0
    return compare(chosen.forms)


if __name__ == "__main__":
    raise SystemExit(main())
