"""Functions and records of the analysis and the kernels refuse wrong arguments in one line."""

import inspect
import warnings
from math import inf, nan

import numpy as np
import pytest

import kernels
from analysis import access, coalescing, intensity, occupancy, product_errors, roofline, rounding
from analysis.access import Tiling, access_counts
from analysis.comparison import statistics
from analysis.devices import find_device, limits_of
from analysis.errors import InputError, UnavailableError, UnknownNameError
from analysis.geometry import Geometry
from analysis.problem import Gemm, parse_shape
from analysis.theory import theory
from kernels.product import Product
from tests.refusals import refusal
from toolkit.product.choice import explain_choice

SHAPE = Gemm(m=64, n=64, k=64)
TILING = Tiling(block_m=16, block_n=16, block_k=16)
H200 = find_device("h200")
REQUEST = {"addresses": list(range(0, 128, 4)), "width_bytes": 4, "active": [True] * 32}
BLOCK = {"threads_per_block": 256, "registers_per_thread": 32, "shared_bytes_per_block": 0}
RESIDENT = occupancy.occupancy(H200, **BLOCK)
ONES = np.ones((2, 2))

CALLS = [
    (Gemm, {"m": 64, "n": 64, "k": 64}),
    (parse_shape, {"text": "64"}),
    (Geometry, {"grid": (1, 1, 1), "block": (32, 1, 1), "dynamic_shared_bytes": 0}),
    (Geometry.of, {"blocks": 1, "threads": 32}),
    (Tiling, {"block_m": 16, "block_n": 16, "block_k": 16, "global_width": 1, "bulk": False}),
    (access_counts, {"tiling": TILING, "problem": SHAPE}),
    (
        access.largest_square_tile,
        {"max_threads_per_block": 1024, "shared_bytes_per_block": 49152},
    ),
    (coalescing.sectors, REQUEST),
    (coalescing.lines, REQUEST),
    (coalescing.ideal_sectors, REQUEST),
    (coalescing.ideal_wavefronts, REQUEST),
    (coalescing.shared_wavefronts, REQUEST | {"operation": "load"}),
    (coalescing.global_cycles, REQUEST),
    (
        coalescing.pattern,
        {
            "space": "global",
            "operation": "load",
            "operand": "A",
            "addresses": [0],
            "instruction_bytes": 4,
            "requests": 3,
        },
    ),
    (intensity.intensity_of_loads, {"counts": access_counts(TILING, SHAPE)}),
    (intensity.intensity_of_accesses, {"counts": access_counts(TILING, SHAPE)}),
    (intensity.intensity_of_compulsory_bytes, {"counts": access_counts(TILING, SHAPE)}),
    (roofline.bandwidth_ceiling, {"intensity": 1.0, "bandwidth_bytes_per_s": 1e12}),
    (roofline.ridge_point, {"peak_flop_per_s": 1e13, "bandwidth_bytes_per_s": 1e12}),
    (
        roofline.attainable,
        {"peak_flop_per_s": 1e13, "bandwidth_bytes_per_s": 1e12, "intensity": 1.0},
    ),
    (roofline.share_of_peak, {"flop_per_s": 1e12, "device": H200}),
    (roofline.roofline, {"device": H200}),
    (occupancy.occupancy, BLOCK | {"device": H200}),
    (occupancy.block_limits, BLOCK | {"device": H200}),
    (occupancy.waves, {"geometry_blocks": 100, "device": H200, "occupancy": RESIDENT}),
    (
        theory,
        {
            "counts": access_counts(TILING, SHAPE),
            "patterns": (),
            "device": H200,
            "blocks": None,
        },
    ),
    (
        rounding.gemm_error_bound,
        {"k": 3, "abs_product": ONES, "alpha": 1.0, "beta": 0.5, "abs_c": ONES},
    ),
    (rounding.compare, {"result": ONES, "reference": ONES, "bound": ONES, "description": "x"}),
    (
        product_errors.product_error,
        {"result": ONES, "a": ONES, "b": ONES, "data": "normal", "shape": SHAPE, "seed": 0},
    ),
    (
        product_errors.sample_inputs,
        {"data": "normal", "k": 3, "seed": 1, "rows": 4, "columns": 5},
    ),
    (statistics.median_interval, {"samples": [1.0] * 10}),
    (statistics.relative_half_width, {"samples": [1.0] * 10}),
    (statistics.is_precise, {"samples": [1.0] * 10, "relative": 0.01}),
    (statistics.ratio_interval, {"peer_samples": [1.0] * 3, "samples": [1.0] * 3}),
    (find_device, {"name": "h200"}),
    (limits_of, {"architecture": "sm_90"}),
    (kernels.find, {"name": "tiled"}),
    (kernels.parse_selection, {"text": "tiled"}),
    (
        Product,
        {"m": 8, "n": 8, "k": 8, "transpose_a": False, "lda": 0, "batch": 1, "stride_a": -1},
    ),
    (explain_choice, {"product": Product(m=8, n=8, k=8), "device": H200, "count": 1}),
]
WRONG = (
    *("x", "9" * 5000, b"x", True, None, [], [[1], [1, 2]], {}, object()),
    *(1.5, nan, inf, -1, 0, 2**63, 2**70, 10**400, np.float32(2), np.int32(3), np.ones(3)),
)


@pytest.mark.parametrize(
    ("function", "good"), CALLS, ids=[function.__qualname__ for function, _ in CALLS]
)
def test_any_value_is_taken_or_refused_in_one_line(function, good):
    """A value that fits may be taken. Nothing else is raised, and nobody is warned."""
    function(**good)
    refused = []
    for name in good:
        assert name in inspect.signature(function).parameters
        for value in WRONG:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    function(**good | {name: value})
                except InputError as error:
                    refused.append(str(error))
    assert len(refused) >= 5 * len(good)
    assert not [said for said in refused if "\n" in said or len(said) > 400]


@pytest.mark.parametrize(
    ("function", "wrong", "said"),
    [
        (Gemm, {"m": 1.5}, "Gemm: m = 1.5: give a whole number"),
        (Gemm, {"k": True}, "Gemm: k = True: give a whole number"),
        (Geometry, {"block": (32, 1)}, "block = (32, 1): give three sizes of at least 1"),
        (Geometry, {"grid": (0, 1, 1)}, "grid = (0, 1, 1): give three sizes of at least 1"),
        (Geometry, {"dynamic_shared_bytes": 1.5}, "Geometry: dynamic_shared_bytes = 1.5"),
        (Tiling, {"block_k": 0}, "block_k = 0: give 1 or more"),
        (Tiling, {"bulk": 1}, "bulk = 1: give True or False"),
        (coalescing.sectors, {"width_bytes": True}, "width_bytes = True"),
        (coalescing.sectors, {"addresses": np.uint64([2**63] * 32)}, "is not below 2^63"),
        (coalescing.sectors, {"addresses": [2**64] + [0] * 31}, "give integers below 2^63"),
        (coalescing.shared_wavefronts, {"operation": "Load"}, "give 'load' or 'store'"),
        (coalescing.pattern, {"space": "local"}, "give 'global' or 'shared'"),
        (coalescing.pattern, {"requests": -1}, "requests = -1: give 0 or more"),
        (roofline.ridge_point, {"bandwidth_bytes_per_s": 0}, "give more than 0"),
        (roofline.attainable, {"peak_flop_per_s": -1.0}, "give more than 0"),
        (roofline.attainable, {"intensity": -1}, "intensity = -1: give 0 or more"),
        (roofline.share_of_peak, {"flop_per_s": -1}, "flop_per_s = -1: give 0 or more"),
        (occupancy.occupancy, {"threads_per_block": nan}, "threads_per_block = nan"),
        (occupancy.occupancy, {"registers_per_thread": 1.5}, "registers_per_thread = 1.5"),
        (occupancy.waves, {"geometry_blocks": 0}, "geometry_blocks = 0: give 1 or more"),
        (rounding.gemm_error_bound, {"abs_product": -ONES}, "below 0: give magnitudes"),
        (rounding.gemm_error_bound, {"abs_c": np.ones(2)}, "they must agree"),
        (rounding.compare, {"bound": -ONES}, "below 0: give magnitudes"),
        (rounding.compare, {"result": 1j * ONES}, "complex128: give real numbers"),
        (rounding.compare, {"result": [[1, 2], [3]]}, "result = [[1, 2], [3]]"),
        (product_errors.product_error, {"a": np.ones((2, 3))}, "give m x n, m x k and k x n"),
        (product_errors.sample_inputs, {"rows": 0}, "rows = 0: give 1 to 2147418112"),
        (product_errors.sample_inputs, {"columns": 0}, "columns = 0: give 1 to 2147418112"),
        (statistics.median_interval, {"samples": ["1"]}, "sample 0 is '1'"),
        (statistics.median_interval, {"samples": [True]}, "sample 0 is True"),
        (statistics.is_precise, {"relative": -0.1}, "relative = -0.1: give 0 or more"),
        (Product, {"lda": nan}, "Product: lda = nan: give a whole number"),
        (Product, {"transpose_a": 1}, "Product: transpose_a = 1: give True or False"),
        (explain_choice, {"count": 0}, "count = 0: give 1 or more"),
    ],
)
def test_what_was_taken_silently_or_raised_something_else(function, wrong, said):
    (good,) = (good for one, good in CALLS if one == function)
    assert said in refusal(InputError, function, **good | wrong)


@pytest.mark.parametrize("function", [product_errors.product_error, product_errors.sample_inputs])
def test_an_unknown_class_of_inputs_is_suggested(function):
    (good,) = (good for one, good in CALLS if one == function)
    assert "did you mean 'normal'?" in refusal(UnknownNameError, function, **good | {"data": "nor"})


def test_sizes_of_numpy_do_not_overflow():
    size = np.int32(4096)
    assert Gemm(m=size, n=size, k=size).flop == 2 * 4096**3
    assert Product(m=size, n=size, k=size).flop == 2 * 4096**3
    assert Geometry(grid=(size, size, size), block=(1, 1, 1)).blocks == 4096**3
    # in float32 the product of 1e30 and 1e30 would be infinite
    assert roofline.bandwidth_ceiling(np.float32(1e30), np.float32(1e30)) == pytest.approx(1e60)


def test_no_path_is_named_for_a_device_that_matmul_refuses():
    said = refusal(UnavailableError, explain_choice, Product(m=8, n=8, k=8), find_device("t4"))
    assert said.startswith("matmul needs sm_80 or later, and NVIDIA T4 is sm_75")
