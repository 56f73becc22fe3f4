"""Kernels of wgmma: products against float64, setmaxnreg, faults, and values that nobody reads."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.errors import LaunchError
from analysis.geometry import Geometry
from tests.sampling import exhaustive
from toolkit import TensorMap, check, simulate
from toolkit.execution.simulator import Simulator
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.sass.core import binding as core
from toolkit.sass.regions import Flow
from toolkit.sass.translate import translate
from toolkit.sass.unread_values import NO_VALUES, without_unread_sums
from validation.wgmma.matrices import FOLDER, product

CASES = [
    ("specialised", "F16", (256, 256, 256), 3),  # blocks take tiles in turn
    exhaustive("plain", "BF16", (128, 256, 256), None),
    ("left_in_registers", "F16", (64, 128, 128), None),
    exhaustive("specialised", "TF32", (256, 128, 128), None),
    exhaustive("plain", "E4M3", (128, 128, 512), None),
    exhaustive("specialised", "S8", (128, 128, 512), None),
]


def sums_of(execution, shape):
    kinds = (np.float32, np.int32)
    return next(x for x in execution.outputs[::-1] if x.shape == shape and x.dtype in kinds)


@pytest.mark.parametrize(("kernel", "kind", "shape", "blocks"), CASES)
def test_a_product_is_right_and_has_no_finding(kernel, kind, shape, blocks):
    one = product(kernel, *shape, kind=kind, blocks=blocks)
    execution = simulate(one.source, kernel, **one.launch)
    errors = np.abs(sums_of(execution, shape[:2]) - one.wanted)
    assert not (errors > one.bound).any()
    assert execution.resources.architecture == "sm_90a"  # chosen, as the source needs it
    assert check(one.source, kernel, **one.launch).findings == ()


@pytest.mark.parametrize(
    ("kernel", "kind", "shape", "instructions", "wavefronts"),
    [  # as Nsight Compute counted them on an H200
        exhaustive("specialised", "F16", (512, 512, 512), 4096, 49152),
        exhaustive("plain", "BF16", (512, 256, 384), 1536, 18432),
        ("left_in_registers", "F16", (256, 256, 256), 512, 4096),
    ],
)
def test_products_and_their_wavefronts_are_counted(kernel, kind, shape, instructions, wavefronts):
    one = product(kernel, *shape, kind=kind)
    counters = simulate(one.source, kernel, **one.launch).counters
    assert counters["sm__inst_executed_pipe_tensor_op_gmma.sum"] == instructions
    assert counters["sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"] == wavefronts


def compiled(one):
    return compile_kernel(one.source, one.kernel, target="sm_90", defines=one.launch["defines"])


def geometry(one):
    x, y = np.atleast_1d(one.launch["grid"]).tolist()
    return Geometry(
        grid=(x, y, 1),
        block=(one.launch["block"], 1, 1),
        dynamic_shared_bytes=one.launch["dynamic_shared_bytes"],
    )


def flow_of(kernel):
    translated = translate(kernel)
    return Flow(translated.linked.instructions, translated.lowered)


def test_sums_that_nobody_asks_for_are_not_computed_and_counters_stay():
    one = product("plain", 128, 256, 256)
    kernel, given = compiled(one), one.launch["arguments"]
    program = without_unread_sums(flow_of(kernel)).program
    products = program["op"] == core.operations()["GMMA"]
    assert (program["flags"][products] & NO_VALUES["GMMA"]).all()
    whole, counts = (
        Simulator(outputs=outputs).run(kernel, geometry(one), given) for outputs in (True, False)
    )
    assert whole.counters == counts.counters


DECIDING = """
#include "wgmma.cuh"
extern "C" __global__ void deciding(const __grid_constant__ TensorMap A, float *c) {
    __shared__ __align__(1024) unsigned char tile[128 * ROW];
    __shared__ __align__(8) unsigned long long full;
    const unsigned barrier = shared_address(&full), at = shared_address(tile);
    if (threadIdx.x == 0) begin_barrier(barrier, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(barrier, sizeof tile);
        copy(at, &A, 0, 0, barrier);
    }
    wait(barrier, 0);
    SUM x[SUMS];
    fence();
    multiply(x, descriptor(at), descriptor(at), 0);
    commit();
    wait_for_groups<0>();
    if (x[0] > 0) c[threadIdx.x] = x[0];
}
"""


def test_sums_that_a_branch_depends_on_are_computed():
    options = ["-lineinfo", "-DTYPE_F16", f"-I{FOLDER}"]
    kernel = compile_kernel(DECIDING, "deciding", target="sm_90", options=options)
    flow = flow_of(kernel)
    assert without_unread_sums(flow) is flow.lowered
    a = np.full((128, 64), -1, dtype=np.float16)
    tile, c = TensorMap(a, (128, 64), swizzle=128), np.zeros(128, dtype=np.float32)
    one = Geometry(grid=(1, 1, 1), block=(128, 1, 1), dynamic_shared_bytes=0)
    stored = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
    assert Simulator(outputs=False).run(kernel, one, [tile, c]).counters[stored] == 4  # warps


# setmaxnreg

REGISTERS = """
extern "C" __global__ void __launch_bounds__(256, 1) shared_out(int *taken) {
    if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 GIVES;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 TAKES;");
    taken[threadIdx.x] = 1;
}
"""


def shared_out(gives, takes, registers):
    text = REGISTERS.replace("GIVES", str(gives)).replace("TAKES", str(takes))
    kernel = compile_kernel(text, "shared_out", target="sm_90", options=["-lineinfo"])
    resources = replace(kernel.resources, registers_per_thread=registers)
    kernel = replace(kernel, resources=resources)
    return simulate(kernel, grid=1, block=256, arguments=[np.zeros(256, np.int32)])


def test_registers_that_one_warpgroup_gives_another_takes():
    assert shared_out(24, 232, 128).outputs[0].all()


def test_registers_that_nobody_gives_are_waited_for_in_vain():
    with pytest.raises(LaunchError, match=r"for registers that no warp gives back: let setmaxnreg"):
        shared_out(40, 232, 128)
