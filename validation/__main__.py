"""`python -m validation size`: sizes of folders; `public-sources`: other people's kernels."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from validation.size import sizes, table


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m validation")
    commands = parser.add_subparsers(dest="command", required=True)
    size = commands.add_parser("size", help="code tokens of each folder; nothing fails")
    size.add_argument("--against", metavar="COMMIT", help="also show the growth since a commit")
    public = commands.add_parser(
        "public-sources",
        help="kernels of public repositories: which execute as they are",
    )
    public.add_argument("folder", type=Path, help="folder of the unpacked repositories")
    public.add_argument("--record", type=Path, required=True, help="file of results, one a line")
    public.add_argument("--only", action="append", default=[], help="one repository; repeatable")
    public.add_argument("--cubins", type=Path, help="folder that keeps what nvcc made")
    public.add_argument("--table", action="store_true", help="only print the record")
    chosen = parser.parse_args(argv)
    if chosen.command == "public-sources":
        from validation.public_sources import census

        if not chosen.table:
            census.take(chosen.folder, chosen.record, chosen.only, chosen.cubins)
        print("\n".join(census.table(census.rows_of(chosen.record))))
        return 0
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
