"""Variables that a caller sets, the heap of malloc, asserts, and cooperative launches."""

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.errors import CompileError, InputError, LaunchError
from analysis.geometry import Geometry
from toolkit import check, find_remedies, simulate
from toolkit.execution.simulator import prepared
from toolkit.launch.setup import LaunchSetup
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.remedies.kernel_launch import KernelLaunch
from toolkit.remedies.verification import written_by
from toolkit.sass.translate import uses_heap

ARCHITECTURES = ["sm_75", "sm_90", "sm_120"]

VARIABLES = r"""
__constant__ float filter[5];
__constant__ int unused;
__constant__ int table[2] = {3, 4};
namespace ns { __constant__ int n; }
__device__ unsigned int hits;
__device__ double offsets[4];
__device__ float last[8];
static __device__ int zero = 0;
extern "C" __global__ void smooth(float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = offsets[i % 4] + table[i % 2] + zero;
    for (int k = 0; k < ns::n; k++) sum += filter[k] * x[i];
    if (sum > 20) atomicAdd(&hits, 1);
    if (i < 8) last[i] = sum;
    x[i] = sum;
}"""


def smoothed(**more):
    x = np.arange(64, dtype=np.float32)
    given = {"grid": 2, "block": 32, "arguments": [x], "arch": "sm_90", "predict": False}
    return simulate(VARIABLES, "smooth", **given | more)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_variables_hold_what_was_set(arch):
    weights, offsets = np.array([1, 2, 3, 4, 5], np.float32), np.arange(4.0)
    given = {"filter": weights, "n": np.int32(3), "offsets": offsets}
    execution = smoothed(symbols=given, arch=arch)
    x = np.arange(64, dtype=np.float32)
    expected = offsets[np.arange(64) % 4] + np.array([3, 4])[np.arange(64) % 2] + 6 * x
    np.testing.assert_array_equal(execution.outputs[0], expected.astype(np.float32))
    assert execution.symbols["hits"] == (expected > 20).sum()
    np.testing.assert_array_equal(execution.symbols["last"], expected[:8].astype(np.float32))
    np.testing.assert_array_equal(execution.symbols["offsets"], offsets)
    assert not any("was not set" in note for note in execution.notes)


def test_a_variable_that_is_read_and_was_not_set_is_said():
    of = [note.partition(" was not set")[0] for note in smoothed().notes]
    assert of == ["`ns::n`", "`offsets`"]  # n is 0, so that nobody reads the filter
    notes = smoothed(symbols={"n": np.int32(1)}).notes
    assert notes == (
        "`filter` was not set, and the kernel reads it: it holds zeros: give --set "
        "filter='f32[5]=FILE.npy'",
        "`offsets` was not set, and the kernel reads it: it holds zeros: give --set "
        "offsets='f64[4]=FILE.npy'",
    )
    x = np.zeros(64, np.float32)
    found = check(VARIABLES, "smooth", grid=2, block=32, arguments=[x], symbols={"n": np.int32(1)})
    assert found.notes == notes


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        ({"filte": np.zeros(5, np.float32)}, "unknown variable 'filte': did you mean 'filter'"),
        (
            {"filter": np.zeros(4, np.float32)},
            r"`filter` \(float filter\[5\]\) has 20 bytes, and float32\[4\] has 16: give f32\[5\]",
        ),
        ({"filter": np.zeros(5, np.int32)}, r"is of type float32, and int32\[5\] was given"),
        ({"ns::n": np.float32(1)}, r"`ns::n` \(int n\) is of type int32, and float32 was given"),
        ({"filter": 3.0}, r"symbols\['filter'\] is 3.0: give a NumPy array"),
    ],
)
def test_a_wrong_setting_is_refused(symbols, message):
    with pytest.raises(InputError, match=message):
        smoothed(symbols=symbols)


def test_remedies_compare_variables_too():
    weights = {"filter": np.ones(5, np.float32), "n": np.int32(1)}
    launch = KernelLaunch(
        text=VARIABLES,
        name="smooth.cu",
        kernel="smooth",
        grid=(2, 1, 1),
        block=(32, 1, 1),
        arguments=[np.ones(64, np.float32)],
        device=find_device("h200"),
        arch="sm_90",
        setup=LaunchSetup(symbols=weights),
    )
    pages = written_by(launch, launch.compiled(), (range(2),)).pages
    found = {one.label: one.written[0].view(one.dtype)[:4] for one in pages if one.written}
    # `hits` is not among them: no sum exceeds 20
    assert found.keys() == {"argument 0 `x`, float32[64]", "variable `last`"}
    np.testing.assert_array_equal(found["variable `last`"], [4, 5, 4, 5])


def test_many_variables_do_not_share_addresses_with_arrays():
    source = "".join(f"__device__ int v{k} = {k};" for k in range(300)) + (
        'extern "C" __global__ void k(int *x) { x[0] = v299 + v7; }'
    )
    kernel = compile_kernel(source, "k", target="sm_90")
    _, bound, _ = prepared(kernel, Geometry.of(1, 1), [np.zeros(1 << 20, np.int32)])
    starts = [buffer.address for buffer in bound.buffers]
    ends = [buffer.address + buffer.bytes for buffer in bound.buffers]
    assert all(end <= start for end, start in zip(ends[:-1], starts[1:], strict=True))


def test_remedies_are_found_for_the_same_variables():
    source = """
    __constant__ int n;
    extern "C" __global__ void k(float *out, const float *in) {
        __shared__ float tile[32][32];
        tile[threadIdx.y][threadIdx.x] = in[32 * threadIdx.y + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < n; k++)
            out[32 * threadIdx.y + threadIdx.x] += tile[threadIdx.x][(threadIdx.y + k) % 32];
    }"""
    given = {
        "grid": 1,
        "block": (32, 32),
        "arguments": [np.zeros(1024, np.float32), np.ones(1024, np.float32)],
        "device": "h200",
        "symbols": {"n": np.int32(32)},
    }
    titles = [one.title for one in find_remedies(source, **given)]
    assert "tile[32][32 + 1], pads each row" in titles
    execution = simulate(source, **given)
    assert execution.call["symbols"] == given["symbols"]


HEAP = r"""
struct Node { int value; Node *next; };
extern "C" __global__ void lists(int *out, int n, int mode, unsigned long long *at) {
    Node *head = nullptr;
    for (int i = 0; i < n; i++) {
        Node *node = new Node;
        node->value = i * threadIdx.x;
        node->next = head;
        head = node;
    }
    int sum = 0;
    while (head) { Node *next = head->next; sum += head->value; delete head; head = next; }
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = sum;
    int *block = (int *)malloc(40);
    at[i] = (unsigned long long)block;
    if (mode == 1) block[10] = 1;
    free(block);
    if (mode == 2) free(block);
    if (mode == 3) out[i] = block[0];
    if (mode == 4) free(out);
    if (mode == 5) out[i] = *(int *)malloc(4);
    if (mode == 6) out[i] = malloc(at[0] ? 3 << 20 : 4) == nullptr;
}"""


def listed(mode=0, run=simulate, **more):
    out, at = np.zeros(8, np.int32), np.zeros(8, np.uint64)
    given = {"grid": 2, "block": 4, "arch": "sm_90"} | more
    return run(HEAP, "lists", arguments=[out, np.int32(5), np.int32(mode), at], **given)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_new_and_delete_give_memory_of_their_own(arch):
    execution = listed(arch=arch, predict=False)
    np.testing.assert_array_equal(execution.outputs[0], np.tile(10 * np.arange(4), 2))
    at = execution.outputs[1]
    assert not (at % 16).any()
    assert len(set(at[:4])) == 4  # the second block gets what the first one freed
    assert execution.notes == ("the time that malloc and free take is not modelled",)
    np.testing.assert_array_equal(at, listed(arch=arch, predict=False).outputs[1])


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (1, r"out of bounds at 0x\w+: right after the end of a block of malloc \(40 bytes at"),
        (2, r"free of 0x\w+, where no live block of malloc begins: was it freed before\?"),
        (3, r"read of 4 bytes out of bounds at 0x\w+: malloc gave no block there that still lives"),
        (4, r"free of 0x\w+, which malloc did not return"),
    ],
)
def test_misuse_of_the_heap_is_named(mode, message):
    with pytest.raises(LaunchError, match=message):
        listed(mode, predict=False)
    findings = listed(mode, run=check).findings
    assert [one.tool for one in findings] == ["memcheck"]
    assert findings[0].kind == ("out of bounds" if mode in (1, 3) else "invalid free")


def test_check_reports_reads_of_memory_that_malloc_gave():
    assert [one.kind for one in listed(5, run=check).findings] == ["uninitialized read"]
    assert not listed(0, run=check).findings  # blocks that use an address one after the other


def test_an_exhausted_heap_gives_null():
    execution = listed(6, predict=False)
    # 8 MB hold two blocks of 3 MB; the third and all later ones get none
    np.testing.assert_array_equal(execution.outputs[0], [0, 0, 1, 1, 1, 1, 1, 1])
    larger = listed(6, predict=False, heap_bytes=32 << 20)
    np.testing.assert_array_equal(larger.outputs[0], np.zeros(8))


def test_freed_neighbours_are_joined():
    source = r"""extern "C" __global__ void k(int *out, char **small) {
        for (int i = 0; i < 1024; i++) small[i] = (char *)malloc(8192);
        out[0] = small[1020] != nullptr && malloc(1 << 20) == nullptr;
        for (int i = 0; i < 1024; i++) free(small[i]);
        char *large = (char *)malloc(8 << 20);
        out[1] = large == small[0];
        free(large);
    }"""
    arguments = [np.zeros(2, np.int32), np.zeros(1024, np.uint64)]
    execution = simulate(source, grid=1, block=1, arguments=arguments, arch="sm_90", predict=False)
    np.testing.assert_array_equal(execution.outputs[0], [1, 1])


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100", "sm_120"])
def test_only_kernels_that_call_malloc_have_a_heap(arch):
    source = """
    extern "C" __global__ void tell(int *x) { printf("%d\\n", x[0]); assert(x[0] < 9); }
    extern "C" __global__ void take(int **x) { x[threadIdx.x] = (int *)malloc(8); }
    extern "C" __global__ void give(int **x) { if (x[1]) printf("given\\n"); free(x[0]); }
    extern "C" __global__ void none(int *x) { x[0] = 1; }"""
    kernels = (
        compile_kernel(source, name, target=arch) for name in ("tell", "take", "give", "none")
    )
    assert [uses_heap(kernel) for kernel in kernels] == [False, True, True, False]


STOPS = r"""
extern "C" __global__ void stop(int *x) {
    if (x[0] == 0) assert(x[threadIdx.x] < 3 && "small");
    if (x[0] == 1) __trap();
    if (x[0] == 2) __brkpt();
    x[blockIdx.x] = 9;
}"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_an_assert_ends_the_launch_with_its_message(arch):
    x = np.array([0, 1, 2, 5, 6], np.int32)
    with pytest.raises(LaunchError) as caught:
        simulate(STOPS, grid=2, block=5, arguments=[x], arch=arch, predict=False)
    assert str(caught.value).startswith(
        'stop failed the assert `x[threadIdx.x] < 3 && "small"` in `void stop(int *)` (kernel.cu, '
        "line 3); block (0, 0, 0), thread (3, 0, 0), kernel.cu, line 3: CALL"
    )


@pytest.mark.parametrize("how", [1, 2])
def test_a_trap_ends_the_launch(how):
    x = np.full(4, how, np.int32)
    with pytest.raises(LaunchError, match=r"stop trapped \(__trap or __brkpt\); block \(0, 0, 0\)"):
        simulate(STOPS, grid=1, block=4, arguments=[x], arch="sm_90", predict=False)


# What grid.sync() of cooperative groups does, without the time that its headers take to compile.
GRID = r"""
__device__ void sync_grid() {
    unsigned low, high, old, now;
    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    unsigned *barrier = (unsigned *)(((unsigned long long)high << 32) | low) + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned add = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                     : "=r"(old) : "l"(barrier), "r"(add) : "memory");
        do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(barrier) : "memory");
        while (!((old ^ now) & 0x80000000u));
    }
    __syncthreads();
}
extern "C" __global__ void turns(float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 3; k++) {
        y[i] = x[(i + 33) % n] + 1;
        sync_grid();
        x[i] = 2 * y[(i + 65) % n];
        sync_grid();
    }
}"""


def turned(blocks, run=simulate, **more):
    n = 64 * blocks
    x = np.arange(n, dtype=np.float32) % 7
    given = {"grid": blocks, "block": 64, "arguments": [x, np.zeros(n, np.float32), np.int32(n)]}
    return x, run(GRID, "turns", **given | more)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("blocks", [1, 9])
def test_all_blocks_meet_in_a_cooperative_launch(arch, blocks):
    x, execution = turned(blocks, arch=arch, predict=False, cooperative=True)
    for _ in range(3):
        x = 2 * np.roll(np.roll(x, -33) + 1, -65)
    np.testing.assert_array_equal(execution.outputs[0], x)


def test_a_cooperative_launch_has_a_time_and_no_race():
    _, execution = turned(16, device="h200", cooperative=True)
    assert 2e-6 < execution.predicted.time_s < 1e-4
    _, found = turned(4, run=check, cooperative=True)
    assert not found.findings


def test_the_sync_of_a_grid_needs_a_cooperative_launch():
    with pytest.raises(InputError, match=r"calls grid.sync\(\), which needs .* add --cooperative"):
        turned(2, arch="sm_90")


def test_a_cooperative_launch_fits_on_the_device():
    with pytest.raises(
        InputError, match=r"of 5,000 blocks: NVIDIA H200 .* holds at most 4,224 of them"
    ):
        turned(5000, device="h200", cooperative=True)


COOPERATIVE_GROUPS = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void sums(const float *x, float *partial, float *out, int n) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    auto quad = cg::tiled_partition<4>(tile);
    __shared__ float of_warp[32];
    float sum = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (tile.thread_rank() == 0) of_warp[tile.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        float all = 0;
        for (int k = 0; k < tile.meta_group_size(); k++) all += of_warp[k];
        partial[grid.block_rank()] = all;
    }
    grid.sync();
    if (grid.thread_rank() == 0) {
        float all = 0;
        for (int k = 0; k < grid.num_blocks(); k++) all += partial[k];
        out[0] = all;
    }
    if (threadIdx.x % 3 == 0) {
        auto some = cg::coalesced_threads();
        if (some.thread_rank() == 0 && grid.thread_rank() == 0) out[1] = some.size();
    }
    int before = cg::exclusive_scan(quad, 1 + int(quad.thread_rank()));
    if (grid.thread_rank() < 4) out[2 + grid.thread_rank()] = before;
}"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_cooperative_groups_execute(arch):
    x = np.random.default_rng(0).integers(0, 9, 5000).astype(np.float32)
    arguments = [x, np.zeros(7, np.float32), np.zeros(6, np.float32), np.int32(5000)]
    execution = simulate(
        COOPERATIVE_GROUPS,
        grid=7,
        block=128,
        arguments=arguments,
        arch=arch,
        cooperative=True,
        predict=False,
    )
    np.testing.assert_array_equal(execution.outputs[2], [x.sum(), 11, 0, 1, 3, 6])


def test_a_kernel_that_launches_another_is_refused():
    source = """__global__ void child(float *x) { x[0] = 1; }
    __global__ void parent(float *x) { child<<<1, 1>>>(x); }"""
    with pytest.raises(CompileError) as caught:
        compile_kernel(source, "parent", target="sm_90")
    assert str(caught.value).startswith(
        "kernel.cu, line 2: a kernel launches another one (dynamic parallelism), which is not "
        "supported: launch both from the host"
    )
