"""What a source includes, and the remedies where it is not found."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.errors import CompileError
from toolkit import headers
from toolkit.compile import compile_cubin
from toolkit.headers import explained, include_options, includes


@pytest.mark.parametrize(
    "text", ['#include "a.h"', "# include <a.h>", "#if __has_include(<a.h>)", "--pre-include=a.h"]
)
def test_what_reads_other_files_is_seen(text: str) -> None:
    assert includes(text)
    assert not includes("// nothing of the kind")


def refused(source: str, folder: Path | None = None) -> str:
    with pytest.raises(CompileError) as caught:
        compile_cubin(source, name="my.cu", kernel=None, arch="sm_86", folder=folder)
    return str(caught.value)


def test_a_header_beside_the_source_is_found(tmp_path: Path) -> None:
    (tmp_path / "my.cuh").write_text("#define BLOCK 64\n", encoding="utf-8")
    source = '#include "my.cuh"\n__global__ void k(float *x) { x[BLOCK] = 1; }'
    assert compile_cubin(source, name="my.cu", kernel="k", arch="sm_86", folder=tmp_path)
    assert refused(source) == (
        "my.cu, line 1: there is no my.cuh beside the source: name its folder: --option -IFOLDER"
    )


def test_headers_of_the_host_and_host_code_are_named() -> None:
    remedy = "put it between #ifndef __CUDACC_RTC__ and #endif"
    assert refused("\n#include <vector>\n") == (
        f"my.cu, line 2: vector is a header of the host: {remedy}"
    )
    assert refused("__global__ void k() {}\nint main() { return 0; }") == (
        f"my.cu, line 2: this is host code, and only kernels are compiled here: {remedy}"
    )


def test_headers_of_cuda_are_found_or_their_wheel_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(headers, "_folders_of_cuda", lambda: ())
    source = "#include <cuda_fp16.h>\n__global__ void k(__half *x) { *x = __float2half(1); }"
    assert refused(source) == (
        "my.cu, line 1: cuda_fp16.h of CUDA is not installed: pip install "
        "'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*'"
    )
    (tmp_path / "cuda_fp16.h").write_text("typedef unsigned short __half;\n", encoding="utf-8")
    monkeypatch.setattr(headers, "_folders_of_cuda", lambda: (tmp_path,))
    assert include_options(source, None) == [f"--include-path={tmp_path}"]
    source = "#include <cuda_fp16.h>\n__global__ void k(__half *x) { *x = 1; }"
    assert compile_cubin(source, name="my.cu", kernel="k", arch="sm_86")


def test_headers_of_a_toolkit_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    include = tmp_path / "include"
    (include / "cccl").mkdir(parents=True)
    (include / "cuda_fp16.h").touch()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(headers, "_folders_of_wheel", list)
    assert headers._folders_of_cuda.__wrapped__() == (include, include / "cccl")


def test_other_messages_stay_as_they_are() -> None:
    assert explained("expected a ';'") == "expected a ';'"
