"""Plans by observation, against the execution of all blocks."""

import numpy as np
import pytest

from analysis.errors import LaunchError
from analysis.records.counters import MODELLED
from toolkit import simulate
from toolkit.execution import executed

CLOSE = 0.01  # relative, of modelled traffic; times in the guide's bars: 0.04 at most
SOURCE = """
extern "C" __global__ void transpose(float *out, const float *in, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
    for (int r = threadIdx.y; r < 32; r += 8) tile[r][threadIdx.x] = in[(y + r) * n + x];
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8)
        out[(blockIdx.x * 32 + r) * n + y + threadIdx.x] = tile[threadIdx.x][r];
}
extern "C" __global__ void edges(float *out, const float *in, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    in += y * n + x;
    out[y * n + x] = in[-1] + in[1] + in[-n] + in[n];
}
extern "C" __global__ void triangle(float *out, const float *in, int n) {
    if (blockIdx.x > blockIdx.y) return;
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[y * n + x] = in[y * n + x];
}
extern "C" __global__ void stride(float *out, const float *in, int n) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) out[i] = 2 * in[i];
}
extern "C" __global__ void gather(float *out, const float *in, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] = in[(int)(in[i] * 1e6f) % n];
}
extern "C" __global__ void swizzled(float *out, const float *in, int n) {
    int i = (blockIdx.x ^ 5) * 256 + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" __global__ void turned(float *out, const float *in, int n) {
    int i = blockIdx.x * 37 % gridDim.x * 256 + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" __global__ void odd_rows(float *out, const float *in, int n) {
    for (int i = threadIdx.x; i < n; i += 32) out[blockIdx.x * n + i] = in[blockIdx.x * n + i];
}
extern "C" __global__ void odd_planes(float *out, const float *in, int n) {
    int i = (blockIdx.z * 63 + blockIdx.y) * 40 + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" __global__ void rare(float *out, const float *in, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = in[i];
    if (blockIdx.x % 7 == 3) atomicAdd(&out[i], 1.0f);
}
extern "C" __global__ void ticket(int *out, const float *in, int n) {
    if (threadIdx.x == 0 && atomicAdd(out, 1) == gridDim.x - 1) out[1] = 7;
}
"""


def launched(kernel, grid, block, n, blocks, **changes):
    rng = np.random.default_rng(5)
    is_plane = isinstance(grid, tuple) and len(grid) == 2
    size = n * n if is_plane else n * grid if kernel == "odd_rows" else n
    data = rng.random(size, dtype=np.float32)
    out = np.zeros(size, np.int32 if kernel == "ticket" else np.float32)
    return simulate(
        SOURCE,
        kernel,
        grid=grid,
        block=block,
        arguments=[out, data, np.int32(n)],
        device="h200",
        blocks=blocks,
        **changes,
    )


REGULAR = {
    "transpose": ((16, 16), (32, 8), 512),
    "edges": ((16, 64), (32, 8), 512),
    "stride": (512, 256, 700_000),
    "triangle": ((64, 64), (32, 8), 2048),
    "swizzled": (512, 256, 512 * 256),
    "odd_rows": (2000, 32, 501),
    "odd_planes": ((1, 63, 120), 40, 63 * 40 * 120),
}


@pytest.mark.parametrize("kernel", REGULAR)
def test_a_few_blocks_count_like_all(kernel):
    launch = REGULAR[kernel]
    everything, few = (launched(kernel, *launch, blocks) for blocks in ("all", "representative"))
    assert few.executed_blocks < everything.executed_blocks / 4, few.basis
    for name, count in everything.counters.items():
        if name in MODELLED:
            assert few.counters[name] == pytest.approx(count, rel=CLOSE, abs=2048), name
        else:
            assert few.counters[name] == count, name
    assert few.predicted.time_s == pytest.approx(everything.predicted.time_s, rel=0.04)
    assert few.predicted.limiter == everything.predicted.limiter


IRREGULAR = {
    "gather": (512, 256, 512 * 256),
    "turned": (512, 256, 512 * 256),
    "rare": (512, 256, 512 * 256),
    "ticket": (512, 32, 512 * 32),
}


@pytest.mark.parametrize("kernel", IRREGULAR)
def test_blocks_that_do_not_stand_for_others_are_all_executed(kernel):
    launch = IRREGULAR[kernel]
    everything, few = (launched(kernel, *launch, blocks) for blocks in ("all", "representative"))
    assert few.executed_blocks == everything.executed_blocks, few.basis
    assert few.basis.startswith(f"{everything.basis}: ")
    assert few.counters == everything.counters
    assert all(map(np.array_equal, few.outputs, everything.outputs))


def test_blocks_whose_addresses_depend_on_data_are_not_divided_into_ever_smaller_classes():
    """Only sectors may differ. Further blocks would show no class whose addresses shift evenly."""
    found = launched("gather", 4096, 256, 4096 * 256, "representative", limit_s=0.0)
    assert found.executed_blocks < 200  # 149 at random, and few others
    assert "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum" in found.estimates
    assert "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum" not in found.estimates


def test_results_do_not_depend_on_the_number_of_workers():
    found = [
        launched("edges", *REGULAR["edges"], "representative", workers=workers)
        for workers in (1, 2, 8)
    ]
    assert found[0].counters == found[1].counters == found[2].counters
    assert len({one.predicted.time_s for one in found if one.predicted}) == 1
    assert len({one.basis for one in found}) == 1


def some_of(data, **settings):
    source = """extern "C" __global__ void some(float *x) {
        int i = blockIdx.x * 256 + threadIdx.x;
        float y = x[i];
        if (y > 0.75f) y = y * y + 1.0f;
        x[i] = y;
    }"""
    return simulate(source, grid=2048, block=256, arguments=[data], **settings, predict=False)


def test_a_guard_that_depends_on_the_data_is_estimated():
    data = np.random.default_rng(7).random(2048 * 256, dtype=np.float32)
    everything, few = some_of(data), some_of(data, blocks="representative")
    assert few.executed_blocks < 200
    assert "149 random ones among them differ" in few.basis
    # requests, sectors and warp instructions do not depend on the guard: they are proved
    assert few.estimates
    assert all("pred_on" in name for name in few.estimates)
    assert not few.uncertainty  # the intervals are narrow
    for name, count in everything.counters.items():
        low, high = few.estimates.get(name, (count, count))
        assert low <= count <= high, name
        assert name in few.estimates or few.counters[name] == count, name


def test_another_seed_draws_other_blocks():
    data = np.random.default_rng(7).random(2048 * 256, dtype=np.float32)
    first, again, other = (some_of(data, blocks="representative", seed=s) for s in (1, 1, 2))
    assert first.counters == again.counters
    assert first.counters != other.counters


def test_data_that_no_random_block_shows_is_said_to_be_unseen():
    data = np.zeros(2048 * 256, np.float32)
    data[777 * 256] = 1.0  # block 777 alone differs
    few = some_of(data, blocks="representative")
    assert (
        "all 149 random ones among them agree: at most 2 % of 2,048 differ (95 % confidence)"
        in few.basis
    )
    assert few.unseen_share == pytest.approx(1 - 0.05 ** (1 / 149))
    everything = some_of(data)
    unequal = {name for name, n in everything.counters.items() if few.counters[name] != n}
    assert unequal <= few.estimates.keys()


def test_a_plan_with_too_many_blocks_is_given_up(monkeypatch):
    monkeypatch.setattr(executed, "MOST_EXECUTED", 5)
    few = launched("edges", *REGULAR["edges"], "representative")
    assert few.executed_blocks == 16 * 64
    assert few.basis == "all 1,024 blocks executed: they form too many classes"


WIDE = """extern "C" __global__ void wide(float *x) {
    int b = blockIdx.x;
    float s = x[b * 64 + threadIdx.x];
    if (b % 100 == 17) for (int i = 0; i < 2000; i++) s = s * 1.0001f + 1.f;
    x[b * 64 + threadIdx.x] = s * 2.f;
}"""


def wide(**settings):
    data = np.ones(4096 * 64, np.float32)
    return simulate(WIDE, grid=4096, block=64, arguments=[data], device="h200", **settings)


def test_all_blocks_are_executed_where_estimates_are_wide_and_that_is_quick():
    found = wide(blocks="representative")
    assert found.executed_blocks == 4096
    assert not found.estimates
    assert not found.uncertainty


def test_the_first_line_says_that_counters_are_estimates():
    found = wide(blocks="representative", limit_s=0)
    assert found.executed_blocks < 1024
    first = found.verdict.splitlines()[0]
    assert f"Counters are estimates from {found.executed_blocks} of 4,096 blocks" in first
    low, high = found.estimates["smsp__inst_executed.sum"]
    assert low < wide().counters["smsp__inst_executed.sum"] < high


def test_more_random_blocks_are_executed_where_149_leave_a_wide_interval():
    found = wide(blocks="representative", limit_s=0)
    assert found.executed_blocks > 2 * 149


def test_slow_paths_of_a_division_are_named_and_force_nothing():
    source = """extern "C" __global__ void divide(float *x, float d) {
        int i = blockIdx.x * 256 + threadIdx.x;
        x[i] = x[i] / d;
    }"""
    data = np.random.default_rng(3).random(1024 * 256, dtype=np.float32) + 1
    launch = {"grid": 1024, "block": 256, "arguments": [data, np.float32(3)]}
    found = simulate(source, **launch, blocks="representative", predict=False)
    assert "in slow paths of div_rn_noftz_f32_slowpath" in found.basis
    assert "all 32 random ones among them agree" in found.basis
    assert "smsp__inst_executed.sum" in found.estimates
    assert not any("sectors" in name or "requests" in name for name in found.estimates)
    assert not found.uncertainty


def test_a_fault_in_a_block_that_a_comparison_singles_out_is_found():
    source = """extern "C" __global__ void beyond(float *x) {
        int b = blockIdx.x;
        if (b == 1500) x[1 << 30] = 1.f;
        else x[b * 64 + threadIdx.x] = 2.f;
    }"""
    data = np.zeros(4096 * 64, np.float32)
    with pytest.raises(LaunchError, match=r"block \(1500, 0, 0\)"):
        simulate(
            source, grid=4096, block=64, arguments=[data], blocks="representative", predict=False
        )


def test_what_was_not_executed_was_not_checked():
    few = launched("edges", *REGULAR["edges"], "representative")
    left = 16 * 64 - few.executed_blocks
    assert (
        f"{left} blocks not executed, so faults in them are not found (--blocks all)" in few.notes
    )


def test_a_number_of_blocks_gives_estimates():
    few = launched("edges", *REGULAR["edges"], 100)
    everything = launched("edges", *REGULAR["edges"], "all")
    assert few.executed_blocks == 100
    assert few.estimates.keys() == {
        n for n, count in everything.counters.items() if count and n not in MODELLED
    }
    assert few.predicted is None
