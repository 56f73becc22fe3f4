"""Shuffles, votes, reductions and special registers, one instruction at a time."""

import re
from functools import reduce
from itertools import product

import numpy as np
import pytest

from analysis.errors import UnsupportedError
from tests.probe import FULL, State, instructions, lanes_of, probe, same
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


@pytest.mark.parametrize("mode", ["IDX", "UP", "DOWN", "BFLY"])
@pytest.mark.parametrize("active", ACTIVE)
def test_shuffles(mode, active):
    for b, c in product((0, 1, 5, 16, 31, 32, 0xFFFFFFFF), (0, 0x1F, 0x1800, 0x181F, 0x101F, 0x7)):
        state = random_state(b ^ c)
        wanted = state.copy()
        wanted.p[6] = active
        for lane in lanes_of(active):
            source, inside = source_lane(mode, lane, b, c)
            wanted.r[4, lane] = state.r[2, source]
            wanted.p[0] = int(wanted.p[0]) & ~(1 << lane) | inside << lane
        same(run(f"SHFL.{mode} P0, R4, R2, {b:#x}, {c:#x}", state, active), wanted)


@pytest.mark.parametrize("mode", ["IDX", "UP", "DOWN", "BFLY"])
def test_each_lane_shuffles_with_its_own_distance_and_segment(mode):
    state = random_state(7)
    wanted = state.copy()
    wanted.p[6] = FULL
    for lane in range(32):
        source, _ = source_lane(mode, lane, int(state.r[3, lane]), int(state.r[5, lane]))
        wanted.r[2, lane] = state.r[2, source]
    same(run(f"SHFL.{mode} PT, R2, R2, R3, R5", state), wanted)  # in place


# Votes.

TRUTHS = {
    "ALL": lambda ballot, active: ballot == active,
    "ANY": lambda ballot, active: ballot != 0,
    "EQ": lambda ballot, active: ballot in (0, active),
}


@pytest.mark.parametrize("mode", TRUTHS)
@pytest.mark.parametrize("active", ACTIVE)
@pytest.mark.parametrize("votes", [0, FULL, 0xA5A5_3C01, 0x1])
def test_votes(mode, active, votes):
    state = random_state(active ^ votes)
    state.p[1], state.p[6] = votes, active
    ballot = votes & active
    truth = TRUTHS[mode](ballot, active)
    wanted = state.copy()
    wanted.r[4, lanes_of(active)] = ballot
    wanted.p[0] = int(wanted.p[0]) & ~active | (active if truth else 0)
    same(run(f"VOTE.{mode} R4, P0, P1", state, active), wanted)
    wanted = state.copy()
    wanted.p[1] = int(wanted.p[1]) & ~active | (active if truth else 0)
    same(run(f"VOTE.{mode} P1, P1", state, active), wanted)
    wanted = state.copy()
    wanted.ur[4], wanted.up[0] = ballot, FULL if truth else 0
    same(run(f"VOTEU.{mode} UR4, UP0, P1", state, active), wanted)


@pytest.mark.parametrize("active", ACTIVE)
def test_the_first_willing_lane_is_elected(active):
    state = random_state(active)
    state.p[1] = state.p[6] = active
    wanted = state.copy()
    leader = lanes_of(active)[0]
    wanted.p[0] = int(wanted.p[0]) & ~active | 1 << leader
    wanted.ur[4] = leader
    same(run("ELECT P0, UR4, PT", state, active), wanted)


@pytest.mark.parametrize("active", ACTIVE)
@pytest.mark.parametrize("wide", [False, True])
def test_matches(active, wide):
    state = random_state(active)
    state.r[2] %= 3
    state.r[3] %= 2
    state.p[6] = active
    suffix = ".U64" if wide else ""
    keys = [(int(state.r[2, k]), int(state.r[3, k]) if wide else 0) for k in range(32)]
    wanted = state.copy()
    for lane in lanes_of(active):
        wanted.r[4, lane] = sum(1 << k for k in lanes_of(active) if keys[k] == keys[lane])
    same(run(f"MATCH.ANY{suffix} R4, R2", state, active), wanted)
    for alike in (False, True):
        if alike:
            state.r[2:4] = 5
        agree = alike or len({keys[k] for k in lanes_of(active)}) == 1
        wanted = state.copy()
        wanted.r[4, lanes_of(active)] = active if agree else 0
        wanted.p[0] = int(wanted.p[0]) & ~active | (active if agree else 0)
        same(run(f"MATCH.ALL{suffix} P0, R4, R2", state, active), wanted)


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
@pytest.mark.parametrize("active", ACTIVE)
def test_reductions(opcode, active):
    state = random_state(active)
    state.r[2] |= 0x0000_1100  # so that a conjunction is not zero
    state.p[6] = active
    wanted = state.copy()
    wanted.ur[4] = REDUCTIONS[opcode]([int(state.r[2, lane]) for lane in lanes_of(active)])
    same(run(f"{opcode} UR4, R2", state, active), wanted)


# Special registers.


def test_registers_of_the_launch():
    text = """S2R R4, SR_SWINHI; S2R R5, SR_LWINHI; S2R R6, SR_SMEMSZ; S2R R7, SR_VIRTID
              S2R R8, SR_VIRTUALSMID; S2UR UR4, SR_CgaCtaId; S2UR UR5, SR_SWINHI"""
    after = probe(text, random_state(1), shared_bytes=0x1234)
    words = [int(after.r[k, 9]) for k in (4, 5, 6, 7, 8)]
    assert words == [SHARED_WINDOW >> 32, LOCAL_WINDOW >> 32, 0x1234, 0, 0]
    assert (int(after.ur[4, 3]), int(after.ur[5, 3])) == (0, SHARED_WINDOW >> 32)


def test_zero_is_a_register_pair():
    state = random_state(1)
    wanted = state.copy()
    wanted.p[6] = 0xFF00
    wanted.r[4:6, 8:16] = 0
    same(run("CS2R R4, SRZ", state, 0xFF00), wanted)
    wanted.r[4:6] = state.r[4:6]
    wanted.r[4, 8:16] = 0
    same(run("CS2R.32 R4, SRZ", state, 0xFF00), wanted)


def test_the_clock_moves_on_with_each_instruction():
    text = """CS2R R4, SR_CLOCKLO; NOP; NOP; CS2R R6, SR_CLOCKLO; CS2R.32 R8, SR_CLOCKLO
              S2R R9, SR_CLOCKHI; CS2R R10, SR_GLOBALTIMERLO; CS2UR UR4, SR_CLOCKLO"""
    after = probe(text, random_state(1))
    times = [int(after.r[k, 0]) for k in (4, 6, 8, 10)] + [int(after.ur[4, 31])]
    assert times == sorted(set(times))
    assert times[1] - times[0] >= 3
    assert {int(after.r[k, 5]) for k in (5, 7, 9, 11)} | {int(after.ur[5, 0])} == {0}


# Barriers as values.


@pytest.mark.parametrize("active", ACTIVE)
def test_convergence_barriers_are_saved_and_restored(active):
    state = random_state(active)
    state.p[6] = active
    lanes = lanes_of(active)
    wanted = state.copy()
    wanted.r[4, lanes] = state.b[6, lanes]
    same(run("BMOV.32 R4, B6", state, active), wanted)
    wanted.b[6, lanes] = 0
    same(run("BMOV.32.CLEAR R4, B6", state, active), wanted)
    wanted.r[4] = state.r[4]
    same(run("BMOV.32.CLEAR RZ, B6", state, active), wanted)
    wanted.b[:] = state.b
    wanted.b[7, lanes] = state.r[2, lanes]
    same(run("BMOV.32 B7, R2", state, active), wanted)
    wanted.b[7, lanes] = state.b[6, lanes]
    same(run("BMOV.32 B7, B6", state, active), wanted)
    wanted.b[6, lanes] = 0
    same(run("BMOV.32.CLEAR B7, B6", state, active), wanted)


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
    with pytest.raises(UnsupportedError, match="B2R"):
        probe(text, State())
    with pytest.raises(UnsupportedError, match="B2R"):
        probe("BAR.RED.AND 0x0, P1; B2R.RESULT R4", State())
