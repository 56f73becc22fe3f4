"""Sizes of arrays from addresses and guards."""

import numpy as np
import pytest

from analysis.errors import InputError
from analysis.geometry import Geometry
from toolkit.execution.guessed_sizes import guessed_sizes
from toolkit.launch.setup import PLAIN, LaunchSetup
from toolkit.machine_code.kernel_source import compile_kernel

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def guessed(
    parameters,
    body,
    *,
    grid=(40, 1, 1),
    block=(256, 1, 1),
    values=(),
    types=None,
    before="",
    setup=PLAIN,
):
    """Sizes in elements and what is needed, where the first parameters are unknown arrays."""
    source = f"{before}__global__ void k({parameters}) {{ {INDEX} {body} }}"
    count = parameters.count("*")
    dtypes = {k: np.dtype(t) for k, t in enumerate(types or ["f4"] * count)}
    found = guessed_sizes(
        compile_kernel(source, target="sm_90"),
        Geometry(grid=grid, block=block, dynamic_shared_bytes=0),
        [None] * count + [np.int32(x) for x in values],
        dtypes,
        setup,
    )
    sizes = {k: size // dtypes[k].itemsize for k, size in found.sizes.items()}
    return sizes, found.needed


def test_a_guard_ends_the_array_within_the_grid():
    found = guessed("const float *a, float *b, int n", "if (i < n) b[i] = a[i];", values=[5000])
    assert found == ({0: 5000, 1: 5000}, ())


def test_without_a_guard_the_grid_ends_it():
    assert guessed("float *b", "b[2 * i + 1] = 1;") == ({0: 2 * 40 * 256}, ())


def test_variables_that_are_set_guard_and_move_accesses():
    setup = LaunchSetup(symbols={"n": np.int32(5000), "first": np.int32(7)})
    before = "__constant__ int n; __device__ int unused; __constant__ int first; "
    found = guessed("float *b", "if (i < n) b[first + i] = 1;", before=before, setup=setup)
    assert found == ({0: 7 + 5000}, ())


def test_a_cooperative_launch_is_followed_as_one():
    """The one block of the grid passes its own barrier."""
    before = "#include <cooperative_groups.h>\n"
    body = "b[i] = 1; cooperative_groups::this_grid().sync(); b[2 * i] = 2;"
    setup = LaunchSetup(cooperative=True)
    found = guessed("float *b", body, grid=(1, 1, 1), before=before, setup=setup)
    assert found == ({0: 2 * 255 + 1}, ())
    with pytest.raises(InputError, match="needs a cooperative launch"):
        guessed("float *b", body, grid=(1, 1, 1), before=before)


def test_loops_and_rows_are_followed():
    body = """int y = blockIdx.y * blockDim.y + threadIdx.y; float s = 0;
        if (i < n && y < m) { for (int j = 0; j < k; j++) s += a[y * k + j] * b[j * n + i];
        c[y * n + i] = s; }"""
    found = guessed(
        "const float *a, const float *b, float *c, int m, int n, int k",
        body,
        grid=(32, 40, 1),
        block=(32, 8, 1),
        values=[300, 1000, 30],
    )
    assert found == ({0: 300 * 30, 1: 30 * 1000, 2: 300 * 1000}, ())


def test_a_loop_over_the_grid_reaches_the_end():
    body = "for (; i < n; i += gridDim.x * blockDim.x) b[i] = 1;"
    assert guessed("float *b, int n", body, values=[100_003]) == ({0: 100_003}, ())


def test_an_address_that_depends_on_data_says_no_size():
    body = "if (i < n) atomicAdd(&bins[keys[i]], 1);"
    found = guessed("const int *keys, int *bins, int n", body, values=[5000], types=["i4", "i4"])
    assert found == ({}, (0, 1))


def test_integers_that_are_no_index_are_guessed():
    found = guessed("const int *a, int *b", "b[i] = a[i] + 1;", types=["i4", "i4"])
    assert found == ({0: 10240, 1: 10240}, ())


def test_an_end_that_depends_on_data_says_no_size():
    body = "float s = 0; for (int j = rows[i]; j < rows[i + 1]; j++) s += x[j]; y[i] = s;"
    sizes, needed = guessed(
        "const int *rows, const float *x, float *y", body, types=["i4", "f4", "f4"]
    )
    assert (sizes, needed) == ({2: 10240}, (0, 1))


def test_nothing_grows_by_an_address_that_depends_on_data():
    body = "b[i] = 1; if (a[i] == 0) b[(int)a[i] + 1000000] = 1;"
    sizes, _ = guessed("const float *a, float *b", body)
    assert sizes.get(1, 10240) == 10240


def test_an_address_below_the_array_is_refused():
    with pytest.raises(InputError, match="cannot be guessed"):
        guessed("float *b", "b[i - 1] = 1;")
