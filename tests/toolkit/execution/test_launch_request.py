"""Arguments that may be given together: a kernel with its geometry, or a rung with a shape."""

import numpy as np
import pytest

from analysis.errors import InputError
from tests.refusals import refusal
from toolkit import check, simulate

OWN = 'extern "C" __global__ void k(float *x) { x[threadIdx.x] = 1; }'
LAUNCH = {"grid": 1, "block": 32, "arguments": [np.zeros(32, np.float32)]}


@pytest.mark.parametrize("run", [simulate, check])
@pytest.mark.parametrize("lacks", ["grid", "block"])
def test_a_kernel_without_host_code_needs_a_grid_and_a_block(run, lacks):
    given = {name: value for name, value in LAUNCH.items() if name != lacks}
    message = refusal(InputError, run, OWN, **given)
    assert message == f"kernel.cu: no host code launches k: give {lacks}"


def test_a_check_needs_the_sizes_of_arrays():
    message = refusal(InputError, check, OWN, grid=1, block=32)
    assert message == ("kernel.cu: no host code launches k: give float *x: arguments={'x': ...}")


@pytest.mark.parametrize("run", [simulate, check])
@pytest.mark.parametrize("shape", ["512", 0, ""])
def test_a_kernel_takes_no_shape(run, shape):
    assert "and no shape" in refusal(InputError, run, OWN, **LAUNCH, shape=shape)


@pytest.mark.parametrize("run", [simulate, check])
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"grid": 1}, "grid"),
        ({"arguments": LAUNCH["arguments"]}, "arguments"),
        ({"kernel": "k", "defines": {"N": 1}}, "kernel and defines"),
        ({"dynamic_shared_bytes": 4}, "shared memory"),
        ({"cooperative": True, "heap_bytes": 5}, "a cooperative launch and heap"),
    ],
)
def test_a_rung_brings_its_own_launch(run, given, named):
    message = refusal(InputError, run, "tiled", shape=64, **given)
    assert message == f"tiled is a rung, which has its own {named}: leave yours out"


@pytest.mark.parametrize("run", [simulate, check])
def test_a_rung_needs_a_shape(run):
    assert "give the shape of its product" in refusal(InputError, run, "tiled")
