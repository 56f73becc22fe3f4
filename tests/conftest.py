"""What every test needs: tests of hardware run where it is, or where they are asked for."""

from __future__ import annotations

import shutil
from functools import cache

import pytest


@cache
def why_no_gpu() -> str | None:
    from analysis.errors import ToolkitError
    from toolkit.gpu import Gpu

    try:
        with Gpu():
            return None
    except ToolkitError as error:
        return str(error)


def why_no_ncu() -> str | None:
    if why_no_gpu():
        return why_no_gpu()
    return None if shutil.which("ncu") else "ncu is not on the PATH"


NEEDS = {"gpu": why_no_gpu, "ncu": why_no_ncu}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip hardware tests where the hardware is missing, unless `-m` asks for them by name."""
    asked = config.getoption("-m")
    for item in items:
        for name, missing in NEEDS.items():
            if name in item.keywords and name not in asked and (reason := missing()):
                item.add_marker(pytest.mark.skip(reason=f"{name}: {reason}"))
