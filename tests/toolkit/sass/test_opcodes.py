"""The written list of opcodes is the registry's."""

import pytest

from analysis.errors import UnsupportedError
from docs.opcodes import opcode_list
from tests.probe import instructions
from toolkit.sass.isa.registry import lower
from validation import ROOT


def test_the_written_list_is_the_registry():
    written = (ROOT / "docs" / "opcodes.md").read_text(encoding="utf-8")
    assert written == opcode_list(), "run: python -m docs.opcodes > docs/opcodes.md"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("UTCBAR [UR4], URZ", "sm_100a"),
        ("HMMA.SP.16832.F32 R8, R4, R8, RZ, R0, 0x0", "sparse matrices"),
        ("IMMA.SP.16864.S8.S8 R8, R4.ROW, R8.COL, RZ, R0, 0x0", "sparse matrices"),
        ("QMMA.16832.F32.E2M1.E2M1 R12, R12, R16, R20", "sm_90"),
        ("OMMA.SF.16864.F32.E2M1.E2M1.E8 R12, R12, R16, R20, R2, R3, URZ", "sm_90"),
        ("OMMA.SF.SP.168128.F32.E2M1.E2M1.E8 R12, R12, R16, R20, R2, R3, URZ", "sparse matrices"),
        ("QMMA.SF.SP.16864.F32.E4M3.E2M1.E8 R12, R12, R16, R20, R2, R3, URZ", "sparse matrices"),
        ("QMMA.16832.F32.E4M3.E4M3 R4, R4.ROW, R8.COL, R12", "sm_90"),
        ("HMMA.16816.F32 R4, -R4, R8, R12", "registers of a matrix"),
        ("HGMMA.SP.64x8x32.F32 R24, gdesc[UR8], RZ, !UPT, R28, 0x0, gsb0", "sparse matrices"),
    ],
)
def test_what_is_left_out_of_tensor_cores_is_refused_with_a_remedy(text, reason):
    with pytest.raises(UnsupportedError, match=reason):
        lower(instructions(text))


def test_a_constant_in_a_register_pair_is_no_work_of_tensor_cores():
    lower(instructions("HFMA2.MMA R21, -RZ, RZ, 0, 0"))
