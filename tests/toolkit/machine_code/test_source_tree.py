"""Facts that edits need of a source: arrays, constants, uses."""

import pytest

from toolkit.machine_code.source_tree import parsed

SOURCE = """#define TILE 32
constexpr int ROWS = 8;
template <int T> __global__ void __launch_bounds__(256) k(float *__restrict__ a, const int *b) {
    __shared__ __align__(16) float tile[TILE][TILE + ROWS], flat[T];
    extern __shared__ float dynamic[];
#pragma unroll
    for (int j = 0; j < ROWS; j++) tile[j][threadIdx.x] = a[j];
    float *p = &tile[0][0];
}
"""


@pytest.fixture
def source():
    return parsed(SOURCE, "ns::k<4>", {})


def test_shared_arrays_have_all_extents(source):
    assert {name: len(one.extents) for name, one in source.shared_arrays.items()} == {
        "tile": 2,
        "flat": 1,
    }


def test_constants_are_evaluated(source):
    first, second = source.shared_arrays["tile"].extents
    assert (source.number(first), source.number(second)) == (32, 40)  # 32 + 8
    (unknown,) = source.shared_arrays["flat"].extents
    assert source.number(unknown) is None


def test_a_macro_of_the_command_line_counts():
    source = parsed(SOURCE.replace("#define TILE 32\n", ""), "k", {"TILE": "16"})
    assert source.number(source.shared_arrays["tile"].extents[0]) == 16


def test_elements_are_told_from_other_uses(source):
    found = [source.subscripts(use, 2) for use in source.uses("tile")]
    assert [one is None for one in found] == [False, True]


def test_pointers_are_known(source):
    assert {one.name: (one.is_const, one.is_restrict) for one in source.pointers.values()} == {
        "a": (False, True),
        "b": (True, False),
    }


def test_of_two_kernels_of_one_name_none_is_edited():
    twice = "__global__ void k(int *x) {}\n__global__ void k(float *x) {}\n"
    assert parsed(twice, "k", {}) is None


def test_names_of_other_kernels_are_others():
    kernel = (
        "__global__ void NAME() {\n"
        "    const int rows = ROWS;\n    __shared__ float tile[rows][COLUMNS];\n}\n"
    )
    texts = [
        kernel.replace("NAME", name).replace("ROWS", rows).replace("COLUMNS", columns)
        for name, rows, columns in (("first", "8", "16"), ("second", "32", "64"))
    ]
    text = (
        "const int rows = 2;\n#define WIDE 4\n" + "".join(texts) + "void f() {\n#define TALL 5\n}"
    )
    source = parsed(text, "first", {})
    array = source.shared_arrays["tile"]
    assert [source.number(one) for one in array.extents] == [8, 16]
    assert array.line == 5
    assert (source.constants["WIDE"].value, source.constants["TALL"].value) == (4, 5)
