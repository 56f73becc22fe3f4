"""`toolkit.matmul` on a made-up GPU: the simulator executes what is launched."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest

import toolkit
from analysis.devices import device_from_driver
from analysis.errors import (
    InputError,
    LaunchError,
    OutOfMemoryError,
    ShapeError,
    UnavailableError,
    UnknownNameError,
)
from kernels.split_paths import SplitConstants
from tests.refusals import refusal
from tests.toolkit.product import made_up_gpu
from tests.toolkit.product.made_up_gpu import FIRST_CONTEXT, MadeUpGpu, TorchType, new
from toolkit import matmul
from toolkit.gpu import driver
from toolkit.product import choice, device, kept_recipes
from toolkit.product import matmul as call
from toolkit.product.matmul import PrecisionWarning
from toolkit.product.recipe import BufferPlace, Recipe, RecipeStep

M, N, K = 40, 36, 24


@pytest.fixture
def machine(monkeypatch):
    """A machine with a made-up GPU, PyTorch, CuPy and PyCUDA."""
    gpu = MadeUpGpu()
    yield made_up_gpu.installed(monkeypatch, gpu)
    assert gpu.errors == []


@pytest.fixture
def idle(machine):
    """The same, whose launches do nothing."""
    machine.gpu.executes = False
    return machine


def numbers(*shape, seed=0):
    array = new(shape)
    array[...] = np.random.default_rng(seed).uniform(-1, 1, shape)
    return array


def check_product(c, a, b, alpha=1.0, beta=0.0, old=None):
    """Hold every element against float64, within the error of sums of float32."""
    exact = alpha * a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(alpha) * np.abs(a).astype(np.float64) @ np.abs(b)
    if beta:
        exact, size = exact + beta * old.astype(np.float64), size + np.abs(beta * old)
    assert np.all(np.abs(c - exact) <= (a.shape[-1] + 3) * 2.0**-24 * size)


def check_bands(array):
    """Nothing beside an array of `new` was written."""
    storage = array.base
    while storage.base is not None:
        storage = storage.base
    begin = (array.ctypes.data - storage.ctypes.data) // 4
    count = 1 + sum((n - 1) * step // 4 for n, step in zip(array.shape, array.strides, strict=True))
    assert np.isnan(storage[:begin]).all()
    assert np.isnan(storage[begin + count :]).all()


# The simulator takes no address inside of an array with elements in front of it, which negative
# strides need: tests/gpu/test_matmul_on_gpu.py has such views.
LAYOUTS = {
    "rows": lambda shape, seed: numbers(*shape, seed=seed),
    "columns": lambda shape, seed: numbers(*shape[::-1], seed=seed).T,
    "gaps": lambda shape, seed: numbers(shape[0], shape[1] + 5, seed=seed)[:, : shape[1]],
    "steps": lambda shape, seed: numbers(2 * shape[0], 3 * shape[1], seed=seed)[::2, ::3],
    "one row": lambda shape, seed: np.broadcast_to(numbers(1, shape[1], seed=seed), shape),
    "unaligned": lambda shape, seed: numbers(shape[0] * shape[1] + 1, seed=seed)[1:].reshape(shape),
}
PLAIN = ("rows", "columns", "gaps", "unaligned")


@pytest.mark.parametrize("of_a", LAYOUTS)
@pytest.mark.parametrize("of_b", ["rows", "columns", "steps"])
def test_views_of_any_layout(machine, of_a, of_b):
    a, b = LAYOUTS[of_a]((M, K), 1), LAYOUTS[of_b]((K, N), 2)
    c = matmul(machine.cupy.ndarray(a), machine.cupy.ndarray(b)).array
    assert c.strides == (4 * N, 4)
    check_product(c, a, b)
    check_bands(c)


@pytest.mark.parametrize("layout", [one for one in LAYOUTS if one != "one row"])
def test_outputs_of_any_layout(machine, layout):
    a, b, out = numbers(M, K, seed=1), numbers(K, N, seed=2), LAYOUTS[layout]((M, N), 3)
    old = out.copy()
    given = machine.cupy.ndarray(out)
    found = matmul(machine.cupy.ndarray(a), machine.cupy.ndarray(b), given, 0.5, -2)
    assert found is given
    check_product(out, a, b, 0.5, -2.0, old)


@pytest.mark.parametrize("layout", PLAIN)
def test_nan_in_the_output_does_not_matter_without_beta(machine, layout):
    a, b, out = numbers(M, K, seed=1), numbers(K, N, seed=2), LAYOUTS[layout]((M, N), 3)
    out[...] = np.nan
    matmul(*map(machine.cupy.ndarray, (a, b, out)), alpha=2)
    check_product(out, a, b, 2.0)


def test_gaps_of_an_output_stay(machine):
    whole = new((M, N + 5))
    matmul(*map(machine.cupy.ndarray, (numbers(M, K), numbers(K, N), whole[:, :N])))
    assert not np.isnan(whole[:, :N]).any()
    assert np.isnan(whole[:, N:]).all()
    check_bands(whole)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (1, 50, 40), (50, 1, 40), (33, 35, 37), (7, 9, 300)]
)
def test_ragged_sizes(machine, m, n, k):
    a, b = numbers(m, k, seed=1), numbers(k, n, seed=2)
    c = matmul(machine.torch.Tensor(a), machine.torch.Tensor(b)).array
    check_product(c, a, b)
    check_bands(c)


@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [
        ((3, 8, 12), (3, 12, 20)),
        ((3, 8, 12), (12, 20)),
        ((8, 12), (3, 12, 20)),
        ((1, 8, 12), (3, 12, 20)),
    ],
)
def test_batches(machine, of_a, of_b):
    a, b = numbers(*of_a, seed=1), numbers(*of_b, seed=2)
    c = matmul(machine.torch.Tensor(a), machine.torch.Tensor(b)).array
    assert c.shape == (3, 8, 20)
    check_product(c, a, b)
    out = numbers(8, 3, 20, seed=3).transpose(1, 0, 2)  # rows of all matrices in turns
    old = out.copy()
    matmul(*map(machine.torch.Tensor, (a, b, out)), alpha=2, beta=1)
    check_product(out, a, b, 2, 1, old)


def test_the_same_call_returns_the_same_bits(machine):
    a, b = machine.torch.Tensor(numbers(M, 500)), machine.torch.Tensor(numbers(500, N, seed=1))
    first, second = matmul(a, b).array, matmul(a, b).array
    assert first.ctypes.data != second.ctypes.data
    assert first.tobytes() == second.tobytes()


# Libraries, contexts, streams.


def test_libraries_have_their_streams(idle):
    for kind, stream in ((idle.torch.Tensor, 5), (idle.cupy.ndarray, 6), (idle.GPUArray, 0)):
        idle.gpu.launch_streams.clear()
        found = matmul(kind(numbers(M, K)), kind(numbers(K, N)))
        assert type(found) is kind
        assert set(idle.gpu.launch_streams) == {stream}


def test_a_stream_of_pycuda_is_given(idle):
    arrays = idle.GPUArray(numbers(M, K)), idle.GPUArray(numbers(K, N))
    for stream in (9, type("Stream", (), {"handle": 9})()):
        idle.gpu.calls.clear()
        matmul(*arrays, stream=stream)
        assert set(idle.gpu.launch_streams) == {9}
    assert "give a stream of PyCUDA" in refusal(InputError, matmul, *arrays, stream="9")
    for kind in (idle.torch.Tensor, idle.cupy.ndarray):
        said = refusal(InputError, matmul, kind(numbers(M, K)), kind(numbers(K, N)), stream=9)
        assert "leave stream out" in said


class Other:
    """An array of a library that has the array interface alone."""

    def __init__(self, gpu, array, *, stream=None, readonly=False, mask=None, strides=True):
        gpu.place(array)
        self.array, self.shape = array, array.shape
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "strides": array.strides if strides else None,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, readonly),
            "version": 3,
            **({"stream": stream} if stream is not None else {}),
            **({"mask": mask} if mask is not None else {}),
        }


def test_other_arrays_by_their_interface(machine):
    a, b, c = numbers(M, K), numbers(K, N, seed=1), new((M, N))
    gpu = machine.gpu
    out = Other(gpu, c)
    assert matmul(Other(gpu, a, stream=7), Other(gpu, b, strides=False), out) is out
    check_product(c, a, b)
    assert set(gpu.launch_streams) == {7}
    said = refusal(InputError, matmul, Other(gpu, a), Other(gpu, b))
    assert "makes no new Other: give an out of shape (40, 36)" in said
    assert "read-only" in refusal(
        InputError, matmul, Other(gpu, a), Other(gpu, b), Other(gpu, c, readonly=True)
    )
    assert "has a mask" in refusal(InputError, matmul, Other(gpu, a, mask=1), Other(gpu, b), out)


def test_launches_are_in_the_arrays_context(idle):
    """PyCUDA may have a context of its own; another one is current, or none."""
    own = FIRST_CONTEXT + 0x100
    arrays = idle.GPUArray(numbers(M, K), own), idle.GPUArray(numbers(K, N), own)
    out = idle.GPUArray(new((M, N)), own)
    seen = []
    for current in (0, FIRST_CONTEXT, own):
        idle.gpu.context = current
        matmul(*arrays, out)
        assert idle.gpu.context == current
        seen.append(idle.gpu.launch_contexts[-1])
    assert seen == [own] * 3


def test_a_later_context_with_the_same_handle_is_another_one(idle, monkeypatch):
    arrays = idle.GPUArray(numbers(M, K)), idle.GPUArray(numbers(K, N)), idle.GPUArray(new((M, N)))
    matmul(*arrays)
    assert idle.gpu.names().count("cuModuleLoadData") == 1
    matmul(*arrays)
    assert idle.gpu.names().count("cuModuleLoadData") == 1
    idle.gpu.identifiers = 10**6
    matmul(*arrays)
    assert idle.gpu.names().count("cuModuleLoadData") == 2


# What is kept.


def test_a_second_call_only_launches(idle):
    a, b, out = map(idle.torch.Tensor, (numbers(M, K), numbers(K, N), new((M, N))))
    matmul(a, b, out)
    idle.gpu.calls.clear()
    matmul(a, b, out, alpha=3.0, beta=0.5)
    assert idle.gpu.names() == [
        "cuCtxGetCurrent",
        "cuCtxPushCurrent_v2",
        "cuLaunchKernelEx",
        "cuCtxPopCurrent_v2",
    ]


def test_a_tensor_map_is_encoded_again_for_another_address(machine):
    b = numbers(64, 128, seed=1)
    for seed in (2, 3, 2):
        a = numbers(128, 64, seed=seed)
        c = matmul(machine.torch.Tensor(a), machine.torch.Tensor(b)).array
        check_product(c, a, b)


def test_a_later_process_takes_the_recipe_from_the_cache(idle, empty_cache, monkeypatch):
    a, b = idle.torch.Tensor(numbers(M, K)), idle.torch.Tensor(numbers(K, N))
    matmul(a, b)
    (kept,) = empty_cache.glob("product-*")
    call._of_thread.calls.clear()
    monkeypatch.setattr("toolkit.product.choice.recipe_for", None)  # nobody chooses or compiles
    matmul(a, b)
    assert [kept] == list(empty_cache.glob("product-*"))


def test_what_decides_a_recipe_is_in_its_name(idle, empty_cache, monkeypatch):
    a, b = idle.torch.Tensor(numbers(M, K)), idle.torch.Tensor(numbers(K, N))
    monkeypatch.setattr(
        "toolkit.product.choice.recipe_for", lambda layout, device, precision: Recipe(())
    )

    def kept():
        call._of_thread.calls.clear()
        matmul(a, b)
        return len(list(empty_cache.glob("product-*")))

    assert (kept(), kept()) == (1, 1)
    monkeypatch.setattr(kept_recipes, "_installed", lambda: ("another compiler",))
    assert kept() == 2
    monkeypatch.setenv("NVRTC_APPEND_FLAGS", "-G")
    assert kept() == 3


def test_our_files_are_stamped():
    kept_recipes._installed.cache_clear()
    _, compiler, _ = kept_recipes._installed()
    assert compiler.startswith("13.")
    stamps = list(kept_recipes._stamps(kept_recipes.Path(kept_recipes.__file__).parent))
    assert {path.rpartition("/")[2] for path, *_ in stamps} >= {"matmul.py", "strided_copy.cu"}


# Workspaces.


@pytest.fixture
def with_workspace(idle, monkeypatch):
    """Products whose recipe has one launch, and a workspace of 1,024 bytes with 64 of flags."""
    kernel = choice.compile_kernel(
        'extern "C" __global__ void k(char* w) { }', "k", target="sm_90", name="k.cu"
    )

    def made(size_bytes=1024, zeroed_bytes=64):
        arguments = (BufferPlace("workspace"),)
        step = RecipeStep(kernel.image, "k", (1, 1, 1), (32, 1, 1), 0, arguments)
        recipe = Recipe((step,), size_bytes, zeroed_bytes)
        monkeypatch.setattr(call, "recipe_of", lambda layout, facts, precision: recipe)
        call._of_thread.calls.clear()
        return idle

    return made


def arrays(machine, m=M):
    return machine.GPUArray(numbers(m, K)), machine.GPUArray(numbers(K, N))


def test_a_stream_keeps_its_workspace(with_workspace):
    machine = with_workspace()
    for _ in range(3):
        matmul(*arrays(machine))
    names = machine.gpu.names()
    assert (names.count("cuMemAlloc_v2"), names.count("cuMemsetD8Async")) == (1, 1)
    matmul(*arrays(machine), stream=9)
    assert machine.gpu.names().count("cuMemAlloc_v2") == 2


def test_flags_are_zeroed_when_another_recipe_used_the_workspace(with_workspace):
    for zeroed_bytes, memsets in ((64, 1), (64, 1), (128, 2), (64, 2), (128, 3)):
        machine = with_workspace(zeroed_bytes=zeroed_bytes)
        matmul(*arrays(machine))
        assert machine.gpu.names().count("cuMemsetD8Async") == memsets
    assert machine.gpu.names().count("cuMemAlloc_v2") == 1


def test_a_larger_workspace_replaces_a_smaller_one(with_workspace):
    for size_bytes in (1024, 4096, 2048):
        machine = with_workspace(size_bytes)
        matmul(*arrays(machine))
    assert machine.gpu.names().count("cuMemAlloc_v2") == 2
    assert len(machine.gpu.owned) == 1


def test_a_new_stream_with_the_handle_of_an_old_one_has_a_workspace_of_its_own(with_workspace):
    machine = with_workspace()
    matmul(*arrays(machine), stream=9)
    machine.gpu.stream_ids[9] = 1234  # cuStreamGetId
    matmul(*arrays(machine), stream=9)
    assert len(machine.gpu.owned) == 2


def test_workspaces_of_streams_that_are_gone_are_freed(with_workspace):
    machine = with_workspace()
    for stream in range(1, 40):
        matmul(*arrays(machine), stream=stream)
    assert len(machine.gpu.owned) == device.MOST_WORKSPACES


@pytest.mark.parametrize("size_bytes", [1024, 2 * device.MOST_KEPT_BYTES])
def test_a_graph_or_a_large_workspace_has_memory_of_its_own(with_workspace, size_bytes):
    machine = with_workspace(size_bytes)
    machine.gpu.capturing.add(9)
    matmul(*arrays(machine), stream=9)
    matmul(*arrays(machine), stream=9)
    names = machine.gpu.names()
    assert names.count("cuMemAlloc_v2") == 0
    per_call = ["cuMemAllocFromPoolAsync", "cuMemsetD8Async", "cuLaunchKernel", "cuMemFreeAsync"]
    assert [name for name in names if name in per_call] == 2 * per_call
    assert machine.gpu.owned == {}


def test_a_first_call_in_a_graph_makes_its_pool_in_relaxed_mode(with_workspace):
    """cuMemPoolCreate is refused while a stream is captured, unless the thread allows it."""
    machine = with_workspace()
    machine.gpu.capturing.add(9)
    matmul(*arrays(machine), stream=9)
    names = machine.gpu.names()
    made = names.index("cuMemPoolCreate")
    exchanges = "cuThreadExchangeStreamCaptureMode"
    assert names[:made].count(exchanges) % 2 == 1  # one of a pair
    assert names[made:].count(exchanges) == 1


def test_a_failed_launch_leaves_a_workspace_that_is_zeroed_again(with_workspace):
    machine = with_workspace()
    pair = arrays(machine)
    matmul(*pair)
    machine.gpu.fails["cuLaunchKernel"] = 700
    said = refusal(LaunchError, matmul, *pair)
    assert said == "matmul: cuLaunchKernel: CUDA_ERROR_MADE_UP"
    machine.gpu.fails.clear()
    matmul(*pair)
    assert machine.gpu.names().count("cuMemsetD8Async") == 2


def test_no_memory_for_a_workspace(with_workspace):
    machine = with_workspace()
    machine.gpu.fails["cuMemAlloc_v2"] = made_up_gpu.OUT_OF_MEMORY
    said = refusal(OutOfMemoryError, matmul, *arrays(machine))
    assert said == (
        "matmul: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: free memory of this GPU, which other "
        "programs may hold"
    )


# Threads.


def test_threads_have_arguments_of_their_own(machine):
    begin = Barrier(4)
    inputs = [(numbers(M, K, seed=n), numbers(K, N, seed=n + 9)) for n in range(4)]

    def products(n):
        a, b = inputs[n]
        begin.wait()
        return [matmul(machine.torch.Tensor(a), machine.torch.Tensor(b)).array for _ in range(3)]

    with ThreadPoolExecutor(4) as pool:
        for n, found in enumerate(pool.map(products, range(4))):
            for c in found:
                check_product(c, *inputs[n])
    assert machine.gpu.names().count("cuModuleLoadData") == 1


# Errors.


def test_shapes_and_types(idle):
    tensor = idle.torch.Tensor
    a, b = tensor(numbers(M, K)), tensor(numbers(K, N))
    assert "columns and b has 40 rows" in refusal(ShapeError, matmul, a, a)
    assert "it has no elements" in refusal(ShapeError, matmul, tensor(new((0, K))), b)
    double = tensor(new((M, K)).astype(np.float64), 0, TorchType("float64"))
    assert refusal(InputError, matmul, double, b) == (
        "matmul: a (float64, shape (40, 24), strides (24, 1) elements): the product is of float32: "
        "convert it, a.float()"
    )
    half = idle.cupy.ndarray(np.zeros((M, K), np.float16))
    said = refusal(InputError, matmul, half, idle.cupy.ndarray(numbers(K, N)))
    assert 'convert it, a.astype("float32")' in said
    assert "out (float32, shape (40, 24)" in refusal(ShapeError, matmul, a, b, a)


def test_arrays_elsewhere(idle):
    tensor = idle.torch.Tensor
    a, b = tensor(numbers(M, K)), tensor(numbers(K, N))
    on_host = tensor(numbers(K, N), -1)
    assert "it is on cpu, and not on a GPU: copy it there first, b.cuda()" in refusal(
        InputError, matmul, a, on_host
    )
    assert "b (shape (24, 36)) is on cuda:1, and a on cuda:0" in refusal(
        InputError, matmul, a, tensor(numbers(K, N), 1)
    )
    assert "on GPU 1, and a on GPU 0" in refusal(
        InputError, matmul, idle.cupy.ndarray(numbers(M, K)), idle.cupy.ndarray(numbers(K, N), 1)
    )
    said = refusal(InputError, matmul, numbers(M, K), b)
    assert said.startswith("matmul: a (a numpy.ndarray of float32, shape (40, 24)) is on the host")
    assert "a (a builtins.list) is no array on a GPU" in refusal(InputError, matmul, [[1.0]], b)
    said = refusal(InputError, matmul, a, idle.cupy.ndarray(numbers(K, N)))
    assert (
        said
        == (
            "matmul: a is an array of PyTorch and b a cupy.ndarray: give arrays of one library, "
            "torch.as_tensor(b, device=a.device)"
        )
        or "torch.as_tensor(b, device=a.device)" in said
    )
    of_host = idle.GPUArray(numbers(K, N), 0)
    assert "is in memory of the host" in refusal(
        InputError, matmul, idle.GPUArray(numbers(M, K)), of_host
    )
    assert "context 0x1001, and a on GPU 0, context 0x1000" in refusal(
        InputError, matmul, idle.GPUArray(numbers(M, K)), idle.GPUArray(numbers(K, N), 0x1001)
    )


def test_tensors_that_are_more_than_their_memory(idle):
    tensor = idle.torch.Tensor
    a, b = tensor(numbers(M, K)), tensor(numbers(K, N))
    b.negative = True
    assert "b.resolve_neg()" in refusal(InputError, matmul, a, b)
    b.negative, a.requires_grad = False, True
    matmul(a, b)  # without autograd
    idle.torch.grad = True
    assert "give a.detach(), or call it under torch.no_grad()" in refusal(InputError, matmul, a, b)


def test_autograd_hears_of_a_write(idle):
    a, b, out = map(idle.torch.Tensor, (numbers(M, K), numbers(K, N), new((M, N))))
    matmul(a, b)
    assert idle.torch.written == []
    matmul(a, b, out)
    assert idle.torch.written == [out]


def test_outputs_that_overlap(idle):
    whole = numbers(M, 2 * K)
    tensor = idle.torch.Tensor
    a, b = tensor(whole[:, :K]), tensor(numbers(K, K))
    matmul(a, b, tensor(whole[:, K:]))  # beside a
    said = refusal(InputError, matmul, a, b, tensor(whole[:, K - 1 : -1]))
    assert "out (float32, shape (40, 24), strides (48, 1) elements) overlaps a (float32" in said
    square = tensor(numbers(K, K))
    assert "overlaps b" in refusal(InputError, matmul, tensor(numbers(K, K)), square, square)
    for _ in range(2):  # also when the layout is known
        assert "overlaps a" in refusal(InputError, matmul, square, tensor(numbers(K, K)), square)


def test_factors(idle):
    a, b = idle.torch.Tensor(numbers(M, K)), idle.torch.Tensor(numbers(K, N))
    out = idle.torch.Tensor(new((M, N)))
    assert "out, which is missing" in refusal(InputError, matmul, a, b, beta=0.5)
    assert "alpha = 1e+39 does not fit in float32" in refusal(InputError, matmul, a, b, alpha=1e39)
    assert "alpha is a str: give a number" in refusal(InputError, matmul, a, b, alpha="1")
    for alpha in (2, np.float32(2), np.int64(2), np.inf, True):
        matmul(a, b, out, alpha, np.float64(0.5))


def test_precisions(idle):
    a, b = idle.torch.Tensor(numbers(M, K)), idle.torch.Tensor(numbers(K, N))
    assert "unknown precision 'fp16'" in refusal(UnknownNameError, matmul, a, b, precision="fp16")


def test_a_small_product_is_left_to_fp32_and_says_so_once(idle):
    a, b = idle.torch.Tensor(numbers(M, K)), idle.torch.Tensor(numbers(K, N))
    said = rf'^matmul: 40x36x24 NN is computed with precision = "fp32": sums of k = {K} are more'
    with pytest.warns(PrecisionWarning, match=said):
        matmul(a, b, precision="fp32x")
    matmul(a, b, precision="fp32x")
    assert not [name for name in idle.gpu.launches() if name.startswith("split_")]


def test_a_gpu_without_wgmma_refuses_tensor_cores(idle, monkeypatch):
    facts = replace(device.facts_of(0), compute_capability=(8, 0), name="NVIDIA A100")
    monkeypatch.setattr(device, "facts_of", lambda ordinal: facts)
    a, b = idle.torch.Tensor(numbers(M, K)), idle.torch.Tensor(numbers(K, N))
    assert refusal(UnavailableError, matmul, a, b, precision="fp32x") == (
        'matmul: precision = "fp32x" needs wgmma of sm_90, and NVIDIA A100 is sm_80: take '
        'precision = "fp32"'
    )


def test_tensor_cores(machine, monkeypatch):
    monkeypatch.setattr("kernels.split_paths.LEAST_K", 64)
    monkeypatch.setattr("kernels.split_paths.CONSTANTS", SplitConstants(worth=np.inf))
    a, b = numbers(2, 130, 96, seed=1), numbers(2, 72, 96, seed=2).swapaxes(1, 2)
    out = numbers(2, 130, 72, seed=3)
    old = out.copy()
    tensor = machine.torch.Tensor
    matmul(tensor(a), tensor(b), tensor(out), 0.5, -2.0, precision="fp32x")
    entries = ["split_first_pass", "split_product", "split_second_pass"]
    assert sorted(machine.gpu.launches()) == sorted(2 * entries)
    for number in range(2):
        check_product(out[number], a[number], b[number], 0.5, -2.0, old[number])
    again = old.copy()
    matmul(tensor(a), tensor(b), tensor(again), 0.5, -2.0, precision="fp32x")
    assert again.tobytes() == out.tobytes()


def test_strides_between_elements(idle):
    array = idle.cupy.ndarray(numbers(M, K))
    array.strides = (97, 4)
    assert "elements are not multiples of 4 bytes apart" in refusal(
        InputError, matmul, array, idle.cupy.ndarray(numbers(K, N))
    )
    array.strides, array.data.ptr = (96, 4), array.data.ptr + 2
    assert "is not a multiple of 4: copy it" in refusal(
        InputError, matmul, array, idle.cupy.ndarray(numbers(K, N))
    )


def test_without_a_driver(machine, monkeypatch):
    monkeypatch.setattr(driver, "driver_library", lambda: None)
    driver.driver.cache_clear()
    a, b = machine.torch.Tensor(numbers(M, K)), machine.torch.Tensor(numbers(K, N))
    assert "no NVIDIA driver" in refusal(UnavailableError, matmul, a, b)


def test_an_old_gpu(idle, monkeypatch):
    facts = device.facts_of(0)
    old = replace(facts, name="Tesla T4", compute_capability=(7, 5))
    monkeypatch.setattr(device, "facts_of", lambda ordinal: old)
    a, b = idle.torch.Tensor(numbers(M, K)), idle.torch.Tensor(numbers(K, N))
    assert refusal(UnavailableError, matmul, a, b) == (
        "matmul needs sm_80 or later, and NVIDIA T4 is sm_75: take the product of the arrays' own "
        "library"
    )


def test_a_batch_that_no_grid_takes(idle):
    a, b = idle.torch.Tensor(numbers(70_000, 2, 2)), idle.torch.Tensor(numbers(70_000, 2, 2))
    assert "batch = 70000: give 1 to 65535" in refusal(ShapeError, matmul, a, b)


def test_an_old_driver(monkeypatch):
    old = driver.Driver(object())
    assert refusal(UnavailableError, lambda: old.cuStreamGetId) == (
        "the NVIDIA driver has no cuStreamGetId: install one of CUDA 12 or later"
    )


# The recipe.


def test_a_recipe_has_no_address_and_can_be_kept(idle):
    facts = device.facts_of(0)
    assert device_from_driver(facts).key == "h200"
    layout = toolkit.product.operands.layout_of(
        *(
            toolkit.product.operands.OperandView(name, shape, strides, 16)
            for name, shape, strides in (
                ("a", (M, K), (1, M)),
                ("b", (K, N), (N, 1)),
                ("out", (M, N), (2 * N, 2)),
            )
        )
    )
    recipe = kept_recipes.recipe_of(layout, facts)
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert recipe.steps[-1].entry == "strided_copy"


def test_the_heads_of_an_attention_are_read_in_place(idle):
    heads, tokens, size = 4, 10, 16
    strides = (size, heads * size, 1)  # of (heads, tokens, size) in rows of all heads
    layout = toolkit.product.operands.layout_of(
        *(
            toolkit.product.operands.OperandView(name, shape, strides, 16)
            for name, shape, strides in (
                ("a", (heads, tokens, size), strides),
                ("b", (heads, size, tokens), (size, 1, heads * size)),
                ("out", (heads, tokens, tokens), (tokens, heads * tokens, 1)),
            )
        )
    )
    recipe = kept_recipes.recipe_of(layout, device.facts_of(0))
    assert not any(recipe.copies_bytes)
    assert "strided_copy" not in [step.entry for step in recipe.steps]


def test_the_import_of_the_toolkit_stays_light():
    assert toolkit._HOMES["matmul"] == "toolkit.product.matmul"
    assert "float32" in toolkit.matmul.__doc__
