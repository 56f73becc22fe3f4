"""Copies past L1, stores and products side by side, against clocks that an H200 took."""

import pytest

from analysis.sm import Kind, Unit
from tests.analysis.streams_by_hand import EXIT, FULL, LDS, code, ran
from validation import ROOT, recordings

RECORDED = ROOT / "validation/timing/recorded/tiles_h200.json"
MEASURED = recordings.read(RECORDED)["constants"]
PADDED = recordings.read(RECORDED.with_name("padded_h200.json"))["constants"]
COPY = {"unit": Unit.LSU, "kind": Kind.COPY, "operands": 2}
PAST_L1 = COPY | {"argument": 1}
HMMA = {"unit": Unit.TENSOR, "pipe_clocks": 6, "stall": 1, "source": [0, 2, 4]}
FREE = {"l2_bytes_per_clock": 1e9, "miss_clocks": 0.0, "operand_clocks": 0}


def copies_and_loads(row, copies, loads, clocks=8):
    lines = [(n, 0b11) for n in range(8)]
    warp = [*[(0, clocks, 0, lines)] * copies, *[(1, 4)] * loads, 2]
    return ran(code(row, LDS, EXIT), *[warp] * 4, **FREE)


def test_copies_past_l1_pass_beside_loads_of_shared_memory():
    both = copies_and_loads(PAST_L1, 8, 40)
    assert both.bypass_busy == 4 * 8 * 8
    assert both.load_store_busy == 4 * (8 + 40 * 4)  # a wavefront of each copy
    assert both.clocks == pytest.approx(4 * (8 + 40 * 4), abs=30)
    kept = copies_and_loads(COPY, 8, 40)
    assert kept.bypass_busy == 0
    assert kept.load_store_busy == 4 * (8 * 8 + 40 * 4)


def test_copies_past_l1_take_what_an_h200_takes():
    """16 copies of rows of 64 bytes more, alone and beside 64 loads of matrices."""
    alone, beside = (
        MEASURED[f"tile_{loads}_matrices_4_copies_of_64_one_sm_cycles"]["value"]
        - MEASURED[f"tile_{loads}_matrices_2_copies_of_64_one_sm_cycles"]["value"]
        for loads in (0, 8)
    )
    more = (
        copies_and_loads(PAST_L1, 16, 0).bypass_busy - copies_and_loads(PAST_L1, 12, 0).bypass_busy
    )
    assert more == pytest.approx(alone, rel=0.01)
    more = copies_and_loads(PAST_L1, 16, 64).clocks - copies_and_loads(PAST_L1, 12, 64).clocks
    assert more == pytest.approx(beside, abs=6)


def test_copies_to_padded_rows_pass_beside_loads_as_on_an_h200():
    """32 copies of 4 lines and 11 writes, and 64 loads of matrices: the longer one counts."""
    lines = [(n, FULL) for n in range(4)]
    warp = [*[(0, 11, 0, lines)] * 8, *[(1, 4)] * 16, 2]
    found = ran(code(PAST_L1, LDS, EXIT), *[warp] * 4, **FREE)
    name = "tile_8_matrices_4_copies_of_128_padded_by_16_cycles"
    assert found.bypass_busy == pytest.approx(PADDED[name]["value"], rel=0.05)
    assert found.load_store_busy == 4 * (8 + 16 * 4)


def test_copies_past_l1_never_hit():
    warp = [(0, 4, 0, [(1, FULL)]), (0, 4, 0, [(1, FULL)]), 1]
    found = [ran(code(row, EXIT), warp, **FREE).l2_read_bytes for row in (PAST_L1, COPY)]
    assert found == [256, 128]


def test_registers_of_one_bank_delay_products():
    """Each takes a clock of its bank, of which the product needs five."""
    of_one_bank = {"unit": Unit.FMA, "pipe_clocks": 2, "source": [6, -1, -1]}
    of_other = {**of_one_bank, "source": [7, -1, -1]}
    table = code({**HMMA, "argument": 5}, of_one_bank, of_other, EXIT)
    turns = 200

    def per_product(*others):
        found = ran(table, *[[*[0, *others] * turns, 3]] * 8, code_lines=0)
        return found.clocks / turns / 2

    assert per_product(1, 1, 1) == pytest.approx(8, abs=0.05)  # 5 + 3
    assert per_product(1, 2, 1, 2) == pytest.approx(7, abs=0.05)  # 5 + 2
    assert per_product(1) == pytest.approx(6, abs=0.05)  # those of the tensor core


@pytest.mark.parametrize(
    "other",
    [
        LDS | {"operands": 1},
        {"unit": Unit.XU, "pipe_clocks": 1},
    ],
    ids=["request", "special function"],
)
def test_requests_and_special_functions_delay_products(other):
    """By a clock each, as an H200 does: of both banks, all of whose clocks the product needs."""
    table, turns = code({**HMMA, "argument": 6}, other, EXIT), 200
    found = ran(table, *[[*[0, 1] * turns, 2]] * 8, code_lines=0)
    assert found.clocks / turns / 2 == pytest.approx(7, abs=0.1)


@pytest.mark.parametrize("pitch", [2048, 4096])
@pytest.mark.parametrize("step", [32, 128])
def test_stores_that_fill_a_sector_of_each_line_take_what_an_h200_takes(pitch, step):
    store = {"unit": Unit.LSU, "kind": Kind.STORE, "operands": 3, "argument": 8}
    lines = [(n, 0b1) for n in range(8)]
    warp = [*[(0, 8, 0, lines)] * 16, 1]
    found = ran(code(store, EXIT), *[warp] * 8, write_bytes_per_clock=19.4)
    name = f"tile_16_stores_of_8_step_{step}_pitch_{pitch}_all_sms_cycles"
    assert found.write_clocks == pytest.approx(MEASURED[name]["value"], rel=0.05)
