"""benchmarks/block_times.py: what it compiles, and how it reads the times of blocks."""

import numpy as np
import pytest

from benchmarks import block_times as benchmark
from benchmarks.block_times import BlockTimes
from kernels.selection import parse_selection
from tests.rungs import every_rung
from toolkit.sass.translate import translate

LIFE_NS = 1000


def _times(ends_of_sms):
    """Blocks that live LIFE_NS each, by when they end in lifetimes, SM by SM."""
    sms = np.repeat(np.arange(len(ends_of_sms)), [len(ends) for ends in ends_of_sms])
    ends = np.rint(np.concatenate(ends_of_sms) * LIFE_NS).astype(np.int64)
    order = np.random.default_rng().permutation(len(ends))  # blocks come in any order
    return BlockTimes(begins=(ends - LIFE_NS)[order], ends=ends[order], sms=sms[order])


@every_rung
def test_a_kernel_begins_and_ends_with_its_stores(variant):
    source = benchmark.instrumented(variant)  # type: ignore[arg-type]
    kernel = source[source.index(benchmark.KERNEL) :]
    assert source.count(benchmark.AT_BEGIN) == source.count(benchmark.AT_END) == 1
    assert kernel.index(benchmark.AT_BEGIN) < kernel.index("return")
    assert kernel.endswith(benchmark.AT_END + "}\n")


@pytest.mark.parametrize("name", ["naive-coalesced", "bulk-copy", "stream-k"])
def test_three_stores_and_three_special_registers_are_all_that_is_added(name):
    cubin = benchmark.compiled(parse_selection(name), "sm_90")
    with_stores = translate(cubin).kernel.instructions
    read = [i.text for i in with_stores if "GLOBALTIMER" in i.text or "SMID" in i.text]
    assert sum("GLOBALTIMER" in text for text in read) == 2
    assert sum("SMID" in text for text in read) == 1
    assert sum(i.opcode == "ST" for i in with_stores) == 3


def test_blocks_of_an_sm_that_end_together_or_apart():
    times = _times([[1, 1, 2, 2], [1, 1.4, 2, 2.5], [1, 1, 2, 2]])
    assert times.lifetime == LIFE_NS
    waves = times.waves(2)
    assert benchmark.end_time_differences(waves) == pytest.approx([0.4 / 3, 0.5 / 3])
    assert benchmark.spread(waves) == pytest.approx([0.2, 0.25])


def test_the_other_of_two_blocks_ends_at_the_pace_of_one_alone():
    """The first takes a lifetime, one alone 0.8; the other has done 0.6 when the first one ends."""
    ends = [[1, 1 + 0.4 * 0.8], [1, 1 + 0.4 * 0.8], [0.8]]
    sms = np.array([0, 0, 1, 1, 2])
    in_ns = np.rint(np.concatenate(ends) * LIFE_NS).astype(np.int64)
    times = BlockTimes(begins=np.zeros(5, dtype=np.int64), ends=in_ns, sms=sms)
    assert benchmark.pace_beside_the_first(times) == pytest.approx((0.6, 0.8))
    for others in ([0, 0, 1, 1, 1], [0, 0, 1, 1, 0], [0, 1, 2, 3, 4]):  # none alone, or no two
        found = BlockTimes(begins=times.begins, ends=in_ns, sms=np.array(others))
        assert benchmark.pace_beside_the_first(found) is None
    in_turn = BlockTimes(
        begins=np.array([0, 1000, 0]), ends=np.array([1000, 2300, 1000]), sms=np.array([0, 0, 1])
    )
    assert benchmark.pace_beside_the_first(in_turn) is None


def test_a_wave_that_few_sms_have_is_left_out():
    assert len(_times([[1, 2, 3], [1, 2], [1, 2]]).waves(1)) == 2


def test_how_many_blocks_an_sm_runs_at_a_time():
    assert benchmark._most_at_once(_times([[1, 2, 3], [1, 2]])) == 1
    assert benchmark._most_at_once(_times([[1, 1.4, 2, 2.4], [1, 2]])) == 2
