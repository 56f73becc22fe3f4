"""Replays that are shortened, and the remaining parts of their streams."""

from dataclasses import dataclass

import numpy as np
import pytest

from analysis.sm import RUN, Kind
from analysis.timing.repetitions import shortened
from analysis.timing.samples import AlongK, Repetitions, UnsteadyError, Whole
from tests.analysis.streams_by_hand import BAR, EXIT, FFMA, FULL, LDG, STG, code, streams

LOAD, FMA, BARRIER, STORE, END = range(5)
CODE = code(LDG, FFMA, BAR, STG, EXIT)
TIMES = 100


def load(number, clocks=1, lines=1):
    return (LOAD, clocks, 0, [(number + at, FULL) for at in range(lines)])


def once(warp, at):
    """A repetition, with an inner loop."""
    return [load(1000 * warp + 4 * at), *[FMA, (FMA, 3, RUN, [])] * 4, BARRIER]


def warp(number, times, of_loop=once):
    begin, end = 10**6 + number, 10**7 + number
    loop = [step for at in range(times) for step in of_loop(number, at)]
    return [load(begin, lines=3), FMA, *loop, (STORE, 1, 0, [(end, FULL)]), END]


def two_blocks(times=TIMES, of_loop=once):
    return streams([[warp(2 * block + n, times, of_loop) for n in range(2)] for block in range(2)])


def asked(streams, *, table=CODE, blocks=10, most=1000, wanted=1, least=32):
    return shortened(table, Whole(streams=streams), blocks, most, wanted, least)


def same(one, other):
    return all(np.array_equal(getattr(one, name), value) for name, value in vars(other).items())


@pytest.mark.parametrize(
    "of_loop",
    [
        once,
        lambda warp, at: [load(7 * at), FMA],
        lambda warp, at: [load(7 * at, clocks=1 + at * at % 5), FMA],  # hashed banks of L1
        lambda warp, at: [load(at % 10), FMA],  # the same few lines again and again
        lambda warp, at: [FMA, BARRIER],  # no lines
    ],
)
def test_streams_are_as_if_the_loop_had_fewer_repetitions(of_loop):
    found = asked(two_blocks(of_loop=of_loop))
    assert sorted(found.at) == [8, 16, 32]
    first = (
        found.of - TIMES
    )  # where the loop is found to begin: at the first step, or at a later one
    assert first in (-1, 0)
    for number, sample in found.at.items():
        assert same(sample, two_blocks(number - first, of_loop))


def test_as_many_repetitions_are_left_as_are_wanted():
    sample = two_blocks()
    ten = sample.executed / sample.blocks * 10
    found = asked(sample, wanted=ten * 0.4, least=8)
    assert sorted(found.at) == [10, 20, 40]
    assert found.of == TIMES - 1
    shares = found.at[40].executed / sample.executed
    assert shares == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(
    ("change", "sample"),
    [
        ({"most": 10**6}, two_blocks()),  # it is not long
        ({"least": 50}, two_blocks()),  # not twice as many repetitions
        ({}, streams([[warp(0, TIMES), warp(1, TIMES - 1)]])),
        ({}, streams([[warp(0, TIMES), [FMA, END]]])),
        ({}, two_blocks(of_loop=lambda warp, at: [load(at), *[FMA] * (at % 3)])),
        ({}, two_blocks(of_loop=lambda warp, at: [load(at, lines=1 + at % 2), FMA])),
        # later repetitions have conflicts of banks
        ({}, two_blocks(of_loop=lambda warp, at: [load(at, clocks=1 + at // 60), FMA])),
        # all blocks read the same table
        ({}, two_blocks(of_loop=lambda warp, at: [load(at), FMA]).with_common()),
        # two loops one after the other, none of which has most steps
        ({}, streams([[[*[FMA, BARRIER] * 100, *[FMA, STORE] * 100, END]]])),
        # the warps repeat different instructions
        ({}, streams([[[*[FMA, BARRIER] * 100, END], [*[FMA, STORE] * 100, END]]])),
        # the first repetitions find their lines in L1, later ones do not
        ({}, two_blocks(of_loop=lambda warp, at: [load(max(0, at - 40)), FMA])),
        # barriers in shared memory count phases
        ({"table": code(LDG, FFMA, {"kind": Kind.MBARRIER_WAIT}, STG, EXIT)}, two_blocks()),
    ],
)
def test_what_cannot_be_shortened_is_left_alone(change, sample):
    assert asked(sample, **change) is None


def test_a_sample_that_is_extrapolated_already_is_left_alone():
    along_k = AlongK(at={100: two_blocks(100), 200: two_blocks(200)}, k=400)
    assert shortened(CODE, along_k, 10, 1000, 1, 32) is None


@dataclass(frozen=True)
class Clocks:
    clocks: float

    def line_to(self, other, steps):
        return Clocks(self.clocks + steps * (other.clocks - self.clocks))


def test_repetitions_are_steady_if_each_takes_about_as_long():
    sample = Repetitions(at=dict.fromkeys((16, 32, 64)), of=100)
    # 1,490 at 64, and 330 for each 32 more: 371.25 for 36
    assert sample.extrapolated([Clocks(1000), Clocks(1160), Clocks(1490)]).clocks == 1861.25
    for last in (1494, float("nan")):
        with pytest.raises(UnsteadyError):
            sample.extrapolated([Clocks(1000), Clocks(1160), Clocks(last)])


def test_totals_along_k_are_on_a_line():
    sample = AlongK(at=dict.fromkeys((64, 128)), k=512)
    assert sample.extrapolated([Clocks(10), Clocks(30)]).clocks == 150  # 10 + 7 * 20
    assert sample.how == " at K = 64 and 128"
