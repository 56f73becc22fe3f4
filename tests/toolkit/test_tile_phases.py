"""The phases of a small tiled product, against the table that the source texts draw by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from analysis.devices import find_device
from analysis.result import TilePhases
from toolkit.tile_phases import tile_phases


@pytest.fixture(scope="module")
def phases() -> TilePhases:
    found = tile_phases(find_device("rtx-3090"))
    assert found is not None
    return found


def test_every_thread_loads_one_element_of_each_matrix_per_phase(phases: TilePhases) -> None:
    loaded = {(one.phase, one.thread, one.matrix): (one.row, one.column) for one in phases.loads}
    assert len(loaded) == len(phases.loads) == 2 * 4 * 2  # phases, threads, matrices
    for thread in range(4):
        y, x = divmod(thread, 2)
        for phase in range(2):
            assert loaded[phase, thread, "A"] == (y, 2 * phase + x)
            assert loaded[phase, thread, "B"] == (2 * phase + y, x)


def test_a_thread_reads_a_row_of_a_and_a_column_of_b(phases: TilePhases) -> None:
    for thread in range(4):
        y, x = divmod(thread, 2)
        of_a = [(r.row, r.column) for r in phases.reads if (r.thread, r.matrix) == (thread, "A")]
        of_b = [(r.row, r.column) for r in phases.reads if (r.thread, r.matrix) == (thread, "B")]
        assert sorted(of_a) == [(y, k) for k in range(4)]
        assert sorted(of_b) == [(k, x) for k in range(4)]


def test_what_is_loaded_once_is_read_by_two_threads(phases: TilePhases) -> None:
    readers = Counter((r.phase, r.matrix, r.row, r.column) for r in phases.reads)
    loads = {(one.phase, one.matrix, one.row, one.column) for one in phases.loads}
    assert set(readers) == loads
    assert set(readers.values()) == {2}
