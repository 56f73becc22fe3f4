"""Accesses of all blocks, recorded one by one; values by hand."""

import numpy as np

from analysis.traffic.pieces import READ, WRITE
from toolkit.execution.recorded_blocks import RecordedBlocks, blocks_that_exchange
from toolkit.sass.accesses import Below, RecordedAccesses
from toolkit.sass.core.binding import ACCESS, WORK


def access(line, block, step, kind, mask=15):
    return line, block, step, 0, mask, kind


def recorded(*rows, spread=0):
    below = Below(read=8, written_by_warps=4)
    return RecordedAccesses(rows=np.array(list(rows), dtype=ACCESS), spread=spread, below=below)


def work(*longest):
    found = np.zeros(len(longest), dtype=WORK)
    found["longest"] = found["executed"] = longest
    return found


# Block 0 exits at once; block 1 leaves a sum that block 2 reads.
ROWS = (access(7, 1, 50, WRITE), access(3, 2, 10, READ), access(7, 2, 60, READ))


def test_blocks_that_exchange_data_are_found_with_their_lifetimes():
    found = blocks_that_exchange(recorded(*ROWS), work(1, 100, 100))
    assert found.lifetimes.tolist() == [0, 1, 1]
    assert found.exchange.blocks.tolist() == [1, 2]
    assert found.exchanging.first == 1  # the first block that does not exit at once
    assert found.exchanging.sharing == 2
    assert found.exchanging.writers == 1
    assert found.exchanging.bytes == 128
    assert found.read_by_block.tolist() == [0, 0, 8]


def test_blocks_that_exchange_nothing_are_no_exchange():
    alone = (access(7, 1, 50, WRITE), access(3, 2, 10, READ))
    assert blocks_that_exchange(recorded(*alone), work(100, 100, 100)) is None


def test_the_exchange_of_part_of_the_lines_is_not_known():
    assert blocks_that_exchange(recorded(*ROWS, spread=1), work(100, 100, 100)) is None
    assert blocks_that_exchange(None, work(100, 100, 100)) is None


def test_a_block_that_waits_reads_after_the_other_wrote():
    found = blocks_that_exchange(recorded(*ROWS), work(1, 100, 100))
    asked = found.asked()
    assert asked.below.read == 8
    time = asked.in_time(np.zeros(3), None).time
    assert time[2] > time[0]


def test_without_an_exchange_no_block_waits():
    found = RecordedBlocks(accesses=recorded(*ROWS), lifetimes=np.ones(3))
    assert found.exchanging is None
