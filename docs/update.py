"""Execute pages and notebooks and write what they answered into them: python -m docs.update.

    python -m docs.update [PAGE ...] [--gpu] [--check]

An answer that is as shown, up to its `…`, stays as it is; of another, what was left out is left out
again. `--gpu` executes what needs a GPU too, `--check` writes nothing. Exit code 1: a block failed,
or a difference is left.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.snippets.exchanges import left_out_again
from docs.snippets.notebook import NOTEBOOKS, code_cells, differences, executed, read, write
from docs.snippets.outcomes import Outcome, outcomes
from docs.snippets.pages import PageError, name_of, pages


def rewritten(text: str, found: Sequence[Outcome]) -> str:
    """The page's text with the answers that came, where they are not as shown."""
    lines = text.splitlines()
    for outcome in reversed(found):
        if outcome.line is not None and not outcome.is_as_shown:
            answer = left_out_again(outcome.shown, outcome.printed)
            came = [f"{outcome.indent}{line}".rstrip() for line in answer]
            lines[outcome.line : outcome.line + len(outcome.shown)] = came
    return "\n".join(lines) + "\n"


def update(page: Path, *, gpu: bool, check: bool) -> bool:
    """True if a page is now as it should be; differences are written to it, or shown if `check`."""
    found = outcomes(page, gpu=gpu)
    other = [outcome for outcome in found if not outcome.is_as_shown]
    print(f"{name_of(page)}: {len(found)} answers, {len(other)} not as shown", flush=True)
    if other and not check:
        page.write_text(rewritten(page.read_text("utf-8"), found), encoding="utf-8")
    left = [outcome for outcome in other if check or outcome.line is None]
    for outcome in left:
        print(outcome, file=sys.stderr)
    return not left


def update_notebook(path: Path, *, check: bool) -> bool:
    """The same for a notebook, all of whose outputs are written anew where one differs."""
    made = executed(path)
    other = list(differences(read(path), made))
    print(f"{name_of(path)}: {len(code_cells(made))} cells, {len(other)} not as shown", flush=True)
    if other and not check:
        write(made, path)
    for difference in other if check else ():
        print(difference, file=sys.stderr)
    return not (other and check)


def main() -> int:
    """Parse, execute, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("page", nargs="*", type=Path, help="all pages unless some are named")
    parser.add_argument("--gpu", action="store_true", help="execute what needs a GPU too")
    parser.add_argument("--check", action="store_true", help="write nothing, show the differences")
    chosen = parser.parse_args()
    named = [page.resolve() for page in chosen.page] or [*pages(), *NOTEBOOKS]
    try:
        right = [
            update_notebook(path, check=chosen.check)
            if path.suffix == ".ipynb"
            else update(path, gpu=chosen.gpu, check=chosen.check)
            for path in named
        ]
    except (OSError, PageError) as error:
        print(error, file=sys.stderr)
        return 1
    return int(not all(right))


if __name__ == "__main__":
    sys.exit(main())
