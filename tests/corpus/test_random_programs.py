"""Random programs on the simulator, on silicon and on the host: the same results, bit by bit.

Here are a few of them, the same ones each time. `python -m validation.corpus.random_warps 0 2000`
takes 2,000 others in which lanes work together.
"""

import ctypes
import sys

import numpy as np
import pytest

from analysis.geometry import Geometry
from tests.machines import GPU
from tests.sampling import chosen_of, exhaustive
from toolkit.gpu.gpu_launch import GpuLaunch
from toolkit.native import compile_library, compiler
from validation.corpus.inventory import ARCHITECTURES
from validation.corpus.random_programs import on_a_gpu, on_the_host
from validation.corpus.random_warps import FLAGS, mismatches

THREADS = 64


def inputs(seed):
    numbers = np.random.default_rng(seed).integers(-(2**31), 2**31, THREADS).astype(np.int32)
    numbers[::5] = np.arange(len(numbers[::5]))
    return numbers


def of_the_host(seed, folder):
    source, library = folder / "program.c", folder / "program.so"
    source.write_text(on_the_host(seed), encoding="utf-8")
    compile_library(compiler(), [source], library, FLAGS)
    out = np.zeros(THREADS, np.uint32)
    given = inputs(seed)
    ctypes.CDLL(str(library)).run(
        out.ctypes.data_as(ctypes.c_void_p), given.ctypes.data_as(ctypes.c_void_p), THREADS
    )
    return out


def of_the_machine(machine, seed):
    launch = GpuLaunch(
        source=on_a_gpu(seed),
        name="program.cu",
        kernel="run",
        geometry=Geometry(grid=(2, 1, 1), block=(45, 1, 1)),  # of full warps and others
        arguments=[np.zeros(THREADS, np.uint32), inputs(seed), np.int32(THREADS)],
        options=("-lineinfo", "--fmad=false"),
    )
    return machine.execution(launch).outputs[0]


SIMULATED = chosen_of(ARCHITECTURES, lambda arch: arch == "sm_90")


@pytest.mark.skipif(compiler() is None, reason="needs gcc, clang or the ziglang wheel")
@pytest.mark.parametrize("machine", [*SIMULATED, GPU], indirect=True)
def test_a_random_program_computes_what_the_host_computes(machine, tmp_path):
    seed = int(machine.arch.removeprefix("sm_"))  # the same programs each time: others by hand
    assert np.array_equal(of_the_machine(machine, seed), of_the_host(seed, tmp_path)), seed


@pytest.mark.skipif(compiler() is None, reason="needs gcc, clang or the ziglang wheel")
@pytest.mark.skipif(sys.platform == "win32", reason="needs ucontext.h")
@pytest.mark.parametrize(
    ("arch", "first"),
    [
        *chosen_of([(arch, 0) for arch in ARCHITECTURES], lambda case: case[0] == "sm_90"),
        *(exhaustive(arch, first) for arch in ARCHITECTURES for first in range(1, 41, 8)),
    ],
)
def test_lanes_that_work_together_do_what_the_host_does(arch, first, tmp_path):
    begin = 1000 * int(arch.removeprefix("sm_")) + first
    count = 8 if first else 1
    assert mismatches(range(begin, begin + count), arch, tmp_path) == []
