"""Launches whose blocks execute so much that only some of them, or parts of them, are executed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.geometry import Geometry
from toolkit.execution import blocks_alone, executed, observation, replayed_streams, simulator
from toolkit.execution.executed import Executed
from toolkit.execution.simulator import Simulator
from toolkit.launch.launch import Execution
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.accesses import Below, is_recorded

H200 = find_device("h200")
i32, f32 = np.int32, np.float32
SOURCE = """
extern "C" __global__ void iterate(float *x, const int *times) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i];
    for (int k = 0; k < times[i]; k++) a = a * (1.0f - a) * 3.7f;
    x[i] = a;
}
extern "C" __global__ void consume(int *times, float *x) {
    float a = threadIdx.x;
    const int n = times[blockIdx.x];
    times[blockIdx.x] = 0;
    for (int k = 0; k < n; k++) a = a * 1.0001f + 0.5f;
    x[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
extern "C" __global__ void two_phases(float *x, const int *next, int n) {
    int at = threadIdx.x;
    float a = 0;
    for (int k = 0; k < 4 * n; k++) a = a * 0.5f + k;      // two instructions
    for (int k = 0; k < n; k++) at = next[at];             // one load after the other
    x[threadIdx.x] = a + at;
}
extern "C" __global__ void two_phases_apart(float *x, const int *next, int n) {
    int at = threadIdx.x;
    float a = 0;
    for (int k = 0; k < 4 * n; k++) a = a * 0.5f + k;
    __syncthreads();
    for (int k = 0; k < n; k++) at = next[at];
    x[threadIdx.x] = a + at;
}
extern "C" __global__ void fixed(float *x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i];
    for (int k = 0; k < n; k++) a = a * (1.0f - a) * 3.7f;
    x[i] = a;
}"""


def _kernel(name: str) -> Kernel:
    image = compile_cubin(SOURCE, name="long.cu", kernel=name, arch="sm_90").image
    return Kernel.from_image(image, name)


def _iterated(blocks: int, limit_s: float) -> Execution:
    g = np.random.default_rng(5)
    arguments = [g.random(64 * blocks, f32), g.integers(900, 1100, 64 * blocks, dtype=i32)]
    run = Simulator(device=H200, blocks="representative", limit_s=limit_s, outputs=False).run
    return run(_kernel("iterate"), Geometry.of(blocks, 64), arguments)


@pytest.fixture
def short_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "SOON", 10_000)
    monkeypatch.setattr(observation, "MOST_FOLLOWED", 1_000)
    monkeypatch.setattr(observation, "MOST_OF_LONG", 10_000)


@pytest.mark.usefixtures("short_budgets")
def test_blocks_that_were_followed_find_what_they_found_first() -> None:
    blocks = 300
    run = Simulator(device=H200, blocks="representative", limit_s=0, outputs=False).run
    arguments = [np.full(blocks, 1_000, i32), np.zeros(32 * blocks, f32)]
    some = run(_kernel("consume"), Geometry.of(blocks, 32), arguments)
    assert some.executed_blocks < blocks
    assert "random ones among them agree" in some.basis
    assert "if another one takes longer, so does the launch" in some.uncertainty


@pytest.mark.parametrize("blocks", [48, 300])
@pytest.mark.usefixtures("short_budgets")
def test_some_of_many_long_blocks_give_a_time(blocks: int) -> None:
    every = _iterated(blocks, limit_s=1e3)
    some = _iterated(blocks, limit_s=0)
    assert every.executed_blocks == blocks
    assert some.executed_blocks == observation.FEWEST_LONG
    assert f"estimates from 4 of {blocks} blocks" in some.uncertainty
    assert "4 random ones among them differ" in some.basis
    tag = "smsp__inst_executed.sum"
    least, most = some.estimates[tag]
    assert least < every.counters[tag] < most
    assert every.predicted is not None
    assert some.predicted is not None
    assert some.predicted.time_s == pytest.approx(every.predicted.time_s, rel=0.05)


def test_long_blocks_are_followed_unless_their_counts_may_depend_on_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observation, "FIRST_FOLLOWED", 100)
    monkeypatch.setattr(observation, "MOST_OF_FOLLOWED", 1_000)
    assert "estimates from 4 of 300 blocks" not in _iterated(300, limit_s=1e3).uncertainty
    monkeypatch.setattr(observation, "MOST_OF_LONG", 10_000)
    assert _iterated(300, limit_s=0).executed_blocks == observation.FEWEST_LONG
    run = Simulator(device=H200, blocks="representative", limit_s=0, outputs=False).run
    arguments = [np.full(64 * 300, 0.5, f32), i32(1_000)]
    assert "proved" in run(_kernel("fixed"), Geometry.of(300, 64), arguments).basis


@pytest.mark.usefixtures("short_budgets")
def test_a_launch_of_a_few_long_blocks_is_executed_completely() -> None:
    found = _iterated(observation.FEWEST_LONG, limit_s=0)
    assert (found.executed_blocks, found.uncertainty) == (observation.FEWEST_LONG, "")


@pytest.mark.parametrize("name", ["two_phases", "two_phases_apart"])
def test_windows_see_all_phases_of_a_block(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The first half of the instructions takes little time, and the second one almost all."""
    n, following = 2000, np.random.default_rng(2).permutation(1 << 20).astype(i32)

    def time_s() -> float:
        arguments = [np.zeros(64, f32), following, i32(n)]
        run = Simulator(device=H200, blocks="representative", outputs=False).run
        found = run(_kernel(name), Geometry.of(1, 64), arguments).predicted
        assert found is not None
        return found.time_s

    whole = time_s()
    monkeypatch.setattr(replayed_streams, "MOST_STEPS", 10_000)
    monkeypatch.setattr(replayed_streams, "CUT_STEPS", 8_000)
    monkeypatch.setattr(blocks_alone, "RARE", 1 << 10)  # one barrier in 28,000 instructions
    assert time_s() == pytest.approx(whole, rel=0.15)
    monkeypatch.setattr(blocks_alone, "WINDOWS", 1)  # the first steps alone
    assert time_s() < 0.7 * whole


def test_accesses_of_blocks_are_thinned_until_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = np.arange(4096, dtype=np.int64)
    rows = np.zeros(len(lines), dtype=[("line", "u8"), ("mask", "u1"), ("step", "u4")])
    rows["line"], rows["mask"] = lines, 1

    def run(block: int) -> Any:
        below = Below(read=len(lines), written_by_warps=0)
        return SimpleNamespace(accesses=SimpleNamespace(rows=rows, spread=0, below=below))

    monkeypatch.setattr(executed, "MOST_SECTORS", 5000)
    monkeypatch.setattr(
        executed,
        "_sample",
        lambda run: executed.ExecutedBlock(
            run=run, spread=0, sectors=4 * lines, rows=rows, below=run.accesses.below
        ),
    )
    kept = Executed(grid=(300, 1, 1), run=lambda blocks, regions: [run(b) for b in blocks])
    kept.execute([7])
    assert kept.spread == 0
    kept.execute([9])
    assert kept.spread == 1  # 2 · 4,096 / 2 sectors have room
    for sample in kept.samples.values():
        np.testing.assert_array_equal(
            sample.sectors, 4 * lines[is_recorded(lines.astype(np.uint64), 1)]
        )
        assert sample.below.read == len(lines)
