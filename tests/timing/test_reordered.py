"""The benchmark that times reordered rungs, as far as it goes without a GPU."""

from benchmarks import reordered
from kernels.selection import parse_selection


def test_ratios_are_of_samples_that_were_taken_together():
    # the clock halved in between: both took twice as long
    assert reordered._paired([3.0, 6.0, 3.0], [2.0, 4.0, 2.0]) == 1.5


def test_a_line_says_rates_and_whether_the_bits_are_the_same():
    record = {
        "rung": "vectorized",
        "shape": [1000, 1000, 1000],
        "same_bits": True,
        "median_s": {"plain": 1e-3, "reordered": 8e-4},  # 2e9 FLOP
        "plain_over_reordered": 1.25,
        "cublas_over_reordered": 0.5,
    }
    line = reordered._line(record)
    assert "the same bits; plain 2.00, reordered 2.50 TFLOP/s" in line
    assert "1.250 times as fast as plain" in line
    assert "OTHER BITS" in reordered._line(record | {"same_bits": False})


def test_its_rungs_are_on_the_ladder():
    assert [parse_selection(rung).label for rung in reordered.RUNGS] == list(reordered.RUNGS)
