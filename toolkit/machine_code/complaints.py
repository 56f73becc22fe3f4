"""Complaints of a compiler about a source, and their cause where that is something else."""

from __future__ import annotations

import re

from analysis.errors import CompileError
from toolkit.machine_code.device_side import DeviceSide, first_device_launch, host_variable
from toolkit.machine_code.include_paths import (
    DEVICE_LAUNCH,
    NO_LONGER,
    explained,
    explained_missing,
    removed_reference,
)

# `file.cu(12): error: text`, `At end of source: error: text`, `Command-line error: text`
FRONT_END_ERROR = re.compile(
    r"^(?:(?P<file>[^\n]+?)\((?P<line>\d+)\)|At end of source|Command-line)"
    r":? (?:catastrophic )?error: (?P<text>.+)$",
    re.MULTILINE,
)


def complaints_of(error: CompileError) -> list[tuple[str, int, str]]:
    """File, line and text of each mistake that the compiler found."""
    return [
        (one["file"], int(one["line"]), explained(one["text"]))
        for one in FRONT_END_ERROR.finditer(error.log or "")
        if one["file"]
    ]


def _raise_missing(side: DeviceSide) -> None:
    """Raise CompileError for a header that is not there, if device code may need it."""
    for item, header in side.missing_for_device:
        raise CompileError(f"{item.file}, line {item.line}: {explained_missing(header)}")


def _raise_host_variable(error: CompileError, side: DeviceSide) -> None:
    """Raise CompileError if the first complaint is about a variable of the host."""
    file, line, text = next(iter(complaints_of(error)), ("", 0, ""))
    named = re.match(r'identifier "(\w+)" is undefined', text)
    if named and (variable := host_variable(side, named[1])):
        if removed := removed_reference(variable.text.decode(errors="replace")):
            raise CompileError(f"{variable.file}, line {variable.line}: {removed}")
        raise CompileError(
            f"{file}, line {line}: {variable.name} is a variable of the host ({variable.file}, "
            f"line {variable.line}): pass it as an argument, or make it const or __device__"
        )


def raise_explained(error: CompileError, side: DeviceSide) -> None:
    """Raise CompileError with the cause of an error, if it is known."""
    for file, line, said in complaints_of(error):
        if said.startswith(NO_LONGER):  # whatever else is missing
            raise CompileError(f"{file}, line {line}: {said}")
    _raise_missing(side)
    if launch := first_device_launch(side):
        raise CompileError(f"{launch[0]}, line {launch[1]}: {DEVICE_LAUNCH}")
    _raise_host_variable(error, side)
