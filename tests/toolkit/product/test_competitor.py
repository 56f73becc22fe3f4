"""`matmul_product` on a made-up GPU."""

import pickle
import warnings

import numpy as np
import pytest

from analysis.problem import Gemm
from kernels.selection import parse_selection
from tests.toolkit.product import made_up_gpu
from tests.toolkit.product.made_up_gpu import MadeUpGpu, new
from toolkit.gpu.cublas import cublas_product
from toolkit.product.competitor import matmul_product, task_of_competitor

M, N, K = 40, 36, 24


@pytest.fixture
def machine(monkeypatch):
    gpu = MadeUpGpu()
    yield made_up_gpu.installed(monkeypatch, gpu)
    assert gpu.errors == []


def test_it_says_nothing_of_another_precision(machine):
    a, b, c = (new(shape, 1.0) for shape in ((M, K), (K, N), (M, N)))
    addresses = [machine.gpu.place(one).ctypes.data for one in (a, b, c)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with matmul_product(
            [*addresses, np.int32(M), np.int32(N), np.int32(K)], "fp32x"
        ) as product:
            c[...] = np.nan
            product()
            np.testing.assert_array_equal(c, K)


def test_it_leaves_the_filters_of_warnings_as_they_are(machine):
    a, b, c = (new(shape, 1.0) for shape in ((M, K), (K, N), (M, N)))
    addresses = [machine.gpu.place(one).ctypes.data for one in (a, b, c)]
    with warnings.catch_warnings():
        before = list(warnings.filters)
        with matmul_product([*addresses, M, N, K], "fp32x"):
            assert warnings.filters == before
        assert warnings.filters == before


@pytest.mark.parametrize(
    ("name", "library"), [("best-fp32x", matmul_product), ("cublas", cublas_product)]
)
def test_the_library_of_a_reference_follows_from_its_precision(name, library):
    shape = Gemm(m=M, n=N, k=K)
    task = pickle.loads(pickle.dumps(task_of_competitor(parse_selection(name), shape, shape, 1)))
    assert getattr(task.library, "func", task.library) is library
