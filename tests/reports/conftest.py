"""Profiles to render, and their pages."""

from dataclasses import replace

import pytest

from tests.reports.profiles_by_hand import (
    counted,
    foreseen,
    profile,
    simulated,
    traced,
)  # fmt: skip

made_once = pytest.fixture(scope="session")


@made_once
def in_theory():
    return profile()


@made_once
def on_gpu():
    return profile(is_measured=True)


@made_once
def in_simulation():
    made = profile()
    return replace(made, executor="simulate", records=tuple(map(simulated, made.records)))


@made_once
def in_trace(in_simulation):
    """A simulation with machine code and first requests."""
    return traced(in_simulation)


@made_once
def in_prediction(in_simulation):
    """A simulation with predicted times, each 10% above what was published."""
    return foreseen(in_simulation)


@made_once
def in_counters():
    """A run on a GPU with hardware counters; tiled has one warp instruction too many."""
    made = profile(is_measured=True)
    records = (
        counted(r, inst_executed=1) if r.label == "tiled" else counted(r) for r in made.records
    )
    return replace(made, records=tuple(records))
