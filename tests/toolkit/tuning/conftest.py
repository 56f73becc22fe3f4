"""A made-up GPU for other processes: they find a PyCUDA that computes with NumPy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MADE_UP_GPU = Path(__file__).parent / "made_up_gpu"


@pytest.fixture
def made_up_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give child processes the made-up PyCUDA, and tell it what to do to which configurations."""
    known = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(MADE_UP_GPU), known])))

    def tell(**told: Any) -> None:
        monkeypatch.setenv("MADE_UP_GPU", json.dumps(told))

    tell()
    return tell
