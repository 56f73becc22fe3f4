"""FLOP by opcode, whatever the precision."""

import pytest

from analysis.records.counters import InstructionCounts
from analysis.records.metrics import flop


def executed(text, lanes=32):
    opcode = text.split(maxsplit=1)[0].split(".", maxsplit=1)[0]
    return InstructionCounts(
        address=0,
        opcode=opcode,
        text=text,
        file=None,
        line=None,
        executed=1,
        threads=32,
        predicated=lanes,
    )


@pytest.mark.parametrize(
    ("text", "per_lane"),
    [
        ("FFMA R0, R1, R2, R3", 2),
        ("FADD R0, R1, R2", 1),
        ("DMUL R0, R2, R4", 1),
        ("DFMA R0, R2, R4, R6", 2),
        ("HFMA2 R0, R1, R2, R3", 4),  # two halves
        ("HADD2 R0, R1, R2", 2),
        ("HFMA2.MMA R0, -RZ, RZ, 0, 0", 0),  # loads a constant
        ("HADD2.F32 R0, -RZ, R1.H0_H0", 0),  # converts
        ("IMAD R0, R1, R2, R3", 0),
        ("FSETP.GT.AND P0, PT, R0, R1, PT", 0),
    ],
)
def test_flop_of_an_instruction(text, per_lane):
    assert flop([executed(text)]) == 32 * per_lane


def test_lanes_whose_guard_is_false_do_no_flop():
    assert flop([executed("FFMA R0, R1, R2, R3", lanes=5), executed("FADD R0, R1, R2")]) == 42
