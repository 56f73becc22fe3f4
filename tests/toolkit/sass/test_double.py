"""Double precision, one instruction at a time, beside exact fractions.

R2, R6 and R8 are the register pairs a, b and c; the pair R4 is written.
"""

import re
from itertools import product

import numpy as np
import pytest

from tests.probe import State, probe
from tests.toolkit.sass.exact_floats import (
    DIRECTIONS,
    check,
    edges,
    fill,
    operand,
    samples,
    triples,
)
from validation.corpus.exact import BINARY64, NEAREST

D = BINARY64
QUIET = 1 << 51
TEXTS = {"DADD": "R4, R2, R6", "DMUL": "R4, R2, R6", "DFMA": "R4, R2, R6, R8"}


def exact(opcode, a, b, c=0, direction=NEAREST):
    """A NaN among the operands passes, made quiet: the second before the third."""
    operands = (b, c, a) if opcode == "DFMA" else (b, a)
    nans = [x | QUIET for x in operands if D.is_nan(x)]
    if nans:
        return nans[0]
    if opcode == "DADD":
        return D.fused(a, D.one, b, direction)
    return D.fused(a, b, None if opcode == "DMUL" else c, direction)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("opcode", TEXTS)
def test_arithmetic_rounds_once(opcode, direction):
    a, b, c = triples(D, seed=len(opcode + direction), count=512, with_edges=not direction)
    name = direction.strip(".") or NEAREST
    check(
        f"{opcode}{direction} {TEXTS[opcode]}",
        {2: a, 6: b, 8: c},
        lambda a, b, c: exact(opcode, a, b, c, name),
        pairs=True,
    )


def test_dfma_rounds_the_sum_and_not_the_product():
    a = samples(D, np.random.default_rng(1), 320)
    b = samples(D, np.random.default_rng(2), 320)
    c = [D.fused(x, y, None) ^ D.sign for x, y in zip(a, b, strict=True)]
    columns = {2: a, 6: b, 8: c}
    check("DFMA R4, R2, R6, R8", columns, lambda *row: exact("DFMA", *row), pairs=True)


@pytest.mark.parametrize(
    "text",
    [
        "DADD R4, -R2, |R6|",
        "DADD R4, -RZ, -R2",
        "DADD R4, R2, 0.5",
        "DADD R4, R2, +INF",
        "DMUL R4, R2, 8.98846567431157953865e+307",
        "DFMA R4, -R2, R6, 0.5",
        "DFMA R4, R2, |R6|, -R8",
        "DFMA R4, R2, 6.75539944105574400000e+15, R8",
    ],
)
def test_operands_in_every_form(text):
    a, b, c = triples(D, seed=3, count=128)
    opcode, _, *operands = re.split(",? ", text)

    def reference(*row):
        registers = dict(zip((2, 6, 8), row, strict=True))
        plain = [operand(D, name.strip("-|"), registers) for name in operands]
        signed = [operand(D, name, registers) for name in operands]
        # the sign of a NaN stays what it is
        pairs = zip(plain, signed, strict=True)
        return exact(opcode, *(x if D.is_nan(x) else y for x, y in pairs))

    check(text, {2: a, 6: b, 8: c}, reference, pairs=True)


def test_constants_and_uniform_registers_are_pairs():
    state = State()
    a = samples(D, np.random.default_rng(4), 32)
    fill(state, 2, a, pairs=True)
    state.ur[4], state.ur[5] = 0, 0x40040000  # 2.5
    constants = {(2, 8): 1, (2, 12): 0xBFF00000}  # -(1 + 2^-52)
    text = "DADD R4, R2, -UR4; DMUL R6, R2, c[0x2][0x8]"
    after = probe(text, state, constants=constants)
    two_and_a_half = 0x4004000000000000
    for lane, x in enumerate(a):
        sum_, product_ = (int(after.r[k, lane]) | int(after.r[k + 1, lane]) << 32 for k in (4, 6))
        assert sum_ == exact("DADD", x, two_and_a_half ^ D.sign, 0)
        assert product_ == exact("DMUL", x, 0xBFF0000000000001, 0)


@pytest.mark.parametrize("name", ["MIN", "MAX"])
def test_the_minima_and_maxima_that_compilers_emit(name):
    """DSETP.MAX says which to take, and whether what was taken is to be made quiet."""
    text = f"""DSETP.{name}.AND P0, P1, R2, R6, PT
        SEL R4, R2, R6, P0
        FSEL R5, R3, R7, P0
        @P1 LOP3.LUT R5, R7, 0x80000, RZ, 0xfc, !PT"""
    pairs = list(product(edges(D), repeat=2))
    pairs += zip(*triples(D, seed=6)[:2], strict=True)
    for start in range(0, len(pairs), 32):
        rows = pairs[start : start + 32]
        state = State()
        fill(state, 2, [a for a, _ in rows], pairs=True)
        fill(state, 6, [b for _, b in rows], pairs=True)
        after = probe(text, state)
        for lane, (a, b) in enumerate(rows):
            got = int(after.r[4, lane]) | int(after.r[5, lane]) << 32
            both_nan = D.is_nan(a) and D.is_nan(b)
            want = b | QUIET if both_nan else D.extreme(a, b, least=name == "MIN")
            assert got == want, (hex(a), hex(b), hex(got))
