"""The C files of the libraries: in which order they include each other, and what headers hold."""

import os
import re

import pytest

from tests.processes import ran
from toolkit import native
from validation import ROOT

# Of each library the header that lists its files, and how its functions for Python begin.
LIBRARIES = {"toolkit/sass/core/core.h": "core_", "analysis/sm/sm.h": "sm_"}
INLINE = ("static inline ", "INLINED ")
of_each_library = pytest.mark.parametrize("header", LIBRARIES)
needs_compiler = pytest.mark.skipif(
    native.compiler() is None, reason="needs gcc, clang or the ziglang wheel"
)


def sources_of(header):
    return sorted((ROOT / header).parent.glob("*.c"))


def headers_of(header):
    return sorted((ROOT / header).parent.glob("*.h"))


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


@of_each_library
def test_each_file_includes_only_files_before_it_in_the_order_of_the_list(header):
    listed = re.search(r"from low to high.*?:\n(.*?)\*/", text_of(ROOT / header), re.DOTALL)
    assert listed
    order = re.findall(r"\w+", listed[1])
    files = [*sources_of(header), *headers_of(header)]
    assert sorted(order) == sorted({path.stem for path in files})
    for path in files:
        for included in re.findall(r'#include "(\w+)\.h"', text_of(path)):
            is_own = path.suffix == ".c" and included == path.stem
            assert is_own or order.index(included) < order.index(path.stem), (path.name, included)


@of_each_library
def test_no_file_includes_a_c_file(header):
    for path in (*sources_of(header), *headers_of(header)):
        assert not re.search(r'#include ".*\.c"', text_of(path)), path.name


@of_each_library
def test_functions_that_headers_define_are_inline(header):
    head = re.compile(r"^\w[\w\s*]*?\b(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
    for path in headers_of(header):
        code = re.sub(r"^#(?:\\\n|[^\n])*", "", without_comments(text_of(path)), flags=re.MULTILINE)
        for found in head.finditer(code):
            assert found[0].startswith(INLINE), (path.name, found[1])


@needs_compiler
@of_each_library
def test_each_header_compiles_alone(header, tmp_path):
    headers = headers_of(header)
    for path in headers:
        # twice: a header guards itself
        alone = f'#include "{path.name}"\n' * 2
        (tmp_path / f"{path.stem}.c").write_text(alone, encoding="utf-8")
    files = [f"{path.stem}.c" for path in headers]
    folder = (ROOT / header).parent
    compiled([f"-I{folder}", "-Wall", "-Werror", *files], tmp_path)


@needs_compiler
@of_each_library
def test_functions_that_other_files_can_call_are_declared_in_a_header(header):
    sources = sources_of(header)
    files = [path.name for path in sources]
    said = compiled(["-Wmissing-prototypes", *files], (ROOT / header).parent)
    undeclared = set(re.findall(r"no previous prototype for (?:function )?'(\w+)'", said))
    entries = {
        name
        for path in sources
        for name in re.findall(rf"^EXPORT .*?\b({LIBRARIES[header]}\w+)\(", text_of(path), re.M)
    }
    assert undeclared == entries  # which Python declares
