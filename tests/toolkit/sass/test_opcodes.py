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
    ("text", "name"),
    [
        ("HMMA.16816.F32 R16, R4.reuse, R12, RZ", "HMMA"),
        ("IMMA.16816.S8.S8 R4, R14.reuse.ROW, R4.COL, RZ", "IMMA"),
        ("BMMA.168128.XOR.POPC R4, R4.ROW, R0.COL, R8", "BMMA"),
        ("DMMA.8x8x4 R4, R8, R10, R4", "DMMA"),
        ("QMMA.16832.F32.E4M3.E4M3 R4, R4, R8, R12", "QMMA"),
        ("LDSM.16.M88 R5, [R0]; HMMA.1688.F32 R16, R8, R0, RZ", "HMMA"),
    ],
)
def test_code_for_tensor_cores_is_refused_by_name(text, name):
    """Tensor-core instructions are refused when they are decoded: their operands are special."""
    with pytest.raises(UnsupportedError, match=rf"tensor cores \({name}\) are not simulated$"):
        lower(instructions(text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("UTCBAR [UR4], URZ", "sm_100a"),
        ("HGMMA.SP.64x8x32.F32 R24, gdesc[UR8], RZ, !UPT, R28, 0x0, gsb0", "sparse matrices"),
    ],
)
def test_what_is_left_out_of_tensor_cores_is_refused_with_a_remedy(text, reason):
    with pytest.raises(UnsupportedError, match=reason):
        lower(instructions(text))


def test_a_constant_in_a_register_pair_is_no_work_of_tensor_cores():
    lower(instructions("HFMA2.MMA R21, -RZ, RZ, 0, 0"))
