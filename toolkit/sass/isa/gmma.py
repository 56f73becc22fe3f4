"""Matrix products of a warpgroup (wgmma), and what orders them; setmaxnreg."""

from __future__ import annotations

from toolkit.machine_code.instruction import Descriptor, Immediate, Operand, Register, Special
from toolkit.sass.core.binding import POOL
from toolkit.sass.isa.integer import TRUE
from toolkit.sass.isa.registry import Lowering, is_predicate, numbered, opcode
from toolkit.sass.isa.slots import Source, matrix_columns, refuse

# Ins.flags and Ins.aux of gmma.h
IN_REGISTERS, NEGATED_A, NEGATED_B, SATURATES, COMMITS, EMPTY = 1, 8, 16, 32, 64, 128
OF_DESCRIPTOR = {"tnspA": 2, "tnspB": 4, "negA": NEGATED_A, "negB": NEGATED_B}
TYPES = numbered("F16 BF16 TF32 E4M3 E5M2 S8 U8 B1")
TYPE_BITS, HALF_SUMS = 4, 1 << 8
MOST_COLUMNS, COLUMNS_APART = 256, 8
_K_OF = {"F16": 16, "BF16": 16, "TF32": 8, "B1": 256}  # 32 of bytes

_GROUP = "gsb0"  # the scoreboard of the groups


def _shapes(*lengths: int) -> str:
    """Names of the shapes whose K is one of these, and twice that for a sparse A."""
    columns = range(COLUMNS_APART, MOST_COLUMNS + 1, COLUMNS_APART)
    return " ".join(f"64x{n}x{k}" for n in columns for k in lengths)


@opcode("HGMMA", modifiers=f"{_shapes(8, 16, 32)} F32 F16 BF16 TF32 SP")
@opcode("QGMMA", modifiers=f"{_shapes(32, 64)} F32 F16 E4M3 E5M2 SP")
@opcode("IGMMA", modifiers=f"{_shapes(32, 64)} S8 U8 SAT SP")
@opcode("BGMMA", modifiers=f"{_shapes(256)} AND POPC")
def gmma(i: Lowering) -> None:
    """sums, [A in registers,] descriptors, sums so far [, whether those count] [, gsb0]"""
    if "SP" in i.modifiers:
        refuse(
            i.instruction,
            "sparse matrices (wgmma.mma_async.sp) are not simulated: multiply without .sp, or run "
            "it on a GPU",
        )
    operands = [x for x in i.operands if x != Special(name=_GROUP)]
    flags = COMMITS if len(operands) < len(i.operands) else 0
    counts = operands.pop() if is_predicate(operands[-1]) else TRUE
    d, *a, descriptors, c = operands
    if not isinstance(descriptors, Descriptor) or len(a) > 1:
        return
    flags |= sum(OF_DESCRIPTOR[name] for name in descriptors.suffix)
    left, right, half = _types(i)
    columns = matrix_columns(i.instruction)
    k = next(x for x in i.modifiers if x.startswith("64x")).rpartition("x")[2]
    if int(k) != _K_OF.get(left, 32):
        return
    if d == Register(file="R", index=255):
        flags |= EMPTY
    i.emit(
        "GMMA",
        d=d,
        s=[i.u32(c), *_left(i, a), Source(i.slot(descriptors.register))],
        ps=[counts],
        flags=flags | (_flags_of_left(a) if a else 0) | (SATURATES * ("SAT" in i.modifiers)),
        aux=TYPES[left] | TYPES[right] << TYPE_BITS | HALF_SUMS * half,
        width=columns,
    )


def _types(i: Lowering) -> tuple[str, str, bool]:
    """The types of elements of A and B, and whether the sums are FP16."""
    named = [x for x in i.modifiers if x in TYPES]
    match i.opcode:
        case "HGMMA":
            half = "F32" not in i.modifiers
            kind = "F16" if half else next(iter(named), "F16")
            return kind, kind, half
        case "QGMMA":
            return (*_two(named[-2:]), "F32" not in i.modifiers)
        case "IGMMA":
            return (*_two(named), False)
    return "B1", "B1", False


def _two(named: list[str]) -> tuple[str, str]:
    left, right = named
    return left, right


def _left(i: Lowering, a: list[Operand]) -> list[Source | int]:
    if not a:
        return [POOL]
    (register,) = a
    if not isinstance(register, Register) or register.file != "R":
        i.refuse_operand(register, "registers")
    return [Source(i.slot(register))]


def _flags_of_left(a: list[Operand]) -> int:
    (register,) = a
    assert isinstance(register, Register)
    return IN_REGISTERS | (NEGATED_A if register.negate else 0)


@opcode("WARPGROUP", modifiers="ARRIVE DEPBAR LE")
def warpgroup(i: Lowering) -> None:
    """.ARRIVE: registers may be read from here on; .DEPBAR: wait for all but the last groups"""
    left = [x.integer for x in i.operands if isinstance(x, Immediate)]
    if "ARRIVE" in i.modifiers and not i.operands:
        i.emit("GMMA_ARRIVE")
    elif "DEPBAR" in i.modifiers and len(left) == 1:
        i.emit("GMMA_WAIT", aux=left[0])


@opcode("USETMAXREG", modifiers="TRY_ALLOC DEALLOC CTAPOOL")
def usetmaxreg(i: Lowering) -> None:
    """[whether there were as many,] registers of each thread from here on"""
    *got, number = i.operands
    if isinstance(number, Immediate):
        operation = "REGISTERS_TAKE" if "TRY_ALLOC" in i.modifiers else "REGISTERS_GIVE"
        i.emit(operation, pd=got, aux=number.integer)
