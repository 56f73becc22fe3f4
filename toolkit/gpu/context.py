"""Silicon: one CUDA context through PyCUDA, with kernels, buffers and event timing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.devices import DriverFacts, device_from_driver
from analysis.errors import (
    CompileError,
    InputError,
    LaunchError,
    OutOfMemoryError,
    UnavailableError,
    first_line,
)
from analysis.geometry import Geometry
from analysis.occupancy import Resources
from toolkit.gpu.driver import EncodedMap, LoadedModule, driver_library
from toolkit.gpu.event_timer import EventTimer
from toolkit.gpu.nvcc import compiled, nvcc_version
from toolkit.launch.element_types import raw_bytes
from toolkit.launch.setup import PLAIN, LaunchSetup
from toolkit.machine_code.kernel import Kernel, read_kernel

if TYPE_CHECKING:
    from analysis.devices import Device

POINTER_BYTES = 8
POISON = 0x7FC0BAD0  # a NaN: what a kernel leaves unwritten cannot pass for a number


class Gpu:
    """One CUDA context on the first GPU that the driver shows; a context manager.

    Raises UnavailableError with the remedy where there is no driver, no GPU, no PyCUDA.
    """

    def __init__(self) -> None:
        self.driver = _pycuda_driver()
        self._held = ExitStack()

    def __enter__(self) -> Gpu:
        cuda = self.driver
        try:
            cuda.init()
            self._handle = cuda.Device(0)
            self._context = self._handle.retain_primary_context()
        except cuda.Error as error:
            raise _no_gpu(error) from None
        self._context.push()
        try:
            self.device: Device = device_from_driver(_facts(self._handle, cuda))
            self.timer = self._held.enter_context(closing(EventTimer(self)))
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
        self._held.close()
        self.driver.Context.pop()
        self._context.detach()

    @property
    def pci_bus_id(self) -> str:
        return str(self._handle.pci_bus_id())

    @property
    def alive(self) -> bool:
        """True if the context still works: after an illegal access every call fails for good."""
        try:
            self.synchronize()
        except self.driver.Error:
            return False
        return True

    @property
    def free_bytes(self) -> int:
        return int(self.driver.mem_get_info()[0])

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
        image = compiled(source, [*options, *macros], name)
        try:
            module = self.driver.module_from_buffer(image)
        except self.driver.Error as error:
            raise LaunchError(f"{name} cannot be loaded: {first_line(error)}") from None
        try:
            function = module.get_function(kernel)
        except self.driver.Error:
            raise InputError(
                f'{name}: no kernel {kernel!r} in it: declare it extern "C" __global__'
            ) from None
        return LoadedKernel(self, module, function, kernel, image)

    def load_image(self, image: bytes, kernel: str) -> LoadedKernel:
        """One kernel of machine code that was compiled before.

        Raises LaunchError where this GPU cannot load it, or where it has no such kernel.
        """
        with self.launch_errors(f"machine code of {kernel}"):
            module = self.driver.module_from_buffer(image)
            return LoadedKernel(self, module, module.get_function(kernel), kernel, image)

    def upload(self, array: NDArray[np.generic]) -> Any:
        """A buffer on the GPU with the content of `array`."""
        buffer = self.allocate(array.nbytes)
        self.write(buffer, array)
        return buffer

    def allocate(self, size_bytes: int) -> Any:
        """A buffer on the GPU; raises OutOfMemoryError if it does not fit."""
        try:
            return self.driver.mem_alloc(max(size_bytes, 1))
        except self.driver.MemoryError:
            raise OutOfMemoryError(
                f"{size_bytes / 1e9:.2f} GB more do not fit on the GPU "
                f"({self.free_bytes / 1e9:.2f} GB free): take a smaller shape or close other "
                "programs"
            ) from None
        except self.driver.Error as error:
            raise LaunchError(f"allocation: {first_line(error)}") from None

    def download(self, buffer: Any, *, into: NDArray[Any]) -> None:
        """Copy the content of `buffer` into a C-ordered array."""
        with self.launch_errors("copy to the host"):
            self.driver.memcpy_dtoh(raw_bytes(into), buffer)

    def fill(self, buffer: Any, word: int, words: int) -> None:
        """Write one 32-bit word, `words` times."""
        with self.launch_errors("fill"):
            self.driver.memset_d32(buffer, word, words)

    def write(self, address: int, array: NDArray[np.generic]) -> None:
        """Copy the content of an array to an address on the GPU."""
        with self.launch_errors("copy to the GPU"):
            self.driver.memcpy_htod(address, raw_bytes(np.ascontiguousarray(array)))

    def synchronize(self) -> None:
        self.driver.Context.synchronize()

    @contextmanager
    def launch_errors(self, what: str) -> Iterator[None]:
        """Turn a CUDA error inside the block into a LaunchError that names the failed operation."""
        try:
            yield
        except self.driver.MemoryError as error:
            raise OutOfMemoryError(f"{what}: {first_line(error)}") from None
        except self.driver.Error as error:
            raise LaunchError(f"{what}: {first_line(error)}") from None


def gpu_here(asked: Device | None = None) -> Gpu:
    """The GPU of this machine, after it was opened once: that alone proves that it is there.

    Raises UnavailableError as `Gpu` does, InputError where another device is asked for.
    """
    gpu = Gpu()
    with gpu:
        found = gpu.device
    if asked is not None and asked.key != found.key:
        raise InputError(
            f"the GPU of this machine is {found.name}, not {asked.name}: leave the device out to "
            "measure"
        )
    return gpu


class LoadedKernel:
    """A compiled kernel on the GPU; keeps its module alive."""

    def __init__(self, gpu: Gpu, module: Any, function: Any, name: str, image: bytes) -> None:
        self._gpu = gpu
        self._module = module
        self._function = function
        self._image = image
        self.name = name

    def of_same_module(self, name: str) -> LoadedKernel:
        """Another kernel of the machine code that is loaded already."""
        return LoadedKernel(
            self._gpu, self._module, self._module.get_function(name), name, self._image
        )

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

    @cached_property
    def module(self) -> LoadedModule:
        """The machine code, loaded a second time: with variables of its own."""
        return LoadedModule(self._image)

    def prepared(
        self,
        geometry: Geometry,
        arguments: Sequence[Any],
        stream: int = 0,
        setup: LaunchSetup = PLAIN,
    ) -> Callable[[], None]:
        """A function that launches the kernel, with nothing left to compute on the host.

        `arguments` are buffers, NumPy scalars or encoded tensor maps; `stream` is the driver's
        handle of a stream, 0 for the default one. With a setup, or a stream, or a tensor map it is
        the kernel of `module`.
        """
        has_maps = any(isinstance(argument, EncodedMap) for argument in arguments)
        if stream or has_maps or setup != PLAIN:
            in_memory = self._maps_in_memory(arguments) if has_maps else {}
            contents = [_content(in_memory.get(k, one)) for k, one in enumerate(arguments)]
            of_module = self.module.prepared(
                self.name, geometry, contents, stream, cooperative=setup.cooperative
            )
            return partial(_launched, of_module, in_memory)
        function, dynamic = self._function, geometry.dynamic_shared_bytes
        form, plain = packed(arguments)
        function.prepare(form)
        if dynamic > self._gpu.device.shared_bytes_per_block:
            self._allow_dynamic_shared(dynamic)
        grid, block = geometry.grid, geometry.block

        def launch() -> None:
            function.prepared_call(grid, block, *plain, shared_size=dynamic)

        return launch

    def _maps_in_memory(self, arguments: Sequence[Any]) -> dict[int, Any]:
        """Buffers with the tensor maps that the kernel takes by pointer, by position."""
        parameters = read_kernel(self._image, self.name).parameters
        return {
            position: self._gpu.upload(np.frombuffer(argument.content, np.uint8))
            for position, (argument, one) in enumerate(zip(arguments, parameters, strict=False))
            if isinstance(argument, EncodedMap) and one.size == POINTER_BYTES
        }

    def _allow_dynamic_shared(self, dynamic: int) -> None:
        attribute = self._gpu.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        with self._gpu.launch_errors(f"{self.name}: {dynamic} bytes of dynamic shared memory"):
            self._function.set_attribute(attribute, dynamic)


def _launched(launch: Callable[[], None], held: object) -> None:
    """Launch a kernel whose arguments point to what is `held`."""
    del held
    launch()


def _content(argument: Any) -> bytes:
    """The bytes that a kernel gets for an argument."""
    if isinstance(argument, EncodedMap):
        return argument.content
    if isinstance(argument, np.generic):
        return argument.tobytes()
    return int(argument).to_bytes(POINTER_BYTES, "little")


def _pycuda_driver() -> Any:
    try:
        from pycuda import driver
    except ImportError as error:
        if driver_library() is None:
            raise UnavailableError(
                "this machine has no NVIDIA driver (if it has an NVIDIA GPU, install the driver)"
            ) from None
        raise UnavailableError(
            f"PyCUDA cannot be imported ({first_line(error)}): "
            "pip install '.[gpu]' with a CUDA toolkit on the PATH"
        ) from None
    return driver


def _no_gpu(error: Exception) -> UnavailableError:
    return UnavailableError(
        f"the CUDA driver finds no GPU ({first_line(error)}): run `python -m toolkit doctor`"
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


def packed(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """The struct format of kernel arguments, padded as C pads parameters, and their values.

    Plain NumPy scalars stand for themselves, structs, complex numbers and floats below 32 bits (for
    which PyCUDA has no format) for their bytes, all else is a buffer's address.
    """
    form, values, offset = "", [], 0
    for argument in arguments:
        value: Any
        if not isinstance(argument, np.generic):
            code, size, alignment, value = "P", 8, 8, int(argument)
        else:
            size, alignment = argument.dtype.itemsize, argument.dtype.alignment
            is_plain = argument.dtype.kind in "iub" or argument.dtype.char in "fd"
            code = argument.dtype.char if is_plain else f"{size}s"
            value = argument if is_plain else argument.tobytes()
        padding = -offset % alignment
        form += (f"{padding}x" if padding else "") + code
        values.append(value)
        offset += padding + size
    return form, values
