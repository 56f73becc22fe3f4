"""Predicted times of any kernel: there where they can be, else one line that says why not."""

import shutil
import sys
from functools import cache
from importlib import import_module
from math import fsum

import numpy as np
import pytest

import toolkit.execution.launch_time
import toolkit.execution.prediction_cache
import toolkit.execution.replay
import toolkit.execution.replayed_streams
import toolkit.execution.simulator
from analysis.devices import find_device
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.l2_state import L2State
from analysis.sm import Streams
from analysis.timing.predict import predict
from analysis.timing.predicted import Effect, Resource
from tests.cubins import cubin_of
from tests.processes import said
from tests.sampling import exhaustive
from toolkit.execution.prediction_cache import model_digest
from toolkit.execution.replay import spread_blocks
from toolkit.execution.simulate import simulate
from toolkit.machine_code.disassemble import disassemble
from toolkit.machine_code.kernel import Kernel
from validation import ROOT

COPY = """extern "C" __global__ void copy(float *out, const float *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}"""
AXPY = """extern "C" __global__ void axpy(float *y, const float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] += 2 * x[i];
}"""
OTHERS = """extern "C" __global__ void pick(float *out, const int *apart) {
    __shared__ float4 tile[128];
    tile[threadIdx.x] = make_float4(threadIdx.x, 0, 0, 0);
    __syncthreads();
    const float4 x = tile[threadIdx.x * apart[blockIdx.x]];
    out[blockIdx.x * blockDim.x + threadIdx.x] = x.x + x.y + x.z + x.w;
}
extern "C" __global__ void work(float *out, int every) {
    const int rounds = every == 1 ? 190 : blockIdx.x % 10 ? 100 : 1000;
    float x = threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < rounds; ++k) x = x * x + 1;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
extern "C" __global__ void sines(float *out, const float *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    for (int k = 0; k < 256; ++k) x = __sinf(x);
    out[i] = x;
}
extern "C" __global__ void tickets(unsigned *next, unsigned *of_block) {
    if (threadIdx.x == 0) of_block[blockIdx.x] = atomicAdd(next, 1u);
}
extern "C" __global__ void chain(unsigned *done, unsigned *out) {
    if (threadIdx.x) return;
    while (atomicAdd(done, 0u) != blockIdx.x) {}
    out[blockIdx.x] = blockIdx.x;
    atomicAdd(done, 1u);
}
extern "C" __global__ void alone(unsigned *done, unsigned *out) {
    if (threadIdx.x) return;
    while (atomicAdd(done, 0u) != 0u) {}
    out[blockIdx.x] = blockIdx.x;
    atomicAdd(done, 1u);
}
extern "C" __global__ void next(unsigned *at, unsigned *out) {
    if (threadIdx.x) return;
    atomicExch(blockIdx.x == 0 ? at : at + 1, 0u);
    out[atomicAdd(at, 1u)] = 1;
}
extern "C" __global__ void weigh(float *out, const float *weight) {
    __shared__ float tile[128];
    tile[threadIdx.x] = out[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 8; ++k) sum += weight[k] * tile[threadIdx.x + k & 127];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
BLOCKS, THREADS = 600, 128


@cache
def image():
    """All of them for an H200: a compiler and a disassembler take as long for one."""
    source = f"{COPY}\n{AXPY}\n{OTHERS}"
    return cubin_of(source, "copy").image


def code(kernel):
    return Kernel.from_image(image(), kernel)


@pytest.fixture(autouse=True)
def predictions_made_anew(monkeypatch):
    """No prediction is taken from the cache, nor kept there; machine code is."""
    monkeypatch.setattr(toolkit.execution.prediction_cache, "cached", lambda name: None)
    monkeypatch.setattr(toolkit.execution.prediction_cache, "keep", lambda name, content: None)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """A cache that holds predictions, too."""
    monkeypatch.undo()
    monkeypatch.setenv("GEMM_LADDER_CACHE", str(tmp_path))
    return tmp_path


def launched(source, *, grid=BLOCKS, device="h200", **how):
    arrays = [np.arange(grid * THREADS, dtype=np.float32) for _ in range(2)]
    how = {"block": THREADS, "arguments": arrays} | how
    return simulate(source, grid=grid, device=device, **how)


def time_of(execution):
    assert execution.predicted is not None, execution.prediction_basis
    return execution.predicted


def reason(execution):
    assert execution.predicted is None
    assert "\n" not in execution.prediction_basis
    return execution.prediction_basis.removeprefix("not predicted: ")


STRAIGHT = """
extern "C" __global__ void straight(float *x) {
    float a[4] = {x[0], x[1], x[2], x[3]}, b = x[4];
    #pragma unroll
    for (int i = 0; i < COUNT; i++) a[i % 4] = a[i % 4] * b + b;
    x[threadIdx.x] = a[0] + a[1] + a[2] + a[3];
}"""


# --- where there is a time ----------------------------------------------------------------------


def test_a_launch_has_a_time_a_limiter_and_bounds_below_the_time():
    found = time_of(launched(code("axpy")))
    bounds = {bound.name: bound.time_s for bound in found.bounds}
    assert found.limiter == max(bounds, key=lambda name: bounds[name])
    assert max(bounds.values()) <= found.time_s
    assert found.flop_per_s == pytest.approx(2 * BLOCKS * THREADS / found.time_s)  # one FFMA each
    assert fsum(cost.time_s for cost in found.costs) == pytest.approx(found.time_s)
    assert fsum(line.time_s for line in found.lines) == pytest.approx(found.time_s)
    assert found.constants == "sm_90, measured"


def test_a_launch_that_follows_one_of_another_kernel_waits_for_its_code():
    arrays = [np.arange(BLOCKS * THREADS, dtype=np.float32) for _ in range(2)]
    geometry = Geometry.of(BLOCKS, THREADS)
    stays, comes = (
        toolkit.execution.simulator.Simulator(
            device=find_device("h200"), blocks="representative", code_stays=code_stays
        ).run(code("axpy"), geometry, arrays)
        for code_stays in (True, False)
    )
    assert Effect.FETCH not in {one.effect for one in time_of(stays).costs}
    assert time_of(comes).time_s > time_of(stays).time_s


def test_the_basis_says_which_blocks_stand_for_all():
    # SM 66 of 132 has blocks 66, 198, 330, 462 and 594 of 600
    assert "; blocks 66, 198, 462, 594 represent all 600" in launched(code("copy")).prediction_basis
    assert "stand" not in launched(code("copy"), grid=1).prediction_basis


def test_blocks_that_are_not_replayed_tell_launches_apart():
    """Their shared accesses say what an average one takes without bank conflicts."""
    out = np.zeros(BLOCKS * THREADS, dtype=np.float32)
    all_apart, few_apart = np.ones(BLOCKS, dtype=np.int32), np.zeros(BLOCKS, dtype=np.int32)
    few_apart[spread_blocks(range(BLOCKS), 132).blocks] = 1
    first, second = (
        time_of(launched(code("pick"), arguments=[out, apart])) for apart in (all_apart, few_apart)
    )
    assert first.time_s == second.time_s
    assert first.costs != second.costs


def test_without_flop_there_is_no_rate_and_no_time_of_fp32():
    found = time_of(launched(code("copy")))
    assert found.flop_per_s == 0
    assert Effect.FP32_PIPE not in {cost.effect for cost in found.costs}
    assert fsum(cost.time_s for cost in found.costs) == pytest.approx(found.time_s)


def test_a_launch_that_moves_and_computes_nothing_has_a_time():
    nothing = 'extern "C" __global__ void nothing(float *, const float *) {}'
    found = time_of(launched(nothing, grid=1))
    assert found.flop_per_s == 0
    assert found.time_s >= found.launch_s


def test_stores_take_bandwidth_of_dram():
    fill = 'extern "C" __global__ void fill(float4 *x) { x[blockIdx.x * 256 + threadIdx.x] = {}; }'
    x = np.ones(1 << 23, dtype=np.float32)  # 34 MB, of which L2 keeps 6
    found = time_of(
        simulate(fill, grid=x.size // 1024, block=256, arguments=[x], device="rtx-3090")
    )
    device = find_device("rtx-3090")
    assert found.limiter == "DRAM"
    assert found.time_s > x.nbytes / device.dram_bytes_per_s


def test_a_launch_takes_as_long_as_the_sm_that_ends_last():
    """Every tenth block has ten times the work: such a block starts near the end."""
    out = np.zeros(6000 * THREADS, dtype=np.float32)
    times = [
        time_of(launched(code("work"), grid=6000, arguments=[out, np.int32(every)])).time_s
        for every in (1, 10)
    ]
    # medians on an H200; blocks of the mean work are the first of them
    assert times == [pytest.approx(23.7e-6, rel=0.15), pytest.approx(36.6e-6, rel=0.15)]


def test_outputs_and_counters_are_those_of_the_launch_alone():
    """Blocks are executed once more: the tickets that they draw then are nobody's."""
    arguments = [np.zeros(1, dtype=np.uint32), np.zeros(BLOCKS, dtype=np.uint32)]
    without, with_time = (
        launched(code("tickets"), arguments=arguments, device=device) for device in (None, "h200")
    )
    assert time_of(with_time)
    assert with_time.outputs[0] == BLOCKS
    for one, other in zip(without.outputs, with_time.outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    assert without.counters.items() <= with_time.counters.items()
    assert with_time.instructions == without.instructions
    assert not any(array.any() for array in arguments)


def test_machine_code_compiled_elsewhere_has_a_time():
    assert time_of(launched(image(), kernel="copy"))


def test_machine_code_of_another_architecture_is_told():
    found = launched(COPY, device="rtx-3090", arch="sm_80")
    assert time_of(found).constants == "sm_86, mostly taken over from sm_90"
    assert (
        "; the machine code was compiled for sm_80, the device is sm_86" in found.prediction_basis
    )


def test_the_device_selects_the_architecture():
    found = launched(COPY, device="t4")
    assert found.resources.architecture == "sm_75"
    assert "the machine code was compiled for" not in found.prediction_basis


def test_machine_code_that_does_not_run_on_the_device_is_refused():
    refused = r"^code for sm_90 does not run on the NVIDIA T4 \(sm_75\): compile it for the device"
    with pytest.raises(InputError, match=refused):
        launched(COPY, device="t4", arch="sm_90")
    with pytest.raises(InputError, match=refused):
        launched(code("copy"), device="t4")


def test_the_busiest_other_pipe_is_a_bound():
    assert time_of(launched(code("sines"), grid=2000)).limiter == "special functions"


# --- where there is none ------------------------------------------------------------------------


def test_a_launch_that_is_only_counted_has_no_time():
    found = launched(code("copy"), device=None, predict=False)
    assert found.predicted is None
    assert found.prediction_basis == "not predicted"


def test_a_device_that_has_no_room_for_a_block_is_told():
    source = """extern "C" __global__ void last(float *out, const float *in) {
        extern __shared__ float tile[];
        tile[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] = tile[127 - threadIdx.x];
    }"""
    found = launched(source, grid=1, dynamic_shared_bytes=120_000, device="rtx-3090", arch="sm_80")
    assert "120000 shared bytes per block exceed 101376, the most that" in reason(found)
    assert found.outputs[0][0] == 127


def test_blocks_of_a_cluster_that_execute_more_than_is_kept_are_told(monkeypatch):
    """Other blocks are replayed up to a step (test_assumed_times.py)."""
    monkeypatch.setattr(toolkit.execution.replayed_streams, "MOST_STEPS", 20)
    source = """extern "C" __global__ __cluster_dims__(2) void copy(float *out, const float *in) {
        out[blockIdx.x * blockDim.x + threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    }"""
    assert reason(launched(source)) == "the blocks to replay execute more than 20 warp instructions"


def test_a_block_that_waits_for_others_is_executed_behind_them():
    arguments = [np.zeros(1, dtype=np.uint32), np.zeros(BLOCKS, dtype=np.uint32)]
    found = launched(code("chain"), arguments=arguments)
    assert found.outputs[0] == BLOCKS
    alone = launched(code("alone"), grid=1, arguments=arguments)
    assert found.predicted.time_s < 2 * alone.predicted.time_s  # it asks once


def test_a_block_that_fails_without_those_before_it_is_told():
    arguments = [np.full(2, 2**31, dtype=np.uint32), np.zeros(BLOCKS, dtype=np.uint32)]
    found = launched(code("next"), arguments=arguments)
    assert reason(found).startswith(
        "a block that is executed without the blocks before it stops: next: global write of 4 bytes"
    )
    assert found.outputs[1].all()


def test_a_lack_of_memory_is_told(monkeypatch):
    def without_memory(*_):
        raise MemoryError

    monkeypatch.setattr(toolkit.execution.launch_time, "predict", without_memory)
    assert reason(launched(code("copy"))) == "not enough memory"


def test_an_unknown_device_is_refused():
    with pytest.raises(InputError, match="h200"):
        launched(COPY, device="h2000")


# --- the cache ----------------------------------------------------------------------------------


def test_swapped_entries_of_the_cache_answer_nobody(empty_cache, monkeypatch):
    # what is asked of the compiler and of nvdisasm again has the same answer
    for module, name in (("compile", "_compile"), ("disassemble", "_run")):
        real = getattr(import_module(f"toolkit.machine_code.{module}"), name)
        monkeypatch.setattr(f"toolkit.machine_code.{module}.{name}", cache(real))

    def answers():
        found = []
        for source in (COPY, AXPY):
            execution = launched(source)
            image = execution.cubin.image
            found.append((image, disassemble(image), time_of(execution)))
        return found

    before = answers()
    kinds = {kind: sorted(empty_cache.glob(f"*.{kind}")) for kind in ("cubin", "sass.json", "json")}
    kinds["json"] = [path for path in kinds["json"] if path.name.startswith("prediction-")]
    for first, second in kinds.values():
        aside = empty_cache / "aside"
        first.rename(aside)
        second.rename(first)
        aside.rename(second)
    assert answers() == before


# Stores through pointers that no thread has: generic stores of no known sectors.
GENERIC = """extern "C" __global__ void generic(float *a, float *b, int n) {
    __shared__ float s[64];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float *p = n & 1 ? &s[threadIdx.x & 63] : a + i;
    if (a[i] > 2e30f) p = s;
    *p = i;
    if (b[i] > 1e30f) b[i] = *p;
}"""


def test_generic_stores_that_are_not_modelled_do_not_keep_a_launch_from_having_a_time():
    arrays = [np.zeros(BLOCKS * THREADS, dtype=np.float32) for _ in range(2)]
    assert time_of(launched(GENERIC, arguments=[*arrays, np.int32(2)])).time_s > 0


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the packages, without their native code."""
    root = tmp_path_factory.mktemp("tree")
    for package in ("analysis", "kernels", "reports", "toolkit"):
        ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.xz")
        shutil.copytree(ROOT / package, root / package, ignore=ignored)
    (root / "toolkit/sass/_core.so").write_bytes(b"native code")
    return root


@pytest.mark.parametrize(
    "files",
    [
        ("analysis/timing/predict.py", "analysis/sm/sm.h", "toolkit/sass/_core.so"),
        exhaustive(
            (
                "kernels/ladder.py",
                "toolkit/machine_code/decode.py",
                "toolkit/launch/checks.py",
                "toolkit/rungs/best.py",
                "toolkit/execution/launch_time.py",
                "toolkit/execution/declared.py",
                "toolkit/sass/core/core.h",
            )
        ),
    ],
    ids=len,
)
def test_an_edited_file_of_ours_makes_a_new_prediction(tree, empty_cache, monkeypatch, files):
    made = []

    def counted(work, *how):
        made.append(work)
        return predict(work, *how)

    monkeypatch.setattr(toolkit.execution.launch_time, "predict", counted)
    for edits, file in enumerate(("", *files)):
        if file:
            edited = tree / file
            edited.write_bytes(edited.read_bytes() + b"\n")
        monkeypatch.setattr(toolkit.execution.prediction_cache, "MODEL", model_digest(tree))
        assert time_of(launched(code("copy")))
        assert len(made) == 1 + edits, file
    monkeypatch.setattr(toolkit.execution.prediction_cache, "MODEL", model_digest(tree))
    assert time_of(launched(code("copy")))
    assert len(made) == 1 + edits, "without an edit"


OF_A_LAUNCH = f"""
import numpy as np
from toolkit import simulate
x = np.ones(128, dtype=np.float32)
print(simulate({COPY!r}, grid=1, block=128, arguments=[x, x], device="t4").predicted.time_s)
"""
OF_A_RUNG = """
from toolkit.profiling.profile import profile
(record,) = profile([64], ["tiled"], executor="simulate", device="t4", seed=1).records
print(record.predicted.time_s)
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("file", "program"),
    [("launch_time.py", OF_A_LAUNCH), ("launch_time.py", OF_A_RUNG)],
)
def test_an_edit_changes_the_answer_of_the_next_process(file, program, tmp_path):
    for package in ("analysis", "kernels", "reports", "toolkit"):
        shutil.copytree(ROOT / package, tmp_path / "tree" / package)
    edited, line = tmp_path / "tree/toolkit/execution" / file, "dram_read_bytes="

    def answer():
        return float(said([sys.executable, "-c", program], cwd=tmp_path / "tree"))

    before = answer()
    text = edited.read_text(encoding="utf-8")
    assert line in text
    edited.write_text(text.replace(line, line.replace("=", "=1e9 + ")), encoding="utf-8")
    assert answer() > 1.5 * before  # 1 GB takes 3 ms at the 320 GB/s of a T4
    edited.write_text(text, encoding="utf-8")
    assert answer() == before


def test_a_new_file_and_a_new_name_count_and_the_source_of_a_rung_does_not(tree):
    before = model_digest(tree)
    (tree / "kernels/new.py").touch()
    added = model_digest(tree)
    (tree / "kernels/new.py").rename(tree / "kernels/newer.py")
    assert len({before, added, model_digest(tree)}) == 3
    (tree / "kernels/newer.py").unlink()
    (tree / "kernels/sgemm/99_new.cu").touch()
    (tree / "kernels/sgemm/new.cuh").touch()
    assert model_digest(tree) == before


def test_a_table_that_all_blocks_read_stays_in_l1(monkeypatch):
    with_table = time_of(launched(code("weigh"), grid=4000)).time_s
    monkeypatch.setattr(Streams, "with_common", lambda streams: streams)
    assert with_table < time_of(launched(code("weigh"), grid=4000)).time_s


TABLE_AND_STREAM = r"""
extern "C" __global__ void rows(
    const float4 *table, const float4 *stream, float4 *sums, int steps) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    float4 sum = stream[thread];
    for (int k = 0; k < steps; k++) {
        const float4 row = table[k * blockDim.x + threadIdx.x];
        sum.x += row.x; sum.y += row.y; sum.z += row.z; sum.w += row.w;
    }
    if (sum.x == 1.5f) sums[0] = sum;
}
"""


@pytest.mark.parametrize("steps", [1, 8])
def test_bytes_of_dram_are_waited_for_although_l1_keeps_a_table(steps):
    """Each block reads as many bytes of the table as of its own, or eight times as many.

    Blocks but the first ones of an SM find the table in L1, so that what comes to L2 is their own,
    all of it from DRAM: with a longer table a block waits no less.
    """
    threads = 132 * 16 * 128
    arrays = [np.zeros((n * 128, 4), np.float32) for n in (steps, threads // 128, 1)]
    found = {
        l2: time_of(
            simulate(
                TABLE_AND_STREAM,
                grid=threads // 128,
                block=128,
                arguments=[*arrays, np.int32(steps)],
                device="h200",
                l2=l2,
            )
        )
        for l2 in ("clean", "warm")
    }
    dram = next(one for one in found["clean"].bounds if one.name == Resource.DRAM)
    l2 = next(one for one in found["clean"].bounds if one.name == Resource.L2)
    assert found["clean"].time_s - found["warm"].time_s > 0.3 * dram.time_s
    # 4.3 MB of the stream, and on each SM 2 KiB of each row of the table
    assert l2.time_s < 1.3 * (threads + 132 * 128 * steps) * 16 / 7e12


APPEND = r"""
extern "C" __global__ void appends(unsigned *count, unsigned *list, const int *turns, int nodes) {
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    float x = node;
    for (int k = 0; k < turns[node]; k++) x = x * 0.5f + 1.0f;
    if (x == 7.0f) list[atomicAdd(count, 1)] = node;
}
"""


def test_blocks_that_access_no_memory_take_no_work_from_a_queue():
    """Half of the blocks exit at once; of the others one takes ten times as long."""
    nodes = 132 * 64
    turns = np.full(nodes, 300, np.int32)

    def predicted():
        arguments = [np.zeros(1, np.uint32), np.zeros(nodes, np.uint32), turns, np.int32(nodes)]
        return time_of(launched(APPEND, grid=264, block=64, arguments=arguments)).cycles

    usual = predicted()
    turns[5000] = 3000
    assert predicted() - usual > 2000 * 4  # clocks: two dependent instructions in each turn


QUEUE = r"""
extern "C" __global__ void takes(unsigned *counter, unsigned *done, unsigned items) {
    __shared__ unsigned item;
    while (true) {
        if (threadIdx.x == 0) item = atomicAdd(counter, 1);
        __syncthreads();
        if (item >= items) return;
        atomicAdd(&done[item % 32], threadIdx.x);
        __syncthreads();
    }
}
"""


def test_blocks_that_take_work_from_a_queue_are_replayed_with_their_share(monkeypatch):
    """A few blocks alone take all of it, which may be more than is kept."""
    items = 640
    arguments = [np.zeros(1, np.uint32), np.zeros(32, np.uint32), np.uint32(items)]
    told = launched(QUEUE, arguments=arguments, grid=32, block=64)
    executed = sum(one.executed for one in told.instructions)
    monkeypatch.setattr(toolkit.execution.replayed_streams, "MOST_STEPS", executed // 2)
    found = launched(QUEUE, arguments=arguments, grid=32, block=64)
    assert found.outputs[1].sum() == items * sum(range(64))
    assert time_of(found).time_s == pytest.approx(time_of(told).time_s, rel=0.5)


@pytest.mark.parametrize("are_equal", [True, False])
@pytest.mark.parametrize("do_alone", [True, False])
def test_only_equal_blocks_are_said_to_finish_at_different_times(monkeypatch, are_equal, do_alone):
    """The rule is of blocks that are equal; others finish apart for reasons that are replayed."""
    model = toolkit.execution.replay
    monkeypatch.setattr(model, "blocks_finish_at_different_times", lambda *_, **__: do_alone)
    monkeypatch.setattr(model.Replay, "is_of_equal_blocks", are_equal)
    replay = model.Replay(blocks=[0], busy_blocks=1)
    found = replay.finish_at_different_times(code("copy"), Geometry.of(1, 32))
    assert found == (are_equal and do_alone)


LAST_SUMS = """extern "C" __global__ void last_sums(float *sums, int steps, int first) {
    if (first) atomicAdd(&sums[threadIdx.x], 1.0f);
    float x = threadIdx.x;
    for (int k = 0; k < steps; k++) x = x * 0.5f + 1.0f;
    if (!first || x == 7.0f) atomicAdd(&sums[threadIdx.x], x);
}"""


def test_atomic_operations_at_the_end_of_all_blocks_take_their_time_after_the_rest():
    """A block per SM, whose chains end together; made first, the same operations are hidden."""

    def time_in_queues(first):
        arguments = [np.zeros(256, np.float32), np.int32(3000), np.int32(first)]
        found = simulate(LAST_SUMS, grid=132, block=256, arguments=arguments, device="h200")
        queue = next(one for one in found.predicted.bounds if one.name == Resource.ATOMICS)
        assert queue.time_s > 1e-6
        return found.predicted.time_s / queue.time_s

    assert time_in_queues(0) - time_in_queues(1) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("kib", "l2", "clocks_per_line"),
    [  # code_h200.json and constants_h200.json; a dirty L2: `ntt` of the public launches takes 85
        (64, L2State.WARM, 19),
        (64, L2State.DIRTY, 19),
        (144, L2State.WARM, 47),
        (144, L2State.DIRTY, 47 * (283 + 270) / 283),
    ],
)
def test_code_beyond_its_caches_comes_from_l2_or_dram(kib, l2, clocks_per_line):
    source = STRAIGHT.replace("COUNT", str(kib * 1024 // 16))
    launch = {"grid": 132, "block": 128, "arguments": [np.ones(128, np.float32)]}
    found = simulate(source, **launch, device="h200", l2=l2).predicted
    empty = simulate(STRAIGHT.replace("COUNT", "8"), **launch, device="h200", l2=l2).predicted
    assert found is not None
    assert empty is not None
    per_line = (found.cycles - empty.cycles) / (8 * kib)
    assert per_line == pytest.approx(clocks_per_line, rel=0.05)
