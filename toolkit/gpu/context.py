"""Silicon: one CUDA context through PyCUDA, with kernels, buffers and event timing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.devices import DriverFacts, device_from_driver
from analysis.errors import (
    CompileError,
    InputError,
    LaunchError,
    UnavailableError,
    first_line,
)
from analysis.geometry import Geometry
from analysis.occupancy import Resources
from toolkit.gpu.driver import EncodedMap, driver_library, prepared_launch
from toolkit.machine_code.kernel import Kernel, read_kernel

if TYPE_CHECKING:
    from analysis.devices import Device

POINTER_BYTES = 8
POISON = 0x7FC0BAD0  # a NaN: what a kernel leaves unwritten cannot pass for a number
LANGUAGE_OPTIONS = ("-std=c++17",)

# Busy until the host has queued what is timed, so that no launch gap falls between the events.
HOLD_NANOSECONDS = 50_000
HOLD_SOURCE = """
extern "C" __global__ void hold(unsigned nanoseconds)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - start < nanoseconds);
}
"""

# "kernel.cu(3): error: ..." of nvcc, "kernel.cu:3:10: fatal error: ..." of the host's compiler
_NVCC_ERROR = re.compile(
    r"^[^\s(:]+(?:\((\d+)\)|:(\d+)(?::\d+)?): (?:catastrophic |fatal )?error: (.+)$",
    re.MULTILINE,
)


class Gpu:
    """One CUDA context on one GPU; a context manager.

    Raises UnavailableError with the remedy where there is no driver, no GPU, no PyCUDA.
    """

    def __init__(self, ordinal: int = 0) -> None:
        self._driver = _pycuda_driver()
        self._ordinal = ordinal
        self._filler: Any = None

    def __enter__(self) -> Gpu:
        cuda = self._driver
        try:
            cuda.init()
            found = cuda.Device.count()
            if self._ordinal >= found:
                raise UnavailableError(
                    f"GPU {self._ordinal} is not there: the driver sees {found}: "
                    "run `python -m toolkit doctor`"
                )
            self._handle = cuda.Device(self._ordinal)
            self._context = self._handle.retain_primary_context()
        except cuda.Error as error:
            raise _no_gpu(error) from None
        self._context.push()
        try:
            self.device: Device = device_from_driver(_facts(self._handle, cuda))
            self._events = cuda.Event(), cuda.Event()
            self._hold = self.load(HOLD_SOURCE, "hold", name="hold.cu").prepared(
                Geometry.of(1, 1), [np.uint32(HOLD_NANOSECONDS)]
            )
        except CompileError as error:  # what always compiles
            self.__exit__()
            raise UnavailableError(
                f"nvcc does not work here ({error}): run `python -m toolkit doctor`"
            ) from None
        except cuda.Error as error:
            self.__exit__()
            raise _no_gpu(error) from None
        except BaseException:  # PyCUDA aborts a process that ends inside of a context
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._filler = None
        self._driver.Context.pop()
        self._context.detach()

    @property
    def pci_bus_id(self) -> str:
        return str(self._handle.pci_bus_id())

    @property
    def alive(self) -> bool:
        """Whether the context still works: after an illegal access every call fails for good."""
        try:
            self.synchronize()
        except self._driver.Error:
            return False
        return True

    @property
    def free_bytes(self) -> int:
        return int(self._driver.mem_get_info()[0])

    def load(
        self,
        source: str,
        kernel: str,
        *,
        name: str,
        defines: Mapping[str, object] | None = None,
        options: Sequence[str] = ("-lineinfo",),
    ) -> LoadedKernel:
        """Compile `source` with nvcc through PyCUDA and take one kernel of it.

        Raises CompileError with the compiler's first error, InputError for a kernel that is
        not there, UnavailableError without nvcc.
        """
        macros = [f"-D{macro}={value}" for macro, value in (defines or {}).items()]
        image, module = self._compile(source, [*LANGUAGE_OPTIONS, *options, *macros], name)
        try:
            function = module.get_function(kernel)
        except self._driver.Error:
            raise InputError(
                f'{name}: no kernel {kernel!r} in it: declare it extern "C" __global__'
            ) from None
        return LoadedKernel(self, module, function, kernel, image)

    def load_image(self, image: bytes, kernel: str) -> LoadedKernel:
        """One kernel of machine code that was compiled before.

        Raises LaunchError where this GPU cannot load it, or where it has no such kernel.
        """
        with self.launch_errors(f"machine code of {kernel}"):
            module = self._driver.module_from_buffer(image)
            return LoadedKernel(self, module, module.get_function(kernel), kernel, image)

    def _compile(self, source: str, options: list[str], name: str) -> tuple[bytes, Any]:
        """The machine code and its module: a SourceModule, but one that shows its bytes."""
        from pycuda.compiler import compile as compile_source

        try:
            with warnings.catch_warnings():  # remarks of a compiler that succeeded
                warnings.simplefilter("ignore", UserWarning)
                image = compile_source(source, options=options, no_extern_c=True)
                return image, self._driver.module_from_buffer(image)
        except self._driver.CompileError as error:
            raise compile_error(name, str(error.stderr)) from None
        except OSError as error:
            raise UnavailableError(
                f"nvcc cannot be run ({first_line(error)}): install NVIDIA's CUDA toolkit and "
                "put nvcc on the PATH"
            ) from None
        except self._driver.Error as error:
            raise LaunchError(f"{name} cannot be loaded: {first_line(error)}") from None

    def upload(self, array: NDArray[np.generic]) -> Any:
        """A buffer on the GPU with the content of `array`."""
        contiguous = np.ascontiguousarray(array)
        buffer = self.allocate(contiguous.nbytes)
        with self.launch_errors("copy to the GPU"):
            self._driver.memcpy_htod(buffer, contiguous)
        return buffer

    def allocate(self, size_bytes: int) -> Any:
        """A buffer on the GPU; raises InputError where there is no room for it."""
        try:
            return self._driver.mem_alloc(max(size_bytes, 1))
        except self._driver.MemoryError:
            raise InputError(
                f"{size_bytes / 1e9:.2f} GB more do not fit on the GPU "
                f"({self.free_bytes / 1e9:.2f} GB free): take a smaller shape or close other "
                "programs"
            ) from None
        except self._driver.Error as error:
            raise LaunchError(f"allocation: {first_line(error)}") from None

    def download(self, buffer: Any, *, into: NDArray[Any]) -> None:
        """Copy the content of `buffer` into a C-ordered array."""
        with self.launch_errors("copy to the host"):
            self._driver.memcpy_dtoh(into, buffer)

    def fill(self, buffer: Any, word: int, words: int) -> None:
        """Write one 32-bit word, `words` times."""
        with self.launch_errors("fill"):
            self._driver.memset_d32(buffer, word, words)

    def write(self, address: int, array: NDArray[np.generic]) -> None:
        """Copy the content of an array to an address on the GPU."""
        with self.launch_errors("copy to the GPU"):
            self._driver.memcpy_htod(address, np.ascontiguousarray(array))

    def synchronize(self) -> None:
        self._driver.Context.synchronize()

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """Let a profiler that waits for this program's word see what is launched inside."""
        self._driver.start_profiler()
        try:
            yield
            self.synchronize()
        finally:
            self._driver.stop_profiler()

    def time(self, launch: Callable[[], None], *, flush_l2: bool) -> float:
        """Seconds of one `launch` between two events.

        L2 is flushed before it, or else holds what an untimed one of the same launch left.
        """
        start, stop = self._events
        with self.launch_errors("timed launch"):
            if flush_l2:
                self.flush_l2()
            else:
                launch()
            self._hold()
            start.record()
            launch()
            stop.record()
            stop.synchronize()
        return float(stop.time_since(start)) / 1e3

    def flush_l2(self) -> None:
        """Fill L2 with zeros of its own, some time before the next launch on the default stream."""
        words = 2 * self.device.l2_bytes // 4  # twice its size: no line of before survives
        if self._filler is None:
            self._filler = self.allocate(4 * words)
        self._driver.memset_d32_async(self._filler, 0, words)

    @contextmanager
    def launch_errors(self, what: str) -> Iterator[None]:
        """Turn a CUDA error inside the block into a LaunchError that says what failed."""
        try:
            yield
        except self._driver.Error as error:
            raise LaunchError(f"{what}: {first_line(error)}") from None


class LoadedKernel:
    """A compiled kernel on the GPU; keeps its module alive."""

    def __init__(self, gpu: Gpu, module: Any, function: Any, name: str, image: bytes) -> None:
        self._gpu = gpu
        self._module = module
        self._function = function
        self._image = image
        self.name = name

    @property
    def cubin(self) -> Kernel:
        """The machine code that is launched, as the simulator takes it."""
        return replace(read_kernel(self._image, self.name), resources=self.resources)

    @property
    def resources(self) -> Resources:
        """Registers, shared and local memory as the driver reports them."""
        function = self._function
        return Resources(
            architecture=self._gpu.device.sm_arch,
            compiler=nvcc_version(),
            registers_per_thread=int(function.num_regs),
            static_shared_bytes=int(function.shared_size_bytes),
            local_bytes=int(function.local_size_bytes),
        )

    def prepared(
        self, geometry: Geometry, arguments: Sequence[Any], stream: int = 0
    ) -> Callable[[], None]:
        """A function that launches the kernel, with nothing left to compute on the host.

        `arguments` are buffers, NumPy scalars or encoded tensor maps; `stream` is the driver's
        handle of a stream, 0 for the default one.
        """
        if stream or any(isinstance(argument, EncodedMap) for argument in arguments):
            contents = [_content(argument) for argument in arguments]
            return prepared_launch(self._image, self.name, geometry, contents, stream)
        function, dynamic = self._function, geometry.dynamic_shared_bytes
        form, plain = packed(arguments)
        function.prepare(form)
        if dynamic > self._gpu.device.shared_bytes_per_block:
            self._allow_dynamic_shared(dynamic)
        grid, block = geometry.grid, geometry.block

        def launch() -> None:
            function.prepared_call(grid, block, *plain, shared_size=dynamic)

        return launch

    def _allow_dynamic_shared(self, dynamic: int) -> None:
        attribute = self._gpu._driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        with self._gpu.launch_errors(f"{self.name}: {dynamic} bytes of dynamic shared memory"):
            self._function.set_attribute(attribute, dynamic)


def _content(argument: Any) -> bytes:
    """The bytes that a kernel gets for an argument."""
    if isinstance(argument, EncodedMap):
        return argument.content
    if isinstance(argument, np.generic):
        return argument.tobytes()
    return int(argument).to_bytes(POINTER_BYTES, "little")


def nvcc_version() -> str:
    """The compiler behind SourceModule, such as "nvcc 13.0"."""
    from pycuda.compiler import get_nvcc_version

    text = get_nvcc_version("nvcc")
    match = re.search(r"release ([\d.]+)", text)
    return f"nvcc {match.group(1)}" if match else "nvcc"


def _pycuda_driver() -> Any:
    try:
        from pycuda import driver
    except ImportError as error:
        if driver_library() is None:
            raise UnavailableError(
                "this machine has no NVIDIA driver: if it has an NVIDIA GPU, install the driver"
            ) from None
        raise UnavailableError(
            f"PyCUDA cannot be imported ({first_line(error)}): "
            "pip install '.[gpu]' with a CUDA toolkit on the PATH"
        ) from None
    return driver


def _no_gpu(error: Exception) -> UnavailableError:
    return UnavailableError(
        f"the CUDA driver gives no GPU ({first_line(error)}): run `python -m toolkit doctor`"
    )


def _facts(handle: Any, cuda: Any) -> DriverFacts:
    attributes, names = handle.get_attributes(), cuda.device_attribute
    return DriverFacts(
        name=handle.name(),
        compute_capability=handle.compute_capability(),
        sm_count=attributes[names.MULTIPROCESSOR_COUNT],
        clock_hz=1e3 * attributes[names.CLOCK_RATE],
        memory_clock_hz=1e3 * attributes[names.MEMORY_CLOCK_RATE],
        memory_bus_width_bits=attributes[names.GLOBAL_MEMORY_BUS_WIDTH],
        l2_bytes=attributes[names.L2_CACHE_SIZE],
        dram_bytes=handle.total_memory(),
        max_threads_per_sm=attributes[names.MAX_THREADS_PER_MULTIPROCESSOR],
        registers_per_sm=attributes[names.MAX_REGISTERS_PER_MULTIPROCESSOR],
        shared_bytes_per_sm=attributes[names.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR],
        shared_bytes_per_block=attributes[names.MAX_SHARED_MEMORY_PER_BLOCK],
        shared_bytes_per_block_optin=attributes[names.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN],
        reserved_shared_bytes_per_block=attributes.get(names.RESERVED_SHARED_MEMORY_PER_BLOCK),
    )


def compile_error(name: str, log: str) -> CompileError:
    match = _NVCC_ERROR.search(log)
    if match is None:
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        blunt = lines[0] if lines else "nvcc failed without a message"
        first = next((line for line in lines if "error" in line), blunt)
        return CompileError(f"{name} does not compile: {first}", log=log)
    line = match.group(1) or match.group(2)
    text = match.group(3).strip()
    return CompileError(f"{name}, line {line}: does not compile: {text}", log=log)


def packed(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """The struct format of kernel arguments, padded as C pads parameters, and their values.

    NumPy scalars stand for themselves, structs (`numpy.void`) for their bytes, all else is a
    buffer's address.
    """
    form, values, offset = "", [], 0
    for argument in arguments:
        value: Any
        if not isinstance(argument, np.generic):
            code, size, alignment, value = "P", 8, 8, int(argument)
        else:
            size, alignment = argument.dtype.itemsize, argument.dtype.alignment
            structure = isinstance(argument, np.void)
            code = f"{size}s" if structure else argument.dtype.char
            value = argument.tobytes() if structure else argument
        padding = -offset % alignment
        form += (f"{padding}x" if padding else "") + code
        values.append(value)
        offset += padding + size
    return form, values
