"""Which functions of the product each test executes, in any process that it starts.

A tree in which every function says so (`instrument`): function k sets byte k of a file that all
processes share. The plugin (`plugin.py`) clears the bytes before a test and reads them after it.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

from tests.mutants.edits import PACKAGES, files, functions, without_comments

MODULE = "reached_functions"  # what instrumented Python imports
NAMES = "reached_names.json"  # in the tree: the name of each byte, "package language function"
BYTES = "reached.bin"

PYTHON = """import mmap
with open({path!r}, "r+b") as _file:
    reached = mmap.mmap(_file.fileno(), 0)
"""
C = """#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
static unsigned char reached_by_nobody[{count}], *volatile reached = reached_by_nobody;
__attribute__((constructor)) static void open_reached(void) {{
    const int file = open("{path}", O_RDWR);
    void *bytes = mmap(NULL, {count}, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes != MAP_FAILED) reached = bytes;
}}
"""


def instrument(root: Path) -> None:
    """Edit the tree in `root` so that its functions say when they are executed."""
    names: list[str] = []
    first_of_c: dict[str, Path] = {}
    for package in PACKAGES:
        for language in ("python", "c"):
            for path in files(root, package, language):
                text = path.read_text(encoding="utf-8")
                known = {f"{package} {language} {each.name}" for each in functions(path)}
                number = {name: len(names) + k for k, name in enumerate(sorted(known))}
                names += sorted(known)
                edit = _python if language == "python" else _c
                prefix = f"{package} {language} "
                at = {name.removeprefix(prefix): k for name, k in number.items()}
                path.write_text(edit(text, at), encoding="utf-8")
                if path.suffix == ".c":
                    first_of_c[path.name] = path
    shared = root / BYTES
    shared.write_bytes(bytes(len(names)))
    (root / NAMES).write_text(json.dumps(names), encoding="utf-8")
    (root / f"{MODULE}.py").write_text(PYTHON.format(path=str(shared)), encoding="utf-8")
    for path in first_of_c.values():
        head = C.format(path=shared, count=len(names))
        path.write_text(head + path.read_text(encoding="utf-8"), encoding="utf-8")


def _python(text: str, number: dict[str, int]) -> str:
    lines = text.split("\n")
    inserted: list[tuple[int, str]] = []  # before which line, from zero
    replaced: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{outer}{child.name}."
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first = child.body[0]
                mark = f"_function_reached[{number[name[:-1]]}] = 1"
                if (
                    first.lineno == child.lineno
                    or not lines[first.lineno - 1][: first.col_offset].isspace()
                ):
                    replaced.append((first.lineno - 1, first.col_offset, mark + "; "))
                else:
                    at = (first.end_lineno or 0) if _is_docstring(first) else first.lineno - 1
                    decorated = getattr(first, "decorator_list", [])
                    at = min([at, *(each.lineno - 1 for each in decorated)])
                    inserted.append((at, " " * first.col_offset + mark))
            visit(child, name)

    tree = ast.parse(text)
    visit(tree, "")
    for line, column, mark in replaced:
        encoded = lines[line].encode()
        lines[line] = (encoded[:column] + mark.encode() + encoded[column:]).decode()
    for line, mark in sorted(inserted, reverse=True):
        lines.insert(line, mark)
    head = 0
    for statement in tree.body:
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (_is_docstring(statement) or is_future):
            break
        head = statement.end_lineno or 0
    if number:
        lines.insert(head, f"from {MODULE} import reached as _function_reached")
    return "\n".join(lines)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _c(text: str, number: dict[str, int]) -> str:
    code = without_comments(text)
    from tests.mutants.edits import heads_of_c

    for name, brace in sorted(heads_of_c(code), key=lambda each: -each[1]):
        text = f"{text[: brace + 1]} reached[{number[name]}] = 1; {text[brace + 1 :]}"
    return text
