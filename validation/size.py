"""The size of each folder, in code tokens: comments, docstrings and blank lines are free.

Nothing fails. `python -m validation size --against COMMIT` shows what a change added and removed.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from validation import ROOT

_WITHOUT_MEANING = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_C_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d[\w.]*|[^\s\w]')
_C_FILES = {".c", ".h", ".cu", ".cuh", ".js"}


def python_tokens(text: str) -> int:
    """Tokens of a Python module without comments and docstrings."""
    docstrings = {
        (node.body[0].lineno, node.body[0].col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
    }
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(t.type not in _WITHOUT_MEANING and t.start not in docstrings for t in found)


def tokens(name: str, content: bytes) -> int:
    """Code tokens of a file; words of a text; 0 for data that is compressed."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return 0
    suffix = PurePosixPath(name).suffix
    if suffix == ".py":
        return python_tokens(text)
    if suffix in _C_FILES:
        return len(_C_TOKEN.findall(_C_COMMENT.sub(" ", text)))
    return len(text.split())


def sizes(commit: str | None = None) -> Counter[str]:
    """Tokens of each folder, of the working tree or of a commit; the parts of toolkit/ apart."""
    found: Counter[str] = Counter()
    for name, content in _files(commit):
        first, *rest = name.split("/")
        folder = (
            "." if not rest else f"{first}/{rest[0]}" if first == "toolkit" and rest[1:] else first
        )
        found[folder] += tokens(name, content)
    return found


def _files(commit: str | None) -> Iterator[tuple[str, bytes]]:
    if commit is None:
        for name in _git("ls-files", "-co", "--exclude-standard", "-z").decode().split("\0"):
            if name and (ROOT / name).is_file():
                yield name, (ROOT / name).read_bytes()
        return
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
        for member in archive:
            if (file := archive.extractfile(member)) is not None:
                yield member.name, file.read()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def table(now: Counter[str], before: Counter[str] | None) -> Iterator[str]:
    """A line per folder with its tokens and, with `before`, how many there are more."""
    yield f"{'folder':28}{'tokens':>10}" + (f"{'growth':>10}" if before is not None else "")
    for folder in sorted({*now, *(before or ())}):
        growth = "" if before is None else f"{now[folder] - before[folder]:>+10,}"
        yield f"{folder:28}{now[folder]:>10,}{growth}"
    growth = "" if before is None else f"{now.total() - before.total():>+10,}"
    yield f"{'all':28}{now.total():>10,}{growth}"
