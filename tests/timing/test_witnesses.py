"""Predicted times of launches that show one mechanism each, and of 64-bit conversions."""

from functools import cache

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.hardware.sm_constants import constants_of
from tests.sampling import chosen_of
from toolkit.execution.simulate import simulate
from validation.timing.declared import rng
from validation.timing.witnesses import LAUNCHES, code, recorded

BY_LABEL = {one.label: one for one in LAUNCHES}
# Of predicted times against those of an H200, by mechanism: what the model holds.
WITHIN = {
    "small blocks": 0.18,
    "gathers": 0.3,
    "rows read again": 0.45,
    "unequal blocks": 0.25,
    "L1 hits beside constants": 0.4,
}
QUICK = (
    "tiny_scale 32768 by 32",
    "almost_empty 13200 by 256",
    "follow 1056 by 256 8 of 131072",
)
CONVERT = """
extern "C" __global__ void convert(float *out, int steps) {
    float v = threadIdx.x;
    for (int k = 0; k < steps; k++) v = v * 1.1;
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
"""
STEPS = 256
# Results per clock and SM (CUDA C++ Programming Guide): products of doubles, 64-bit conversions
GUIDE = {"t4": (2, 2), "rtx-3090": (2, 2), "rtx-5090": (2, 2), "h200": (64, 16), "v100": (32, 16)}


def test_every_launch_was_timed_once():
    assert recorded().keys() == BY_LABEL.keys()
    assert len(BY_LABEL) == len(LAUNCHES)
    assert all("flushed_s" in cell for cell in recorded().values())


@cache
def predicted_s(label):
    one = BY_LABEL[label]
    found = simulate(
        code("sm_90")(one.kernel),
        grid=one.grid,
        block=one.block,
        arguments=one.make(rng()),
        device="h200",
    )
    return found.predicted.time_s


MODELLED = [label for label, one in BY_LABEL.items() if one.row in WITHIN]


@pytest.mark.parametrize("label", chosen_of(MODELLED, lambda label: label in QUICK))
def test_a_witness_takes_about_what_it_took(label):
    tolerance = WITHIN[BY_LABEL[label].row]
    assert predicted_s(label) == pytest.approx(recorded()[label]["flushed_s"], rel=tolerance)


@pytest.mark.parametrize("key", chosen_of(list(GUIDE), lambda key: key == "h200"))
def test_conversions_to_doubles_take_what_nvidia_states(key):
    device = find_device(key)
    threads = 256
    warps = device.max_threads_per_sm // 32
    blocks = device.sm_count * warps * 32 // threads
    found = simulate(
        CONVERT,
        "convert",
        grid=blocks,
        block=threads,
        arguments=[np.zeros(blocks * threads, np.float32), np.int32(STEPS)],
        arch=device.sm_arch,
        device=device,
    ).predicted
    products, conversions = GUIDE[key]
    # two conversions and a product: in one pipe where both have two lanes
    each = [2 * 32 / conversions, 32 / products]
    clocks = STEPS * warps * (sum(each) if products == conversions else max(each))
    launch_s = constants_of(device).launch_s
    assert found.time_s - launch_s == pytest.approx(clocks / found.clock_hz, rel=0.1)
    assert found.limiter == ("FP64" if products == conversions else "special functions")
