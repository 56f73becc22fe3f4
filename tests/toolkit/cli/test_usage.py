"""Wrong usage is one line: what is wrong, where, the value and the remedy."""

import re
from enum import Enum
from inspect import signature
from types import NoneType
from typing import get_args

import pytest
import typer

from tests.toolkit.cli.commands import invoke, refused
from toolkit.cli.app import COMMANDS


def _of_limited_values():
    """Each option of each command that does not take any text, and a value that it refuses."""
    for example, command in COMMANDS.items():
        name = example.split()[0]
        for parameter in signature(command, eval_str=True).parameters.values():
            kind, declared, *_ = get_args(parameter.annotation)
            kinds = [one for one in (get_args(kind) or (kind,)) if one is not NoneType]
            takes_words = isinstance(kinds[0], type) and issubclass(kinds[0], Enum)
            if not takes_words and kinds[0] not in (int, float):
                continue
            is_option = isinstance(declared, typer.models.OptionInfo)
            names = (declared.default, *(declared.param_decls or ()))
            own = [one for one in names if str(one).startswith("--")]
            option = own[0] if own else f"--{parameter.name.replace('_', '-')}"
            yield name, option if is_option else parameter.name, kinds[0]


CASES = sorted(set(_of_limited_values()), key=str)


def test_there_are_such_options():
    assert {"--l2", "--executor", "--limit", "--seed"} <= {option for _, option, _ in CASES}


@pytest.mark.parametrize(("command", "option", "kind"), CASES)
def test_a_wrong_value_is_said_with_its_option_and_what_to_give(command, option, kind):
    needed = {"simulate": "a.cu", "run": "a.cu", "check": "a.cu", "tune": "tiled"}.get(command, "")
    given = f"{option} nothing" if option.startswith("--") else "nothing"
    said = refused(f"{command} {needed} {given}", code=2)
    assert said.startswith(f"{option} 'nothing': give ")
    assert ("number" in said) == (kind in (int, float))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("profile --l2 cold", "--l2 'cold': give clean, dirty or warm"),
        ("profile --executor foo", "--executor 'foo': give auto, gpu, simulate or theory"),
        ("run a.cu --precision 3", "--precision '3': give a number from 1e-06 to 1"),
        ("simulate a.cu --shared -1", "--shared '-1': give a whole number of at least 0"),
        ("simulate a.cu --apply 1 --no-remedies", "--apply: not with --no-remedies"),
        ("compare a b --fail-on x", "--fail-on: 'x' is none of counts, time: give one or both"),
        ("simulate a.cu b.cu", "got unexpected extra argument"),
        ("simulate", "KERNEL.cu is missing: see `"),
        ("simulate a.cu --grid", "option '--grid' requires an argument"),
        ("simulate a.cu --foo", "no such option: --foo"),
        ("nothing", "no such command 'nothing': see `"),
    ],
)
def test_wrong_usage_is_one_line_with_code_2(arguments, message):
    assert refused(arguments, code=2).startswith(message)


def test_an_option_with_its_own_name_as_a_word_is_named():
    """Typer 0.27 calls it `--SECONDS` where only the word of its value is given."""
    unnamed = []
    for example, command in COMMANDS.items():
        for parameter in signature(command, eval_str=True).parameters.values():
            declared = get_args(parameter.annotation)[1]
            if not isinstance(declared, typer.models.OptionInfo):
                continue
            names = (declared.default, *(declared.param_decls or ()))
            if declared.metavar == parameter.name.upper() and not any(
                str(name).startswith("--") for name in names
            ):
                unnamed.append((example.split()[0], parameter.name))
    assert unnamed == []


def test_no_command_prints_the_help():
    result = invoke("")
    assert result.exit_code == 2
    assert "Commands" in result.output
    assert not re.search(r"^\W*error\b", result.stderr, re.IGNORECASE | re.MULTILINE)
