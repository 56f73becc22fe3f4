"""Kernels of CuPy, whose text is compiled here: outputs are those of NumPy."""

from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

pytest.importorskip("cupy")

import cupy

from analysis.errors import InputError, UnsupportedError
from tests.refusals import refusal
from tests.toolkit.frontends.kernels.store_triton import CUBIN
from toolkit import simulate

with catch_warnings():
    simplefilter("ignore")  # of the packages, about each other
    from tests.toolkit.frontends.kernels import of_cupy as kernels


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_raw_kernel_has_the_lines_of_the_python_file():
    x = normal(1000)
    found = simulate(kernels.scale, grid=4, block=256, arguments=[x, np.float32(3), 1000])
    np.testing.assert_array_equal(found.outputs[0], 3 * x)
    assert "x[i] *= factor" in found.cubin.source.splitlines()[8]
    assert ("of_cupy.py", 9) in found.lines


def test_a_float_of_python_would_be_read_by_half():
    said = refusal(
        InputError, simulate, kernels.scale, grid=4, block=256, arguments=[normal(9), 3.0, 9]
    )
    assert said == (
        "argument 1 of scale (float factor) is 3.0: CuPy passes a Python float as a double, of "
        "which the kernel reads half: give numpy.float32"
    )


def test_a_module_includes_headers_of_cupy():
    x = (normal(100) + 1j * normal(100, seed=1)).astype(np.complex64)
    found = simulate(kernels.module, "conjugate<float>", grid=1, block=128, arguments=[x, 100])
    np.testing.assert_array_equal(found.outputs[0], x.conj())


def test_denormals_are_flushed_as_by_cupy():
    x = np.full(32, 1e-39, np.float32)
    found = simulate(kernels.scale, grid=1, block=32, arguments=[x, np.float32(1), 32])
    assert not found.outputs[0].any()


def test_an_elementwise_kernel_makes_its_output_and_its_launch():
    x, y = normal(20, 50), normal(20, 50, seed=1)
    found = simulate(kernels.squared, arguments=[x, y])
    np.testing.assert_array_equal(found.outputs[2], (x - y) * (x - y))
    assert (found.geometry.grid, found.geometry.block) == ((8, 1, 1), (128, 1, 1))  # 1000 / 128
    assert "z = (x - y) * (x - y);" in found.cubin.source


def test_an_elementwise_kernel_takes_numbers_and_raw_arrays():
    x = normal(200)
    found = simulate(kernels.squared, arguments=[x, 2.0])
    np.testing.assert_array_equal(found.outputs[1], (x - 2) * (x - 2))
    flip = cupy.ElementwiseKernel(
        "raw T x, float64 s", "T y", "y = x[_ind.size() - i - 1] * s", "flip"
    )
    found = simulate(flip, arguments=[x, 2.0, np.empty_like(x)])
    np.testing.assert_array_equal(found.outputs[1], 2 * x[::-1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            [normal(8), normal(2, 4)],
            "the shapes of its arrays are (2, 4) and (8,), which NumPy does not",
        ),
        (
            [normal(8), normal(8), normal(1)],
            "argument 2 `z` of squared has shape (1,), and its arrays are",
        ),
        ([1.0, 2.0], "the shapes of its arrays are none"),
        (
            [normal(8)],
            "squared takes 2 inputs, and 1 output if you give them, but was given 1 argument",
        ),
        ([normal(8), "x"], "argument 1 of squared is 'x': give an array"),
        ([normal(0), normal(0)], "its arrays are empty"),
        ([normal(8), normal(8).astype(np.float64)], "CuPy refuses the types of its arguments"),
    ],
)
def test_arguments_that_an_elementwise_kernel_does_not_take_are_refused(arguments, said):
    assert said in refusal(InputError, simulate, kernels.squared, arguments=arguments)


def test_an_elementwise_kernel_broadcasts():
    x, column = normal(20, 50), normal(20, 1, seed=1)
    found = simulate(kernels.squared, arguments=[x, column])
    np.testing.assert_array_equal(found.outputs[2], (x - column) * (x - column))
    row = normal(50)
    found = simulate(kernels.squared, arguments=[column, row])
    np.testing.assert_array_equal(found.outputs[2], (column - row) * (column - row))
    assert found.geometry.grid == (8, 1, 1)


@pytest.mark.parametrize(
    ("shape", "defines"),
    [
        ((1000,), {}),
        ((37, 500), {}),
        ((37, 500), {"axis": 1}),
        ((37, 500), {"axis": -2, "keepdims": True}),
        ((8, 9, 10), {"axis": (0, 2)}),
        ((8, 1, 10), {"axis": "1,2", "keepdims": "False"}),
        ((), {}),
    ],
)
def test_a_reduction_kernel_makes_its_output_and_its_launch(shape, defines):
    x = np.asarray(normal(*shape))
    found = simulate(kernels.norm, arguments=[x], defines=defines)
    axis = (1, 2) if defines.get("axis") == "1,2" else defines.get("axis")
    keepdims = defines.get("keepdims") is True
    wanted = np.sqrt((x.astype(np.float64) ** 2).sum(axis=axis, keepdims=keepdims))
    assert found.outputs[1].shape == wanted.shape
    np.testing.assert_allclose(found.outputs[1], wanted, rtol=1e-5)
    assert found.geometry.block == (512, 1, 1)
    assert "_type_reduce _a = static_cast<_type_reduce>(x * x);" in found.cubin.source


def test_a_reduction_kernel_broadcasts_and_takes_numbers():
    x, y = normal(37, 500), normal(500, seed=1)
    dot = cupy.ReductionKernel(
        "T x, T y", "float64 z", "(double)x * y", "a + b", "z = a", "0", "dot"
    )
    found = simulate(dot, arguments=[x, y], defines={"axis": 1})
    np.testing.assert_allclose(found.outputs[2], x.astype(np.float64) @ y, rtol=1e-12, atol=1e-12)
    found = simulate(dot, arguments=[x, 2.0])
    np.testing.assert_allclose(found.outputs[1], 2 * x.astype(np.float64).sum(), rtol=1e-12)


def test_a_note_names_the_other_code_that_cupy_may_launch():
    (note,) = simulate(kernels.norm, arguments=[normal(8)]).notes
    assert note.startswith("this is CuPy's own reduction: where CuPy finds nvcc")
    first = simulate(kernels.norm, arguments=[normal(8, 9)], defines={"axis": 0})
    assert not first.notes


@pytest.mark.parametrize(
    ("arguments", "defines", "said"),
    [
        ([normal(8)], {"axis": 1}, "CuPy refuses axis 1 of arrays with 1 axes"),
        ([normal(8)], {"axis": "first"}, "axis is 'first': give a number, such as axis=1"),
        ([normal(8)], {"out": 1}, "takes axis and keepdims in defines, not out"),
        (
            [normal(8), normal(8)],
            {},
            "argument 1 `y` of l2norm has shape (8,), and the result has ()",
        ),
        ([1.0], {}, "the shapes of its arrays are none: give at least one array"),
    ],
)
def test_arguments_that_a_reduction_kernel_does_not_take_are_refused(arguments, defines, said):
    assert said in refusal(InputError, simulate, kernels.norm, arguments=arguments, defines=defines)


def test_what_cannot_be_had_without_a_gpu_is_named():
    assert "cupy.ufunc cannot be simulated: it is many kernels" in refusal(
        UnsupportedError, simulate, cupy.add, arguments=[normal(8)]
    )
    assert "cupy._SimpleReductionKernel cannot be simulated: it is many kernels" in refusal(
        UnsupportedError, simulate, cupy._core._routines_math.sum_auto_dtype, arguments=[normal(8)]
    )


def test_a_module_of_machine_code_is_read(tmp_path):
    x, y = normal(128), normal(128, seed=1)
    module = cupy.RawModule(path=str(CUBIN))
    arguments = [x, y, np.zeros_like(x), 128, 0, 0]  # n has 4 bytes, pointers 8
    found = simulate(module, "add", grid=1, block=128, arguments=arguments)
    np.testing.assert_array_equal(found.outputs[2], x + y)
    (tmp_path / "a.ptx").write_text(".version 9.0")
    said = refusal(
        InputError,
        simulate,
        cupy.RawModule(path=str(tmp_path / "a.ptx")),
        grid=1,
        block=1,
        arguments=[],
    )
    assert said.endswith(
        "a.ptx: the machine code is not a cubin: it is not an ELF file: give a cubin"
    )
