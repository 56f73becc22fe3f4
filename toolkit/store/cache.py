"""The user's cache: what is slow to make, kept by content.

The name of an entry is a digest of all that decides its content. An entry holds its name, a
checksum and the content. An entry that is damaged, or that stands under another name, counts as
absent and is made anew. The cache is a convenience: where it cannot be read or written, nothing is
kept.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from analysis.errors import ToolkitError
from toolkit.store.user_files import write_atomically

_DIGEST_BYTES = sha256().digest_size


def cache_directory() -> Path:
    """Where entries are kept: $GEMM_LADDER_CACHE, or a folder in the user's cache."""
    if chosen := os.environ.get("GEMM_LADDER_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "gemm-ladder"


def cached(name: str) -> bytes | None:
    """The content of entry `name`, None where there is no intact one."""
    try:
        entry = (cache_directory() / name).read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return None
    kept_as, _, rest = entry.partition(b"\n")
    checksum, content = rest[:_DIGEST_BYTES], rest[_DIGEST_BYTES:]
    return content if kept_as == name.encode() and sha256(content).digest() == checksum else None


def keep(name: str, content: bytes) -> None:
    """Make `content` the entry `name`."""
    with suppress(ToolkitError, OSError, RuntimeError):
        directory = cache_directory()
        directory.mkdir(parents=True, exist_ok=True)
        checksum = sha256(content).digest()
        write_atomically(directory / name, name.encode() + b"\n" + checksum + content)
