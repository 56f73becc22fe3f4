"""The workflow of `tune`: ranked without a GPU; with a made-up one swept, checked and raced."""

import pytest

from analysis.errors import InputError, UnknownNameError
from kernels.variant import Variant
from tests.heard import Heard
from tests.refusals import refusal
from toolkit.gpu.launch import OnGpu
from toolkit.gpu.sampling import Sampling
from toolkit.tuning import tuner
from toolkit.tuning.final import neighbours
from toolkit.tuning.tune import entries_of, tune
from toolkit.tuning.tuner import Effort

QUICK = Sampling(time_limit_s=60, max_samples=25, precision=1e-9)
SPACE = "coarsened-1d:tm=16"  # bk is 4 (the default), 8 or 16


def run(text=SPACE, shape="48", **settings):
    progress = settings.pop("progress", None) or Heard()
    effort = Effort(sampling=QUICK, **settings.pop("effort", {}))
    found = tune(text, [shape], effort=effort, seed=1, progress=progress, **settings)
    return found, progress.notices


def outcome(tuning):
    return {one.label: (one.status, one.is_tied) for one in tuning.shapes[0].candidates}


def reason(tuning, label):
    return next(str(o.reason) for o in tuning.shapes[0].candidates if o.label == label)


# Without a GPU.


@pytest.mark.exhaustive  # as a command
@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_configurations_are_ranked_for_the_device_and_that_is_said():
    found, heard = run(device="t4")
    assert found.device.key == "t4"
    assert heard == [
        "no GPU is used, so predicted times rank configurations: this machine has no NVIDIA driver "
        "(if it has an NVIDIA GPU, install the driver)"
    ]
    shape = found.shapes[0]
    assert shape.method == "predicted only: nothing was measured"
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
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_runs(text, shape, settings, error):
    with pytest.raises(error):
        run(text, shape, **settings)


# With one.


class Machine:
    """A made-up GPU: what a launch takes by its configuration, and which ones are wrong."""

    def __init__(self, cuda):
        self.times_s = {}
        self.wrong = set()
        self.wrong_at_49 = set()  # at a neighbour of 48 alone
        self.launched = []
        self._cuda, self._right = cuda, cuda.product
        cuda.product = self._product

    def _product(self, launch):
        key, k = f"bk={macro(launch, 'BK')},tm={macro(launch, 'TM')}", int(launch.arguments[5])
        self.launched.append(key)
        self._cuda.now_s += self.times_s.get(key, 1e-3) - self._cuda.launch_s
        self._right(launch)
        if key in self.wrong or (k == 49 and key in self.wrong_at_49):
            launch.floats(2)[0] += 1.0


@pytest.fixture
def machine(cuda, tmp_path, monkeypatch):
    """A GPU, and an empty cache."""
    monkeypatch.setattr(tuner, "cache_directory", lambda: tmp_path)
    return Machine(cuda)


def macro(launch, name):
    found = next(o for o in launch.options if o.startswith(f"-D{name}="))
    return int(found.partition("=")[2])


def test_leaders_are_raced_against_cublas_and_those_that_cannot_be_told_apart_are_tied(
    machine, cublas
):
    machine.times_s = {"bk=4,tm=16": 2e-3}  # the defaults are no leader, but a yardstick
    found, heard = run()
    assert outcome(found) == {
        "coarsened-1d": ("ok", False),
        "coarsened-1d:bk=8": ("ok", True),
        "coarsened-1d:bk=16": ("ok", True),
    }
    shape = found.shapes[0]
    assert shape.method.startswith("the best by prediction, 7 samples each; then the leaders in")
    assert {one.label: one.swept.samples_s for one in shape.candidates if one.swept} == {
        "coarsened-1d": pytest.approx((2e-3,) * 7),
        "coarsened-1d:bk=8": pytest.approx((1e-3,) * 7),
        "coarsened-1d:bk=16": pytest.approx((1e-3,) * 7),
    }
    assert shape.cublas is not None
    assert shape.also_checked == neighbours(shape.shape)
    best = shape.winners[0].measured
    assert best.relative_to_cublas.median == pytest.approx(0.5)  # cuBLAS takes half of 1 ms
    assert heard == []


def test_the_dispatchers_entry_has_the_winner_its_ties_and_its_speed_over_cublas(machine, cublas):
    found, _ = run("coarsened-1d:bk=16", "48")
    (entry,) = entries_of(found)
    assert (entry.device, entry.architecture) == (found.device.name, "sm_90")
    assert (entry.shape, entry.variant) == ("48x48x48", "coarsened-1d")
    assert entry.parameters["bk"] == 16
    assert len(entry.tied_with) == 2  # all three values of tm take 1 ms
    assert entry.ratio_to_cublas == pytest.approx(0.5)
    assert entry.date == found.created[:10]


def test_only_the_best_by_prediction_are_measured_and_the_defaults(machine):
    found, _ = run(effort={"measurements": 1})
    assert "--device" not in found.command  # this machine's GPU measured
    ranked = [one.label for one in found.shapes[0].candidates]
    best = found.shapes[0].candidates[0]
    assert set(machine.launched) == {f"bk={best.parameters['bk']},tm=16", "bk=4,tm=16"}
    assert best.label != "coarsened-1d"
    left_out = next(label for label in ranked if label not in (best.label, "coarsened-1d"))
    assert reason(found, left_out) == "not measured: others should be faster"


def test_more_than_are_prepared_side_by_side_are_measured_in_turn(machine):
    found, _ = run("coarsened-1d")
    assert len(found.shapes[0].candidates) == 6
    assert all(one.swept and len(one.swept.samples_s) == 7 for one in found.shapes[0].candidates)


def test_a_winner_of_the_sweep_that_is_wrong_at_a_ragged_neighbour_has_failed(
    machine,
):
    machine.wrong_at_49 = {"bk=16,tm=16"}
    machine.times_s = {"bk=4,tm=16": 3e-3, "bk=8,tm=16": 2e-3, "bk=16,tm=16": 1e-3}
    found, _ = run()
    assert reason(found, "coarsened-1d:bk=16").startswith("at 49x49x49: wrong result: the error of")
    # the only leader failed: who is second is raced, and not left to the defaults alone
    assert outcome(found)["coarsened-1d:bk=16"] == ("failed", False)
    assert outcome(found)["coarsened-1d:bk=8"] == ("ok", True)


def test_where_all_finalists_are_wrong_those_behind_them_are_raced(machine):
    machine.wrong_at_49 = {"bk=4,tm=16", "bk=16,tm=16"}
    machine.times_s = {"bk=8,tm=16": 9e-3}
    found, _ = run()
    assert outcome(found) == {
        "coarsened-1d": ("failed", False),
        "coarsened-1d:bk=8": ("ok", True),
        "coarsened-1d:bk=16": ("failed", False),
    }


def test_what_is_wrong_in_the_sweep_is_no_finalist_and_is_tried_again_next_time(
    machine,
):
    machine.wrong = {"bk=8,tm=16"}
    found, _ = run()
    assert "wrong result: the error of C[0][0] is" in reason(found, "coarsened-1d:bk=8")
    machine.wrong = set()
    found, heard = run()
    assert "2 of 3 configurations of 48x48x48 were measured before" in heard[0]
    assert {one.label: one.swept.from_cache for one in found.shapes[0].candidates if one.swept} == {
        "coarsened-1d": True,
        "coarsened-1d:bk=8": False,
        "coarsened-1d:bk=16": True,
    }


@pytest.mark.exhaustive  # 10 s: a wrong one is above
def test_a_finalist_that_faults_is_left_out_then_and_next_time(machine, children, monkeypatch):
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
    for user in ("competitors", "on_gpu"):  # next time it would not fault
        monkeypatch.setattr(f"toolkit.profiling.{user}.InAChild", OnGpu)
    found, heard = run()
    assert "3 of 3 configurations of 48x48x48 were measured before" in heard[0]
    assert outcome(found)["coarsened-1d:bk=16"][0] == "failed"
    assert outcome(found)["coarsened-1d:bk=8"] == ("ok", True)


def test_where_nothing_can_be_measured_the_error_shows_one_reason(machine):
    machine.wrong = {f"bk={bk},tm=16" for bk in (4, 8, 16)}
    said = refusal(InputError, run)
    assert "no configuration could be measured, 3 failed: coarsened-1d" in said
    assert ": wrong result: " in said


def test_a_shape_that_cannot_be_tuned_does_not_cost_the_others(machine, cuda):
    right = cuda.product

    def product(launch):
        right(launch)
        if int(launch.arguments[5]) == 64:
            launch.floats(2)[0] += 1.0

    cuda.product = product
    found = tune(SPACE, ["64", "48"], effort=Effort(sampling=QUICK), seed=1)
    assert [str(one.shape) for one in found.shapes] == ["48x48x48"]
    (why,) = found.missing
    assert why.startswith("64x64x64: no configuration could be measured, 3 failed: coarsened-1d")
    assert [entry.shape for entry in entries_of(found)] == ["48x48x48"]


def test_ctrl_c_keeps_the_shapes_that_were_finished(machine):
    asked, heard = ["48", "64", "80"], Heard("64x64x64: final.*")
    found = tune(SPACE, asked, effort=Effort(sampling=QUICK), seed=1, progress=heard)
    assert [str(one.shape) for one in found.shapes] == ["48x48x48"]
    assert found.missing == ("64x64x64: interrupted", "80x80x80: interrupted")


def test_ctrl_c_says_what_is_kept_and_where_and_the_next_run_goes_on(machine, tmp_path):
    progress = Heard("coarsened-1d: 1 samples")
    with pytest.raises(KeyboardInterrupt):
        run("coarsened-1d", progress=progress)
    path = tmp_path / "tuning" / "coarsened-1d-48x48x48-h100-sxm.json.journal"
    (said,) = progress.notices
    assert said.endswith(
        f" of 6 configurations of 48x48x48 are kept in {path}: repeat the command to go on"
    )
    kept = int(said.partition(" ")[0])
    assert kept == 4  # the first four by prediction; the defaults are among the others
    again = Heard()
    run("coarsened-1d", progress=again)
    (said,) = again.notices
    assert said.startswith("4 of 6 configurations of 48x48x48 were measured before: taken from")
    # two are checked and timed together, beside one reference
    assert again.stages[1] == ("48x48x48: sweep", 4)


def test_a_cache_of_another_kernel_source_is_set_aside(machine, monkeypatch, tmp_path):
    run()
    monkeypatch.setattr(Variant, "source", property(lambda self: _source(self) + "\n// edited\n"))
    _, heard = run()
    assert len(heard) == 1
    name = "coarsened-1d-48x48x48-h100-sxm.json.aside-1.journal"
    assert f"was set aside as {name}: kernel sources was " in heard[0]
    assert (tmp_path / "tuning" / name).exists()


_source = Variant.source.fget


def test_another_device_than_the_gpu_here_is_ranked_for(machine):
    found, heard = run(device="t4")
    assert found.device.key == "t4"
    assert heard == [
        "no GPU is used, so predicted times rank configurations: the GPU of this machine is NVIDIA "
        "H100 SXM5 80 GB, not NVIDIA "
        "T4: leave the device out to measure"
    ]
    assert machine.launched == []
    assert " --device t4 " in found.command


@pytest.mark.parametrize(
    ("shape", "expected"),
    [("64", ["63x63x63", "65x65x65"]), ("1x8x8", ["2x9x9"])],
)
def test_neighbours_leave_ragged_tiles_at_every_edge(shape, expected):
    from analysis.problem import parse_shape

    assert [str(one) for one in neighbours(parse_shape(shape))] == expected
