"""Bulk copies, barriers in shared memory and clusters: what is counted, and what a kernel does
wrong."""

from functools import cache

import numpy as np
import pytest

from analysis.devices import DEVICES
from analysis.errors import InputError, LaunchError
from tests.cubins import cubin_of
from tests.refusals import refusal
from toolkit import TensorMap, simulate
from toolkit.machine_code.kernel import Kernel
from validation import ROOT

CORPUS = ROOT / "validation" / "corpus"
HELPERS = (CORPUS / "bulk_copies.cu").read_text(encoding="utf-8").partition("// One tile")[0]
SECTORS_READ, SECTORS_WRITTEN = "bulk__sectors_read.sum", "bulk__sectors_written.sum"
BEGIN = "if (t == 0) begin(&barrier, 1), publish(); __syncthreads();"
LOAD = "if (t == 0) { expect(&barrier, 4096); load_tile(tile, &map, 0, 0, &barrier); }"
WAIT = "wait_for(&barrier, 0);"
ARRIVE = "__syncthreads(); arrive(&barrier); wait_for(&barrier, 0);"
BODIES = {
    "loads": f"{BEGIN} {LOAD} {WAIT} out[t] = tile[t];",
    "loads_at_the_edge": f"{BEGIN} {LOAD} {WAIT} out[t] = tile[t];".replace(
        "0, 0, &b", "24, 40, &b"
    ),
    "loads_nothing": "out[t] = 1;",
    "lacks_bytes": f"{BEGIN} {LOAD.replace('4096', '4112')} {WAIT}",
    "lacks_an_arrival": f"if (t == 0) begin(&barrier, 65); {ARRIVE}",
    "waits_for_the_next": f"if (t == 0) begin(&barrier, 64); {ARRIVE} wait_for(&barrier, 1);",
    "asks": f"{BEGIN} while (!is_over(&barrier, 0)) {{}} out[t] = 1;",
    "arrives_twice": f"{BEGIN} if (t == 0) {{ expect(&barrier, 16); expect(&barrier, 16); }}",
    "reads_too_early": f"{BEGIN} {LOAD} out[t] = tile[t]; {WAIT}",
    "loads_too_soon": f"""{BEGIN} {LOAD} {WAIT}
    if (t == 0) {{ expect(&barrier, 4096); load_tile(tile, &map, 0, 32, &barrier); }}
    __syncthreads(); out[t] = tile[t]; wait_for(&barrier, 1);""",
    "misaligned": f"{BEGIN} {LOAD.replace('tile, &map', 'tile + 4, &map')}",
    "within_a_unit": f"{BEGIN} {LOAD.replace('&map, 0,', '&map, 2,')}",
    "beyond": f"{BEGIN} {LOAD.replace('tile, &map', 'tile + 512, &map')}",
    "no_map": f"{BEGIN} {LOAD.replace('&map', '(const TensorMap*)out')}",
}
KERNEL = """extern "C" __global__ void NAME(const __grid_constant__ TensorMap map, float* out)
{
    __shared__ alignas(1024) float tile[32 * 32];
    __shared__ u64 barrier;
    const int t = threadIdx.x;
    BODY
}
"""


BY_POINTER = KERNEL.replace(
    "const __grid_constant__ TensorMap map", "const TensorMap* map"
).replace("BODY", BODIES["loads"].replace("&map", "map"))


@cache
def image():
    """All bodies, each a kernel, compiled once."""
    kernels = (KERNEL.replace("NAME", name).replace("BODY", body) for name, body in BODIES.items())
    source = HELPERS + "".join(kernels) + BY_POINTER.replace("NAME", "loads_by_pointer")
    return cubin_of(source, "loads").image


def array(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def launched(name, **more):
    arguments = [TensorMap(array(64, 32), (32, 32)), np.zeros(1024, np.float32)]
    settings = {"grid": 1, "block": 64, "arguments": arguments, "predict": "device" in more}
    return simulate(Kernel.from_image(image(), name), **settings | more)


def fault(name):
    return refusal(LaunchError, launched, name, max_instructions=10**6)


# --- counters -----------------------------------------------------------------------------------


def test_sectors_of_bulk_copies_have_names_of_their_own():
    counters = launched("loads").counters
    assert counters[SECTORS_READ] == 128  # 32 rows of 128 B / 32 B
    assert counters[SECTORS_WRITTEN] == 0
    assert counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 0


def test_a_map_may_be_in_memory():
    found = launched("loads_by_pointer", device="h200")
    assert np.array_equal(found.outputs[-1][:64], array(2, 32).ravel())
    assert len(found.outputs) == 2  # the map is no output
    assert found.counters[SECTORS_READ] == 128
    assert found.predicted is not None


def test_what_lies_beyond_the_edges_is_not_read():
    assert (
        launched("loads_at_the_edge").counters[SECTORS_READ] == 24
    )  # rows 40 to 63, 8 floats each


def test_kernels_without_bulk_copies_do_not_count_them():
    assert SECTORS_READ not in launched("loads_nothing").counters


def test_a_wait_is_counted_once():
    waits = [i for i in launched("loads").instructions if "TRYWAIT" in i.text]
    assert sum(i.executed for i in waits) == 2  # warps


def test_each_block_reads_through_l2_again():
    counters = launched("loads", grid=8, device="h200").counters
    assert counters[SECTORS_READ] == 8 * 128
    assert counters["l1tex__m_xbar2l1tex_read_sectors.sum"] <= 8 * 128
    assert counters["dram__bytes_read.sum"] == 4096  # the others find it in L2


# --- what a kernel does wrong -------------------------------------------------------------------


LACKS = "its phase of parity"


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        (
            "lacks_bytes",
            [
                "64 of the 64 threads of block (0, 0, 0) wait for the mbarrier at byte 4,096",
                f"{LACKS} 0 lacks 0 arrivals and 16 bytes of copies: loads.cu, line",
            ],
        ),
        ("lacks_an_arrival", [f"{LACKS} 0 lacks 1 arrival and 0 bytes of copies"]),
        ("waits_for_the_next", [f"{LACKS} 1 lacks 64 arrivals and 0 bytes of copies"]),
        (
            "asks",
            [
                "64 of the 64 threads of block (0, 0, 0) wait for memory that no running block will"
                " write: it polls in a loop"
            ],
        ),
        (
            "arrives_twice",
            [
                "the mbarrier at byte 0 of shared memory received more arrivals than expected",
                f"{LACKS} 0 lacks 0 arrivals and 16 bytes of copies",
            ],
        ),
        ("misaligned", ["misaligned shared write of 128 bytes at byte 16: it is not a multiple"]),
        ("within_a_unit", ["misaligned global read of 16 bytes at 0x7f0000000008"]),
        ("beyond", ["shared write of 4,096 bytes out of bounds at byte 2,048"]),
        ("no_map", ["no tensor map of 2 axes at 0x7f"]),
    ],
)
def test_what_can_never_end_or_go_where_it_shall_is_a_fault(name, reasons):
    said = fault(name)
    assert all(reason in said for reason in reasons)


def test_a_tile_is_nobodys_before_it_has_arrived():
    execution = launched("reads_too_early")
    assert np.isnan(execution.outputs[1][:64]).all()
    (note,) = execution.notes
    assert note.startswith("shared memory was read 64 times where no thread had written")


def test_a_tile_that_is_overwritten_too_soon_is_lost():
    assert np.isnan(launched("loads_too_soon").outputs[1][:64]).all()


def test_a_map_for_a_parameter_that_is_none_is_refused():
    source = 'extern "C" __global__ void k(float* x) { x[0] = 1; }'
    assert "is a tensor map of 128 bytes: the kernel's parameter has 8" in refusal(
        InputError, simulate, source, grid=1, block=1, arguments=[TensorMap(array(8, 8), (4, 4))]
    )


def test_a_grid_that_is_no_multiple_of_the_cluster_is_refused():
    source = "__global__ void __cluster_dims__(2, 1) k(int *x) { x[blockIdx.x] = 1; }"
    assert "a grid of 3×1×1: its __cluster_dims__ is 2×1×1" in refusal(
        InputError, simulate, source, grid=3, block=32, arguments=[np.zeros(3, np.int32)]
    )


# --- clusters and blocks that wait --------------------------------------------------------------

WAITS = """extern "C" __global__ void k(volatile unsigned *flags, unsigned *out)
{
    if (blockIdx.x %s) { while (!flags[blockIdx.x %s]) {} }
    out[blockIdx.x] = 1; __threadfence(); flags[blockIdx.x] = 1;
}"""


def waits(condition, on, grid, **more):
    arguments = [np.zeros(grid + 1, np.uint32), np.zeros(grid, np.uint32)]
    source = WAITS % (condition, on)
    launch = {"grid": grid, "block": 1, "arguments": arguments, "predict": False}
    return simulate(source, "k", **launch, **more)


def test_a_block_that_waits_for_itself_is_a_deadlock():
    assert "1 of the 1 threads of block (0, 0, 0) waits for memory" in refusal(
        LaunchError, waits, ">= 0", "+ 0", 2
    )


def test_blocks_of_one_place_that_wait_are_all_executed():
    execution = waits("> 0", "- 1", 300, blocks="representative")
    assert execution.basis == "all 300 blocks executed: blocks wait for others"
    assert execution.outputs[1].all()


def test_more_blocks_than_fit_cannot_wait_for_the_last():
    device = DEVICES["a100-40gb"]
    whole = device.shared_bytes_per_block_optin  # of an SM: one block of it each
    fits, more = device.sm_count, {"arch": "sm_80", "dynamic_shared_bytes": whole}
    assert waits(f"< {fits - 1}", "+ 1", fits, **more).outputs[1].all()
    with pytest.raises(LaunchError, match=f"all {fits} running blocks poll in loops"):
        waits(f"< {fits}", "+ 1", fits + 1, **more)


def test_a_block_of_a_cluster_counts_alone():
    source = """__global__ void __cluster_dims__(2, 1) k(int *x) {
        asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
        for (int i = 0; i < (int)blockIdx.x; ++i) atomicAdd(x + blockIdx.x, 1);
    }"""
    grid = 64
    execution = simulate(
        source, grid=grid, block=32, arguments=[np.zeros(grid, np.int32)], blocks=9, predict=False
    )
    assert execution.executed_blocks == 9
    whole = simulate(
        source, grid=grid, block=32, arguments=[np.zeros(grid, np.int32)], predict=False
    )
    (arrivals,) = (i for i in execution.instructions if i.opcode == "UCGABAR_ARV")
    assert arrivals.executed == grid
    assert whole.outputs[0].tolist() == [32 * k for k in range(grid)]


def test_lanes_store_asynchronously_to_the_other_block_of_a_cluster(machine):
    if int(machine.arch.removeprefix("sm_")) < 90:
        pytest.skip("needs sm_90")
    body = """__device__ unsigned in_the_other(const void* pointer)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"(shared_address(pointer)), "r"(blockIdx.x ^ 1));
    return there;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) send(unsigned* out)
{
    __shared__ unsigned got[32];
    __shared__ u64 barrier;
    const unsigned t = threadIdx.x;
    got[t] = 7;
    if (t == 0) begin(&barrier, 1), publish(), expect(&barrier, 4 * 16);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (t & 1)
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
            ::"r"(in_the_other(got + t)), "r"(100 * blockIdx.x + t), "r"(in_the_other(&barrier))
            : "memory");
    wait_for(&barrier, 0);
    out[32 * blockIdx.x + t] = got[t];
}"""
    out = np.zeros((2, 32), np.uint32)
    ran = machine.call(HELPERS + body, "send", grid=2, block=32, arguments=[out])
    lanes = np.arange(32)
    # odd lanes of each block send 100 times their block and their lane
    expected = [np.where(lanes % 2, 100 * other + lanes, 7) for other in (1, 0)]
    assert np.array_equal(ran.outputs[0], expected)


REDUCTION = """
extern "C" __global__ void reduces(TYPE* out, const TYPE* in)
{
    __shared__ alignas(128) TYPE part[64];
    const int t = threadIdx.x;
    part[t] = in[t];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.OPERATION [%0], [%1], %2;"
            ::"l"(out), "r"(shared_address(part)), "n"(64 * sizeof(TYPE)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
"""


@pytest.mark.parametrize(
    ("operation", "c_type", "dtype", "expected"),
    [
        ("add.f32", "float", np.float32, np.add),
        ("min.s32", "int", np.int32, np.minimum),
        ("or.b32", "unsigned", np.uint32, np.bitwise_or),
    ],
)
def test_a_bulk_reduction_combines_each_element_with_what_was_there(
    operation, c_type, dtype, expected
):
    source = HELPERS + REDUCTION.replace("TYPE", c_type).replace("OPERATION", operation)
    before = np.arange(64).astype(dtype)
    given = np.arange(64)[::-1].astype(dtype) * (1 if c_type == "unsigned" else -1)
    found = simulate(
        cubin_of(source, "reduces"), grid=1, block=64, arguments=[before, given], device="h200"
    )
    np.testing.assert_array_equal(found.outputs[0], expected(before, given))
