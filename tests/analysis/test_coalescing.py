"""Sectors, lines and wavefronts: a slow version, recorded counters, and hand-derived cases."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.coalescing import (
    Wavefronts,
    global_cycles,
    ideal_sectors,
    ideal_wavefronts,
    lines,
    pattern,
    sectors,
    shared_wavefronts,
)
from analysis.errors import InputError
from tests.analysis.tag_banks import tag_cycles
from tests.refusals import refusal
from validation import recordings

RECORDED = Path(__file__).parent / "recorded" / "shared_wavefronts_sm_90.json"
RECORDED_LOADS = RECORDED.with_name("global_loads_sm_90.json")
RECORDED_TAGS = RECORDED.with_name("tag_banks_sm_90.json")
LANE = np.arange(32)


@st.composite
def requests(draw):
    """Addresses, width and active lanes of one request, often with equal and clustered lanes."""
    width = draw(st.sampled_from((1, 2, 4, 8, 16)))
    lanes = draw(st.integers(0, 32))
    highest = draw(st.sampled_from((1, 3, 40, 2**40)))
    units = draw(st.lists(st.integers(0, highest), min_size=lanes, max_size=lanes))
    distance = draw(st.sampled_from((0, 1, 2)))
    units = [units[i & ~distance] for i in range(lanes)]
    active = draw(st.lists(st.booleans(), min_size=lanes, max_size=lanes))
    return [unit * width for unit in units], width, active


def touched_bytes(addresses, width, active):
    return {
        address + offset
        for address, is_active in zip(addresses, active, strict=True)
        if is_active
        for offset in range(width)
    }


def slow_wavefronts(addresses, width, operation, active):
    """The rule of `shared_wavefronts`, lane by lane."""
    at = {lane: address for lane, address in enumerate(addresses) if active[lane]}
    count = {8: 2, 16: 4}.get(width, 1)
    if operation == "load" and count > 1:
        for distance in (1, 2):
            pairs = [(lane, lane ^ distance) for lane in at if lane ^ distance in at]
            if all(at[one] == at[other] for one, other in pairs):
                count = {8: 1, 16: 2}[width]
    groups = [
        [lane for lane in range(first, first + 32 // count) if lane in at]
        for first in range(0, 32, 32 // count)
    ]
    groups = [group for group in groups if group]
    wavefronts = 0
    for group in groups:
        words = {byte // 4 for lane in group for byte in range(at[lane], at[lane] + width)}
        wavefronts += max(Counter(word % 32 for word in words).values())
    return Wavefronts(wavefronts=wavefronts, groups=len(groups))


@given(requests())
def test_sectors_and_lines_equal_the_pieces_that_the_touched_bytes_lie_in(
    request,
):
    addresses, width, active = request
    touched = touched_bytes(addresses, width, active)
    found = [
        count(addresses, width_bytes=width, active=active)
        for count in (sectors, lines, ideal_sectors, ideal_wavefronts)
    ]
    assert found == [
        len({byte // 32 for byte in touched}),
        len({byte // 128 for byte in touched}),
        -(-len(touched) // 32),
        -(-len(touched) // 128),
    ]


@given(requests(), st.sampled_from(("load", "store")))
def test_wavefronts_equal_the_lane_by_lane_version(request, operation):
    addresses, width, active = request
    found = shared_wavefronts(
        np.array(addresses, dtype=np.int64),
        width_bytes=width,
        operation=operation,
        active=np.array(active, dtype=bool),
    )
    assert found == slow_wavefronts(addresses, width, operation, active)


def test_inactive_lanes_touch_no_sector_and_may_hold_any_address():
    addresses = [0, 4, -7, 2**62]
    assert sectors(addresses, width_bytes=4, active=[True, True, False, False]) == 1
    assert sectors(addresses, width_bytes=4, active=[False] * 4) == 0


def test_wavefronts_and_conflicts_equal_the_counters_of_an_h200():
    """Recorded on an H200 (sm_90, CUDA 13.0) with Nsight Compute.

    Each row is a launch of 8,192 equal requests, by 4 warps, with the counters
    l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{ld,st}.sum and
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{ld,st}.sum. Stores meet a few arbitration
    conflicts with other traffic, 4e-4 of the wavefronts at most.
    """
    launched = 8192
    rows = recordings.read(RECORDED)["requests"]
    assert len(rows) == 336
    for row in rows:
        mask = int(row["active_mask"], 16)
        found = shared_wavefronts(
            row["addresses"],
            width_bytes=row["width_bytes"],
            operation=row["operation"],
            active=[bool(mask >> lane & 1) for lane in range(32)],
        )
        assert row["wavefronts"] / launched == pytest.approx(found.wavefronts, abs=4e-4), row
        assert row["conflicts"] / launched == pytest.approx(found.conflicts, abs=4e-4), row


@pytest.mark.parametrize(
    ("addresses", "arguments", "message"),
    [
        ([0] * 7 + [2], {"width_bytes": 4}, "lane 7: address 0x2 is not a multiple of 4 bytes"),
        ([0, -4], {"width_bytes": 4}, "lane 1: address -0x4 is negative"),
        ([0] * 33, {"width_bytes": 4}, "at most 32"),
        ([[0, 4]], {"width_bytes": 4}, "one per lane"),
        ([0.0, 4.0], {"width_bytes": 4}, "give integers"),
        ([0], {"width_bytes": 3}, "1, 2, 4, 8 or 16 bytes"),
        ([0, 4], {"width_bytes": 4, "active": [True]}, "one boolean per address, 2"),
        ([0, 4], {"width_bytes": 4, "active": [0, 1]}, "one boolean per address, 2"),
    ],
)
def test_a_request_that_no_warp_can_make_is_refused(addresses, arguments, message):
    for count in (sectors, lines, ideal_sectors, shared_wavefronts):
        with pytest.raises(InputError, match=message):
            count(addresses, **arguments)


def test_a_lane_is_named_by_its_place_in_the_warp_not_among_the_active():
    assert "lane 2: address 0x6" in refusal(
        InputError, sectors, [0, 0, 6], width_bytes=4, active=[False, True, True]
    )


@pytest.mark.parametrize(
    ("addresses", "width_bytes", "clocks"),
    [
        (LANE * 4, 4, 1),  # 32 banks, 1 line
        (LANE * 0, 4, 1),  # one word
        (LANE * 8, 4, 2),  # 2 words in each of 16 banks
        (LANE * 128, 4, 32),  # all in bank 0
        (LANE * 132, 4, 8),  # 32 banks, but 32 lines / 4 tags
        (LANE * 16, 16, 4),  # 512 B / 128 B
        (LANE * 0, 16, 4),  # one line, and yet 16 bytes per lane
        (LANE // 16 * 16384 + LANE % 16 * 4, 4, 2),  # two rows that start in one bank
    ],
)
def test_a_global_load_takes_its_conflicts_or_a_quarter_of_its_lines(
    addresses, width_bytes, clocks
):
    assert global_cycles(addresses, width_bytes=width_bytes) == clocks


def test_idle_lanes_take_no_clock_of_a_global_load():
    assert global_cycles(LANE * 128, width_bytes=4, active=LANE < 3) == 3
    assert global_cycles(LANE * 128, width_bytes=4, active=LANE < 0) == 0


def recorded_loads():
    """(name, addresses, width in bytes, clocks per load) of the recorded microbenchmark."""
    return [
        (row["pattern"], np.array(row["addresses"]), row["width_bytes"], row["cycles"])
        for row in recordings.read(RECORDED_LOADS)["loads"]
    ]


def test_no_recorded_load_took_less_than_the_rule_says():
    loads = recorded_loads()
    assert len(loads) > 200
    for name, addresses, width, measured in loads:
        # 7%: columns of pitch 128, 1,024 and 2,048 bytes took 30 clocks, all others at least 32
        assert global_cycles(addresses, width_bytes=width) <= 1.07 * measured, name


def test_tags_take_what_was_recorded_within_32_mib():
    rows = recordings.read(RECORDED_TAGS)["loads"]
    near = [row for row in rows if int(row["pattern"].split()[-1].removeprefix("2^")) < 18]
    assert len(near) > 90
    for row in near:
        addresses = np.array(row["addresses"])
        # 4 / 3: any load of a line; 0.4: full banks save a little, as columns of 30 clocks do
        expected = max(tag_cycles(addresses), 4 / 3)
        assert row["cycles"] == pytest.approx(expected, abs=0.4), row["pattern"]


def test_tags_and_data_banks_explain_all_recorded_loads_of_a_word():
    words = [load for load in recorded_loads() if load[2] == 4]
    assert len(words) > 100
    for name, addresses, width, measured in words:
        expected = max(global_cycles(addresses, width_bytes=width), tag_cycles(addresses, width))
        if expected > 1 and expected != 32:  # columns of some pitches take 30
            assert measured == pytest.approx(expected, abs=0.1), name


def test_each_bank_of_tags_takes_one_line_per_clock():
    assert tag_cycles(128 * np.arange(4)) == 1  # in banks 0, 1, 2 and 1 ^ 2
    assert tag_cycles(128 * np.arange(5)) == 2
    # by hand: 5 and 10 in binary are 0101 and 1010, whose bits are of one mask each
    assert tag_cycles(128 * np.array([0b0101, 0b1010, 0])) == 3
    assert tag_cycles(np.zeros(32, dtype=int)) == 1


def test_a_global_pattern_occupies_the_load_store_unit_for_its_bank_conflicts():
    every_other_float4 = pattern(
        space="global",
        operation="load",
        operand="A",
        addresses=LANE * 32,
        instruction_bytes=16,
        requests=10,
    )
    # a sector per lane, half of it used; 128 words in the same half of the banks: 128 / 16
    assert (every_other_float4.sectors, every_other_float4.ideal_sectors) == (32, 16)
    assert every_other_float4.cycles == 8
    assert every_other_float4.wavefronts is None


def test_a_shared_pattern_occupies_the_load_store_unit_for_its_wavefronts():
    row_of_a = pattern(
        space="shared",
        operation="load",
        operand="A",
        addresses=LANE * 8,
        instruction_bytes=4,
        requests=10,
    )
    assert (row_of_a.wavefronts, row_of_a.ideal_wavefronts, row_of_a.cycles) == (2, 1, 2)
    assert row_of_a.sectors is None


def test_a_pattern_without_active_lanes_is_refused():
    assert "at least one active lane" in refusal(
        InputError,
        pattern,
        space="global",
        operation="load",
        operand="A",
        addresses=[0],
        instruction_bytes=4,
        requests=1,
        active=[False],
    )
