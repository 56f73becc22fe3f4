"""Branches, reconvergence, barriers and calls: who goes where, who waits, what is counted."""

import numpy as np
import pytest

from analysis.errors import LaunchError, UnsupportedError
from tests.probe import FULL, State, buffer_of, holding, probe
from toolkit import simulate
from toolkit.sass.core.binding import COUNT
from toolkit.sass.machine import LIMIT

LANES = np.arange(32)
ODD = 0xAAAAAAAA


def ran(text, lanes=FULL, **registers):
    """The state after, from one that holds registers, and what each instruction counts."""
    length = len([line for line in text.replace("\n", ";").split(";") if line.strip()])
    counts = np.zeros(length + 1, dtype=COUNT)
    return probe(text, holding(**registers), counts=counts, lanes=lanes), counts


def issued(counts, at):
    """Number of times that an instruction was issued, and of its threads."""
    return counts["executed"][at], counts["threads"][at]


def reissued(counts, at):
    return counts["reissued"][at], counts["reissued_threads"][at]


@pytest.mark.parametrize("jump", ["BRA P1, 0x20", "RET.REL.NODEC P1, R4, 0x0"])
def test_a_jump_with_two_predicates_refuses_lanes_that_its_guard_lets_through(jump):
    after, counts = ran(f"@P0 {jump}; MOV R1, 0x1; MOV R2, 0x2", P0=ODD, P1=0xFFFF, R4=0x20)
    assert (after.r[1] == 0).tolist() == [bool(ODD & 0xFFFF & 1 << lane) for lane in range(32)]
    assert [int(counts[name][0]) for name in ("predicated", "refused", "taken")] == [16, 8, 8]


@pytest.mark.parametrize("leaving", [0, ODD, 0xFFFFFFFF])
def test_lanes_leave_where_the_predicate_of_an_exit_holds(leaving):
    after, counts = ran("EXIT P0; MOV R1, 0x1", P0=leaving)
    assert after.r[1].tolist() == [0 if leaving >> lane & 1 else 1 for lane in range(32)]
    stay = 32 - leaving.bit_count()
    assert counts["threads"].tolist() == [32, stay, stay]


def test_both_sides_of_a_branch_run_and_meet_again():
    text = """BSSY B0, 0x50
        @P0 BRA 0x40
        MOV R1, 0x1
        BRA 0x50
        MOV R1, 0x2
        BSYNC B0
        MOV R2, 0x3"""
    after, counts = ran(text, P0=ODD)
    assert after.r[1].tolist() == [1, 2] * 16
    assert (after.r[2] == 3).all()
    # after BSYNC, which each side reaches alone, the warp is whole again
    assert counts["executed"].tolist() == [1, 1, 1, 1, 1, 2, 1, 1]
    assert counts["threads"].tolist() == [32, 32, 16, 16, 16, 32, 32, 32]
    assert counts["divergent"].tolist()[1] == 1


def test_without_reconvergence_the_sides_stay_apart():
    text = """@P0 BRA 0x30
        MOV R1, 0x1
        BRA 0x30
        MOV R2, 0x3"""
    after, counts = ran(text, P0=ODD)
    assert (after.r[2] == 3).all()
    assert counts["executed"].tolist()[3:] == [2, 2]  # met at an address, not joined


def test_lanes_that_break_out_are_not_waited_for():
    text = """BSSY B0, 0x50
        @!P0 BRA 0x50
        BREAK B0
        MOV R1, 0x7
        BRA 0x60
        BSYNC B0
        MOV R2, 0x3"""
    after, counts = ran(text, P0=ODD)
    assert after.r[1].tolist() == [0, 7] * 16
    assert (after.r[2] == 3).all()
    assert counts["threads"].tolist()[5] == 16  # only those who did not break


def test_a_break_in_a_function_leaves_the_barrier_of_its_caller_alone():
    text = """BSSY B0, 0x90
        @P0 BRA 0x90
        BMOV.32.CLEAR R5, B0
        BSSY B0, 0x60
        @P1 BREAK B0
        @P1 BRA 0x70
        BSYNC B0
        BMOV.32 B0, R5
        MOV R1, 0x1
        BSYNC B0
        MOV R2, 0x3"""
    after, counts = ran(text, P0=ODD, P1=0xF)
    assert after.r[1].tolist() == [1, 0] * 16
    assert issued(counts, 10) == (1, 32)


def test_warpsync_waits_for_the_lanes_of_its_mask():
    text = """@P0 BRA 0x20
        MOV R1, 0x1
        WARPSYNC 0xffffffff
        MOV R2, 0x2"""
    after, counts = ran(text, P0=ODD)
    assert (after.r[2] == 2).all()
    assert counts["executed"].tolist()[2:4] == [2, 1]


@pytest.mark.parametrize(
    ("branch", "jumps_if_whole"),
    [
        ("BRA.DIV ~URZ, 0x30", False),
        ("BRA.CONV ~URZ, 0x30", True),
        ("@!PT BRA.CONV ~URZ, 0x30", False),
    ],
)
def test_convergence_tests_ask_for_the_lanes_that_live(branch, jumps_if_whole):
    for lanes, divergent in ((FULL, False), (0xFF, False), (FULL, True)):
        text = f"""@P0 BRA 0x10
            {branch}
            MOV R1, 0x1
            WARPSYNC 0xffffffff
            MOV R2, 0x2"""
        after, _ = ran(text, lanes=lanes, P0=ODD if divergent else 0)
        jumped = jumps_if_whole != divergent
        alive = [lane for lane in LANES if lanes >> lane & 1]
        assert (after.r[1, alive] == (0 if jumped else 1)).all()


def test_a_jump_through_a_register_goes_to_each_lanes_target():
    targets = np.where(LANES < 8, 0x20, np.where(LANES < 20, 0x40, 0x60))
    text = """RET.REL.NODEC R4, 0x0
        NOP
        MOV R1, 0x1
        EXIT
        MOV R1, 0x2
        EXIT
        MOV R1, 0x3"""
    after, counts = ran(text, R4=targets)
    assert after.r[1].tolist() == [1] * 8 + [2] * 12 + [3] * 12
    # one target after the other: those who wait are issued the jump again
    assert issued(counts, 0) == (1, 32)
    assert reissued(counts, 0) == (2, 24 + 12)


def test_the_smaller_part_of_a_split_goes_first():
    for odd, first in ((0x7, "taken"), (0xFFFFFF00, "stayed"), (0x0000FFFF, "stayed")):
        # each part notes how many atomics on one word came before its own
        buffer = buffer_of(np.zeros(1, dtype=np.uint32))
        state = holding(P0=odd, R2_64=buffer.address, R4=1)
        text = """@P0 BRA 0x30
            ATOMG.E.ADD.STRONG.GPU PT, R5, [R2.64], R4
            EXIT
            ATOMG.E.ADD.STRONG.GPU PT, R5, [R2.64], R4"""
        after = probe(text, state, buffers=[buffer])
        taken = [bool(odd >> lane & 1) for lane in range(32)]
        goes_first = taken if first == "taken" else [not x for x in taken]
        assert sorted(after.r[5, goes_first]) == list(range(sum(goes_first)))


def test_a_jump_table_counts_from_its_base():
    after, _ = ran("NOP; BRX R4, -0x20; MOV R1, 0x1; MOV R2, 0x2", R4=0x50)
    assert (after.r[1, 0], after.r[2, 0]) == (0, 2)


def test_a_jump_out_of_the_code_stops():
    state = holding(R4=0x7000)
    with pytest.raises(LaunchError):
        probe("RET.REL.NODEC R4, 0x0", state)


def test_a_trap_stops():
    with pytest.raises(LaunchError):
        probe("BPT.TRAP 0x1", State())


def test_lanes_that_wait_for_each_other_at_two_places_are_a_deadlock():
    text = "@P0 BRA 0x20; WARPSYNC 0xffffffff; BAR.SYNC 0x0; NOP"
    with pytest.raises(LaunchError):
        probe(text, holding(P0=ODD))


@pytest.mark.parametrize("text", ["BREAK !P1, B0", "BREAK B0, !P1"])
def test_a_break_takes_its_lanes_on_either_side_of_the_barrier(text):
    program = f"""BSSY B0, 0x40
        {text}
        @P0 BRA 0x50
        BRA 0x40
        BSYNC B0
        MOV R2, 0x3"""
    after, counts = ran(program, P0=ODD, P1=~np.uint32(ODD))
    assert (after.r[2] == 3).all()
    assert counts["threads"][4] == 16


@pytest.mark.parametrize("modifier", ["", ".EXCLUSIVE", ".COLLECTIVE"])
def test_lanes_wait_for_those_of_their_own_mask(modifier):
    """Odd lanes come late; tiles of 8 must be whole behind the WARPSYNC."""
    mask = 0xFF << (LANES & 24)
    target = ", 0x30" if modifier == ".COLLECTIVE" else ""
    text = f"""@P0 BRA 0x20
        MOV R1, 0x1
        WARPSYNC{modifier} R4{target}
        VOTE.ANY R2, PT, PT
        MOV R3, 0x3"""
    after, _ = ran(text, P0=ODD, R4=mask)
    assert ((after.r[2] & mask) == mask).all()
    if modifier:
        assert (after.r[2] == mask).all()


def test_lanes_of_different_masks_that_are_all_here_stay_together():
    _, counts = ran("WARPSYNC R4; NOP", R4=0xFF << (LANES & 24))
    assert counts["executed"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(("guard", "whole"), [("P1", False), ("!P1", False), ("PT", True)])
def test_a_convergence_test_counts_the_lanes_whose_guard_is_true(guard, whole):
    after, counts = ran(f"@{guard} BRA.DIV ~URZ, 0x20; MOV R1, 0x1; MOV R2, 0x1", P1=0x0F0F0F0F)
    assert (after.r[1] == whole).all()  # all lanes jump, or none
    assert (after.r[2] == 1).all()
    assert not counts["divergent"].any()


def test_the_uniform_value_says_which_lanes_differ_from_it():
    after, _ = ran("R2UR P1, UR2, R4", R4=np.where(LANES < 5, 7, LANES))
    assert (after.ur[2, 0], after.p[1]) == (7, FULL & ~0b10011111)
    after, _ = ran("R2UR.OR P1, UR2, R4", R4=np.where(LANES < 5, 7, LANES), P1=0b11)
    assert (after.ur[2, 0], after.p[1]) == (7, FULL & ~0b10011100)


def test_lanes_that_only_yield_do_not_hold_up_those_that_they_wait_for():
    data = np.zeros(2, dtype=np.uint32)
    buffer = buffer_of(data)
    state = holding(R2_64=buffer.address, R4=1)
    # who got the lock waits at the BSYNC for those that spin
    spin_lock = """BSSY B0, 0x40
        YIELD
        ATOMG.E.CAS.STRONG.GPU PT, R5, [R2.64], RZ, R4
        ISETP.NE.AND P0, PT, R5, RZ, PT
        @P0 BRA 0x10
        BSYNC B0
        ATOMG.E.ADD.STRONG.GPU PT, RZ, [R2.64+0x4], R4
        ATOMG.E.EXCH.STRONG.GPU PT, RZ, [R2.64], RZ"""
    probe(spin_lock, state, buffers=[buffer])
    assert data.tolist() == [0, 32]


@pytest.mark.parametrize("loads", ["", "LDG.E.STRONG.SYS R0, [R2.64];"])
def test_an_endless_loop_stops_a_probe(loads):
    buffer = buffer_of(np.zeros(1, dtype=np.uint32))
    with pytest.raises(LaunchError, match=f"fault of kind {LIMIT}"):
        probe(f"{loads} BRA 0x0", holding(R2_64=buffer.address), buffers=[buffer])


@pytest.mark.parametrize(("threads", "stops"), [(64, True), (32, False), (0, False)])
def test_two_registers_of_a_barrier_are_its_number_and_its_threads_in_one(threads, stops):
    state = holding(R4=3 | threads << 16)
    if stops:
        with pytest.raises(LaunchError):
            probe("BAR.SYNC R4, R4", state)
    else:
        probe("BAR.SYNC R4, R4", state)
    with pytest.raises(UnsupportedError, match="BAR"):
        probe("BAR.SYNC R4, R5", state)


def test_a_reduction_at_a_barrier_whose_number_is_in_a_register():
    after, _ = ran("BAR.RED.POPC R4, P0; B2R.RESULT R6", P0=ODD, R4=5)
    assert (after.r[6] == 16).all()


def escape(end):
    """A region that odd lanes leave without a BREAK, and where they wait for the others."""
    return f"""BSSY.RECONVERGENT B0, 0x30
        @P0 BRA 0x40
        BSYNC.RECONVERGENT B0
        MOV R1, 0x1
        {end}
        MOV R2, 0x2"""


@pytest.mark.parametrize(
    ("end", "again"), [("WARPSYNC.ALL", 1), ("WARPSYNC 0xffffffff", 1), ("BAR.SYNC 0x0", 0)]
)
def test_nobody_waits_at_a_bsync_for_lanes_that_wait_elsewhere(end, again):
    """An H100 ran such code to its end; for sm_100, compilers leave BREAK out and rely on it."""
    after, counts = ran(escape(end), P0=ODD)
    assert after.r[1].tolist() == [1, 0] * 16
    assert (after.r[2] == 2).all()
    assert counts["threads"][5] == 32
    # as counted there: who waited in the WARPSYNC had been woken, and all issue it again
    assert reissued(counts, 2) == (0, 0)
    assert reissued(counts, 4) == (again, 32 * again)


def test_lanes_that_wait_at_a_bsync_execute_it_again_when_the_others_have_left():
    after, counts = ran(escape("EXIT"), P0=ODD)
    assert after.r[1].tolist() == [1, 0] * 16
    assert issued(counts, 2) == (1, 16)
    assert reissued(counts, 2) == (1, 16)


def test_a_loop_that_counts_its_polls_is_no_deadlock():
    """Memory and the places of the threads stay the same, but registers differ."""
    source = """extern "C" __global__ void polls(volatile int* flag, int* out)
    {
        int n = threadIdx.x;
        while (*flag == 0 && n < 500) n += 1;
        out[threadIdx.x] = n;
    }"""
    arguments = [np.zeros(1, np.int32), np.zeros(32, np.int32)]
    done = simulate(source, "polls", grid=1, block=32, arguments=arguments, predict=False)
    assert (done.outputs[1] == 500).all()


def test_a_bsync_that_let_lanes_go_keeps_no_others():
    """The odd lanes come to it later, in two parts, and an H100 does not join them."""
    text = """BSSY B0, 0x50
        @!P0 BRA 0x50
        WARPSYNC.ALL
        @P1 BRA 0x50
        MOV R1, 0x1
        BSYNC B0
        MOV R2, 0x2"""
    after, counts = ran(text, P0=ODD, P1=0x2222_2222)  # half of them
    assert (after.r[2] == 2).all()
    assert issued(counts, 6) == (3, 32)


def test_lanes_that_left_a_region_without_a_break_are_not_waited_for_in_it():
    """As compilers lay out some switches for sm_100: one edge out of B0's region has no BREAK."""
    text = """BSSY.RECONVERGENT B1, 0x60
        BSSY.RELIABLE B0, 0x40
        @P0 BRA 0x50
        BSYNC.RELIABLE B0
        MOV R1, 0x1
        BSYNC.RECONVERGENT B1
        MOV R2, 0x2"""
    after, counts = ran(text, P0=ODD)
    assert after.r[1].tolist() == [1, 0] * 16
    assert (after.r[2] == 2).all()
    assert issued(counts, 6) == (1, 32)  # all together again


@pytest.mark.parametrize(("restores", "again"), [("BMOV.32 B0, R2", 1), ("NOP", 0)])
def test_a_bsync_is_issued_again_whose_barrier_came_from_a_register(restores, again):
    """As around a call of a function that uses the barrier too; docs/validation.md."""
    text = f"""BSSY B0, 0x40
        BMOV.32 R2, B0
        @P0 BRA 0x40
        {restores}
        BSYNC B0
        MOV R1, 0x1"""
    _, counts = ran(text, P0=ODD)
    assert issued(counts, 4) == (2, 32)
    assert reissued(counts, 4) == (again, 32 * again)
    assert counts["executed"][5] == 1


def test_a_barrier_that_a_function_restored_is_still_the_outer_one():
    # those of P1 call; of the others, some leave B0's region without a BREAK
    text = """BSSY.RECONVERGENT B2, 0xe0
        @P1 BRA 0xa0
        BSSY.RECONVERGENT B1, 0x80
        BSSY.RELIABLE B0, 0x60
        @P0 BRA 0x80
        MOV R1, 0x1
        BSYNC.RELIABLE B0
        MOV R1, 0x2
        BSYNC.RECONVERGENT B1
        BRA 0xe0
        BMOV.32.CLEAR R5, B2
        BSSY.RECONVERGENT B2, 0xc0
        BSYNC.RECONVERGENT B2
        BMOV.32 B2, R5
        BSYNC.RECONVERGENT B2
        MOV R2, 0x3"""
    after, counts = ran(text, P0=ODD, P1=0xFFFFF000)
    assert after.r[1].tolist() == [2, 0] * 6 + [0] * 20
    assert issued(counts, 15) == (1, 32)


TRYWAIT = r"""
extern "C" __global__ void half_waits(float *out, int n) {
    __shared__ unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at) : "memory");
    __syncthreads();
    float x = threadIdx.x;
    if (threadIdx.x >= 32) {
        for (int i = 0; i < n; i++) x = x * 0.5f + 1.0f;
        if (threadIdx.x == 32)
            asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}"
                         :: "r"(at) : "memory");
    } else {
        for (unsigned done = threadIdx.x >= 16; !done;)
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;"
                         "selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(at) : "memory");
        x = sinf(3 * x);
    }
    out[threadIdx.x] = x;
}
"""


def test_lanes_at_a_bsync_wait_for_lanes_whose_trywait_has_not_returned():
    out = np.zeros(64, np.float32)
    found = simulate(
        TRYWAIT,
        "half_waits",
        grid=1,
        block=64,
        arguments=[out, np.int32(5000)],
        arch="sm_90",
        predict=False,
    )
    (store,) = (one for one in found.instructions if one.action == "store")
    assert store.executed == 2  # once per warp
