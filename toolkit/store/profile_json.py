"""profile.json: written whole or not at all, and checked field by field when it is read.

A file that xz compressed is read as well: recorded runs are shipped so. What `simulate --json`
or `run --json` printed is read, and checked, in the same way.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from analysis.argument_types import checked
from analysis.errors import RecordError, ToolkitError, shortened
from analysis.records import launch
from analysis.records.launch import LaunchDocument, LaunchRecord
from analysis.records.profile import OLDEST_SCHEMA_VERSION, SCHEMA_VERSION, Profile
from toolkit.store.user_files import MOST_BYTES, one_line, read_file, write_atomically

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

# What a number may be, by the end of its field's name: far from any real value, so that what is
# outside was edited or damaged. A suffix stands before those that are the end of it.
_RANGES: dict[str, tuple[float, float]] = {
    "_per_s": (0, 1e18),  # a thousand times a GPU of today
    "_s": (0, 1e6),  # eleven days
    "_hz": (0, 1e12),
    "_w": (0, 1e6),
    "_c": (-100, 1000),
    "_bytes": (0, 2**60),
    "registers_per_thread": (0, 255),  # an instruction has 8 bits for each, and R255 is zero
}
_COUNTERS = (0, 2**64)  # the hardware's have 64 bits or fewer
_GAP = (-1e6, 1e6)  # s: a step of a gap in records of before 0.1.0, which is read no further
_EXTENTS = (1, 2**31)  # of a grid or a block
_OTHERS = (0, 2**128)  # 2·M·N·K ends below 2^95
_CONTENT = "variables"  # of a launch: what a kernel wrote may be any number
_MAY_BE_0 = {"compute_capability", "reserved_shared_bytes_per_block"}  # of a device
_REMEDY = ": the file was edited or damaged: make it again"
_KERNELS = (".cu", ".cuh", ".ptx", ".py")
_RECORD_OF_KERNEL = ": `python -m toolkit simulate {} --json` prints its record"
JOURNAL_SUFFIX = ".journal"
# What the lines of a journal hold, and what tells one item from another.
JOURNAL_PARTS = {"records": ("label", "shape"), "listings": ("label",), "conditions": ("shape",)}

UNPACKER_BYTES = 2**28  # of a dictionary, whose size a file says; preset 9 takes 2^26
_XZ_MAGIC = b"\xfd7zXZ\0"  # The .xz File Format, section 2.1.1.1


@checked
def save(profile: Profile, path: str | Path) -> None:
    """Write a profile as indented JSON, whole or not at all.

    Parameters
    ----------
    profile
        What `toolkit.profile` returned.
    path
        An existing file is replaced.

    Raises
    ------
    RecordError
        For a profile that could not be read back equal, such as one with a NaN.
    InputError
        For a path that cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from toolkit import profile, save
    >>> found = profile(["512"], ["tiled"], device="t4", executor="theory")
    >>> with TemporaryDirectory() as folder:
    ...     save(found, Path(folder, "profile.json"))
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['profile.json']
    """
    write_atomically(path, dumps(profile, where=f"{path}: the profile cannot be written"))


def dumps(profile: Profile, *, where: str = "the profile cannot be written") -> str:
    """A profile as indented JSON.

    Raises RecordError, beginning with `where`, for one that could not be read back equal, such
    as one with a NaN.
    """
    document = profiles().dump_python(profile, warnings=False)  # much faster than asdict
    check_numbers(document, where, remedy="")
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    except (TypeError, ValueError) as error:  # a value that JSON does not have
        raise RecordError(f"{where}: {one_line(error)}") from error
    if parse(text, where) != profile:
        raise RecordError(f"{where}: it would not be read back equal")
    return text


def compressed(profile: Profile) -> bytes:
    """A profile as `dumps` writes it, compressed by xz; raises as `dumps`."""
    return lzma.compress(dumps(profile).encode(), preset=9 | lzma.PRESET_EXTREME)


@checked
def load(path: str | Path) -> Profile:
    """The profile that a file holds, as it is or compressed by xz; or the journal of a run.

    Raises RecordError for a file that is absent, damaged, foreign or from a newer version.
    """
    text = read_text(Path(path))
    is_journal = str(path).endswith(JOURNAL_SUFFIX)
    return parse(_joined(text, str(path)) if is_journal else text, str(path))


def _joined(journal: str, where: str) -> str:
    """The document of a journal's lines (`store.journal`); a last one that was cut is left out.

    A later record replaces an earlier one, and so do listings and conditions.
    """
    try:
        head, *lines = map(json.loads, journal.split("\n")[:-1])
        for name, key in JOURNAL_PARTS.items():
            found = [*head[name], *(one for line in lines for one in line[name])]
            head[name] = list({str([one[k] for k in key]): one for one in found}.values())
        return json.dumps(head)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise RecordError(
            f"{where}: it is not a journal of a run, or it is damaged: remove it"
        ) from error


def load_launch(path: str | Path) -> LaunchRecord:
    """The launch that `simulate --json` or `run --json` printed; raises as `load`."""
    text = read_text(Path(path))
    return _parsed(text, str(path), _launches, launch.OLDEST_SCHEMA_VERSION, launch.SCHEMA_VERSION)


def load_launch_document(path: str | Path) -> LaunchDocument:
    """The same with everything that its page shows; raises as `load`."""
    text = read_text(Path(path))
    return _parsed(
        text, str(path), _launch_documents, launch.OLDEST_SCHEMA_VERSION, launch.SCHEMA_VERSION
    )


def holds_launch(path: str | Path) -> bool:
    """True if `simulate --json` or `run --json` wrote it; False for any other, readable or not."""
    try:
        document = json.loads(read_text(Path(path)))
    except (RecordError, RecursionError, ValueError):
        return False
    return _is_launch(document)


def _is_launch(document: object) -> bool:
    return isinstance(document, dict) and {"kernel", "grid", "counters"} <= document.keys()


def read_text(path: Path) -> str:
    """The text of a stored document; raises RecordError where it cannot be read."""
    try:
        return _unpacked(read_file(path), str(path)).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    except IsADirectoryError as error:
        raise RecordError(f"{path}: it is a folder: give the profile.json in it") from error
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{path}: byte {error.start} is not UTF-8: it is not JSON{_REMEDY}"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = getattr(error, "strerror", None) or one_line(error)
        raise RecordError(f"{path}: it cannot be read: {reason}") from error


def _unpacked(data: bytes, where: str) -> bytes:
    if not data.startswith(_XZ_MAGIC):
        return data
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=UNPACKER_BYTES)
    try:
        text = unpacker.decompress(data, max_length=MOST_BYTES)
    except lzma.LZMAError as error:
        raise RecordError(f"{where}: it cannot be unpacked: {one_line(error)}{_REMEDY}") from error
    if not unpacker.eof and not unpacker.needs_input:
        raise RecordError(f"{where}: it unpacks to more than any profile has{_REMEDY}")
    if not unpacker.eof or unpacker.unused_data:
        raise RecordError(
            f"{where}: its compressed data is cut short, or goes on after its end{_REMEDY}"
        )
    return text


def parse(text: str, where: str) -> Profile:
    return _parsed(text, where, profiles, OLDEST_SCHEMA_VERSION, SCHEMA_VERSION)


def _parsed(
    text: str, where: str, adapter: Callable[[], TypeAdapter[T]], oldest: int, newest: int
) -> T:
    """Contents of a document of this toolkit. Raises RecordError for others or other versions."""
    from pydantic import ValidationError

    try:
        document = json.loads(text, object_pairs_hook=_without_duplicates)
        if adapter is profiles and _is_launch(document):
            raise RecordError(
                f"{where}: it is the record of a launch, not of a profile: `python -m toolkit "
                "report` writes its page, and `compare` takes two of them"
            )
        _check_schema(document, where, oldest, newest)
        check_numbers(document, where)
        return adapter().validate_json(text, strict=True)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        how = _RECORD_OF_KERNEL.format(where) if Path(where).suffix in _KERNELS else ""
        raise RecordError(f"{where}: it is not JSON: {place}: {error.msg}{how}") from error
    except ValidationError as error:
        raise RecordError(f"{where}: {first_problem(error)}{_REMEDY}") from error
    except RecursionError as error:
        raise RecordError(
            f"{where}: it is not a profile: it is nested too deeply{_REMEDY}"
        ) from error
    except RecordError:
        raise
    except ToolkitError as error:  # what a record refuses itself, such as a shape
        raise RecordError(f"{where}: {error}") from error
    except ValueError as error:  # an integer of thousands of digits, a key given twice
        raise RecordError(f"{where}: {one_line(error)}") from error


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for n, key in enumerate(keys) if key in keys[:n])
        raise ValueError(f"the key {_shown(twice)} is given twice in one object")
    return result


def _check_schema(document: object, where: str, oldest: int, newest: int) -> None:
    if not isinstance(document, dict) or "schema_version" not in document:
        raise RecordError(
            f"{where}: it is not a profile of this toolkit (it has no schema_version): give the "
            "profile.json that `profile` wrote"
        )
    version = document["schema_version"]
    if type(version) is not int or version < 1:
        raise RecordError(
            f"{where}: schema_version: it is {_shown(version)}, not 1 or more{_REMEDY}"
        )
    if version < oldest:
        raise RecordError(
            f"{where}: it was written by an older version (schema {version}, this one reads "
            f"{oldest} to {newest}): make it again"
        )
    if version > newest:
        raise RecordError(
            f"{where}: it was written by a newer version (schema {_shown(version)}, "
            f"this one reads {newest}): update the toolkit"
        )


def check_numbers(document: dict[str, Any], where: str, remedy: str = _REMEDY) -> None:
    """Raise RecordError for the first number of a document that no run leaves."""
    if (found := _outside(document)) is not None:
        path, value, (least, most) = found
        said = f"it is {_shown(value)}, outside {least:g} to {most:g}"
        raise RecordError(f"{where}: {_path(path)}: {said}{remedy}")


_Place = tuple[tuple[str | int, ...], object, tuple[float, float]]


def _outside(
    value: Any, name: str = "", parent: str = "", of_device: bool = False
) -> _Place | None:
    """The path of the first number outside its range, that number, and the range."""
    is_list = not isinstance(value, dict)
    if is_list:  # most are long lists of numbers
        is_extent = name in ("grid", "block")
        limits = _EXTENTS if is_extent else _range(name, parent, of_device or name == "device")
        with suppress(TypeError):  # of other things
            if all([limits[0] <= item <= limits[1] for item in value]):  # noqa: C419 (faster)
                return None
    for key, item in enumerate(value) if is_list else value.items():
        own, holder = (name, parent) if is_list else (str(key), name)
        if own == _CONTENT:
            continue
        # constants of a device may be fractions, or 0
        inside = own != "constants" and (of_device or own == "device")
        if isinstance(item, (int, float)):
            if not is_list:
                limits = _range(own, holder, inside)
            if not limits[0] <= item <= limits[1]:
                return (key,), item, limits
        elif isinstance(item, (dict, list, tuple)) and (
            found := _outside(item, own, holder, inside)
        ):
            return (key, *found[0]), *found[1:]
    return None


@lru_cache(2**12)
def _range(name: str, parent: str, of_device: bool) -> tuple[float, float]:
    """The least and the most that a number may be: of a field `name` in a field `parent`."""
    if parent == "counters":
        return _COUNTERS
    if (parent, name) == ("gap", "time_s"):
        return _GAP
    least, most = next((x for end, x in _RANGES.items() if name.endswith(end)), _OTHERS)
    return (1 if of_device and name not in _MAY_BE_0 else least), most


@cache
def profiles() -> TypeAdapter[Profile]:
    """Adapter that reads and dumps profiles; it takes a while to make."""
    from pydantic import TypeAdapter

    return TypeAdapter(Profile)


@cache
def _launches() -> TypeAdapter[LaunchRecord]:
    from pydantic import TypeAdapter

    return TypeAdapter(LaunchRecord)


@cache
def _launch_documents() -> TypeAdapter[LaunchDocument]:
    from pydantic import TypeAdapter

    return TypeAdapter(LaunchDocument)


def first_problem(error: ValidationError) -> str:
    first, *others = error.errors(include_url=False, include_context=False)
    more = f" (and {len(others)} more)" if others else ""
    path = _path(first["loc"])
    if first["type"] == "missing":
        return f"{path}: it is missing{more}"
    return f"{path}: {first['msg'].removeprefix('Input ')}, found {_shown(first['input'])}{more}"


def _path(parts: tuple[str | int, ...]) -> str:
    """`records[3].measured.median_s`"""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if re.fullmatch(r"\w+", part) else f"[{_shown(part)}]"
    return text.removeprefix(".") or "the whole"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "an enormous number"
    return shortened(text)
