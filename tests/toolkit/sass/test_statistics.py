"""Facts about the code that follow from counts per instruction."""

from analysis.records.counters import InstructionCounts
from toolkit.sass.statistics import loop_bytes


def test_the_bytes_of_a_loop_are_those_of_what_is_executed_over_and_over():
    def code(*executed):
        return [
            InstructionCounts(
                address=16 * n,
                opcode="NOP",
                text="NOP",
                file=None,
                line=None,
                executed=times,
                threads=0,
                predicated=0,
            )
            for n, times in enumerate(executed)
        ]

    assert loop_bytes(code(8, 8, 800, 800, 790, 8, 0)) == 3 * 16
    assert loop_bytes(code(8, 8, 8)) == loop_bytes(code(0)) == loop_bytes([]) == 0
    assert loop_bytes(code(8, 16, 16, 8)) == 2 * 16
