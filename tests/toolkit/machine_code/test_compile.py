"""Compilation with NVRTC, and its cache."""

import re
import shlex
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.errors import CompileError, InputError, UnavailableError, UnknownNameError
from kernels import LADDER
from tests.processes import said
from tests.refusals import refusal
from tests.rungs import every_rung
from toolkit.machine_code import compile as compilation
from toolkit.machine_code import compiler_process
from toolkit.machine_code.compile import compile_cubin, supported_architectures
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.include_paths import includes
from toolkit.machine_code.kernel import Kernel
from validation import ROOT

PLAIN = 'extern "C" __global__ void plain(float* x) { x[threadIdx.x] = 1.0f; }\n'

SHARED = """
extern "C" __global__ void shared(float* x) {
    __shared__ float tile[N];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
"""

# 64 values stay alive across the barrier; 2 blocks of 1,024 threads leave 32 registers each
SPILLING = """
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* x) {
    float value[64];
    #pragma unroll
    for (int i = 0; i < 64; i++) value[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 64; i++) x[(63 - i) * 1024 + threadIdx.x] = value[i] * value[(i + 7) % 64];
}
"""

TEMPLATE = """
template <int BM, int BN> __global__ void gemm(float* x) {
    static_assert(BM % 4 == 0, "BM is a multiple of 4");
    __shared__ float tile[BM * BN];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[threadIdx.x * 7 % BM];
}
"""


pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture
def compilations(monkeypatch):
    """The kernels for which the compiler really ran."""
    ran = []
    real = compilation._compile

    def counted(request):
        ran.append(request.kernel)
        return real(request)

    monkeypatch.setattr(compilation, "_compile", counted)
    return ran


def compiled(
    source,
    kernel=None,
    arch="sm_86",
    options=(),
    **defines,
):
    how = {"options": options} if options else {}
    return compile_cubin(source, name="my.cu", kernel=kernel, arch=arch, defines=defines, **how)


def test_a_cubin_is_an_elf_file_with_the_kernel():
    cubin = compiled(PLAIN, "plain")
    assert cubin.image.startswith(b"\x7fELF")
    assert cubin_file(cubin.image).kernels == ["plain"]
    assert (cubin.name, cubin.symbol, cubin.architecture) == ("plain", "plain", "sm_86")
    assert re.fullmatch(r"NVRTC \d+\.\d+(\.\d+)?", cubin.compiler)
    assert cubin.resources.compiler == cubin.compiler
    assert cubin.resources.architecture == "sm_86"


def test_a_name_expression_instantiates_a_template():
    cubin = compiled(TEMPLATE, "gemm<16, 8>")
    assert cubin.name == "gemm<16, 8>"
    assert cubin.symbol == "_Z4gemmILi16ELi8EEvPf"
    assert cubin.resources.static_shared_bytes == 16 * 8 * 4


def test_a_cpp_kernel_is_found_by_its_plain_name():
    assert compiled("__global__ void k(int* x) { *x = 1; }", "k").symbol == "_Z1kPi"


def test_defines_and_options_reach_the_compiler():
    cubin = compile_cubin(
        SHARED, name="my.cu", kernel="shared", arch="sm_86", defines={"N": 64}, options=("-DM=1",)
    )
    assert cubin.resources.static_shared_bytes == 64 * 4
    guarded = "#if FLAG\n" + PLAIN + "#endif"
    assert compiled(guarded, "plain", FLAG=True).symbol == "plain"


def test_an_error_names_file_line_and_the_first_message():
    source = "__global__ void k(float* x) {\n    x[0] = nothing;\n    y = 3;\n}\n"
    with pytest.raises(CompileError) as caught:
        compiled(source, "k")
    assert str(caught.value) == (
        'my.cu, line 2: identifier "nothing" is undefined (and 1 more error)'
    )
    assert 'identifier "y" is undefined' in caught.value.log


def test_a_failed_static_assertion_of_a_template_is_an_error_of_the_source():
    with pytest.raises(CompileError, match=r"my\.cu, line 3: .*BM is a multiple of 4"):
        compiled(TEMPLATE, "gemm<7, 8>")


def test_an_error_of_the_assembler_is_told_in_one_line():
    # 40,000 floats are 0x27100 bytes; a block has 0xc000 = 49,152
    assert refusal(CompileError, compiled, SHARED, "shared", N=40_000) == (
        "my.cu: ptxas: Entry function 'shared' uses too much shared data "
        "(0x27100 bytes, 0xc000 max)"
    )


def test_an_unclosed_brace_is_told_in_one_line():
    assert refusal(CompileError, compiled, "__global__ void k() {", "k") == 'my.cu: expected a "}"'


@pytest.mark.parametrize("arch", ["sm_35", "sm_8", "compute_86", "86", "", "sm_86 "])
def test_an_unknown_architecture_lists_the_known(arch):
    with pytest.raises(UnknownNameError, match=r"unknown architecture .*sm_75, .*sm_90"):
        compiled(PLAIN, "plain", arch)


def test_a_missing_kernel_lists_those_that_are_there():
    source = PLAIN + "__global__ void other(int) {}\n" + TEMPLATE
    assert refusal(UnknownNameError, compiled, source, "plane") == (
        "unknown kernel 'plane': did you mean 'plain'? (known: other, plain, gemm<...>)"
    )


@pytest.mark.parametrize("kernel", ["gemm", "gemm<16>", "gemm<16, 8", "", "gemm<16, 8>; int x"])
def test_a_name_that_is_no_kernel_says_why_and_what_is_there(kernel):
    with pytest.raises(
        InputError, match=r"is not in my\.cu: .*; the kernels there: plain"
    ) as caught:
        compiled(PLAIN + TEMPLATE, kernel)
    assert "\n" not in str(caught.value)


def test_a_source_without_a_kernel_says_so():
    assert "no kernel is defined there" in refusal(InputError, compiled, "", "k")


def test_a_wrong_option_or_define_is_refused_by_name():
    assert "unrecognized option -bogus" in refusal(
        InputError, compiled, PLAIN, "plain", options=("-bogus",)
    )
    assert "define 'A B' = '1'" in refusal(
        InputError,
        compile_cubin,
        PLAIN,
        name="my.cu",
        kernel="plain",
        arch="sm_86",
        defines={"A B": 1},
    )


@pytest.fixture
def another_nvrtc(tmp_path, monkeypatch):
    """Function from the source of a module to a compiler that has it in place of NVRTC."""

    def put(source):
        folder = tmp_path / "cuda" / "bindings"
        folder.mkdir(parents=True)
        for file, text in ((folder.parent / "__init__.py", ""), (folder / "__init__.py", "")):
            file.write_text(text, encoding="utf-8")
        (folder / "nvrtc.py").write_text(source, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(compiler_process, "_idle", {})
        monkeypatch.setenv("GEMM_LADDER_CACHE", str(tmp_path / "cache"))
        compilation._about.cache_clear()

    yield put
    compilation._about.cache_clear()


NO_LIBRARY = """
def nvrtcCreateProgram(*arguments):
    raise RuntimeError("Failure finding libnvrtc.so")
"""


WITHOUT_VERSION = """
from types import SimpleNamespace
FAILED = SimpleNamespace(name="NVRTC_ERROR_OUT_OF_MEMORY")
def __getattr__(name):
    return lambda *arguments: (FAILED,)
"""


def test_an_nvrtc_without_a_version_is_told(another_nvrtc):
    another_nvrtc(WITHOUT_VERSION)
    with pytest.raises(UnavailableError, match="with NVRTC_ERROR_OUT_OF_MEMORY: reinstall"):
        supported_architectures()


@pytest.mark.parametrize("module", ["raise ImportError", NO_LIBRARY])
def test_without_nvrtc_the_remedy_is_named(module, another_nvrtc):
    another_nvrtc(module)
    with pytest.raises(UnavailableError, match=r"not installed: pip install .*nvidia-cuda-nvrtc"):
        supported_architectures()


def test_an_nvrtc_that_was_removed_meanwhile_is_told(another_nvrtc, monkeypatch):
    version, known = compilation.compiler_version(), supported_architectures()
    another_nvrtc("raise ImportError")
    monkeypatch.setattr(compilation, "compiler_version", lambda: version)
    monkeypatch.setattr(compilation, "supported_architectures", lambda: known)
    with pytest.raises(UnavailableError, match=r"not installed: pip install .*nvidia-cuda-nvrtc"):
        compiled(PLAIN, "plain")


def test_an_nvrtc_that_crashes_at_once_is_told(another_nvrtc):
    another_nvrtc("import os\nos.abort()")
    with pytest.raises(UnavailableError, match="compiler cannot be started: status -6"):
        supported_architectures()


def test_the_remedy_installs_what_the_project_pins():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = shlex.split(compilation.REMEDY)[2:]
    assert len(installed) == 2
    assert set(installed) <= {one.partition(";")[0] for one in project["dependencies"]}


def test_a_second_compilation_is_answered_from_the_cache(compilations):
    assert compiled(TEMPLATE, "gemm<16, 8>") == compiled(TEMPLATE, "gemm<16, 8>")
    assert compilations == ["gemm<16, 8>"]


@pytest.mark.parametrize(
    "change",
    [
        {"source": SHARED + "\n"},
        {"name": "other.cu"},
        {"kernel": "::shared"},
        {"arch": "sm_80"},
        {"defines": {"N": 257}},
        {"options": ()},
    ],
)
def test_whatever_decides_the_code_decides_the_entry(change, compilations):
    call = {
        "source": SHARED,
        "name": "my.cu",
        "kernel": "shared",
        "arch": "sm_86",
        "defines": {"N": 256},
        "options": ("-lineinfo",),
    }
    for arguments in (call, call | change, call):
        compile_cubin(**arguments)
    assert len(compilations) == 2


def test_another_compiler_has_other_entries(compilations, monkeypatch):
    compiled(PLAIN, "plain")
    monkeypatch.setattr(compilation, "compiler_version", lambda: "NVRTC 99.0.1")
    compiled(PLAIN, "plain")
    assert len(compilations) == 2


@pytest.mark.parametrize("where", [None, "."])  # of the folder, or where a compilation begins
def test_a_source_that_includes_a_file_is_compiled_each_time(
    where, tmp_path, compilations, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for size in (64, 128):
        (tmp_path / "size.h").write_text(f"#define N {size}\n")
        source, option = f'#include "size.h"\n{SHARED}', f"-I{where or tmp_path}"
        assert compiled(source, options=(option,)).resources.static_shared_bytes == 4 * size
    assert len(compilations) == 2


def test_a_source_that_includes_only_our_own_headers_is_kept(tmp_path, compilations):
    (tmp_path / "math.h").write_text("#error a file goes before our header")
    source = f'#include <math.h>\n#  include "cuda_runtime.h"\n#define N 64\n{SHARED}'
    for _ in range(2):
        compile_cubin(
            source,
            name="my.cu",
            kernel="shared",
            arch="sm_86",
            folder=tmp_path,
        )
    assert len(compilations) == 1
    assert includes('#include <math.h>\n#include "size.h"')
    assert includes("#include <math_constants.h>")


def test_the_file_of_a_rung_finds_what_its_source_has_inserted():
    rung = LADDER[4]
    path = ROOT / "kernels/sgemm" / rung.file
    text = path.read_text(encoding="utf-8")
    found = compile_cubin(text, name=rung.file, kernel=rung.entry, arch="sm_90", folder=path.parent)
    inserted = compile_cubin(rung.source, name=rung.file, kernel=rung.entry, arch="sm_90")
    assert includes(text)
    assert found.code == inserted.code


@every_rung
def test_the_compiler_reads_no_file_beside_the_source_of_a_rung(variant):
    assert not includes(variant.source)  # as its machine code is kept


def test_two_processes_may_compile_the_same_kernel_at_once(empty_cache):
    program = (
        "from toolkit.machine_code.compile import compile_cubin\n"
        f"source = {SPILLING!r}\n"
        "c = compile_cubin(source, name='my.cu', kernel='spilling', arch='sm_90')\n"
        "print(c.resources.registers_per_thread)\n"
    )

    def run(_):
        return said([sys.executable, "-c", program], cwd=ROOT)

    with ThreadPoolExecutor() as pool:
        assert set(pool.map(run, range(2))) == {"32\n"}
    kept = sorted(path.suffix for path in empty_cache.iterdir())
    assert kept == [".compiled", ".cubin", ".nvrtc"]  # no temporary file is left


def test_importing_the_module_loads_no_heavy_package():
    program = (
        "import sys, toolkit.machine_code.compile, toolkit.store.profile_json\n"
        "print([m for m in ('numpy', 'pydantic', 'cuda.bindings') if m in sys.modules])"
    )
    assert said([sys.executable, "-c", program], cwd=ROOT) == "[]\n"


# --- a compiler that does not end, or crashes ----------------------------------------------------

DOUBLING = "".join(f"#define M{n} M{n - 1} M{n - 1}\n" for n in range(1, 28))
ENDLESS = f"#define M0 x[0] += 1;\n{DOUBLING}__global__ void k(float *x) {{ M27 }}"


def test_a_compilation_that_does_not_end_is_stopped_after_a_note(monkeypatch, caplog):
    monkeypatch.setattr(compiler_process, "NOTICE_S", 0.1)
    monkeypatch.setattr(compiler_process, "LIMIT_S", 0.5)
    monkeypatch.setattr(compiler_process, "_told", set())
    for _ in range(2):  # the note comes once
        assert refusal(CompileError, compiled, ENDLESS, "k").startswith(
            "my.cu did not compile within 0.5 s, and the compiler was"
        )
    assert caplog.messages == ["note: compiling my.cu takes long: it is stopped if it takes 0.5 s"]
    monkeypatch.setattr(compiler_process, "LIMIT_S", 60)
    assert compiled(PLAIN, "plain").symbol == "plain"


def test_a_compiler_that_crashes_is_told_in_a_line(tmp_path, monkeypatch):
    crashing = tmp_path / "crashing.py"
    crashing.write_text("import os, sys\nsys.stdin.buffer.read(1)\nos.abort()\n", encoding="utf-8")
    monkeypatch.setattr(compiler_process, "__file__", str(crashing))
    monkeypatch.setattr(compiler_process, "_idle", {})
    assert refusal(CompileError, compiled, PLAIN, "plain").startswith(
        "my.cu: the compiler crashed (status -6): compile"
    )


# --- one kernel, and machine code from elsewhere ----------------------------------------------


def test_without_a_name_the_only_kernel_is_taken():
    cubin = compiled(PLAIN)
    assert (cubin.name, cubin.symbol) == ("plain", "plain")
    mangled = "__device__ void f() {}\n__global__ void only(int n) {}"
    cubin = compiled(mangled)
    assert (cubin.name, cubin.symbol) == ("only", "_Z4onlyi")


def test_without_a_name_several_kernels_are_listed():
    assert refusal(InputError, compiled, PLAIN + "__global__ void b() {}") in (
        "my.cu holds 2 kernels: say which one, by name or by number (-k 1): 1 plain, 2 b",
        "my.cu holds 2 kernels: say which one, by name or by number (-k 1): 1 b, 2 plain",
    )


def test_without_a_name_a_template_is_no_kernel():
    assert refusal(InputError, compiled, TEMPLATE).startswith(
        "my.cu holds no kernel, only gemm<...> (a templ"
    )
    with pytest.raises(InputError, match=r"^my\.cu holds no kernel$"):
        compiled("__device__ int x;")


def test_kernels_in_namespaces_are_listed_as_they_are_written():
    source = """namespace deep { namespace er {
        template <int N> __global__ void scale(float *x) { x[0] *= N; }
        template __global__ void scale<3>(float *);
        __global__ void clear(float *x) { x[0] = 0; }
    } }"""
    _, _, listed = refusal(InputError, compiled, source).partition("(-k 1): ")
    names = [one.partition(" ")[2] for one in listed.split(", ")]
    assert sorted(names) == ["deep::er::clear", "deep::er::scale<3>"]


@pytest.mark.parametrize("option", ["-arch=sm_80", "--gpu-architecture=compute_80"])
def test_an_option_for_another_architecture_is_refused(option):
    assert "the options compile for sm_80, not for sm_90: leave out" in refusal(
        InputError, compiled, PLAIN, "plain", "sm_90", options=(option,)
    )


@pytest.mark.parametrize("kernel", ["plain", None])
@pytest.mark.parametrize("option", ["-dlto", "--fdevice-syntax-only"])
def test_options_that_leave_no_machine_code_are_refused(option, kernel):
    with pytest.raises(InputError, match=r"no machine code|holds no kernel"):
        compiled(PLAIN, kernel, "sm_90", options=(option,))


@pytest.mark.parametrize("capability", supported_architectures())
def test_a_cubin_says_what_it_is_for(capability):
    arch = f"sm_{capability}"
    made = compiled(PLAIN, "plain", arch)
    taken = Kernel.from_image(made.image, "plain")
    assert (taken.architecture, taken.symbol, taken.name) == (arch, "plain", "plain")
    assert taken.compiler == "ptxas 13.0.88"
    assert taken.resources == replace(made.resources, compiler="ptxas 13.0.88")


def test_a_cubin_of_an_older_abi_keeps_its_architecture_in_the_first_byte():
    image = bytearray(compiled(PLAIN, "plain").image)
    image[8] = 7  # EI_ABIVERSION of CUDA 12
    image[48:52] = (0x5A055A).to_bytes(4, "little")  # e_flags that nvcc 12 writes for sm_90
    assert Kernel.from_image(bytes(image), "plain").architecture == "sm_90"


def test_a_kernel_of_a_cubin_is_named_by_its_symbol_or_its_plain_name():
    image = compiled(TEMPLATE, "gemm<4, 8>").image
    (symbol,) = cubin_file(image).kernels
    for name in (symbol, "gemm<4, 8>", "gemm<4,8>", "gemm", "1", None):
        found = Kernel.from_image(image, name)
        assert (found.symbol, found.name) == (symbol, "gemm<4, 8>")
    for name in ("gemm<4>", "gem", "2"):
        assert "gemm<4, 8>" in refusal(UnknownNameError, Kernel.from_image, image, name)


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (b"", "it is not an ELF file"),
        (PLAIN.encode(), "it is not an ELF file"),
        (b"\x7fELF", "it is damaged"),
        (Path(sys.executable).resolve().read_bytes()[:100_000], "it is an ELF file, but holds no"),
    ],
)
def test_bytes_that_are_no_cubin_are_refused(image, reason):
    with pytest.raises(InputError, match=f"^the machine code is not a cubin: {reason}"):
        Kernel.from_image(image)


def test_a_truncated_image_is_told():
    image = compiled(PLAIN, "plain").image
    for size in (0, 3, 64, 1000, len(image) // 2, len(image) - 200):
        with pytest.raises(InputError):
            Kernel.from_image(image[:size])
