"""Shares of instructions that effects remove."""

from dataclasses import dataclass

import pytest

from analysis.timing.effects import _share_of_lanes


@dataclass(frozen=True, kw_only=True)
class Counted:
    space: str | None
    bytes_per_lane: int
    requests: int
    threads: int
    executed: int = 100

    @property
    def predicated(self) -> int:
        return self.threads


@pytest.mark.parametrize(
    ("space", "bytes_per_lane", "requests", "threads", "share"),
    [
        ("local", 16, 400, 3200, 1.0),  # four words, all lanes
        ("local", 16, 400, 2400, 0.75),  # 24 of 32 lanes
        ("local", 4, 100, 3200, 1.0),
        ("local", 8, 100, 1600, 1.0),  # half of the warps take no part: no request of theirs
        ("global", 16, 100, 2400, 0.75),  # a request, however wide
        (None, 0, 0, 2400, 0.75),
    ],
)
def test_lanes_of_an_instruction(space, bytes_per_lane, requests, threads, share):
    one = Counted(space=space, bytes_per_lane=bytes_per_lane, requests=requests, threads=threads)
    assert _share_of_lanes(one) == pytest.approx(share)
