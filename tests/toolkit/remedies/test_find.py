"""Remedies of kernels with one mistake each: what is offered, what is refused, what is left out."""

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.errors import InputError
from analysis.timing.predicted import ALIKE, IDEAL, Effect
from reports.sections.answer import answer
from tests.refusals import refusal
from tests.toolkit.remedies.launches import (
    ACCIDENTAL,
    ALIASED,
    COLUMNS,
    COPY,
    DEVICE,
    EXACT,
    FEW_BLOCKS,
    FLAT,
    PADDED,
    SMALL_BLOCKS,
    SQUARE,
    TRANSPOSE,
    WEIGHTS,
    N,
    buffers,
)
from toolkit import find_remedies, simulate
from toolkit.machine_code.source_tree import parsed
from toolkit.remedies.find import remedies_of
from toolkit.remedies.kernel_launch import KernelLaunch


def remedies(source, *arguments, device=DEVICE, **launch):
    return find_remedies(
        source, arguments=[*buffers(), *arguments], device=device, seed=1, **launch
    )


def test_rows_are_padded_or_columns_exchanged():
    first, second = remedies(TRANSPOSE, np.int32(N), **SQUARE)
    assert (first.number, first.effect, first.lines) == (1, Effect.CONFLICTS, (2,))
    assert first.title == "tile[32][32 + 1], pads each row"
    assert "+    __shared__ float tile[32][32 + 1];\n" in first.diff
    assert first.compared == "1,024 of 1,024 blocks compared: equal bit for bit"
    assert first.saved_s > 0.2 * first.before_s
    assert (second.lines, second.instead_of) == ((6, 11), (1,))
    assert second.title == "column ^ row in each access to tile"
    assert "tile[threadIdx.x][(threadIdx.y + j) ^ (threadIdx.x)];" in second.diff


def test_host_code_says_what_is_launched():
    host = f"""
int main() {{
    float *in, *out;
    cudaMalloc(&in, {N} * {N} * sizeof(float));
    cudaMalloc(&out, {N} * {N} * sizeof(float));
    transpose<<<dim3({N} / 32, {N} / 32), dim3(32, 8)>>>(out, in, {N});
}}"""
    first, *_ = find_remedies(TRANSPOSE + host, device=DEVICE, seed=1)
    assert first.title == "tile[32][32 + 1], pads each row"


@pytest.mark.parametrize("source", [PADDED, COPY])
def test_nothing_is_offered_at_a_roof(source):
    launch = {"grid": (1024,), "block": (256,)} if source is COPY else SQUARE
    arguments = [] if source is COPY else [np.int32(N)]
    made = [one for one in remedies(source, *arguments, **launch) if one.after_s is not None]
    assert made == []


def test_an_edit_that_changes_results_is_refused_with_the_place():
    out, values = buffers()
    device = find_device(DEVICE)
    launch = KernelLaunch(
        text=FLAT,
        name="flat.cu",
        kernel=None,
        grid=(32, 32, 1),
        block=(32, 8, 1),
        arguments=[out, values, np.int32(N)],
        device=device,
        arch=device.sm_arch,
    )
    found = remedies_of(launch, launch.simulated(launch.compiled()))
    assert [one.effect for one in found.found if one.after_s is not None] == []
    (refused,) = found.refused
    # out[0][1] is in[1][0], which `flat` stores at element 32: that is tile[0][32] of padded rows
    assert refused == (
        "tile[32][32 + 1], pads each row: argument 0 `out`, float32[1024,1024] at [0, 1]: "
        f"{values[1, 1]!s} instead of {values[1, 0]!s}"
    )


def test_literals_of_fp64_become_single_with_a_bound():
    one = remedies(ACCIDENTAL, grid=4096, block=256, device="rtx-3090")[0]
    assert one.title == "0.5f, 0.1f, ... instead of FP64 literals"
    assert one.lines == (5,)
    assert one.is_rounding
    assert one.error.startswith("largest relative error ")
    assert one.error.endswith("at most 1.5e-05 is accepted")  # 128 * 2^-23
    assert "x = 0.5f * x + 0.1f * in[i] * x - 0.25f;" in one.diff
    assert one.after_s < 0.5 * one.before_s


def test_literals_that_change_no_bit_need_no_bound():
    one = remedies(EXACT, grid=4096, block=256, device="rtx-3090")[0]
    assert not one.is_rounding
    assert one.compared.endswith("equal bit for bit")


def test_a_loop_over_the_grid_gets_more_blocks():
    first = remedies(FEW_BLOCKS, np.float32(2), np.int32(N * N), grid=32, block=256)[0]
    assert (first.effect, first.lines, first.diff) == (Effect.IDLE_SMS, (), "")
    assert first.arguments == ("--grid", "1056")  # 132 SMs of 8 blocks each
    assert first.compared == "32 of 32 blocks compared: equal bit for bit"


def test_four_neighbours_are_loaded_at_once():
    weights = np.ones(264, np.float32)
    launch = {"grid": 4096, "block": 256}
    (one,) = remedies(WEIGHTS.replace("FIRST", "0"), weights, np.int32(64), **launch)
    assert one.title == "float4 accesses to w, which must be aligned to 16 bytes"
    assert "*reinterpret_cast<const float4 *>(&w[4 * j + 0]);" in one.diff
    assert "sum += w_0[k] * x;" in one.diff


def test_misaligned_neighbours_are_loaded_as_they_are():
    weights = np.ones(264, np.float32)
    launch = {"grid": 4096, "block": 256}
    found = remedies(WEIGHTS.replace("FIRST", "1"), weights, np.int32(64), **launch)
    assert [one for one in found if "float4" in one.title] == []


def test_pointers_that_do_not_overlap_are_restricted():
    coefficients = np.ones(17, np.float32)
    first = remedies(ALIASED, coefficients, np.int32(N * N // 16), grid=256, block=256)[0]
    assert first.title == "__restrict__ on out, in and c, which must not overlap"
    assert "float *__restrict__ out" in first.diff


def test_blocks_of_one_warp_grow():
    first = remedies(SMALL_BLOCKS, grid=N * N // 32, block=32)[0]
    assert first.effect == Effect.BLOCK_START
    assert first.arguments[::2] == ("--block", "--grid")
    size, blocks = map(int, first.arguments[1::2])
    assert size in (128, 256, 512)
    assert size * blocks == N * N
    assert first.compared == "32,768 of 32,768 blocks compared: equal bit for bit"


def test_larger_blocks_are_refused_where_each_block_has_a_result():
    """Half as many blocks leave results out. All are 0, as memory was."""
    source = """#define THREADS 32
__global__ void sums(float *out, const float *in) {
    float v = in[blockIdx.x * THREADS + threadIdx.x] * 0.0f;
    for (int k = 16; k > 0; k /= 2)
        v += __shfl_down_sync(~0u, v, k);
    if (threadIdx.x == 0)
        out[blockIdx.x] = v;
}
"""
    arguments = [np.zeros(1 << 15, np.float32), np.ones(1 << 20, np.float32)]
    found = find_remedies(source, grid=1 << 15, block=32, arguments=arguments, device=DEVICE)
    assert not [one for one in found if one.arguments]


def test_small_blocks_of_a_fixed_size_are_to_have_more_work():
    source = """__global__ void copy(float *out, const float *in, int n) {
    int at = (blockIdx.y * 8 + threadIdx.y) * n + blockIdx.x * 8 + threadIdx.x;
    out[at] = in[at];
}
"""
    (first, *_) = remedies(source, np.int32(N), grid=(N // 8, N // 8), block=(8, 8))
    assert first.effect == Effect.BLOCK_START
    assert first.title.startswith("give each block more work: start blocks of more threads")


def test_axes_of_threads_are_exchanged():
    first = remedies(
        COLUMNS, np.ones((N, N), np.float32), np.int32(N), grid=(16, 16), block=(32, 32)
    )[0]
    assert first.effect == Effect.UNCOALESCED
    assert "row = blockIdx.x * 32 + threadIdx.y, col = blockIdx.y * 32 + threadIdx.x" in first.diff


def test_a_kernel_made_by_a_macro_has_none():
    source = "#define KERNEL __global__ void k(float *x)\nKERNEL { x[threadIdx.x] = 1; }\n"
    assert parsed(source, "k", {}) is None
    out, _ = buffers()
    assert find_remedies(source, grid=1, block=32, arguments=[out], device=DEVICE) == ()


TOTAL = """extern "C" __global__ void total(float *sum, const float *in) {
    atomicAdd(sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
}"""
CHAIN = """extern "C" __global__ void chain(float *out, const float *in) {
    float v = in[threadIdx.x], sum = v;
    for (int k = 0; k < 2048; k++)
        sum = sum * 0.999f + v;
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}"""


def first_advice(source, count, **launch):
    arguments = [np.zeros(count, np.float32), np.ones(count, np.float32)]
    found = find_remedies(source, arguments=arguments, device=DEVICE, seed=1, **launch)
    return next(one for one in found if one.after_s is None)


def test_blocks_of_half_a_warp_are_to_be_filled():
    found = first_advice(CHAIN, 16 * 132 * 64, grid=132 * 64, block=16)
    assert found.effect == Effect.DIVERGENCE
    assert found.title == (
        "use blocks of a multiple of 32 threads: 16 leave 16 of 32 lanes without a thread"
    )


def test_additions_to_one_address_are_to_be_combined_first():
    found = first_advice(TOTAL, 1 << 16, grid=256, block=256)
    assert (found.effect, found.lines) == (Effect.ATOMICS, (2,))
    assert found.title.startswith("combine values in registers or shared memory first")


def test_a_chain_of_operations_is_to_be_divided():
    found = first_advice(CHAIN, 132 * 128, grid=132, block=128)
    assert found.effect == Effect.DEPENDENCES
    assert "several independent operations" in found.title


HOPS = """extern "C" __global__ void hops(float *out, const float *in) {
    __shared__ int next[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) next[k] = (5 * k + (int)in[k]) & 1023;
    __syncthreads();
    int at = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < 512; k++) at = next[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}"""


def test_a_cause_behind_another_one_is_told_by_what_it_costs_then():
    """A loop takes as long as the read in it: to remove either alone saves little."""
    found = first_advice(HOPS, 132 * 128, grid=132, block=128)
    assert found.effect == Effect.SHARED_LATENCY
    assert 0.1 * found.before_s < found.most_s < found.before_s
    assert found.title.startswith("start several reads of shared memory")


def test_waiting_is_no_advice_beside_a_larger_cause():
    source = """extern "C" __global__ void transpose(float *out, const float *in, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}"""
    found = remedies(source, np.int32(N), grid=(32, 32), block=(32, 32))
    assert {one.effect for one in found} == {Effect.UNCOALESCED}


WALK = """extern "C" __global__ void walk(float *out, const float *in, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += in[row * n + k];
    out[row] = sum;
}"""


def test_a_sentence_on_the_largest_cause_comes_before_edits_that_save_less():
    """Smaller blocks help a kernel whose rows should be read by neighbouring threads."""
    launch = KernelLaunch(
        text=WALK,
        name="walk.cu",
        kernel="walk",
        grid=(64, 1, 1),
        block=(256, 1, 1),
        arguments=[np.zeros(1 << 14, np.float32), np.ones(1 << 22, np.float32), np.int32(256)],
        device=find_device(DEVICE),
        arch="sm_90",
        seed=1,
    )
    found = remedies_of(launch, launch.simulated(launch.compiled()))
    first, *others = found.found
    assert (first.number, first.effect, first.after_s) == (1, Effect.UNCOALESCED, None)
    assert first.title.startswith("let neighbouring threads access neighbouring addresses")
    assert [one.number for one in others] == list(range(2, 2 + len(others)))
    made = {one.number: one for one in others if one.after_s is not None}
    assert made
    for number, one in made.items():
        assert one.title == found.edits[number].title
        assert {*one.instead_of, *one.after} <= made.keys() - {number}


@pytest.mark.parametrize(("word", "is_said"), [("unsigned long long", True), ("unsigned", False)])
def test_arithmetic_with_64_bits_is_to_have_32(word, is_said):
    source = f"""typedef {word} Word;
extern "C" __global__ void powers(unsigned *out, const unsigned *in) {{
    Word v = in[threadIdx.x], w = in[blockIdx.x];
    for (int k = 0; k < 512; k++)
        v = v * v + w;
    out[blockIdx.x * blockDim.x + threadIdx.x] = v >> (8 * sizeof v - 32);
}}"""
    arguments = [np.zeros(264 * 256, np.uint32), np.ones(264, np.uint32)]
    found = find_remedies(source, grid=264, block=256, arguments=arguments, device=DEVICE, seed=1)
    wide = [one for one in found if one.title.startswith("use 32-bit integers")]
    assert [one.lines for one in wide] == [(5,)] * is_said


def test_exponentials_are_compiled_without_subnormal_numbers():
    source = """extern "C" __global__ void powers(float *out, const float *in) {
    float x = in[threadIdx.x], sum = 0;
    for (int k = 1; k <= 256; k++) sum += __expf(x * k);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}"""
    arguments = [np.zeros(1056 * 256, np.float32), np.ones(256, np.float32)]
    found = find_remedies(source, grid=1056, block=256, arguments=arguments, device=DEVICE, seed=1)
    first = found[0]
    assert (first.effect, first.lines) == (Effect.SPECIAL_PIPE, (3,))
    assert first.title.startswith("compile with -ftz=true")
    assert first.arguments == ("--option", "-ftz=true")
    assert first.diff == ""
    assert first.saved_s > 0.05 * first.before_s
    assert not any("-use_fast_math" in one.title for one in found)  # it saves no more


@pytest.mark.parametrize(("step", "is_said"), [("k * 0.5f", True), ("v", False)])
def test_conversions_are_to_be_few(step, is_said):
    source = f"""extern "C" __global__ void steps(float *out, const float *in, int n) {{
    float v = in[threadIdx.x], w = v;
    for (int k = 0; k < n; k++)
        v = v * w + {step};
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}}"""
    arguments = [np.zeros(1056 * 256, np.float32), np.ones(256, np.float32), np.int32(512)]
    found = find_remedies(source, grid=1056, block=256, arguments=arguments, device=DEVICE, seed=1)
    said = [one for one in found if one.title.startswith("convert fewer values")]
    assert [one.lines for one in said] == [(4,)] * is_said


COLUMN = """extern "C" __global__ void column(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; k++) sum += in[k * 8192 + i];
    out[i] = sum;
}"""


def test_loads_one_after_the_other_come_before_idle_sms():
    """The same loads wait for DRAM, L2 and L1: what is saved without all of these counts."""
    launch = KernelLaunch(
        text=COLUMN,
        name="column.cu",
        kernel="column",
        grid=(64, 1, 1),
        block=(128, 1, 1),
        arguments=[np.zeros(8192, np.float32), np.ones(1 << 21, np.float32), np.int32(256)],
        device=find_device(DEVICE),
        arch="sm_90",
        seed=1,
    )
    execution = launch.simulated(launch.compiled())
    costs = {one.effect: one for one in execution.predicted.costs}
    waits = [costs[one] for one in (Effect.DRAM_LATENCY, Effect.L2_LATENCY)]
    (together_s,) = {one.together_s for one in waits}
    idle_s = costs[Effect.IDLE_SMS].alone_s
    assert IDEAL * together_s > idle_s > ALIKE * max(one.alone_s for one in waits)
    assert costs[Effect.IDLE_SMS].together_s == 0
    assert 0.9 * together_s < sum(one.time_s for one in waits) <= together_s * (1 + 1e-9)
    first = remedies_of(launch, execution).found[0]
    assert first.effect in (Effect.DRAM_LATENCY, Effect.L2_LATENCY)
    assert first.title == (
        "start several loads before the first value is used, or have more warps per SM"
    )


def test_more_warps_are_advised_only_where_an_sm_has_room():
    source = """__global__ void add(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}"""
    arguments = [np.zeros(1 << 22, np.float32), np.ones(1 << 22, np.float32), np.int32(1 << 22)]
    found = find_remedies(source, grid=1 << 14, block=256, arguments=arguments, device=DEVICE)
    titles = [one.title for one in found]
    assert "start several loads before the first value is used" in titles


TREE = """extern "C" __global__ void tree(float *out, const float *in) {
    __shared__ float part[1024];
    part[threadIdx.x] = in[blockIdx.x * 1024 + threadIdx.x];
    __syncthreads();
    for (int d = 1; d < 1024; d *= 2) {
        if (threadIdx.x % (2 * d) == 0) part[threadIdx.x] += part[threadIdx.x + d];
        __syncthreads();
    }
    if (!threadIdx.x) out[blockIdx.x] = part[0];
}"""


def test_lanes_that_a_guard_leaves_out_diverge():
    """The compiler turns the branch of a short condition into guards: no branch splits a warp."""
    arguments = [np.zeros(4096, np.float32), np.ones(1 << 22, np.float32)]
    found = find_remedies(TREE, grid=4096, block=1024, arguments=arguments, device=DEVICE, seed=1)
    diverged = [one for one in found if one.effect == Effect.DIVERGENCE]
    assert [one.lines for one in diverged] == [(6,)]


@pytest.mark.parametrize(
    ("angle", "told"), [("1e6f * in[i]", True), ("1e6f * in[i] * 0.5", False), ("in[i]", False)]
)
def test_large_angles_are_not_taken_for_literals_of_fp64(angle, told):
    """The slow path of sinf executes FP64, and keeps an array in local memory."""
    source = f"""extern "C" __global__ void wave(float *out, const float *in) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = sinf({angle});
}}"""
    arguments = [np.zeros(1 << 20, np.float32), np.ones(1 << 20, np.float32)]
    found = find_remedies(source, grid=4096, block=256, arguments=arguments, device=DEVICE, seed=1)
    titles = [one.title for one in found if one.after_s is None]
    assert any(one.startswith("reduce the arguments of sinf") for one in titles) == told
    if told:
        assert not any("FP32 literals" in one or "local arrays" in one for one in titles)


def test_literals_of_fp64_in_macros_become_single():
    source = """#define SCALE 0.7
#define UNUSED 0.3
#define SUM (0.2 + 0.1)
extern "C" __global__ void scaled(float *out, const float *in) {
    float v = in[threadIdx.x];
    for (int k = 0; k < 128; k++) v = v * SCALE + in[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}"""
    arguments = [np.zeros(1056 * 256, np.float32), np.ones(256, np.float32)]
    found = find_remedies(source, grid=1056, block=256, arguments=arguments, device=DEVICE, seed=1)
    first = found[0]
    assert (first.effect, first.lines) == (Effect.FP64_PIPE, (1,))
    assert "+#define SCALE 0.7f\n" in first.diff
    assert "0.3f" not in first.diff
    assert "0.2f" not in first.diff
    assert not any(one.title.startswith("use FP32 literals") for one in found)


@pytest.mark.parametrize(("divisor", "is_said"), [("n", True), ("7", False)])
def test_integers_are_to_be_divided_rarely(divisor, is_said):
    source = f"""typedef unsigned U;
extern "C" __global__ void quotients(U *out, const U *in, U n) {{
    U v = in[threadIdx.x];
    for (int k = 0; k < 128; k++)
        v = v / {divisor} + 12345 * k;
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}}"""
    arguments = [np.zeros(1056 * 256, np.uint32), np.ones(256, np.uint32), np.uint32(7)]
    found = find_remedies(source, grid=1056, block=256, arguments=arguments, device=DEVICE, seed=1)
    said = [one for one in found if one.title.startswith("divide fewer integers")]
    assert [one.lines for one in said] == [(5,)] * is_said


def test_integers_that_are_divided_take_the_fp32_pipe_too():
    """Its products are saved as well: the most is more than the other instructions cost."""
    source = """__global__ void sums(float *x) {
    __shared__ float part[256];
    part[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (unsigned k = 1; k < blockDim.x; k *= 2) {
        if (threadIdx.x % (2 * k) == 0) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) x[blockIdx.x * 256] = part[0];
}"""
    text = {True: source, False: source.replace("% (2 * k)", "& (2 * k - 1)")}
    arguments = [np.ones(8448 * 256, np.float32)]
    launch = {"grid": 8448, "block": 256, "arguments": arguments, "device": DEVICE, "seed": 1}
    first, *_ = find_remedies(text[True], **launch)
    assert first.title.startswith("divide fewer integers")
    after = simulate(text[False], **launch).predicted
    assert first.before_s - after.time_s <= first.most_s < first.before_s


INLINED = """__device__ float sum_of(const float *row, int n) {
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += row[k];
    return sum;
}
extern "C" __global__ void walk(float *out, const float *in, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    out[row] =
        sum_of(in + row * n, n);
}"""


@pytest.mark.parametrize(("inner_lines", "line"), [(False, 10), (True, 4)])
def test_verdict_and_remedy_name_the_same_line(inner_lines, line):
    """An inlined access counts for its call, or for its own line, in both."""
    launch = KernelLaunch(
        text=INLINED,
        name="walk.cu",
        kernel="walk",
        grid=(64, 1, 1),
        block=(256, 1, 1),
        arguments=[np.zeros(1 << 14, np.float32), np.ones(1 << 21, np.float32), np.int32(128)],
        device=find_device(DEVICE),
        arch="sm_90",
        seed=1,
    )
    kernel = launch.compiled()
    execution = launch.simulated(kernel.with_inner_lines if inner_lines else kernel)
    found = answer("walk", execution.predicted, execution.instructions, launch.device, "walk.cu")
    remedy = next(
        one for one in remedies_of(launch, execution).found if one.effect == Effect.UNCOALESCED
    )
    assert found.place == ("walk.cu", line)
    assert line in remedy.lines


def test_a_seed_out_of_range_is_refused():
    said = refusal(
        InputError,
        find_remedies,
        COPY,
        grid=1024,
        block=256,
        arguments=buffers(),
        device=DEVICE,
        seed=-1,
    )
    assert said == f"seed -1 is out of range: give 0 to {2**63 - 1}"
