"""Wrong usage of a command, in one line: what is wrong, where, the value and the remedy."""

from __future__ import annotations

import sys
from enum import Enum
from functools import partial
from inspect import signature
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import typer
from typer.core import TyperGroup

from analysis.errors import shortened
from toolkit.cli.terminal import err, say

WRONG_USAGE = 2
_ENDS = ("min", "max")  # of the range of an option
UsageError: Any = typer.BadParameter.__base__  # Typer exports no other name of it


class Commands(TyperGroup):
    """The commands. Wrong usage ends one in a line, as any other error does."""

    def main(self, *given: Any, **named: Any) -> Any:
        """Run a command, and end the process unless `standalone_mode` is False."""
        is_alone = named.pop("standalone_mode", True)
        run = partial(super().main, *given, **{**named, "standalone_mode": False})
        if not is_alone:
            return run()
        try:
            code = run()
        except UsageError as error:
            if type(error).__name__ != "NoArgsIsHelpError":  # the help is already printed
                say(f" {usage_line(error)}", "bold red", lead="error:", console=err)
            sys.exit(WRONG_USAGE)
        sys.exit(code or 0)


def usage_line(error: Any) -> str:
    """The line for an error that Typer raises before a command runs."""
    context, parameter = error.ctx, getattr(error, "param", None)
    see = f": see `{context.command_path} --help`" if context is not None else ""
    if parameter is None:
        hint = getattr(error, "param_hint", None)
        said = error.format_message().removeprefix(f"Invalid value for {hint}: ").rstrip(".")
        return f"{hint.strip(chr(39))}: {said}" if hint else f"{said[0].lower()}{said[1:]}{see}"
    name = _name(parameter)
    if type(error).__name__ == "MissingParameter":
        return f"{name} is missing{see}"
    cause: Any = error.__cause__
    found: list[Any] = cause.errors() if hasattr(cause, "errors") else []
    wanted = _wanted(context, parameter.name)
    if not found or not wanted:
        return f"{name}: {error.message.rstrip('.')}"
    return f"{name} {shortened(str(found[0]['input']))!r}: give {wanted}"


def _name(parameter: Any) -> str:
    """`--l2` of an option, the name in the help of an argument."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name)


def _wanted(context: Any, name: str) -> str:
    """Name the values that an option takes, in words; empty if it takes any text."""
    command = context.command.callback if context is not None else None
    if command is None or name not in signature(command, eval_str=True).parameters:
        return ""
    kind, *declared = get_args(signature(command, eval_str=True).parameters[name].annotation)
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not NoneType)
    if isinstance(kind, type) and issubclass(kind, Enum):
        *others, last = (str(one.value) for one in kind)
        return f"{', '.join(others)} or {last}"
    if kind not in (int, float):
        return ""
    number = "a whole number" if kind is int else "a number"
    least, most = (next((getattr(one, end, None) for one in declared), None) for end in _ENDS)
    if least is not None and most is not None:
        return f"{number} from {least:g} to {most:g}"
    return number if least is None else f"{number} of at least {least:g}"
