"""Groups of lines, against all accesses written out one by one."""

from collections import defaultdict

import numpy as np
import pytest

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.traffic import groups
from analysis.traffic.groups import ENTRY, BlockClass, grouped

GRID = (6, 5, 2)
Seen = dict[int, list[tuple[int, int, int, int]]]


def a_class(rng, entries, *, in_lines):
    """Random accesses, of whole lines that shift by lines or of single sectors."""
    shifts = rng.integers(0, 3, (4, 3)) * (LINE_BYTES if in_lines else SECTOR_BYTES)
    found = np.zeros(entries, dtype=ENTRY)
    found["sector"] = 1000 + rng.integers(0, 60, entries)
    found["mask"] = 1
    if in_lines:
        found["sector"] -= found["sector"] % 4
        found["mask"] = rng.integers(1, 16, entries)
    found["moment"], found["kind"] = rng.integers(0, 5, entries), rng.integers(0, 2, entries)
    found["shift"] = rng.integers(0, 4, entries)
    at = rng.integers(0, 5, 3)
    return BlockClass(entries=found, shifts=shifts, at=(int(at[0]), int(at[1]), int(at[2])))


def one_by_one(classes, class_of):
    """Accesses to each line: block, moment, mask, kind."""
    found = defaultdict(list)
    for block, number in enumerate(class_of.tolist()):
        own = classes[number]
        index = (block % GRID[0], block // GRID[0] % GRID[1], block // GRID[0] // GRID[1])
        moved = own.shifts @ (np.array(index) - own.at) // SECTOR_BYTES
        for entry in own.entries:
            line, first = divmod(int(entry["sector"]) + int(moved[entry["shift"]]), 4)
            how = (block, int(entry["moment"]), int(entry["mask"]) << first, int(entry["kind"]))
            found[line].append(how)
    return found


def visits(found):
    """The same of groups, and how many lines each group's line stands for."""
    by_line = defaultdict(list)
    for visit in found:
        how = (visit["block"], visit["moment"], visit["mask"], visit["kind"])
        by_line[int(visit["line"])].append(tuple(map(int, how)))  # type: ignore[arg-type]
    return by_line, {int(line): int(count) for line, count in found[["line", "lines"]]}


@pytest.mark.parametrize("in_lines", [True, False])
def test_groups_stand_for_all_accesses(in_lines):
    rng = np.random.default_rng()
    classes = [a_class(rng, entries, in_lines=in_lines) for entries in (40, 25)]
    class_of = rng.integers(0, 2, int(np.prod(GRID))).astype(np.uint32)
    lines = defaultdict(int)
    for accesses in one_by_one(classes, class_of).values():
        lines[tuple(sorted(accesses))] += 1
    found = grouped(classes, class_of, GRID, most=10**5)
    by_line, counts = visits(found)
    assert {tuple(sorted(by_line[line])): counts[line] for line in by_line} == lines


def test_a_sample_of_lines_is_evenly_spread_and_scaled(monkeypatch):
    entries = np.zeros(4096, dtype=ENTRY)
    entries["sector"], entries["mask"] = 4 * np.arange(4096), 15
    one = BlockClass(entries=entries, shifts=np.array([[LINE_BYTES * 4096, 0, 0]]), at=(0, 0, 0))
    monkeypatch.setattr(groups, "MOST_ENTRIES", 4096)  # an eighth of the accesses, or less
    found = grouped([one], np.zeros(32, np.uint32), (32, 1, 1), most=1000)
    assert found["block"].tolist() == list(range(32))  # one group each
    assert (found["lines"] == 4096).all()


def test_more_accesses_than_there_is_room_for_are_none():
    rng = np.random.default_rng()
    one = a_class(rng, 40, in_lines=True)
    assert grouped([one], np.zeros(60, np.uint32), GRID, most=0) is None


def test_long_runs_of_a_sample_have_all_accesses_to_its_lines(monkeypatch):
    """Blocks of a row and a column share shifts, so what was chosen for one is used for others."""
    rng = np.random.default_rng()
    entries = np.zeros(1200, dtype=ENTRY)
    entries["sector"] = 4 * rng.integers(500, 1300, 1200)
    entries["mask"], entries["moment"] = rng.integers(1, 16, 1200), rng.integers(0, 5, 1200)
    entries["shift"][500:] = 1  # two runs
    shifts = np.array([[0, 8 * LINE_BYTES, 0], [3 * LINE_BYTES, 0, LINE_BYTES]])
    classes = [BlockClass(entries=entries, shifts=shifts, at=at) for at in ((0, 0, 0), (1, 2, 0))]
    class_of = rng.integers(0, 2, int(np.prod(GRID))).astype(np.uint32)
    monkeypatch.setattr(groups, "MOST_ENTRIES", 1200 * len(class_of) // 3)
    found = grouped(classes, class_of, GRID, most=10**6)
    chosen = {  # one of four lines, as the accesses are three times too many
        line: sorted(accesses)
        for line, accesses in one_by_one(classes, class_of).items()
        if sum(line.to_bytes(8)) % 4 == 0
    }
    by_line, counts = visits(found)
    assert all(sorted(of_line) == chosen[line] for line, of_line in by_line.items())
    assert sum(counts.values()) == 4 * len(chosen)
