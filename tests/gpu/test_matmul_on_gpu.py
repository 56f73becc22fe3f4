"""`toolkit.matmul` on a GPU: arrays of three libraries, streams, threads and graphs."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from analysis.errors import InputError
from tests.refusals import refusal
from toolkit import matmul

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

BAND = 4096  # floats in front of and behind each output
LIBRARIES = ("torch", "cupy", "pycuda")
LAYOUTS = {
    "rows": lambda x: x((300, 200)),
    "columns": lambda x: x((200, 300)).T,
    "gaps": lambda x: x((300, 211))[:, :200],
    "columns with gaps": lambda x: x((200, 307)).T[:300],
    "unaligned": lambda x: x((60_001,))[1:].reshape(300, 200),
    "steps": lambda x: x((600, 600))[::2, ::3],
    "odd rows": lambda x: x((301, 201)),
    "odd columns": lambda x: x((201, 301)).T,
    "one column": lambda x: x((300, 1)),
    "a column of rows": lambda x: x((300, 7))[:, 3:4],
}
OTHERS = {
    "upside down": lambda x: x((300, 200))[::-1],
    "one row": lambda x: np.broadcast_to(x((1, 200)), (300, 200)),
}


class OfTorch:
    def __init__(self):
        self.torch = pytest.importorskip("torch")

    def put(self, array):
        """The same view of the same memory, on the GPU."""
        whole = root(array)
        first = (array.ctypes.data - whole.ctypes.data) // 4
        flat = self.torch.from_numpy(whole.reshape(-1)).cuda()
        return flat.as_strided(array.shape, [step // 4 for step in array.strides], first)

    def get(self, array):
        return array.cpu().numpy()


class OfCupy:
    def __init__(self):
        self.cupy = pytest.importorskip("cupy")

    def put(self, array):
        whole = root(array)
        flat = self.cupy.asarray(whole.reshape(-1))
        memory = flat.data + (array.ctypes.data - whole.ctypes.data)
        return self.cupy.ndarray(array.shape, np.float32, memory, array.strides)

    def get(self, array):
        return self.cupy.asnumpy(array)


class OfPycuda:
    def __init__(self):
        pytest.importorskip("pycuda.autoprimaryctx")
        from pycuda import gpuarray

        self.gpuarray = gpuarray

    def put(self, array):
        whole = root(array)
        flat = self.gpuarray.to_gpu(whole.reshape(-1))
        found = self.gpuarray.GPUArray(
            array.shape,
            np.float32,
            base=flat,
            gpudata=int(flat.ptr) + array.ctypes.data - whole.ctypes.data,
            strides=array.strides,
        )
        found.kept = flat
        return found

    def get(self, array):
        """All of the memory comes back: GPUArray copies no strided views."""
        if not hasattr(array, "kept"):
            return array.get()
        whole = array.kept.get()
        return np.lib.stride_tricks.as_strided(
            whole[(int(array.ptr) - int(array.kept.ptr)) // 4 :], array.shape, array.strides
        )


def root(array):
    while array.base is not None:
        array = array.base
    return array


@pytest.fixture(params=LIBRARIES)
def library(request):
    return {"torch": OfTorch, "cupy": OfCupy, "pycuda": OfPycuda}[request.param]()


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def random(seed):
    generator = np.random.default_rng(seed)
    return lambda shape: generator.uniform(-1, 1, shape).astype(np.float32)


def error_bound(a, b, alpha, beta, old):
    size = abs(alpha) * np.abs(a).astype(np.float64) @ np.abs(b)
    return (a.shape[-1] + 3) * 2.0**-24 * (size + (np.abs(beta * old) if beta else 0))


def check_product(c, a, b, alpha=1.0, beta=0.0, old=None):
    exact = alpha * (a.astype(np.float64) @ b)
    if beta:
        exact = exact + beta * old.astype(np.float64)
    assert np.all(np.abs(c - exact) <= error_bound(a, b, alpha, beta, old))


def banded(shape):
    """An array of NaN between two guard bands, which hold NaN too."""
    whole = np.full(int(np.prod(shape)) + 2 * BAND, np.nan, np.float32)
    return whole[BAND:-BAND].reshape(shape)


def skip_negative(library, layout):
    if layout == "upside down" and isinstance(library, OfTorch):
        pytest.skip("PyTorch has no negative strides")


@pytest.mark.parametrize("of_b", ["rows", "columns", "gaps", "steps"])
@pytest.mark.parametrize("of_a", [*LAYOUTS, *OTHERS])
def test_views_of_any_layout(library, of_a, of_b):
    skip_negative(library, of_a)
    a = (LAYOUTS | OTHERS)[of_a](random(1))
    k = a.shape[1]
    columns = {"rows": (k, 150), "columns": (150, k), "gaps": (k, 161), "steps": (2 * k, 300)}
    b = random(2)(columns[of_b])
    b = {"columns": b.T, "gaps": b[:, :150], "steps": b[::2, ::2]}.get(of_b, b)
    c = library.get(matmul(library.put(a), library.put(b)))
    check_product(c, a, b)


@pytest.mark.parametrize("of_out", [*LAYOUTS, "upside down"])
def test_outputs_between_guard_bands(library, of_out):
    skip_negative(library, of_out)
    out = (LAYOUTS | OTHERS)[of_out](banded)
    m, n = out.shape
    a, b = random(1)((m, 77)), random(2)((77, n))
    given = library.put(out)
    assert matmul(library.put(a), library.put(b), given, alpha=-0.5) is given
    check_product(library.get(given), a, b, -0.5)
    old = library.get(given).copy()
    matmul(library.put(a), library.put(b), given, alpha=1.0, beta=2.0)
    check_product(library.get(given), a, b, 1.0, 2.0, old)
    if isinstance(library, OfTorch):
        whole = library.get(given.as_strided((root(out).size,), (1,), 0)).copy()
        view = np.lib.stride_tricks.as_strided(
            whole[(out.ctypes.data - root(out).ctypes.data) // 4 :], out.shape, out.strides
        )
        assert not np.isnan(view).any()
        view[...] = np.nan
        assert np.isnan(whole).all()  # gaps and guard bands


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        *((64, 64, 64), (511, 511, 511), (512, 512, 512), (1000, 1000, 1000), (1, 4096, 4096)),
        *((4096, 1, 4096), (16, 4096, 4096), (4096, 4096, 16), (333, 777, 1111), (64, 64, 65536)),
        *((3, 5, 7), (1, 1, 100_000), (2049, 2047, 2050), (1536, 1536, 1536), (4096, 4096, 1)),
    ],
)
@pytest.mark.parametrize("transposes", ["NN", "TN", "NT", "TT"])
def test_sizes(torch, m, n, k, transposes):
    torch.manual_seed(m + n + k)
    a = torch.randn(*((m, k) if transposes[0] == "N" else (k, m)), device="cuda")
    b = torch.randn(*((k, n) if transposes[1] == "N" else (n, k)), device="cuda")
    a, b = a if transposes[0] == "N" else a.T, b if transposes[1] == "N" else b.T
    check_on_gpu(matmul(a, b), a, b)


def check_on_gpu(c, a, b):
    """Hold every element against float64 on the GPU."""
    exact, size = a.double() @ b.double(), a.abs().double() @ b.abs().double()
    assert bool(((c - exact).abs() <= (a.shape[-1] + 3) * 2.0**-24 * size).all())


@pytest.mark.parametrize("shared", ["", "a", "b"])
def test_batches(torch, shared):
    torch.manual_seed(1)
    a, b = torch.randn(5, 130, 70, device="cuda"), torch.randn(5, 70, 90, device="cuda")
    a, b = a[0] if shared == "a" else a, b[0] if shared == "b" else b
    check_on_gpu(matmul(a, b), a, b)
    out = torch.full((130, 5, 90), float("nan"), device="cuda").transpose(0, 1)
    check_on_gpu(matmul(a, b, out), a, b)


SHAPES = ((512, 512, 512), (511, 511, 511), (64, 64, 8192), (1024, 1024, 1024), (1536, 1536, 1536))


def operands(torch, shape, seed=0):
    m, n, k = shape
    torch.manual_seed(seed)
    return torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_call_returns_the_same_bits(torch, shape):
    a, b = operands(torch, shape)
    first = matmul(a, b)
    assert all(torch.equal(matmul(a, b), first) for _ in range(20))


BESIDE_A_KERNEL_THAT_HOLDS_SMS = """
import cupy
import numpy as np
from toolkit import matmul

hold = cupy.RawKernel(r'''
extern "C" __global__ void hold(volatile int* stop, long long most_ns)
{
    extern __shared__ char room[];
    long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (!*stop && now - begin < most_ns);
    if (now == 0) room[threadIdx.x] = 1;
}
''', "hold")
device = cupy.cuda.Device(0)
shared = device.attributes["MaxSharedMemoryPerBlockOptin"]  # so that an SM has room for one block
hold.max_dynamic_shared_size_bytes = shared
blocks = device.attributes["MultiProcessorCount"] // 2
stop = cupy.zeros(1, np.int32)
holding, releasing, *streams = (cupy.cuda.Stream(non_blocking=True) for _ in range(4))

random = np.random.default_rng(1)
inputs, expected = [], []
for m, n, k in SHAPES:
    a, b = (cupy.asarray(random.uniform(-1, 1, of).astype(np.float32)) for of in ((m, k), (k, n)))
    inputs.append((a, b))
    expected.append(cupy.zeros((m, n), np.float32))
for call in range(1000):  # each adds to what the last one left, so that every call counts
    matmul(*inputs[call % 5], expected[call % 5], beta=1.0)
outs = [[cupy.zeros_like(one) for one in expected] for _ in streams]
device.synchronize()
for stream, own in zip(streams, outs):  # kernels are loaded, which needs an idle GPU
    with stream:
        for pair, out in zip(inputs, own):
            matmul(*pair, out, beta=1.0)
            out.data.memset_async(0, out.nbytes, stream)
stop.data.memset_async(0, 4, releasing)
device.synchronize()
with holding:
    hold((blocks,), (1024,), (stop, np.int64(20_000_000_000)), shared_mem=shared)
for call in range(1000):
    for stream, own in zip(streams, outs):
        with stream:
            matmul(*inputs[call % 5], own[call % 5], beta=1.0)
for stream in streams:
    stream.synchronize()
held = not holding.done
stop.data.memset_async(1, 4, releasing)
device.synchronize()
for own in outs:
    for out, right in zip(own, expected):
        assert (out == right).all()
assert held, "the kernel that holds SMs had ended"
print("right")
"""


def run_alone(program, **environment):
    """Run a program in a process of its own, which prints "right"."""
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | environment,
    )
    assert (found.stdout, found.returncode) == ("right\n", 0), found.stderr


def test_two_streams_beside_a_kernel_that_holds_half_of_the_sms():
    """No launch waits for SMs that are taken.

    Streams that share one of the GPU's queues wait for each other, so that there must be more
    queues than streams.
    """
    pytest.importorskip("cupy")
    program = BESIDE_A_KERNEL_THAT_HOLDS_SMS.replace("SHAPES", repr(SHAPES))
    run_alone(program, CUDA_DEVICE_MAX_CONNECTIONS="32", CUDA_MODULE_LOADING="EAGER")


@pytest.mark.parametrize("shape", [*SHAPES, (333, 777, 1111)])
def test_a_graph_is_captured_and_replayed(torch, shape):
    m, n, k = shape
    a, b = operands(torch, shape)
    wide = torch.randn(k, 2 * n, device="cuda")[:, ::2]  # is copied first
    out, total = torch.empty(m, n, device="cuda"), torch.zeros(m, n, device="cuda")
    matmul(a, b, out), matmul(a, wide, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        matmul(a, b, out)
        matmul(a, wide, out=total, beta=0.5)
        new = matmul(a, b)
    for seed in range(3):
        a.copy_(operands(torch, shape, seed)[0])
        before = total.clone()
        graph.replay()
        eager = matmul(a, b)  # on the same stream, behind it
        assert torch.equal(out, eager)
        assert torch.equal(new, eager)
        expected = before.clone()
        matmul(a, wide, expected, beta=0.5)
        assert torch.equal(total, expected)


def test_a_graph_and_calls_run_side_by_side(torch):
    shape = (512, 512, 2048)
    a, b = operands(torch, shape)
    expected, out = matmul(a, b), torch.empty(512, 512, device="cuda")
    graph, one, other = torch.cuda.CUDAGraph(), torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=one):
        matmul(a, b, out)
    for _ in range(100):
        with torch.cuda.stream(one):
            graph.replay()
        with torch.cuda.stream(other):
            beside = matmul(a, b)
    torch.cuda.synchronize()
    assert torch.equal(out, expected)
    assert torch.equal(beside, expected)


def test_a_first_call_may_be_captured(torch):
    a, b = operands(torch, (515, 259, 131))
    out = torch.empty(515, 259, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        matmul(a, b, out)
    graph.replay()
    check_on_gpu(out, a, b)


def test_a_graph_of_cupy():
    cupy = pytest.importorskip("cupy")
    a, b = (cupy.asarray(random(seed)((520, 520))) for seed in (1, 2))
    out = cupy.empty_like(a)
    expected = matmul(a, b)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device(0).synchronize()
    with stream:
        stream.begin_capture()
        matmul(a, b, out)
        graph = stream.end_capture()
        for _ in range(3):
            out.fill(0)
            graph.launch(stream)
    stream.synchronize()
    assert bool((out == expected).all())


def test_threads(torch):
    begin = Barrier(4)
    inputs = [operands(torch, shape, seed) for seed, shape in enumerate(SHAPES[:4])]
    expected = [matmul(a, b) for a, b in inputs]
    torch.cuda.synchronize()
    shared = torch.cuda.Stream()

    def calls(number):
        stream = shared if number % 2 else torch.cuda.Stream()
        begin.wait()
        with torch.cuda.stream(stream):
            found = [matmul(*inputs[number]) for _ in range(200)]
            stream.synchronize()
            return all(torch.equal(one, expected[number]) for one in found)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(calls, range(4))) == [True] * 4


IN_A_CONTEXT_OF_ITS_OWN = """
import numpy as np
from pycuda import driver, gpuarray
from toolkit import matmul

driver.init()
for _ in range(2):  # the second may have the handle of the first
    context = driver.Device(0).make_context()
    a, b = (gpuarray.to_gpu(np.full((520, 520), n, np.float32)) for n in (1, 2))
    stream = driver.Stream()
    c, d = matmul(a, b), gpuarray.empty((520, 520), np.float32)
    matmul(a, b, d, stream=stream)
    stream.synchronize()
    assert (c.get() == 1040).all() and (d.get() == 1040).all()
    assert driver.Context.get_current() == context
    context.pop()
    context.push()
    del a, b, c, d, stream
    context.pop()
    context.detach()
print("right")
"""


def test_a_context_of_pycudas_own():
    pytest.importorskip("pycuda")
    run_alone(IN_A_CONTEXT_OF_ITS_OWN)


def test_errors_name_the_remedy(torch):
    a, b = torch.randn(3, 4, device="cuda"), torch.randn(4, 5, device="cuda")
    assert "b.cuda()" in refusal(InputError, matmul, a, b.cpu())
    assert "b.float()" in refusal(InputError, matmul, a, b.double())
    assert "give a dense tensor" in refusal(InputError, matmul, a.to_sparse(), b)
    assert "overlaps a" in refusal(InputError, matmul, a, torch.randn(4, 4, device="cuda"), a)
    negative = torch.randn(4, 5, dtype=torch.complex64, device="cuda").conj().imag
    assert "no matrix" not in refusal(InputError, matmul, a, negative.T.T[:, :5])
    a.requires_grad_()
    assert "a.detach()" in refusal(InputError, matmul, a, b)
    with torch.no_grad():
        check_on_gpu(matmul(a, b), a, b)
    if torch.cuda.device_count() > 1:
        assert "and a on cuda:0" in refusal(InputError, matmul, a.detach(), b.to("cuda:1"))


def test_a_write_is_noticed_by_autograd(torch):
    a, b = torch.randn(4, 4, device="cuda"), torch.randn(4, 4, device="cuda", requires_grad=True)
    kept = torch.randn(4, 4, device="cuda")
    loss = (kept * b).sum()
    matmul(a, a.clone(), kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("size", [64, 257, 300, 1024, 2049])
def test_products_read_what_the_one_before_wrote(torch, size):
    """Their launches overlap, but for the waits in the kernels."""
    a, x = torch.randn(size, size, device="cuda"), torch.randn(size, size, device="cuda")
    a /= size**0.5
    y, want = torch.empty_like(x), x.double()
    for _ in range(20):
        matmul(a, x, out=y)
        x, y = y, x
        want = a.double() @ want
    assert float((x.double() - want).norm() / want.norm()) <= 1e-5  # 3e-6 at 2049 on an H200


@pytest.mark.parametrize("before", ["nothing", "kernel", "memset", "copy", "fork"])
def test_a_graph_has_anything_before_a_product(torch, before):
    a, b = torch.randn(300, 301, device="cuda"), torch.randn(301, 302, device="cuda")
    out, other, aside = torch.empty(300, 302, device="cuda"), a.clone(), torch.cuda.Stream()
    matmul(a, b, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        if before == "kernel":
            a.mul_(1.0)
        elif before == "memset":
            other.zero_()
        elif before == "copy":
            other.copy_(a)
        elif before == "fork":
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                other.copy_(a)
            torch.cuda.current_stream().wait_stream(aside)
        matmul(a, b, out=out)
        matmul(a, b, out=out)
    out.zero_()
    graph.replay()
    check_on_gpu(out, a, b)
