"""Matrix products of a warp on tensor cores (mma.sync and wmma).

What rounds their sums is in core/tensor_sum.h; where the elements are, in core/mma.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.machine_code.instruction import Operand, Register
from toolkit.sass.isa.floating import ROUNDINGS
from toolkit.sass.isa.registry import Lowering, numbered, opcode
from toolkit.sass.isa.slots import Source, refuse, refuse_form

# Ins.aux of tensor_sum.h and mma.h: formats of elements, and their bits.
FORMATS = numbered("F16 BF16 TF32 E4M3 E5M2 E3M2 E2M3 E2M1 S8 U8 S4 U4")
NARROW = ("E3M2", "E2M3", "E2M1")
OF_BYTES = ("E4M3", "E5M2", *NARROW)  # QMMA has elements of 6 and 4 bits in bytes, too
BITS = {"F16": 16, "BF16": 16, "TF32": 32, "S8": 8, "U8": 8, "S4": 4, "U4": 4}
BITS |= dict.fromkeys(OF_BYTES, 8)
B_SHIFT, BLOCK_SHIFT, FRACTION_SHIFT, SCALES_SHIFT = 4, 12, 20, 26
SCALE_HAS_FRACTION = 1 << 29
HALF, SATURATES, DIFFER, SHORT = (1 << k for k in range(8, 12))
# Fields of Ins.imm, a byte each.
OF_A, OF_B, OF_C, OF_D, ROWS, LENGTH = range(0, 48, 8)

COLUMNS = 8
LANES = 32
WORD_BITS = 32
Layouts = tuple[set[tuple[str, ...]], ...]
LAYOUTS: Layouts = ({(), ("ROW",)}, {(), ("COL",)}, {()})  # of A, B, C
# Of HMMA.884, with its bits of Ins.aux beside HALF and the fraction.
QUAD_LAYOUTS: Layouts = ({("ROW",), ("COL",)}, {("ROW",), ("COL",)}, {()})
QUAD_COLUMNS_OF_A, QUAD_ROWS_OF_B, QUAD_HALVES_OF_C, QUAD_STEP_SHIFT = 1, 2, 4, 4


def _shapes(names: str) -> dict[str, tuple[int, int]]:
    """Rows and K of `16816` or `16x8x16`, between which stand the 8 columns.

    >>> _shapes("884 168256 16x8x4")
    {'884': (8, 4), '168256': (16, 256), '16x8x4': (16, 4)}
    """
    found = {}
    for name in names.split():
        digits = name.replace("x", "")
        rows = 16 if digits.startswith("168") and len(digits) > 3 else 8
        found[name] = rows, int(digits[len(f"{rows}8") :])
    return found


HALVES = _shapes("1684 1688 16816")
INTEGERS = _shapes("8816 8832 16816 16832 16864")
BYTES = _shapes("16816 16832")
FOURS = _shapes("16864")
SINGLE_BITS = _shapes("88128 168128 168256")
DOUBLES = _shapes("884 8x8x4 16x8x4 16x8x8 16x8x16")
ROUNDED_DOUBLES = " ".join(ROUNDINGS)


# Bits below the largest exponent that terms of OMMA keep (MMA-Sim).
SCALED_FRACTION = 35


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Sums of the products of one format on an architecture (core/tensor_sum.h).

    `block`: products of one block. `fraction`: bits below the largest exponent that each keeps.
    `short`: a result in FP32 keeps 13 bits of its fraction.
    """

    block: int
    fraction: int
    short: bool = False


def sums_of(capability: int, kind: str) -> Sums | None:
    """Return how `capability` (90 of sm_90) sums products of `kind`; None if it has none.

    Measured on an H100 for sm_90. Others as published: Khattak and Mikaitis (arXiv 2512.07004,
    results of A100, A2, Ada, L40S and B200) and MMA-Sim (arXiv 2511.10909; Turing, sm_120). MMA-Sim
    lacks E3M2 and E2M3: theirs are assumed to be as E2M1's.
    """
    hopper = capability >= 90
    if kind in OF_BYTES:
        if capability >= 120:
            return Sums(block=32, fraction=25)
        is_ada = capability == 89 and kind not in NARROW
        return Sums(block=16, fraction=13, short=True) if is_ada else None
    if kind == "TF32":
        return Sums(block=8, fraction=25) if hopper else Sums(block=4, fraction=24)
    return Sums(block=16, fraction=25) if hopper else Sums(block=8, fraction=24)


@opcode(
    "HMMA",
    modifiers=f"884 {' '.join(HALVES)} 16832 F32 F16 BF16 TF32 SP STEP0 STEP1 STEP2 STEP3",
)
def hmma(i: Lowering) -> None:
    """sums, A, B, sums so far"""
    refuse_sparse(i)
    if "884" in i.modifiers:
        quads(i)
        return
    kinds = [x for x in i.modifiers if x in ("BF16", "TF32")] or ["F16"]
    results = [x for x in i.modifiers if x in ("F32", "F16")]
    if len(kinds) == len(results) == 1 and (results == ["F32"] or kinds == ["F16"]):
        real(i, HALVES, (kinds[0], kinds[0]), half=results == ["F16"])


def quads(i: Lowering) -> None:
    """A part of `mma.m8n8k4` on sm_75: two registers of the sums of four products, one each of the
    lanes l to l + 3 and l + 16 to l + 19. .F32.F16 are the types of the sums and of those so far.
    """
    d, *sources = i.operands
    types = [x for x in i.modifiers if x in ("F32", "F16")]
    sums = sums_of(i.capability, "F16")
    if len(sources) != len(QUAD_LAYOUTS) or len(types) != 2 or types == ["F16", "F32"] or not sums:
        return
    layouts = [x.suffix if isinstance(x, Register) else () for x in sources]
    aux = (QUAD_COLUMNS_OF_A if "COL" in layouts[0] else 0) | (
        QUAD_ROWS_OF_B if "ROW" in layouts[1] else 0
    )
    aux |= (QUAD_HALVES_OF_C if types[1] == "F16" else 0) | (HALF if types[0] == "F16" else 0)
    aux |= i.choice(numbered("STEP0 STEP1 STEP2 STEP3")) << QUAD_STEP_SHIFT
    pair = {OF_A: 2, OF_B: 2, OF_C: 2, OF_D: 2, ROWS: 8, LENGTH: 4}
    i.emit(
        "MMA_QUADS",
        d=d,
        s=registers(i, sources, QUAD_LAYOUTS),
        aux=aux | sums.fraction << FRACTION_SHIFT,
        imm=sum(value << shift for shift, value in pair.items()),
    )


@opcode("QMMA", modifiers=f"{' '.join(BYTES)} F32 F16 {' '.join(OF_BYTES)} SP SF E8 UE8 16864")
def qmma(i: Lowering) -> None:
    """sums, A, B, sums so far; .SF: scales of A and of B, and where they are"""
    refuse_sparse(i)
    kinds = [x for x in i.modifiers if x in OF_BYTES]
    results = [x for x in i.modifiers if x in ("F32", "F16")]
    is_scaled = "SF" in i.modifiers
    if len(kinds) == 2 and len(results) == 1 and (not is_scaled or results == ["F32"]):
        more = 1 << SCALES_SHIFT if is_scaled else 0
        operation = "MMA_SCALED" if is_scaled else "MMA"
        pair = kinds[0], kinds[1]
        real(i, BYTES, pair, half=results == ["F16"], operation=operation, more=more)


@opcode("OMMA", modifiers="16864 168128 SF F32 E2M1 SP E8 UE8 UE4M3 4X 2X")
def omma(i: Lowering) -> None:
    """sums, A, B, sums so far, scales of A and of B, and where they are: elements of 4 bits"""
    refuse_sparse(i)
    if i.capability < 120:
        refuse_form(i, f"nothing is known of {i.opcode} on sm_{i.capability}")
    rows, length = i.shape(FOURS)
    aux = (4 if "4X" in i.modifiers else 2) << SCALES_SHIFT
    aux |= SCALED_FRACTION << FRACTION_SHIFT | i.flags({"UE4M3": SCALE_HAS_FRACTION})
    if "SF" in i.modifiers:
        emit(i, "MMA_SCALED_FOURS", rows, length, 4, aux=aux)


def real(
    i: Lowering,
    shapes: dict[str, tuple[int, int]],
    kinds: tuple[str, str],
    *,
    half: bool,
    operation: str = "MMA",
    more: int = 0,
) -> None:
    """Emit a product whose sums are floating-point numbers."""
    sums = sums_of(i.capability, kinds[0])
    if sums is None:
        refuse_form(i, f"nothing is known of {i.opcode} on sm_{i.capability}")
    more |= (HALF if half else 0) | (SHORT if sums.short else 0)
    more |= sums.block << BLOCK_SHIFT | sums.fraction << FRACTION_SHIFT
    product(i, operation, shapes, kinds, half=half, more=more)


@opcode("IMMA", modifiers=f"{' '.join(INTEGERS)} 168128 S8 U8 S4 U4 SAT SP")
def imma(i: Lowering) -> None:
    """sums, A, B, sums so far; .SAT clamps the result"""
    refuse_sparse(i)
    kinds = [x for x in i.modifiers if x in ("S8", "U8", "S4", "U4")]
    if len(kinds) == 2 and BITS[kinds[0]] == BITS[kinds[1]]:
        more = i.flags({"SAT": SATURATES})
        product(i, "MMA_INTEGER", INTEGERS, (kinds[0], kinds[1]), more=more)


@opcode("BMMA", modifiers=f"{' '.join(SINGLE_BITS)} AND XOR POPC")
def bmma(i: Lowering) -> None:
    """sums, A, B, sums so far: the ones of A and B, or of A or B alone, are counted"""
    if "POPC" in i.modifiers and ("AND" in i.modifiers) != ("XOR" in i.modifiers):
        rows, length = i.shape(SINGLE_BITS)
        emit(i, "MMA_BITS", rows, length // WORD_BITS, WORD_BITS, aux=i.flags({"XOR": DIFFER}))


@opcode("DMMA", modifiers=f"{' '.join(DOUBLES)} {ROUNDED_DOUBLES}")
def dmma(i: Lowering) -> None:
    """sums, A, B, sums so far"""
    rows, length = i.shape(DOUBLES)
    emit(i, "MMA_DOUBLE", rows, length, 64, sum_bits=64, flags=i.choice(ROUNDINGS, 0))


def refuse_sparse(i: Lowering) -> None:
    if "SP" in i.modifiers:
        refuse(
            i.instruction,
            "sparse matrices (mma.sp) are not simulated: multiply without .sp, or run it on a GPU",
        )


def product(
    i: Lowering,
    operation: str,
    shapes: dict[str, tuple[int, int]],
    kinds: tuple[str, str],
    *,
    half: bool = False,
    more: int,
) -> None:
    """Emit a product of elements of these two kinds."""
    rows, length = i.shape(shapes)
    aux = FORMATS[kinds[0]] | FORMATS[kinds[1]] << B_SHIFT | more
    emit(i, operation, rows, length, BITS[kinds[0]], sum_bits=16 if half else 32, aux=aux)


def emit(
    i: Lowering,
    operation: str,
    rows: int,
    length: int,
    bits: int,
    *,
    sum_bits: int = 32,
    aux: int = 0,
    flags: int = 0,
) -> None:
    """Emit an operation on a matrix of `rows` x `length` elements of `bits` each."""
    d, *sources = i.operands
    matrices, scales = sources[: len(LAYOUTS)], sources[len(LAYOUTS) :]
    if len(matrices) < len(LAYOUTS) or len(scales) != (3 if aux >> SCALES_SHIFT & 7 else 0):
        return
    per_word = LANES * WORD_BITS
    sums = rows * COLUMNS * sum_bits // per_word
    words = {
        OF_A: rows * length * bits // per_word,
        OF_B: COLUMNS * length * bits // per_word,
        OF_C: sums,
        OF_D: sums,
        ROWS: rows,
        LENGTH: length,
    }
    i.emit(
        operation,
        d=d,
        s=[*registers(i, matrices), *(i.u32(scale) for scale in scales)],
        flags=flags,
        aux=aux,
        imm=sum(value << shift for shift, value in words.items()),
    )


def registers(i: Lowering, operands: Sequence[Operand], allowed: Layouts = LAYOUTS) -> list[Source]:
    """The registers of A, B and C; in general A lies row by row, B column by column."""
    found = []
    for operand, layouts in zip(operands, allowed, strict=True):
        if (
            not isinstance(operand, Register)
            or operand.file != "R"
            or operand.negate
            or operand.absolute
            or operand.invert
            or operand.suffix not in layouts
        ):
            i.refuse_operand(operand, "registers of a matrix")
        found.append(Source(i.slot(operand)))
    return found
