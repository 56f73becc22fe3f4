"""What a kernel printed, on the terminal."""

from __future__ import annotations

from reports import text
from toolkit.cli.terminal import out, say

MOST_PRINTED = 20  # lines


def print_printed(printed: str) -> None:
    """The first lines that the kernel printed, and how many more there are."""
    lines = printed.splitlines()
    if not lines:
        return
    say("printed by the kernel:", "bold")
    for line in lines[:MOST_PRINTED]:
        say(f"  {line}")
    if len(lines) > MOST_PRINTED:
        say(f"  and {text.many(len(lines) - MOST_PRINTED, 'more line')} (--json has all)")
    out.print()
