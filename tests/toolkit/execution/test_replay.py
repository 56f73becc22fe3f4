"""Choice of the SM and the blocks that are replayed; values by hand."""

from dataclasses import replace

import numpy as np
import pytest

import toolkit.execution.replay
from analysis.timing.work import NO_EXCHANGE
from toolkit.execution.replay import (
    ExchangingBlocks,
    blocks_of_busiest_sm,
    blocks_of_last_sm,
    clusters_of_blocks,
    first_blocks,
    of_copying_blocks,
    spread_blocks,
)
from toolkit.execution.schedule import (
    Schedule,
    lifetimes_of,
    rounds_of,
    scheduled,
    sm_of,
    typical_steps,
    unequal_schedule,
)
from toolkit.sass.core.binding import WORK
from validation import ROOT, recordings

DEALT = recordings.read(ROOT / "validation/timing/recorded/dealt_blocks_h200.json")["constants"]
EAGER = 8  # SMs that get blocks more often
WARPS = 4


def work(longest):
    """Blocks of four warps that execute as much as the longest one."""
    found = np.zeros(len(longest), dtype=WORK)
    found["longest"], found["executed"] = longest, WARPS * np.asarray(longest)
    return found


def replayed(longest, sms, per_sm, read_by_block=None):
    of_blocks = work(longest)
    reads = np.ones(len(longest)) if read_by_block is None else read_by_block
    schedule = unequal_schedule(of_blocks, sms, per_sm)
    return None if schedule is None else blocks_of_last_sm(schedule, of_blocks, sms, per_sm, reads)


def sequence(found):
    """Blocks that the SM runs, in order."""
    return [found.blocks[place] for place in found.of_sm.orders[-1]]


# --- lifetimes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("longest", "expected"),
    [
        ([20] * 100 + [1000], 20),  # 2,000 of 3,000 instructions are in blocks of 20
        ([20] * 10 + [1000], 1000),  # 1,000 of 1,200 are in the block of 1,000
        ([100, 2, 100, 2], 100),  # blocks that exit at once execute 4 of 204
        ([1, 2, 3, 4], 3),  # 1 + 2 < 5 <= 1 + 2 + 3
        ([0], 1),
    ],
)
def test_a_typical_block_is_where_half_of_all_work_is_done(longest, expected):
    assert typical_steps(work(longest)) == expected


def test_lifetimes_are_relative_to_a_typical_block():
    assert lifetimes_of(work([20, 10, 20, 20, 1, 30])).tolist() == [1, 0.5, 1, 1, 0.05, 1.5]


# --- list schedule ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lifetimes", "slots", "slot", "start"),
    [
        ([3, 1, 1, 2, 1], 2, [0, 1, 1, 1, 0], [0, 0, 1, 2, 3]),
        ([1, 1, 1, 1, 1], 2, [0, 1, 0, 1, 0], [0, 0, 1, 1, 2]),  # the first of several free slots
        ([2, 1, 1], 4, [0, 1, 2], [0, 0, 0]),
        ([4, 0, 0, 0], 2, [0, 1, 1, 1], [0, 0, 0, 0]),  # who exits at once leaves the slot
    ],
)
def test_blocks_take_the_slot_that_becomes_free_first(lifetimes, slots, slot, start):
    found = scheduled(np.array(lifetimes, dtype=float), slots)
    assert [part.tolist() for part in found] == [slot, start]


def test_each_round_over_the_sms_begins_eight_later_where_nobody_recorded_it():
    assert sm_of(np.array([0, 1, 81, 82, 164, 171]), 82, 8).tolist() == [0, 1, 81, 8, 16, 23]


@pytest.mark.parametrize(
    ("grid", "first", "fewest", "most"),
    [
        (132, 132, 1, 1),
        (264, 132, 0, 2),
        (264, 264, 2, 2),
        (391, 391, 2, 3),
        (782, 391, 2, 5),
        (100096, 391, 2, 5),
        (700, 700, 5, 6),
        (1400, 700, 5, 8),
        (1056, 1056, 8, 8),
    ],
)
def test_an_h200_deals_the_first_blocks_to_eight_sms_more_often(grid, first, fewest, most):
    """Recorded: the fewest and most of the first blocks that an SM gets, 8 resident."""
    rounds = rounds_of(grid, 132, 8)
    found = np.bincount(sm_of(np.arange(first), 132, rounds), minlength=132)
    assert (found.min(), found.max()) == (fewest, most)


@pytest.mark.parametrize(
    ("every", "most"), [(2, 32), (4, 32), (8, 16), (3, 12), (16, 9), (12, 12), (132, 4)]
)
def test_blocks_at_equal_distances_meet_on_an_sm_as_they_do_on_an_h200(every, most):
    # of the 32 blocks of an SM, as recorded
    assert np.bincount(sm_of(np.arange(every // 2, 4224, every), 132, 32)).max() == most


def recorded_sms(threads):
    """The recorded SM of each block, in the order in which SMs got their first block."""
    sms = DEALT[f"dealt_{threads}_threads_blocks"]["detail"]["sms"]
    first = list(dict.fromkeys(sms))
    return np.array([first.index(sm) for sm in sms])


def test_the_first_blocks_of_256_threads_are_dealt_as_recorded():
    found = sm_of(np.arange(8 * 132), 132, 8)
    assert found.tolist() == recorded_sms(256).tolist()


def test_of_64_threads_the_eight_began_with_three_turns_that_the_rule_has_not():
    recorded, found = recorded_sms(64), sm_of(np.arange(32 * 132), 132, 32)
    others = recorded[recorded >= EAGER]
    assert others.tolist() == found[found >= EAGER].tolist()
    turns = [
        np.diff(np.flatnonzero(np.append(sms, 0) < EAGER)[EAGER - 1 :: EAGER]) - EAGER
        for sms in (recorded, found)
    ]
    assert turns[0][:3].tolist() == [24, 48, 52]
    assert turns[0][3:31].tolist() == turns[1][:28].tolist()


# --- do blocks differ ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "longest",
    [
        [100] * 40,
        [100, 104, 96, 100] * 10,  # within 5% of the mean
        [100] * 40 + [1] * 40,  # those that exit at once leave the others alike
        [100] * 5 + [1] * 3,  # two rounds, as if there were none but the five
        [100, 90, 110, 100] * 100,  # 100 rounds: all slots end at about the same time
        [7],
    ],
)
def test_blocks_that_are_alike(longest):
    assert unequal_schedule(work(longest), 4, 1) is None


@pytest.mark.parametrize(
    "longest",
    [
        [100] * 39 + [200],  # ten rounds: the last one takes longer
        [100, 1] * 4,  # in one round, SMs 0 and 2 get twice as much
        [20] * 3999 + [1000] * 100,  # those that seem to exit at once do most of the work
    ],
)
def test_blocks_that_differ(longest):
    found = unequal_schedule(work(longest), 4, 2)
    assert found is not None
    assert found.typical_steps == typical_steps(work(longest))
    assert found.lifetimes.tolist() == lifetimes_of(work(longest)).tolist()


def test_blocks_as_long_as_each_other_may_have_fewer_warps_with_work():
    # of 4 blocks of 8 warps the last one has one: the average block executes 78% of the others
    of_blocks = work([100] * 4)
    of_blocks["executed"] = [800, 800, 800, 100]
    assert unequal_schedule(of_blocks, 132, 6) is not None
    of_blocks["executed"] = [800] * 3 + [780]
    assert unequal_schedule(of_blocks, 132, 6) is None


def test_blocks_of_a_kind_that_is_common_but_not_average_differ():
    # each SM gets 1 of 8 long blocks and 80 of 640 short ones, which are half of all work
    longest = ([400] + [40] * 80) * 8
    assert unequal_schedule(work(longest), 8, 1) is not None


def test_many_short_blocks_count_by_their_work():
    # 4,000 blocks of 1% execute 40 of 140 lifetimes, in as much time as the schedule without them
    assert replayed([1000] * 100 + [10] * 4000, 4, 1) is not None


# --- the SM that ends last ----------------------------------------------------------------------


def test_a_heavy_block_among_light_ones_is_replayed_with_its_neighbours():
    longest = np.full(16, 100)
    longest[9] = 1000  # of 8 slots: in the second round of SM 1
    found = replayed(longest, 4, 2)
    assert sequence(found) == [1, 5, 9, 13]
    assert found.blocks[0] == 9  # the longest block comes first
    assert found.of_sm.blocks == len(sequence(found))
    assert found.of_sm.rounds == pytest.approx(1.1)  # 100 + 1000 of 1000
    executed = longest[sequence(found)].sum()
    assert found.of_sm.relative_work == pytest.approx(executed / (2500 / 4))
    assert found.weight == 1


def test_a_block_that_starts_last_is_the_last_one():
    """If heavy blocks finish at the same time, one waits for the older blocks of its SM."""
    longest = np.full(32, 100)
    longest[[0, 13]] = 1000, 1000  # the first block of SM 0, the last one of SM 1
    found = replayed(longest, 4, 4)
    assert 13 in sequence(found)
    assert 0 not in sequence(found)


@pytest.mark.parametrize(("heavy", "expected"), [([1, 2, 6], [2, 6, 10]), ([1, 5, 2], [1, 5, 9])])
def test_an_sm_with_two_heavy_blocks_decides(heavy, expected):
    longest = np.full(12, 100)
    longest[heavy] = 1000
    assert sequence(replayed(longest, 4, 3)) == expected


@pytest.mark.parametrize(("longest_of_busy", "last"), [(500, [1]), (950, [0])])
def test_of_sms_that_end_late_the_one_with_most_work_decides(longest_of_busy, last):
    of_blocks = work([longest_of_busy, 1000, 100, 100])
    of_blocks["executed"][0] = 32 * longest_of_busy  # its other warps execute more
    found = blocks_of_last_sm(unequal_schedule(of_blocks, 4, 1), of_blocks, 4, 1, np.ones(4))
    assert found.blocks == last


def test_fewer_blocks_than_sms():
    found = replayed([50] * 7 + [5000] + [50] * 52, 132, 8)
    assert (found.blocks, found.of_sm.orders, found.of_sm.further) == ([7], ((0,),), 0)
    assert found.of_sm.rounds == 1
    # 5,000 of 7,950 instructions, on one of 60 SMs
    assert found.of_sm.relative_work == pytest.approx(5000 / (7950 / 60))


def test_reads_are_relative_to_the_average_sm():
    longest, reads = [100] * 7 + [900], np.array([1.0] * 7 + [9.0])
    assert replayed(longest, 4, 2, read_by_block=reads).of_sm.relative_reads == 10 / (16 / 4)
    assert replayed(longest, 4, 2, read_by_block=np.zeros(8)).of_sm.relative_reads == 1
    fewer = np.array([1.0] * 7 + [0.0])  # others have the bandwidth that it does not need
    assert replayed(longest, 4, 2, read_by_block=fewer).of_sm.relative_reads == 1
    assert replayed(longest, 4, 2).of_sm.relative_reads == 1


def test_blocks_of_one_kind_stand_for_each_other():
    longest = [100] * 31 + [5000]
    found = replayed(longest, 1, 32)
    assert found.blocks == [31, 3, 11, 19, 27]  # four of 31 blocks, evenly spread
    assert found.of_sm.orders[0][:6] == (1, 2, 3, 4, 1, 2)
    assert found.of_sm.orders[0][-1] == 0
    assert found.weight == 1


def test_a_kind_counts_by_what_its_blocks_execute_on_average():
    longest = [256, 260, 256, 260, 256, 260, 256, 5000]  # one kind: an eighth of an octave is 9%
    found = replayed(longest, 1, 8)
    of_sampled = sum(longest[block] for block in sequence(found))
    assert found.weight == pytest.approx(sum(longest) / of_sampled)


def test_where_samples_execute_much_they_are_fewer(monkeypatch):
    longest = [100, 110, 121, 133] * 8 + [5000]
    assert len(replayed(longest, 1, 64).blocks) > 8
    monkeypatch.setattr(toolkit.execution.replay, "MOST_SAMPLED", 1)
    few = replayed(longest, 1, 64)
    assert len(few.blocks) == 3  # octaves: 64 to 127, 128 to 255, and 4,096 to 8,191
    assert few.weight == pytest.approx(sum(longest) / sum(longest[b] for b in sequence(few)))


def test_of_many_blocks_two_numbers_are_replayed(monkeypatch):
    """The last block of each slot is, and of those before every n-th."""
    longest = np.where(np.arange(400) % 2, 100, 300)
    longest[-1] = 4000
    everything = replayed(longest, 1, 4)
    assert [len(order) for order in everything.of_sm.orders] == [400]
    monkeypatch.setattr(toolkit.execution.replay, "MOST_REPLAYED", WARPS * 24_000)
    found = replayed(longest, 1, 4)
    few, many = map(len, found.of_sm.orders)
    assert found.of_sm.blocks == 400
    assert 4 + (many - 4) // 2 <= few < many < 400
    executed = [
        sum(longest[found.blocks[place]] for place in order) for order in found.of_sm.orders
    ]
    whole = executed[0] + found.of_sm.further * (executed[1] - executed[0])
    assert whole == pytest.approx(longest.sum(), rel=0.01)
    assert 12_000 < executed[1] <= 24_000
    assert found.of_sm.orders[0][-1] == found.of_sm.orders[1][-1] == 0  # the heavy block is kept


def test_two_waves_and_the_last_blocks_are_the_least_that_is_replayed(monkeypatch):
    longest = np.full(400, 100)
    longest[[396, 397, 398, 399]] = 4000, 700, 1200, 2000  # the last one of each slot
    monkeypatch.setattr(toolkit.execution.replay, "MOST_REPLAYED", 1)
    found = replayed(longest, 1, 4)
    assert [len(order) for order in found.of_sm.orders] == [4 + 4, 4 + 8]
    for order in found.of_sm.orders:
        assert [found.blocks[place] for place in order[-4:]] == [396, 397, 398, 399]
    assert found.of_sm.further == (396 - 4) / 4


def test_a_block_that_holds_its_slot_until_the_end_is_replayed(monkeypatch):
    longest = np.full(400, 100)
    longest[5] = 90_000  # three other slots take 394 blocks
    monkeypatch.setattr(toolkit.execution.replay, "MOST_REPLAYED", 1)
    found = replayed(longest, 1, 4)
    for order in found.of_sm.orders:
        assert 5 in [found.blocks[place] for place in order[:3]]


def test_the_end_of_a_block_follows_from_its_start():
    slot, start = scheduled(np.array([2.0, 1.0, 1.0]), 2)
    found = Schedule(lifetimes=np.array([2.0, 1.0, 1.0]), slot=slot, start=start, typical_steps=9.0)
    assert found.end.tolist() == [2, 1, 2]


# --- blocks that copy for their cluster ---------------------------------------------------------


def test_clusters_are_counted_like_blocks():
    of_rows = clusters_of_blocks((4, 2, 1), (2, 1, 1))
    assert of_rows.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    of_squares = clusters_of_blocks((4, 4, 1), (2, 2, 1))
    assert of_squares.tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]


def test_the_block_that_copies_for_its_cluster_is_replayed():
    reads = np.tile([1.0, 3.0], 8)  # the second block of each pair copies for both
    found = of_copying_blocks(spread_blocks(range(16), 4), reads, np.arange(16) // 2)
    assert all(block % 2 == 1 for block in found.blocks)
    assert found.relative_reads == pytest.approx(1.5)


def test_blocks_that_copy_alike_read_as_much_as_the_average():
    found = of_copying_blocks(spread_blocks(range(16), 4), np.ones(16), np.arange(16) // 2)
    assert found.relative_reads == 1.0
    assert len(found.blocks) == len(spread_blocks(range(16), 4).blocks)


# --- equal blocks, and blocks that exchange data --------------------------------------------------


@pytest.mark.parametrize(
    ("busy", "sms", "expected"),
    [
        (range(3), 4, [0]),  # each is alone on its SM
        (range(8), 4, [2, 6]),
        (range(64), 4, [10, 26, 42, 58]),  # of the 16 blocks 2, 6, ... of SM 2: 2nd, 6th, ...
        (range(5, 69), 4, [15, 31, 47, 63]),  # the first five exit at once
    ],
)
def test_equal_blocks_are_spread_over_those_of_one_sm(busy, sms, expected):
    found = spread_blocks(busy, sms)
    assert found.blocks == expected
    assert found.busy_blocks == len(busy)
    assert found.is_of_equal_blocks
    assert found.weight is None


def test_blocks_that_execute_as_much_as_the_average_stand_for_all():
    executed = np.full(64, 100.0)
    executed[2::4] = 150  # those of SM 2, in the middle; the average block executes 112.5
    executed[1::8] = 150  # half of those of SM 1
    assert spread_blocks(range(64), 4).blocks == [10, 26, 42, 58]
    assert spread_blocks(range(64), 4, executed).blocks[0] % 4 != 2
    executed[2::4] = 102  # within 5% of the average
    assert spread_blocks(range(64), 4, executed).blocks == [10, 26, 42, 58]


@pytest.mark.parametrize(
    ("blocks", "sms", "expected"),
    [
        (1000, 132, [66, 198, 330, 462]),  # each 132 after the one before
        (132, 132, [0]),
        (1, 132, [0]),
        (200, 132, [66, 198]),
    ],
)
def test_the_first_blocks_of_an_sm_lie_apart(blocks, sms, expected):
    assert first_blocks(blocks, sms).blocks == expected


def test_the_first_blocks_of_an_sm_with_few_partial_ones_are_taken():
    assert first_blocks(100, 4, lambda block: block == 6).blocks == [1, 5, 9, 13]
    assert first_blocks(6, 4, lambda block: block == 5).blocks == [0, 4]  # the most blocks first


def exchanging(**changes):
    """Twelve blocks on four SMs, the first four of which share tiles; SM 1 has most work."""
    facts = {
        "first": 0,
        "sharing": 4,
        "work": np.array([10, 20, 10, 10, *[5] * 8]),
        "reads": np.array([1, 6, 1, 4, *[3] * 8]),
        "bytes": 600.0,
        "writers": 3,
    }
    return ExchangingBlocks(**(facts | changes))


def test_of_blocks_that_exchange_data_the_sm_with_most_work_is_replayed():
    found = blocks_of_busiest_sm(exchanging(), sms=4, per_sm=1)
    assert found.blocks == [1, 5, 9]  # one that shares, and two waves of one block
    assert found.busy_blocks == 12
    assert found.weight == 1.0
    assert found.exchanged.unlike == 1
    # SM 1 reads 6 + 3 + 3, all SMs 36
    assert found.exchanged.relative_l2_reads == pytest.approx(12 / 9)
    assert found.exchanged.read_back_bytes == 600
    assert found.exchanged.left_bytes == 200
    assert not found.is_of_equal_blocks


def test_of_equally_busy_sms_the_one_in_the_middle_is_replayed():
    def first_block(*of_sms):
        launch = exchanging(work=np.array([*of_sms, *[0] * 8]))
        return blocks_of_busiest_sm(launch, sms=4, per_sm=1).blocks[0]

    assert first_block(10_000, 10_000, 10_000, 10_000) == 2
    assert first_block(10_009, 10_000, 10_000, 9_000) == 2  # 0.09% more: polls differ by as much
    assert first_block(10_020, 10_000, 10_000, 9_000) == 0
    assert first_block(10_000, 9_000, 9_000, 10_000) == 3


@pytest.mark.parametrize(
    ("sharing", "per_sm", "blocks", "unlike"),
    [
        (4, 1, 3, 1),  # 1 + 2
        (5, 1, 4, 2),  # a fifth one is on the first SM: two rounds of unlike blocks
        (8, 2, 6, 2),  # 2 + 4
        (40, 1, 2, 0),  # all share: none is unlike the others
    ],
)
def test_two_waves_follow_the_blocks_that_share(sharing, per_sm, blocks, unlike):
    launch = exchanging(sharing=sharing, work=np.ones(40), reads=np.ones(40))
    found = blocks_of_busiest_sm(launch, sms=4, per_sm=per_sm)
    assert len(found.blocks) == blocks
    assert found.exchanged.unlike == unlike


def test_leading_blocks_that_exit_at_once_are_left_out():
    launch = exchanging(first=2, sharing=2, work=np.array([0, 0, 5, 5, 11, 5, 5, 5]))
    found = blocks_of_busiest_sm(replace(launch, reads=np.zeros(8)), sms=4, per_sm=1)
    assert found.blocks == [4]  # of blocks 2 to 7, SM 2 runs block 4 alone: 11; SM 0 has 5 + 5
    assert found.busy_blocks == 6


def test_an_sm_that_reads_less_than_others_counts_as_one_that_reads_as_much():
    launch = exchanging(reads=np.array([9, 0, 9, 9, *[0] * 8]))
    found = blocks_of_busiest_sm(launch, sms=4, per_sm=1)
    assert found.exchanged.relative_l2_reads == 1
    nothing = blocks_of_busiest_sm(exchanging(reads=np.zeros(12)), sms=4, per_sm=1)
    assert nothing.exchanged.relative_l2_reads == 1
    assert NO_EXCHANGE.relative_l2_reads == 1


@pytest.mark.parametrize("blocks", [1, 2, 66, 67, 132, 200, 600, 10_000])
def test_spread_blocks_are_some_of_one_sm(blocks):
    found = spread_blocks(range(blocks), 132).blocks
    assert found == sorted(set(found))
    assert {block % 132 for block in found} == {66 if blocks > 132 else 0}
    assert len(found) == min(4, len(range(found[0] % 132, blocks, 132)))
    assert all(block < blocks for block in found)
