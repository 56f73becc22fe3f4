"""Names of rungs, told from paths of files."""

from __future__ import annotations

import os
import re

_NAME = re.compile(r"[\w-]+(:.*)?", re.ASCII)


def is_name(source: object) -> bool:
    """True if a source is the name of a rung: a known one, or one that is not a file either.

    A name is "stream-k" or "stream-k:band=4". A text with a folder or a suffix is a path: "./tiled"
    is a file, "tiled" is the rung.
    """
    if not isinstance(source, str) or _NAME.fullmatch(source) is None:
        return False
    from kernels.selection import BY_NAME  # after NumPy: who compiles a file need not wait for it

    name, _, _ = source.lower().replace("_", "-").partition(":")
    return name in BY_NAME or not os.path.exists(source)  # noqa: PTH110 (False also for a name that is too long)
