"""Facts on a kernel's schedule from machine code, next to those known from its source."""

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.problem import parse_shape
from kernels import LADDER
from kernels.selection import Selection
from tests.cubins import kernel_of
from tests.sampling import chosen_of
from toolkit import simulate
from toolkit.rungs.arguments import rung_arguments
from toolkit.rungs.launch import compile_for
from toolkit.rungs.matrices import Workload
from toolkit.sass.schedule_facts import schedule_facts

DEVICES = {"sm_75": "t4", "sm_86": "rtx-3090", "sm_90": "h200", "sm_120": "rtx-5090"}
CASES = [
    pytest.param(variant, arch, id=f"{variant.name}-{arch}")
    for variant in LADDER
    for arch in DEVICES
    if variant.runs_on(int(arch.removeprefix("sm_")))
]


def copies_of(variant):
    tiling = variant.tiling(variant.defaults)
    return "bulk" if tiling.bulk else "asynchronous" if tiling.asynchronous else "loads"


@pytest.mark.parametrize(
    ("variant", "arch"),
    chosen_of(CASES, lambda case: case[1] == "sm_90" or case[0].name == "double-buffered"),
)
def test_the_schedule_of_a_rung_is_that_of_its_source(variant, arch):
    kernel = compile_for(
        find_device(DEVICES[arch]), Selection(variant=variant, parameters=variant.defaults)
    )
    facts = schedule_facts(kernel)
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
def test_loads_that_travel_while_a_tile_is_read_are_told(kernel, *, fetches_ahead, has_barriers):
    code = kernel_of(ROW_SUMS, kernel)
    facts = schedule_facts(code)
    assert (facts.copies, facts.fetches_ahead) == ("loads", fetches_ahead)
    assert facts.has_barriers == has_barriers


WAITS = """
extern "C" __global__ void relay(int *flags, float *x) {
    int got = 1;
    if (blockIdx.x)
        do asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(got) : "l"(flags + blockIdx.x));
        while (!got);
    x[32 * blockIdx.x + threadIdx.x] = x[32 * (blockIdx.x - (blockIdx.x > 0)) + threadIdx.x] + 1;
    __threadfence();
    __syncwarp();
    if (threadIdx.x) return;
    asm volatile("st.release.gpu.s32 [%0], 1;" :: "l"(flags + blockIdx.x + 1));
}
extern "C" __global__ void flips(int *flag, float *x) {
    unsigned turn = 1;
    int got;
    do {
        asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(got) : "l"(flag));
        asm volatile("lop3.b32 %0, %0, %1, 3, 0x96;" : "+r"(turn) : "r"(got));
    } while (!got);
    *x = turn;
}
extern "C" __global__ void backs_off(int *flag, float *x) {
    unsigned pause = 1;
    int got;
    do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(got) : "l"(flag));
        __nanosleep(pause);
        pause *= 2;
    } while (!got);
    *x = pause;
}
"""


@pytest.mark.parametrize(
    ("kernel", "waits"), [("relay", True), ("backs_off", False), ("flips", False)]
)
def test_a_loop_that_leaves_nothing_to_its_next_pass_only_waits(kernel, waits):
    assert schedule_facts(kernel_of(WAITS, kernel)).waits == waits


def test_a_wait_counts_once_however_long_it_took():
    """Blocks in falling order of what they wait for: most of them ask many times."""
    blocks = 40
    flags, x = np.zeros(blocks + 1, np.int32), np.zeros(32 * blocks, np.float32)
    source = WAITS.replace("blockIdx.x", "(gridDim.x - 1 - blockIdx.x)")
    found = simulate(source, "relay", grid=blocks, block=32, arguments=[flags, x], device="h200")
    assert found.outputs[1].tolist() == np.repeat(np.arange(1, blocks + 1), 32).tolist()
    asked = [one for one in found.instructions if one.opcode == "LD" and "STRONG" in one.text]
    assert [one.executed for one in asked] == [blocks - 1]
    assert found.predicted is not None


@pytest.mark.parametrize("variant", [v for v in LADDER if v.rung < 16], ids=lambda v: v.name)
def test_the_steps_of_a_rung_are_its_k(variant):
    problem = parse_shape("32x32x160")
    executed = variant.executed(problem)
    selection = Selection(variant=variant, parameters=variant.defaults)
    kernel = compile_for(find_device("h200"), selection)
    geometry = variant.geometry(variant.defaults, executed)
    a, b = Workload(problem, 1).padded(executed)
    c = np.zeros((executed.m, executed.n), np.float32)
    found = simulate(
        kernel,
        grid=geometry.grid,
        block=geometry.block,
        dynamic_shared_bytes=geometry.dynamic_shared_bytes,
        arguments=rung_arguments(variant, variant.defaults, executed, (a, b, c)),
        predict=False,
    )
    steps = schedule_facts(kernel).steps([one.executed for one in found.instructions])
    busy = variant.tile_grid(variant.defaults, executed).tiles * geometry.warps_per_block
    assert steps / busy == pytest.approx(executed.k, rel=0.02)


COPIES = """
extern "C" __global__ void NAME(const char *from) {
    __shared__ __align__(16) char tile[4096];
    const unsigned to = (unsigned)__cvta_generic_to_shared(tile) + 16 * threadIdx.x;
    BODY
    asm volatile("cp.async.wait_all;" ::: "memory");
}
"""
PAST_L1 = 'asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from));'
BY_L1 = PAST_L1.replace(".cg.", ".ca.").replace("16;", "4;")


@pytest.mark.parametrize(
    ("name", "body", "past_l1"),
    [("past", PAST_L1, True), ("by", BY_L1, False), ("both", PAST_L1 + BY_L1, False)],
)
def test_whether_all_copies_pass_l1_by(name, body, past_l1):
    source = COPIES.replace("NAME", name).replace("BODY", body)
    facts = schedule_facts(kernel_of(source, name))
    assert facts.copies == "asynchronous"
    assert facts.past_l1 == past_l1
