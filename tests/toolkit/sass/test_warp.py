"""Shuffles, votes, reductions and special registers, one instruction at a time."""

import re
from functools import reduce
from itertools import product

import numpy as np
import pytest

from analysis.errors import UnsupportedError
from tests.probe import FULL, State, holding, instructions, lanes_of, probe, same
from tests.refusals import refusal
from toolkit.sass.space import LOCAL_WINDOW, SHARED_WINDOW

ACTIVE = [FULL, 0x1, 0x80000000, 0x0000FFFF, 0xA5A5_3C01]


def random_state(seed):
    rng = np.random.default_rng(seed)
    state = State()
    state.r[:16] = rng.integers(0, 1 << 32, (16, 32), dtype=np.uint64)
    state.ur[:16] = rng.integers(0, 1 << 32, (16, 1), dtype=np.uint64)
    state.p[:7] = rng.integers(0, 1 << 32, 7, dtype=np.uint64)
    state.up[:7] = np.where(rng.integers(0, 2, 7), FULL, 0)
    state.b[:] = rng.integers(0, 1 << 32, state.b.shape, dtype=np.uint64)
    return state


def run(text, state, active=FULL, **options):
    """With P6 as a guard that admits `active`, the others being alive."""
    state.p[6] = active
    guarded = re.sub(r"(^|; *)", r"\1@P6 ", text)
    return probe(guarded, state, **options)


def writes(text, state, active=FULL, **written):
    """An instruction writes these values, alike or lane by lane, and nothing else: UR4, P0, B6.

    Of files that have lanes, it writes those that are active.
    """
    state.p[6] = active
    wanted, lanes = state.copy(), lanes_of(active)
    for name, value in written.items():
        rows, index = getattr(wanted, name[:-1].lower()), int(name[-1])
        if name[0] == "U":
            rows[index] = value
        elif name[0] == "P":
            rows[index] = int(rows[index]) & ~active | value & active
        else:
            rows[index, lanes] = np.broadcast_to(value, 32)[lanes]
    same(run(text, state, active), wanted)


# Shuffles, as PTX describes them.


def source_lane(mode, lane, b, c):
    """The lane that is read, and whether it is within the segment."""
    clamp, segment = c & 31, c >> 8 & 31
    last = lane & segment | clamp & ~segment
    distance = b & 31
    if mode == "UP":
        chosen = lane - distance
        inside = chosen >= last
    else:
        chosen = {
            "IDX": lane & segment | distance & ~segment,
            "DOWN": lane + distance,
            "BFLY": lane ^ distance,
        }[mode]
        inside = chosen <= last
    return (chosen if inside else lane), inside


whoever_is_active = pytest.mark.parametrize("active", ACTIVE)


@pytest.mark.parametrize("mode", ["IDX", "UP", "DOWN", "BFLY"])
@whoever_is_active
def test_shuffles(mode, active):
    for b, c in product((0, 1, 5, 16, 31, 32, 0xFFFFFFFF), (0, 0x1F, 0x1800, 0x181F, 0x101F, 0x7)):
        state = random_state(b ^ c)
        sources, inside = zip(*(source_lane(mode, n, b, c) for n in range(32)), strict=True)
        text = f"SHFL.{mode} P0, R4, R2, {b:#x}, {c:#x}"
        truths = sum(truth << lane for lane, truth in enumerate(inside))
        writes(text, state, active, R4=state.r[2, list(sources)], P0=truths)


@pytest.mark.parametrize("mode", ["IDX", "UP", "DOWN", "BFLY"])
def test_each_lane_shuffles_with_its_own_distance_and_segment(mode):
    state = random_state(7)
    distances, segments = state.r[3].tolist(), state.r[5].tolist()
    own = zip(range(32), distances, segments, strict=True)
    sources = [source_lane(mode, *of_lane)[0] for of_lane in own]
    writes(f"SHFL.{mode} PT, R2, R2, R3, R5", state, R2=state.r[2, sources])  # in place


# Votes.

TRUTHS = {
    "ALL": lambda ballot, active: ballot == active,
    "ANY": lambda ballot, active: ballot != 0,
    "EQ": lambda ballot, active: ballot in (0, active),
}


@pytest.mark.parametrize("mode", TRUTHS)
@whoever_is_active
@pytest.mark.parametrize("votes", [0, FULL, 0xA5A5_3C01, 0x1])
def test_votes(mode, active, votes):
    state = random_state(active ^ votes)
    state.p[1] = votes
    ballot = votes & active
    truth = FULL if TRUTHS[mode](ballot, active) else 0
    writes(f"VOTE.{mode} R4, P0, P1", state, active, R4=ballot, P0=truth)
    writes(f"VOTE.{mode} P1, P1", state, active, P1=truth)
    writes(f"VOTEU.{mode} UR4, UP0, P1", state, active, UR4=ballot, UP0=truth)


@whoever_is_active
def test_the_first_willing_lane_is_elected(active):
    leader = lanes_of(active)[0]
    writes("ELECT P0, UR4, PT", random_state(active), active, P0=1 << leader, UR4=leader)


@whoever_is_active
@pytest.mark.parametrize("wide", [False, True])
def test_matches(active, wide):
    state = random_state(active)
    state.r[2] %= 3
    state.r[3] %= 2
    suffix = ".U64" if wide else ""
    keys = [(int(state.r[2, k]), int(state.r[3, k]) if wide else 0) for k in range(32)]
    alike = [sum(1 << k for k in lanes_of(active) if keys[k] == key) for key in keys]
    writes(f"MATCH.ANY{suffix} R4, R2", state, active, R4=alike)
    for agree in (len({keys[k] for k in lanes_of(active)}) == 1, True):
        writes(f"MATCH.ALL{suffix} P0, R4, R2", state, active, R4=active * agree, P0=FULL * agree)
        state.r[2:4] = 5  # all agree


# Reductions.


def as_signed(x):
    return x - (1 << 32) if x >> 31 else x


REDUCTIONS = {
    "REDUX": lambda x: reduce(int.__and__, x),
    "REDUX.OR": lambda x: reduce(int.__or__, x),
    "REDUX.XOR": lambda x: reduce(int.__xor__, x),
    "REDUX.SUM": lambda x: sum(x) % (1 << 32),
    "REDUX.SUM.S32": lambda x: sum(x) % (1 << 32),
    "REDUX.MIN": min,
    "REDUX.MAX": max,
    "REDUX.MIN.S32": lambda x: min(x, key=as_signed),
    "REDUX.MAX.S32": lambda x: max(x, key=as_signed),
    "R2UR": lambda x: x[0],
    "CREDUX.MIN": min,
    "CREDUX.MAX.S32": lambda x: max(x, key=as_signed),
}


@pytest.mark.parametrize("opcode", REDUCTIONS)
@whoever_is_active
def test_reductions(opcode, active):
    state = random_state(active)
    state.r[2] |= 0x0000_1100  # so that a conjunction is not zero
    found = REDUCTIONS[opcode]([int(state.r[2, lane]) for lane in lanes_of(active)])
    writes(f"{opcode} UR4, R2", state, active, UR4=found)


# Special registers.


def test_registers_of_the_launch():
    text = """S2R R4, SR_SWINHI; S2R R5, SR_LWINHI; S2R R6, SR_SMEMSZ; S2R R7, SR_VIRTID
              S2R R8, SR_VIRTUALSMID; S2UR UR4, SR_CgaCtaId; S2UR UR5, SR_SWINHI"""
    after = probe(text, random_state(1), shared_bytes=0x1234)
    words = [int(after.r[k, 9]) for k in (4, 5, 6, 7, 8)]
    assert words == [SHARED_WINDOW >> 32, LOCAL_WINDOW >> 32, 0x1234, 0, 0]
    assert (int(after.ur[4, 3]), int(after.ur[5, 3])) == (0, SHARED_WINDOW >> 32)


def test_zero_is_a_register_pair():
    writes("CS2R R4, SRZ", random_state(1), 0xFF00, R4=0, R5=0)
    writes("CS2R.32 R4, SRZ", random_state(1), 0xFF00, R4=0)


def test_the_clock_moves_on_with_each_instruction():
    text = """CS2R R4, SR_CLOCKLO; NOP; NOP; CS2R R6, SR_CLOCKLO; CS2R.32 R8, SR_CLOCKLO
              S2R R9, SR_CLOCKHI; CS2R R10, SR_GLOBALTIMERLO; CS2UR UR4, SR_CLOCKLO"""
    after = probe(text, random_state(1))
    times = [int(after.r[k, 0]) for k in (4, 6, 8, 10)] + [int(after.ur[4, 31])]
    assert times == sorted(set(times))
    assert times[1] - times[0] >= 3
    assert {int(after.r[k, 5]) for k in (5, 7, 9, 11)} | {int(after.ur[5, 0])} == {0}


# Barriers as values.


@whoever_is_active
def test_convergence_barriers_are_saved_and_restored(active):
    state = random_state(active)
    writes("BMOV.32 R4, B6", state, active, R4=state.b[6])
    writes("BMOV.32.CLEAR R4, B6", state, active, R4=state.b[6], B6=0)
    writes("BMOV.32.CLEAR RZ, B6", state, active, B6=0)
    writes("BMOV.32 B7, R2", state, active, B7=state.r[2])
    writes("BMOV.32 B7, B6", state, active, B7=state.b[6])
    writes("BMOV.32.CLEAR B7, B6", state, active, B7=state.b[6], B6=0)


@pytest.mark.parametrize("votes", [0, FULL, 0x0F0F_0001])
def test_reductions_of_a_block_are_read(votes):
    state = random_state(1)
    state.p[1] = votes
    text = """BAR.RED.POPC.DEFER_BLOCKING 0x0, P1; B2R.RESULT R4
              BAR.RED.AND.DEFER_BLOCKING 0x0, P1; B2R.RESULT RZ, P2
              BAR.RED.OR.DEFER_BLOCKING 0x1, P1; B2R.RESULT RZ, P3"""
    wanted = state.copy()
    wanted.r[4] = votes.bit_count()
    wanted.p[2] = FULL if votes == FULL else 0
    wanted.p[3] = FULL if votes else 0
    same(probe(text, state), wanted)


def test_a_result_that_no_barrier_reduced_is_refused():
    text = "B2R.RESULT R4; BAR.RED.POPC 0x0, P1"
    assert len(instructions(text)) == 2
    assert "B2R" in refusal(UnsupportedError, probe, text, State())
    assert "B2R" in refusal(UnsupportedError, probe, "BAR.RED.AND 0x0, P1; B2R.RESULT R4", State())


def test_a_lane_that_differed_in_one_word_differs_in_several():
    state = holding(R2=np.arange(32) // 8, P0=0x0000_00F0)
    after = probe("R2UR.OR P0, UR4, R2", state)
    assert int(after.p[0]) == 0xFFFF_FFF0
    assert set(after.ur[4]) == {0}
