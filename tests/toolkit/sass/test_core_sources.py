"""The C files of the core: in which order they include each other, and what headers hold."""

import os
import re

import pytest

from tests.processes import ran
from toolkit import native

SOURCES = sorted(native.CORE.glob("*.c"))
HEADERS = sorted(native.CORE.glob("*.h"))
needs_compiler = pytest.mark.skipif(
    native.compiler() is None, reason="needs gcc, clang or the ziglang wheel"
)


def text_of(path):
    return path.read_text(encoding="utf-8")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def compiled(arguments, folder):
    """Messages of the compiler, which only checks the syntax of the C files."""
    done = ran(
        [*native.compiler(), "-std=c11", "-fsyntax-only", '-DBUILT_FROM=""', *arguments],
        cwd=folder, errors="replace", env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_each_file_includes_only_files_before_it_in_the_order_of_core_h():
    listed = re.search(
        r"from low to high.*?:\n(.*?)\*/", text_of(native.CORE / "core.h"), re.DOTALL
    )
    assert listed
    order = re.findall(r"\w+", listed[1])
    assert sorted(order) == sorted({path.stem for path in (*SOURCES, *HEADERS)})
    for path in (*SOURCES, *HEADERS):
        for included in re.findall(r'#include "(\w+)\.h"', text_of(path)):
            is_own = path.suffix == ".c" and included == path.stem
            assert is_own or order.index(included) < order.index(path.stem), (path.name, included)


def test_no_file_includes_a_c_file():
    for path in (*SOURCES, *HEADERS):
        assert not re.search(r'#include ".*\.c"', text_of(path)), path.name


def test_functions_that_headers_define_are_inline():
    head = re.compile(r"^\w[\w\s*]*?\b(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
    for path in HEADERS:
        code = re.sub(r"^#(?:\\\n|[^\n])*", "", without_comments(text_of(path)), flags=re.MULTILINE)
        for found in head.finditer(code):
            assert found[0].startswith("static inline "), (path.name, found[1])


@needs_compiler
def test_each_header_compiles_alone(tmp_path):
    for header in HEADERS:
        # twice: a header guards itself
        alone = f'#include "{header.name}"\n' * 2
        (tmp_path / f"{header.stem}.c").write_text(alone, encoding="utf-8")
    files = [f"{header.stem}.c" for header in HEADERS]
    compiled([f"-I{native.CORE}", "-Wall", "-Werror", *files], tmp_path)


@needs_compiler
def test_functions_that_other_files_can_call_are_declared_in_a_header():
    said = compiled(["-Wmissing-prototypes", *(path.name for path in SOURCES)], native.CORE)
    undeclared = set(re.findall(r"no previous prototype for (?:function )?'(\w+)'", said))
    entries = {
        name
        for path in SOURCES
        for name in re.findall(r"^EXPORT .*?\b(core_\w+)\(", text_of(path), re.M)
    }
    assert undeclared == entries  # which Python declares
