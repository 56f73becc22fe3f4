"""The architecture: toolkit -> {kernels, reports} -> analysis, and only toolkit has effects."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter

import pytest

from kernels import LADDER
from validation import ROOT

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
# nothing else (docs/decisions/0016-replayed-streams.md), and reads from which sources it is.
LOADS_NATIVE_CODE = {
    "analysis/library.py": {"ctypes", "pathlib"},
    "analysis/sm/__init__.py": {"ctypes", "pathlib"},
    "analysis/traffic/native.py": {"ctypes", "pathlib"},
    "analysis/traffic/groups.py": {"ctypes"},
    "analysis/traffic/l2.py": {"ctypes"},
    "analysis/traffic/pieces.py": {"ctypes"},
}
# Its other effect: it reads the machine files, which are its data and are installed beside it.
READS_ITS_DATA = {"analysis/hardware/sm_constants.py": {"pathlib"}}
READS_OR_WRITES = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "unlink"}
READS_OR_WRITES |= {"mkdir", "touch", "rename", "iterdir", "glob", "rglob"}


@cache
def files():
    """The syntax nodes of every module of the four packages, the module itself first."""
    return {
        path.relative_to(ROOT).as_posix(): list(
            ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
        for package in sorted(OURS)
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def package_of(file):
    return file.partition("/")[0]


@cache
def imports():
    """The top-level packages that each file imports, inside functions too."""
    found = []
    for file, nodes in files().items():
        named = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
        named |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        found.append((file, {name.partition(".")[0] for name in named}))
    return found


def test_every_package_is_looked_at():
    assert set(map(package_of, files())) == OURS
    assert len(files()) > 40


def test_imports_are_absolute():
    for file, nodes in files().items():
        levels = [node.level for node in nodes if isinstance(node, ast.ImportFrom)]
        assert not any(levels), file


def test_imports_run_one_way():
    for file, names in imports():
        assert OURS & names <= MAY_IMPORT[package_of(file)], file


def test_one_name_stands_for_one_class():
    defined = defaultdict(list)
    for file, nodes in files().items():
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(f"{file}:{node.lineno}")
    assert {name: where for name, where in defined.items() if len(where) > 1} == {}


# Folders in their order: each imports from those above it. The packages' own `__init__.py` are
# doors for users: they import what they offer when it is asked for, and stand outside the order.
STAGES = (
    "analysis",
    "analysis/sm",
    "analysis/hardware",
    "analysis/traffic",
    "analysis/timing",
    "analysis/records",
    "analysis/comparison",
    "kernels",
    "reports",
    "reports/svg",
    "reports/sections",
    "reports/figures",
    "reports/pages",
    "toolkit/native",
    "toolkit/store",
    "toolkit/recorded",
    "toolkit/tuned",
    "toolkit/machine_code",
    "toolkit/launch",
    "toolkit/frontends",
    "toolkit/sass/core",
    "toolkit/sass/isa",
    "toolkit/sass",
    "toolkit/rungs",
    "toolkit/execution",
    "toolkit/remedies",
    "toolkit/gpu",
    "toolkit/gpu/nsight_compute",
    "toolkit/product",
    "toolkit/profiling",
    "toolkit/tuning",
    "toolkit/microbenchmarks",
    "toolkit/cli",
)
DOORS = {*(f"{package}/__init__.py" for package in OURS), "toolkit/__main__.py"}


def folder_of(file):
    return file.rpartition("/")[0]


def module_files():
    """The file of each module, by its dotted name."""
    return {
        file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file
        for file in files()
    }


@cache
def imported_files():
    """Our files that each file imports, also inside functions, but not for type checkers alone."""
    of_module, found = module_files(), {}
    for file, nodes in files().items():
        for_types = {
            inner
            for node in nodes
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        names = set()
        for node in nodes:
            if isinstance(node, ast.Import) and node not in for_types:
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node not in for_types:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= full & of_module.keys() or {node.module or ""}
        found[file] = {of_module[name] for name in names & of_module.keys()} - {file}
    return found


def test_folders_import_only_from_those_before_them():
    order = {folder: number for number, folder in enumerate(STAGES)}
    assert {folder_of(file) for file in files()} == order.keys() | {"toolkit"}
    for file, others in imported_files().items():
        if file not in DOORS:
            for other in others - DOORS:
                assert order[folder_of(other)] <= order[folder_of(file)], f"{file} -> {other}"


def test_c_files_include_only_from_folders_before_theirs():
    order = {folder: number for number, folder in enumerate(STAGES)}
    found = []
    for path in (path for package in OURS for path in (ROOT / package).rglob("*.[ch]")):
        folder = path.parent.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r'#include "(.*/.*)"', text):
            other = (path.parent / name).resolve().parent.relative_to(ROOT).as_posix()
            found.append((folder, other))
            assert order[other] < order[folder], f"{path} includes {name}"
    assert found == [("toolkit/sass/core", "analysis/sm")]


def test_no_files_import_each_other_in_a_circle():
    graph = {f: others - DOORS for f, others in imported_files().items() if f not in DOORS}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_toolkit_has_no_loose_files():
    loose = {path.name for path in (ROOT / "toolkit").glob("*.py")}
    assert loose == {"__init__.py", "__main__.py"}


def test_every_folder_says_what_goes_in_and_out_in_at_most_five_lines():
    for folder in set(STAGES) - OURS:
        text = (ROOT / folder / "__init__.py").read_text(encoding="utf-8")
        doc = ast.get_docstring(ast.parse(text))
        assert doc, folder
        assert len(doc.splitlines()) <= 5, folder


def test_libraries_stay_where_they_belong():
    for file, names in imports():
        if allowed := MAY_USE.get(package_of(file)):
            assert names - OURS - sys.stdlib_module_names <= allowed, file


def test_analysis_and_reports_are_pure():
    for file, names in imports():
        if package_of(file) in ("analysis", "reports"):
            allowed = LOADS_NATIVE_CODE | READS_ITS_DATA
            assert EFFECTS & names == allowed.get(file, set()), file
            nodes = [n.func for n in files()[file] if isinstance(n, ast.Call)]
            calls = {function.id for function in nodes if isinstance(function, ast.Name)}
            assert not EFFECTFUL_CALLS & calls, file


def test_constants_of_the_hardware_only_read_their_files():
    for name in READS_ITS_DATA:
        used = {node.attr for node in files()[name] if isinstance(node, ast.Attribute)}
        assert READS_OR_WRITES & used == {"glob", "read_text"}


@pytest.mark.parametrize("name", LOADS_NATIVE_CODE)
def test_what_loads_native_code_touches_no_other_file(name):
    used = {node.attr for node in files()[name] if isinstance(node, ast.Attribute)}
    is_loader = name == "analysis/library.py"
    assert READS_OR_WRITES & used == ({"glob", "read_bytes"} if is_loader else set())


def test_the_native_code_of_the_model_computes_and_nothing_else():
    sources = [*(ROOT / "analysis").rglob("*.c"), *(ROOT / "analysis").rglob("*.h")]
    source = "".join(path.read_text(encoding="utf-8") for path in sources)
    allowed = {"math.h", "stdint.h", "stdlib.h", "string.h"}
    assert set(re.findall(r"#include <(.*)>", source)) == allowed
    assert not re.findall(r"\b(getenv|system|exit|abort|rand|srand)\s*\(", source)


# What names of rungs and of their parameters mean elsewhere.
OTHER_MEANINGS = {"width"}  # of a line in a plot, of an access
MEAN_OTHERS = {
    "toolkit/profiling/plan.py": {"tiled"},  # the example of an error message
    "toolkit/execution/limits.py": {"workers"},  # processes
    "toolkit/microbenchmarks/warpgroup.py": {"fence"},  # wgmma.fence
}


def texts(nodes):
    """String constants in a module, except docstrings and examples of commands."""
    bodies = [node.body for node in nodes if isinstance(getattr(node, "body", None), list)]
    left_out = {body[0].value for body in bodies if body and isinstance(body[0], ast.Expr)}
    left_out |= {n.value for n in nodes if isinstance(n, ast.keyword) and n.arg == "epilog"}
    constants = [n for n in nodes if isinstance(n, ast.Constant) and n not in left_out]
    return {node.value for node in constants if isinstance(node.value, str)}


def test_only_the_ladder_names_rungs_and_their_parameters():
    names = {rung.name for rung in LADDER} | {name for rung in LADDER for name in rung.parameters}
    for file, nodes in files().items():
        if package_of(file) != "kernels":
            named = {text.partition(":")[0] for text in texts(nodes)} & names
            assert named - OTHER_MEANINGS == MEAN_OTHERS.get(file, set()), file


MOST_LINES, MOST_METHODS = 500, 15  # above that, a file or a class holds two ideas
# What is larger, with its number of lines or methods. A number may only fall, and an entry goes
# once its file or class is within the limit.
LARGER: dict[str, int] = {}


def larger():
    """The lines of each file, and the methods of each class, that are above the limits."""
    lines = {file: len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in files()}
    methods = {
        f"{file}: {node.name}": sum(isinstance(part, ast.FunctionDef) for part in node.body)
        for file, nodes in files().items()
        for node in nodes
        if isinstance(node, ast.ClassDef)
    }
    limits = ((lines, MOST_LINES), (methods, MOST_METHODS))
    return {name: size for sizes, most in limits for name, size in sizes.items() if size > most}


def test_files_and_classes_are_small_and_the_exceptions_do_not_grow():
    found = larger()
    assert found.keys() == LARGER.keys()
    assert {name: size for name, size in found.items() if size > LARGER[name]} == {}


def test_every_module_says_what_it_is():
    for file, (module, *_) in files().items():
        assert isinstance(module, ast.Module)
        assert ast.get_docstring(module), file


def test_what_modules_read_beside_them_is_installed_with_them():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = declared["tool"]["setuptools"]["package-data"]
    installed = {
        path
        for package, globs in patterns.items()
        for g in globs
        for path in (ROOT / package).glob(g)
    }
    for pattern in ("*.cu*", "*.toml"):
        beside = {path for package in patterns for path in (ROOT / package).rglob(pattern)}
        assert beside
        assert beside <= installed
