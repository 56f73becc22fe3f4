"""The general registers that an instruction reads and writes, and how many each operand names.

nvdisasm prints the first register of an operand: `LDS.128 R4` writes R4 to R7, `[R2.64]` reads R2
and R3. What is not listed here is refused: a register that was overlooked would be overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from toolkit.machine_code.instruction import RZ, Address, Constant, Instruction, Operand, Register
from toolkit.reorder.blocks import refuse


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Opcodes whose first general register is their result, unless it is part of an address.
RESULT = _names(
    "FFMA FADD FMUL FSEL FSET FMNMX FSWZADD MUFU DFMA DADD DMUL HFMA2 HADD2 HMUL2 HSET2 HMNMX2 "
    "IMAD IADD3 IADD VIADD LEA LOP3 SHF SEL MOV PRMT IABS IMNMX VIMNMX VIADDMNMX IDP POPC FLO "
    "BREV FMNMX3 VIMNMX3 VABSDIFF VABSDIFF4 I2F I2FP I2I I2IP F2I F2IP F2F F2FP FRND SGXT BMSK "
    "P2R S2R CS2R B2R VOTE MATCH SHFL LDG LDS LDL LD LDC ATOMG ATOM ATOMS BMOV SYNCS"
)
# Opcodes that only read.
NO_RESULT = _names(
    "ISETP FSETP DSETP HSETP2 PLOP3 FCHK R2P R2UR STG STS STL ST RED REDG LDGSTS LDGDEPBAR DEPBAR "
    "BAR BRA JMP BRX JMX EXIT BSSY BSYNC BREAK WARPSYNC YIELD NANOSLEEP NOP MEMBAR ERRBAR CCTL "
    "CGAERRBAR FENCE ELECT CALL RET S2UR CS2UR LDCU REDUX CREDUX PMTRIG VOTEU ACQBULK PREEXIT "
    "ENDCOLLECTIVE KILL BPT"
)
# Uniform opcodes name no general register at all.
_UNIFORM = "U"
_MEMORY = _names("LDG LDS LDL LD LDC STG STS STL ST RED REDG ATOMG ATOM ATOMS")
_DOUBLES = _names("DFMA DADD DMUL DSETP")
_MEMORY_WORDS = {"64": 2, "128": 4, "U64": 2, "S64": 2, "F64": 2}
_WIDE = {"64", "128", "U64", "S64", "F64", "96", "32x2"}
# Opcodes of which such a modifier makes pairs of all operands.
_PAIRS = _names("DFMA DADD DMUL DSETP MOV SEL IADD3 IADD ISETP IMNMX VIMNMX")
# Opcodes with such modifiers whose operands are single registers all the same.
_SINGLE = _names("SHF SYNCS LDGSTS MUFU CCTL LDCU")


Access = tuple[range, bool]  # the registers that one operand names, and whether they are written


@cache
def _all(instruction: Instruction) -> tuple[Access, ...]:
    """The accesses of an instruction in the order of its text, those to RZ included.

    Raises UnsupportedError for an opcode, or a width, that is not known.
    """
    _check(instruction)
    found = list(_accesses(instruction))
    if instruction.opcode.startswith(_UNIFORM) and found:
        refuse(
            instruction, "it names a general register, which is not known of uniform instructions"
        )
    return tuple(found)


def read(instruction: Instruction) -> Iterator[int]:
    return (r for registers, is_written in _all(instruction) if not is_written for r in registers)


def written(instruction: Instruction) -> Iterator[int]:
    return (r for registers, is_written in _all(instruction) if is_written for r in registers)


def _check(instruction: Instruction) -> None:
    opcode = instruction.opcode
    if opcode not in RESULT | NO_RESULT and not opcode.startswith(_UNIFORM):
        refuse(instruction, f"it is not known which registers {opcode} reads and writes")
    known = _MEMORY | _PAIRS | _SINGLE | {"CS2R", "I2F", "F2I", "F2F", "FRND"}
    wide = _WIDE.intersection(instruction.modifiers)
    if wide and opcode not in known and not opcode.startswith(_UNIFORM):
        refuse(
            instruction, f"it is not known how many registers {opcode}.{min(wide)} reads and writes"
        )


def _accesses(instruction: Instruction) -> Iterator[Access]:
    awaits_result = instruction.opcode in RESULT
    for position, operand in _sources_counted(instruction.operands):
        match operand:
            case Address():
                for register in operand.registers:
                    if register.file == "R":
                        yield _access(register, 2 if "64" in register.suffix else 1)
                awaits_result = False
            case Constant(base=Register(file="R") as base):
                yield _access(base, 1)
            case Register(file="R"):
                words = _words(instruction, position, operand, is_result=awaits_result)
                yield _access(operand, words, is_written=awaits_result)
                awaits_result = False


def _access(register: Register, count: int, *, is_written: bool = False) -> Access:
    first = register.index
    return range(0) if first == RZ else range(first, first + count), is_written


def _sources_counted(operands: Sequence[Operand]) -> Iterator[tuple[int, Operand]]:
    """Operands that are no predicates, with their position among these."""
    others = (x for x in operands if not (isinstance(x, Register) and x.file in ("P", "UP")))
    return enumerate(others)


def _words(instruction: Instruction, position: int, operand: Register, *, is_result: bool) -> int:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _MEMORY:
        return max((_MEMORY_WORDS.get(name, 1) for name in modifiers), default=1)
    if opcode in _PAIRS and (opcode in _DOUBLES or _WIDE.intersection(modifiers)):
        return 2
    if "64" in operand.suffix or opcode == "CS2R":
        return 1 if "32" in modifiers else 2
    if opcode == "IMAD" and {"WIDE", "HI"}.intersection(modifiers):
        return 2 if position == 3 or (is_result and "WIDE" in modifiers) else 1
    if opcode in ("I2F", "F2I", "F2F", "FRND"):
        return _converted(instruction, is_result=is_result)
    # of a barrier in shared memory: the token that an arrival returns; its upper half is the phase
    is_token = opcode == "SYNCS" and is_result
    return 2 if opcode in ("RET", "BRX", "JMX") or is_token else 1


def _converted(instruction: Instruction, *, is_result: bool) -> int:
    """Words of a conversion: the modifiers name the result's format, then the source's."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    doubles = [name for name in modifiers if name in ("F64", "F32", "F16", "BF16")]
    if opcode == "F2F":
        names = doubles if len(doubles) == 2 else ["F32", "F32"]
        return 2 if names[0 if is_result else 1] == "F64" else 1
    integer, floating = {"U64", "S64"}.intersection(modifiers), "F64" in modifiers
    if opcode == "FRND":
        return 2 if floating else 1
    wide = floating if is_result == (opcode == "I2F") else bool(integer)
    return 2 if wide else 1
