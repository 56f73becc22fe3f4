"""The GPU through PyCUDA, on the made-up machine of conftest.py."""

import json
import sys

import numpy as np
import pytest

from analysis.errors import CompileError, InputError, LaunchError, UnavailableError
from analysis.geometry import Geometry
from analysis.l2_state import L2State
from tests.refusals import refusal
from toolkit.gpu.context import POISON, Gpu
from toolkit.gpu.launch import run
from toolkit.gpu.nvcc import nvcc_version

SOURCE = 'extern "C" __global__ void twice(float* x, int n) { }'


DOUBLED = [[0, 2, 4], [6, 4, 5]]  # the first four


def numbers():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


def twice(launch):
    launch.floats(0)[: launch.arguments[1]] *= 2


def run_twice(**changes):
    settings = {
        "grid": (1,),
        "block": (32, 2),
        "arguments": [numbers(), np.int32(4)],
    }
    return run(SOURCE, "twice", **settings | changes)


@pytest.fixture
def machine(cuda):
    cuda.kernels["twice"] = twice
    return cuda


def test_outputs_are_the_arrays_after_one_launch(machine):
    x = numbers()
    execution = run_twice(arguments=[x, np.int32(4)], samples=3)
    (output,) = execution.outputs
    assert output.tolist() == DOUBLED
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert execution.samples_s == pytest.approx([1e-3] * 3)


def test_arrays_in_columns_come_back_in_rows(machine):
    x = np.asfortranarray(numbers())
    (output,) = run_twice(arguments=[x, np.int32(2)]).outputs
    assert output.tolist() == [[0, 2, 2], [3, 4, 5]]


def test_resources_are_the_drivers(machine):
    resources = run_twice().resources
    assert (resources.registers_per_thread, resources.static_shared_bytes) == (40, 8192)
    assert (resources.architecture, resources.compiler) == ("sm_90", "nvcc 13.0")


def test_the_machine_code_that_ran_comes_with_the_result(machine):
    execution = run_twice(defines={"BM": 64})
    cubin = execution.cubin
    assert json.loads(cubin.image) == {  # the bytes that the module was loaded from
        "source": SOURCE,
        "options": ["-std=c++17", "-lineinfo", "-DBM=64"],
    }
    assert (cubin.name, cubin.symbol, cubin.architecture) == ("twice", "twice", "sm_90")
    assert (cubin.compiler, cubin.resources) == ("nvcc 13.0", execution.resources)


def test_scalars_are_packed_by_their_type(machine):
    got = []
    machine.kernels["twice"] = lambda launch: got.append(launch.arguments)
    scalars = [
        np.int8(-1),
        np.uint16(2),
        np.int32(-3),
        np.int64(2**40),
        np.float32(1),
        np.float64(2),
    ]
    run_twice(arguments=scalars)
    assert list(got[0]) == scalars


def test_defines_and_options_reach_the_compiler(machine):
    got = []
    machine.kernels["twice"] = lambda launch: got.append(launch.options)
    run_twice(defines={"BM": 64}, options=("-lineinfo", "-O1"))
    assert got == [["-std=c++17", "-lineinfo", "-O1", "-DBM=64"]]


def events(machine):
    """Events from the first launch on: guard bands are filled before it."""
    log = machine.log
    return [event for event in log[log.index("twice") :] if event != "allocate"]


def test_l2_holds_other_data_or_what_the_same_launch_left(machine):
    run_twice(samples=2)
    assert events(machine) == ["twice", *["fill 0x0", "hold", "twice"] * 2]
    assert machine.filled_bytes >= 2 * 2**10  # twice the L2 of conftest.py
    machine.log.clear()
    run_twice(samples=2, l2="warm")
    assert events(machine) == ["twice", *["twice", "hold", "twice"] * 2]


def test_the_hold_is_not_timed(machine):
    def hold(launch):
        launch.cuda.now_s += 5.0

    machine.kernels["hold"] = hold
    assert run_twice(samples=1).samples_s == pytest.approx((1e-3,))


def test_a_kernel_runs_in_a_process_of_its_own(children):
    children("""
DOUBLED = [[0, 2, 4], [6, 4, 5]]  # the first four


def numbers():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


def twice(launch):
    launch.floats(0)[: launch.arguments[1]] *= 2

cuda.kernels["twice"] = twice
""")
    execution = run_twice(samples=2)
    assert execution.outputs[0].tolist() == DOUBLED
    assert execution.samples_s == pytest.approx([1e-3] * 2)
    children("cuda.kernels['twice'] = lambda launch: ctypes.CDLL(None).sleep(3600)")
    assert refusal(LaunchError, run_twice, limit_s=0.01).startswith(
        "did not end within 0 s and was stopped: an endless"
    )


def test_a_write_beside_a_buffer_is_named(machine):
    def beside(launch):
        launch.cuda.memory(launch.arguments[0] + 4 * 6)[0] = 1

    machine.kernels["twice"] = beside
    assert "1 words behind argument 0 `x`, float32[2,3] were" in refusal(LaunchError, run_twice)


def test_poison_is_not_a_number():
    assert np.isnan(np.array([POISON], np.uint32).view(np.float32)[0])


def test_large_dynamic_shared_memory_is_asked_for(machine):
    run_twice(dynamic_shared_bytes=100_000)
    assert refusal(LaunchError, run_twice, dynamic_shared_bytes=300_000).startswith(
        "twice: 300000 bytes of dynamic shared memory: "
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": ()}, "^grid = "),
        ({"arguments": [np.zeros(1, np.float32), 7]}, "argument 1 of twice is .*: give a NumPy"),
    ],
)
def test_what_no_launch_takes_is_refused(machine, change, message):
    with pytest.raises(InputError, match=message):
        run_twice(**change)


def test_a_launch_that_the_driver_refuses(machine):
    with pytest.raises(LaunchError, match=r"^twice: cuLaunchKernel failed: invalid argument$"):
        run_twice(block=(1025,))


def test_a_launch_that_faults_is_one_line(machine):
    machine.kernels["twice"] = lambda launch: launch.cuda.fault()
    with pytest.raises(LaunchError, match=r"^twice: cuCtxSynchronize failed: .* encountered$"):
        run_twice()


def test_a_timed_launch_that_faults_is_a_launch_error(machine):
    with Gpu() as gpu:
        kernel = gpu.load(SOURCE, "twice", name="x.cu")
        buffer = gpu.upload(np.zeros(4, np.float32))
        launch = kernel.prepared(Geometry(grid=(1, 1, 1), block=(1, 1, 1)), [buffer, np.int32(1)])
        assert gpu.timer.time(launch, l2=L2State.DIRTY) == pytest.approx(1e-3)
        assert gpu.alive
        machine.fault()
        assert not gpu.alive
        for attempt in (
            lambda: gpu.timer.time(launch, l2=L2State.DIRTY),
            lambda: gpu.allocate(4),
            lambda: gpu.download(buffer, into=np.zeros(4, np.float32)),
        ):
            with pytest.raises(LaunchError, match=r"illegal memory access was encountered$"):
                attempt()


def test_no_room_says_how_much_is_free(machine):
    machine.free_bytes = 2**20
    assert refusal(InputError, run_twice, arguments=[np.zeros(10**8, np.float32)]).startswith(
        "0.40 GB more do not fit on the GPU (0.00 GB free)"
    )


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (
            'kernel.cu(3): warning #177-D: unused\n\nkernel.cu(7): error: identifier "x" is '
            "undefined\n      x;\n\n2 errors detected",
            'own.cu, line 7: does not compile: identifier "x" is undefined',
        ),
        (
            'kernel.cu(1): catastrophic error: cannot open source file "a.h"\n',
            'own.cu, line 1: does not compile: cannot open source file "a.h"',
        ),
        (
            "kernel.cu:2:10: fatal error: a.h: No such file or directory\n",
            "own.cu, line 2: does not compile: a.h: No such file or directory",
        ),
        (
            "ptxas info: 0 bytes\nptxas error   : Entry uses too much shared data\n",
            "own.cu does not compile: ptxas error   : Entry uses too much shared data",
        ),
        (
            "nvcc fatal   : Unsupported gpu architecture 'compute_90'\n",
            "own.cu does not compile: nvcc fatal   : Unsupported gpu architecture 'compute_90'",
        ),
        ("", "own.cu does not compile: nvcc failed without a message"),
    ],
)
def test_a_compile_error_is_one_line_with_its_place(machine, log, message):
    machine.compile_errors["twice"] = log
    with Gpu() as gpu, pytest.raises(CompileError) as caught:
        gpu.load(SOURCE, "twice", name="own.cu")
    assert str(caught.value) == message
    assert caught.value.log == log


def test_a_kernel_that_is_not_there_is_named(machine):
    machine.entries = {"hold"}
    assert refusal(InputError, run_twice).startswith(
        "kernel.cu: no kernel 'twice' in it: declare it"
    )


def test_a_machine_without_gpu_driver_or_compiler_is_unavailable(cuda, monkeypatch):
    cuda.nvcc = None
    assert refusal(UnavailableError, run_twice).startswith("nvcc cannot be run (nvcc was not found")
    cuda.gpus = 0
    assert "no CUDA-capable device is detected): run" in refusal(UnavailableError, run_twice)
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(UnavailableError, match=r"^PyCUDA cannot be imported .*: pip install"):
        run_twice()
    monkeypatch.setattr("toolkit.gpu.context.driver_library", lambda: None)
    assert "this machine has no NVIDIA driver (if it has" in refusal(UnavailableError, run_twice)


def test_a_compiler_that_compiles_nothing_is_unavailable(cuda):
    cuda.compile_errors["hold"] = "host_config.h:143:2: error: #error -- unsupported GNU version!\n"
    with pytest.raises(UnavailableError, match=r"^nvcc does not work here \(timer.cu, line 143"):
        run_twice()


@pytest.mark.parametrize("culprit", ["Event", "Device"])
def test_a_driver_that_fails_while_it_is_opened_is_unavailable(cuda, monkeypatch, culprit):
    def fail(*_):
        raise cuda.driver.LogicError("cuEventCreate failed: not permitted\nmore")

    if culprit == "Event":
        monkeypatch.setattr(cuda.driver, "Event", fail)
    else:
        monkeypatch.setattr(cuda.driver.Device, "get_attributes", fail)
    assert "no GPU (cuEventCreate failed: not permitted): " in refusal(
        UnavailableError, Gpu().__enter__
    )
    assert cuda.depth == 0


def test_a_gpu_can_be_opened_again(machine):
    gpu = Gpu()
    for _ in range(2):
        with gpu:
            assert gpu.device.key == "h100-sxm"


def test_a_compiler_of_an_unknown_version(cuda):
    assert nvcc_version() == "nvcc 13.0"
    cuda.nvcc = "something else"
    assert nvcc_version() == "nvcc"
