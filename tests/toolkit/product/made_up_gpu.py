"""A CUDA driver and arrays of three libraries that need no GPU: the simulator executes kernels.

Memory of the "GPU" is memory of this process, so that addresses are real ones.
"""

import ctypes
import re
import sys
import types
from ctypes import POINTER, c_char_p, c_int, c_uint64, c_void_p, cast, memmove, string_at

import numpy as np

from toolkit import TensorMap, simulate
from toolkit.gpu.driver import KINDS, SIGNATURES, _Attribute, _Configuration
from toolkit.launch.launch import buffers_of
from toolkit.machine_code.kernel import read_kernel
from toolkit.product.device import _ATTRIBUTES

H200 = {
    **{16: 132, 38: 60 * 2**20, 37: 6144, 39: 2048, 82: 65536, 81: 233472, 8: 49152, 97: 232448},
    **{111: 1024, 13: 1_980_000, 36: 3_201_000, 75: 9, 76: 0},
}
assert set(_ATTRIBUTES.values()) <= H200.keys()
NAME = b"NVIDIA H200"
TYPES = {6: "float16", 7: "float32"}  # of tensor maps, cuda.h
FIRST_CONTEXT = 0x1000
SUCCESS, FAILS, OUT_OF_MEMORY, UNKNOWN_POINTER = 0, 400, 2, 1


class MadeUpGpu:
    """A library of the driver whose functions are here; calls of the last test are in `calls`."""

    def __init__(self):
        self.calls, self.errors = [], []
        self.buffers = {}  # address: (array, context)
        self.owned = {}  # what the driver allocated
        self.handles, self.maps = [], []
        self.context = 0  # current
        self.capturing, self.executes = set(), True
        self.fails = {}  # name of a function: status
        self.stream_ids, self.identifiers = {}, 0
        self.launch_contexts, self.launch_streams = [], []
        for name, signature in SIGNATURES.items():
            kinds = [KINDS[kind] for kind in signature]
            setattr(self, name, ctypes.CFUNCTYPE(c_int, *kinds)(self._entry(name)))
        self.cuGetErrorName = self._error_name

    def _entry(self, name):
        function = getattr(self, in_words(name), None)

        def called(*arguments):
            try:
                self.calls.append((name, arguments))
                if name in self.fails:
                    return self.fails[name]
                return (function(*arguments) if function else None) or SUCCESS
            except Exception as error:
                self.errors.append(error)
                return FAILS

        return called

    @staticmethod
    def _error_name(status, pointer):
        pointer[0] = c_char_p(
            {2: b"CUDA_ERROR_OUT_OF_MEMORY"}.get(status.value, b"CUDA_ERROR_MADE_UP")
        )

    def names(self):
        return [name for name, _ in self.calls]

    def launches(self):
        functions = [a[0] for name, a in self.calls if name == "cuLaunchKernel"]
        functions += [a[1] for name, a in self.calls if name == "cuLaunchKernelEx"]
        return [self.handles[one - 1][1] for one in functions]

    # Contexts and devices.

    def ctx_get_current(self, at):
        write(at, c_void_p(self.context))

    def ctx_push_current(self, context):
        self.stack = [*getattr(self, "stack", []), self.context]
        self.context = context

    def ctx_pop_current(self, at):
        self.context = self.stack.pop()

    def ctx_get_id(self, context, at):
        write(at, c_uint64(7 * context + self.identifiers))

    def ctx_get_device(self, at):
        write(at, c_int(self.context - FIRST_CONTEXT & 0xF))

    def device_get(self, at, ordinal):
        write(at, c_int(ordinal))

    def device_primary_ctx_retain(self, at, ordinal):
        write(at, c_void_p(FIRST_CONTEXT + ordinal))

    def device_get_name(self, at, size, device):
        memmove(at, NAME + b"\0", len(NAME) + 1)

    def device_total_mem(self, at, device):
        write(at, c_uint64(150_000_000_000))

    def device_get_attribute(self, at, number, device):
        write(at, c_int(H200[number]))

    # Memory.

    def place(self, array, context=FIRST_CONTEXT):
        """Take an array's memory for memory of the GPU."""
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        self.buffers[base.ctypes.data] = base, context
        return array

    def buffer_at(self, address):
        for begin, (array, context) in self.buffers.items():
            if begin <= address < begin + max(array.nbytes, 1):
                return array, address - begin, context
        return None

    def pointer_get_attribute(self, at, attribute, address):
        found = self.buffer_at(address)
        if found is None:
            return UNKNOWN_POINTER
        context = found[2]
        of_host = c_int(1 if context == 0 else 2)
        write(at, {1: c_void_p(context), 2: of_host, 9: c_int(context & 0xF)}[attribute])
        return SUCCESS

    def _allocate(self, at, size_bytes):
        storage = np.full(size_bytes + 256, 0xA5, np.uint8)
        begin = -storage.ctypes.data % 256
        array = storage[begin : begin + size_bytes]
        self.owned[array.ctypes.data] = array
        self.buffers[array.ctypes.data] = array, self.context
        write(at, c_uint64(array.ctypes.data))

    def mem_alloc(self, at, size_bytes):
        self._allocate(at, size_bytes)

    def mem_alloc_from_pool_async(self, at, size_bytes, pool, stream):
        self._allocate(at, size_bytes)

    def mem_free(self, address):
        del self.buffers[address], self.owned[address]

    def mem_free_async(self, address, stream):
        self.mem_free(address)

    def mem_pool_create(self, at, properties):
        write(at, c_void_p(0x77))

    def memset_d8_async(self, address, value, size, stream):
        array, offset, _ = self.buffer_at(address)
        array.view(np.uint8)[offset : offset + size] = value

    # Streams.

    def stream_get_id(self, stream, at):
        write(at, c_uint64(self.stream_ids.get(stream, 100 + (stream or 0))))

    def stream_is_capturing(self, stream, at):
        write(at, c_int(stream in self.capturing))

    # Kernels.

    def module_load_data(self, at, image):
        # the size of a cubin is in its own head: sections end with the table at e_shoff
        head = string_at(image, 64)
        offset = int.from_bytes(head[40:48], "little")
        size, number = (int.from_bytes(head[k : k + 2], "little") for k in (58, 60))
        programs, of_program, how_many = (
            int.from_bytes(head[32:40], "little"),
            int.from_bytes(head[54:56], "little"),
            int.from_bytes(head[56:58], "little"),
        )
        end = max(offset + size * number, programs + of_program * how_many)
        self.handles.append((string_at(image, end), ""))
        write(at, c_void_p(len(self.handles)))

    def module_get_function(self, at, module, name):
        self.handles.append((self.handles[module - 1][0], string_at(name).decode()))
        write(at, c_void_p(len(self.handles)))

    def tensor_map_encode_tiled(self, at, kind, axes, address, sizes, pitches, box, steps, *words):
        assert at % 64 == 0
        assert address % 16 == 0

        def numbers(kind, place, count):
            return tuple(reversed(cast(place, POINTER(kind))[:count]))

        self.maps.append(
            {
                "address": address,
                "shape": numbers(c_uint64, sizes, axes),
                "pitches": numbers(c_uint64, pitches, axes - 1),
                "box": numbers(ctypes.c_uint32, box, axes),
                "dtype": TYPES[kind],
                "swizzle": (0, 32, 64, 128)[words[1]],
                "l2_promotion": (0, 64, 128, 256)[words[2]],
            }
        )
        memmove(at, len(self.maps).to_bytes(128, "little"), 128)

    def launch_kernel(self, function, *rest):
        grid, block, shared, stream, parameters = rest[:3], rest[3:6], rest[6], rest[7], rest[8]
        self.launch_contexts.append(self.context)
        self.launch_streams.append(stream or 0)
        if not self.executes:
            return
        image, name = self.handles[function - 1]
        kernel = read_kernel(image, name)
        places = cast(parameters, POINTER(c_void_p))
        arrays = {}  # address: array that begins there
        arguments = []
        for number, parameter in enumerate(kernel.parameters):
            content = string_at(places[number], parameter.size)
            arguments.append(self._argument(content, arrays))
        execution = simulate(
            image, name, grid=grid, block=block, dynamic_shared_bytes=shared,
            arguments=arguments, blocks="all", predict=False,
        )  # fmt: skip
        for array, after in zip(buffers_of(arguments).values(), execution.outputs, strict=True):
            array[...] = after

    def launch_kernel_ex(self, configuration, function, parameters, extra):
        config = _Configuration.from_address(configuration)
        attribute = _Attribute.from_address(config.attributes)
        assert (config.attribute_count, attribute.id, attribute.value) == (1, 6, 1)
        sizes = (getattr(config, f"{one}_{axis}") for one in ("grid", "block") for axis in "xyz")
        self.launch_kernel(function, *sizes, config.shared_bytes, config.stream, parameters, extra)

    def _argument(self, content, arrays):
        if len(content) == 4:
            return np.frombuffer(content, np.float32 if is_float(content) else np.int32)[0]
        if len(content) == 8:
            number = int.from_bytes(content, "little", signed=True)
            found = self.buffer_at(number) if number > 0 else None
            return np.int64(number) if found is None else self._from(number, arrays)
        one = self.maps[int.from_bytes(content, "little") - 1]
        return TensorMap(
            self._from(one["address"], arrays),
            **{
                key: one[key]
                for key in ("dtype", "box", "swizzle", "l2_promotion", "shape", "pitches")
            },
        )

    def _from(self, address, arrays):
        """All of a buffer from an address on, as the simulator takes it."""
        if address not in arrays:
            array, offset, _ = self.buffer_at(address)
            whole = array.reshape(-1).view(np.uint8)[offset:]
            arrays[address] = whole[: len(whole) // 4 * 4].view(np.float32)
        return arrays[address]


def in_words(name):
    """ "ctx_get_id" for "cuCtxGetId"."""
    plain = name.removeprefix("cu").removesuffix("_v2")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", plain).lower()


def is_float(content):
    """True for bytes that are a usual float and an unusual integer."""
    value = abs(float(np.frombuffer(content, np.float32)[0]))
    return 1e-6 < value < 1e6 or content == b"\0\0\0\x80"


def write(at, value):
    memmove(at, ctypes.byref(value), ctypes.sizeof(value))


# Arrays.


class TorchType:
    """A dtype of PyTorch, which is no dtype of NumPy."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"torch.{self.name}"


FLOAT32 = TorchType("float32")


class Torch(types.ModuleType):
    """As much of PyTorch as is used."""

    def __init__(self, gpu):
        super().__init__("torch")
        self.gpu, self.grad, self.stream = gpu, False, 5
        self.written = []
        made_up = self

        class Tensor:
            __module__ = "torch"

            def __init__(self, array, device=0, dtype=FLOAT32):
                self.array, self.shape = array, array.shape
                self.dtype, self.ordinal = dtype, device
                self.requires_grad, self.negative = False, False
                if device >= 0:
                    gpu.place(array, FIRST_CONTEXT + device)

            device = property(lambda self: f"cuda:{self.ordinal}" if self.is_cuda else "cpu")
            is_cuda = property(lambda self: self.ordinal >= 0)

            def data_ptr(self):
                return self.array.ctypes.data

            def stride(self):
                return tuple(step // self.array.itemsize for step in self.array.strides)

            def get_device(self):
                return self.ordinal

            def is_neg(self):
                return self.negative

            def is_inference(self):
                return False

        self.Tensor = Tensor
        self.float32, self._C = FLOAT32, types.SimpleNamespace()
        self.is_grad_enabled = lambda: made_up.grad
        current = types.SimpleNamespace(cuda_stream=5)
        self.cuda = types.SimpleNamespace(current_stream=lambda ordinal: current)
        graph = types.SimpleNamespace(increment_version=self.written.append)
        self.autograd = types.SimpleNamespace(graph=graph)

    def empty(self, shape, dtype, device):
        return self.Tensor(new(shape), int(device.removeprefix("cuda:")))


class CuPy(types.ModuleType):
    """As much of CuPy as is used."""

    def __init__(self, gpu):
        super().__init__("cupy")

        class ndarray:  # noqa: N801
            __module__ = "cupy"

            def __init__(self, array, device=0):
                gpu.place(array, FIRST_CONTEXT + device)
                self.array, self.shape, self.strides = array, array.shape, array.strides
                self.dtype = array.dtype
                self.data = types.SimpleNamespace(ptr=array.ctypes.data, device_id=device)

        self.ndarray = ndarray
        stream = types.SimpleNamespace(ptr=6)
        runtime = types.SimpleNamespace(getDevice=lambda: 0)
        self.cuda = types.SimpleNamespace(get_current_stream=lambda: stream, runtime=runtime)

    def empty(self, shape, dtype):
        return self.ndarray(new(shape))


def pycuda(gpu):
    """As much of PyCUDA as is used."""

    class GPUArray:
        __module__ = "pycuda.gpuarray"
        allocator = None

        def __init__(self, array, context=FIRST_CONTEXT):
            gpu.place(array, context)
            self.array, self.shape, self.strides = array, array.shape, array.strides
            self.dtype, self.ptr = array.dtype, array.ctypes.data

    found, gpuarray = types.ModuleType("pycuda"), types.ModuleType("pycuda.gpuarray")
    found.gpuarray = gpuarray
    gpuarray.GPUArray = GPUArray
    gpuarray.empty = lambda shape, dtype, allocator: GPUArray(new(shape))
    return {"pycuda": found, "pycuda.gpuarray": gpuarray}


def new(shape, fill=np.nan):
    """A float32 array that begins on 256 bytes, between guard bands of 64 floats."""
    count = int(np.prod(shape))
    storage = np.full(count + 192, fill, np.float32)
    begin = 64 + -(storage.ctypes.data // 4 + 64) % 64
    array = storage[begin : begin + count].reshape(shape)
    array[...] = fill
    return array


def installed(monkeypatch, gpu):
    """The driver and the libraries in the place of real ones."""
    from toolkit.gpu import driver
    from toolkit.product import arrays, device, matmul

    monkeypatch.setattr(driver, "driver_library", lambda: gpu)
    for cached in (driver.driver, device.primary_context, device.facts_of):
        cached.cache_clear()
    device._contexts.clear()
    arrays._made.clear(), arrays._of_type.clear()
    matmul._of_thread.calls.clear()
    modules = {"torch": Torch(gpu), "cupy": CuPy(gpu), **pycuda(gpu)}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return types.SimpleNamespace(
        gpu=gpu,
        torch=modules["torch"],
        cupy=modules["cupy"],
        GPUArray=modules["pycuda.gpuarray"].GPUArray,
    )
