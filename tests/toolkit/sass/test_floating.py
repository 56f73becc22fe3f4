"""Single precision, one instruction at a time, beside exact fractions.

R2, R3 and R5 are the operands a, b and c; R4 is written.
"""

import re
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

from tests.probe import State, probe
from tests.sampling import sampled
from tests.toolkit.sass.exact_floats import (
    COMBINATIONS,
    COMPARISONS,
    DIRECTIONS,
    check,
    edges,
    fill,
    operand,
    probed,
    samples,
    single,
    triples,
    uniform,
)
from validation.corpus.exact import BINARY32, BINARY64, NEAREST

F = BINARY32
TEXTS = {"FADD": "R4, R2, R3", "FMUL": "R4, R2, R3", "FFMA": "R4, R2, R3, R5"}
SCALES = {f"D{n}": Fraction(1, n) for n in (2, 4, 8)} | {f"M{n}": n for n in (2, 4, 8)}


def saturated(x):
    if F.is_nan(x) or F.is_negative(x):
        return 0
    return min(x, F.one)


def arithmetic(opcode, a, b, c=F.sign):
    """Result of an instruction with its modifiers."""
    name, *modifiers = opcode.split(".")
    if "FTZ" in modifiers:
        a, b, c = map(F.flushed, (a, b, c))
    terms = {"FADD": (a, F.one, b), "FMUL": (a, b, None), "FFMA": (a, b, c)}
    direction = next((m for m in modifiers if f".{m}" in DIRECTIONS), NEAREST)
    result = F.fused(*terms[name], direction)
    factors = [SCALES[m] for m in modifiers if m in SCALES]
    if factors and F.is_finite(a) and F.is_finite(b) and (exact := F.value(a) * F.value(b)):
        result = F.rounded(exact * factors[0], direction)
    result = F.flushed(result) if "FTZ" in modifiers else result
    return saturated(result) if "SAT" in modifiers else result


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("saturate", ["", ".SAT"])
@pytest.mark.parametrize("flush", ["", ".FTZ"])
@pytest.mark.parametrize("opcode", TEXTS)
def test_arithmetic_rounds_once(opcode, flush, saturate, direction):
    modifiers = flush + direction + saturate
    a, b, c = triples(F, seed=len(opcode + modifiers), with_edges=not modifiers)
    columns = {2: a, 3: b, 5: c}
    check(f"{opcode}{modifiers} {TEXTS[opcode]}", columns, partial(arithmetic, opcode + modifiers))


@pytest.mark.parametrize(
    ("others", "scale"),
    sampled(product(["", ".FTZ", ".RZ", ".FTZ.SAT", ".RP"], SCALES), key=lambda case: case[1]),
)
def test_a_product_is_scaled_before_it_is_rounded(scale, others):
    opcode = f"FMUL{others}.{scale}"
    a, b, _ = triples(F, seed=len(opcode), with_edges=True)
    check(f"{opcode} R4, R2, R3", {2: a, 3: b}, partial(arithmetic, opcode))


def test_ffma_is_not_the_rounded_double_precision_sum():
    # (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 is half way between two numbers; 2^-100 decides, but
    # double precision loses it and rounds to even
    a, c = single(1 + 2**-12, 2**-100)
    assert F.fused(a, a, c) != F.fused(a, a, c ^ F.sign)
    check("FFMA R4, R2, R2, R5", {2: [a, a], 5: [c, c ^ F.sign]}, lambda a, c: F.fused(a, a, c))


def test_ffma_cancels_exactly():
    a = samples(F, np.random.default_rng(5), 320)
    b = samples(F, np.random.default_rng(6), 320)
    c = [F.fused(x, y, None) ^ F.sign for x, y in zip(a, b, strict=True)]
    check("FFMA R4, R2, R3, R5", {2: a, 3: b, 5: c}, F.fused)


@pytest.mark.parametrize(
    "text",
    [
        "FADD R4, -R2, R3",
        "FADD R4, |R2|, -|R3|",
        "FADD R4, -R2, -RZ",
        "FADD R4, R2, 1.5",
        "FMUL R4, R2, -R3",
        "FMUL R4, R2, 1.175494350822287508e-38",
        "FMUL R4, R2, +INF",
        "FFMA R4, R2, R3, RZ",
        "FFMA R4, R2, R3, -RZ",
        "FFMA R4, -|R2|, R3, |R5|",
        "FFMA R4, RZ, R3, R5",
        "FFMA R4, R2.reuse, 1.4426950216293334961, -R5",
        "FFMA.FTZ R4, R2, -R3, R5",
        "FFMA.SAT R4, R2, R3, 0.5",
    ],
)
def test_operands_in_every_form(text):
    a, b, c = triples(F, seed=7, count=128)
    opcode, _, *operands = re.split(",? ", text)

    def reference(*row):
        registers = dict(zip((2, 3, 5), row, strict=True))
        return arithmetic(opcode, *(operand(F, name, registers) for name in operands))

    check(text, {2: a, 3: b, 5: c}, reference)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("FSEL R4, -R2, |R3|, PT", lambda a, b: a ^ F.sign),
        ("FSEL R4, R2, -|R3|, !PT", lambda a, b: b | F.sign),
        ("FSEL R4, RZ, 3.37028055040000000000e+12, !PT", lambda a, b: 0x54442D18),
    ],
)
def test_a_predicate_selects_a_number(text, reference):
    a, b, _ = triples(F, seed=7, count=128)
    check(text, {2: a, 3: b}, reference)


def test_a_result_may_stand_in_its_operand():
    a = samples(F, np.random.default_rng(7), 128)
    found = probed("FADD R2, R2, R2", {2: a}, 2)
    assert found == [F.fused(x, F.one, x) for x in a]


@pytest.mark.parametrize(
    "text",
    ["FADD R4, R2, R3", "FFMA.RZ R4, R2, R3, R5", "FMUL.FTZ.D2 R4, R2, R3", "FMNMX R4, R2, R3, PT"],
)
def test_uniform_twins_write_all_lanes(text):
    state = State()
    state.ur[2], state.ur[3], state.ur[5] = single(1.25, -3, 2.5)
    plain = State()
    plain.r[:] = state.ur
    after = probe(uniform(text), state, lanes=0xF0)
    np.testing.assert_array_equal(after.ur[4], probe(text, plain).r[4])


# Packed pairs, sm_100 and later: R2, R6 and R8 are pairs, R4 is written.


PAIR_FORMS = {
    "R2.F32x2.HI_LO": lambda low, high: (low, high),
    "-R2.F32x2.HI_LO": lambda low, high: (low ^ F.sign, high ^ F.sign),
    "|R2|.F32x2.HI_LO": lambda low, high: (low & ~F.sign, high & ~F.sign),
    "R2.F32x2.LO_HI": lambda low, high: (high, low),
    "R2.F32": lambda low, high: (low, low),
    "R2.F32x2.HI_LO.NP": lambda low, high: (low, high ^ F.sign),
    "R2.F32x2.HI_LO.PN": lambda low, high: (low ^ F.sign, high),
    "RZ.F32": lambda low, high: (0, 0),
    "-0.5": lambda low, high: (0xBF000000, 0xBF000000),
}


def as_pairs(low, high):
    return [x | y << 32 for x, y in zip(low, high, strict=True)]


@pytest.mark.parametrize("form", PAIR_FORMS)
@pytest.mark.parametrize("modifiers", ["", ".RM", ".FTZ", ".FTZ.RP", ".RZ"])
def test_packed_pairs(form, modifiers):
    low, other = triples(F, seed=9, count=64), triples(F, seed=10, count=64)
    columns = {k: as_pairs(x, y) for k, x, y in zip((2, 6, 8), low, other, strict=True)}

    def halves(x):
        return x & 0xFFFFFFFF, x >> 32

    for opcode in ("FADD", "FMUL", "FFMA"):

        def reference(a, b, c, opcode=opcode):
            terms = zip(halves(b), PAIR_FORMS[form](*halves(a)), halves(c), strict=True)
            low, high = (arithmetic(opcode + modifiers, *three) for three in terms)
            return low | high << 32

        third = ", R8.F32x2.HI_LO" if opcode == "FFMA" else ""
        text = f"{opcode}2{modifiers} R4, R6.F32x2.HI_LO, {form}{third}"
        check(text, columns, reference, pairs=True)


# Comparisons.


@pytest.mark.parametrize(
    ("comparison", "combination", "opcode", "flush", "form"),
    sampled(
        [
            (comparison, combination, *kind)
            for comparison in COMPARISONS
            for combination in COMBINATIONS
            for kind in (("F", "", F), ("F", ".FTZ", F), ("D", "", BINARY64))
        ],
        key=lambda case: (case[0], *case[2:4]),
    ),
)
def test_comparisons(comparison, combination, opcode, flush, form):
    """FSETP or DSETP, its opposite, and FSET in both of its results."""
    rng = np.random.default_rng(11)
    name, operands = f"{comparison}{flush}.{combination}", "R2, R8, !P3"
    text = f"{opcode}SETP.{name} P1, P2, {operands}; @P0 {opcode}SETP.{name} P4, PT, {operands}"
    if form is F:
        text += f"; FSET.BF.{name} R6, {operands}; FSET.{name} R7, {operands}"
    for _ in range(2):
        a, b = samples(form, rng, 32), samples(form, rng, 32)
        b[:8] = a[:8]
        state = State()
        fill(state, 2, a, form is BINARY64)
        fill(state, 8, b, form is BINARY64)
        state.p[0], state.p[3] = rng.integers(0, 1 << 32, 2, dtype=np.uint64)
        after = probe(text, state)
        if flush:
            a, b = (map(form.flushed, numbers) for numbers in (a, b))
        for lane, (x, y) in enumerate(zip(a, b, strict=True)):
            admitted, other = (int(state.p[k]) >> lane & 1 for k in (0, 3))
            truth = form.relation(x, y) in COMPARISONS[comparison]
            held, opposite = (COMBINATIONS[combination](t, not other) for t in (truth, not truth))
            bits = [int(after.p[k]) >> lane & 1 for k in (1, 2, 4)]
            assert bits == [held, opposite, held and admitted], (hex(x), hex(y))
            if form is F:
                assert after.r[6:8, lane].tolist() == ([F.one, 0xFFFFFFFF] if held else [0, 0])


def test_a_comparison_reads_numbers_with_their_signs():
    state = State()
    state.r[2], state.r[3] = single(-1.5, 1.5)
    after = probe(
        "FSETP.EQ.AND P0, PT, -R2, R3, PT; FSETP.LT.AND P1, PT, |R2|, R3, PT; "
        "FSETP.GT.AND P2, PT, -|R3|, -1.75, PT",
        state,
    )
    assert [int(after.p[k]) for k in range(3)] == [0xFFFFFFFF, 0, 0xFFFFFFFF]


# Minima and maxima.


@pytest.mark.parametrize("least", ["PT", "!PT"])
@pytest.mark.parametrize("nan", ["", ".NAN"])
@pytest.mark.parametrize("flush", ["", ".FTZ"])
def test_minima_and_maxima(flush, nan, least):
    def reference(a, b, c):
        if flush:
            a, b = F.flushed(a), F.flushed(b)
        return F.extreme(a, b, least=least == "PT", nan_wins=bool(nan))

    def of_magnitudes(a, b, c):
        result = reference(a & ~F.sign, b & ~F.sign, c)
        return result if F.is_nan(result) else result | (a ^ b) & F.sign

    def of_three(a, b, c):
        return reference(reference(a, b, 0), c, 0)

    pairs = list(product(edges(F), repeat=2))
    rng = np.random.default_rng(12)
    a = [a for a, _ in pairs] + samples(F, rng, 64)
    b = [b for _, b in pairs] + samples(F, rng, 64)
    columns = {2: a, 3: b, 5: samples(F, rng, len(a))}
    check(f"FMNMX{flush}{nan} R4, R2, R3, {least}", columns, reference)
    check(f"FMNMX{flush}{nan}.XORSIGN R4, |R2|, |R3|, {least}", columns, of_magnitudes)
    check(f"FMNMX3{flush}{nan} R4, R2, R3, R5, {least}", columns, of_three)


def test_each_lane_may_ask_for_its_own_extreme():
    state = State()
    state.r[2], state.r[3] = single(3, -4)
    state.p[0] = 0xFF
    after = probe("FMNMX R4, R2, R3, P0", state)
    low, high = single(-4, 3)
    assert after.r[4].tolist() == [low] * 8 + [high] * 24


# Division: the fast path that compilers emit, where FCHK lets it run, divides exactly.

FAST_DIVISION = """MUFU.RCP R6, R3
    FCHK P0, R2, R3
    FFMA R7, -R3, R6, 1
    FFMA R7, R6, R7, R6
    FFMA R6, R2, R7, RZ
    FFMA R8, -R3, R6, R2
    FFMA R4, R7, R8, R6"""


def division_cases(rng):
    """Anything; exponents at which the fast path ends to be right; fractions of all kinds."""
    exponents = rng.integers(0, 256, (2, 2048)).tolist()
    edges = [
        (ea, eb)
        for ea, eb in product(range(256), repeat=2)
        if ea in (24, 25) or eb in (0, 1, 252, 253) or ea - eb in (-125, -124, 126, 127)
    ]
    ea, eb = (
        np.array([*some, *more])
        for some, more in zip(exponents, zip(*edges, strict=True), strict=True)
    )
    anything = rng.integers(0, 1 << 23, (2, len(ea)))
    fractions = np.choose(
        rng.integers(0, 5, (2, len(ea))), [0, (1 << 23) - 1, 1, anything, anything]
    )
    signs = rng.integers(0, 2, (2, len(ea)))
    a, b = signs << 31 | np.array([ea, eb]) << 23 | fractions
    whole = len(ea) & ~31  # warps
    return a[:whole].tolist(), b[:whole].tolist()


def test_where_the_fast_path_of_division_may_run_it_divides_exactly():
    a, b = division_cases(np.random.default_rng(13))
    with np.errstate(all="ignore"):
        quotients = np.array(a, np.uint32).view(np.float32) / np.array(b, np.uint32).view(
            np.float32
        )
    wanted = quotients.view(np.uint32)
    fast = 0
    for start in range(0, len(a), 32):
        state = State()
        rows = slice(start, start + 32)
        state.r[2], state.r[3] = a[rows], b[rows]
        after = probe(FAST_DIVISION, state)
        hard = (int(after.p[0]) >> np.arange(32) & 1).astype(bool)
        np.testing.assert_array_equal(after.r[4][~hard], wanted[rows][~hard])
        fast += int((~hard).sum())
    assert fast > len(a) / 4


@pytest.mark.parametrize(
    ("a", "b"), [(0, 1), (1, 0), (1, 1e-40), (1, 3e38), (1e-38, 1e-3), (1e-30, 1e30), (1, np.inf),
                 (np.nan, 1), (1e20, 1e-20)],
)  # fmt: skip
def test_extreme_divisions_take_the_slow_path(a, b):
    state = State()
    state.r[2], state.r[3] = single(a, b)
    assert probe("FCHK P0, R2, R3", state).p[0] == 0xFFFFFFFF
