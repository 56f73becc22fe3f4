"""Tensor maps: what the driver would refuse, what it is asked, and whose buffer a map is of."""

import ctypes
from ctypes import c_uint32, c_uint64
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.errors import InputError, LaunchError, UnavailableError, UnknownNameError
from analysis.geometry import Geometry
from toolkit import TensorMap
from toolkit.gpu import driver
from toolkit.gpu.driver import EncodedMap, LoadedModule, encoded
from toolkit.launch.launch import buffers_of
from toolkit.launch.tensor_map import MapTiling

FLOATS = np.dtype(np.float32)


def tiling(**changes):
    facts = {"shape": (100, 64), "dtype": FLOATS, "box": (16, 32)}
    return MapTiling(**(facts | changes))


def test_the_array_knows_its_pitches():
    assert tiling(shape=(3, 100, 64), box=(1, 1, 4)).pitches_bytes == (25_600, 256, 4)


def test_rows_may_be_further_apart_than_they_are_long():
    apart = tiling(shape=(3, 5), pitches=(32,))
    assert apart.pitches_bytes == (32, 4)
    assert apart.extent_bytes == 2 * 32 + 5 * 4
    assert tiling().extent_bytes == 100 * 64 * 4


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"box": (16,)}, "as many sizes as the array has axes"),
        ({"box": (257, 4)}, "a box has 1 to 256 elements along an axis"),
        ({"box": (16, 2)}, "rows of 8 bytes in a box"),
        ({"box": (16, 64), "swizzle": 128}, "rows of 256 bytes .* swizzle = 128"),
        ({"shape": (100, 63)}, "rows 252 bytes apart .* pad the rows"),
        ({"swizzle": 16}, "swizzle = 16: give one of 0, 32, 64, 128 bytes"),
        ({"l2_promotion": 32}, "l2_promotion = 32"),
        ({"pitches": (252,)}, "rows 252 bytes apart"),
        ({"pitches": (-256,)}, "rows -256 bytes apart"),
        ({"pitches": (0,)}, "rows 0 bytes apart"),
        ({"pitches": (256.0,)}, "rows 256.0 bytes apart"),
        ({"pitches": (256, 4)}, "give one for each axis but the last"),
        ({"dtype": np.dtype(np.complex64)}, "an array of complex64"),
    ],
)
def test_what_no_driver_encodes_is_refused(changes, reason):
    with pytest.raises(InputError, match=reason):
        tiling(**changes)


def test_a_map_of_an_argument_shares_its_buffer():
    a, b = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32)
    arguments = [
        TensorMap(a, box=(4, 4)),
        np.int32(1),
        TensorMap(b, (8, 8)),
        b,
        TensorMap(a, (8, 8)),
    ]
    arrays = buffers_of(arguments)
    assert list(arrays) == [0, 3]
    assert arrays[0] is a
    assert arrays[3] is b


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"offset": 8}, "offset = 8: give a multiple of 16"),
        ({"offset": 16}, "80 bytes, .* at byte 16 of an array of 80: give fewer rows"),
        ({"offset": -16}, "at byte -16 of an array of 80"),
        ({"shape": (3, 5)}, "84 bytes, .* of an array of 80"),
    ],
)
def test_a_map_stays_inside_of_its_array(changes, reason):
    facts = {"shape": (3, 4), "pitches": (32,), "box": (1, 4)}
    array = np.zeros(20, np.float32)
    assert TensorMap(array, **facts).tiling.extent_bytes == 80
    with pytest.raises(InputError, match=reason):
        TensorMap(array, **(facts | changes))


# Every second row of a matrix, from the third on: an offset, and a pitch of two rows.
EVERY_SECOND = """
struct alignas(64) TensorMap { char opaque[128]; };
extern "C" __global__ void tile_of(const __grid_constant__ TensorMap map, float* out)
{
    __shared__ alignas(128) float tile[8 * 4];
    __shared__ unsigned long long barrier;
    const unsigned to = __cvta_generic_to_shared(tile), full = __cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(full));
        asm volatile("fence.proxy.async.shared::cta;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(full));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];"
                     :: "r"(to), "l"(&map), "r"(4), "r"(0), "r"(full) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred over; again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], 0;"
                 " @!over bra again; }" :: "r"(full) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
"""


@pytest.mark.parametrize("dtype", ["float23", ""])
def test_an_unknown_type_is_refused(dtype):
    with pytest.raises(UnknownNameError, match="unknown type of a tensor map"):
        TensorMap(np.zeros((8, 8), np.float32), box=(8, 8), dtype=dtype)


def test_a_part_of_an_array_is_copied(machine):
    if int(machine.arch.removeprefix("sm_")) < 90:
        pytest.skip("needs sm_90")
    matrix = np.arange(10 * 8, dtype=np.float32).reshape(10, 8)
    part = TensorMap(matrix, box=(8, 4), shape=(4, 7), pitches=(64,), offset=2 * 32)
    arguments = [part, np.zeros(32, np.float32)]
    execution = machine.call(EVERY_SECOND, "tile_of", grid=1, block=32, arguments=arguments)
    expected = np.zeros((8, 4), np.float32)
    expected[:4, :3] = matrix[2::2, 4:7]  # beyond are zeros
    np.testing.assert_array_equal(execution.outputs[1].reshape(8, 4), expected)


class FakeDriver:
    """The functions that are called, with what they got."""

    def __init__(self):
        self.status = 0
        self.calls = []
        self.parameters = []
        for name, function in {
            "cuInit": lambda flags: 0,
            "cuTensorMapEncodeTiled": self.encode,
            "cuModuleLoadData": self.load,
            "cuModuleGetFunction": self.function,
            "cuFuncSetAttribute": self.attribute,
            "cuLaunchKernel": self.launch,
        }.items():
            kinds = [driver.KINDS[kind] for kind in driver.SIGNATURES[name]]
            setattr(self, name, ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(function))
        self.cuGetErrorName = self.error_name

    def encode(self, at, kind, axes, address, sizes, pitches, box, steps, *modes):
        assert at % 64 == 0
        ctypes.memmove(at, bytes(range(128)), 128)
        lists = [(c_uint64, sizes, axes), (c_uint64, pitches, axes - 1)]
        lists += [(c_uint32, box, axes), (c_uint32, steps, axes)]
        read = [list((number * count).from_address(place)) for number, place, count in lists]
        self.calls.append(("encode", (kind, axes, address, *read, *modes)))
        return self.status

    def load(self, module, image):
        self.calls.append(("load", (ctypes.string_at(image),)))
        return 0

    def function(self, function, module, name):
        self.calls.append(("function", (ctypes.string_at(name),)))
        return 0

    def attribute(self, function, attribute, value):
        self.calls.append(("attribute", (attribute, value)))
        return 0

    def launch(self, function, *rest):
        *extents, shared, _, pointers, _ = rest
        self.calls.append(("launch", (*extents, shared)))
        sizes = [128, 8, 4]
        places = (ctypes.c_void_p * len(sizes)).from_address(pointers)
        self.parameters = [ctypes.string_at(p, n) for p, n in zip(places, sizes, strict=True)]
        return self.status

    def error_name(self, status, name):
        name.contents.value = b"CUDA_ERROR_INVALID_VALUE"
        return 0


def install(monkeypatch, library):
    monkeypatch.setattr(driver, "driver_library", lambda: library)
    monkeypatch.setattr(driver, "driver", cache(driver.driver.__wrapped__))


@pytest.fixture
def fake(monkeypatch):
    library = FakeDriver()
    install(monkeypatch, library)
    return library


def test_the_driver_is_asked_from_the_innermost_axis_on(fake):
    made = encoded(tiling(swizzle=128), 4096)
    assert made.content == bytes(range(128))
    ((_, (kind, axes, address, sizes, pitches, box, steps, interleave, swizzle, l2, fill)),) = (
        fake.calls
    )
    assert (kind, axes, address) == (7, 2, 4096)  # FLOAT32 is 7
    assert (sizes, pitches) == ([64, 100], [256])
    assert (box, steps) == ([32, 16], [1, 1])
    assert (interleave, swizzle, l2, fill) == (0, 3, 2, 0)


def test_a_refusal_of_the_driver_has_its_name(fake):
    fake.status = 1
    with pytest.raises(LaunchError, match=r"^cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE$"):
        encoded(tiling(), 4096)


def test_an_old_driver_is_unavailable(monkeypatch):
    install(monkeypatch, SimpleNamespace(cuInit=FakeDriver().cuInit))
    with pytest.raises(
        UnavailableError, match="has no cuTensorMapEncodeTiled: install one of CUDA 12"
    ):
        encoded(tiling(), 4096)


def test_a_launch_hands_over_each_parameter_by_its_address(fake):
    geometry = Geometry(grid=(3, 2, 1), block=(64, 1, 1), dynamic_shared_bytes=65_536)
    contents = [bytes(range(128)), (2**40).to_bytes(8, "little"), np.int32(7).tobytes()]
    launch = LoadedModule(b"image").prepared("gemm", geometry, contents)
    assert fake.calls == [
        ("load", (b"image",)),
        ("function", (b"gemm",)),
        ("attribute", (8, 65_536)),
    ]
    launch()
    assert fake.calls[-1] == ("launch", (3, 2, 1, 64, 1, 1, 65_536))
    assert fake.parameters == contents


def test_a_kernel_with_a_map_is_launched_by_the_driver(cuda, fake):
    from toolkit.gpu.context import Gpu

    geometry = Geometry(grid=(1, 1, 1), block=(32, 1, 1))
    with Gpu() as gpu:
        kernel = gpu.load("source", "gemm", name="gemm.cu")
        arguments = [EncodedMap(content=bytes(range(128))), gpu.allocate(16), np.int32(7)]
        address = int(arguments[1])
        kernel.prepared(geometry, arguments)()
    assert fake.parameters == [bytes(range(128)), address.to_bytes(8, "little"), b"\7\0\0\0"]
