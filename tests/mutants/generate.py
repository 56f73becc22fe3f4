"""Fill mutants.json: mistakes somebody could make, drawn with a fixed seed.

    python -m tests.mutants.generate

Mutants whose line the product still has stay as they are; others are drawn anew. Each site (a
comparison, a sum, a call, ...) of a package has the same chance, so that long functions get more,
and no function gets two. What changes no behaviour is left out: text, types, docstrings, asserts,
the raising of errors, the looks of figures. So are edits that do not compile, and edits of C that
compile to the same machine code.
"""

import ast
import random
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

from tests.mutants.edits import (
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
STRICT = ["-Werror=incompatible-pointer-types", "-Werror=int-conversion"]

Edit = tuple[str, int, int, str]  # what kind of mistake, columns of a line, what stands there then


def main():
    kept = [mutant for mutant in stored() if is_there(ROOT, mutant)]
    for (package, language), quota in QUOTAS.items():
        of_it = [each for each in kept if (each.package, each.language) == (package, language)]
        have = [each for each in of_it if not each.equivalent]
        chance = random.Random(f"{SEED} {package} {language}")
        sites = sites_of(ROOT, package, language)
        drawn = draw(ROOT, sites, chance, {each.function for each in kept})
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


def is_there(root, mutant):
    try:
        find(root, mutant)
    except NotFoundError:
        return False
    return True


def sites_of(root, package, language):
    """Places where a folder can be edited: folder, language, function, line, edit."""
    sites = []
    for path in files(root, package, language):
        found = functions(path)
        for line, text in enumerate(code_of(path)):
            around = [each for each in found if each.first < line < each.last]
            if around and not WITHOUT_BEHAVIOUR.match(text):
                sites += [(package, language, around[-1], line, edit) for edit in edits_of(text)]
    return sites


def draw(root, sites, chance, taken):
    """Mutants of a tree in an order that only the generator `chance` and the sources decide."""
    while sites:
        package, language, function, line, edit = sites.pop(chance.randrange(len(sites)))
        kind, first, last, text = edit
        lines = function.path.read_text(encoding="utf-8").split("\n")
        original = lines[line].strip()
        mutant = Mutant(
            package=package,
            language=language,
            function=function.name,
            edit=kind,
            original=original,
            replacement=(lines[line][:first] + text + lines[line][last:]).strip(),
            occurrence=[each.strip() for each in lines[function.first : line]].count(original),
        )
        if function.name not in taken and is_there(root, mutant) and changes_code(root, mutant):
            taken.add(function.name)
            yield mutant


def code_of(path):
    """The lines of a file, with spaces in place of comments and strings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return without_comments(text).split("\n")
    lines = text.split("\n")
    for token in tokenize.generate_tokens(iter(text.splitlines(keepends=True)).__next__):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            (row, column), (last_row, last_column) = token.start, token.end
            for k in range(row - 1, last_row):
                first = column if k == row - 1 else 0
                last = last_column if k == last_row - 1 else len(lines[k])
                lines[k] = lines[k][:first] + " " * (last - first) + lines[k][last:]
    return lines


# Text, types and looks; what stands on several lines is left out with its first one.
WITHOUT_BEHAVIOUR = re.compile(
    r"\s*(def|class|@|raise|assert|from|import|\w+: )|"
    r".*(\b(_log|print|echo|debug|info|warning|range|domain|height|width|margin)\b|f['\"])"
)
FLIPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
JOINED = {"&&": "||", "||": "&&", "and": "or", "or": "and"}
OTHERS = {"+": "-", "-": "+", "*": "+", "/": "*", "//": "*"}
OTHERS |= {"<<": ">>", ">>": "<<", "|": "&", "&": "|"}
NAME = r"[\w>.\-]+"


def edits_of(line):
    """Mutations of a line of Python or C."""
    for match in re.finditer(r" (\S+) ", line):
        for kind, other in (
            ("comparison flipped", FLIPPED),
            ("and for or", JOINED),
            ("other operation", OTHERS),
        ):
            if match[1] in other:
                yield kind, match.start(1), match.end(1), other[match[1]]
        term = re.match(r" [+\-|&*/] [\w.\->]+(\[\w+\])?(?![\w(\[])", line[match.start() :])
        if term:
            yield "term dropped", match.start(), match.start() + len(term[0]), ""
    for match in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", line):
        yield "wrong constant", match.start(), match.end(), str(int(match[1]) + 1)
    if match := re.search(r"\b(?:if|while) \((.*)\)( \w| \{|$)", line):
        if match[1].count("(") == match[1].count(")"):
            yield "condition negated", match.start(1), match.end(1), f"!({match[1]})"
    elif match := re.match(r"\s*(?:if|while) (.*):$", line):
        yield "condition negated", match.start(1), match.end(1), f"not ({match[1]})"
    for match in re.finditer(rf"\b(?!if|for|while|switch)\w+\(({NAME}), ({NAME})(?=[,)])", line):
        if match[1] != match[2]:
            yield "arguments swapped", match.start(1), match.end(2), f"{match[2]}, {match[1]}"
    statement = r"\s+(?!return|break|case|if|for|while)([\w.\->\[\]]+ [+\-|&]?=|\w+\().*;\s*"
    indentation = len(line) - len(line.lstrip())
    if re.fullmatch(statement, line):
        yield "statement removed", indentation, len(line), ";"
    if re.fullmatch(r"\s+([\w.]+ [+\-|&]= .*|[\w.]+\(.*\))", line):
        yield "statement removed", indentation, len(line), "pass"


def changes_code(root, mutant):
    """False for an edit that does not compile, or that the compiler of C does not notice."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        packages = {package for package, _ in QUOTAS}  # C includes headers of other packages
        for each in (file for one in packages for file in files(root, one, mutant.language)):
            target = copy / each.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(each.read_bytes())
        edited = apply(copy, mutant)
        if mutant.language == "python":
            try:
                ast.parse(edited.read_text(encoding="utf-8"))
            except SyntaxError:
                return False
            return True
        original = original_assembly(root / edited.parent.relative_to(copy))
        return assembly(edited.parent) not in (None, original)


@cache
def original_assembly(folder):
    found = assembly(folder)
    if found is None:
        raise RuntimeError(f"gcc does not compile {folder}")
    return found


def assembly(folder):
    """Output of the compiler for a folder's C files; None if it refuses them."""
    text = b""
    for path in sorted(folder.glob("*.c")):
        command = ["gcc", "-std=c11", "-O1", '-DBUILT_FROM=""', *STRICT, "-S", "-o", "-", path.name]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        if done.returncode:
            return None
        text += done.stdout
    return text


if __name__ == "__main__":
    sys.exit(main())
