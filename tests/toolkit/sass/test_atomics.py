"""Atomic operations that the core counts by line, and what they say of all blocks."""

from dataclasses import replace

import numpy as np
import pytest

from tests.cubins import cubin_of
from toolkit.execution.atomics import of_all_blocks, of_executed_blocks
from toolkit.execution.simulator import prepared
from toolkit.launch.launch import launch_geometry
from toolkit.sass.atomics import summed
from toolkit.sass.machine import run_blocks

SOURCE = """extern "C" __global__ void add(TYPE *sums, const int *places, int times) {
    const int place = places[threadIdx.x % 32];
    for (int k = 0; k < times; k++)
        if (place >= 0) ADD(&sums[place + k * STEP + blockIdx.x * OF_BLOCK]);
}"""


def atomics(places, kind="float", *, times=1, step=0, of_block=0, blocks=1, threads=32):
    """Operations of each block of a launch, whose lanes add to the words `places` times."""
    text = SOURCE.replace("ADD(&sums[", "atomicAdd(&sums[").replace(
        "OF_BLOCK]);", "OF_BLOCK], (TYPE)1);"
    )
    for name, value in {"TYPE": kind, "STEP": step, "OF_BLOCK": of_block}.items():
        text = text.replace(name, str(value))
    kernel = cubin_of(text, "add")
    sums = np.zeros(
        1 << 14, {"float": np.float32, "unsigned": np.uint32, "double": np.float64}[kind]
    )
    lanes = np.full(32, -1, np.int32)
    lanes[: len(places)] = places
    geometry = launch_geometry(blocks, threads, 0)
    _, bound, _ = prepared(kernel, geometry, [sums, lanes, np.int32(times)])
    runs = run_blocks(
        replace(bound, most_accesses=1 << 16), [range(b, b + 1) for b in range(blocks)]
    )
    return [run.atomics for run in runs]


@pytest.mark.parametrize(
    ("kind", "places", "parts", "wholes", "additions"),
    [
        ("unsigned", [0], [1], [0], [0, 0, 0, 0]),
        ("float", [0], [1], [0], [1, 0, 0, 0]),
        ("float", [0, 9], [2], [0], [1, 1, 0, 0]),
        ("float", range(8), [0], [1], [1, 0, 0, 0]),  # 8 words are a sector
        ("float", range(32), [0], [4], [1, 1, 1, 1]),
        ("float", [0] * 32, [32], [0], [32, 0, 0, 0]),  # lanes with one address are not combined
        ("float", [0] * 3 + [1], [3], [0], [3, 0, 0, 0]),
        ("float", [0, 32], [1, 1], [0, 0], [1, 0, 0, 0]),  # two lines
        ("double", range(4), [0], [2], [1, 0, 0, 0]),  # two doubles at a time
        ("double", range(2), [1], [0], [1, 0, 0, 0]),
    ],
)
def test_a_request_is_so_many_operations_on_sectors(kind, places, parts, wholes, additions):
    (found,) = atomics(list(places), kind)
    assert found.lines["requests"].tolist() == [1] * len(parts)
    assert found.lines["parts"].tolist() == parts
    assert found.lines["wholes"].tolist() == wholes
    assert found.lines["additions"][0].tolist() == additions
    assert not found.others["requests"].any()


def test_the_first_and_the_last_request_of_a_line_have_places():
    (found,) = atomics([0], times=5, step=32, threads=64)  # a line further each time, two warps
    assert found.lines["requests"].tolist() == [2] * 5
    assert found.lines["first"].tolist() == found.lines["last"].tolist() == list(range(5))
    (alike,) = atomics([0], times=5)
    assert (alike.lines["first"][0], alike.lines["last"][0]) == (0, 4)


def test_all_blocks_together_have_the_sum():
    blocks = atomics([0], blocks=6, of_block=0)
    found = of_all_blocks(summed(blocks))
    assert found.requests.tolist() == [6]
    assert of_all_blocks(summed(atomics([], blocks=2))) is None


def test_a_line_of_all_executed_blocks_is_one_of_all_blocks():
    some = dict(enumerate(atomics([0], blocks=4)))
    found = of_executed_blocks(some, np.zeros(1000, np.uint32))
    assert found.parts.tolist() == [1000]
    assert found.additions.tolist() == [[1000, 0, 0, 0]]
    assert found.other_parts == 0


def test_lines_of_single_blocks_are_spread():
    some = dict(enumerate(atomics([0], blocks=4, of_block=32)))
    found = of_executed_blocks(some, np.zeros(1000, np.uint32))
    assert found.parts.tolist() == [1] * 4
    assert found.other_parts == pytest.approx(996, abs=4)


def test_classes_of_blocks_count_by_their_sizes():
    some = dict(enumerate(atomics([0], blocks=4)))
    class_of = np.zeros(1000, np.uint32)
    class_of[2:602] = 1
    class_of[:2], class_of[602:] = 0, 0
    found = of_executed_blocks(some, class_of)
    assert found.parts.tolist() == [pytest.approx(1000)]
