"""Planted mistakes with wgmma are found, where they are; correct kernels are not blamed."""

from collections import Counter

import pytest

from tests.sampling import sampled
from toolkit import check
from validation.wgmma.planted import planted

BUGS = planted()


@pytest.mark.parametrize(
    "bug", sampled(BUGS, lambda bug: (bug.tool, bug.kind)), ids=lambda bug: bug.name
)
def test_a_planted_bug_is_found_at_its_lines(bug):
    found = check(bug.code(), max_instructions=10**6, **bug.launch).findings
    assert bug.finds(found), [one.message for one in found]


def test_there_are_enough_of_each_kind():
    assert len([bug for bug in BUGS if bug.tool]) == 33
    kinds = Counter((bug.kind, bug.patch) for bug in BUGS if bug.tool)
    assert kinds["WAR", None] == 6
    assert kinds["missing proxy fence", None] == 3
    assert kinds["RAW", None] == 3
    assert kinds["out of bounds", None] == 3
    assert kinds["swizzle mismatch", None] == 3
    assert kinds["misaligned matrix", None] == 3
    assert kinds["deadlock", None] + kinds["divergent thread(s) in warp", None] == 3
    for patch in ("WARPGROUP.DEPBAR", "WARPGROUP.ARRIVE", "gsb0"):
        assert sum(n for (_, p), n in kinds.items() if p == patch) == 3


def said_of(name):
    bug = next(bug for bug in BUGS if bug.name == name)
    return [one.message for one in check(bug.code(), max_instructions=10**6, **bug.launch).findings]


def test_messages_name_the_descriptor_and_the_remedy():
    (one,) = said_of("stride_in_bytes")
    assert "the descriptor of A leads outside of shared memory" in one
    assert "stride offset 16,384, 128-byte swizzle" in one
    (first, *_) = said_of("descriptor_of_another_swizzle")
    assert "the descriptor has 64-byte swizzle and the copy wrote with 128-byte swizzle" in first
    (one,) = said_of("three_warps_of_a_group")
    assert "for the other warps of their warpgroup, which do not execute this wgmma" in one
