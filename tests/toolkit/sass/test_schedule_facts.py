"""What machine code says of a kernel's schedule, next to what is known of its source."""

from __future__ import annotations

import pytest

from analysis.access import Copies
from analysis.devices import find_device
from kernels import LADDER
from kernels.registry import Selection, Variant
from tests.sampling import chosen_of
from toolkit.compile import compile_cubin
from toolkit.rung_launch import compile_for

DEVICES = {"sm_75": "t4", "sm_86": "rtx-3090", "sm_90": "h200", "sm_120": "rtx-5090"}
CASES = [
    pytest.param(variant, arch, id=f"{variant.name}-{arch}")
    for variant in LADDER
    for arch in DEVICES
    if variant.runs_on(int(arch.removeprefix("sm_")))
]


def copies_of(variant: Variant) -> Copies:
    tiling = variant.tiling(variant.defaults)
    return "bulk" if tiling.bulk else "asynchronous" if tiling.asynchronous else "loads"


@pytest.mark.parametrize(
    ("variant", "arch"),
    chosen_of(CASES, lambda case: case[1] == "sm_90" or case[0].name == "double-buffered"),
)
def test_the_schedule_of_a_rung_is_that_of_its_source(variant: Variant, arch: str) -> None:
    kernel = compile_for(
        find_device(DEVICES[arch]), Selection(variant=variant, parameters=variant.defaults)
    )
    facts = kernel.schedule
    assert facts.copies == copies_of(variant)
    assert facts.fetches_ahead == (variant.rung >= 10)
    assert facts.has_barriers == (variant.tiling(variant.defaults).block_k is not None)


ROW_SUMS = """
extern "C" __global__ void in_turn(float *out, const float *in, int tiles) {
    __shared__ float tile[256];
    float sum = 0;
    for (int k = 0; k < tiles; k++) {
        tile[threadIdx.x] = in[256 * k + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < 256; i++) sum += tile[i] * i;
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void ahead(float *out, const float *in, int tiles) {
    __shared__ float tile[256];
    float sum = 0, next = in[threadIdx.x];
    for (int k = 1; k <= tiles; k++) {
        tile[threadIdx.x] = next;
        __syncthreads();
        next = in[256 * k + threadIdx.x];
        for (int i = 0; i < 256; i++) sum += tile[i] * i;
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void alone(float *out, const float *in, int tiles) {
    float sum = 0;
    for (int k = 0; k < tiles; k++) sum += in[256 * k + threadIdx.x];
    out[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize(
    ("kernel", "fetches_ahead", "has_barriers"),
    [("in_turn", False, True), ("ahead", True, True), ("alone", False, False)],
)
def test_loads_that_travel_while_a_tile_is_read_are_told(
    kernel: str, *, fetches_ahead: bool, has_barriers: bool
) -> None:
    code = compile_cubin(ROW_SUMS, name="sums.cu", kernel=kernel, arch="sm_90")
    facts = code.schedule
    assert (facts.copies, facts.fetches_ahead) == ("loads", fetches_ahead)
    assert facts.has_barriers == has_barriers
