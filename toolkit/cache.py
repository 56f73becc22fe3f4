"""The user's cache: what is slow to make, kept by content.

The name of an entry is a digest of all that decides its content. An entry holds a checksum, its
name and the content. One that is damaged, or that stands under another name, counts as absent and
is made anew. The cache is a convenience: where it cannot be read or written, nothing is kept.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from analysis.errors import ToolkitError
from toolkit.store import write_atomically

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
    checksum, rest = entry[:_DIGEST_BYTES], entry[_DIGEST_BYTES:]
    kept_as, _, content = rest.partition(b"\n")
    return content if kept_as == name.encode() and sha256(rest).digest() == checksum else None


def keep(name: str, content: bytes) -> None:
    """Make `content` the entry `name`."""
    with suppress(ToolkitError, OSError, RuntimeError):
        directory = cache_directory()
        directory.mkdir(parents=True, exist_ok=True)
        rest = name.encode() + b"\n" + content
        write_atomically(directory / name, sha256(rest).digest() + rest)
