"""Files that a user names, to read or to write: a file is replaced whole or not at all.

Only regular files of at most `MOST_BYTES` are read: a device or a pipe may never end. An array
(`.npy`) is mapped, not read; it must fit into memory instead.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from difflib import get_close_matches
from math import inf
from pathlib import Path

from analysis.errors import InputError

MOST_BYTES = 2**28  # a profile.json of the whole ladder takes 1 MB, a cubin 0.1 MB
MOST_LISTED = 5  # files of a folder, where none has a similar name


def read_file(path: str | Path) -> bytes:
    """The content of a regular file of at most `MOST_BYTES`.

    Raises OSError for any other, whose `strerror` gives the reason; ValueError for a path with a
    zero byte.
    """
    check_regular(path, MOST_BYTES)
    with Path(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)  # the size of a file in /proc is 0
    if len(content) > MOST_BYTES:
        raise _too_large(path, len(content), MOST_BYTES)
    return content


def check_regular(path: str | Path, most_bytes: float = inf) -> None:
    """Raise OSError for a path to nothing, a folder, a device or a pipe, or a file too large."""
    try:
        status = Path(path).stat()
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, _absent(Path(path), error), str(path)) from None
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        reason = "it is a device or a pipe: copy the content into a file, and give that"
        raise OSError(errno.EINVAL, reason, str(path))
    if status.st_size > most_bytes:
        raise _too_large(path, status.st_size, most_bytes)


def _absent(path: Path, error: OSError) -> str:
    """Reason and remedy: the most similar name in the folder, or its files of the same kind."""
    return f"{error.strerror}: {_remedy(path)}"


def _remedy(path: Path) -> str:
    folder, kind = path.parent, path.suffix
    if not folder.is_dir():
        return f"there is no folder {folder}"
    try:
        stems = sorted(one.stem for one in folder.iterdir() if one.suffix == kind)
    except OSError:
        return "check the path"
    if near := get_close_matches(path.stem, stems, 1):
        return f"did you mean {path.with_stem(near[0])}?"
    if not kind:
        return "check the path"
    where = "this folder" if folder == Path() else folder
    if not stems:
        return f"{where} has no {kind} file"
    listed = ", ".join(f"{stem}{kind}" for stem in stems[:MOST_LISTED])
    others = f", and {len(stems) - MOST_LISTED} more" if len(stems) > MOST_LISTED else ""
    return f"{where} has {listed}{others}"


def _too_large(path: str | Path, size: int, most: float) -> OSError:
    reason = f"it has {size / 1e6:,.0f} MB, and at most {most / 1e6:,.0f} MB are read"
    return OSError(errno.EFBIG, reason, str(path))


def write_page(path: str | Path, html: Callable[[], str]) -> None:
    """Write an HTML page. Raises InputError unless the path ends in .html and can be written."""
    check_page_name(path)
    write_atomically(path, html())


def check_page_name(path: str | Path) -> None:
    """Raise InputError unless the path of a page ends in .html."""
    if Path(path).suffix != ".html":
        raise InputError(f"{path}: a page is HTML: give a path that ends in .html")


def users_folder(variable: str, usual: str) -> Path:
    """This project's folder in the one that a variable of XDG names, else in the usual one.

    Raises InputError for a user without a home.
    """
    try:
        return Path(os.environ.get(variable) or Path(usual).expanduser()) / "gemm-ladder"
    except RuntimeError as error:
        raise InputError(f"{usual}: this user has no home: set {variable} to a folder") from error


def same_file(one: str | Path, other: str | Path) -> bool:
    """True if two paths lead to one file, through links as well. The file may be absent."""
    try:
        if Path(one).exists() and Path(other).exists():
            return Path(one).samefile(other)
        return os.path.realpath(one) == os.path.realpath(other)
    except (OSError, ValueError):  # a name that is too long, or holds a zero byte
        return False


def check_writable(path: str | Path) -> None:
    """Raise InputError where a file could not be written, before the work that fills it.

    The only sure test is a new file in the same folder, which is removed at once.
    """
    with _temporary_beside(_target(path)) as temporary:
        temporary.touch(exist_ok=False)
        temporary.unlink()


def write_atomically(path: str | Path, content: str | bytes, *, durable: bool = True) -> None:
    """Replace a file in one step: readers see the old content or all of the new.

    Raises InputError where that is impossible. Text is stored as UTF-8. If not `durable`, the file
    may be damaged after a power cut.
    """
    target = _target(path)
    data = content.encode() if isinstance(content, str) else content
    with _temporary_beside(target) as temporary:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(target)


@contextmanager
def only_writer(path: str | Path) -> Iterator[None]:
    """Wait until no other process changes the file at a path, and keep others from it meanwhile.

    They have to ask in the same way. Where a lock is not possible, the file is changed without one.
    """
    target = _target(path)
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # no such system; or the folder is read only
            import fcntl

            lock = target.with_name(f".{target.name}.lock").open("w")
            stack.enter_context(lock)
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed, also by the end of the process
        yield


def _target(path: str | Path) -> Path:
    """The file that a path leads to, links followed: replacing a link would detach it."""
    try:
        target = Path(os.path.realpath(path))
        if target.is_symlink():  # what `realpath` leaves of a loop
            raise InputError(f"cannot write {path}: the link leads to itself: give another place")
        if target.is_dir():
            raise InputError(f"cannot write {path}: it is a folder: give a file in it")
        if target.exists() and not target.is_file():
            raise InputError(f"cannot write {path}: it is not a regular file: give another place")
        if not target.parent.is_dir():
            raise InputError(f"cannot write {path}: there is no folder {target.parent}: create it")
    except (OSError, ValueError) as error:  # a name that is too long, or holds a zero byte
        raise InputError(f"cannot write {str(path)!r}: {one_line(error)}") from error
    return target


@contextmanager
def _temporary_beside(target: Path) -> Iterator[Path]:
    """The path of a temporary file that is gone afterwards, also after an interrupt."""
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror or error}: give a place that can be written"
        ) from error
    finally:
        with suppress(OSError):  # a file system that is read only refuses also this
            temporary.unlink(missing_ok=True)


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
