"""Files that a source includes, and the remedies for files that are not found."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from analysis.errors import CompileError, InputError
from tests.refusals import refusal
from tests.sampling import exhaustive
from toolkit import simulate
from toolkit.machine_code import include_paths as headers
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.host_macros import HEADER_OF, HOST_HEADERS
from toolkit.machine_code.include_paths import explained, include_options, includes
from toolkit.store.user_files import MOST_BYTES


@pytest.mark.parametrize(
    "text",
    [
        '#include "a.h"',
        '#/**/include "a.h"',
        '#incl\\\nude "a.h"',
        '#incl\\\r\nude "a.h"',
        '??=incl??/\nude "a.h"',
        '%:include "a.h"',
        "#include_next <a.h>",
        "#include NAME",
        "#if __has_inc\\\nlude(<a.h>)",
        "--pre-include=a.h",
        "--use-pch=a.pch",
        "--ptxas-options=--options-file=a",
    ],
)
def test_what_reads_other_files_is_seen(text):
    assert includes(text)
    assert not includes("#define A 1 // nothing of the kind\n")


def refused(source, folder=None):
    with pytest.raises(CompileError) as caught:
        compile_cubin(source, name="my.cu", kernel=None, arch="sm_86", folder=folder)
    return str(caught.value)


def test_a_header_beside_the_source_is_found(tmp_path):
    (tmp_path / "my.cuh").write_text("#define BLOCK 64\n", encoding="utf-8")
    source = '#include "my.cuh"\n__global__ void k(float *x) { x[BLOCK] = 1; }'
    assert compile_cubin(source, name="my.cu", kernel="k", arch="sm_86", folder=tmp_path)
    assert refused(source) == (
        "my.cu, line 1: there is no my.cuh beside the source: name its folder: --option -IFOLDER"
    )


BEGINNING = "".join(f"#include <{name}>\n" for name in HOST_HEADERS)


@pytest.mark.parametrize("with_cuda", [True, False])
def test_what_device_code_takes_from_the_host_is_there(monkeypatch, with_cuda):
    if not with_cuda:
        monkeypatch.setattr(headers, "_folders_of_cuda", lambda: ())
    uses = "; ".join(f"sum += {name}" for name in HEADER_OF if not name.endswith("_t"))
    types = "; ".join(f"sum += ({name})n" for name in HEADER_OF if name.endswith("_t"))
    source = f"""{BEGINNING}
    __global__ void k(double *x, std::uint64_t n, std::size_t m) {{
        double sum = 0;
        {uses};
        {types};
        assert(n > 0);
        if (m > n) printf("%d", (int)n);
        x[0] = sum;
    }}"""
    assert compile_cubin(source, name="my.cu", kernel="k", arch="sm_86")


@pytest.mark.skipif(not headers._folders_of_cuda(), reason="needs CUDA's headers")
@pytest.mark.parametrize(
    "header", ["cuda_fp16.h", *map(exhaustive, ("cuda_bf16.h", "cooperative_groups.h"))]
)
def test_the_hosts_headers_stand_beside_those_of_cuda(header):
    for first, last in ((f"#include <{header}>\n", BEGINNING), (BEGINNING, f"#include <{header}>")):
        source = f"{first}{last}\n__global__ void k(uint8_t *x) {{ x[0] = INT8_MAX; }}"
        assert compile_cubin(source, name="my.cu", kernel="k", arch="sm_86")


VALUES = {
    "INFINITY": np.inf,
    "NAN": np.nan,
    "FLT_MAX": np.finfo(np.float32).max,
    "FLT_MIN": np.finfo(np.float32).tiny,
    "FLT_EPSILON": np.finfo(np.float32).eps,
    "DBL_MAX": np.finfo(np.float64).max,
    "DBL_MIN": np.finfo(np.float64).tiny,
    "DBL_EPSILON": np.finfo(np.float64).eps,
    "M_PI": np.pi,
    "M_E": np.e,
    "M_LOG2E": 1 / np.log(2),
    "M_LN2": np.log(2),
    "M_1_PI": 1 / np.pi,
    "M_2_SQRTPI": 2 / np.sqrt(np.pi),
    "M_SQRT1_2": np.sqrt(0.5),
    **{f"INT{n}_MIN": np.iinfo(f"i{n // 8}").min for n in (8, 16, 32)},
    **{f"INT{n}_MAX": np.iinfo(f"i{n // 8}").max for n in (8, 16, 32)},
    **{f"UINT{n}_MAX": np.iinfo(f"u{n // 8}").max for n in (8, 16, 32)},
    "SHRT_MIN": -(2**15),
    "UINT_MAX": 2**32 - 1,
    "LLONG_MIN": -(2.0**63),
    "ULLONG_MAX": 2.0**64,
}


@cache
def values_on_a_gpu():
    """All of them from one kernel: to compile it takes as long as for a single one."""
    source = "#include <cmath>\n#include <cfloat>\n#include <climits>\n#include <cstdint>\n"
    stores = "\n".join(f"x[{n}] = (double){name};" for n, name in enumerate(VALUES))
    source += f"__global__ void k(double *x) {{\n{stores}\n}}"
    (found,) = simulate(
        source, grid=1, block=1, arguments=[np.zeros(len(VALUES))], predict=False
    ).outputs
    return dict(zip(VALUES, found, strict=True))


@pytest.mark.parametrize("name", VALUES)
def test_the_values_are_those_of_the_host(name):
    found, value = values_on_a_gpu()[name], VALUES[name]
    assert found == value or np.isnan([found, value]).all()


def test_a_name_that_is_not_defined_comes_with_its_header():
    assert refused("__global__ void k(float *x) { *x = INFINITY; }") == (
        'my.cu, line 1: identifier "INFINITY" is undefined: #include <math.h>'
    )
    assert refused("__global__ void k(uint32_t *x) { *x = 1; }").startswith(
        'my.cu, line 1: identifier "uint32_t" is undefined: #include <stdint.h> (and '
    )


def test_references_that_cuda_12_removed_are_named():
    source = "texture<float, 2> t;\n__global__ void k(float *x) { *x = tex2D(t, 0, 0); }"
    assert refused(source).startswith(
        "my.cu, line 1: CUDA 12 has no texture references: take a cudaTextureObject_t as a "
        "parameter"
    )


def test_headers_of_cuda_are_found_or_their_wheel_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(headers, "_folders_of_cuda", lambda: ())
    source = "#include <cuda_fp16.h>\n__global__ void k(__half *x) { *x = __float2half(1); }"
    assert refused(source) == (
        "my.cu, line 1: cuda_fp16.h of CUDA is not installed: pip install "
        "'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*'"
    )
    source = "#include <curand_kernel.h>\n__global__ void k(curandState *x) {}"
    assert refused(source) == (
        "my.cu, line 1: curand_kernel.h of CUDA is not installed: pip install "
        "'nvidia-curand==10.4.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*'"
    )
    source = "#include <cuda_fp16.h>\n__global__ void k(__half *x) { *x = __float2half(1); }"
    (tmp_path / "cuda_fp16.h").write_text("typedef unsigned short __half;\n", encoding="utf-8")
    monkeypatch.setattr(headers, "_folders_of_cuda", lambda: (tmp_path,))
    assert include_options(source, None) == [f"--include-path={tmp_path}"]
    source = "#include <cuda_fp16.h>\n__global__ void k(__half *x) { *x = 1; }"
    assert compile_cubin(source, name="my.cu", kernel="k", arch="sm_86")


def test_a_header_of_the_user_may_begin_like_one_of_cuda():
    source = '#include "cudacommon.h"\n__global__ void k(int *x) { *x = common(); }'
    assert refused(source) == (
        "my.cu, line 1: there is no cudacommon.h beside the source: name its folder: "
        "--option -IFOLDER"
    )


def toolkit_in(folder):
    """The folder of headers of a CUDA toolkit."""
    include = folder / "include"
    (include / "cccl" / "nv").mkdir(parents=True)
    (include / "cccl" / "nv" / "target").touch()
    (include / "cuda_fp16.h").touch()
    return include


def test_a_wheel_without_the_library_of_cpp_comes_behind_a_toolkit(monkeypatch, tmp_path):
    wheel = tmp_path / "wheel" / "cuda_fp16.h"
    wheel.parent.mkdir()
    wheel.touch()
    include = toolkit_in(tmp_path / "toolkit")
    monkeypatch.setenv("CUDA_HOME", str(include.parent))
    monkeypatch.setattr(headers, "files_of_wheel", lambda *names: [wheel])
    assert headers._folders_of_cuda.__wrapped__() == (include, include / "cccl")
    (include / "cuda_fp16.h").unlink()
    monkeypatch.setattr(headers.shutil, "which", lambda name: None)
    assert headers._folders_of_cuda.__wrapped__()[0] in (
        wheel.parent,
        Path("/usr/local/cuda/include"),
    )


def test_headers_of_a_toolkit_are_found(monkeypatch, tmp_path):
    include = toolkit_in(tmp_path)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(headers, "files_of_wheel", lambda *names: [])
    assert headers._folders_of_cuda.__wrapped__() == (include, include / "cccl")


def test_other_messages_stay_as_they_are():
    assert explained("expected a ';'") == "expected a ';'"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/dev/zero", "it is a device or a pipe: copy the content into a file, and give that"),
        ("pipe", "it is a device or a pipe: copy the content into a file, and give that"),
        ("large", "it has 268 MB, and at most 268 MB are read"),
    ],
)
@pytest.mark.parametrize("how", ["include", "nested", "folder", "option"])
def test_a_source_that_includes_what_may_never_end_is_refused(how, path, reason, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    place = tmp_path / path  # which an absolute path replaces
    source, options = f'#include "{path}"\n', ["-lineinfo"]
    if how == "nested":
        (tmp_path / "nested.cuh").write_text(source, encoding="utf-8")
        source = '#include "nested.cuh"\n'
    elif how == "folder":
        source, options = f"#include <{path}>\n", [f"-I{tmp_path}"]
    elif how == "option":
        source, options = "", [f"--pre-include={place}"]
    folder = None if how == "folder" else tmp_path
    code = f"{source}__global__ void k() {{}}"
    settings = {"name": "k.cu", "kernel": None, "arch": "sm_90", "folder": folder}
    said = refusal(InputError, compile_cubin, code, options=options, **settings)
    assert said == f"k.cu: {place}, which it includes, cannot be read: {reason}"
