"""A made-up GPU: PyCUDA and cuBLAS as the toolkit calls them, with NumPy for silicon.

Memory is an array of bytes per allocation, launches advance a clock that the events read, and a
kernel is a Python function that gets what the launch got. Calls outside of a context and calls
after a fault fail as the driver's do.
"""

import ctypes
import json
import os
import signal
import struct
import sys
import types
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from tests.forks import forked
from tests.records_by_hand import resources
from tests.toolkit import fake_ncu
from toolkit.gpu import context, event_timer, sampling
from toolkit.gpu.launch import InAChild, OnGpu
from toolkit.machine_code import kernel as cubin

# What makes output coloured, of another width than 80, or unbuffered: also in child processes.
for _variable in (
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "PY_COLORS",
    "PYTHONUNBUFFERED",
    "TTY_COMPATIBLE",
):
    os.environ.pop(_variable, None)

# Who runs in the background of a shell ignores Ctrl-C, and so would the processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

GPU_NAME = "NVIDIA H100 80GB HBM3"
L2_BYTES = 2**10  # small: it is filled for every sample
Kernel = Callable[["FakeLaunch"], None]


class FakeLaunch:
    """Inputs of one launch of a kernel; buffers by their position among the arguments."""

    def __init__(self, cuda, grid, block, arguments, options):
        self.cuda, self.grid, self.block = cuda, grid, block
        self.arguments, self.options = arguments, options

    def floats(self, position):
        return self.cuda.memory(self.arguments[position]).view(np.float32)


def product(launch):
    """C = alpha·A·B; C is not read."""
    m, n, k = (int(size) for size in launch.arguments[3:6])
    a, b = launch.floats(0)[: m * k].reshape(m, k), launch.floats(1)[: k * n].reshape(k, n)
    launch.floats(2)[: m * n] = (np.float32(launch.arguments[6]) * (a @ b)).ravel()


class FakeCuda:
    """The machine; a test changes its fields to make it fail."""

    def __init__(self):
        self.gpus = 1
        self.name = GPU_NAME
        self.nvcc = "Cuda compilation tools, release 13.0, V13.0.88"
        self.free_bytes = 80 * 2**30
        self.kernels = {"hold": lambda launch: None}
        self.product = product  # of every entry that is not among the kernels
        self.launch_s = 1e-3
        self.compile_errors = {}  # a word of the source -> what nvcc prints
        self.entries = None  # None: every module has every kernel
        self.depth = 0  # of the stack of contexts
        self.broken = None
        self.now_s = 0.0
        self.log = []  # what was done, in order
        self.filled_bytes = 0  # by the last fill
        self._buffers = {}
        self.driver = self._driver()

    def memory(self, address):
        for base, content in self._buffers.items():
            if base <= int(address) < base + content.nbytes:
                return content[int(address) - base :]
        raise KeyError(f"{address:#x} is in no buffer")

    def check(self):
        if self.depth < 1:
            raise self.driver.LogicError("cuda call failed: invalid device context")
        if self.broken:
            raise self.broken

    def fault(self):
        """Fail as after an illegal access: every call from now on fails."""
        self.broken = self.driver.LogicError(
            "cuCtxSynchronize failed: an illegal memory access was encountered\nmore"
        )

    def _driver(self):
        cuda = self
        driver = types.ModuleType("pycuda.driver")

        class Error(Exception):
            pass

        class CompileError(Error):
            def __init__(self, stderr):
                super().__init__("nvcc compilation of /tmp/x/kernel.cu failed")
                self.stderr = stderr

        driver.Error, driver.CompileError = Error, CompileError
        for name in ("MemoryError", "LaunchError", "LogicError", "RuntimeError"):
            setattr(driver, name, type(name, (Error,), {}))

        class Allocation:
            def __init__(self, size):
                self.address = 2**32 * (len(cuda.log) + 1) + 2**40
                cuda._buffers[self.address] = np.zeros(size, np.uint8)
                cuda.free_bytes -= size

            def __int__(self):
                return self.address

            def __del__(self):
                cuda.free_bytes += cuda._buffers.pop(self.address).nbytes

        class Event:
            def record(self):
                cuda.check()
                self.at_s = cuda.now_s

            def synchronize(self):
                cuda.check()

            def time_since(self, other):
                cuda.check()
                return 1e3 * (self.at_s - other.at_s)

        class Context:
            def push(self):
                cuda.depth += 1

            @staticmethod
            def pop():
                assert cuda.depth > 0
                cuda.depth -= 1

            def detach(self):
                pass

            @staticmethod
            def synchronize():
                cuda.check()

        attributes = {
            "MULTIPROCESSOR_COUNT": 132,
            "CLOCK_RATE": 1_980_000,
            "MEMORY_CLOCK_RATE": 2_619_000,
            "GLOBAL_MEMORY_BUS_WIDTH": 5120,
            "L2_CACHE_SIZE": L2_BYTES,
            "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
            "MAX_REGISTERS_PER_MULTIPROCESSOR": 65_536,
            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233_472,
            "MAX_SHARED_MEMORY_PER_BLOCK": 49_152,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232_448,
            "RESERVED_SHARED_MEMORY_PER_BLOCK": 1024,
        }

        class Device:
            def __init__(self, ordinal):
                assert 0 <= ordinal < cuda.gpus

            @staticmethod
            def count():
                return cuda.gpus

            def retain_primary_context(self):
                return Context()

            def name(self):
                return cuda.name

            def compute_capability(self):
                return 9, 0

            def total_memory(self):
                return 85_028_765_696

            def pci_bus_id(self):
                return "0000:00:00.0"

            def get_attributes(self):
                return dict(attributes)

        def init():
            if cuda.gpus < 1:
                raise driver.RuntimeError("cuInit failed: no CUDA-capable device is detected")

        def mem_alloc(size):
            cuda.check()
            if size > cuda.free_bytes:
                raise driver.MemoryError("cuMemAlloc failed: out of memory")
            cuda.log.append("allocate")
            return Allocation(size)

        def memcpy_htod(buffer, array):
            cuda.check()
            cuda.memory(int(buffer))[: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)

        def memcpy_dtoh(array, buffer):
            cuda.check()
            assert array.flags["C_CONTIGUOUS"]
            array.reshape(-1).view(np.uint8)[:] = cuda.memory(int(buffer))[: array.nbytes]

        def memset_d32(buffer, word, count):
            cuda.check()
            cuda.log.append(f"fill {word:#x}")
            cuda.filled_bytes = 4 * count
            cuda.memory(int(buffer)).view(np.uint32)[:count] = word

        driver.Context, driver.Device, driver.Event = Context, Device, Event
        driver.init, driver.mem_alloc = init, mem_alloc
        driver.memcpy_htod, driver.memcpy_dtoh = memcpy_htod, memcpy_dtoh
        driver.memset_d32 = driver.memset_d32_async = memset_d32
        driver.module_from_buffer = lambda image: FakeModule(cuda, image)
        driver.start_profiler = lambda: cuda.log.append("start profiler")
        driver.stop_profiler = lambda: cuda.log.append("stop profiler")
        driver.mem_get_info = lambda: (cuda.free_bytes, 80 * 2**30)
        driver.device_attribute = SimpleNamespace(**{name: name for name in attributes})
        driver.function_attribute = SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic")
        return driver

    def compiler(self):
        cuda = self
        compiler = types.ModuleType("pycuda.compiler")

        def get_nvcc_version(nvcc):
            if cuda.nvcc is None:
                raise OSError("nvcc was not found (is it on the PATH?)\n[No such file]")
            return cuda.nvcc

        def compile_source(source, *, options, no_extern_c):
            cuda.check()
            get_nvcc_version("nvcc")
            assert no_extern_c
            for word, log in cuda.compile_errors.items():
                if word in source:
                    raise cuda.driver.CompileError(log)
            return json.dumps({"source": source, "options": options}).encode()

        compiler.compile, compiler.get_nvcc_version = compile_source, get_nvcc_version
        return compiler

    def modules(self):
        """Modules of Python on a machine with PyCUDA, and without cuBLAS and NVML."""
        package = types.ModuleType("pycuda")
        package.driver, package.compiler = self.driver, self.compiler()
        return {
            "pycuda": package,
            "pycuda.driver": package.driver,
            "pycuda.compiler": package.compiler,
            "nvmath.bindings": None,
            "pynvml": None,
        }


def made_up_kernel(image, symbol):
    """Kernel of an image that the made-up compiler returned."""
    made_of = resources(architecture="sm_90", compiler="made up")
    return cubin.Kernel(
        image=image,
        name=symbol,
        symbol=symbol,
        resources=made_of,
        code=b"",
        functions={},
        lines={},
        parameters=(),
        parameter_base=0,
        constant_banks={},
        constants=(),
        variables=(),
        relocations=(),
        code_relocations=(),
        max_threads=None,
        required_block=None,
        cluster=(1, 1, 1),
        warp_operations={},
        unsupported="it is made up",
    )


class FakeModule:
    """A loaded module; its image is what the made-up compiler returned."""

    def __init__(self, cuda, image):
        cuda.check()
        is_made_up = image.startswith(b"{")  # else it is of NVRTC
        self.cuda, self.options = cuda, json.loads(image)["options"] if is_made_up else []

    def get_function(self, name):
        if self.cuda.entries is not None and name not in self.cuda.entries:
            raise self.cuda.driver.LogicError("cuModuleGetFunction failed: named symbol ...")
        return FakeFunction(self.cuda, name, self.options)


class FakeFunction:
    num_regs = 40
    shared_size_bytes = 8192
    local_size_bytes = 0

    def __init__(self, cuda, name, options):
        self.cuda, self.name, self.options = cuda, name, options
        self.format = ""
        self.dynamic = 49_152

    def prepare(self, codes):
        self.format = codes

    def set_attribute(self, attribute, value):
        self.cuda.check()
        assert attribute == "dynamic"
        if value > 232_448:
            raise self.cuda.driver.LogicError("cuFuncSetAttribute failed: invalid argument")
        self.dynamic = value

    def prepared_call(self, grid, block, *arguments, shared_size=0):
        cuda = self.cuda
        cuda.check()
        struct.pack(self.format, *arguments)  # as PyCUDA packs them: wrong codes show
        if np.prod(block) > 1024 or shared_size > self.dynamic:
            raise cuda.driver.LogicError("cuLaunchKernel failed: invalid argument")
        cuda.log.append(self.name)
        cuda.now_s += cuda.launch_s
        if self.name.startswith("next_is__"):  # announces a launch to a profiler
            return
        kernel = cuda.kernels.get(self.name, cuda.product)
        kernel(FakeLaunch(cuda, grid, block, arguments, self.options))


class FakeCublas(types.ModuleType):
    """nvmath.bindings.cublas: column-major, on the made-up GPU's memory."""

    Operation = SimpleNamespace(N=0)

    def __init__(self, cuda):
        super().__init__("nvmath.bindings.cublas")
        self.cuda = cuda
        self.handles = 0
        self.error = None
        self.factor = np.float32(1)

    def modules(self):
        """Modules of Python on a machine with cuBLAS."""
        bindings = types.ModuleType("nvmath.bindings")
        bindings.cublas = self
        return {
            "nvmath": types.ModuleType("nvmath"),
            "nvmath.bindings": bindings,
            "nvmath.bindings.cublas": self,
        }

    def create(self):
        self.cuda.check()
        self.handles += 1
        return 77

    def destroy(self, handle):
        assert handle == 77
        self.cuda.check()
        self.handles -= 1

    def get_version(self, handle):
        assert handle == 77
        return 130_102

    def sgemm(
        self, handle, transa, transb, m, n, k, alpha,
        a, lda, b, ldb, beta, c, ldc,
    ):  # fmt: skip
        assert (handle, transa, transb) == (77, 0, 0)
        if self.error:
            raise self.error
        self.cuda.check()
        self.cuda.log.append("cublas")
        self.cuda.now_s += self.cuda.launch_s / 2
        scale = ctypes.cast(alpha, ctypes.POINTER(ctypes.c_float))[0]
        assert ctypes.cast(beta, ctypes.POINTER(ctypes.c_float))[0] == 0

        def column_major(address, rows, columns, leading):
            floats = self.cuda.memory(address).view(np.float32)
            return floats[: leading * columns].reshape(columns, leading).T[:rows]

        result = column_major(c, m, n, ldc)
        result[:] = self.factor * scale * column_major(a, m, k, lda) @ column_major(b, k, n, ldb)


@pytest.fixture
def made_up_ncu(tmp_path, monkeypatch):
    """The command of fake_ncu.py on the PATH."""
    command = tmp_path / "bin" / "ncu"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {fake_ncu.__file__} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    return command


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """A folder for what is kept from run to run."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GEMM_LADDER_CACHE", str(folder))
    return folder


@pytest.fixture
def no_gpu(monkeypatch):
    """A machine without one."""
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setattr("toolkit.gpu.context.driver_library", lambda: None)


def adapt(set_attribute):
    """Change what of the toolkit is no call of PyCUDA, or takes long for NumPy."""
    set_attribute(context, "driver_library", object)
    set_attribute(context, "read_kernel", made_up_kernel)
    set_attribute(sampling, "WARM_UP_S", 0.0)
    set_attribute(event_timer, "OTHER_BYTES", 2 * L2_BYTES)


@pytest.fixture
def cuda(monkeypatch):
    """A machine with one GPU, PyCUDA and nvcc, and without cuBLAS."""
    fake = FakeCuda()
    for name, module in fake.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    adapt(monkeypatch.setattr)
    # a child process would not see this machine: that of `children` has one of its own
    for user in ("profiling.on_gpu", "profiling.competitors", "gpu.launch"):
        monkeypatch.setattr(f"toolkit.{user}.InAChild", OnGpu)
    yield fake
    assert fake.depth == 0, "PyCUDA aborts a process that ends inside of a context"


# What a child process runs: the made-up GPU, some code that changes it, and the child's part.
MADE_UP_GPU = """
import ctypes, os, sys
from tests.toolkit import conftest

cuda = conftest.FakeCuda()
sys.modules |= cuda.modules()
import numpy.random, toolkit.gpu.product_launch, toolkit.gpu.worker_process
conftest.adapt(setattr)
"""
CHILD = "toolkit.gpu.worker_process.main()\n"


@pytest.fixture
def isolated(cuda, monkeypatch):
    """Launches are made in child processes."""
    for user in ("profiling.on_gpu", "profiling.competitors", "gpu.launch"):
        monkeypatch.setattr(f"toolkit.{user}.InAChild", InAChild)
    monkeypatch.setattr("toolkit.gpu.worker_process.GRACE_S", 1.0)


@pytest.fixture
def interpreters(isolated, monkeypatch, tmp_path):
    """Child processes with a made-up GPU each, started as the toolkit starts them."""
    script = tmp_path / "child.py"
    script.write_text(f"{MADE_UP_GPU}\n{CHILD}")
    monkeypatch.setattr("toolkit.gpu.worker_process.COMMAND", (sys.executable, str(script)))


@pytest.fixture
def children(isolated, monkeypatch):
    """Real child processes, each with a made-up GPU of its own; some code changes that, `cuda`.

    They are forked, which takes less time than an interpreter for each.
    """

    def changed_by(code):
        monkeypatch.setattr(
            "toolkit.gpu.worker_process._started",
            lambda _, pipe, shows_output: forked(
                MADE_UP_GPU, f"{code}\n{CHILD}", pipe, shows_output
            ),
        )

    changed_by("")
    return changed_by


@pytest.fixture
def cublas(cuda, monkeypatch):
    """cuBLAS on that machine."""
    fake = FakeCublas(cuda)
    for name, module in fake.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    return fake
