"""Files that a user names, to read or to write.

Only regular files of at most `MOST_BYTES` are read: a device or a pipe may never end. An array
(`.npy`) is mapped, not read; it must fit into memory instead.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST_BYTES = 2**28  # a profile.json of the whole ladder takes 1 MB, a cubin 0.1 MB


def read_file(path: str | Path) -> bytes:
    """The content of a regular file of at most `MOST_BYTES`.

    Raises OSError for any other, whose `strerror` gives the reason; ValueError for a path with a
    zero byte.
    """
    check_regular(path)
    with Path(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)  # the size of a file in /proc is 0
    if len(content) > MOST_BYTES:
        size, most = max(len(content), Path(path).stat().st_size) / 1e6, MOST_BYTES / 1e6
        reason = f"it has {size:,.0f} MB, and at most {most:,.0f} MB are read"
        raise OSError(errno.EFBIG, reason, str(path))
    return content


def check_regular(path: str | Path) -> None:
    """Raise OSError if there is no such file, or if it is a folder, a device or a pipe."""
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        reason = "it is a device or a pipe: copy the content into a file, and give that"
        raise OSError(errno.EINVAL, reason, str(path))


def same_file(one: str | Path, other: str | Path) -> bool:
    """True if two paths lead to one file, through links as well. The file may be absent."""
    try:
        if Path(one).exists() and Path(other).exists():
            return Path(one).samefile(other)
        return os.path.realpath(one) == os.path.realpath(other)
    except (OSError, ValueError):  # a name that is too long, or holds a zero byte
        return False
