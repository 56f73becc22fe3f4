"""The loops of the probe of operands hold what they claim to measure."""

import re

import pytest

from tests.cubins import cubin_of
from toolkit.microbenchmarks.operands import OPERATIONS, SOURCE


@pytest.mark.parametrize(
    ("name", "opcode"),
    [
        ("dfma_three", "DFMA"),
        ("dfma_two", "DFMA"),
        ("dadd_two", "DADD"),
        ("division", "FCHK"),
        ("unchecked_division", "MUFU"),
    ],
)
def test_a_round_has_as_many_operations_as_it_counts(name, opcode):
    program = cubin_of(f"#define OPERATIONS {OPERATIONS}\n{SOURCE}", name, "sm_90")
    texts = [instruction.text for instruction in program.instructions]
    clocks = [k for k, text in enumerate(texts) if "SR_CLOCK" in text]
    inside = texts[clocks[0] : clocks[-1]]
    assert sum(opcode in text for text in inside) >= OPERATIONS
    assert ("FCHK" in "".join(inside)) == (name == "division")
    if name == "dfma_three":
        operands = [re.findall(r"\bR\d+", text)[1:] for text in inside if opcode in text]
        assert [len(set(one)) for one in operands].count(3) == OPERATIONS
