"""Schedule of blocks: waves, blocks that go first, speeds of SMs, coinciding fetches."""

from itertools import pairwise

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.traffic.block_schedule import (
    BlockProgress,
    block_progress,
    drift,
    drifted,
    in_step,
    relative_times,
    starts,
)

H200 = find_device("h200")


def test_blocks_fall_out_of_step_the_longer_they_run():
    def share(k, **changed):
        facts = {"has_barriers": True, "is_alone": False, "blocks_per_sm": 2} | changed
        return in_step(k, **facts)

    shares = [share(k) for k in (0, 1024, 4096, 8192)]
    assert shares[0] == 1
    assert all(earlier > later for earlier, later in pairwise(shares))
    assert share(1024, has_barriers=False) < shares[1] < share(1024, is_alone=True)
    assert share(4096, conflicts=True) > shares[2]


def test_blocks_that_copy_ahead_are_less_in_step():
    def share(k, copies, *, per_sm=2):
        return in_step(
            k,
            has_barriers=True,
            is_alone=False,
            blocks_per_sm=per_sm,
            copies=copies,
        )

    for k in (512, 2048, 8192):
        assert share(k, "asynchronous") < share(k, "loads")
        assert share(k, "bulk") < share(k, "loads")
    for copies in ("asynchronous", "bulk"):  # more where an SM has room for one block
        assert share(4096, copies, per_sm=1) > share(4096, copies)


def test_copies_past_l1_of_several_waves_are_less_in_step():
    def share(per_sm, waves, *, past_l1=True):
        return in_step(
            64,
            has_barriers=True,
            is_alone=False,
            blocks_per_sm=per_sm,
            copies="asynchronous",
            past_l1=past_l1,
            waves=waves,
        )

    assert share(2, 4.0) < share(2, 4.0, past_l1=False)
    assert share(2, 1.0) == share(2, 1.0, past_l1=False)
    assert share(1, 4.0) == share(1, 4.0, past_l1=False)


def test_blocks_that_fetch_ahead_end_half_a_life_apart():
    lifetimes = np.ones(528)
    together, staggered = (
        starts(lifetimes, H200, 2, 256, fetches_ahead=ahead) for ahead in (False, True)
    )
    assert np.unique(together).tolist() == [0.0, 1.0]
    assert np.unique(staggered).tolist() == [0.0, 0.5, 1.0, 1.5]
    assert starts(lifetimes, H200, 2, 128, fetches_ahead=True).tolist() == together.tolist()
    assert starts(np.ones(264), H200, 2, 256, fetches_ahead=True).tolist() == [0.0] * 264


def test_of_two_blocks_that_fetch_ahead_the_older_goes_first():
    lifetimes = np.ones(256)  # of 264 that fit: eight SMs have one block
    every = np.arange(256)

    def done(work, copies="loads"):
        found = block_progress(lifetimes, H200, 2, 256, copies, fetches_ahead=True)
        return found.time(every, np.full(256, work))

    older, alone, younger = np.split(done(1.0), [124, 132])
    assert (older == 1).all()
    assert len(np.unique(alone)) == len(np.unique(younger)) == 1
    assert alone[0] < 1 < younger[0] < 2 * alone[0]  # two end sooner than one after the other
    # at the pace of a block alone, once the older one is done
    assert younger - done(0.75)[132:] == pytest.approx(0.25 * alone[0])
    assert (done(0.25)[132:] > 0.3).all()
    assert (done(1.0, "asynchronous")[132:] < younger).all()  # they end nearer to each other


def test_who_has_nothing_to_do_has_no_place():
    lifetimes = np.ones(256)
    usual = block_progress(lifetimes, H200, 2, 256, "loads", fetches_ahead=True)
    idle_first = block_progress(
        np.append(np.zeros(10), lifetimes), H200, 2, 256, "loads", fetches_ahead=True
    )
    work = np.full(256, 0.9)
    assert idle_first.time(np.arange(10, 266), work) == pytest.approx(
        usual.time(np.arange(256), work)
    )


@pytest.mark.parametrize("lifetime", [0.5, 2.0])
def test_the_other_block_speeds_up_when_the_first_one_ends(lifetime):
    usual = block_progress(np.ones(264), H200, 2, 256, "loads", fetches_ahead=True)
    longer = block_progress(np.full(264, lifetime), H200, 2, 256, "loads", fetches_ahead=True)
    every = np.arange(264)
    whole = longer.time(every, np.full(264, lifetime))
    assert whole == pytest.approx(lifetime * usual.time(every, np.ones(264)))


@pytest.mark.parametrize(
    ("blocks", "per_sm", "threads", "copies", "ahead"),
    [
        (256, 2, 256, "loads", False),
        (256, 2, 128, "asynchronous", True),
        (256, 2, 256, "bulk", True),
        (132, 1, 256, "loads", True),
        (265, 2, 256, "loads", True),  # `starts` has these
    ],
)
def test_other_blocks_keep_one_pace(blocks, per_sm, threads, copies, ahead):
    found = block_progress(np.ones(blocks), H200, per_sm, threads, copies, fetches_ahead=ahead)
    work = np.linspace(0, 1, blocks)
    assert found.time(np.arange(blocks), work) == pytest.approx(work)


def test_sms_go_at_paces_of_their_own_where_they_copy_ahead_or_share_long_loops():
    def spread(copies, loop_bytes=4096, per_sm=2):
        found = relative_times(H200, per_sm, copies, loop_bytes=loop_bytes)
        return float(found.max() / found.min() - 1)

    assert spread("loads") == 0 < spread("bulk") == spread("asynchronous") < 0.01
    assert spread("asynchronous", 32 * 1024) == spread("asynchronous")
    assert 0.02 < spread("asynchronous", 36 * 1024) < 0.07  # on an H100: 0.07
    assert spread("bulk", 36 * 1024, per_sm=1) == spread("bulk")
    slow = relative_times(H200, 2, "asynchronous", loop_bytes=36 * 1024)
    assert 0.2 < (slow < 1).mean() < 0.3


def test_blocks_that_copy_in_bulk_move_apart_the_more_their_sm_idles():
    assert drift("bulk", 2, 0.22) == pytest.approx(0.009, abs=0.001)  # as on an H100
    assert 0.001 < drift("bulk", 2, 0.14) < 0.002
    assert drift("bulk", 2, 0.1) == drift("bulk", 1, 0.22) == drift("loads", 2, 0.22) == 0


def drifted_lifetimes(lifetimes):
    """Start times of blocks, and their lifetimes."""
    even = BlockProgress.even(np.ones(len(lifetimes)))
    begins, found = drifted(starts(lifetimes, H200, 2, 128), even, lifetimes, H200, 0.01)
    return begins, found.time(np.arange(len(lifetimes)), np.ones(len(lifetimes)))


def test_one_of_two_blocks_gets_ahead_in_each_wave():
    sms = H200.sm_count
    lifetimes = np.ones(3 * 2 * sms)
    begins, takes = drifted_lifetimes(lifetimes)
    ends = (begins + takes).reshape(3, 2, sms)
    for wave in range(3):
        assert (ends[wave, 1] - ends[wave, 0]) == pytest.approx(0.01 * (wave + 1))
    assert begins.reshape(3, 2, sms)[1:] == pytest.approx(ends[:-1])


def test_blocks_without_a_neighbour_do_not_move():
    sms = H200.sm_count
    lifetimes = np.append(np.ones(2 * sms + 5), np.zeros(3))  # five in the last wave, three idle
    begins, takes = drifted_lifetimes(lifetimes)
    assert (takes[-8:] == 1).all()
    assert (begins[-3:] >= 1).all()
    assert set(np.round(takes[: 2 * sms], 4)) == {0.995, 1.005}


def test_blocks_start_in_waves():
    begins = starts(np.ones(600), H200, 2, 256)  # 264 at a time
    assert begins[[0, 263, 264, 527, 528]].tolist() == [0, 0, 1, 1, 2]


def test_large_blocks_of_one_sm_start_evenly_apart():
    begins = starts(np.ones(600), H200, 2, 1024)
    assert begins[[0, 131, 132, 263, 264]].tolist() == [0, 0, 0.5, 0.5, 1]


def test_blocks_with_nothing_to_do_leave_their_place_to_the_next():
    lifetimes = np.repeat([0.0, 0.5, 1.0], [100, 264, 300])
    begins = starts(lifetimes, H200, 2, 128)
    assert begins[[100, 363, 364, 627, 628]].tolist() == [0, 0, 0.5, 0.5, 1.5]
