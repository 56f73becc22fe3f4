"""cuBLAS through nvmath's bindings, which are made up in conftest.py."""

import sys

import numpy as np
import pytest

from analysis.errors import LaunchError, UnavailableError
from analysis.problem import parse_shape
from toolkit.gpu.context import Gpu
from toolkit.gpu.cublas import Cublas, tile_of


def test_the_product_is_row_major(cuda, cublas):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.arange(12, dtype=np.float32).reshape(3, 4)
    c = np.full((2, 4), np.nan, np.float32)
    with Gpu() as gpu, Cublas() as library:
        buffers = [gpu.upload(matrix) for matrix in (a, b, c)]
        library.sgemm(parse_shape("2x4x3"), *buffers)()
        gpu.download(buffers[2], into=c)
    assert c.tolist() == (a @ b).tolist()


def test_the_version_is_dotted(cuda, cublas):
    with Gpu(), Cublas() as library:
        assert library.version == "13.1.2"  # 130102


def test_the_handle_is_given_back(cuda, cublas):
    with Gpu(), Cublas():
        assert cublas.handles == 1
    assert cublas.handles == 0


def test_a_broken_context_does_not_hide_what_broke_it(cuda, cublas):
    with Gpu(), Cublas() as library:
        launch = library.sgemm(parse_shape("1"), 1, 2, 3)
        cuda.fault()
        with pytest.raises(LaunchError, match=r"^cuBLAS: cuCtxSynchronize .* encountered$"):
            launch()


@pytest.mark.parametrize(
    "error", [RuntimeError("no libcublas.so\nat all"), OSError(), ImportError("broken")]
)
def test_a_library_that_does_not_load_is_unavailable(cublas, error, monkeypatch):
    def create():
        raise error

    monkeypatch.setattr(cublas, "create", create)
    with pytest.raises(UnavailableError, match=r"^cuBLAS cannot be used \([^\n]+\): pip install"):
        Cublas().__enter__()


def test_bindings_that_are_not_installed_are_unavailable(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvmath", None)
    with pytest.raises(UnavailableError, match="pip install 'nvmath-python"):
        Cublas().__enter__()


@pytest.mark.parametrize(
    ("kernel", "tile"),
    [
        # (rows, columns) of the row-major C: the name's first number counts its columns
        ("ampere_sgemm_128x64_nn", (64, 128)),
        ("volta_sgemm_32x128_nn", (128, 32)),
        ("ampere_sgemm_32x32_sliced1x4_nn", (32, 32)),
        ("cutlass_80_simt_sgemm_128x128_8x5_nn_align1", (128, 128)),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1)", (128, 256)),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x64x8_stage3_warpsize1x2x1", (64, 32)),
        ("cutlass3x_sm90_simt_sgemm_f32_f32_f32_f32_f32_64x128x8_1x1x1_0_nnn", (128, 64)),
        ("nvjet_ssss_128x64_16x4_1x1_h_bz_NNN", (64, 128)),
        ("void gemmSN_NN_kernel<float, (int)128, (int)2, (int)4, (int)8>(T1)", None),
        ("void gemv2T_kernel_val<int, int, float, (int)128, (int)16>(T1)", None),
        ("void splitKreduce_kernel<(int)32, (int)16, int, float>(T1)", None),
        ("sgemm_tiled", None),
    ],
)  # fmt: skip
def test_a_tile_is_read_from_the_name_of_a_kernel(kernel, tile):
    assert tile_of(kernel) == tile
