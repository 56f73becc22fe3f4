"""Native libraries: finding them, loading them, and checking that their sources are current."""

from __future__ import annotations

import ctypes
import re
from hashlib import sha256
from pathlib import Path

from analysis.errors import REBUILD, UnavailableError

_FROM_ANOTHER_FOLDER = re.compile(rb'^#include "(\.\./[^"]+)"', re.MULTILINE)


def sources_of(folder: Path) -> str | None:
    """Digest of the C sources in a folder and of the headers of other folders that they include.

    None if the folder has none.
    """
    own = [path.read_bytes() for path in sorted(folder.glob("*.[ch]"))]
    headers = sorted({name for text in own for name in _FROM_ANOTHER_FOLDER.findall(text)})
    others = [(folder / name.decode()).read_bytes() for name in headers]
    return sha256(b"".join(own + others)).hexdigest() if own else None


def loaded(path: Path, folder: Path, what: str) -> ctypes.CDLL:
    """Library at `path`, built from the sources in `folder` if these are there.

    Raises UnavailableError, which names `what`, if it was not built or was built from other
    sources.
    """
    if not path.exists():
        raise UnavailableError(f"{what} was not built: {REBUILD}")
    library = ctypes.CDLL(str(path))
    sources = sources_of(folder)
    has_digest = hasattr(library, "built_from")
    built = (ctypes.c_char * 64).in_dll(library, "built_from").value if has_digest else b""
    if sources not in (None, built.decode()):
        raise UnavailableError(f"{what} was built from other sources: {REBUILD}")
    return library
