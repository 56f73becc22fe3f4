"""Probes of floating-point instructions, and the operands that they are tried on."""

import re
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tests.probe import State, probe
from validation.corpus.exact import DOWN, UP, ZERO

DIRECTIONS = ("", f".{DOWN}", f".{UP}", f".{ZERO}")

Words = NDArray[np.uint32]


# The relations of which each comparison of SASS is true.
COMPARISONS = {
    "F": "", "LT": "L", "EQ": "E", "LE": "LE", "GT": "G", "NE": "LG", "GE": "GE", "NUM": "LEG",
    "NAN": "U", "LTU": "LU", "EQU": "EU", "LEU": "LEU", "GTU": "GU", "NEU": "LGU", "GEU": "GEU",
    "T": "LEGU",
}  # fmt: skip
COMBINATIONS = {
    "AND": lambda x, y: x and y,
    "OR": lambda x, y: x or y,
    "XOR": lambda x, y: x != y,
}


def edges(form):
    """Numbers at which something changes, of both signs."""
    one, unit = form.one, 1 << form.fraction_bits
    positive = [
        0, 1, unit - 1, unit, unit + 1, one >> 1 & form.infinity, one - unit, one - 1, one, one + 1,
        one + unit // 2, one + unit, form.infinity - 1, form.infinity, form.infinity + 1, form.nan,
        one - form.fraction_bits * unit, one + form.fraction_bits * unit,
    ]  # fmt: skip
    return [x & ~form.sign | sign for x in positive for sign in (0, form.sign)]


def samples(form, rng, count):
    """A third at an edge, a third near 1 with few bits or many, the rest anything."""
    at_edges = rng.choice(np.array(edges(form), np.uint64), count)
    anything = rng.integers(0, 1 << 64, count, dtype=np.uint64, endpoint=False)
    anything >>= np.uint64(64 - form.bits)
    exponents = (form.one >> form.fraction_bits) + rng.integers(-6, 7, count)
    fractions = anything & np.uint64((1 << form.fraction_bits) - 1)
    fractions = np.where(
        rng.integers(0, 2, count), fractions, fractions & fractions << np.uint64(3)
    )
    fractions &= np.uint64((1 << form.fraction_bits) - 1)
    near = exponents.astype(np.uint64) << np.uint64(form.fraction_bits) | fractions
    near |= rng.integers(0, 2, count).astype(np.uint64) << np.uint64(form.bits - 1)
    kind = rng.integers(0, 3, count)
    return [int(x) for x in np.choose(kind, [at_edges, near, anything])]


def triples(form, seed, count=256, *, with_edges=False):
    """Three columns of operands; `with_edges`, all pairs of edges and -0 stand behind them."""
    rng = np.random.default_rng(seed)
    rows = [*zip(*(samples(form, rng, count) for _ in range(3)), strict=True)]
    if with_edges:
        rows += [(a, b, form.sign) for a, b in product(edges(form), repeat=2)]
    return [list(column) for column in zip(*rows, strict=True)]


# Probing: columns of any length, 32 at a time, under a guard that lets some of them through.

Columns = dict[int, list[int]]


def probed(text, columns, written=4, *, pairs=False):
    """The register that an instruction writes, for each row of the columns of registers.

    With `pairs`, columns and results are those of register pairs. Where the guard @P6, false in
    every seventh row, holds, the register; elsewhere it is checked that it keeps what it was.
    """
    length = len(next(iter(columns.values())))
    found = []
    for start in range(0, length, 32):
        state = State()
        fill(state, written, [0xDEADBEEFDEADBEEF >> (0 if pairs else 32)] * 32, pairs)
        for register, values in columns.items():
            fill(state, register, values[start : start + 32], pairs)
        before = read(state, written, pairs)
        values = read(probe(text, state), written, pairs)
        state.p[6] = sum(1 << lane for lane in range(32) if lane % 7)
        kept = [value if lane % 7 else before[lane] for lane, value in enumerate(values)]
        guarded = read(probe(f"@P6 {text}", state), written, pairs)
        assert guarded == kept, f"{text}: the guard lets other lanes through"
        found += values
    return found[:length]


def fill(state, register, values, pairs):
    state.r[register, : len(values)] = [value & 0xFFFFFFFF for value in values]
    if pairs:
        state.r[register + 1, : len(values)] = [value >> 32 for value in values]


def read(state, register, pairs):
    low = [int(x) for x in state.r[register]]
    if not pairs:
        return low
    return [x | int(y) << 32 for x, y in zip(low, state.r[register + 1], strict=True)]


def check(text, columns, reference, *, pairs=False):
    """R4 (a pair with `pairs`) is what the reference says of each row."""
    rows = zip(*columns.values(), strict=True)
    for row, got in zip(rows, probed(text, columns, pairs=pairs), strict=True):
        want = reference(*row)
        operands = ", ".join(f"{x:#x}" for x in row)
        assert got == want, f"{text} of {operands}: {got:#x}, not {want:#x}"


def single(*numbers):
    """The bits of numbers in single precision."""
    return [int(x) for x in np.array(numbers, np.float32).view(np.uint32)]


def uniform(text):
    """The uniform twin of an instruction: `UFADD UR4, UR2, UR3`."""
    return re.sub(r"(?<![.\w])(R\d|RZ|P\d|PT)", r"U\1", f"U{text}")


OPERAND = re.compile(r"(-?)(\|?)(R\d|RZ|\+INF|[-\d.e+]+)\|?(?:\.reuse)?")


def operand(form, text, registers):
    """The bits of an operand as nvdisasm prints it: of a register or a number, with its signs."""
    negated, absolute, name = OPERAND.fullmatch(text).groups()
    if name[0] == "R":
        bits = 0 if name == "RZ" else registers[int(name[1:])]
    else:
        bits = form.infinity if name == "+INF" else form.rounded(Fraction(name))
    bits = bits & ~form.sign if absolute else bits
    return bits ^ form.sign if negated else bits


def packed(low, high):
    return [x | y << 16 for x, y in zip(low, high, strict=True)]
