"""Marks and fixtures that tests of rungs share."""

import pytest

from kernels import LADDER
from toolkit.execution import launch_time

every_rung = pytest.mark.parametrize("variant", LADDER, ids=lambda variant: variant.name)


def without_times(monkeypatch):
    """Launches get traffic below L1 and no time, which takes less."""
    monkeypatch.setattr(launch_time, "cached_prediction", lambda *_: "not asked for")
