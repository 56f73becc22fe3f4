"""`python -m validation size`: sizes of folders, and their growth against a commit."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from validation.size import sizes, table


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m validation")
    commands = parser.add_subparsers(dest="command", required=True)
    size = commands.add_parser("size", help="code tokens of each folder; nothing fails")
    size.add_argument("--against", metavar="COMMIT", help="also show the growth since a commit")
    chosen = parser.parse_args(argv)
    try:
        before = sizes(chosen.against) if chosen.against else None
    except subprocess.CalledProcessError:
        print(
            f"--against {chosen.against}: git knows no such commit: give another", file=sys.stderr
        )
        return 1
    print("\n".join(table(sizes(), before)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
