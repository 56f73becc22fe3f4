"""Without what orders the accesses of a rung, the race is found, with both of its lines."""

import re
from functools import cache

import pytest

from kernels.ladder import LADDER
from kernels.selection import find
from tests.planted.rungs import check_rung
from tests.sampling import chosen_of, values_of
from tests.together import compiled_together
from toolkit.machine_code.compile import compile_cubin
from validation.planted.bugs import rung_part
from validation.planted.deletions import LAUNCHES, deletions


def launched(launch):
    variant = find(launch.rung)
    return variant, variant.defaults | dict(launch.parameters)


# What orders accesses, and a rung that has it and compiles fast. Barriers of a block and of a warp
# are deleted in test_planted.py.
QUICK = (
    ("bulk-copy", "wait(full + 8 * stage, parity)"),
    ("bulk-copy", "arrives before its last reads"),
)


def what_is_deleted(deletion):
    """The rung, and its text wherever it stands."""
    piece = re.sub(r".*? (without line \d+: |(?=arrives))", "", deletion.name)
    return deletion.launch.rung, piece


BY_TEXT = {what_is_deleted(one): one.name for one in deletions()}  # the last one of several
QUICK_NAMES = {BY_TEXT[piece] for piece in QUICK}
CHOSEN = chosen_of(
    [pytest.param(one, id=one.name) for one in deletions()], lambda one: one.name in QUICK_NAMES
)
AS_IT_IS = chosen_of(
    [pytest.param(x, id=f"{x.rung} {dict(x.parameters)}") for x in LAUNCHES],
    lambda x: x.rung == "split-k",  # test_planted.py checks the other rungs with their defaults
)


@cache
def compiled(rung):
    """Chosen deletions of a rung and its launches with parameters of their own, compiled as one.

    All rungs together took each process of an exhaustive run 110 s and more.
    """
    chosen = [x for x in map(values_of, CHOSEN) if x.variant.name == rung]
    parts = {x.name: rung_part(x.variant, x.source, x.parameters) for x in chosen}
    for variant, parameters in map(launched, map(values_of, AS_IT_IS)):
        if variant.name == rung and parameters != variant.defaults:
            parts[named(variant, parameters)] = rung_part(variant, variant.source, parameters)
    return dict(zip(parts, compiled_together([*parts.values()], "sm_90"), strict=True))


def named(variant, parameters):
    return f"{variant.name} {dict(parameters)}"


def whole(variant, parameters):
    """A rung that lacks nothing: with its defaults as other tests compile it."""
    if parameters != variant.defaults:
        return compiled(variant.name)[named(variant, parameters)]
    part = rung_part(variant, variant.source)
    return compile_cubin(
        part.text, name=part.name, kernel=part.kernel, arch="sm_90", defines=part.defines
    )


@pytest.mark.parametrize("deletion", CHOSEN)
def test_what_is_not_ordered_any_more_is_found_with_both_lines(deletion):
    code, shape = compiled(deletion.variant.name)[deletion.name], deletion.launch.shape
    found = check_rung(code, deletion.variant, shape, deletion.parameters).findings
    races = [x.accesses for x in found if (x.tool, x.kind) == ("racecheck", deletion.kind)]
    lines = [(first.line, second.line) for first, second in races]
    assert any(
        first in deletion.before and (deletion.after is None or second in deletion.after)
        for first, second in lines
    ), [finding.message for finding in found]


@pytest.mark.parametrize("launch", AS_IT_IS)
def test_as_it_is_the_rung_is_not_blamed(launch):
    variant, parameters = launched(launch)
    found = check_rung(whole(variant, parameters), variant, launch.shape, parameters)
    assert [finding.message for finding in found.findings] == []
    assert "racecheck" in found.tools


def test_every_rung_that_waits_for_copies_is_tried():
    waits = {v.name for v in LADDER if "mbarrier.try_wait" in v.source or "wait_group" in v.source}
    assert {launch.rung for launch in LAUNCHES} == waits
