"""Integer instructions, one at a time, beside what Python's integers say.

In every test R2, R3 and R5 are the operands a, b and c, R8, R10 and R12 the register pairs A, B
and C; R4 and the pair R6 are written. A reference gets these of one lane and says what is written,
by name, or only the value if one operand is; all else must stay as it was, in lanes that a guard
leaves out too.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product
from math import prod
from operator import add, sub

import numpy as np
import pytest

from tests.probe import FULL, State, lanes_of, probe, same
from tests.sampling import sampled

WORD, PAIR = 1 << 32, 1 << 64
EDGES = [0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 0x7FFF, 0x8000, 0xFFFF, 0x10000]
EDGES += [0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x55555555, 0xAAAAAAAA]
NAMES = {2: "a", 3: "b", 5: "c"}
PAIRS = {8: "A", 10: "B", 12: "C"}


@dataclass(frozen=True)
class Lane:
    """The operands of one lane."""

    a: int
    b: int
    c: int
    A: int
    B: int
    C: int
    p: tuple[bool, ...]


# "R4": a word, "R6": a pair, "P0": a truth; or the value of what the instruction names first.
Written = dict[str, int] | int
Reference = Callable[[Lane], Written]
FIRST_WRITTEN = re.compile(r" (?:(?:RZ|PT), )*([RP]\d)")


def words(rng, count):
    """Half of them at an edge, some small, the rest anything."""
    anything = rng.integers(0, WORD, count, dtype=np.uint64)
    small = rng.integers(0, 80, count, dtype=np.uint64)
    edges = rng.choice(np.array(EDGES, np.uint64), count)
    kind = rng.integers(0, 4, count)
    return np.select([kind < 2, kind == 2], [edges, small], anything).astype(np.uint32)


def random_state(rng):
    state = State()
    state.r[:16] = words(rng, 16 * 32).reshape(16, 32)
    state.ur[:16] = words(rng, 16)[:, None]
    state.p[:7] = rng.integers(0, WORD, 7, dtype=np.uint64)
    state.up[:7] = np.where(rng.integers(0, 2, 7), FULL, 0)
    return state


def lane_of(state, lane, *, uniform=False):
    file, predicates = (state.ur, state.up) if uniform else (state.r, state.p)
    registers = file[:, lane].tolist()
    values = {name: registers[index] for index, name in NAMES.items()}
    for index, name in PAIRS.items():
        values[name] = registers[index] | registers[index + 1] << 32
    return Lane(**values, p=tuple(bool(mask >> lane & 1) for mask in predicates.tolist()))


def expected(text, state, reference, lanes, *, uniform=False):
    """The state with what the reference says written in some lanes."""
    after = state.copy()
    file, predicates = (after.ur, after.up) if uniform else (after.r, after.p)
    for lane in lanes:
        written = reference(lane_of(state, lane, uniform=uniform))
        if not isinstance(written, dict):
            written = {FIRST_WRITTEN.search(text)[1]: written}
        for name, value in written.items():
            index = int(name[1:])
            if name[0] == "P":
                bit = np.uint32(1 << lane)
                predicates[index] = (predicates[index] & ~bit) | (bit if value else np.uint32(0))
            else:
                file[index, lane] = value % WORD
                if index == 6:
                    file[7, lane] = value % PAIR >> 32
    return after


def check(text, reference, *, seeds=1):
    """All lanes, those that a guard admits, and those of a warp that is not whole."""
    for seed in range(seeds):
        rng = np.random.default_rng([seed, *text.encode()])
        state = random_state(rng)
        wanted = expected(text, state, reference, range(32))
        same(probe(text, state), wanted)
        state = random_state(rng)
        guarded = re.sub(r"(^|; *)", r"\1@!P6 ", text)
        wanted = expected(text, state, reference, lanes_of(~int(state.p[6])))
        same(probe(guarded, state), wanted)
        part = int(rng.integers(1, WORD))
        wanted = expected(text, state, reference, lanes_of(part))
        same(probe(text, state, lanes=part), wanted)


def check_uniform(text, reference, *, seeds=1):
    """The uniform twin of an instruction: it writes all lanes, whoever is active."""
    twin = re.sub(r"\b(R\d|RZ|P\d|PT)", r"U\1", f"U{text.removeprefix('U')}")
    for seed, lanes in product(range(seeds), (FULL, 0x00F0)):
        state = random_state(np.random.default_rng([seed, lanes, *text.encode()]))
        wanted = expected(text, state, reference, range(32), uniform=True)
        same(probe(twin, state, lanes=lanes), wanted)
    state.up[6] = 0
    same(probe(f"@UP6 {twin}", state), state)


def signed(x, bits=32):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def parts(x, bits, *, is_signed=False):
    pieces = [x >> k & (1 << bits) - 1 for k in range(0, 32, bits)]
    return [signed(piece, bits) for piece in pieces] if is_signed else pieces


def joined(pieces, bits):
    return sum((piece & (1 << bits) - 1) << bits * k for k, piece in enumerate(pieces))


def clamped(x, low, high):
    return min(max(x, low), high)


# Moves.

MOVES = {
    "MOV R4, R2": lambda x: x.a,
    "MOV R4, RZ": lambda x: 0,
    "MOV R4, -0x2": lambda x: 0xFFFFFFFE,
    "MOV RZ, R2": lambda x: {},
    "SEL R4, R2, R3, P1": lambda x: x.a if x.p[1] else x.b,
    "SEL R4, R2, R3, !P1": lambda x: x.b if x.p[1] else x.a,
    "SEL R4, RZ, 0xffffffff, PT": lambda x: 0,
    "SEL R2, R3, R2, P1": lambda x: x.b if x.p[1] else x.a,
    "POPC R4, R2": lambda x: x.a.bit_count(),
    "POPC R4, ~R2": lambda x: 32 - x.a.bit_count(),
    "BREV R4, R2": lambda x: int(f"{x.a:032b}"[::-1], 2),
}
MOVES_120 = {
    "MOV.64 R6, R8": lambda x: x.A,
    "MOV.64 R6, RZ": lambda x: 0,
    "MOV.64 R6, 0x3ff71547652b82fe": lambda x: 0x3FF71547652B82FE,
    "SEL.64 R6, R8, R10, P1": lambda x: x.A if x.p[1] else x.B,
    "SEL.64 R6, R8, -0x1, !P1": lambda x: -1 if x.p[1] else x.A,
}


def test_constants_and_uniform_registers_are_operands():
    state = random_state(np.random.default_rng(2))
    constants = {(0, 0x160): 5, (0, 0x164): 7, (3, 8): 11}
    after = probe("IADD3 R4, R2, c[0x0][0x160], UR5", state, constants=constants)
    np.testing.assert_array_equal(after.r[4], state.r[2] + np.uint32(5) + state.ur[5])
    after = probe("IMAD.WIDE R6, RZ, RZ, c[0x0][0x160]", state, constants=constants)
    assert (int(after.r[6, 0]), int(after.r[7, 31])) == (5, 7)
    after = probe("IADD3 R4, RZ, -c[0x3][0x8], RZ", state, constants=constants)
    assert set(map(int, after.r[4])) == {WORD - 11}
    after = probe("LOP3.LUT R4, RZ, ~c[0x3][0x8], RZ, 0xcc, !PT", state, constants=constants)
    assert set(map(int, after.r[4])) == {WORD - 12}


# Sums and products. A negated operand adds its complement and one, so that no borrow is a carry.

SUM = re.compile(r"(\S+) (\w+)((?:, P\w)*), (.+?)((?:, !?P\w)*)")
OPERAND = re.compile(r"([-~!]?)(\w+)")


def operand(text, x, base):
    """A register, a pair, a predicate or a number as it is added to others below a base."""
    sign, name = OPERAND.fullmatch(text).groups()
    if name[0] == "P":
        return (name == "PT" or x.p[int(name[1])]) != (sign == "!")
    if name[0] == "R":
        value = getattr(x, (NAMES | PAIRS)[int(name[1:])]) if name != "RZ" else 0
        return {"": value, "-": base - value, "~": base - 1 - value}[sign]
    return int(text, 0) % base


def added(text, x):
    """Result and carries of an addition, whose first terms may be a product."""
    opcode, result, carries, operands, carried = SUM.fullmatch(text).groups()
    words = opcode.split(".")
    is_wide = "WIDE" in words or "HI" in words
    base = PAIR if is_wide or "64" in words else WORD
    values = operands.split(", ")
    total = sum(operand(name, x, base) for name in carried.split(", ")[1:])
    if words[0] == "IMAD":
        factors = [operand(name, x, WORD) for name in values[:2]]
        if is_wide and "U32" not in words:
            factors = map(signed, factors)
        total += prod(factors) % base
        values = values[2:]
    total += sum(operand(value, x, base) for value in values)
    wanted = {result: total >> 32 if "HI" in words else total}
    wanted |= {name: total >= n * base for n, name in enumerate(carries.split(", ")) if n}
    return {name: value for name, value in wanted.items() if name not in ("RZ", "PT")}


def additions(texts):
    return {text: partial(added, text) for text in texts}


SIGNED = [", ".join(signs) for signs in product(("R2", "-R2"), ("R3", "-R3"), ("R5", "-R5"))]
SUMS = additions([
    *(f"IADD3 R4, {operands}" for operands in SIGNED),
    *(f"IADD3 R4, P0, P1, {operands}" for operands in SIGNED),
    "IADD3 R4, P0, PT, R2, 0xffffffff, RZ",
    "IADD3 R4, PT, PT, R2, -0x1, RZ",
    "IADD3 RZ, P0, R2, R3, RZ",
    "IADD3 RZ, P0, RZ, -R2, RZ",
    "IADD3 R2, R2, R2, R2",
    "IADD3.X R4, P0, R2, ~R3, RZ, P2, !PT",
    "IADD3.X R4, P0, R2, ~R3, RZ, !P2, !PT",
    "IADD3.X R4, RZ, RZ, R2, P2, P3",
    "IADD3.X R4, R2, -0x1, RZ, P1, !PT",
    "VIADD R4, R2, 0x6",
    "VIADD R4, R2, -R3",
])  # fmt: skip


SUMS_64 = additions([
    "IADD.64 R6, R8, R10",
    "IADD.64 R6, -R8, R10",
    "IADD.64 R6, R8, -R10",
    "IADD.64 R6, R8, -0x10",
    "IADD.64 R6, P0, R8, R10",
    "IADD.64.X R6, R8, R10, P1",
    "IADD R4, P0, R2, R3",
])  # fmt: skip
SATURATED_SUMS = {
    "VIADD.S32.ISAT R4, R2, R3": lambda x: by_parts("S32", add, x, saturates=True),
    "VIADD.S32.ISAT R4, R2, -R3": lambda x: by_parts("S32", sub, x, saturates=True),
    "VIADD.S32.ISAT R4, -R2, R3": lambda x: by_parts("S32", lambda a, b: b - a, x, saturates=True),
    "VIADD.S16x2.ISAT R4, R2, R3": lambda x: by_parts("S16x2", add, x, saturates=True),
    "VIADD.U8x4.ISAT R4, R2, -R3": lambda x: by_parts("U8x4", sub, x, saturates=True),
    "VIADD.16x2 R4, R2, R3": lambda x: by_parts("U16x2", add, x),
    "VIADD.U8x4 R4, R2, R3": lambda x: by_parts("U8x4", add, x),
    "VIADD.U8x4 R4, R2, -R3": lambda x: by_parts("U8x4", sub, x),
}


UNIFORM_SUMS_64 = additions([
    "IADD3.64 R6, PT, PT, R8, R10, RZ",
    "IADD3.64 R6, P0, PT, R8, -0x3f, RZ",
    "IADD3.64 RZ, P0, PT, RZ, -R8, RZ",
    "IADD3.64.X R6, PT, PT, R8, ~R10, RZ, P2, !PT",
])  # fmt: skip


def squared(first):
    return signed(first) * signed(first >> 32) + first


def product_128(x):
    a, b = x.A, x.B
    low_a, high_a, low_b, high_b = a % WORD, a >> 32, b % WORD, b >> 32
    middle = high_a * low_b + low_a * high_b
    return {
        "R6": a * b >> 64,
        "P0": (low_a * low_b >> 32) + middle % WORD >= WORD,
        "R4": middle >> 32,
        "R5": middle >> 64,
        "R12": middle,
        "R13": middle >> 32,
    }


CHAINS = {
    "IMAD.WIDE R6, R2, R3, R8; IMAD.WIDE R6, R6, R7, R6": lambda x: squared(
        signed(x.a) * signed(x.b) + x.A
    ),
    "IADD3 R6, P0, R8, R10, RZ; IADD3.X R7, R9, R11, RZ, P0, !PT": lambda x: {
        "R6": x.A + x.B,
        "P0": x.A % WORD + x.B % WORD >= WORD,
    },
    "IADD3 R6, P0, R8, -R10, RZ; IADD3.X R7, R9, ~R11, RZ, P0, !PT": lambda x: {
        "R6": x.A - x.B,
        "P0": x.A % WORD >= x.B % WORD,
    },
    "IADD3 R6, P0, PT, RZ, -R8, RZ; IADD3.X R7, PT, PT, RZ, ~R9, RZ, P0, !PT": lambda x: {
        "R6": -x.A,
        "P0": x.A % WORD == 0,
    },
    "IADD3 R6, P0, P1, R8, R10, R12; IADD3.X R7, R9, R11, R13, P0, P1": lambda x: {
        "R6": x.A + x.B + x.C,
        "P0": x.A % WORD + x.B % WORD + x.C % WORD >= WORD,
        "P1": x.A % WORD + x.B % WORD + x.C % WORD >= 2 * WORD,
    },
    "IADD3 R6, P0, R8, R10, RZ; IMAD.X R7, R9, 0x1, R11, P0": lambda x: {
        "R6": x.A + x.B,
        "P0": x.A % WORD + x.B % WORD >= WORD,
    },
    "SHF.L.U32 R6, R8, R2, RZ; SHF.L.U64.HI R7, R8, R2, R9": lambda x: shift(x.A, x.a),
    "SHF.R.U64 R6, R8, R2, R9; SHF.R.U32.HI R7, RZ, R2, R9": lambda x: x.A >> min(x.a, 64),
    "SHF.R.S64 R6, R8, R2, R9; SHF.R.S32.HI R7, RZ, R2, R9": lambda x: (
        signed(x.A, 64) >> min(x.a, 64)
    ),
    # the 128-bit product of two pairs, its upper half: what a division by a constant needs
    "IMAD.WIDE.U32 R12, R9, R10, RZ; IMAD.WIDE.U32 R12, P0, R8, R11, R12;"
    "IMAD.X R5, RZ, RZ, RZ, P0; IMAD.MOV.U32 R4, RZ, RZ, R13; IMAD.WIDE.U32 R6, R8, R10, RZ;"
    "IADD3 RZ, P0, R7, R12, RZ; IMAD.WIDE.U32.X R6, R9, R11, R4, P0": product_128,
}


def shift(x, n):
    return x << n if n < 64 else 0


# Addresses.


def addresses():
    for n in (0, 1, 2, 4, 31):
        yield f"LEA R4, R2, R3, {n:#x}", lambda x, n=n: (x.a << n) + x.b
        yield f"LEA R4, R2, -R3, {n:#x}", lambda x, n=n: (x.a << n) - x.b
        yield (
            f"LEA R4, P0, -R2, R3, {n:#x}",
            lambda x, n=n: {
                "R4": x.b - (x.a << n),
                "P0": x.b >= (x.a << n) % WORD,
            },
        )
        yield f"LEA.HI R4, R2, R3, RZ, {n:#x}", lambda x, n=n: (x.a << n >> 32) + x.b
        yield (
            f"LEA.HI R4, R2, R3, R5, {n:#x}",
            lambda x, n=n: ((x.c << 32 | x.a) << n >> 32) + x.b,
        )
        yield (
            f"LEA.HI.SX32 R4, R2, R3, {n:#x}",
            lambda x, n=n: (signed(x.a) << n >> 32) + x.b,
        )


def chains_of_addresses():
    for n in (0, 1, 2, 4, 31):
        yield (
            f"LEA R6, P0, R2, R8, {n:#x}; LEA.HI.X R7, R2, R9, R5, {n:#x}, P0",
            lambda x, n=n: {
                "R6": ((x.c << 32 | x.a) << n) + x.A,
                "P0": (x.a << n) % WORD + x.A % WORD >= WORD,
            },
        )
        yield (
            f"LEA R6, P0, R2, R8, {n:#x}; LEA.HI.X.SX32 R7, R2, R9, {n:#x}, P0",
            lambda x, n=n: {
                "R6": (signed(x.a) << n) + x.A,
                "P0": (x.a << n) % WORD + x.A % WORD >= WORD,
            },
        )


ADDRESSES, CHAINS_OF_ADDRESSES = dict(addresses()), dict(chains_of_addresses())


# Products.

PRODUCTS = additions([
    "IMAD R4, R2, R3, R5",
    "IMAD R4, R2, -0x3334, RZ",
    "IMAD R4, R2, 0x800000, -R5",
    "IMAD.U32 R4, R2, 0x10000, R3",
    "IMAD.SHL.U32 R4, R2, 0x4, RZ",
    "IMAD.MOV.U32 R4, RZ, RZ, 0x80000000",
    "IMAD.MOV R4, RZ, RZ, -R2",
    "IMAD.IADD R4, R2, 0x1, -R3",
    "IMAD.X R4, R2, 0x1, R3, P1",
    "IMAD.X R4, R2, 0x1, ~R3, P1",
    "IMAD.X R4, RZ, RZ, ~R3, !P1",
    "IMAD.WIDE R6, R2, R3, R8",
    "IMAD.WIDE R6, R2, R3, RZ",
    "IMAD.WIDE R6, R2, -0x4, R8",
    "IMAD.WIDE R6, R2, R3, -R8",
    "IMAD.WIDE.U32 R6, R2, R3, R8",
    "IMAD.WIDE.U32 R6, R2, 0x2168c235, R8",
    "IMAD.WIDE.U32 R6, P0, R2, R3, R8",
    # the carry of a signed product is that of its 64 bits as they are
    "IMAD.WIDE R6, P0, R2, R3, R8",
    "IMAD.WIDE R6, P0, R2, R3, -R8",
    "IMAD.WIDE.U32 R6, P0, R2, 0x2, -R8",
    "IMAD.WIDE.X R6, R2, R3, R8, P1",
    "IMAD.WIDE.U32.X R6, R2, R3, ~R8, P1",
    "IMAD.WIDE.U32.X R6, R2, R3, R8, P1",
    "IMAD.HI R4, R2, R3, RZ",
    "IMAD.HI R4, R2, -0x6db6db6d, R8",
    "IMAD.HI.U32 R4, R2, R3, R8",
    "IMAD.HI.U32.X R4, R2, R3, R8, P1",
    "IMAD.HI.U32.X R4, R2, -0x1112b4f3, R8, P1",
    "IMAD.HI.U32 R4, R2, -0x36f0255e, RZ",
    "IMAD.HI.U32 R4, P2, R2, R3, R8",
])  # fmt: skip


def dot(a, b, c):
    return c + sum(x * y for x, y in zip(a, b, strict=False))


@pytest.mark.parametrize(("type_a", "type_b"), list(product(("S", "U"), repeat=2)))
def test_dot_products(type_a, type_b):
    sign_a, sign_b = type_a == "S", type_b == "S"

    def bytes_of_b(x):
        return parts(x.b, 8, is_signed=sign_b)

    check(
        f"IDP.4A.{type_a}8.{type_b}8 R4, R2, R3, R5",
        lambda x: dot(parts(x.a, 8, is_signed=sign_a), bytes_of_b(x), x.c),
        seeds=3,
    )
    for half, first in (("LO", 0), ("HI", 2)):
        check(
            f"IDP.2A.{half}.{type_a}16.{type_b}8 R4, R2, R3, R5",
            lambda x, first=first: dot(
                parts(x.a, 16, is_signed=sign_a), bytes_of_b(x)[first : first + 2], x.c
            ),
            seeds=3,
        )


# Shifts.


def funnel(x, right, wrap, kind, high, amount):
    bits = int(kind[1:])
    n = amount % bits if wrap else min(amount, bits)
    value = x.c << 32 | x.a
    if kind[0] == "S":
        value = signed(value, 64)
    return (value >> n if right else value << n) >> (32 if high else 0)


SHIFTS = list(product("LR", (False, True), ("U32", "S32", "U64", "S64"), (False, True)))


@pytest.mark.parametrize(("direction", "wrap", "kind", "high"), SHIFTS)
def test_funnel_shifts(direction, wrap, kind, high):
    opcode = f"SHF.{direction}{'.W' * wrap}.{kind}{'.HI' * high}"
    for amount in (None, 0, 1, 7, 31, 32, 33, 63, 64, 100):
        operand = "R3" if amount is None else f"{amount:#x}"

        def reference(x, amount=amount):
            n = x.b if amount is None else amount
            return funnel(x, direction == "R", wrap, kind, high, n)

        check(f"{opcode} R4, R2, {operand}, R5", reference)
        check_uniform(f"{opcode} R4, R2, {operand}, R5", reference)
    check(
        f"{opcode} R2, R2, R2, R2",
        lambda x: funnel(Lane(x.a, x.a, x.a, 0, 0, 0, ()), direction == "R", wrap, kind, high, x.a),
    )


# Bits.


def leading(x, *, is_signed, distance):
    bits = ~x % WORD if is_signed and signed(x) < 0 else x
    if not bits:
        return WORD - 1
    return 32 - bits.bit_length() if distance else bits.bit_length() - 1


def ones(first, count, wrap):
    """BMSK: `count` ones from bit `first` upwards."""
    if wrap:
        first, count = first % 32, count % 32
    return ((1 << min(count, 32)) - 1 << first) % WORD if first < 32 else 0


def extended(x, bits, *, is_signed, wrap):
    if wrap:
        bits %= 32
    if bits == 0:
        return 0
    kept = x & (1 << min(bits, 32)) - 1
    return signed(kept, min(bits, 32)) if is_signed else kept


BITS = {
    f"FLO{type_}{shift_} R4, R2": lambda x, type_=type_, shift_=shift_: leading(
        x.a, is_signed=not type_, distance=bool(shift_)
    )
    for type_, shift_ in product(("", ".U32"), ("", ".SH"))
}
BITS |= {
    f"BMSK{wrap} R4, R2, R3": lambda x, wrap=wrap: ones(x.a, x.b, bool(wrap)) for wrap in ("", ".W")
}
BITS |= {
    f"SGXT{wrap}{type_} R4, R2, R3": lambda x, wrap=wrap, type_=type_: extended(
        x.a, x.b, is_signed=not type_, wrap=bool(wrap)
    )
    for wrap, type_ in product(("", ".W"), ("", ".U32"))
}
BITS |= {"SGXT R4, R2, 0x8": lambda x: signed(x.a, 8)}


def saturated(x, kind):
    bits = int(kind[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "S" else (0, (1 << bits) - 1)
    return clamped(signed(x), low, high)


@pytest.mark.parametrize("kind", ["S8", "U8", "S16", "U16"])
def test_saturation(kind):
    bits = int(kind[1:])
    check(f"I2I.{kind}.S32.SAT R4, R2", lambda x: saturated(x.a, kind))
    check(
        f"I2IP.{kind}.S32.SAT R4, R2, R3, R5",
        lambda x: (
            joined([saturated(x.b, kind), saturated(x.a, kind)], bits) | (x.c << 2 * bits) % WORD
        ),
    )


@pytest.mark.parametrize("kind", ["U4", "S4", "U2", "S2"])
def test_saturation_to_a_few_bits(kind):
    bits = int(kind[1:])
    check(
        f"I2IP.{kind}.S32.SAT R4, R2, R3, R5.{32 - 2 * bits}",
        lambda x: (
            joined([saturated(x.b, kind), saturated(x.a, kind)], bits) | (x.c << 2 * bits) % WORD
        ),
    )


# Permutations of bytes: PTX's table of modes.

PERMUTATIONS = {
    ".F4E": ["3210", "4321", "5432", "6543"],
    ".B4E": ["5670", "6701", "7012", "0123"],
    ".RC8": ["0000", "1111", "2222", "3333"],
    ".ECL": ["3210", "3211", "3222", "3333"],
    ".ECR": ["0000", "1110", "2210", "3210"],
    ".RC16": ["1010", "3232", "1010", "3232"],
}


def permuted(low, high, selector):
    pieces = (high << 32 | low).to_bytes(8, "little")
    result = 0
    for k in range(4):
        nibble = selector >> 4 * k & 15
        byte = pieces[nibble & 7]
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * k
    return result


PERMUTED = {
    f"PRMT R4, R2, {selector:#x}, R3": lambda x, selector=selector: permuted(x.a, x.b, selector)
    for selector in (0x3210, 0x7604, 0x8880, 0x9910, 0xBA98, 0xFEDC, 0x0, 0x4)
}
PERMUTED_BY_REGISTERS = {"PRMT R4, R2, R5, R3": lambda x: permuted(x.a, x.b, x.c)}
PERMUTED_BY_REGISTERS |= {
    f"PRMT{mode} R4, R2, R5, R3": lambda x, modes=modes: permuted(x.a, x.b, int(modes[x.c % 4], 16))
    for mode, modes in PERMUTATIONS.items()
}


# Logic.


def looked_up(table, a, b, c, bits=32):
    return sum(
        (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k
        for k in range(bits)
    )


# Of the 256 two with each number of ones, of 0 to 8, and so those of 0 and 1 alone.
TABLES = sampled(range(256), key=int.bit_count, per_key=2)


@pytest.mark.parametrize("table", TABLES)
def test_all_tables_of_three_words(table):
    def value(x):
        return looked_up(table, x.a, x.b, x.c)

    check(f"LOP3.LUT R4, R2, R3, R5, {table:#x}, !PT", value)
    check(
        f"LOP3.LUT P0, R4, R2, R3, R5, {table:#x}, P1",
        lambda x: {"R4": value(x), "P0": value(x) != 0 or x.p[1]},
    )
    check_uniform(f"LOP3.LUT R4, R2, R3, R5, {table:#x}, !PT", value)


LOGIC = {
    "LOP3.LUT P0, RZ, R2, 0x1f, RZ, 0xc0, !PT": lambda x: x.a % 32 != 0,
    "LOP3.LUT.PAND P0, R4, R2, R3, RZ, 0xc0, P1": lambda x: {
        "R4": x.a & x.b,
        "P0": (x.a & x.b) != 0 and x.p[1],
    },
    "LOP3.LUT R4, RZ, R3, RZ, 0x33, !PT": lambda x: ~x.b,
    "LOP3.LUT P0, RZ, R2, R3, R5, 0xf8, !PT": lambda x: (x.a | x.b & x.c) != 0,
}


@pytest.mark.parametrize("table", TABLES)
def test_all_tables_of_three_predicates(table):
    other = (7 * table + 3) % 256

    def reference(x):
        inputs = x.p[2], not x.p[3], x.p[4]
        return {
            "P0": looked_up(table, *inputs, bits=1),
            "P1": looked_up(other, *inputs, bits=1),
        }

    check(f"PLOP3.LUT P0, P1, P2, !P3, P4, {table:#x}, {other:#x}", reference)
    check_uniform(f"PLOP3.LUT P0, P1, P2, !P3, P4, {table:#x}, {other:#x}", reference)


def test_signs_take_part_as_predicates():
    check(
        "PLOP3.LUT P0, PT, R2.SIGN, !P3, R5.SIGN, 0x1b, 0x0",
        lambda x: looked_up(0x1B, x.a >> 31, not x.p[3], x.c >> 31, bits=1),
    )
    state = random_state(np.random.default_rng(5))
    after = probe(
        "PLOP3.LUT P0, PT, R2.SIGN, c[0x2][0x4].SIGN, ~c[0x2][0x8].SIGN, 0x80, 0x0",
        state,
        constants={(2, 4): 1 << 31, (2, 8): (1 << 31) - 1},  # as they are read, both are negative
    )
    assert after.p[0] == sum(1 << lane for lane in range(32) if state.r[2, lane] >> 31)


def test_predicates_take_part_from_both_files():
    state = random_state(np.random.default_rng(3))
    after = probe("PLOP3.LUT P0, PT, PT, P1, UP2, 0x80, 0x0", state)
    assert after.p[0] == state.p[1] & state.up[2]


def predicate_word(x):
    return sum(truth << k for k, truth in enumerate(x.p[:7]))


@pytest.mark.parametrize(("byte", "first"), [("", 0), (".B1", 8), (".B2", 16), (".B3", 24)])
def test_predicates_as_a_word(byte, first):
    for mask in (0x1, 0x20, 0x7F):
        moved = mask << first
        check(
            f"P2R{byte} R4, R2, {mask:#x}",
            lambda x, moved=moved: x.a & ~moved | predicate_word(x) << first & moved,
        )
        check(
            f"R2P PR, R2{byte}, {mask:#x}",
            lambda x, mask=mask: {f"P{k}": x.a >> first + k & 1 for k in range(7) if mask >> k & 1},
        )


# Comparisons.

RELATIONS = {
    "F": lambda a, b: False,
    "LT": lambda a, b: a < b,
    "EQ": lambda a, b: a == b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "NE": lambda a, b: a != b,
    "GE": lambda a, b: a >= b,
    "T": lambda a, b: True,
}
BOOLEANS = {
    "AND": lambda a, b: a and b,
    "OR": lambda a, b: a or b,
    "XOR": lambda a, b: a != b,
}


@pytest.mark.parametrize(("relation", "boolean"), list(product(RELATIONS, BOOLEANS)))
def test_comparisons(relation, boolean):
    holds, with_ = RELATIONS[relation], BOOLEANS[boolean]

    def reference(a, b, other):
        return {"P0": with_(holds(a, b), other), "P1": with_(not holds(a, b), other)}

    for type_, bits, is_signed in (
        ("", 32, True), (".U32", 32, False), (".S64", 64, True), (".U64", 64, False)
    ):  # fmt: skip
        registers = "R2, R3" if bits == 32 else "R8, R10"

        def compared(x, bits=bits, is_signed=is_signed):
            a, b = (x.a, x.b) if bits == 32 else (x.A, x.B)
            if is_signed:
                a, b = signed(a, bits), signed(b, bits)
            return reference(a, b, not x.p[2])

        text = f"ISETP.{relation}{type_}.{boolean} P0, P1, {registers}, !P2"
        check(text, compared)
        check_uniform(text, compared)
    check(
        f"ISETP.{relation}.{boolean} P0, PT, R2, -0x1, P2",
        lambda x: reference(signed(x.a), -1, x.p[2])["P0"],
    )
    check(
        f"ISETP.{relation}.S64.{boolean} P0, PT, R8, -0x1, P2",
        lambda x: reference(signed(x.A, 64), -1, x.p[2])["P0"],
    )


@pytest.mark.parametrize("relation", ["LT", "EQ", "LE", "GT", "NE", "GE"])
@pytest.mark.parametrize(("type_", "is_signed"), [("", True), (".U32", False)])
def test_comparisons_of_pairs_in_two_steps(relation, type_, is_signed):
    """The lower words' verdict decides where the upper words are equal."""
    text = (
        f"ISETP.{relation}.U32.AND P0, PT, R8, R10, PT;"
        f"ISETP.{relation}{type_}.AND.EX P0, PT, R9, R11, PT, P0"
    )
    sign = (lambda x: signed(x, 64)) if is_signed else (lambda x: x)
    check(text, lambda x: RELATIONS[relation](sign(x.A), sign(x.B)), seeds=6)


# a verdict below that is not written is true
UPPER_WORDS = {
    f"ISETP.{relation}.AND.EX P0, PT, R2, R3, P2": lambda x, holds=RELATIONS[if_equal]: (
        x.p[2] and holds(signed(x.a), signed(x.b))
    )
    for relation, if_equal in {"EQ": "EQ", "GE": "GE", "LT": "LE"}.items()
}


# Minima and maxima.


@dataclass(frozen=True)
class Values:
    """Format of a word: parts of some bits, signed or unsigned."""

    bits: int
    is_signed: bool

    def read(self, x):
        return parts(x, self.bits, is_signed=self.is_signed)


TYPES = {
    "S32": Values(32, True),
    "U32": Values(32, False),
    "S16x2": Values(16, True),
    "U16x2": Values(16, False),
    "S8x4": Values(8, True),
    "U8x4": Values(8, False),
}


def by_parts(kind, operation, x, *, saturates=False):
    """An operation on the parts of a and b, wrapped or clamped to their range."""
    values = TYPES[kind]
    low, high = (values.read(end)[0] for end in (1 << values.bits - 1, (1 << values.bits - 1) - 1))
    if not values.is_signed:
        low, high = 0, (1 << values.bits) - 1
    results = map(operation, values.read(x.a), values.read(x.b))
    return joined(
        [clamped(result, low, high) if saturates else result for result in results], values.bits
    )


def chosen(values, smaller, relu, *rows):
    results = [(min if smaller else max)(column) for column in zip(*rows, strict=True)]
    if relu:
        results = [max(result, 0) for result in results]
    return joined(results, values.bits)


@pytest.mark.parametrize(
    ("kind", "relu"),
    [(kind, relu) for kind in TYPES for relu in ("", ".RELU")[: 1 + (kind[0] == "S")]],
)
@pytest.mark.parametrize(
    ("p", "smaller"),
    [("PT", lambda x: True), ("!PT", lambda x: False), ("P1", lambda x: x.p[1])],
)
def test_minima_and_maxima(kind, relu, p, smaller):
    values = TYPES[kind]

    def of_words(*words):
        return lambda x: chosen(
            values, smaller(x), relu, *(values.read(getattr(x, word)) for word in words)
        )

    def of_a_sum(x):
        sums = values.read(by_parts(kind, add, x))
        return chosen(values, smaller(x), relu, sums, values.read(x.c))

    modifiers = f".{kind}{relu}"
    check(f"VIMNMX{modifiers} R4, R2, R3, {p}", of_words("a", "b"), seeds=3)
    check_uniform(f"VIMNMX{modifiers} R4, R2, R3, {p}", of_words("a", "b"), seeds=3)
    check(f"VIMNMX3{modifiers} R4, R2, R3, R5, {p}", of_words("a", "b", "c"), seeds=3)
    check(f"VIADDMNMX{modifiers} R4, R2, R3, R5, {p}", of_a_sum, seeds=3)


@pytest.mark.parametrize("kind", ["S16x2", "U16x2"])
@pytest.mark.parametrize(("p", "smaller"), [("PT", True), ("!PT", False)])
def test_predicates_say_which_halves_were_chosen(kind, p, smaller):
    values = TYPES[kind]

    def reference(x):
        (low_a, high_a), (low_b, high_b) = values.read(x.a), values.read(x.b)
        first = RELATIONS["LE" if smaller else "GE"]
        return {
            "R4": chosen(values, smaller, False, values.read(x.a), values.read(x.b)),
            "P0": first(low_a, low_b),
            "P1": first(high_a, high_b),
        }

    check(f"VIMNMX.{kind} R4, P0, P1, R2, R3, {p}", reference, seeds=4)


MINMAX = {
    "IABS R4, R2": lambda x: abs(signed(x.a)),
    "IMNMX R4, R2, R3, PT": lambda x: min(signed(x.a), signed(x.b)),
    "IMNMX R4, RZ, R3, !PT": lambda x: max(0, signed(x.b)),
    "IMNMX.U32 R4, R2, 0x3, PT": lambda x: min(x.a, 3),
    "VIMNMX R4, PT, PT, R2, -0x64, !PT": lambda x: max(signed(x.a), -100),
    "VIADDMNMX R4, R2, -R3, 0xb9600000, !PT": lambda x: max(signed(x.a - x.b), signed(0xB9600000)),
    "IMNMX.S64 PT, PT, R6, R8, R10, PT, !PT": lambda x: min(signed(x.A, 64), signed(x.B, 64)),
    "IMNMX.U64 PT, PT, R6, R8, R10, !PT, !PT": lambda x: max(x.A, x.B),
    "VABSDIFF R4, R2, R3, R5": lambda x: abs(signed(x.a) - signed(x.b)) + x.c,
    "VABSDIFF.U32 R4, R2, R3, R5": lambda x: abs(x.a - x.b) + x.c,
}


@pytest.mark.parametrize(("type_", "is_signed"), [("", True), (".U8", False)])
def test_differences_of_bytes(type_, is_signed):
    def distances(x):
        a, b = parts(x.a, 8, is_signed=is_signed), parts(x.b, 8, is_signed=is_signed)
        return [abs(p - q) for p, q in zip(a, b, strict=True)]

    check(f"VABSDIFF4{type_} R4, R2, R3, RZ", lambda x: joined(distances(x), 8), seeds=4)
    check(f"VABSDIFF4{type_}.ACC R4, R2, R3, R5", lambda x: sum(distances(x)) + x.c, seeds=4)


# Instructions whose references stand above: who is checked, with how many seeds.

FAMILIES = [
    (MOVES, (check, check_uniform), {}),
    (MOVES_120, (check, check_uniform), {}),
    (SUMS, (check, check_uniform), {}),
    (SUMS_64 | SATURATED_SUMS, (check,), {}),
    (UNIFORM_SUMS_64, (check_uniform,), {}),
    (CHAINS, (check,), {"seeds": 8}),
    (ADDRESSES, (check, check_uniform), {"seeds": 3}),
    (CHAINS_OF_ADDRESSES, (check,), {"seeds": 3}),
    (PRODUCTS, (check, check_uniform), {"seeds": 4}),
    (BITS, (check, check_uniform), {"seeds": 4}),
    (PERMUTED, (check, check_uniform), {}),
    (PERMUTED_BY_REGISTERS, (check,), {"seeds": 4}),
    (LOGIC, (check,), {}),
    (UPPER_WORDS, (check,), {"seeds": 6}),
    (MINMAX, (check,), {"seeds": 4}),
]


@pytest.mark.parametrize(
    ("text", "reference", "checks", "how"),
    [
        pytest.param(text, reference, checks, how, id=text)
        for references, checks, how in FAMILIES
        for text, reference in references.items()
    ],
)
def test_an_instruction_writes_what_its_reference_says(text, reference, checks, how):
    for checked in checks:
        checked(text, reference, **how)


def test_a_guard_that_admits_nobody_writes_nothing():
    state = random_state(np.random.default_rng(4))
    state.p[6] = 0
    texts = [*MOVES, *SUMS, *PRODUCTS, *BITS, *LOGIC, *MINMAX]
    guarded = [re.sub(r"(^|; *)", r"\1@P6 ", text) for text in texts]
    same(probe("\n".join(guarded), state), state)


def test_results_go_nowhere_where_nobody_wants_them():
    state = random_state(np.random.default_rng(5))
    texts = [
        "IADD3 RZ, PT, PT, R2, R3, R5",
        "IMAD.WIDE RZ, R2, R3, R8",
        "LOP3.LUT PT, RZ, R2, R3, R5, 0xfe, !PT",
        "ISETP.GE.AND PT, PT, R2, R3, PT",
        "PLOP3.LUT PT, PT, P0, P1, P2, 0x80, 0x7f",
        "SHF.L.U32 RZ, R2, R3, RZ",
        "UIADD3 URZ, UPT, UPT, UR2, UR3, URZ",
    ]
    same(probe("\n".join(texts), state), state)
    assert reduce(int.__and__, (int(state.p[7]), int(state.up[7]))) == FULL


@pytest.mark.parametrize("mask", [0x1, 0x7F])
def test_uniform_predicates_as_a_word(mask):
    state = random_state(np.random.default_rng(6))
    inputs = lane_of(state, 0, uniform=True)
    wanted = state.copy()
    wanted.ur[4] = inputs.a & ~mask | predicate_word(inputs) & mask
    same(probe(f"UP2UR UR4, UPR, UR2, {mask:#x}", state), wanted)
    wanted = state.copy()
    for k in range(7):
        if mask >> k & 1:
            wanted.up[k] = FULL if inputs.a >> k & 1 else 0
    same(probe(f"UR2UP UPR, UR2, {mask:#x}", state), wanted)
