"""Sizes of folders, kernels of public repositories, and a census of opcodes.

python -m validation size [--against COMMIT]
python -m validation public-sources FOLDER --record FILE
python -m validation census FOLDER [--build ARCH ...]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from analysis.errors import ToolkitError
from validation.census.build import build
from validation.census.count import taken
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
    public.add_argument(
        "--include",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="headers for nvcc alone, such as PyTorch's; repeatable",
    )
    public.add_argument(
        "--part", type=_part, default=(0, 1), metavar="K/N", help="only every N-th file, from K on"
    )
    public.add_argument("--table", action="store_true", help="only print the record")
    census = commands.add_parser("census", help="opcodes of all cubins below a folder")
    census.add_argument("folder", type=Path, metavar="FOLDER")
    census.add_argument(
        "--build",
        nargs="+",
        metavar="ARCH",
        help="first compile the kernels of the census with nvcc, for sm_75, sm_80 ...",
    )
    chosen = parser.parse_args(argv)
    if chosen.command == "public-sources":
        from validation.public_sources import census as of_public_sources

        if not chosen.table:
            of_public_sources.take(
                chosen.folder,
                chosen.record,
                only=chosen.only,
                cubins=chosen.cubins,
                includes=chosen.include,
                part=chosen.part,
            )
        print("\n".join(of_public_sources.table(of_public_sources.rows_of(chosen.record))))
        return 0
    if chosen.command == "census":
        return _census(chosen.folder, chosen.build or [])
    try:
        before = sizes(chosen.against) if chosen.against else None
    except subprocess.CalledProcessError:
        print(
            f"--against {chosen.against}: git knows no such commit: give another", file=sys.stderr
        )
        return 1
    print("\n".join(table(sizes(), before)))
    return 0


def _part(text: str) -> tuple[int, int]:
    first, slash, step = text.partition("/")
    if not (slash and first.isdecimal() and step.isdecimal() and int(first) < int(step)):
        raise argparse.ArgumentTypeError(f"{text!r}: give K/N with K below N, such as 0/16")
    return int(first), int(step)


def _census(folder: Path, architectures: list[str]) -> int:
    try:
        if architectures:
            build(folder, architectures)
        found = taken(folder)
    except ToolkitError as error:
        print(error, file=sys.stderr)
        return 1
    if not found.kernels:
        print(f"{folder}: no .cubin file there: compile some, or pass --build", file=sys.stderr)
        return 1
    print("\n".join(found.lines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
