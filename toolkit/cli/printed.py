"""The output of a kernel's printf, on the terminal."""

from __future__ import annotations

from toolkit.cli.terminal import err, out, say

MOST_PRINTED = 20  # lines


def print_printed(printed: str) -> None:
    """The first lines that the kernel printed, and how many more there are."""
    from reports import text

    lines = printed.splitlines()
    if not lines:
        return
    say("printed by the kernel:", "bold")
    for line in lines[:MOST_PRINTED]:
        say(f"  {line}")
    if len(lines) > MOST_PRINTED:
        say(f"  and {text.many(len(lines) - MOST_PRINTED, 'more line')} (--json has all)")
    out.print()


def print_before_failure(printed: str) -> None:
    """The last lines that a kernel printed before it failed, on standard error."""
    from reports import text

    lines = printed.splitlines()
    if not lines:
        return
    left = len(lines) - MOST_PRINTED
    after = f", after {text.many(left, 'other line')}" if left > 0 else ""
    say(f"printed by the kernel before it failed{after}:", "bold", console=err)
    for line in lines[-MOST_PRINTED:]:
        say(f"  {line}", console=err)
