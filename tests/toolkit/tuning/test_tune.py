"""The workflow of `tune`: ranked without a GPU; with a made-up one swept, checked and raced."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.errors import InputError, UnavailableError, UnknownNameError
from analysis.records.tuning import Tuning
from kernels import LADDER
from kernels.variant import Variant
from toolkit.gpu.launch import OnGpu
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.store.tuned import Tuned
from toolkit.tuning import tuner
from toolkit.tuning.cache import Known
from toolkit.tuning.final import neighbours
from toolkit.tuning.tune import entries_of, tune
from toolkit.tuning.tuner import Effort, expressible

QUICK = Sampling(time_limit_s=60, max_samples=25, precision=1e-9)
SPACE = "coarsened-1d:tm=16"  # bk is 4 (the default), 8 or 16


class Notices(Progress):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def notice(self, text: str) -> None:
        self.heard.append(text)


def run(text: str = SPACE, shape: str = "48", **settings: Any) -> tuple[Tuning, list[str]]:
    progress = settings.pop("progress", None) or Notices()
    effort = Effort(sampling=QUICK, **settings.pop("effort", {}))
    found = tune(text, [shape], effort=effort, seed=1, progress=progress, **settings)
    return found, progress.heard


def outcome(tuning: Tuning) -> dict[str, tuple[str, bool]]:
    return {one.label: (one.status, one.is_tied) for one in tuning.shapes[0].candidates}


def reason(tuning: Tuning, label: str) -> str:
    return next(str(o.reason) for o in tuning.shapes[0].candidates if o.label == label)


# Without a GPU.


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)  # type: ignore[arg-type]
    monkeypatch.setattr("toolkit.gpu.context.driver_library", lambda: None)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_configurations_are_ranked_for_the_device_and_that_is_said() -> None:
    found, heard = run(device="t4")
    assert found.device.key == "t4"
    assert heard == [
        "ranked by prediction: no GPU is used: this machine has no NVIDIA driver: if it has an "
        "NVIDIA GPU, install the driver"
    ]
    shape = found.shapes[0]
    assert shape.method == "prediction alone: nothing was measured"
    assert all(one.predicted and not one.swept for one in shape.candidates)
    assert shape.winners == ()
    assert entries_of(found) == []
    assert found.command == (
        f"python -m toolkit tune {SPACE} --shape 48x48x48 --device t4 --seconds 60 --seed 1"
    )


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    ("text", "shape", "settings", "error"),
    [
        ("tilde", "48", {}, UnknownNameError),
        ("cublas", "48", {}, InputError),
        (SPACE, "4x", {}, InputError),
        (SPACE, "48", {"device": "h2000"}, UnknownNameError),
        (SPACE, "48", {"effort": {"workers": 2, "strategy": "mls"}}, InputError),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_runs(
    text: str, shape: str, settings: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        run(text, shape, **settings)


# With one.


class Sweep:
    """Kernel Tuner's part, made up: what it finds of each configuration, and what it was asked."""

    def __init__(self) -> None:
        self.times_s: dict[str, float] = {}
        self.failures: dict[str, str] = {}
        self.asked: list[list[str]] = []
        self.interrupts = False

    def __call__(self, request: Any, cache: Any, progress: Progress) -> dict[str, Known]:
        keys = [f"bk={one['bk']},tm={one['tm']}" for one in request.configurations]
        self.asked.append(keys)
        for key in keys:
            if key in self.failures:
                cache.fail(key, self.failures[key])
        if self.interrupts:
            raise KeyboardInterrupt
        known = cache.known()
        return {key: known.get(key) or self._timed(key) for key in keys}

    def _timed(self, key: str) -> Known:
        return Known(samples_s=(self.times_s.get(key, 1e-3),) * 7)


@pytest.fixture
def swept(
    cuda: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Sweep:
    """A GPU, on which the final runs, and what a sweep says."""
    pytest.importorskip("kernel_tuner", reason="Kernel Tuner is not installed")
    made_up = Sweep()
    monkeypatch.setattr(tuner, "sweep", made_up)
    monkeypatch.setattr(tuner, "cache_directory", lambda: tmp_path)
    return made_up


def macro(launch: Any, name: str) -> int:
    found = next(o for o in launch.options if o.startswith(f"-D{name}="))
    return int(found.partition("=")[2])


def test_leaders_are_raced_against_cublas_and_those_that_cannot_be_told_apart_are_tied(
    swept: Sweep, cuda: Any, cublas: Any
) -> None:
    swept.times_s = {"bk=4,tm=16": 2e-3}  # the defaults are no leader, but a yardstick
    right = cuda.product

    def product(launch: Any) -> None:
        right(launch)
        cuda.now_s += 1e-3 if macro(launch, "BK") == 4 else 0.0

    cuda.product = product
    found, heard = run()
    assert outcome(found) == {
        "coarsened-1d": ("ok", False),
        "coarsened-1d:bk=8": ("ok", True),
        "coarsened-1d:bk=16": ("ok", True),
    }
    shape = found.shapes[0]
    assert "Kernel Tuner 1." in shape.method
    assert shape.cublas is not None
    assert shape.also_checked == neighbours(shape.shape)
    best = shape.winners[0].measured
    assert best is not None
    assert best.relative_to_cublas is not None
    assert best.relative_to_cublas.median == pytest.approx(0.5)  # cuBLAS takes half of 1 ms
    assert heard == []


def test_the_dispatchers_entry_has_the_winner_its_ties_and_its_speed_over_cublas(
    swept: Sweep, cublas: Any
) -> None:
    found, _ = run("coarsened-1d:bk=16", "48")
    (entry,) = entries_of(found)
    assert isinstance(entry, Tuned)
    assert (entry.device, entry.architecture) == (found.device.name, "sm_90")
    assert (entry.shape, entry.variant) == ("48x48x48", "coarsened-1d")
    assert entry.parameters["bk"] == 16
    assert len(entry.tied_with) == 2  # all three values of tm take 1 ms
    assert entry.ratio_to_cublas == pytest.approx(0.5)
    assert entry.date == found.created[:10]


def test_only_the_best_by_prediction_are_measured_and_the_defaults(swept: Sweep) -> None:
    found, _ = run(effort={"measurements": 1})
    ranked = [one.label for one in found.shapes[0].candidates]
    best = found.shapes[0].candidates[0]
    assert swept.asked == [[f"bk={best.parameters['bk']},tm=16", "bk=4,tm=16"]]
    assert best.label != "coarsened-1d"
    left_out = next(label for label in ranked if label not in (best.label, "coarsened-1d"))
    assert reason(found, left_out) == "not measured: others should be faster"


def test_another_strategy_of_kernel_tuner_chooses_among_all_that_fit(swept: Sweep) -> None:
    run(effort={"measurements": 1, "strategy": "random_sample"})
    assert len(swept.asked[0]) == 3


def test_a_winner_of_the_sweep_that_is_wrong_at_a_ragged_neighbour_has_failed(
    swept: Sweep, cuda: Any
) -> None:
    right = cuda.product

    def product(launch: Any) -> None:
        right(launch)
        if macro(launch, "BK") == 16 and int(launch.arguments[5]) == 49:
            launch.floats(2)[0] += 1.0

    cuda.product = product
    swept.times_s = {"bk=4,tm=16": 3e-3, "bk=8,tm=16": 2e-3, "bk=16,tm=16": 1e-3}
    found, _ = run()
    assert reason(found, "coarsened-1d:bk=16").startswith("at 49x49x49: wrong result: the error of")
    # the only leader failed: who is second is raced, and not left to the defaults alone
    assert outcome(found)["coarsened-1d:bk=16"] == ("failed", False)
    assert outcome(found)["coarsened-1d:bk=8"] == ("ok", True)


def test_where_all_finalists_are_wrong_those_behind_them_are_raced(swept: Sweep, cuda: Any) -> None:
    right = cuda.product

    def product(launch: Any) -> None:
        right(launch)
        if macro(launch, "BK") != 8:
            launch.floats(2)[0] += 1.0

    cuda.product = product
    swept.times_s = {"bk=4,tm=16": 1e-3, "bk=8,tm=16": 9e-3, "bk=16,tm=16": 1e-3}
    found, _ = run()
    assert outcome(found) == {
        "coarsened-1d": ("failed", False),
        "coarsened-1d:bk=8": ("ok", True),
        "coarsened-1d:bk=16": ("failed", False),
    }


def test_a_finalist_that_faults_is_left_out_then_and_next_time(
    swept: Sweep, children: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    children("""
def product(launch):
    conftest.product(launch)
    if "-DBK=16" in launch.options and int(launch.arguments[5]) == 49:
        cuda.fault()

cuda.product = product
""")
    found, _ = run()
    assert "illegal memory access" in reason(found, "coarsened-1d:bk=16")
    assert outcome(found)["coarsened-1d:bk=8"] == ("ok", True)
    monkeypatch.setattr("toolkit.profiling.on_gpu.InAChild", OnGpu)  # next time it would not fault
    found, heard = run()
    assert "1 of 3 configurations of 48x48x48 were measured before" in heard[0]
    assert outcome(found)["coarsened-1d:bk=16"][0] == "failed"
    assert outcome(found)["coarsened-1d:bk=8"] == ("ok", True)


def test_where_nothing_can_be_measured_the_error_shows_one_reason(swept: Sweep) -> None:
    swept.failures = {f"bk={bk},tm=16": f"fault of {bk}" for bk in (4, 8, 16)}
    with pytest.raises(InputError) as caught:
        run()
    assert "no configuration could be measured, 3 failed: coarsened-1d" in str(caught.value)
    assert ": fault of " in str(caught.value)


def test_a_shape_that_cannot_be_tuned_does_not_cost_the_others(swept: Sweep, cuda: Any) -> None:
    right = cuda.product

    def product(launch: Any) -> None:
        right(launch)
        if int(launch.arguments[5]) == 64:
            launch.floats(2)[0] += 1.0

    cuda.product = product
    found = tune(SPACE, ["64", "48"], effort=Effort(sampling=QUICK), seed=1)
    assert [str(one.shape) for one in found.shapes] == ["48x48x48"]
    (why,) = found.missing
    assert why.startswith("64x64x64: no configuration could be measured, 3 failed: coarsened-1d")
    assert [entry.shape for entry in entries_of(found)] == ["48x48x48"]


def test_ctrl_c_keeps_the_shapes_that_were_finished(
    swept: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SecondShape(Notices):
        def stage(self, text: str, steps: int) -> None:
            if text.startswith("64x64x64: final"):
                raise KeyboardInterrupt

    asked = ["48", "64", "80"]
    found = tune(SPACE, asked, effort=Effort(sampling=QUICK), seed=1, progress=SecondShape())
    assert [str(one.shape) for one in found.shapes] == ["48x48x48"]
    assert found.missing == ("64x64x64: interrupted", "80x80x80: interrupted")


def test_ctrl_c_says_what_is_kept_and_where(swept: Sweep, tmp_path: Path) -> None:
    swept.failures, swept.interrupts = {"bk=8,tm=16": "a fault"}, True
    progress = Notices()
    with pytest.raises(KeyboardInterrupt):
        run(progress=progress)
    path = tmp_path / "tuning" / "coarsened-1d-48x48x48-h100-sxm.json"
    assert progress.heard == [
        f"1 of 3 configurations of 48x48x48 are kept in {path}: repeat the command to go on"
    ]


def test_a_cache_of_another_kernel_source_is_set_aside(
    swept: Sweep, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = tmp_path / "tuning" / "coarsened-1d-48x48x48-h100-sxm.json"
    run()
    cache.write_text('{\n"cache": {')
    monkeypatch.setattr(Variant, "source", property(lambda self: _source(self) + "\n// edited\n"))
    _, heard = run()
    assert len(heard) == 1
    assert "was set aside as coarsened-1d-48x48x48-h100-sxm.aside-1.json" in heard[0]
    assert "it was measured with another kernel source" in heard[0]


_source: Callable[[Variant], str] = Variant.source.fget  # type: ignore[attr-defined]


def test_another_device_than_the_gpu_here_is_ranked_for(swept: Sweep) -> None:
    found, heard = run(device="t4")
    assert found.device.key == "t4"
    assert heard == ["ranked by prediction: the GPU here, NVIDIA H100 SXM5 80 GB, is no NVIDIA T4"]
    assert swept.asked == []


def test_a_rung_that_kernel_tuner_cannot_launch_is_sampled_in_rounds(
    swept: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner, "expressible", lambda rung: False)
    found, heard = run()
    assert heard == [
        "coarsened-1d takes arguments that Kernel Tuner cannot pass: its best by prediction are "
        "sampled in rounds instead"
    ]
    assert swept.asked == []
    assert all(one.swept and len(one.swept.samples_s) == 7 for one in found.shapes[0].candidates)
    assert found.shapes[0].winners


@pytest.mark.parametrize("rung", LADDER[:7], ids=lambda rung: rung.name)
def test_rungs_of_buffers_and_numbers_can_be_launched_by_kernel_tuner(rung: Variant) -> None:
    assert expressible(rung)


@pytest.mark.parametrize("rung", LADDER[12:], ids=lambda rung: rung.name)
def test_rungs_of_tensor_maps_cannot(rung: Variant) -> None:
    assert not expressible(rung)


def test_without_kernel_tuner_nothing_is_ranked_first(
    swept: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.tuning.sweep.find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match="Kernel Tuner is not installed"):
        run()


@pytest.mark.parametrize(
    ("shape", "expected"),
    [("64", ["63x63x63", "65x65x65"]), ("1x8x8", ["2x9x9"])],
)
def test_neighbours_leave_ragged_tiles_at_every_edge(shape: str, expected: list[str]) -> None:
    from analysis.problem import parse_shape

    assert [str(one) for one in neighbours(parse_shape(shape))] == expected


def test_kernel_tuner_itself_sweeps_before_the_final(
    cuda: Any, made_up_gpu: Callable[..., None], tmp_path: Path
) -> None:
    pytest.importorskip("kernel_tuner", reason="Kernel Tuner is not installed")
    made_up_gpu(times_s={"BK=16": 0.001, "BK=8": 0.001}, wrong=["BK=8"])
    found, _ = run(effort={"cache": tmp_path})
    assert outcome(found)["coarsened-1d:bk=8"] == ("failed", False)
    swept = {one.label: one.swept for one in found.shapes[0].candidates}
    assert swept["coarsened-1d:bk=16"] is not None
    assert swept["coarsened-1d:bk=16"].median_s == pytest.approx(0.001)
    assert swept["coarsened-1d"] is not None
    assert swept["coarsened-1d"].median_s == pytest.approx(0.002)
    assert [path.name for path in sorted(tmp_path.glob("*.json"))] == [
        "coarsened-1d-48x48x48-h100-sxm.about.json",
        "coarsened-1d-48x48x48-h100-sxm.json",
    ]
