"""Kernels of Numba, compiled with no GPU: outputs are those of NumPy, lines those of Python."""

from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

pytest.importorskip("numba_cuda")

from analysis.errors import CompileError, InputError
from tests.refusals import refusal
from toolkit import check, simulate
from toolkit.frontends.scripts import script_kernel

with catch_warnings():
    simplefilter("ignore")  # of the packages, about each other
    from tests.toolkit.frontends.kernels import of_numba as kernels


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_saxpy_gets_seven_parameters_per_array():
    x, y = normal(1000), normal(1000, seed=1)
    found = simulate(kernels.saxpy, grid=4, block=256, arguments=[np.float32(2), x, y])
    np.testing.assert_allclose(found.outputs[1], 2 * x + y, rtol=1e-6)
    assert len(found.cubin.parameters) == 15  # a, and 7 of each array with one axis
    assert ("of_numba.py", 10) in found.lines
    assert "y[i] = a * x[i] + y[i]" in found.cubin.source.splitlines()[9]


def test_a_stencil_reads_two_axes():
    x = normal(60, 100)
    found = simulate(kernels.stencil, grid=(4, 13), block=(16, 8), arguments=[x, np.zeros_like(x)])
    expected = np.zeros_like(x)
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    expected[1:-1, 1:-1] = around * np.float32(0.25)
    np.testing.assert_allclose(found.outputs[1], expected, rtol=1e-5, atol=1e-6)


def test_a_reduction_uses_shared_memory():
    x = normal(2560)
    found = simulate(kernels.sums, grid=10, block=256, arguments=[x, np.zeros(10, np.float32)])
    np.testing.assert_allclose(found.outputs[1], x.reshape(10, 256).sum(axis=1), rtol=1e-4)
    assert found.resources.static_shared_bytes == 1024  # 256 floats


def test_arrays_in_fortran_order_have_their_strides():
    x = np.asfortranarray(normal(30, 7))
    found = simulate(kernels.scale, grid=1, block=32, arguments=[x, 2.0])
    np.testing.assert_array_equal(found.outputs[0], 2 * x)


def test_findings_name_the_argument_and_the_line():
    x, y = normal(256), normal(100)
    (first, *_) = check(kernels.saxpy, grid=1, block=256, arguments=[np.float32(2), x, y]).findings
    assert "argument 2 `y`, float32[100]" in first.message
    assert "of_numba.py, line 10" in first.message


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"arguments": [1]}, "scale takes x, factor, and 1 arguments were given"),
        ({"block": None}, "scale takes grid and block, in blocks and in threads: give both"),
        ({"arguments": [np.zeros((4, 4))[:, ::2], 2.0]}, "argument 0 `x` is a view with gaps"),
        ({"defines": {"N": 1}}, "scale: Numba has no defines"),
        ({"grid": len}, "scale takes grid and block"),
    ],
)
def test_a_launch_that_numba_would_not_make_is_refused(changed, said):
    launch = {"grid": 1, "block": 32, "arguments": [normal(4, 4), 2.0]} | changed
    assert said in refusal(InputError, simulate, kernels.scale, **launch)


def test_a_signature_that_compiles_at_once_is_named(tmp_path):
    script = tmp_path / "eager.py"
    script.write_text(
        "from numba import cuda\n@cuda.jit('void(float32[:])')\ndef k(x):\n    x[0] = 1\n"
    )
    said = refusal(InputError, script_kernel, f"{script}:k")
    assert "line 2 stops when it is imported: CudaSupportError: " in said
    assert "leave out the signature of @cuda.jit, which compiles at once" in said


def test_functions_that_a_kernel_calls_are_compiled_with_no_gpu():
    x = normal(1000)
    arguments = [x, np.zeros_like(x)]
    found = simulate(kernels.half_squares, grid=4, block=256, arguments=arguments)
    np.testing.assert_allclose(found.outputs[1], x * x / 2, rtol=1e-6)


def test_a_mistake_has_its_line():
    said = refusal(
        CompileError, simulate, kernels.mistaken, grid=1, block=32, arguments=[normal(4)]
    )
    assert said == (
        "of_numba.py, line 49: Numba cannot compile mistaken: NameError: name 'nothing' is not "
        "defined"
    )
