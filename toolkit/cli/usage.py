"""Help of the commands, and wrong usage in one line: what is wrong, the value and the remedy."""

from __future__ import annotations

import re
import sys
from enum import Enum
from functools import partial
from inspect import signature
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from analysis.errors import shortened
from toolkit.cli.terminal import err, say

WRONG_USAGE = 2
_ENDS = ("min", "max")  # of the range of an option
ARGUMENTS, OTHER_OPTIONS = "Arguments", "Options"
_DEFAULT_IN_WORDS = re.compile(r"\[default: \((.*?)\)\]")
_RANGE = re.compile(r"\s*(?:(\s\[[^]]*); |\[)[\d.e<=-]*x[<>]=?[\d.e-]+\]")  # '[default: 6; x>=1]'
UsageError: Any = typer.BadParameter.__base__  # Typer exports no other name of it


class Commands(TyperGroup):
    """The commands. Wrong usage ends one in a line, as any other error does."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with the whole first sentence of its help."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, (one.help or "").partition("\n\n")[0])
                    for name, one in known.items()
                    if one
                ]
            )

    def main(self, *given: Any, **named: Any) -> Any:
        """Run a command, and end the process unless `standalone_mode` is False."""
        is_alone = named.pop("standalone_mode", True)
        run = partial(super().main, *given, **{**named, "standalone_mode": False})
        if not is_alone:
            return run()
        try:
            code = run()
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                print(error.ctx.get_help(), file=sys.stderr)
            else:
                say(f" {usage_line(error)}", "bold red", lead="error:", console=err)
            sys.exit(WRONG_USAGE)
        sys.exit(code or 0)


class PlainCommand(TyperCommand):
    """A command whose help is plain text, with its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options group by group, in the order of declaration."""
        parameters = self.get_params(ctx)
        ungrouped = [one for one in parameters if _heading(one) == OTHER_OPTIONS]
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in parameters:
            heading = _heading(one)
            if len(ungrouped) > 1 and heading != ARGUMENTS:  # more than --help
                heading = OTHER_OPTIONS
            if (record := one.get_help_record(ctx)) is not None:
                name, about = record
                groups.setdefault(heading, []).append((name, _plain(about)))
        for heading, rows in groups.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def _heading(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return ARGUMENTS
    return parameter.rich_help_panel or OTHER_OPTIONS


def _plain(about: str) -> str:
    """The text of an option without the range of its numbers, and with its default in words."""
    return _DEFAULT_IN_WORDS.sub(r"[default: \1]", _RANGE.sub(_without_range, about))


def _without_range(extra: re.Match[str]) -> str:
    return f"{extra[1]}]" if extra[1] else ""


def usage_line(error: Any) -> str:
    """The line for an error that Typer raises before a command runs."""
    context, parameter = error.ctx, getattr(error, "param", None)
    see = f": see `{context.command_path} --help`" if context is not None else ""
    if parameter is None:
        hint = getattr(error, "param_hint", None)
        said = error.format_message().removeprefix(f"Invalid value for {hint}: ").rstrip(".")
        if hint:
            return f"{hint.strip(chr(39))}: {said}"
        said = f"{said[0].lower()}{said[1:]}".replace(". Did you mean", ": did you mean")
        return said if said.endswith("?") else f"{said}{see}"
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
