"""Hidden parameters and outputs of front ends, with none of them installed."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.errors import InputError, UnsupportedError
from tests.cubins import cubin_of
from tests.refusals import refusal
from tests.toolkit.frontends.kernels.store_triton import CUBIN
from toolkit import check, simulate
from toolkit.frontends import numba_kernels
from toolkit.frontends.front_end import (
    Parameter,
    PreparedLaunch,
    as_array,
    buffer,
    front_end_of,
    hidden,
    split_structs,
)


class CompiledKernel:
    """The part of Triton's class of this name that the tests need."""

    def __init__(self, shared=0, scratch=0):
        self.asm = {"cubin": CUBIN.read_bytes(), "ptx": ""}
        self.metadata = SimpleNamespace(
            name="add",
            num_warps=4,
            shared=shared,
            global_scratch_size=scratch,
            profile_scratch_size=0,
        )
        self.src = SimpleNamespace(
            signature={
                "x_ptr": "*fp32",
                "y_ptr": "*fp32",
                "out_ptr": "*fp32",
                "n": "i32",
                "BLOCK": "constexpr",
            },
            constants={(4,): 128},
        )


CompiledKernel.__module__ = "triton.compiler.compiler"


def numbers(count, seed=0):
    return np.random.default_rng(seed).random(count, dtype=np.float32)


def test_a_kernel_of_triton_gets_its_scratch_pointers_and_its_block():
    x, y, out = numbers(1000), numbers(1000, 1), np.zeros(1000, np.float32)
    found = simulate(CompiledKernel(), grid=8, arguments=[x, y, out, 1000])
    assert len(found.cubin.parameters) == 6  # x, y, out, n, and two pointers to scratch
    assert found.geometry.block == (128, 1, 1)  # 4 warps
    assert len(found.outputs) == 3
    np.testing.assert_array_equal(found.outputs[2], x + y)
    assert {file for file, _ in found.lines} == {"of_triton.py"}


def test_scratch_memory_is_no_output():
    x, out = numbers(128), np.zeros(128, np.float32)
    found = simulate(CompiledKernel(scratch=64), grid=1, arguments=[x, x, out, 128])
    assert [one.shape for one in found.outputs] == [(128,)] * 3


def test_one_array_as_two_arguments_is_said():
    x = numbers(128)
    launch = {"grid": 1, "arguments": [x, numbers(128, 1), x, 128]}
    said = (
        "arguments 0 and 2 share memory, and were simulated as two arrays: what is written to one "
        "is not seen in the other"
    )
    assert said in simulate(CompiledKernel(), **launch).notes
    assert said in check(CompiledKernel(), **launch).notes


def test_the_grid_of_triton_is_a_function_of_its_values():
    x, out = numbers(1000), np.zeros(1000, np.float32)
    grid = lambda meta: (-(-meta["n"] // meta["BLOCK"]),)  # noqa: E731 - as Triton's users do
    found = simulate(CompiledKernel(), grid=grid, arguments=[x, x, out, 1000])
    assert found.geometry.grid == (8, 1, 1)  # 1000 / 128 = 7.8
    said = refusal(
        InputError,
        simulate,
        CompiledKernel(),
        grid=lambda meta: (meta["ROWS"],),
        arguments=[x, x, out, 1000],
    )
    assert said.startswith("add: grid asks for 'ROWS', which is not among x_ptr, y_ptr")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"block": 256}, "add is compiled for blocks of 128×1×1 threads: leave the block out"),
        ({"grid": None}, "add takes a grid: give sizes or a function of the constexprs"),
        ({"grid": lambda meta: None}, "grid = None: give one to three whole sizes of at least 1"),
        ({"grid": lambda meta: 1.5}, "grid = 1.5: give one to three whole sizes of at least 1"),
        ({"grid": lambda meta: (1, 0)}, "grid = (1, 0): give one to three whole sizes"),
        ({"arguments": [numbers(8)]}, "add takes x_ptr, y_ptr, out_ptr, n, and 1 arguments were"),
        ({"dynamic_shared_bytes": 64}, "add: Triton takes 0 bytes of shared memory"),
        ({"defines": {"BLOCK": 64}}, "add is compiled: defines do not change it"),
    ],
)
def test_a_launch_that_triton_would_not_make_is_refused(changed, said):
    x = numbers(128)
    launch = {"grid": 1, "arguments": [x, x, x, 128]} | changed
    assert said in refusal(InputError, simulate, CompiledKernel(), **launch)


def test_arguments_are_checked_against_what_triton_compiled_for():
    x = numbers(128)

    def said(*arguments):
        return refusal(InputError, simulate, CompiledKernel(), grid=1, arguments=arguments)

    assert "argument `y_ptr` of add is an array of float64" in said(x, x.astype(float), x, 128)
    assert "argument `n` of add is an array: the kernel is compiled for i32" in said(x, x, x, x)
    assert "argument `out_ptr` of add is 5: the kernel is compiled for *fp32" in said(x, x, 5, 128)
    assert "argument `n` of add is 1099511627776" in said(x, x, x, 2**40)


def test_findings_count_the_arguments_of_the_user():
    found = check(
        CompiledKernel(),
        grid=1,
        arguments=[numbers(128), numbers(100), numbers(128), 128],
        unwritten=[2],
    )
    assert "argument 1 `y_ptr`, float32[100]" in found.findings[0].message


# Numba's arrays.


def test_an_array_of_numba_is_nine_parameters_with_two_axes():
    array = np.zeros((3, 5), np.float32)
    found = list(numba_kernels._parameters(array, "x", 4))
    assert [one.name for one in found if one.argument is not None] == ["x"]
    values = [one.value for one in found]
    assert values[4] is array
    del values[4]
    assert values == [0, 0, 15, 4, 3, 5, 20, 4]  # null, null, size, itemsize, shape, strides


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (True, [np.bool_(True)]),
        (3, [np.int64(3)]),
        (2**63, [np.uint64(2**63)]),
        (2.5, [np.float64(2.5)]),
        (np.float32(2.5), [np.float32(2.5)]),
        (1 + 2j, [np.float64(1), np.float64(2)]),
        (np.complex64(1 + 2j), [np.float32(1), np.float32(2)]),
    ],
)
def test_numbers_have_the_types_that_numba_chooses(value, parts):
    found = [one.value for one in numba_kernels._parameters(value, "x", 0)]
    assert found == parts
    assert [one.dtype for one in found] == [one.dtype for one in parts]


def test_a_tuple_of_numba_is_its_elements():
    found = list(numba_kernels._parameters((1, np.zeros(2)), "x", 0))
    assert [one.name for one in found][:3] == ["x[0]", "x[1].meminfo", "x[1].parent"]
    with pytest.raises(UnsupportedError, match=r"argument `x` is 'text': give an array"):
        list(numba_kernels._parameters("text", "x", 0))


# Arrays and structs.


def test_an_array_in_fortran_order_keeps_its_bytes_and_its_axes():
    array = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    kernel = cubin_of(
        'extern "C" __global__ void half(float *x) { x[threadIdx.x] *= threadIdx.x < 2; }', "half"
    )
    launch = PreparedLaunch(
        kernel=kernel,
        grid=(1, 1, 1),
        block=(6, 1, 1),
        dynamic_shared_bytes=0,
        parameters=(buffer(array, "x", 0),),
    )
    after = simulate(kernel, grid=1, block=6, arguments=launch.arguments).outputs
    (found,) = launch.outputs(after)
    np.testing.assert_array_equal(found, [[0, 0, 0], [3, 0, 0]])  # the first column stays


def test_an_array_with_gaps_is_refused():
    said = refusal(InputError, buffer, np.zeros((4, 4))[:, ::2], "x", 1)
    assert said.startswith("argument 1 `x` is a view with gaps (strides (32, 16) for shape (4, 2))")


def test_a_tensor_is_read_without_a_copy():
    array = np.zeros(4)
    tensor = SimpleNamespace(__array__=None)
    assert as_array(2.5) is None
    assert as_array(np.float32(2.5)) is None
    assert as_array(memoryview(array)) is None

    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return array

    assert np.shares_memory(as_array(Tensor()), array)
    del tensor

    class OnTheGpu:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    assert "give an array or a tensor on the CPU" in refusal(InputError, as_array, OnTheGpu())


STRUCT = """
struct Array { float *data; long long size; };
extern "C" __global__ void fill(Array x, float value) {
    if (threadIdx.x < x.size) x.data[threadIdx.x] = value;
}
"""


def test_a_struct_with_a_pointer_is_split_into_its_fields():
    array = np.zeros(40, np.float32)
    value = Parameter(value=np.float32(3), name="value", argument=1)
    groups = [[buffer(array, "x", 0), hidden(30, "x")], [value]]
    kernel, parameters = split_structs(cubin_of(STRUCT, "fill"), groups)
    assert [(one.offset, one.size) for one in kernel.parameters] == [(0, 8), (8, 8), (16, 4)]
    arguments = [one.value for one in parameters]
    (found,) = simulate(kernel, grid=1, block=64, arguments=arguments).outputs
    np.testing.assert_array_equal(found, [3] * 30 + [0] * 10)


def test_fields_that_do_not_fill_a_struct_are_refused():
    array, kernel = np.zeros(40, np.float32), cubin_of(STRUCT, "fill")
    value = [Parameter(value=np.float32(3), name="value", argument=1)]
    said = refusal(UnsupportedError, split_structs, kernel, [[buffer(array, "x", 0)], value])
    assert said == ("parameter 0 of fill (`x`) has 16 bytes in machine code, and 8 were expected")
    assert "has 2 parameters" in refusal(UnsupportedError, split_structs, kernel, [value])


# Recognition.


def of_package(package, name):
    return type(name, (), {"__module__": f"{package}.some.module"})()


def test_objects_without_code_for_this_are_refused_with_the_remedy():
    said = refusal(UnsupportedError, front_end_of, of_package("pycuda", "SourceModule"))
    assert said == (
        "pycuda.SourceModule cannot be simulated: a driver has loaded it: give "
        "toolkit.CudaText(its text)"
    )
    assert "unset NUMBA_ENABLE_CUDASIM" in refusal(
        UnsupportedError, front_end_of, of_package("numba", "FakeCUDAKernel")
    )


def test_other_objects_are_of_no_front_end():
    for one in (None, 5, "k.cu", b"", of_package("mine", "JITFunction")):
        assert front_end_of(one) is None
    assert "give a path, CUDA C++ text or machine code" in refusal(
        InputError, simulate, 5, grid=1, block=1, arguments=[]
    )


def test_every_front_end_has_one_function():
    for package, name in (("triton", "JITFunction"), ("numba", "CUDADispatcher")):
        module = front_end_of(of_package(package, name))
        assert list(inspect.signature(module.prepared).parameters) == ["compiled", "request"]
