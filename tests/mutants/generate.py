"""Fill mutants.json: mistakes somebody could make, drawn with a fixed seed.

    python -m tests.mutants.generate

Mutants whose line the product still has stay as they are; others are drawn anew. Each site (a
comparison, a sum, a call, ...) of a package has the same chance, so that long functions get more,
and no function gets two. What changes no behaviour is left out: text, types, docstrings, asserts,
the raising of errors, the looks of figures. So are edits of C that do not compile, or compile to
the same machine code.
"""

from __future__ import annotations

import ast
import builtins
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.mutants.edits import (
    Function,
    Mutant,
    NotFoundError,
    apply,
    files,
    find,
    functions,
    store,
    stored,
    without_comments,
)
from validation import ROOT

SEED = 90
# By lines of functions; C is a third.
QUOTAS = {
    ("analysis", "python"): 11,
    ("kernels", "python"): 4,
    ("reports", "python"): 11,
    ("toolkit", "python"): 34,
    ("analysis", "c"): 6,
    ("toolkit", "c"): 24,
}
LOOKS_AND_TEXT = {"_log", "print", "echo", "debug", "info", "warning", "BarColumn"}
LAYOUT = {"range", "domain", "height", "width", "margin"}
BUILTINS = set(dir(builtins))  # arguments of another type, or in any order

STRICT = ["-Werror=incompatible-pointer-types", "-Werror=int-conversion"]

Span = tuple[int, int]  # columns of a line
Edit = tuple[str, int, int, str]  # what kind of mistake, columns of a line, what stands there then
Site = tuple[int, list[Edit]]  # a line of the file, from zero


def main() -> int:
    kept = [mutant for mutant in stored() if is_there(mutant)]
    for (package, language), quota in QUOTAS.items():
        of_it = [each for each in kept if (each.package, each.language) == (package, language)]
        have = [each for each in of_it if not each.equivalent]
        drawn = draw(package, language, {each.function for each in kept})
        while len(have) < quota:
            mutant = next(drawn)
            print(mutant)
            have.append(mutant)
            kept.append(mutant)
    order = list(QUOTAS)
    kept.sort(key=lambda each: order.index((each.package, each.language)))
    store(kept)
    print(Counter((each.package, each.language, each.edit) for each in kept))
    return 0


def is_there(mutant: Mutant) -> bool:
    try:
        find(ROOT, mutant)
    except NotFoundError:
        return False
    return True


def draw(package: str, language: str, taken: set[str]) -> Iterator[Mutant]:
    """Mutants of a package in an order that only the seed and the sources decide."""
    chance = random.Random(f"{SEED} {package} {language}")
    sites: list[tuple[Function, Site]] = []
    for path in files(ROOT, package, language):
        found = functions(path)
        of_file = python_sites(path) if language == "python" else c_sites(path)
        for site in of_file:
            around = [each for each in found if each.first <= site[0] < each.last]
            if around and site[1]:
                sites.append((around[-1], site))
    while sites:
        function, (line, edits) = sites.pop(chance.randrange(len(sites)))
        if function.name in taken:
            continue
        edit, first, last, text = chance.choice(edits)
        lines = function.path.read_text(encoding="utf-8").split("\n")
        changed = (lines[line][:first] + text + lines[line][last:]).strip()
        original = lines[line].strip()
        before = [each.strip() for each in lines[function.first : line]]
        mutant = Mutant(
            package=package,
            language=language,
            function=function.name,
            edit=edit,
            original=original,
            replacement=changed or "pass",
            occurrence=before.count(original),
        )
        if is_there(mutant) and (language == "python" or changes_machine_code(mutant)):
            taken.add(function.name)
            yield mutant


# Python.

FLIPPED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
OTHERS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*"}
OTHERS |= {ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&"}


class Source:
    """Python text, and where its nodes stand on a line."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.split("\n")

    def of(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text, node) or ""

    def span(self, node: ast.expr | ast.stmt) -> Span | None:
        """Columns of a node, None for one of several lines."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        if node.lineno != node.end_lineno:
            return None
        first, last = node.col_offset, node.end_col_offset
        return self._column(node.lineno, first), self._column(node.lineno, last)

    def between(self, a: ast.expr, b: ast.expr) -> Span | None:
        """Columns of an operator, with the spaces around it; None where parentheses are, too."""
        assert a.end_col_offset is not None
        if a.end_lineno != b.lineno:
            return None
        first, last = a.end_col_offset, b.col_offset
        span = self._column(b.lineno, first), self._column(b.lineno, last)
        return None if set("()") & set(self.lines[b.lineno - 1][slice(*span)]) else span

    def _column(self, line: int, offset: int) -> int:
        return len(self.lines[line - 1].encode()[:offset].decode())


def python_sites(path: Path) -> Iterator[Site]:
    source = Source(path)
    has_looks = "reports" in path.parts

    def visit(node: ast.AST, *, inside: bool) -> Iterator[Site]:
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.Call) and source.of(node.func).split(".")[-1] in LOOKS_AND_TEXT:
            return
        if has_looks and isinstance(node, ast.keyword) and node.arg in LAYOUT:
            return
        if inside and isinstance(node, ast.expr | ast.stmt):
            found = [(kind, *at, to) for kind, at, to in python_edits(node, source) if at]
            is_branch = isinstance(node, ast.If | ast.IfExp | ast.While)
            line = node.test.lineno if is_branch else node.lineno  # type: ignore[union-attr]
            if found and (is_branch or node.lineno == node.end_lineno):
                yield line - 1, found
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_look = has_looks and isinstance(node, ast.keyword | ast.Dict | ast.Tuple | ast.List)
        for name, field in ast.iter_fields(node):
            is_head = name in {"annotation", "returns", "decorator_list", "args"}
            if is_head and not isinstance(node, ast.Call):
                continue
            for child in field if isinstance(field, list) else [field]:
                if isinstance(child, ast.AST) and not (is_look and isinstance(child, ast.Constant)):
                    within = (inside or is_function) and not isinstance(child, ast.ClassDef)
                    yield from visit(child, inside=within)

    yield from visit(ast.parse(source.text), inside=False)


def python_edits(node: ast.AST, source: Source) -> Iterator[tuple[str, Span | None, str]]:
    """What may go wrong at a node: the kind of mistake, the columns, what stands there then."""
    match node:
        case ast.Compare(ops=[op]):
            between = source.between(node.left, node.comparators[0])
            yield "comparison flipped", between, f" {FLIPPED[type(op)]} "
        case ast.BoolOp(values=[a, b]):
            other = " or " if isinstance(node.op, ast.And) else " and "
            yield "and for or", source.between(a, b), other
            yield "term dropped", source.span(node), source.of(a)
        case ast.BinOp(op=op) if type(op) in OTHERS:
            between = source.between(node.left, node.right)
            yield "other operation", between, f" {OTHERS[type(op)]} "
            yield "term dropped", source.span(node), source.of(node.left)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            wrong = str(value + 1) if isinstance(value, int) else repr(value * 1.5)
            yield "wrong constant", source.span(node), wrong
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "condition negated", source.span(test), f"not ({source.of(test)})"
        case ast.Call(func=func, args=[ast.Name() as a, ast.Name() as b, *_]) if (
            source.of(func) not in BUILTINS and a.id != b.id
        ):
            first, last = source.span(a), source.span(b)
            if first and last and a.lineno == b.lineno:
                yield "arguments swapped", (first[0], last[1]), f"{b.id}, {a.id}"
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "statement removed", source.span(node), "pass"


# C.

OPERATORS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "+": "-",
    "-": "+",
    "<<": ">>",
    ">>": "<<",
    "|": "&",
    "&": "|",
}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}


def c_sites(path: Path) -> Iterator[Site]:
    code = without_comments(path.read_text(encoding="utf-8"))
    for number, line in enumerate(code.split("\n")):
        for match in re.finditer(r" (<=|>=|==|!=|&&|\|\||<<|>>|[<>+\-|&]) ", line):
            operator = match[1]
            kind = "comparison flipped" if operator in COMPARISONS else "other operation"
            kind = "and for or" if operator in {"&&", "||"} else kind
            edits = [(kind, match.start(1), match.end(1), OPERATORS[operator])]
            term = re.match(r" [+\-|&] [\w.\->]+(\[\w+\])?(?![\w(\[])", line[match.start() :])
            if term and operator not in {"&&", "||"}:
                edits.append(("term dropped", match.start(), match.start() + len(term[0]), ""))
            yield number, edits
        for match in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", line):
            wrong = str(int(match[1]) + 1)
            yield number, [("wrong constant", match.start(), match.end(), wrong)]
        if match := re.search(r"\b(if|while) \((.*)\)( \w| \{|$)", line):
            condition = match[2]
            if condition.count("(") == condition.count(")"):
                edit = ("condition negated", match.start(2), match.end(2), f"!({condition})")
                yield number, [edit]
        for match in re.finditer(r"\b(?!if|for|while|switch)\w+\(([\w>.\-]+), ([\w>.\-]+)", line):
            if match[1] != match[2] and line[:1].isspace():
                swapped = f"{match[2]}, {match[1]}"
                yield number, [("arguments swapped", match.start(1), match.end(2), swapped)]
        statement = r"\s+(?!return|break|case|if|for|while)([\w.\->\[\]]+ [+\-|&]?=|\w+\().*;\s*"
        if re.fullmatch(statement, line):
            indentation = len(line) - len(line.lstrip())
            yield number, [("statement removed", indentation, len(line), ";")]
        if match := re.search(r"& (~)\w", line):
            yield number, [("term dropped", match.start(1), match.end(1), "")]


def changes_machine_code(mutant: Mutant) -> bool:
    """False for an edit that does not compile, or that the compiler does not notice."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for each in files(ROOT, mutant.package, "c"):
            target = copy / each.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(each.read_bytes())
        where = apply(copy, mutant).parent
        edited = assembly(where)
        return edited is not None and edited != original_assembly(ROOT / where.relative_to(copy))


@cache
def original_assembly(folder: Path) -> bytes | None:
    return assembly(folder)


def assembly(folder: Path) -> bytes | None:
    """What the compiler makes of a folder's C; None where it refuses."""
    text = b""
    for path in sorted(folder.glob("*.c")):
        command = ["gcc", "-std=c11", "-O1", *STRICT, "-S", "-o", "-", path.name]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        if done.returncode:
            return None
        text += done.stdout
    return text


if __name__ == "__main__":
    sys.exit(main())
