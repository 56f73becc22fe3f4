"""A mutant: one line of one function of the product, edited as somebody could by mistake.

A mutant names its package, its function and the edit, not the file, so that it survives when files
move. The line that it edits is the one of the function that equals `original`; `occurrence` counts
equal lines from zero.
"""

import ast
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from validation import recordings

PACKAGES = ("analysis", "kernels", "reports", "toolkit")
STORED = Path(__file__).with_name("mutants.json")
SUFFIXES = {"python": (".py",), "c": (".c", ".h")}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    package: str  # or a folder of it
    language: str  # python or c
    function: str  # with its classes and outer functions, as in Python's __qualname__
    edit: str  # what kind of mistake it is
    original: str  # a line without its indentation
    replacement: str
    occurrence: int = 0
    equivalent: str = ""  # why no test can tell it from the original

    def __str__(self):
        return f"{self.package} {self.function}: {self.original} -> {self.replacement}"


@dataclass(frozen=True, kw_only=True)
class Function:
    """Lines [first, last) of a file, counted from zero."""

    path: Path
    name: str
    first: int
    last: int


class NotFoundError(Exception):
    """The product no longer has the line, or has it more than once."""


def stored(path=STORED):
    return [Mutant(**entry) for entry in recordings.read(path)]


def store(mutants, path=STORED):
    entries = [{k: v for k, v in asdict(each).items() if v not in ("", 0)} for each in mutants]
    recordings.write(path, entries)


def files(root, package, language):
    return sorted(path for path in (root / package).rglob("*") if path.suffix in SUFFIXES[language])


def functions(path):
    """Every function of a file, in order; one inside another comes after it."""
    found = _functions(path.suffix, path.read_text(encoding="utf-8"))
    return [Function(path=path, name=name, first=a, last=b) for name, a, b in found]


@cache
def _functions(suffix, text):
    return list(_of_python(text) if suffix == ".py" else _of_c(text))


def find(root, mutant):
    """The file and the line, from zero, that a mutant edits. Raises NotFoundError."""
    places = []
    name = mutant.function.rsplit(".", 1)[-1]
    for path in files(root, mutant.package, mutant.language):
        text = path.read_text(encoding="utf-8")
        if name.removeprefix("op_") not in text or mutant.original not in text:
            continue
        lines = text.split("\n")
        for each in functions(path):
            if each.name == mutant.function:
                inside = range(each.first, each.last)
                equal = [k for k in inside if lines[k].strip() == mutant.original]
                places += [(path, k) for k in equal[mutant.occurrence : mutant.occurrence + 1]]
    if len(places) != 1:
        raise NotFoundError(f"{mutant}: found {len(places)} times, not once")
    return places[0]


def apply(root, mutant):
    """Edit the tree in `root`; the file that changed. Raises NotFoundError."""
    path, line = find(root, mutant)
    lines = path.read_text(encoding="utf-8").split("\n")
    indentation = lines[line][: -len(lines[line].lstrip())]
    lines[line] = indentation + mutant.replacement
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _of_python(text):
    found = []

    def visit(node, outer):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                continue
            name = outer
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{outer}{child.name}."
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append((name[:-1], child.lineno - 1, child.end_lineno or child.lineno))
            visit(child, name)

    visit(ast.parse(text), "")
    return found


def without_comments(text):
    """C with spaces in place of comments, strings and preprocessor lines, of the same length."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^\#(?:\\\n|[^\n])*'
    return re.sub(
        pattern, lambda x: re.sub(r"[^\n]", " ", x[0]), text, flags=re.DOTALL | re.MULTILINE
    )


def heads_of_c(code):
    """Name and opening brace of each function that begins in the first column, but for those that
    macros define; OPERATION(MOV) is the head of op_MOV. `code` has no comments."""
    code = re.sub(r"^OPERATION\((\w+)\)", r"void  op_\1()", code, flags=re.M)
    head = re.compile(r"^(?!typedef|enum|struct|union)\w[\w\s*]*?\b(\w+)\(([^;{}]*)\)\s*\{", re.M)
    yield from ((match[1], match.end() - 1) for match in head.finditer(code))


def _of_c(text):
    code = without_comments(text)
    for name, brace in heads_of_c(code):
        depth, end = 1, brace + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        yield name, code.count("\n", 0, brace), code.count("\n", 0, end) + 1
