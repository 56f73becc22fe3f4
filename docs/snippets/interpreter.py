"""The Python of a page: a line of JSON with code comes in, one with what it printed goes out.

A process of its own, so that a page neither sees nor changes the process that executes it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

HEAD = "Traceback (most recent call last):\n  …\n"  # the frames in between are this file's


def answer(code: str, mode: str, where: str, names: dict[str, Any]) -> dict[str, str | None]:
    """Output and error of some code: in `single` mode the output has what a prompt would show."""
    printed, error = StringIO(), None
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            exec(compile(code, where, mode), names)
        except (Exception, SystemExit) as raised:
            error = "".join(traceback.format_exception_only(raised))
    if error is not None and mode == "single":
        return {"printed": printed.getvalue() + HEAD + error, "error": None}
    return {"printed": printed.getvalue(), "error": error}


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what C code prints is no answer
    names: dict[str, Any] = {"__name__": "__main__"}
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line), names=names)), file=answers, flush=True)


if __name__ == "__main__":
    main()
