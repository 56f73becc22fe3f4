import random

import numpy as np
import pytest

from analysis.sm import INSTRUCTION, NO_SCOREBOARD, STEP, Machine, Streams, Unit, run
from tests.analysis.streams_by_hand import BY_HAND
from toolkit.machine_code.instruction import RZ
from toolkit.reorder.banks import IDLE, Banks, dispatched, reads_of
from toolkit.reorder.freedom import Freedom
from toolkit.reorder.schedule import Gap, Problem, late_clocks


def test_reads_count_registers_once_and_rz_never():
    assert reads_of([4, 6, 9]) == (2, 1)
    assert reads_of([4, 4, RZ]) == (1, 0)


@pytest.mark.parametrize(
    ("reads", "late"),
    [
        ([(1, 1)] * 4, 0),
        ([(2, 0)] * 4, 3),  # 2 clocks each, but nothing follows the last one
        ([(2, 0), (0, 2)] * 3, 0),  # the other bank catches up
        ([(3, 0)] * 3, 4),
        ([(2, 1), (1, 1), (0, 0), (1, 1)], 1),
    ],
)
def test_late_clocks_of_reads(reads, late):
    banks, total = IDLE, 0
    for one in reads:
        clocks, banks = dispatched(banks, one)
        banks = banks.later(1 + clocks)
        total += clocks
    assert total == late


def test_banks_are_idle_again_after_a_while():
    assert Banks(2, 1).later(2) == IDLE


def _problem(operands):
    count = len(operands)
    return Problem(
        operands=operands,
        freedom=Freedom(
            positions=range(count),
            clocks=range(count),
            earliest=[0] * count,
            latest=[count - 1] * count,
            after=[frozenset()] * count,
            results=[frozenset()] * count,
        ),
        gaps=[Gap(is_break=n % 5 == 0, first_clocks=0, reads=()) for n in range(count)],
    )


@pytest.mark.parametrize("seed", range(6))
def test_clocks_lost_are_no_fewer_than_those_of_the_model_of_an_sm(seed):
    random_ = random.Random(seed)
    operands = [
        (random_.randrange(4), random_.randrange(4), random_.randrange(20, 28), 40 + n % 16)
        for n in range(400)
    ]
    problem = _problem(operands)
    late = late_clocks(problem, [(n, False) for n in range(400)])
    modelled = _modelled_clocks(problem) - _modelled_clocks(problem, banks=0)
    assert 100 < modelled <= late <= 2 * modelled  # which lets some operands be read later


def _modelled_clocks(problem, banks=2):
    """Of one warp, which keeps what the next FFMA of a row without a break reads again."""

    count = len(problem.operands)
    code = np.zeros(count, dtype=INSTRUCTION)
    code["stall"] = code["pipe_clocks"] = 1
    code["unit"] = Unit.FMA
    code["write_barrier"] = code["read_barrier"] = NO_SCOREBOARD
    for row, (a, b, c, _) in zip(code, problem.operands, strict=True):
        row["source"] = a, b, c
    for k in range(count - 1):
        code["reuse"][k] = 0 if problem.gaps[k + 1].is_break else 7
    steps = np.zeros(count, dtype=STEP)
    steps["pc"] = np.arange(count)
    streams = Streams(
        steps=steps,
        lines=np.zeros(0, dtype=np.uint64),
        first_step=np.zeros(1, dtype=np.uint64),
        first_line=np.zeros(1, dtype=np.uint64),
        first_warp=np.array([0, 1]),
    )
    machine = Machine(
        **BY_HAND | {"bank_count": banks, "fetch_latency": 0, "fetch_clocks": 0, "fma_halves": 2}
    )
    return run(code, streams, [0], machine).clocks
