"""A made-up GPU for other processes: they find a PyCUDA that computes with NumPy."""

import json
import os
from pathlib import Path

import pytest

MADE_UP_GPU = Path(__file__).parent / "made_up_gpu"


@pytest.fixture
def made_up_gpu(monkeypatch):
    """Give child processes the made-up PyCUDA, and tell it what to do to which configurations."""
    known = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(MADE_UP_GPU), known])))

    def tell(**told):
        monkeypatch.setenv("MADE_UP_GPU", json.dumps(told))

    tell()
    return tell
