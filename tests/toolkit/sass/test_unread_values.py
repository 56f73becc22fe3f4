"""Sums of matrix products that decide nothing are left out; those that decide are computed."""

import numpy as np
import pytest

from analysis.geometry import Geometry
from toolkit.execution.simulator import Simulator
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.sass.core import binding as core
from toolkit.sass.regions import Flow
from toolkit.sass.translate import translate
from toolkit.sass.unread_values import NO_VALUES, without_unread_sums

MULTIPLY = """
__device__ float4 multiply(unsigned a, unsigned b) {
    float4 d = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};"
        : "+f"(d.x), "+f"(d.y), "+f"(d.z), "+f"(d.w) : "r"(a), "r"(b));
    return d;
}
__device__ __noinline__ float passed(float x) { return x * 3; }
extern "C" __global__ void product(float *out, const unsigned *in, int n) {
    __shared__ float kept[64];
    float4 d = multiply(in[threadIdx.x], in[threadIdx.x + 32]);
    BODY
}
"""
STORED = "out[threadIdx.x] = d.x + d.w;"
# The registers of the sums are reused for addresses and conditions that do not depend on them.
REUSED = """
    for (int i = 0; i < n; ++i) {
        out[(i * n % 7) * 32 + threadIdx.x] = d.x * i + d.y;
        if (i * n % 3 == 1) d = multiply(in[i], in[i + 32]);
        asm volatile("" ::: "memory");
    }
"""
THROUGH_A_FUNCTION = "out[threadIdx.x] = passed(d.x);"
BRANCH = "if (d.x > 1) out[threadIdx.x] = d.y;"
ADDRESS = "out[(int)d.x & 31] = 1;"
IN_SHARED = """
    kept[threadIdx.x] = d.x;
    __syncthreads();
    if (kept[threadIdx.x ^ 1] > 1) out[threadIdx.x] = d.y;
"""
IN_THE_NEXT_PASS = """
    float before = 0;
    for (int i = 0; i < n; ++i) {
        if (before > 1) out[threadIdx.x] = i;
        before = multiply(in[i], in[i + 1]).x;
    }
"""
BEHIND_A_FUNCTION = "if (passed(d.x) > 1) out[threadIdx.x] = d.y;"


def compiled(body):
    return compile_kernel(MULTIPLY.replace("BODY", body), "product", target="sm_90")


def flow_of(kernel):
    translated = translate(kernel)
    return Flow(translated.linked.instructions, translated.lowered)


def products_without_values(program):
    products = program["op"] == core.operations()["MMA"]
    assert products.any()
    return (program["flags"][products] & NO_VALUES["MMA"]) > 0


def counters(kernel, *, outputs):
    given = [
        np.zeros(256, dtype=np.float32),
        np.full(64, 0x3C003C00, dtype=np.uint32),  # ones: sums of 16
        np.int32(16),
    ]
    one = Geometry(grid=(1, 1, 1), block=(32, 1, 1), dynamic_shared_bytes=0)
    return Simulator(outputs=outputs).run(kernel, one, given).counters


@pytest.mark.parametrize("body", [STORED, REUSED, THROUGH_A_FUNCTION])
def test_sums_that_are_only_stored_are_left_out_and_counters_stay(body):
    kernel = compiled(body)
    assert products_without_values(without_unread_sums(flow_of(kernel)).program).all()
    assert counters(kernel, outputs=False) == counters(kernel, outputs=True)


@pytest.mark.parametrize("body", [BRANCH, ADDRESS, IN_SHARED, IN_THE_NEXT_PASS, BEHIND_A_FUNCTION])
def test_sums_that_decide_are_computed(body):
    kernel, flow = compiled(body), flow_of(compiled(body))
    assert without_unread_sums(flow) is flow.lowered
    assert counters(kernel, outputs=False) == counters(kernel, outputs=True)


def test_sums_that_guards_depend_on_are_computed():
    """Lanes whose guard is true are counted, also of arithmetic."""
    kernel = compiled("""
        float y = d.y;
        asm volatile("{.reg .pred p; setp.gt.f32 p, %1, 0f3F800000; @p sin.approx.f32 %0, %0;}"
            : "+f"(y) : "f"(d.x));
        out[threadIdx.x] = y;
    """)
    flow = flow_of(kernel)
    assert without_unread_sums(flow) is flow.lowered
    assert counters(kernel, outputs=False) == counters(kernel, outputs=True)
