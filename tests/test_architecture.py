"""The architecture: toolkit -> {kernels, reports} -> analysis, and only toolkit has effects."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"analysis", "kernels", "reports", "toolkit"}
MAY_IMPORT = {
    "analysis": {"analysis"},
    "kernels": {"kernels", "analysis"},
    "reports": {"reports", "analysis"},
    "toolkit": OURS,
}
MAY_USE = {
    "analysis": {"numpy", "scipy"},
    "kernels": {"numpy"},
    "reports": {"plotly", "jinja2", "markupsafe"},
}
EFFECTS = {
    "os",
    "subprocess",
    "time",
    "socket",
    "pathlib",
    "shutil",
    "tempfile",
    "ctypes",
    "random",
}
EFFECTS |= {"urllib", "http", "signal", "threading", "multiprocessing", "asyncio", "io", "glob"}
EFFECTFUL_CALLS = {"open", "print", "input", "exec", "eval"}
# The one effect that analysis has: it finds and loads its own native code, which computes and
# nothing else (docs/decisions/0016-replayed-streams.md).
LOADS_NATIVE_CODE = {"analysis/cycles/__init__.py": {"ctypes", "pathlib"}}
READS_OR_WRITES = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "unlink"}
READS_OR_WRITES |= {"mkdir", "touch", "rename", "iterdir", "glob", "rglob"}

FILES = [
    pytest.param(package, path, id=str(path.relative_to(ROOT)))
    for package in sorted(OURS)
    for path in sorted((ROOT / package).rglob("*.py"))
]
PURE = [case for case in FILES if case.values[0] in ("analysis", "reports")]


def imported(path: Path) -> Iterator[str]:
    """The top-level package of every import, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            yield (node.module or "").split(".")[0]


def test_every_package_is_looked_at() -> None:
    assert {case.values[0] for case in FILES} == OURS
    assert len(FILES) > 40


@pytest.mark.parametrize(("package", "path"), FILES)
def test_imports_run_one_way(package: str, path: Path) -> None:
    assert OURS.intersection(imported(path)) <= MAY_IMPORT[package]


@pytest.mark.parametrize(("package", "path"), FILES)
def test_libraries_stay_where_they_belong(package: str, path: Path) -> None:
    if package in MAY_USE:
        foreign = set(imported(path)) - OURS - sys.stdlib_module_names
        assert foreign <= MAY_USE[package]


@pytest.mark.parametrize(("package", "path"), PURE)
def test_analysis_and_reports_are_pure(package: str, path: Path) -> None:
    allowed = LOADS_NATIVE_CODE.get(path.relative_to(ROOT).as_posix(), set())
    assert EFFECTS.intersection(imported(path)) == allowed
    calls = (
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    assert not EFFECTFUL_CALLS.intersection(calls)


@pytest.mark.parametrize("name", LOADS_NATIVE_CODE)
def test_what_loads_native_code_touches_no_other_file(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not READS_OR_WRITES & used


def test_the_native_code_of_the_model_computes_and_nothing_else() -> None:
    source = (ROOT / "analysis/cycles/sm.c").read_text(encoding="utf-8")
    assert set(re.findall(r"#include <(.*)>", source)) == {"stdint.h", "stdlib.h", "string.h"}
    assert not re.findall(r"\b(getenv|system|exit|abort|rand|srand)\s*\(", source)


@pytest.mark.parametrize("path", [case.values[1] for case in FILES], ids=lambda p: p.name)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_what_modules_read_beside_them_is_installed_with_them() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = declared["tool"]["setuptools"]["package-data"]
    installed = {
        path
        for package, globs in patterns.items()
        for g in globs
        for path in (ROOT / package).glob(g)
    }
    beside = {path for package in patterns for path in (ROOT / package).rglob("*.cu")}
    assert beside
    assert beside <= installed
