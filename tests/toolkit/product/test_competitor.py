"""`fp32x_product` on a made-up GPU."""

import warnings

import numpy as np
import pytest

from tests.toolkit.product import made_up_gpu
from tests.toolkit.product.made_up_gpu import MadeUpGpu, new
from toolkit.product.competitor import fp32x_product

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
        with fp32x_product([*addresses, np.int32(M), np.int32(N), np.int32(K)]) as product:
            c[...] = np.nan
            product()
            np.testing.assert_array_equal(c, K)


def test_it_leaves_the_filters_of_warnings_as_they_are(machine):
    a, b, c = (new(shape, 1.0) for shape in ((M, K), (K, N), (M, N)))
    addresses = [machine.gpu.place(one).ctypes.data for one in (a, b, c)]
    with warnings.catch_warnings():
        before = list(warnings.filters)
        with fp32x_product([*addresses, M, N, K]):
            assert warnings.filters == before
        assert warnings.filters == before
