"""Plans by observation, against the execution of all blocks."""

import numpy as np
import pytest

from analysis.records.counters import MODELLED
from toolkit import simulate
from toolkit.execution import observation

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


def test_results_do_not_depend_on_the_number_of_workers():
    found = [
        launched("edges", *REGULAR["edges"], "representative", workers=workers)
        for workers in (1, 2, 8)
    ]
    assert found[0].counters == found[1].counters == found[2].counters
    assert len({one.predicted.time_s for one in found if one.predicted}) == 1
    assert len({one.basis for one in found}) == 1


def test_a_guard_that_depends_on_the_data_is_estimated():
    source = """extern "C" __global__ void some(float *x) {
        int i = blockIdx.x * 256 + threadIdx.x;
        float y = x[i];
        if (y > 0.75f) y = y * y + 1.0f;
        x[i] = y;
    }"""
    data = np.random.default_rng(7).random(2048 * 256, dtype=np.float32)
    settings = {"grid": 2048, "block": 256, "arguments": [data]}
    everything = simulate(source, **settings)
    few = simulate(source, **settings, blocks="representative")
    assert few.executed_blocks < 100
    assert "threads with a true guard are estimated, ±" in few.basis
    percent = float(few.basis.partition("±")[2].partition("%")[0])
    for name, count in everything.counters.items():
        tolerance = 2 * percent / 100 if "pred_on" in name else 0
        assert few.counters[name] == pytest.approx(count, rel=tolerance), name


def test_a_plan_with_too_many_blocks_is_given_up(monkeypatch):
    monkeypatch.setattr(observation, "MOST_EXECUTED", 20)
    few = launched("edges", *REGULAR["edges"], "representative")
    assert few.executed_blocks == 16 * 64
