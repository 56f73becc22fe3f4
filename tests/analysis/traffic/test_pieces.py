"""Accesses to pieces of lines beside a slow version."""

import numpy as np
import pytest

from analysis.layout import dtype_of
from analysis.traffic.pieces import ATOMIC, READ, WRITE, piece_accesses

ACCESS = dtype_of("u8 line; u1 mask kind")
SECTORS = range(4)


def slow_pieces(found):
    """(row, piece, sectors, size, is_write) of each access to a piece, in order."""
    rows = [(int(line), int(mask), int(kind)) for line, mask, kind in found.tolist()]
    masks = {line: {m for other, m, _ in rows if other == line} for line, _, _ in rows}
    names = [(row, line, None) for row, (line, _, _) in enumerate(rows) if len(masks[line]) == 1]
    names += [
        (row, line, sector)
        for sector in SECTORS
        for row, (line, mask, _) in enumerate(rows)
        if len(masks[line]) > 1 and mask >> sector & 1
    ]
    every = sorted({(line, sector or 0) for _, line, sector in names})
    numbers = {name: number for number, name in enumerate(every)}
    pieces = []
    for row, line, sector in names:
        size = rows[row][1].bit_count() if sector is None else 1
        kind = rows[row][2]
        sectors = 0 if kind == ATOMIC else size
        pieces.append((row, numbers[line, sector or 0], sectors, size, kind == WRITE))
    atomics = [one for one in pieces if rows[one[0]][2] == ATOMIC]
    return pieces + [(row, piece, 0, size, True) for row, piece, _, size, _ in atomics]


@pytest.mark.parametrize("lines", [3, 40, 1 << 45])
@pytest.mark.parametrize("kinds", [(READ,), (READ, WRITE), (READ, WRITE, ATOMIC)])
def test_pieces_are_those_of_a_slow_version(lines, kinds):
    rng = np.random.default_rng()
    found = np.zeros(150, dtype=ACCESS)
    found["line"] = rng.choice(rng.integers(0, lines, 60), 150)
    of_lines = rng.integers(1, 16, 150)
    found["mask"] = np.where(rng.random(150) < 0.5, of_lines, 1 + found["line"] % 15)
    found["kind"] = rng.choice(kinds, 150)
    pieces = piece_accesses(found)
    rows = zip(*(array.tolist() for array in vars(pieces).values()), strict=True)
    assert list(rows) == slow_pieces(found)


def test_no_accesses_are_no_pieces():
    assert len(piece_accesses(np.zeros(0, dtype=ACCESS)).row) == 0
