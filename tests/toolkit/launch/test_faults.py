"""Kernels that do something wrong: a reason in one line, on the simulator and on silicon.

On silicon the kernel has a process of its own. The simulator names the place too; more of what it
says is in tests/toolkit/execution/test_simulate.py.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from analysis.errors import ToolkitError
from analysis.geometry import Geometry
from tests.cubins import cubin_of
from tests.machines import GPU
from tests.sampling import exhaustive
from toolkit.execution.simulator import Simulator
from toolkit.gpu.gpu_launch import GpuLaunch
from toolkit.gpu.launch import InAChild, task_of
from toolkit.gpu.product_launch import LAUNCHES
from toolkit.machine_code.kernel import Kernel

EXTENT = 64  # of the matrices, and of the grid
C = 2  # where it stands among the arguments of HEAD
HEAD = """
extern "C" __global__ void planted(float* A, float* B, float* C, int M, int N, int K,
                                   float alpha, float beta)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
"""
AT_THE_BODY = "planted.cu, line 7: "
BY_THE_FIRST = f"; block (0, 0, 0), thread (0, 0, 0), {AT_THE_BODY}"

A_LABEL, B_LABEL, C_LABEL = (
    f"argument {position} `{name}`, float32[64,64]" for position, name in enumerate("ABC")
)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A mistake of a kernel, and words of the reason; None if nothing is reported."""

    body: str
    silicon: str | None
    simulator: str | None


FAULTS = {
    "writes far out of bounds": Fault(
        body="C[(1ull << 40) + i] = 1.0f;",
        silicon="illegal memory access",
        simulator=f"(16,384 bytes at 0x7f2000028000){BY_THE_FIRST}ST",
    ),
    "reads far out of bounds": Fault(
        body="C[i] = A[(1ull << 40) + i];",
        silicon="illegal memory access",
        simulator=f"(16,384 bytes at 0x7f2000028000){BY_THE_FIRST}LD",
    ),
    "writes behind C": Fault(
        body="C[M * N + i % 32] = 1.0f;",
        silicon=f"behind {C_LABEL} were overwritten",
        simulator=": right after the end of argument 2, float32[64,64] (16,384 bytes at 0x7f",
    ),
    "writes in front of C": Fault(
        body="C[-1 - i % 32] = 1.0f;",
        silicon=f"in front of {C_LABEL} were overwritten",
        simulator=": 4 bytes before argument 2, float32[64,64] (16,384 bytes at 0x7f",
    ),
    "writes behind A": Fault(
        body="A[M * K] = 1.0f;",
        silicon=f"behind {A_LABEL} were overwritten",
        simulator=": right after the end of argument 0, float32[64,64] (16,384 bytes at 0x7f",
    ),
    "writes to its input": Fault(
        body="B[i % 8] = 7.0f;",
        silicon=f"wrote to {B_LABEL}, which is an input",
        simulator=None,  # it is not told what an input is
    ),
    "loops for ever": Fault(
        body="while (*(volatile float*)C == *(volatile float*)C + 1 || alpha > 0) {}",
        silicon="did not end within",
        simulator="did not end within its instruction limit: an endless loop? If it only takes "
        f"long, raise --max-instructions; block (0, 0, 0), {AT_THE_BODY}",
    ),
    "waits for threads that never come": Fault(
        body='if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); '
        'else while (1) asm volatile("");',
        silicon="did not end within",
        simulator="did not end within its instruction limit",
    ),
    "traps": Fault(
        body="if (blockIdx.x == 1 && threadIdx.x == 37) __trap();",
        silicon="planted: ",
        simulator=" trapped (__trap or __brkpt); block (1, 0, 0), thread (37, 0, 0), "
        f"{AT_THE_BODY}",
    ),
    "fails an assert": Fault(
        body="assert(threadIdx.x < 37);",
        silicon="planted: ",
        simulator="int, float, float)` (planted.cu, line 7); block (0, 0, 0), thread (37, 0, 0), "
        f"{AT_THE_BODY}CALL.",
    ),
    "reads misaligned": Fault(
        body="C[i] = *(float*)((char*)A + 1 + 4 * (i % 8));",
        silicon="misaligned",
        simulator="1 (byte 1 of element 0 of argument 0, float32[64,64]): it is not a multiple of 4"
        f"{BY_THE_FIRST}LD",
    ),
    "follows a null pointer": Fault(
        body="*(volatile float*)(size_t)(i % 2) = 1.0f;",
        silicon="planted: ",
        simulator=f": global write of 4 bytes out of bounds at 0x0: a null pointer{BY_THE_FIRST}",
    ),
    "jumps through a wild pointer": Fault(
        body="((void (*)(int))(size_t)(0x10000 + M))(i);",
        silicon="planted: ",
        simulator=f" jumped out of its code: a wrong function pointer?{BY_THE_FIRST}",
    ),
    "overflows its stack": Fault(
        body="volatile float deep[100000]; deep[i] = 1; C[i] = deep[i + 1];",
        silicon="",  # the driver may grow the stack
        simulator=None,
    ),
    "stays in its buffers": Fault(body="if (i < M * N) C[i] = 0.0f;", silicon=None, simulator=None),
}


def source_of(name):
    return f"#include <cassert>\n{HEAD}{FAULTS[name].body}\n}}\n"


@cache
def all_of_them(arch):
    """One image: each costs a run of nvdisasm. The kernels are called planted_0 and so on."""
    kernels = (
        f'#line 2 "planted.cu"\n{HEAD.replace("planted", f"planted_{number}")}{fault.body}\n}}\n'
        for number, fault in enumerate(FAULTS.values())
    )
    return cubin_of("#include <cassert>\n" + "".join(kernels), "planted_0", arch).image


def launch_once(machine, name, block, dynamic_shared_bytes):
    zeros = np.zeros((EXTENT, EXTENT), np.float32)
    launch = GpuLaunch(
        source=source_of(name),
        name="planted.cu",
        kernel="planted",
        geometry=Geometry(
            grid=(EXTENT, 1, 1), block=(block, 1, 1), dynamic_shared_bytes=dynamic_shared_bytes
        ),
        arguments=[
            *(zeros.copy() for _ in range(3)),
            *map(np.int32, (EXTENT, EXTENT, EXTENT)),
            np.float32(1),
            np.float32(0),
        ],
        inputs=(0, 1),
        unwritten=(C,),
    )
    if machine.is_silicon:
        with InAChild(task_of(launch, limit_s=15.0)) as child:
            child.result(C, LAUNCHES)
    else:
        cubin = Kernel.from_image(all_of_them(machine.arch), f"planted_{[*FAULTS].index(name)}")
        simulator = Simulator(arch=machine.arch, max_instructions=10**6)
        simulator.run(cubin, launch.geometry, launch.arguments)


def reason_of(machine, name, block=64, dynamic_shared_bytes=0):
    """Reason why a launch fails; None if it does not."""
    try:
        launch_once(machine, name, block, dynamic_shared_bytes)
    except ToolkitError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "machine",
    ["sm_75", "sm_120", exhaustive("sm_86"), exhaustive("sm_90"), GPU],
    indirect=True,
)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_reason(machine, name):
    words = FAULTS[name].silicon if machine.is_silicon else FAULTS[name].simulator
    reason = reason_of(machine, name)
    if words is None:
        assert reason is None
    elif words:
        assert words in reason
        assert "\n" not in reason


@pytest.mark.parametrize("how", [{"dynamic_shared_bytes": 10**6}, {"block": 2048}])
def test_what_exceeds_the_machine_is_a_reason(machine, how):
    assert reason_of(machine, "stays in its buffers", **how) is not None
