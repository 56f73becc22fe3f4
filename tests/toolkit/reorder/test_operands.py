import re

import numpy as np
import pytest

from analysis.errors import UnsupportedError
from tests.probe import State, instructions, probe
from toolkit.machine_code.instruction import RZ
from toolkit.reorder.operands import read, written

# Of each form one whose operands are all different.
PLAIN = """
FFMA R0, R10, R20, R30; FMUL R0, R10, R20; FADD R0, R10, R20; IADD3 R0, P1, R10, R20, R30
IMAD R0, R10, R20, R30; IMAD.WIDE R0, R10, R20, R30; IMAD.WIDE.U32 R0, P1, R10, R20, R30
IMAD.HI.U32 R0, R10, R20, R30; LEA R0, P1, R10, R20, 0x2; LEA.HI.X R0, R10, R20, R30, 0x2, P1
LOP3.LUT R0, R10, R20, R30, 0xc0, !PT; SHF.L.U32 R0, R10, R20, R30; SHF.R.S32.HI R0, R10, R20, R30
SHF.L.U64.HI R0, R10, R20, R30; SEL R0, R10, R20, P1; MOV R0, R10; PRMT R0, R10, R20, R30
ISETP.GE.AND P1, PT, R10, R20, PT; FSETP.GT.AND P1, PT, R10, R20, PT; CS2R R0, SRZ; CS2R.32 R0, SRZ
DFMA R0, R10, R20, R30; DADD R0, R10, R20; DMUL R0, R10, R20; DSETP.GT.AND P1, PT, R10, R20, PT
I2F.U32.RP R0, R10; I2F.F64 R0, R10; I2F.U64.RP R0, R10; F2I.U64.TRUNC R0, R10
F2I.FTZ.U32.TRUNC.NTZ R0, R10; F2I.F64.TRUNC R0, R10; F2F.F64.F32 R0, R10; F2F.F32.F64 R0, R10
MUFU.RCP R0, R10; MUFU.RCP64H R0, R10; HFMA2.MMA R0, R10, R20, R30; HADD2 R0, R10, R20; IABS R0, R10
P2R R0, PR, R10, 0x3; R2P PR, R10, 0x7e; POPC R0, R10; FSEL R0, R10, R20, P1; BREV R0, R10
VIMNMX R0, R10, R20, PT; FMNMX R0, R10, R20, PT; SGXT R0, R10, R20; IDP.4A.S8.S8 R0, R10, R20, R30
@P2 FFMA R0, R10, R20, R30; FFMA R0, R10, 2, R30; FMUL R0, R10, UR4; FRND.F64.FLOOR R0, R10
"""


def _forms():
    return [part.strip() for part in re.split(r"[;\n]", PLAIN) if part.strip()]


@pytest.mark.parametrize("text", _forms())
def test_what_the_simulator_touches_is_known(text):
    (instruction,) = instructions(text)
    is_read, is_written = set(read(instruction)), set(written(instruction))
    random = np.random.default_rng(0)
    state = State(r=random.integers(0, 1 << 32, (256, 32), dtype=np.uint32))
    state.r[10:32] &= 0x4FFFFFFF  # no NaNs, whose bits get lost
    state.p[1:3] = 0x0F0F0F0F, 0x00FF00FF
    plain = probe(text, state)
    assert set(_changed(state, plain)) <= is_written
    for register in range(40):
        other = state.copy()
        other.r[register] ^= random.integers(1, 1 << 23, 32, dtype=np.uint32)
        after = probe(text, other)
        is_changed = set(_changed(plain, after)) - {register} or (after.p != plain.p).any()
        assert register in is_read or not is_changed, f"R{register}"


def _changed(a, b):
    return [int(r) for r in np.flatnonzero((a.r != b.r).any(axis=1)) if r != RZ]


@pytest.mark.parametrize(
    ("text", "wanted_read", "wanted_written"),
    [
        ("LDS.128 R4, [R93+0x10]", [93], [4, 5, 6, 7]),
        ("LDS.64 R4, [R93.X4]", [93], [4, 5]),
        ("LDG.E.128.CONSTANT R52, desc[UR6][R40.64]", [40, 41], [52, 53, 54, 55]),
        ("@!P0 LDG.E R8, desc[UR6][R40.64]", [40, 41], [8]),
        ("STG.E.128 desc[UR6][R2.64+0x10], R8", [2, 3, 8, 9, 10, 11], []),
        ("STS [R95+0x200], R53", [53, 95], []),
        ("STS.128 [R89], RZ", [89], []),
        ("LDGSTS.E.BYPASS.128 [R5], desc[UR4][R6.64]", [5, 6, 7], []),
        ("ATOMG.E.ADD.STRONG.GPU PT, R11, desc[UR4][R8.64], R15", [8, 9, 15], [11]),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R5", [2, 3, 5], []),
        ("LDC.64 R2, c[0x0][0x210]", [], [2, 3]),
        ("LDC R2, c[0x3][R6+0x4]", [6], [2]),
        ("SHFL.BFLY PT, R4, R5, 0x1, 0x1f", [5], [4]),
        ("R2UR UR6, R20", [20], []),
        ("RET.REL.NODEC R136, 0x0", [136, 137], []),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [R9+URZ], R7", [7, 9], []),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR6], R8", [8], []),
        ("SYNCS.ARRIVE.TRANS64.A1T0 R2, [UR6], RZ", [], [2, 3]),
        ("SYNCS.ARRIVE.TRANS64 RZ, [R9+URZ], R14", [9, 14], []),
        ("UTMALDG.2D [UR16], [UR6]", [], []),
        ("IADD.64 R2, R4, R6", [4, 5, 6, 7], [2, 3]),
        ("BRA 0x100", [], []),
    ],
)
def test_registers_of_addresses_and_of_what_is_moved(text, wanted_read, wanted_written):
    (instruction,) = instructions(text)
    assert sorted(set(read(instruction))) == wanted_read
    assert sorted(written(instruction)) == wanted_written


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("HMMA.16816.F32 R4, R8, R12, R4", "which registers HMMA reads and writes"),
        ("POPC.U64 R4, R8", "how many registers POPC.U64 reads and writes"),
        ("UMOV UR4, R5", "it names a general register"),
    ],
)
def test_what_is_not_known_is_refused(text, what):
    (instruction,) = instructions(text)
    with pytest.raises(UnsupportedError, match=what):
        list(read(instruction))
