"""The native libraries: which compiler builds them, and that each builds the same."""

import ctypes
import operator
import re
import shutil
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from analysis import sm as cycles
from analysis.library import sources_of
from analysis.problem import parse_shape
from analysis.traffic import groups, l2, pieces
from kernels import LADDER
from tests.processes import ran, said
from toolkit import native, simulate
from toolkit.sass import streams, tensor_maps, textures
from toolkit.sass.core import binding as core
from validation import ROOT
from validation.corpus.random_programs import on_a_gpu

needs_zig = pytest.mark.skipif(find_spec("ziglang") is None, reason=f"needs {native.ZIG}")
needs_compiler = pytest.mark.skipif(
    native.compiler() is None, reason="needs gcc, clang or the ziglang wheel"
)
SEEDS = range(12)  # of random programs


@pytest.fixture
def search(monkeypatch):
    """A search for a compiler that finds nothing yet, and whose result nobody keeps."""
    native.compiler.cache_clear()
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(native, "find_spec", lambda name: None)
    yield
    native.compiler.cache_clear()


def test_a_compiler_is_asked_for_only_where_there_is_none(search, monkeypatch):
    assert native.compiler() is None
    monkeypatch.setattr(native, "ZIG_WHEELS", {(sys.platform, native.MACHINE)})
    assert native.requirements() == [native.ZIG]
    monkeypatch.setattr(native, "ZIG_WHEELS", set())
    assert native.requirements() == []  # and the package installs without native libraries


def test_the_chosen_compiler_comes_first_and_one_that_fails_is_passed_over(
    search, monkeypatch, tmp_path
):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(native._compilers()) == [(str(broken),)]
    assert native.compiler() is None
    monkeypatch.setenv("CC", "my-cc -m64")
    assert list(native._compilers()) == [("my-cc", "-m64"), (str(broken),)]


@needs_compiler
def test_a_source_that_does_not_compile_is_named_and_leaves_no_library(tmp_path):
    source, library = tmp_path / "wrong.c", tmp_path / "wrong.so"
    source.write_text("int f(void) { return none; }\n", encoding="utf-8")
    with pytest.raises(native.BuildError, match=r"(?s)does not compile .*wrong\.c:\n.*none"):
        native.compile_library(native.compiler(), [source], library, ())
    assert list(tmp_path.iterdir()) == [source]


def test_the_test_environment_has_the_compiler_that_the_build_asks_for():
    assert f'"{native.ZIG}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@needs_zig
@pytest.mark.exhaustive
@pytest.mark.parametrize("target", ["aarch64-macos", "x86_64-windows-gnu", "aarch64-linux-gnu"])
def test_the_libraries_compile_for_other_machines(target, tmp_path, monkeypatch):
    monkeypatch.setattr(native, "MACHINE", target.partition("-")[0])
    if "windows" in target:
        monkeypatch.setattr(sys, "platform", "win32")
    for name, (sources, flags) in native.libraries().items():
        library = tmp_path / name
        native.compile_library(native.zig(target), paths(sources), library, flags)
        kind = {b"\xcf\xfa": "macos", b"MZ": "windows", b"\x7fE": "linux"}[library.read_bytes()[:2]]
        assert kind in target
        names = set(re.findall(rb"(?:core|sm|group|traffic)_[a-z_0-9]+", library.read_bytes()))
        expected = {"cycles": b"sm_run", "traffic": b"traffic_of_l2"}
        assert expected.get(name.rpartition("_")[2], b"core_run") in names


# Of each source the structures that Python declares too.
LAYOUTS = {
    "toolkit/sass/core/entry.c": {
        "Ins": core.INSTRUCTION, "Count": core.COUNT, "Launch": core.CoreLaunch,
        "Fault": core.Fault, "Allocation": core.ALLOCATION, "TracedAccess": core.ACCESS,
        "Step": cycles.STEP, "Segment": core.SEGMENT, "Stream": core.Stream,
        "Request": core.REQUEST, "Finding": core.FINDING, "AtomicLine": core.ATOMIC_LINE,
        "BlockWork": core.WORK, "Pace": core.PACE, "Bank": core.Bank, "Kept": core.Kept,
        "Affine": core.AFFINE, "Dependence": core.DEPENDENCE, "Reach": core.REACH,
        "Ticket": core.TICKET,
    },
    "toolkit/sass/core/texture.c": {"TextureObject": textures.OBJECT},
    "toolkit/sass/core/bulk_ops.c": {"TensorMap": tensor_maps.DESCRIPTION},
    "analysis/sm/run.c": {
        "Instruction": cycles.INSTRUCTION, "Step": cycles.STEP, "Stream": cycles._STREAM,
        "Job": cycles._JOB, "Machine": cycles._Machine, "Result": cycles._RESULT,
    },
    "analysis/traffic/groups.c": {
        "Entry": groups.ENTRY, "Class": groups._CLASS, "LaunchAccesses": groups._LaunchAccesses,
        "Visit": groups.VISIT,
    },
    "analysis/traffic/l2.c": {
        "Accesses": l2._Accesses, "Caches": l2._Constants, "Below": l2._Below,
    },
    "analysis/traffic/pieces.c": {"Lines": pieces._Lines},
}  # fmt: skip


# Fields that have another name in C.
NAMES_IN_C = {
    "Fault.instruction": "pc", "Fault.width_bytes": "width", "TensorMap.element_bytes": "element",
    "TensorMap.data_type": "type", "Instruction.yields": "yield",
}  # fmt: skip


def offsets(layout):
    """Offset of each field of a structure in Python, by name."""
    if isinstance(layout, np.dtype):
        return {name: layout.fields[name][1] for name in layout.names}
    return {name: getattr(layout, name).offset for name, *_ in layout._fields_}


@needs_compiler
@pytest.mark.parametrize("source", LAYOUTS)
def test_structures_are_laid_out_in_python_as_in_c(source, tmp_path):
    checks = ["#include <stddef.h>"]
    for name, layout in LAYOUTS[source].items():
        length = getattr(layout, "itemsize", None) or ctypes.sizeof(layout)
        checks.append(f'_Static_assert(sizeof({name}) == {length}, "{name}");')
        checks += [
            f'_Static_assert(offsetof({name}, {member}) == {at}, "{name}.{field}");'
            for field, at in offsets(layout).items()
            for member in [NAMES_IN_C.get(f"{name}.{field}", field)]
        ]
    file = tmp_path / "layouts.c"
    file.write_text("\n".join([f'#include "{ROOT / source}"', *checks]), encoding="utf-8")
    said([*native.compiler(), "-std=c11", "-fsyntax-only", '-DBUILT_FROM=""', file])


@pytest.mark.parametrize("module", [core, cycles, groups, l2, pieces, textures, tensor_maps])
def test_no_structure_of_python_is_without_one_in_c(module):
    listed = [layout for of_source in LAYOUTS.values() for layout in of_source.values()]
    declared = {
        name: layout
        for name, layout in vars(module).items()
        if (isinstance(layout, np.dtype) and layout.names)
        or (isinstance(layout, type) and issubclass(layout, ctypes.Structure))
        if layout is not ctypes.Structure
    }
    assert declared
    assert [name for name, layout in declared.items() if layout not in listed] == []


# What the format of streams has in Python too.
FORMAT = {
    "STEP_RUN": cycles.RUN, "STEP_UNDONE": streams.UNDONE, "LINE_UNDONE": streams.UNDONE_LINE,
    "COMMON": cycles.COMMON, "IN_L2": cycles.IN_L2, "FLAG": cycles.FLAG,
    "SECTORS_OF_LINE * SECTOR": cycles.LINE_BYTES,
}  # fmt: skip


@needs_compiler
def test_the_format_of_streams_is_the_same_in_python_and_in_c(tmp_path):
    checks = [f'_Static_assert({name} == {n}u, "{name}");' for name, n in FORMAT.items()]
    file = tmp_path / "values.c"
    header = ROOT / "analysis/sm/stream_format.h"
    file.write_text("\n".join([f'#include "{header}"', *checks]), encoding="utf-8")
    said([*native.compiler(), "-std=c11", "-fsyntax-only", file])


def test_a_library_is_stale_after_a_change_of_a_header_from_another_folder(tmp_path):
    core, model = tmp_path / "toolkit/sass/core", tmp_path / "analysis/sm"
    for folder in (core, model):
        shutil.copytree(ROOT / folder.relative_to(tmp_path), folder)
    before = [sources_of(folder) for folder in (core, model)]
    assert before == [sources_of(ROOT / folder.relative_to(tmp_path)) for folder in (core, model)]
    header = model / "stream_format.h"
    header.write_text(header.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert all(map(operator.ne, before, [sources_of(folder) for folder in (core, model)]))


# Whatever built the core, and for whichever processor: the same bits.


@pytest.fixture(scope="module")
def flavours(tmp_path_factory):
    """Every build of the core that runs here, each with the build of the timing model."""
    found = []
    for name, command in (("first", native.compiler()), ("zig", zig_of_this_machine())):
        folder = tmp_path_factory.mktemp(name)
        for library, (sources, flags) in native.libraries().items():
            native.compile_library(command, paths(sources), folder / f"{library}.so", flags)
        model = folder / "analysis._cycles.so"
        found += [(path, model) for path in sorted(folder.glob("toolkit*"))]
    return [one for one in found if ctypes.CDLL(str(one[0])).core_runs_here()]


def paths(sources):
    return [ROOT / source for source in sources]


def zig_of_this_machine():
    return list(native._compilers())[-1]


def results(flavour, monkeypatch, folder):
    """Outputs, counters and predicted times of rungs and of random programs."""
    folder.mkdir()
    shutil.copy(flavour[0], folder / "_core.so")
    shutil.copy(flavour[1], folder / "_cycles.so")
    monkeypatch.setattr(core, "__file__", str(folder / "core" / "binding.py"))
    monkeypatch.setattr(cycles, "__file__", str(folder / "sm" / "__init__.py"))
    for cached in (core.library, core.operations, cycles._library):
        cached.cache_clear()
    # those without a workspace, of which the launch is the registry's alone
    plain = [x for x in LADDER if not (x.sharing or x.bulk_tiles or x.max_extent)]
    return [*map(of_a_rung, plain), *map(of_a_program, SEEDS)]


def of_a_rung(variant):
    problem = parse_shape("96x64x40")
    rng = np.random.default_rng(1)
    a, b = (rng.random(s, dtype=np.float32) for s in ((96, 40), (40, 64)))
    geometry = variant.geometry(variant.defaults, problem)
    made = simulate(
        variant.source, variant.entry, grid=geometry.grid, block=geometry.block,
        dynamic_shared_bytes=geometry.dynamic_shared_bytes,
        arguments=[a, b, np.zeros((96, 64), np.float32), np.int32(96), np.int32(64), np.int32(40),
                   np.float32(1), np.float32(0)],
        defines=variant.macros(variant.defaults), arch="sm_80", device="a100-80gb",
    )  # fmt: skip
    return summary(made)


def of_a_program(seed):
    numbers = np.random.default_rng(seed).integers(-(2**31), 2**31, 64).astype(np.int32)
    arguments = [np.zeros(64, np.uint32), numbers, np.int32(64)]
    program = on_a_gpu(seed)
    return summary(
        simulate(program, "run", grid=2, block=45, arguments=arguments, arch="sm_90", predict=False)
    )


def summary(made):
    return [array.tobytes() for array in made.outputs], made.counters, made.predicted


@needs_zig
@pytest.mark.exhaustive
def test_every_compiler_and_flavour_gives_the_same_bits(flavours, monkeypatch, tmp_path):
    assert len(flavours) >= 2
    try:
        first, *others = [
            results(flavour, monkeypatch, tmp_path / str(k)) for k, flavour in enumerate(flavours)
        ]
    finally:
        monkeypatch.undo()
        for cached in (core.library, core.operations, cycles._library):
            cached.cache_clear()
    for flavour, other in zip(flavours[1:], others, strict=True):
        assert other == first, flavour[0]


@pytest.mark.exhaustive  # 2 s
@needs_compiler
def test_the_command_builds_beside_the_sources(tmp_path):
    modules = [f"analysis/{name}.py" for name in ("__init__", "errors", "library")]
    for name in ("toolkit", "analysis/sm", *modules):
        source = ROOT / name
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        else:
            shutil.copy(source, target)
    (tmp_path / "analysis/sm/run.c").write_text("wrong\n", encoding="utf-8")
    for source in (tmp_path / "toolkit/sass/core").glob("*.c"):
        source.write_text("typedef int x;\n", encoding="utf-8")
    done = ran([sys.executable, "-m", "toolkit.native"], cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == f"built {tmp_path / 'toolkit/sass/_core.so'}\n"
    assert done.stderr.startswith(f"error: {tmp_path / 'analysis/_cycles.so'}: ")
    assert "Traceback" not in done.stderr
