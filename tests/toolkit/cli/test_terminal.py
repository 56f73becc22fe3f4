"""Lines on a terminal and in a file."""

from io import StringIO

from rich.console import Console

from toolkit.cli.terminal import note, say

LONG = "13 of 16,384 blocks executed; proved: each block has the same counts as all others"


def said(*, is_terminal, **options):
    console = Console(file=StringIO(), width=40, force_terminal=is_terminal, color_system=None)
    say(f"counted   {LONG}", indent=10, console=console, **options)
    return console.file.getvalue()


def test_a_long_line_ends_between_words_on_a_terminal():
    assert said(is_terminal=True) == (
        "counted   13 of 16,384 blocks executed;\n"
        "          proved: each block has the\n"
        "          same counts as all others\n"
    )


def test_a_line_stays_whole_in_a_file():
    assert said(is_terminal=False) == f"counted   {LONG}\n"


def test_an_address_that_is_longer_than_the_terminal_is_not_broken():
    console = Console(file=StringIO(), width=10, force_terminal=True, color_system=None)
    say("read docs/timing.md#The", indent=0, console=console)
    assert console.file.getvalue() == "read\ndocs/timing.md#The\n"


def test_a_line_without_an_indent_stays_whole_so_that_a_command_in_it_can_be_copied():
    console = Console(file=StringIO(), width=20, force_terminal=True, color_system=None)
    say("repeat with: python -m toolkit profile", console=console)
    assert console.file.getvalue() == "repeat with: python -m toolkit profile\n"


def test_a_note_is_continued_behind_its_lead():
    console = Console(file=StringIO(), width=24, force_terminal=True, color_system=None)
    note("the time that printf takes is not modelled", console)
    assert console.file.getvalue() == (
        "note: the time that\n      printf takes is\n      not modelled\n"
    )


def test_the_lines_of_a_text_are_kept():
    console = Console(file=StringIO(), width=40, force_terminal=True, color_system=None)
    say("one\n\n  two", indent=0, console=console)
    assert console.file.getvalue() == "one\n\n  two\n"
