"""benchmarks/patched_kernels.py: what it launches is legal, and what it keeps can be predicted."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.devices import find_device
from analysis.errors import InputError, LaunchError
from analysis.occupancy import occupancy
from analysis.problem import Gemm
from benchmarks import patched_kernels as benchmark
from benchmarks.patches import OPERATIONS, operation
from toolkit.patching import words

H200 = find_device("h200")
RUNGS, SHAPES = ("one-block", "tiled", "vectorized"), ("256",)


SAMPLE = ("one-block", "naive-coalesced", "tiled"), ("512",)
EVERYTHING = benchmark.RUNGS, benchmark.SHAPES


@pytest.fixture(
    scope="module",
    params=["sample", pytest.param("everything", marks=pytest.mark.exhaustive)],
)
def planned(request: pytest.FixtureRequest) -> dict[str, Any]:
    rungs, shapes = SAMPLE if request.param == "sample" else EVERYTHING
    return benchmark.plan(H200, rungs, shapes)


def test_every_rung_that_takes_a_shape_is_launched_as_it_is_and_patched(
    planned: dict[str, Any],
) -> None:
    launched = {(c["rung"], c["shape"], c["patch"]) for c in planned["experiments"]}
    for shape in {shape for _, shape, _ in launched}:
        for rung in {"tiled", "coarsened-1d", "vectorized"} & {*planned["kernels"]}:
            assert {patch for r, s, patch in launched if (r, s) == (rung, shape)} == set(
                benchmark.PATCHES
            ) - {"no asynchronous copies"}
    assert "one-block" not in {rung for rung, _, _ in launched}  # 32×32 elements at most
    assert not any("naive" in rung and "barriers" in patch for rung, _, patch in launched)


def test_so_many_blocks_are_resident_and_no_more(planned: dict[str, Any]) -> None:
    cubins = benchmark._cubins(planned)
    for cell in planned["experiments"]:
        experiment = benchmark._experiment(cell)
        resources = cubins[experiment.rung].resources
        found = occupancy(
            H200,
            threads_per_block=experiment.geometry.threads_per_block,
            registers_per_thread=resources.registers_per_thread,
            shared_bytes_per_block=resources.static_shared_bytes + experiment.dynamic_shared_bytes,
        )
        assert found.blocks_per_sm == experiment.blocks_per_sm
        assert found.warps_per_sm == 4 * experiment.warps_per_scheduler
        assert experiment.dynamic_shared_bytes <= H200.shared_bytes_per_block_optin


def test_warps_per_scheduler_are_those_that_blocks_allow() -> None:
    tiled = benchmark.plan(H200, ("tiled:tile=8",), SHAPES)["experiments"]  # blocks of 2 warps
    assert {c["warps_per_scheduler"] for c in tiled} == {1, 2, 4, 8, 16}
    assert {c["warps_per_scheduler"] for c in tiled if not c["dynamic_shared_bytes"]} == {16}


def test_a_launch_has_the_dynamic_shared_memory_that_it_uses() -> None:
    cells = benchmark.plan(H200, ("async-copy",), ("2048",))["experiments"]
    own = benchmark._geometry(benchmark.parse_selection("async-copy"), Gemm(m=2048, n=2048, k=2048))
    assert min(cell["dynamic_shared_bytes"] for cell in cells) == own.dynamic_shared_bytes > 0
    assert "no asynchronous copies" in {cell["patch"] for cell in cells}


def test_a_file_keeps_the_machine_code() -> None:
    document = benchmark.plan(H200, RUNGS, SHAPES)
    cubin = benchmark._cubins(json.loads(json.dumps(document)))["tiled"]
    selection = benchmark.parse_selection("tiled")
    assert cubin.image == benchmark.compile_for(H200, selection).image


@pytest.mark.exhaustive
def test_without_multiply_adds_and_loads_the_model_is_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "patched.json"
    compared = ("none", "no shared loads", "no barriers", "arithmetic alone", "issue slots alone")
    numbers = benchmark.numbers_patched
    monkeypatch.setattr(
        benchmark,
        "numbers_patched",
        lambda cubin: {name: numbers(cubin)[name] for name in compared},
    )
    benchmark.predict_all(file, H200, ("tiled",), SHAPES)
    cells = json.loads(file.read_text())["experiments"]
    times = {c["patch"]: c["predicted"]["time_s"] for c in cells if c["warps_per_scheduler"] == 16}
    assert set(times) == set(compared)
    assert times["no shared loads"] < 0.8 * times["none"]
    assert times["issue slots alone"] < times["arithmetic alone"] < times["no shared loads"]
    assert times["no barriers"] < times["none"]
    assert "| tiled | 16 | no shared loads | 40 | – | " in benchmark.tables(
        json.loads(file.read_text())
    )


def test_a_reference_has_no_machine_code_to_patch() -> None:
    with pytest.raises(InputError, match="choose rungs"):
        benchmark.plan(H200, ("cublas",), SHAPES)


class FakeGpu:
    """A GPU on which every launch takes a millisecond, and those without barriers fail for good."""

    def __init__(self) -> None:
        self.device, self.pci_bus_id, self.alive = H200, "0", True
        self._driver = SimpleNamespace(
            function_attribute=SimpleNamespace(PREFERRED_SHARED_MEMORY_CARVEOUT=9)
        )
        self.wishes: list[tuple[int, int]] = []

    def __enter__(self) -> FakeGpu:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def load_image(self, image: bytes, symbol: str) -> Any:
        function = SimpleNamespace(set_attribute=lambda *wish: self.wishes.append(wish))
        barriers = any(operation(w) in OPERATIONS["barriers"] for w in words(image, symbol))
        return SimpleNamespace(
            _function=function, prepared=lambda geometry, arguments: lambda: barriers
        )

    def time(self, once: Callable[[], bool], *, flush_l2: bool) -> float:
        assert not flush_l2
        if not once():
            self.alive = False
            raise LaunchError("illegal access")
        return 1e-3


def test_launches_go_on_after_one_that_breaks_the_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, gpus = tmp_path / "patched.json", []

    def new() -> FakeGpu:
        gpus.append(FakeGpu())
        return gpus[-1]

    monkeypatch.setattr(benchmark, "Gpu", new)
    monkeypatch.setattr(benchmark, "Bench", lambda gpu: SimpleNamespace(clock_hz=lambda: 1.9e9))
    monkeypatch.setattr(
        benchmark,
        "GpuOperands",
        lambda *_: SimpleNamespace(arguments=lambda *launch: []),
    )
    until = time.time() + 60
    for _ in range(6):  # three patches without barriers, at two numbers of warps
        with pytest.raises(SystemExit):
            benchmark.launch(file, ("tiled",), SHAPES, until)
    benchmark.launch(file, ("tiled",), SHAPES, until)
    document = json.loads(file.read_text())
    assert len(gpus) == 7
    failed = [c for c in document["experiments"] if "error" in c["measured"]]
    without = ["no barriers", "arithmetic alone", "issue slots alone"]
    assert [c["patch"] for c in failed] == without * 2
    assert {c["measured"].get("median_s") for c in document["experiments"]} == {1e-3, None}
    # one block of 8 KB, its padding and 1 KB of the system's: more than half of 228 KB
    assert gpus[0].wishes[0] == (9, 51)
    assert "LaunchError: illegal access" in benchmark.tables(document)


def test_a_process_that_says_nothing_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "START_S", 0.2)
    silent = benchmark.subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert benchmark._watched(silent, tmp_path / "nothing", time.time() + 60) != 0


LAUNCHER = """
import json, pathlib, sys
file = pathlib.Path(sys.argv[2])
document = json.loads(file.read_text()) if file.exists() else {plan}
left = [cell for cell in document["experiments"] if "measured" not in cell]
left[0]["measured"] = {{"median_s": 1e-3}}
file.write_text(json.dumps(document))
sys.exit(len(left) > {unfinished})
"""


@pytest.mark.parametrize("unfinished", [17, 20])
def test_another_process_takes_over_until_one_is_through(
    unfinished: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = benchmark.plan(H200, ("tiled",), SHAPES)
    launcher, file = tmp_path / "launcher.py", tmp_path / "patched.json"
    launcher.write_text(LAUNCHER.format(plan=repr(plan), unfinished=unfinished))
    monkeypatch.setattr(benchmark, "__file__", str(launcher))
    benchmark.measure(file, ("tiled",), SHAPES, 60)
    cells = json.loads(file.read_text())["experiments"]
    times = [cell["measured"] for cell in cells if "median_s" in cell["measured"]]
    # 10 patches at 2 numbers of warps, one launch a process; the last one ends as if all were done
    assert (len(cells), len(times)) == (20, 20 - unfinished + 1)
    assert all("not timed" in c["measured"]["error"] for c in cells[len(times) :])
