"""The launches of benchmarks/reference_times.py: every one is legal, without a GPU."""

import pytest

from analysis.problem import parse_shape
from analysis.traffic.grid import MAX_GRID_Y
from benchmarks.reference_times import ALL_PARAMETERS, SHAPES, _selections
from kernels import LADDER
from toolkit.machine_code.compile import compile_cubin
from validation.timing.timed_launches import LAUNCHES, OPTIONS


def test_every_rung_is_timed_at_some_shape_and_with_all_parameters():
    timed = {
        selection.label
        for text in SHAPES
        for selection in _selections(parse_shape(text), text in ALL_PARAMETERS)
    }
    legal = {variant.label(chosen) for variant in LADDER for chosen in variant.parameter_sets()}
    assert timed == legal


@pytest.mark.parametrize("text", SHAPES)
def test_every_shape_has_a_geometry_for_every_rung(text):
    problem = parse_shape(text)
    for selection in _selections(problem, all_parameters=True):
        variant = selection.variant
        variant.check_shape(problem)
        geometry = variant.geometry(selection.parameters, variant.executed(problem))
        assert geometry.threads >= problem.m * problem.n / 64 / 4  # 8×8 of C per thread at most


@pytest.mark.parametrize("case", LAUNCHES, ids=lambda case: case.name)
def test_a_launch_is_within_the_limits(case):
    assert case.grid[0] < 2**31
    assert max(case.grid[1:]) <= MAX_GRID_Y
    x, y, z = case.block
    assert x * y * z <= 1024
    cubin = compile_cubin(
        case.source, name="kernel.cu", kernel=case.kernel, arch="sm_90", options=OPTIONS
    )
    assert cubin.resources.registers_per_thread * x * y * z <= 65_536
