"""Machine file: the numbers of one architecture, each with unit, kind, source and evidence.

A file is TOML. docs/machines.md describes its keys. Every error is one line that names the file,
the key and the value, and says what to write instead.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from analysis.errors import InputError, UnknownNameError, shortened

#: What a number rests on. "taken over": the value of the architecture that is its source.
#: "left out": the value that makes a mechanism of other architectures do nothing.
KINDS = ("measured", "fitted", "documented", "taken over", "not measured", "left out")
NEEDED = ("value", "unit", "kind", "source")
OF_FITTED = ("instead", "errors")
KEYS = (*NEEDED, "command", *OF_FITTED)
OF_ERROR = {"part": str, "launches": int, "with": float, "without": float}

Table = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class FitError:
    """Mean errors of predicted times with a fitted number and without it.

    `launches`: how many launches of `part` (benchmarks/rules_on_trial.py) change by more than 1%
    without the number. The errors are the means of |predicted / measured - 1| over these launches,
    None if there is no such launch.
    """

    part: str
    launches: int
    with_it: float | None = None
    without_it: float | None = None


@dataclass(frozen=True, kw_only=True)
class MachineEntry:
    """One number of a machine file.

    `kind` is one of `KINDS`. `command` measures the number again, None if no benchmark of this
    project does. A fitted number has `errors`, and `instead`: the value that stood for "without".
    """

    value: float
    unit: str
    kind: str
    source: str
    command: str | None = None
    instead: float | None = None
    errors: tuple[FitError, ...] = ()


def parsed(text: str, file: str, wanted: Mapping[str, type]) -> dict[str, MachineEntry]:
    """Entries of a machine file, in the order of `wanted`, which maps their names to int or float.

    A name with a dot, such as "units.FMA", stands in a table. `file` is the name of the file,
    "sm_90.toml": it begins all errors, and its stem is the architecture. Raises InputError.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: not TOML: {error}: correct that line") from error
    architecture = document.pop("architecture", None)
    if architecture != file.removesuffix(".toml"):
        raise InputError(
            f"{file}: architecture = {_shown(architecture)}: give "
            f"{file.removesuffix('.toml')!r}, as the file is named"
        )
    tables = {name.partition(".")[0] for name in wanted if "." in name}
    found = dict(_entries(document, file, tables))
    for name in found:
        if name not in wanted:
            raise InputError(f"{file}: {UnknownNameError('constant', name, wanted)}")
    for name in wanted:
        if name not in found:
            raise InputError(
                f"{file}: {name} is missing: add it, with {', '.join(NEEDED)}; the kind may be "
                "'not measured'"
            )
    return {name: _entry(found[name], f"{file}: {name}", of) for name, of in wanted.items()}


def _entries(document: Table, file: str, tables: set[str]) -> Iterator[tuple[str, Table]]:
    """Names and tables of the numbers, those of a table with its name before them."""
    for name, value in document.items():
        inside = {f"{name}.{key}": one for key, one in value.items()} if name in tables else {}
        for full, one in inside.items() if name in tables else [(name, value)]:
            if not isinstance(one, dict):
                raise InputError(
                    f"{file}: {full} = {_shown(one)}: give a table with {', '.join(NEEDED)}"
                )
            yield full, one


def _entry(table: Table, where: str, of: type) -> MachineEntry:
    """The entry of a number of type `of`."""
    _check_keys(table, where, KEYS, NEEDED)
    for key in ("unit", "kind", "source", "command"):
        if key in table:
            _text(table[key], f"{where}.{key}")
    kind = table["kind"]
    if kind not in KINDS:
        raise InputError(f"{where}: {UnknownNameError('kind', kind, KINDS)}")
    for key in OF_FITTED:
        if (key in table) != (kind == "fitted"):
            state = "is missing: add it, as" if kind == "fitted" else "is for fitted numbers:"
            raise InputError(f"{where}.{key} {state} its kind is {kind!r}")
    return MachineEntry(
        value=_number(table["value"], f"{where}.value", of),
        unit=table["unit"],
        kind=kind,
        source=table["source"],
        command=table.get("command"),
        instead=_number(table["instead"], f"{where}.instead", of) if kind == "fitted" else None,
        errors=tuple(_errors(table, f"{where}.errors")) if kind == "fitted" else (),
    )


def _errors(table: Table, where: str) -> Iterator[FitError]:
    """The errors of a fitted number, one per part."""
    rows = table["errors"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{where} = {_shown(rows)}: give a list of tables with a part each")
    for row in rows:
        needed = tuple(OF_ERROR)[: 2 if row.get("launches") == 0 else None]
        _check_keys(row, where, needed, needed)
        _text(row["part"], f"{where}.part")
        numbers = {
            key: _number(row[key], f"{where}.{key}", of)
            for key, of in OF_ERROR.items()
            if key in row and of is not str
        }
        yield FitError(
            part=row["part"],
            launches=int(numbers["launches"]),
            with_it=numbers.get("with"),
            without_it=numbers.get("without"),
        )


def _check_keys(table: Table, where: str, known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    """Raise InputError for a key that is unknown or missing."""
    for key in table:
        if key not in known:
            raise InputError(f"{where}: {UnknownNameError('key', key, known)}")
    for key in needed:
        if key not in table:
            raise InputError(f"{where}.{key} is missing: add it")


def _text(value: Any, where: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where} = {_shown(value)}: give a text")


def _number(value: Any, where: str, of: type) -> float:
    """A finite number of at least 0, of the type that the field has."""
    if type(value) is int and value >= 0:
        return of(value)  # type: ignore[no-any-return]
    if of is float and type(value) is float and isfinite(value) and value >= 0:
        return value
    what = "a whole number" if of is int else "a number"
    raise InputError(f"{where} = {_shown(value)}: give {what} of at least 0")


def _shown(value: Any) -> str:
    return shortened(repr(value))
