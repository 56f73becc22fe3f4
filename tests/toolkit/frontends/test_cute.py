"""A kernel of the CuTe DSL, compiled with no GPU."""

import numpy as np
import pytest

pytest.importorskip("cutlass")


from analysis.errors import InputError
from tests.refusals import refusal
from toolkit import simulate


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("cute"))  # where cute.compile leaves the cubin
        from tests.toolkit.frontends.kernels import of_cute

        return of_cute


def test_tensors_of_static_layout_are_pointers(kernels):
    x, y = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    found = simulate(kernels.compiled, grid=4, arguments=[x, y, np.zeros_like(x), 1000])
    np.testing.assert_array_equal(found.outputs[2], x + y)
    assert found.cubin.name == "add_kernel"
    assert found.geometry.block == (256, 1, 1)
    assert "c[i] = a[i] + b[i]" in found.cubin.source.splitlines()[14]
    assert ("of_cute.py", 15) in found.lines


def test_what_is_missing_is_named(kernels):
    x = np.zeros(1000, np.float32)
    arguments = [x, x, x, 1000]

    def said(compiled, **changed):
        launch = {"grid": 4, "arguments": arguments} | changed
        return refusal(InputError, simulate, compiled, **launch)

    assert "cute.compile kept no cubin: compile it with options=" in said(kernels.without_cubin)
    assert "add_kernel takes a grid" in said(kernels.compiled, grid=None)
    assert "has 4 parameters, and 3 arguments" in said(kernels.compiled, arguments=[x, x, x])
    assert "compiled for blocks of 256×1×1 threads" in said(kernels.compiled, block=128)
    assert "its parameter has 4 bytes" in said(kernels.compiled, arguments=[x, x, x, 1j])
