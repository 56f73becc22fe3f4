"""CUDA C++ text in Python: lines of the Python file, and the defaults of PyCUDA."""

import numpy as np
import pytest

from analysis.errors import CompileError, InputError
from tests.refusals import refusal
from toolkit import CudaText, check, simulate

TEXT = """
__global__ void twice(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;  // line 13 of this file
}
"""
LINE_OF_TWICE = 13


def test_lines_are_those_of_the_python_file():
    x = np.ones(64, np.float32)
    found = simulate(CudaText(TEXT), grid=2, block=32, arguments=[x, np.int32(40)])
    np.testing.assert_array_equal(found.outputs[0], [2] * 40 + [1] * 24)
    assert ("test_cuda_text.py", LINE_OF_TWICE) in found.lines
    assert "line 13 of this file" in found.cubin.source.splitlines()[LINE_OF_TWICE - 1]


def test_findings_name_the_line_of_the_python_file():
    x = np.ones(16, np.float32)
    (finding,) = check(CudaText(TEXT), grid=1, block=32, arguments=[x, np.int32(32)]).findings
    assert f"test_cuda_text.py, line {LINE_OF_TWICE}" in finding.message


def test_a_mistake_has_the_line_of_the_python_file():
    text = CudaText("""
__global__ void wrong(float *x) { x[0] = nothing; }""")
    said = refusal(CompileError, simulate, text, grid=1, block=1, arguments=[np.ones(1)])
    assert said.startswith("test_cuda_text.py")
    assert 'identifier "nothing" is undefined' in said


def test_a_text_that_no_file_holds_has_its_own_lines():
    text = TEXT.replace("twice", "thrice")
    x = np.ones(64, np.float32)
    found = simulate(CudaText(text), grid=2, block=32, arguments=[x, np.int32(40)])
    assert {file for file, _ in found.lines} == {"kernel.cu"}
    assert ("kernel.cu", 4) in found.lines


def test_extern_c_is_around_the_text_unless_it_is_declined():
    template = "template <typename T> __global__ void zero(T *x) { x[threadIdx.x] = 0; }"
    x = np.ones(32, np.float32)

    def launched(**options):
        text = CudaText(template, **options)
        return simulate(text, "zero<float>", grid=1, block=32, arguments=[x])

    assert 'may not have extern "C" linkage' in refusal(CompileError, launched)
    assert not launched(no_extern_c=True).outputs[0].any()


def test_options_and_definitions_reach_the_compiler():
    text = CudaText("__global__ void set(int *x) { x[0] = A + B; }", options=["-DA=2"])
    x = np.zeros(1, np.int32)
    found = simulate(text, grid=1, block=1, arguments=[x], defines={"B": 3})
    assert found.outputs[0] == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([np.ones(64, np.float32), 40], "argument 1 of twice is 40: give a NumPy array"),
        ([np.ones(64), np.int32(40)], "argument 0 of twice (float *x) is an array of float64"),
        ([np.ones(64, np.float32)], "twice takes 2 arguments (float *x, int n), 1 was given"),
    ],
)
def test_arguments_are_checked_as_pycuda_would_take_them(arguments, said):
    assert said in refusal(
        InputError, simulate, CudaText(TEXT), grid=2, block=32, arguments=arguments
    )


def test_grid_and_block_are_needed():
    arguments = [np.ones(64, np.float32), np.int32(40)]
    said = refusal(InputError, simulate, CudaText(TEXT), grid=2, arguments=arguments)
    assert said == "twice takes grid and block, in blocks and in threads: give both"
