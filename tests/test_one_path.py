"""What profile, simulate and tune say of one launch: as recorded, and the same from each.

The last part holds for profile and tune. `simulate` differs while it models a rung as any other
kernel: those tests are expected to fail until there is one path.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.one_path import LAUNCHES, RECORDED, RUNGS, OtherLaunch, RungLaunch
from tests.sampling import chosen_of

CLOSE = 1e-9  # relative, of times
SAMPLE = ("naive-coalesced 512", "stream-k 512")


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def is_in_sample(launch: RungLaunch | OtherLaunch) -> bool:
    return isinstance(launch, OtherLaunch) or launch.name in SAMPLE


@pytest.mark.parametrize(
    ("launch", "path"),
    chosen_of(
        [
            pytest.param(launch, path, id=f"{launch.name}-{path}")
            for launch in LAUNCHES
            for path in launch.answers()
        ],
        lambda case: is_in_sample(case[0]),
    ),
)
def test_each_path_answers_what_is_recorded(
    launch: RungLaunch | OtherLaunch, path: str, recorded: dict[str, Any]
) -> None:
    expected, found = recorded[launch.name][path], launch.answers()[path]()
    assert found["time_s"] == pytest.approx(expected["time_s"], rel=CLOSE)
    assert (found["limiter"], found["counters"]) == (expected["limiter"], expected["counters"])


def test_at_least_twelve_launches_are_recorded(recorded: dict[str, Any]) -> None:
    assert sorted(recorded) == sorted(launch.name for launch in LAUNCHES)
    assert len(recorded) >= 12


@pytest.mark.parametrize("launch", RUNGS, ids=lambda launch: launch.name)
def test_profile_and_tune_agree(launch: RungLaunch, recorded: dict[str, Any]) -> None:
    by_path = recorded[launch.name]
    for value in ("time_s", "limiter"):
        assert by_path["tune"][value] == by_path["profile"][value]


@pytest.mark.xfail(reason="two paths", strict=True)
@pytest.mark.parametrize("launch", RUNGS, ids=lambda launch: launch.name)
def test_profile_and_simulate_agree(launch: RungLaunch, recorded: dict[str, Any]) -> None:
    by_path = recorded[launch.name]
    assert by_path["simulate"] == by_path["profile"]
