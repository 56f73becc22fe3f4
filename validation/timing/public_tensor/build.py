"""Compile the kernels of `sources` for sm_90a.

    python -m validation.timing.public_tensor.build FOLDER CUBINS
    python -m validation.timing.public_tensor.build FOLDER CUBINS --record

FOLDER holds the repositories at their commits, each in a folder of its short name. CUBINS gets a
cubin for each file of CUDA C++ and each kernel of Triton. Those whose sha256 is not the list's
are named; `--record` writes it instead. It needs nvcc 13.0 and Triton 3.6, but
neither a GPU nor PyTorch, of which the files of kernels use nothing but names.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from validation import recordings
from validation.timing.public_tensor.launch import CODE
from validation.timing.public_tensor.operands import Operand
from validation.timing.public_tensor.sources import CUDA, TRITON, CudaSource, TritonSource
from validation.timing.public_tensor.triton_launches import calls, is_constant

HEADERS = Path(__file__).with_name("headers")
OPTIONS = ("-cubin", "-arch=sm_90a", "-O3", "-std=c++17", "--expt-relaxed-constexpr")
TYPES = {
    "half": "*fp16",
    "brain": "*bf16",
    "float": "*fp32",
    "int8": "*i8",
    "int32": "*i32",
    "e4m3": "*fp8e4nv",
}
ALIGNED = [["tt.divisibility", 16]]
# Modules that files of kernels import, of which kernels use nothing but the functions of REAL
PACKAGE = "public_kernels"  # that the file of a kernel is imported as a part of
NAMES_ONLY = ("torch", "einops", "fla", "mamba_ssm", PACKAGE)
REAL = {"fla.ops.utils.op": "fla/ops/utils/op.py"}


def of_cuda(folder: Path, one: CudaSource) -> bytes:
    """The cubin of a file, included by a file that says what is missing."""
    root = folder / one.repository
    with tempfile.TemporaryDirectory() as place:
        source, image = Path(place) / "kernel.cu", Path(place) / "kernel.cubin"
        source.write_text(f'{one.before}\n#include "{one.file}"\n{one.after}')
        within = (HEADERS, root, (root / one.file).parent, *(root / name for name in one.includes))
        folders = [f"-I{path}" for path in within]
        command = ["nvcc", *OPTIONS, *one.options, *folders, "-o", str(image), str(source)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return image.read_bytes()


class _Anything:
    """A module, a class, a decorator, a number: whatever a name of another package stands for."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __call__(self, *given: Any, **_: Any) -> Any:
        """A decorator and a list of configurations pass what they are given."""
        return given[0] if len(given) == 1 and _passes(given[0]) else _Anything()

    def __getitem__(self, _: Any) -> Any:
        return _Anything()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __or__(self, _: Any) -> Any:
        return _Anything()

    __ror__ = __or__

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return (_Base,)


def _passes(given: object) -> bool:
    return callable(given) or isinstance(given, list)


class _Base:
    apply = _Anything()


class _Named(ModuleType):
    __path__: list[str] = []  # noqa: RUF012  # a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class NamesOnly(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Importer of modules that are not installed and of which only names are needed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        if name in REAL:
            return importlib.util.spec_from_file_location(name, self._root / REAL[name])
        if name.partition(".")[0] in NAMES_ONLY:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Named(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


def of_triton(
    folder: Path, name: str, one: TritonSource, call: Mapping[str, Any]
) -> tuple[bytes, dict[str, Any]]:
    """The cubin of a kernel, specialised as for a call, and what its launch needs."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = _function(folder / one.repository, one)
    constants = {key: _constant(value) for key, value in one.constants.items()}
    constants |= {key: value for key, value in call.items() if is_constant(name, key, value)}
    passed = [key for key in function.arg_names if key not in constants]
    given = [key for key in call if key not in constants]
    if passed != given:
        raise SystemExit(f"error: {name} takes {passed}, and the call gives {given}")
    places = {key: place for place, key in enumerate(function.arg_names)}
    compiled = triton.compile(
        ASTSource(
            fn=function,
            signature={
                key: "constexpr" if key in constants else _type(call[key])
                for key in function.arg_names
            },
            constexprs={(places[key],): value for key, value in constants.items()},
            attrs={
                (places[key],): ALIGNED
                for key in passed
                if isinstance(call[key], Operand)
                or (isinstance(call[key], int) and call[key] % 16 == 0 and key not in one.plain)
            },
        ),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": one.warps, "num_stages": one.stages},
    )
    data = compiled.metadata
    return compiled.asm["cubin"], {
        "symbol": data.name,
        "threads": 32 * data.num_warps,
        "dynamic_shared_bytes": data.shared,
        "triton": triton.__version__,
    }


def _function(root: Path, one: TritonSource) -> Any:
    """The function of a file that Triton compiles, without its decorators that choose constants."""
    finder = NamesOnly(root)
    sys.meta_path.insert(0, finder)
    try:
        spec = importlib.util.spec_from_file_location(f"{PACKAGE}.of_a_file", root / one.file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.meta_path.remove(finder)
        for key in [key for key in sys.modules if key.partition(".")[0] in NAMES_ONLY]:
            del sys.modules[key]
    found = getattr(module, one.function)
    while not hasattr(found, "arg_names") or hasattr(found, "configs") or hasattr(found, "values"):
        found = found.fn
    return found


def _constant(value: Any) -> Any:
    import triton.language as tl

    names = {"fp32": tl.float32, "int32": tl.int32, "bf16": tl.bfloat16}
    return names.get(value, value) if isinstance(value, str) else value


def _type(value: Any) -> str:
    if isinstance(value, Operand):
        return TYPES[value.kind]
    return "i32" if isinstance(value, int) else "fp32"


def build(folder: Path, only: str) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """Name, cubin and launch of each source whose name matches."""
    for name, one in CUDA.items():
        if re.search(only, name):
            yield name, of_cuda(folder, one), {}
    first: dict[str, Mapping[str, Any]] = {}
    for call in calls():
        first.setdefault(call.kernel, call.arguments)
    for name, of in TRITON.items():
        if re.search(only, name):
            yield name, *of_triton(folder, name, of, first[name])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("cubins", type=Path)
    parser.add_argument("--only", default="", metavar="PATTERN", help="names that match")
    parser.add_argument("--record", action="store_true", help="write the list's sha256")
    chosen = parser.parse_args()
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # lines hold the folder
    chosen.cubins.mkdir(exist_ok=True)
    before = recordings.read(CODE)["cubins"] if CODE.exists() else {}
    found = {}
    for name, image, about in build(chosen.folder, chosen.only):
        (chosen.cubins / f"{name}.cubin").write_bytes(image)
        found[name] = {"sha256": sha256(image).hexdigest(), **about}
        if not chosen.record and found[name] != before.get(name):
            print(f"{name}: other machine code than that of the list", flush=True)
    if chosen.record:
        recordings.write(CODE, {"compiler": "nvcc 13.0.88", "cubins": before | found})
    print(f"{len(found)} cubins")


if __name__ == "__main__":
    main()
