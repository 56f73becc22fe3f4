"""Names of kernels in Python files, told from other sources."""

from __future__ import annotations

import re

SCRIPT = re.compile(r"(?P<path>.+\.py)(?::(?P<name>[A-Za-z_][\w.]*))?", re.DOTALL)


def is_script(source: str) -> bool:
    """True for `script.py:kernel`, and for `script.py`, which lacks a name."""
    return SCRIPT.fullmatch(source) is not None
