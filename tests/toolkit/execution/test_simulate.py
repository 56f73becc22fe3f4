"""Launches on the simulator: what comes back, and one clear line for each mistake."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from analysis.errors import (
    InputError,
    LaunchError,
    UnknownNameError,
    UnsupportedError,
)
from tests.cubins import cubin_of
from tests.refusals import refusal
from tests.sampling import chosen_of, exhaustive
from tests.together import Part, compiled_together
from toolkit import simulate
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel_source import known_architecture
from toolkit.machine_code.signature import kernel_names
from toolkit.sass import machine

WARPS = "smsp__inst_executed.sum"
THREADS = "smsp__thread_inst_executed.sum"
STORES = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
SECTORS_STORED = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"

TWICE = """extern "C" __global__ void twice(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""


def floats(*shape):
    return np.zeros(shape, np.float32)


def launch(source, *arguments, grid=1, block=1, kernel=None, **how):
    how = {"predict": "device" in how} | how
    return simulate(source, kernel, grid=grid, block=block, arguments=list(arguments), **how)


def twice(x=None, n=None, **changes):
    x = np.arange(100, dtype=np.float32) if x is None else x
    n = np.int32(x.size) if n is None else n
    settings = {"grid": 4, "block": 32, "arguments": [x, n], "arch": "sm_86"}
    settings["predict"] = "device" in changes
    return simulate(TWICE, "twice", **settings | changes)


def usual(*architectures):
    """sm_90; the others are exhaustive."""
    return chosen_of(architectures, lambda arch: arch == "sm_90")


def refused(kind=InputError, /, **changes):
    return refusal(kind, twice, **changes)


# --- what comes back --------------------------------------------------------------------------


def test_outputs_are_the_arrays_after_the_launch_and_inputs_stay():
    x = np.arange(100, dtype=np.float32)
    execution = twice(x)
    assert execution.outputs[0].tolist() == (2 * x).tolist()
    assert x[99] == 99
    assert execution.counters[STORES] == 4  # one per warp
    assert execution.counters[SECTORS_STORED] == 13  # 3 warps · 128 B / 32 B + 4 floats
    assert execution.basis == "all 4 blocks executed"
    assert execution.executed_blocks == 4
    assert 0 < execution.simulation_s < 60
    assert execution.notes == ()


def test_lines_and_instructions_add_up_to_the_counters():
    execution = twice()
    assert sum(i.executed for i in execution.instructions) == execution.counters[WARPS]
    lines = {line: counters for (file, line), counters in execution.lines.items()}
    assert sum(counters[WARPS] for counters in lines.values()) == execution.counters[WARPS]
    assert {line: counters[STORES] for line, counters in lines.items() if counters[STORES]} == {
        3: 4
    }


def test_resources_are_the_compilers():
    execution = twice()
    assert execution.resources == execution.cubin.resources
    assert execution.resources.architecture == "sm_86"
    assert execution.resources.registers_per_thread >= 6


def test_finished_blocks_are_told():
    told = []
    twice(grid=100, advance=lambda done, of: told.append((done, of)))
    assert told[-1] == (100, 100)
    assert told == sorted(told)
    assert len(told) > 3


@pytest.mark.parametrize("blocks", [40, "representative"])
def test_blocks_are_counted_apart_a_few_at_a_time(monkeypatch, blocks):
    x, told = np.arange(32 * 300 - 5, dtype=np.float32), []
    together = twice(x, grid=300, blocks=blocks)
    monkeypatch.setattr(machine, "MOST_APART", 3)
    apart = twice(x, grid=300, blocks=blocks, advance=lambda done, of: told.append((done, of)))
    assert apart.counters == together.counters
    assert apart.executed_blocks == together.executed_blocks < 300
    assert (apart.outputs[0] == together.outputs[0]).all()
    assert told[-1][0] == told[-1][1]


def test_an_exception_of_the_listener_ends_the_launch():
    def stop(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        twice(grid=100, advance=stop)


# --- arguments --------------------------------------------------------------------------------


def test_arrays_of_any_layout_come_back_in_rows():
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    for x in (rows, np.asfortranarray(rows), rows[:, ::-1][:, ::-1], np.repeat(rows, 2, 1)[:, ::2]):
        (output,) = twice(x, np.int32(3)).outputs
        assert output.flags.c_contiguous
        assert output.tolist() == [[0, 2, 4, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_a_read_only_array_is_a_buffer_like_others():
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = False
    (output,) = twice(x).outputs
    assert output.tolist() == [0, 2, 4, 6]
    output[0] = 1


def test_arrays_without_axes_and_without_elements_are_buffers():
    (output,) = twice(np.array(3, np.float32)).outputs
    assert (output.shape, float(output)) == ((), 6.0)
    (output,) = twice(floats(0, 5)).outputs
    assert output.shape == (0, 5)


SPACED = """__global__ void spaced(const int *from, int *to, long step) {
    long i = threadIdx.x * step + blockIdx.x;
    to[i] += from[i];
}"""


@pytest.mark.parametrize(
    ("step", "pages"),  # of a warp: one, some, and more than are found at once
    [(1 << 9, 1), (1 << 11, 4), (1 << 15, 32)],
)
def test_pages_are_copied_when_they_are_written(monkeypatch, step, pages):
    x = np.arange(32 * step, dtype=np.int32)
    before, after, bound = x.copy(), x.copy(), []
    after.reshape(32, step)[:, :64] *= 2

    def watched(*launch, **how):
        bound.append(launch[0])
        return machine.run_blocks(*launch, **how)

    monkeypatch.setattr("toolkit.execution.simulator.run_blocks", watched)
    settings = {"grid": 64, "block": 32, "workers": 8}
    assert launch(SPACED, x, x, np.int64(step), **settings, outputs=False).outputs == ()
    assert [np.count_nonzero(buffer.shared[1]) for buffer in bound[0].buffers] == [0, pages]
    found = launch(SPACED, x, x, np.int64(step), **settings)
    for array, expected in zip((x, *found.outputs), (before, before, after), strict=True):
        assert np.array_equal(array, expected)


def test_the_same_array_twice_is_two_buffers():
    source = "__global__ void copy(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x] + 1; }"
    x = np.zeros(32, np.int32)
    first, second = launch(source, x, x, block=32).outputs
    assert (first[0], second[0]) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "twice takes 2 arguments (float *x, int n), 0 were given"),
        ([floats(1)], "twice takes 2 arguments (float *x, int n), 1 was given"),
        ([floats(4), 4], "argument 1 of twice is 4: give a NumPy array or, for a "),
        ([[1.0], np.int32(1)], "argument 0 of twice is [1.0]: give a NumPy array or, for a value"),
        (
            [np.zeros(4), np.int32(4)],
            "argument 0 of twice (float *x) is an array of float64: give float32 "
            "(x.astype('float32') converts the values)",
        ),
        (
            [np.zeros(4, np.int32), np.int32(4)],
            "argument 0 of twice (float *x) is an array of int32: give float32 "
            "(x.astype('float32') converts the values, x.view keeps their bytes)",
        ),
        (
            [np.zeros(4, np.complex64), np.int32(4)],
            "argument 0 of twice (float *x) is an array of complex64: give float32 "
            "(x.view('float32') has its parts side by side)",
        ),
        (
            [np.int64(4), np.int32(4)],
            "argument 0 of twice (float *x) is int64 4: give an array: it becomes a device buffer",
        ),
        (
            [floats(4), np.zeros(4, np.int32)],
            "argument 1 of twice (int n) is an array: give a value, int32",
        ),
        (
            [floats(4), np.array(4, np.int32)],
            "argument 1 of twice (int n) is an array: give a value, x[()] of type int32",
        ),
        (
            [floats(4), np.float32(4)],
            "argument 1 of twice (int n) is float32 4.0: give int32",
        ),
        (
            [floats(4), np.int64(4)],
            "argument 1 of twice (int n) is int64 4: give int32",
        ),
        (
            [np.zeros(4, ">f4"), np.int32(4)],
            "argument 0 of twice is big-endian (>f4): convert it: x.astype(x.dtype.newbyteorder('",
        ),
        (
            [np.zeros(4, [("a", "<i4"), ("b", ">i4")]), np.int32(4)],
            "argument 0 of twice is big-endian",
        ),
        (
            [np.array([{}, None]), np.int32(4)],
            "argument 0 of twice holds Python objects: give an array of numbers",
        ),
        ([np.array(["a"]), np.int32(4)], "argument 0 of twice is of type <U1: a device has no"),
        ([np.zeros(4, np.longdouble), np.int32(4)], "argument 0 of twice is of type float128: a"),
    ],
)
def test_arguments_that_are_not_the_kernels_are_refused(arguments, message):
    assert refused(arguments=arguments).startswith(message)


def test_raw_bytes_and_other_signs_may_stand_for_a_buffers_type():
    source = "__global__ void k(const float *x, unsigned *y) { y[0] = __float_as_uint(x[0]); }"
    one = np.array([1.0], np.float32)
    for x in (one, one.view(np.uint8), one.view([("r", "f4")])):
        for y in (np.zeros(1, np.uint32), np.zeros(1, np.int32)):
            outputs = launch(source, x, y).outputs
            assert outputs[1].view(np.uint32)[0] == 0x3F800000


def test_complex_numbers_are_pairs():
    source = "__global__ void k(float2 *x, double4 *y) { y[0].w = x[1].y; }"
    x, y = np.array([1, 2 + 3j], np.complex64), np.zeros(2, np.complex128)
    outputs = launch(source, x, y).outputs
    assert outputs[1].tolist() == [0, 3j]
    assert "float2 *x) is an array of complex128: give float32" in refusal(
        InputError, launch, source, y, y
    )
    triples = source.replace("float2", "float3")
    assert "float3 *x) is an array of complex64: give float32" in refusal(
        InputError, launch, triples, x, y
    )


def test_without_a_source_sizes_are_checked():
    cubin = cubin_of(TWICE, "twice", "sm_86")
    array = floats(4)
    for arguments, message in (
        ([array], "twice takes 2 arguments (8 bytes, 4 bytes), 1 was given"),
        ([array, np.int64(4)], "argument 1 of twice is int64 4 of 8 bytes: the kernel's parameter"),
        ([array, array], "argument 1 of twice is an array, which is passed as a pointer of 8 b"),
        ([np.int32(4), np.int32(4)], "argument 0 of twice is int32 4 of 4 bytes: the kernel's par"),
    ):
        assert refusal(InputError, launch, cubin, *arguments).startswith(message)


def test_too_little_memory_is_said_before_all_blocks_are_executed(monkeypatch):
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: 10**6)
    monkeypatch.setattr("toolkit.execution.simulator.run_blocks", None)
    assert refused(x=floats(10**6)) == (
        "twice: copies of its buffers take 0.0 GB on the host, 0.0 GB are free: pass smaller arrays"
    )


# --- launches that nobody would take ------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"block": 1025},
            "twice: a block of 1025×1×1 = 1,025 threads: a block has at most 1,024: take a "
            "smaller one and more blocks",
        ),
        ({"block": (32, 8, 8)}, "twice: a block of 32×8×8 = 2,048 threads"),
        ({"block": (1, 1, 65)}, "twice: a block of 1×1×65: z = 65 is over 64: spread it over "),
        ({"grid": (1, 65536)}, "twice: a grid of 1×65536×1: y = 65,536 is over 65,535: spread "),
        ({"grid": 2**31}, "twice: a grid of 2147483648×1×1: x = 2,147,483,648 is over "),
        ({"grid": 0}, "grid = 0: give one to three whole sizes of at least 1"),
        ({"grid": (1, 2, 3, 4)}, "grid = (1, 2, 3, 4): give one to three whole sizes"),
        ({"block": "32"}, "block = '32': give one to three whole sizes"),
        ({"block": 1.5}, "block = 1.5: give one to three whole sizes"),
        (
            {"dynamic_shared_bytes": 101 * 1024},
            "twice: 103,424 bytes of shared memory per block (0 static, 103,424 dynamic): sm_86 "
            "has 101,376: use smaller tiles",
        ),
        ({"dynamic_shared_bytes": -1}, "twice: -1 bytes of dynamic shared memory: give 0 or more"),
        ({"arch": "sm_85"}, "unknown architecture 'sm_85': did you mean 'sm_"),
        ({"arch": "ampere"}, "unknown architecture 'ampere': choose one of sm_75, "),
        ({"blocks": 0}, "blocks = 0: give 'all', 'representative' or a number from 1 on"),
        ({"blocks": "some"}, "blocks = 'some': give 'all', 'representative', a whole number"),
        ({"max_instructions": 0}, "max_instructions = 0: give 1 to 4,611,686,018,427,387,904"),
        ({"workers": 0}, "workers = 0: give 1 to 1,024"),
        (
            {"max_instructions": 2**62 + 1},
            "max_instructions = 4611686018427387905: give 1 to 4,611",
        ),
        ({"max_instructions": 2**64}, "max_instructions = 18446744073709551616: give a whole num"),
        ({"max_instructions": 1.5}, "max_instructions = 1.5: give a whole number of at most 64 "),
        ({"workers": 2**32}, "workers = 4294967296: give 1 to 1,024"),
        ({"dynamic_shared_bytes": 10**400}, "dynamic_shared_bytes = 10000"),
        (
            {"dynamic_shared_bytes": 2**32, "arch": "sm_103"},
            "twice: 4,294,967,296 bytes of shared memory per block (0 static, 4,294,967,296 dyn",
        ),
        ({"grid": ()}, "grid = (): give one to three whole sizes of at least 1"),
        ({"grid": -1}, "grid = -1: give one to three whole sizes of at least 1"),
        ({"grid": {"x": 1}}, "grid = {'x': 1}: give one to three whole sizes of at least 1"),
        ({"grid": 10**400}, "grid = 10000"),
        (
            {"grid": (2**31 - 1, 65_535, 65_535)},
            "twice: a grid of 9,223,090,559,730,712,575 blocks: the simulator takes at most 4,2",
        ),
        ({"arguments": np.zeros(3)}, "arguments = array([0., 0., 0.]): give a list"),
        ({"device": 90}, "device = 90: give a device, a text or None"),
        ({"arch": 90}, "arch = 90: give a text"),
        ({"defines": {1: 2}}, "define 1 = '2': give a C identifier and one line"),
        ({"options": "-G"}, "options = '-G': give a list"),
        ({"outputs": "no"}, "outputs = 'no': give True or False"),
        ({"seed": "x"}, "seed = 'x': give a whole number of at most 64 bits"),
        ({"seed": -1}, f"seed -1 is out of range: give 0 to {2**63 - 1}"),
        ({"options": ("--nonsense",)}, "kernel.cu: compiler options: unrecognized option"),
        ({"defines": {"1A": 2}}, "define '1A' = '2': give a C identifier and one line"),
    ],
)
def test_a_launch_that_no_driver_takes_is_refused(changes, message):
    assert refused(**changes).startswith(message)


@pytest.mark.parametrize("source", [None, 3, ["k.cu"], b"", "a" * 10_000, "k\0.cu"])
def test_what_is_no_source_is_refused(source):
    said = refusal(InputError, launch, source)
    assert "\n" not in said
    assert len(said) < 400


def test_more_blocks_than_memory_has_room_for_are_refused(monkeypatch):
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: 10**9)
    said = refused(grid=2**31 - 1, blocks="representative")
    assert said == (  # 48 B of each
        "twice: records of 2,147,483,647 blocks take 103 GB on the host, 1.0 GB are free: "
        "launch fewer blocks, or execute a number of them, such as 100 (--blocks 100)"
    )
    found = launch("__global__ void k() {}", grid=2**31 - 1, blocks=40)
    assert found.executed_blocks == 40


@pytest.mark.parametrize(("grid", "blocks"), [(4, 4), (4, 5), (100, 10**18)])
def test_as_many_blocks_as_there_are_are_all_of_them(grid, blocks):
    found = twice(grid=grid, blocks=blocks, arch=None, device="h200")
    assert found.basis == f"all {grid} blocks executed"
    assert found.predicted is not None


def test_blocks_without_accesses_have_a_time():
    source = "__global__ void k(float *x) {}"
    found = launch(source, floats(64), grid=2000, block=32, device="h200", blocks="representative")
    assert found.executed_blocks < 2000
    assert found.predicted is not None


def test_a_cluster_of_more_blocks_than_any_device_takes_is_refused():
    kernel = replace(cubin_of("__global__ void k() {}", "k"), cluster=(2**16, 2**16, 1))
    said = refusal(InputError, launch, kernel, grid=(2**16, 2**15))
    assert said == ("k: its __cluster_dims__ is 65536×65536×1: a cluster has at most 16 blocks")


def test_a_block_that_was_not_compiled_for_or_has_no_room_is_refused():
    source = """__global__ void %s k(float *x) {
        float v[100];
        for (int i = 0; i < 100; i++) v[i] = x[i * blockDim.x + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < 100; i++) x[i * blockDim.x + threadIdx.x] = v[99 - i];
    }"""
    x = floats(100 * 1024)
    assert refusal(InputError, launch, source % "__launch_bounds__(256)", x, block=257) == (
        "k: a block of 257×1×1 = 257 threads: its __launch_bounds__ promises at most 256"
    )
    assert launch(source % "__launch_bounds__(256)", x, block=256)
    with pytest.raises(
        InputError, match=r"^k: block of 1024 threads with \d+ registers each takes"
    ):
        launch(source % "", x, block=1024)


def test_a_block_that_the_kernel_rules_out_is_refused():
    source = "__global__ void __block_size__((64, 2, 1)) k(int *x) { x[0] = blockDim.x; }"
    x = np.zeros(1, np.int32)
    assert refusal(InputError, launch, source, x, block=128).startswith(
        "k: a block of 128×1×1: its __block_size__ is 64×2×1"
    )
    assert launch(source, x, block=(64, 2)).outputs[0] == [64]


def test_a_kernel_that_is_not_there_is_refused_with_those_that_are():
    assert refusal(UnknownNameError, launch, TWICE, kernel="twise").startswith(
        "unknown kernel 'twise': did you mean 'twice'?"
    )
    assert refusal(InputError, launch, TWICE + "__global__ void b() {}").startswith(
        "kernel.cu holds 2 kernels: say which one, by name or by number (-k 1): "
    )


def test_a_source_that_cannot_be_read_is_named(tmp_path):
    for name in ("absent.cu", "absent.cubin"):
        with pytest.raises(InputError, match=f"{name}.* cannot be read: No such file or directory"):
            launch(tmp_path / name, kernel="k")


# --- architectures ------------------------------------------------------------------------------


def test_an_architecture_that_is_too_old_is_simulated_with_the_nearest_and_says_so():
    for arch in ("sm_61", "sm_70"):
        resources = twice(arch=arch).resources
        assert resources.architecture == "sm_75"
        assert f"does not support the device's own {arch}" in resources.note
    assert twice(arch="sm_75").resources.note is None


def test_an_old_device_keeps_its_own_limit_of_shared_memory():
    said = refused(arch="sm_61", dynamic_shared_bytes=60_000)  # an sm_75 has 64 KiB
    assert "sm_61 has 49,152" in said


@pytest.mark.parametrize("arch", ["sm_90a", "sm_999", "", "sm_", "75", "sm_1"])
def test_other_names_are_left_to_the_compiler(arch):
    assert known_architecture(arch) == (arch, None)


# --- which blocks -------------------------------------------------------------------------------

LAST_BLOCK_IS_PARTIAL = {"x": np.arange(3190, dtype=np.float32), "grid": 100}


def test_representative_blocks_count_like_all_of_them():
    x = np.arange(1000 * 32 - 10, dtype=np.float32)  # the last block is partial
    everything = twice(x, grid=1000)
    some = twice(x, grid=1000, blocks="representative")
    assert some.counters == everything.counters
    assert some.basis == (
        f"{some.executed_blocks} of 1,000 blocks executed; proved: each block has the same counts "
        "as the others of its class (2 classes)"
    )
    assert some.executed_blocks <= 2 + 3 + 1 + 8  # of each class, its ends, and at random
    written = some.outputs[0] != x
    assert np.unique(np.flatnonzero(written) // 32).size == some.executed_blocks


DIFFERS = """__global__ void differs(float *x) {
    for (int i = 0; i <= blockIdx.x % 3; i++) x[blockIdx.x * 32 + threadIdx.x] += 1;
}"""


def test_where_blocks_differ_all_are_executed_from_the_start():
    x = floats(1000 * 32)
    everything = launch(DIFFERS, x, grid=1000, block=32)
    some = launch(DIFFERS, x, grid=1000, block=32, blocks="representative")
    assert some.counters == everything.counters
    assert some.basis == (
        "all 1,000 blocks executed: their counts depend on their index in a way that is not proved"
    )
    assert np.array_equal(some.outputs[0], everything.outputs[0])  # none was executed twice


def test_a_number_of_blocks_is_executed_and_the_rest_estimated():
    x = floats(100 * 32)
    execution = launch(DIFFERS, x, grid=100, block=32, blocks=12)
    assert execution.basis == ("12 of 100 blocks executed; 7 random ones among them differ")
    exact = launch(DIFFERS, x, grid=100, block=32).counters[WARPS]
    assert execution.counters[WARPS] == pytest.approx(exact, rel=0.5)
    one_each = twice(**LAST_BLOCK_IS_PARTIAL, blocks=1)
    assert one_each.basis == (
        "1 of 100 blocks executed; one of them is random: at most 95 % of 100 differ "
        "(95 % confidence)"
    )


def test_more_blocks_than_there_are_is_all():
    assert twice(blocks=1000).basis == "all 4 blocks executed"
    assert twice(grid=1, blocks="representative").basis == "the one block executed"


# --- machine code from elsewhere ----------------------------------------------------------------


def test_a_cubin_its_bytes_or_its_file_are_sources(tmp_path):
    cubin = cubin_of(TWICE, "twice", "sm_80")
    path = tmp_path / "twice.cubin"
    path.write_bytes(cubin.image)
    x = np.arange(100, dtype=np.float32)
    expected = twice(x, arch="sm_80")
    for source in (cubin, cubin.image, bytearray(cubin.image), path, str(path)):
        for kernel in ("twice", None):
            execution = launch(source, x, np.int32(100), grid=4, block=32, kernel=kernel)
            assert execution.counters == expected.counters
            assert execution.resources.architecture == "sm_80"
            assert np.array_equal(execution.outputs[0], expected.outputs[0])


def test_machine_code_that_is_none_is_refused(tmp_path):
    cubin = cubin_of(TWICE, "twice", "sm_80")
    for source, kernel, message in (
        (cubin, "other", "the cubin is of kernel twice, not of other: leave the kernel out"),
        (cubin.image, "other", "unknown kernel 'other': the only one is 'twice'"),
        (b"nothing", "twice", "the machine code is not a cubin: it is not an ELF file"),
    ):
        assert refusal(InputError, launch, source, kernel=kernel) == message


def test_machine_code_without_line_information_has_no_lines():
    execution = twice(options=())
    assert execution.lines == {}
    assert execution.counters == twice().counters


def test_a_sparse_product_is_refused_with_the_line_of_the_kernel():
    source = """__device__ unsigned sparse(unsigned a, unsigned b) {
        unsigned c = 0, d = 0;
        asm("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
            "{%0,%1},{%2,%3},{%4,%5},{%6,%7},%8,0x0;"
            : "=r"(c), "=r"(d) : "r"(a), "r"(b), "r"(a), "r"(b), "r"(c), "r"(d), "r"(a));
        return c + d;
    }
    __global__ void k(unsigned *x) {
        x[threadIdx.x] = sparse(x[0], x[1]);
    }"""
    refused = (
        r"HMMA\.SP.* at 0x.* \(kernel\.cu, line 9, which calls kernel\.cu, line \d\): sparse "
        r"matrices \(mma\.sp\) are not simulated: multiply without \.sp, or run it on a GPU$"
    )
    with pytest.raises(UnsupportedError, match=refused):
        launch(source, np.zeros(32, np.uint32), block=32)


@pytest.mark.parametrize("register", ["%envreg3", "%nsmid"])
def test_a_word_that_only_a_driver_knows_is_refused(register):
    source = f"""__global__ void k(unsigned *x) {{
        asm("mov.u32 %0, %{register};" : "=r"(x[0]));
    }}"""
    with pytest.raises(
        UnsupportedError, match=r"c\[0x0\].* \(kernel\.cu, line \d\): .* of the driver"
    ):
        launch(source, np.zeros(1, np.uint32))


@pytest.mark.parametrize("arch", usual("sm_75", "sm_86", "sm_90"))
def test_sizes_of_shared_memory_are_known(arch):
    source = """__global__ void k(unsigned *x) {
        __shared__ float tile[8];
        tile[threadIdx.x] = threadIdx.x;
        asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(x[0]));
        asm("mov.u32 %0, %%total_smem_size;" : "=r"(x[1]));
        x[2] = tile[threadIdx.x ^ 1];
    }"""
    x = np.zeros(3, np.uint32)
    (found,) = launch(source, x, block=8, arch=arch, dynamic_shared_bytes=48).outputs
    assert found[:2].tolist() == [48, 80]


@pytest.mark.parametrize("arch", usual("sm_80", "sm_89", "sm_90", "sm_120"))
def test_accesses_with_a_hint_for_caches_are_accesses(arch):
    source = """__global__ void k(int *x) {
        unsigned long long policy;
        int old;
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
        asm volatile("ld.global.L2::cache_hint.b32 %0, [%1], %2;"
            : "=r"(old) : "l"(x + threadIdx.x), "l"(policy));
        asm volatile("st.global.L2::cache_hint.b32 [%0], %1, %2;"
            :: "l"(x + threadIdx.x), "r"(old + 1), "l"(policy));
        asm volatile("atom.global.add.L2::cache_hint.s32 %0, [%1], 5, %2;"
            : "=r"(old) : "l"(x + threadIdx.x), "l"(policy));
        x[32 + threadIdx.x] = old;
    }"""
    x = np.arange(64, dtype=np.int32)
    (found,) = launch(source, x, block=32, arch=arch).outputs
    assert found.tolist() == [*range(6, 38), *range(1, 33)]


def test_a_constant_beyond_its_bank_is_refused():
    source = """__constant__ int weights[4] = {1, 2, 3, 4};
    __global__ void k(int *x, int i) { x[0] = weights[%s]; }"""
    x = np.zeros(1, np.int32)
    assert "line 2): it reads beyond the 16 bytes of its con" in refusal(
        UnsupportedError, launch, source % "5", x, np.int32(0)
    )
    assert "constant read of 4 bytes out of bounds at 0x14: " in refusal(
        LaunchError, launch, source % "i", x, np.int32(5)
    )


# --- what a kernel does wrong -------------------------------------------------------------------

# The oldest and the newest; the other tests here are of two in between.
ARCHITECTURES = (
    "sm_75",
    "sm_120",
    *(exhaustive(arch) for arch in ("sm_86", "sm_90")),
)


def fault(source, *arguments, grid=1, block=64, arch="sm_90"):
    """Message for a kernel that does something wrong."""
    return refusal(
        LaunchError,
        launch,
        source,
        *arguments,
        grid=grid,
        block=block,
        arch=arch,
        max_instructions=10**6,
    )


SHARED = """__global__ void k(float *x, int n) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = %s;
}"""
# Sources, arguments and launches, with what is said, in order.
FAULTS = {
    "beyond the end of a buffer": (
        """__global__ void scale(const float *in, float *out) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            out[i] = 2 * in[i];
        }""",
        (floats(200), floats(10, 10)),
        {"grid": (1, 1, 3), "block": 128},
        "scale: global write of 4 bytes out of bounds at 0x7f",
        ": right after the end of argument 1 `out`, float32[10,10] (400 bytes at 0x7f",
        "; block (0, 0, 0), thread (100, 0, 0), kernel.cu, line 3: STG",
    ),
    "misaligned": (
        "__global__ void k(float *x, int n) { *(double *)(x + n) = 1; }",
        (floats(8), np.int32(1)),
        {},
        "k: misaligned global write of 8 bytes at 0x7f",
        " (element 1 of argument 0 `x`, float32[8]): it is not a multiple of 8; ",
        "; block (0, 0, 0), thread (0, 0, 0), kernel.cu, ",
    ),
    "shared memory": (
        SHARED % "tile[threadIdx.x + n]",
        (floats(64), np.int32(4)),
        {},
        "k: shared read of 4 bytes out of bounds at byte 256: the block has 256 bytes; block ",
        "(0, 0, 0), thread (60, 0, 0), kernel.cu, line 5: LDS",  # which reads element 64
    ),
    "before shared memory": (
        SHARED % "tile[n - 2]",
        (floats(64), np.int32(0)),
        {},
        "k: shared read of 4 bytes out of bounds",
    ),
    "misaligned shared memory": (
        SHARED % "*(double *)(tile + n + threadIdx.x)",
        (floats(64), np.int32(0)),
        {},
        "k: misaligned shared read of 8 bytes at byte 4: it is not a multiple",
        "thread (1, 0, 0)",
    ),
    "local memory": (
        """__global__ void k(float *x, int n) {
            float v[40];
            for (int i = 0; i < 40; i++) v[i] = x[i];
            for (int i = 0; i < 4; i++) v[i * n % 40] += 1.0f;
            x[n] = v[n];
        }""",
        (floats(64), np.int32(10**6)),
        {},
        "k: local read of 4 bytes out of bounds at 0x",
        "kernel.cu, line 5: LDL",
    ),
    "a deadlock": (
        """__global__ void k(float *x, int n) {
            if (threadIdx.x < n)
                asm volatile("bar.sync 1, 128;");
            x[threadIdx.x] = 1;
        }""",
        (floats(128), np.int32(32)),
        {"grid": 2, "block": 128},
        "k: deadlock: 32 of the 128 threads of block (0, 0, 0) wait at the barrier and the others "
        "never arrive: kernel.cu, line 3: ",
        "BAR.SYNC",
    ),
    "an endless loop around a barrier": (
        """__global__ void k(volatile float *x) {
            while (x[0] == 0) __syncthreads();
            x[1] = 3;
        }""",
        (floats(3),),
        {},
        "k did not end within its instruction limit",
    ),
    "across the end": (
        "__global__ void k(double *x) { x[12] = 1; }",
        (floats(25).view(np.uint8),),
        {},
        "k: global write of 8 bytes out of bounds",
        ": across the end of argument 0 `x`, uint8[100] (100 bytes at 0x",
    ),
    "a function of the system": (
        """__global__ void k(float *x, int n) {
            float *p = (float *)__nv_aligned_device_malloc(n, 64);
            if (p) *p = 1;
            x[0] = p ? *p : 0;
        }""",
        (floats(1), np.int32(4)),
        {"block": 1},
        "k called a system function that is not simulated (__cuda_syscall_aligned_malloc); "
        "block (0, 0, 0), thread (0, 0, 0), ",
    ),
    "one block of many": (
        "__global__ void k(float *x) { if (blockIdx.x == 9876) x[7] = 1; }",
        (floats(7),),
        {"grid": 10_000},
        "k: global write of 4 bytes out of bounds",
        "; block (9876, 0, 0), thread (0, 0, 0), ",
    ),
}


every_architecture = pytest.mark.parametrize("arch", ARCHITECTURES)


@every_architecture
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_place(name, arch):
    source, arguments, launch, first, *others = FAULTS[name]
    said = fault(source, *arguments, **launch, arch=arch)
    assert said.startswith(first)
    assert all(other in said for other in others), said


@pytest.mark.parametrize(
    ("index", "where"),
    [
        (25, "right after the end of argument 0 `x`, float32[25] (100 bytes at 0x"),
        (125, "400 bytes after the end of argument 0 `x`, float32[25] (100 bytes at 0x"),
        (-2, "8 bytes before argument 0 `x`, float32[25] (100 bytes at 0x"),
    ],
)
def test_the_distance_to_the_nearest_buffer_is_told(index, where):
    said = fault("__global__ void k(float *x, int i) { x[i] = 1; }", floats(25), np.int32(index))
    assert f": {where}" in said


@pytest.mark.parametrize("index", [20_000, 2**30, -(2**20), -(2**31)])
def test_no_index_of_32_bits_reaches_another_buffer(index):
    source = "__global__ void k(float *a, float *b, float *c, int i) { c[0] = b[i]; }"
    said = fault(source, floats(2**16), floats(8), floats(2**20), np.int32(index))
    assert "argument 1 `b`, float32[8] (32 bytes at 0x" in said


def test_an_empty_buffer_and_a_null_pointer_are_out_of_bounds():
    source = "__global__ void k(float *x) { x[0] = 1; }"
    assert "right after the end of argument 0 `x`, float32[0] (0 bytes at" in fault(
        source, floats(0)
    )
    source = "__global__ void k(float **x) { x[0][3] = 1; }"
    said = fault(source, np.zeros(1, np.uint64))
    assert "global write of 4 bytes out of bounds at 0xc: a null pointer; block" in said
    source = "__global__ void k(long long a) { *(float *)a = 1; }"
    assert "out of bounds at 0x100000: the kernel was given no buffer" in fault(
        source, np.int64(2**20)
    )


def test_variables_and_constants_are_memory_with_a_name_too():
    source = """__device__ float table[16];
    __constant__ float weights[16] = {1, 2, 3};
    __global__ void k(float *x, int n) {
        float *p = n < 0 ? (float *)(void *)weights : table;
        p[threadIdx.x + n] = weights[threadIdx.x];
        x[threadIdx.x] = table[threadIdx.x];
    }"""
    said = fault(source, floats(8), np.int32(10), block=8)
    assert "write of 4 bytes out of bounds at" in said
    assert ": right after the end of variable `table` (64 bytes at 0x" in said
    assert "; block (0, 0, 0), thread (6, 0, 0), " in said  # 6 + 10 = 16
    said = fault(source.replace("+ n]", "- n - 1]"), floats(8), np.int32(-1), block=8)
    assert "global write of 4 bytes at 0x" in said
    assert ", which is read-only; block (0, 0, 0), thread (0, 0, 0), kernel.cu, line 5: " in said
    arguments = [floats(8), np.int32(0)]
    (output,) = launch(source, *arguments, block=8).outputs
    assert output.tolist() == [1, 2, 3, 0, 0, 0, 0, 0]


def test_dynamic_shared_memory_counts():
    source = """extern __shared__ float tile[];
    __global__ void k(float *x) { tile[threadIdx.x] = 1; x[0] = tile[0]; }"""
    launch(source, floats(1), block=64, dynamic_shared_bytes=256)
    assert "byte 248: the block has 248 bytes" in refusal(
        LaunchError, launch, source, floats(1), block=64, dynamic_shared_bytes=248
    )


@pytest.mark.parametrize("index", [-1, -2, 8, 9])
def test_a_local_array_without_neighbours_has_bounds_on_both_sides(index):
    source = """__global__ void k(int *x, int i) {
        int v[8];
        for (int j = 0; j < 8; j++) v[j] = j;
        v[i] = 1;
        x[0] = v[(i + 1) & 7];
    }"""
    said = fault(source, np.zeros(8, np.int32), np.int32(index))
    assert said.startswith("k: local write of 4 bytes out of bounds at 0x")
    assert ": the thread has 32 bytes; block (0, 0, 0), thread (0, 0, 0), kernel.cu, line 4" in said


@every_architecture
def test_calls_of_printf_in_functions_and_loops(arch):
    source = """#include <cstdio>
    __device__ __noinline__ void say(int n) { printf("also %d\\n", n); }
    __global__ void k(float *x, int n) {
        for (int i = 0; i < 3; i++) {
            if (n > 0 && threadIdx.x % 3 == i) { printf("%d: %f\\n", i, x[0]); say(i); }
            x[threadIdx.x] += i;
        }
    }"""
    execution = launch(source, floats(40), np.int32(3), block=40, arch=arch)
    lines = execution.printed.splitlines()
    assert len(lines) == 80  # two of each thread
    of_two = [line for line in lines if line.startswith("2: ")]
    assert len(of_two) == lines.count("also 2") == 13  # of threads 2, 5, ... 38
    assert set(execution.outputs[0].tolist()) == {3.0}  # 0 + 1 + 2
    assert launch(source, floats(40), np.int32(0), block=40, arch=arch).notes == ()


@every_architecture
def test_reads_of_shared_memory_that_nobody_wrote_are_a_note(arch):
    source = """__global__ void k(float *x, int n) {
        __shared__ float tile[64];
        if (threadIdx.x < n) tile[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = tile[threadIdx.x];
    }"""

    def launched(n, grid=3):
        return launch(source, floats(64), np.int32(n), grid=grid, block=64, arch=arch)

    assert launched(64).notes == ()
    execution = launched(33)
    (note,) = execution.notes
    # threads 33 to 63 of three blocks
    assert note.startswith(
        "shared memory was read 93 times where no thread had written, first 4 bytes at byte 132; "
        "block (0, 0, 0), thread (33, 0, 0), kernel.cu, line 5: LDS"
    )
    assert np.isnan(execution.outputs[0][40])  # zeros would flatter the kernel
    (note,) = launched(63, grid=1).notes
    assert note.startswith("shared memory was read once where")


def test_code_without_lines_says_how_to_get_them():
    with pytest.raises(LaunchError, match=r"STG.*\(compile with -lineinfo for the source line\)$"):
        launch("__global__ void k(float *x) { x[1] = 1; }", floats(1), options=())


# --- compiled together ------------------------------------------------------------------------

ALONE = ("#include", "asm", "%s", "__device__", "__constant__", "template")


def texts(arch):
    """The sources above that an architecture's tests take as they are, if they can be joined.

    They are constants of the tests' functions, or of FAULTS. Others are compiled by themselves.
    """
    tests = [x for name, x in globals().items() if name.startswith("test_")]
    codes = [x.__code__ for x in tests if arch == "sm_90" or "arch" in x.__code__.co_varnames]
    found = dict.fromkeys(x for code in codes for x in code.co_consts if isinstance(x, str))
    found |= dict.fromkeys(source for source, *_ in FAULTS.values())
    whole = [x for x in found if x.count("__global__") == 1 and x.rstrip().endswith("}")]
    return [x for x in whole if not any(y in x for y in ALONE)]


@cache
def joined(arch):
    parts = [
        Part(
            name="kernel.cu",
            text=re.sub(r'(extern "C" )?__global__', 'extern "C" __global__', text),
            kernel=kernel_names(text)[0],
        )
        for text in texts(arch)
    ]
    return dict(zip(texts(arch), compiled_together(parts, arch), strict=True))


@pytest.fixture(autouse=True)
def one_compilation(monkeypatch):
    """Compiles the sources above as one: a compilation and a disassembly take half a second."""

    def compiled(source, *, arch, options, defines, **settings):
        plain = arch in ("sm_75", "sm_90", "sm_120") and not defines and options == ("-lineinfo",)
        if plain and source in texts(arch):
            return joined(arch)[source]
        return compile_cubin(source, arch=arch, options=options, defines=defines, **settings)

    monkeypatch.setattr("toolkit.machine_code.kernel_source.compile_cubin", compiled)


def test_more_blocks_than_can_be_told_apart_are_refused():
    said = refused(grid=2**24 + 1, blocks="representative")
    assert said == (
        "twice: 16,777,217 blocks exceed the limit of 16,777,216: launch fewer "
        "blocks, or execute a number of them, such as 100 (--blocks 100)"
    )


TRANSPOSE = """extern "C" __global__ void transpose(float *out, const float *in) {
    __shared__ float tile[16][17];
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * 512 + x];
    __syncthreads();
    if (blockIdx.x) out[x * 512 + y] = tile[threadIdx.y][threadIdx.x]; }"""


@pytest.mark.parametrize("blocks", ["all", "representative", 40])
def test_each_access_has_the_lanes_of_its_first_request(blocks):
    arrays = [np.zeros((512, 512), np.float32) for _ in range(2)]
    found = simulate(
        TRANSPOSE,
        grid=(32, 32),
        block=(16, 16),
        arguments=arrays,
        blocks=blocks,
        arch="sm_90",
        predict=False,
    )
    by_action = {(one.space, one.action): one for one in found.memory}
    load, store = by_action["global", "load"], by_action["global", "store"]
    assert load.first.buffer == "argument 1 `in`, float32[512,512]"
    # a warp has two rows of 16 threads
    assert load.first.lanes == tuple(4 * (512 * y + x) for y in range(2) for x in range(16))
    assert (load.first.block, load.first.k, load.first.row_floats) == (0, None, None)
    assert by_action["shared", "store"].first.lanes[16] == 4 * 17
    # block 0 stores nothing: the request is of another one
    x, y = store.first.block % 32, store.first.block // 32
    assert x
    assert store.first.lanes == tuple(
        4 * (512 * (16 * x + column) + 16 * y + row) for row in range(2) for column in range(16)
    )
    if blocks != 40:  # then they are estimates
        requests = 31 * 32 * 8
        assert (store.requests, store.sectors, store.ideal) == (
            requests,
            16 * requests,
            4 * requests,
        )
