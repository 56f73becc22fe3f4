"""The kernel that `script.py:kernel` names: from the text of a PyCUDA module, or by an import."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from analysis.errors import (
    InputError,
    UnavailableError,
    UnknownNameError,
    first_line,
    shortened,
)
from toolkit.frontends.cuda_text import CudaText
from toolkit.frontends.cupy_kernels import own_name
from toolkit.frontends.front_end import front_end_of, front_ends
from toolkit.frontends.script_names import SCRIPT
from toolkit.machine_code.kernel_source import read_source

_MODULE_OF_PYCUDA = "SourceModule"


@dataclass(frozen=True, kw_only=True)
class ScriptKernel:
    """A kernel of a Python file. `module_kernel` is that of `NAME = module.get_function("k")`."""

    path: Path
    name: str
    compiled: Any
    module_kernel: str | None = None
    was_imported: bool

    @property
    def text(self) -> str | None:
        """The CUDA C++ text of the kernel, None where the front end compiles Python."""
        text = getattr(self.compiled, "code", None) or getattr(self.compiled, "source", None)
        return text if isinstance(text, str) else None

    @property
    def own_name(self) -> str | None:
        """The name of the one kernel that a RawKernel or RawModule of CuPy has."""
        return own_name(self.compiled)

    @property
    def note(self) -> str | None:
        if not self.was_imported:
            return None
        return f"{self.path.name} was imported, which runs its top level"


@cache  # a script runs once
def script_kernel(source: str) -> ScriptKernel:
    """The kernel of `script.py:kernel`.

    Raises InputError for a file that cannot be read or imported, UnknownNameError for a name that
    it does not have, and UnavailableError for a front end that is not installed.
    """
    match = SCRIPT.fullmatch(source)
    if match is None:
        raise InputError(f"{shortened(source)!r} is not a Python file: give script.py:kernel")
    path = Path(match["path"])
    text = read_source(path)[0]
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise InputError(f"{path}, line {error.lineno}: {error.msg}") from error
    kernels = list(dict.fromkeys(_kernel_names(tree)))
    if match["name"] is None:
        known = " or ".join(f"{path}:{name}" for name in kernels[:4]) or f"{path}:NAME"
        raise InputError(f"{path}: name the kernel: {known}")
    name = match["name"]
    if found := _source_module(path, tree, name):
        return found
    return ScriptKernel(
        path=path, name=name, compiled=_attribute(path, name, kernels), was_imported=True
    )


def _kernel_names(tree: ast.Module) -> Iterator[str]:
    """Names of functions with a decorator `jit`, and of objects that front ends take."""
    classes = [kind.rpartition(".")[2] for one in front_ends() for kind in one.kernels]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(
            _makes_kernel(ast.unparse(one)) for one in node.decorator_list
        ):
            yield node.name
        elif isinstance(node, ast.Assign) and _called(node.value) in {*classes, _MODULE_OF_PYCUDA}:
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))


def _makes_kernel(decorator: str) -> bool:
    """False for functions of the host, and for those that kernels call."""
    is_of_host = re.match(r"(numba|nb)\.jit\b", decorator)
    return (
        bool(re.search(r"\bjit\b", decorator))
        and not is_of_host
        and ("device=True" not in decorator)
    )


def _called(node: ast.expr) -> str | None:
    """The last name of what a call calls, None for other expressions."""
    if not isinstance(node, ast.Call):
        return None
    return ast.unparse(node.func).rpartition(".")[2]


# A text, without running anything.


def _source_module(path: Path, tree: ast.Module, name: str) -> ScriptKernel | None:
    """The PyCUDA module that is assigned to `name`, or the one of `name = module.get_function()`.

    PyCUDA compiles it on a GPU as soon as it runs, so the file is only read. None for other names.
    """
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    value, kernel = assigned.get(name), None
    if isinstance(value, ast.Call) and _called(value) == "get_function":
        function = value.func
        module = function.value if isinstance(function, ast.Attribute) else None
        kernel = _constant(value.args[0], assigned) if value.args else None
        value = assigned.get(module.id) if isinstance(module, ast.Name) else module
    if not isinstance(value, ast.Call) or _called(value) != _MODULE_OF_PYCUDA:
        return None
    given = {one.arg: _constant(one.value, assigned) for one in value.keywords if one.arg}
    text = _constant(value.args[0], assigned) if value.args else given.get("source")
    if not isinstance(text, str):
        raise InputError(
            f"{path}, line {value.lineno}: the text of the SourceModule is computed: give it to "
            "simulate in Python as toolkit.CudaText(text)"
        )
    return ScriptKernel(
        path=path,
        name=name,
        module_kernel=kernel,
        was_imported=False,
        compiled=CudaText(
            text,
            options=tuple(given.get("options") or ()),
            no_extern_c=bool(given.get("no_extern_c", False)),
            include_dirs=tuple(given.get("include_dirs") or ()),
            path=str(path),
        ),
    )


def _constant(node: ast.expr, assigned: dict[str, ast.expr]) -> Any:
    """The value of a literal, or of a name that is assigned one; None for other expressions."""
    if isinstance(node, ast.Name) and node.id in assigned:
        node = assigned[node.id]
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError):
        return None


# An import.


def _attribute(path: Path, name: str, kernels: list[str]) -> Any:
    module = _imported(path)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            own = [one for one in vars(module) if _is_kernel(vars(module)[one])]
            if not own and not kernels:
                raise InputError(f"{path} holds no kernel of {_names_of_front_ends()}")
            raise UnknownNameError(f"kernel in {path}", name, own or kernels)
        found = getattr(found, part)
    if front_end_of(found) is None:
        raise InputError(
            f"{path}:{name} is {type(found).__name__}, which is no kernel of "
            f"{_names_of_front_ends()}"
        )
    return found


def _names_of_front_ends() -> str:
    *others, last = (one.name for one in front_ends())
    return f"{', '.join(others)} or {last}"


def _is_kernel(value: object) -> bool:
    """True for a kernel of a front end."""
    try:
        return front_end_of(value) is not None
    except Exception:  # one that is refused, or a proxy that is not what it looks like
        return False


def _imported(path: Path) -> Any:
    """The module of a file. What it prints goes to the standard error."""
    name = path.stem if path.stem not in sys.modules else f"_script_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "the name of a Python file ends in .py"
    assert spec.loader is not None, "it is read from a file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ImportError) and error.name:
            raise _missing(path, error) from error
        raise InputError(
            f"{path}{_line_in(path, error)} stops when it is imported: {type(error).__name__}: "
            f"{shortened(first_line(error), 200).rstrip(': ')}: {_remedy(error)}"
        ) from error
    return module


def _remedy(error: BaseException) -> str:
    under_main = "put what needs a GPU under if __name__ == '__main__'"
    if type(error).__name__ == "CudaSupportError":  # of Numba
        return f"leave out the signature of @cuda.jit, which compiles at once, or {under_main}"
    return under_main


def _missing(path: Path, error: ImportError) -> Exception:
    missing = (error.name or "").partition(".")[0]
    where = f"{path}{_line_in(path, error)}"
    for one in front_ends():
        if one.installs(missing):
            return UnavailableError(
                f"{where} imports {missing}, which is not installed: {one.install}"
            )
    return InputError(f"{where} cannot be imported: {first_line(error)}")


def _line_in(path: Path, error: BaseException) -> str:
    """', line 12' of the script where an error passed through it."""
    lines = [
        one.lineno
        for one in traceback.extract_tb(error.__traceback__)
        if Path(one.filename) == path or Path(one.filename) == path.resolve()
    ]
    return f", line {lines[-1]}" if lines else ""
