"""The workflow from arguments to a profile, without a GPU and on a made-up one."""

import doctest
import shlex
from datetime import datetime

import pytest

import toolkit
from analysis.errors import InputError, UnavailableError, UnknownNameError
from analysis.product_errors import DATA_CLASSES
from tests.heard import Heard
from tests.refusals import refusal
from tests.toolkit.cli.commands import invoke
from toolkit import load, profile, run, save
from toolkit.gpu.sampling import Sampling
from toolkit.profiling import in_theory
from toolkit.profiling import profile as experiment
from toolkit.sass.core import binding as core

ONE = Sampling(max_samples=1)


def test_the_package_offers_its_functions():
    assert profile is experiment.profile
    assert {"load", "profile", "run", "save"} < set(toolkit.__all__)
    assert all(callable(function) for function in (load, run, save))
    with pytest.raises(AttributeError, match="module 'toolkit' has no attribute 'nothing'"):
        toolkit.nothing  # noqa: B018


def test_the_example_of_the_package_runs():
    results = doctest.testmod(toolkit)
    assert (results.attempted, results.failed) == (3, 0)


def test_errors_on_classes_of_inputs_are_taken_where_they_are_asked_for(tmp_path):
    asked = {"executor": "simulate", "device": "h200", "seed": 7}
    (plain,) = profile([32], ["tiled"], **asked).records
    found = profile([32], ["tiled"], accuracy=True, **asked)
    assert plain.errors == ()
    (record,) = found.records
    assert [one.data for one in record.errors] == list(DATA_CLASSES)
    assert {(str(one.shape), one.seed, one.elements) for one in record.errors} == {
        ("32x32x32", 7, 1024)
    }
    assert all(0 < one.rms <= one.maximum < 2e-6 for one in record.errors)  # 33 roundings
    assert " --accuracy " in found.command
    save(found, tmp_path / "profile.json")
    assert load(tmp_path / "profile.json") == found
    assert len(found.to_dataframe("errors")) == len(DATA_CLASSES)


def test_theory_is_for_the_default_device_unless_another_is_named():
    result = profile([32], ["tiled"], executor="theory", seed=7)
    assert (result.device.key, result.executor, result.seed) == ("h200", "theory", 7)
    assert result.status == "complete"
    assert datetime.fromisoformat(result.created).tzinfo is not None
    assert profile([32], ["tiled"], executor="theory", device="RTX 3090").device.key == "rtx-3090"


def test_every_shape_has_every_variant():
    result = profile([32, "16x8x4"], ["tiled", "naive-coalesced"], executor="theory")
    assert [(str(record.shape), record.label) for record in result.records] == [
        (shape, label) for shape in ("32x32x32", "16x8x4") for label in ("tiled", "naive-coalesced")
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"shapes": ["7x8x9", 32], "variants": ["tiled:tile=16", "cpu"], "device": "t4"},
        {"sampling": Sampling(precision=0.012345678, time_limit_s=0.0123456789, max_samples=1)},
        {"seed": 2**63 - 1, "l2": "warm"},
    ],
)
@pytest.mark.parametrize("executor", ["theory", "simulate"])
def test_the_command_repeats_the_run(settings, executor, monkeypatch, tmp_path):
    plans = []
    monkeypatch.setattr(
        in_theory.TheoryBench,
        "profile_shape",
        lambda bench, problem, plan, records, progress: plans.append((bench.device, plan)),
    )
    result = profile(**({"shapes": [16]} | settings), executor=executor)
    words = shlex.split(result.command)
    assert words[:4] == ["python", "-m", "toolkit", "profile"]
    monkeypatch.chdir(tmp_path)
    assert invoke("", *words[3:]).exit_code == 0
    shapes = len(plans) // 2
    assert plans[:shapes] == plans[shapes:]


def test_no_gpu_is_a_notice_or_an_error(no_gpu):
    progress = Heard()
    assert profile([32], ["tiled"], progress=progress).executor == "simulate"
    (notice,) = progress.notices
    assert notice.startswith("simulated, no GPU is used: this machine has no NVIDIA driver")
    assert "this machine has no NVIDIA driver" in refusal(
        UnavailableError, profile, [32], ["tiled"], executor="gpu"
    )


def test_without_the_core_auto_is_theory_alone_and_the_simulator_an_error(no_gpu, monkeypatch):
    monkeypatch.setattr(core, "__file__", "/nowhere/core/binding.py")
    monkeypatch.setattr(core, "library", core.library.__wrapped__)
    progress = Heard()
    assert profile([32], ["tiled"], progress=progress).executor == "theory"
    (notice,) = progress.notices
    assert notice.startswith(
        "theory only, nothing is simulated: the simulator's native core was not built: run "
    )
    with pytest.raises(UnavailableError, match=r"core was not built: run .*toolkit\.native"):
        profile([32], ["tiled"], executor="simulate")


def test_the_gpu_is_used_where_there_is_one(cuda):
    progress = Heard()
    for device in (None, "h100-sxm"):
        result = profile([32], ["tiled"], sampling=ONE, progress=progress, device=device)
        assert (result.executor, result.device.key) == ("gpu", "h100-sxm")
    assert progress.notices == []


def test_another_device_is_simulated_or_an_error(cuda):
    progress = Heard()
    result = profile([32], ["tiled"], device="t4", progress=progress)
    assert (result.executor, result.device.key) == ("simulate", "t4")
    assert progress.notices == [
        "simulated, no GPU is used: the GPU of this machine is NVIDIA H100 SXM5 80 GB, not "
        "NVIDIA T4: leave "
        "the device out to measure"
    ]
    assert (
        "the GPU of this machine is NVIDIA H100 SXM5 80 GB, not NVIDIA T4: leave the device out"
        in refusal(InputError, profile, [32], ["tiled"], device="t4", executor="gpu")
    )


def test_a_gpu_of_which_too_little_is_known_is_not_used(cuda, monkeypatch):
    def unknown(facts):
        raise InputError("its DRAM bandwidth is unknown; choose a device of the database instead")

    monkeypatch.setattr("toolkit.gpu.context.device_from_driver", unknown)
    assert profile([32], ["tiled"], device="t4").executor == "simulate"
    assert "DRAM bandwidth is unknown" in refusal(
        InputError, profile, [32], ["tiled"], executor="gpu"
    )


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"shapes": [0]}, InputError),
        ({"shapes": [32], "device": "rtx-309"}, UnknownNameError),
        ({"shapes": [32], "variants": ["tield"]}, UnknownNameError),
        ({"shapes": [32], "executor": "cpu"}, InputError),
        ({"shapes": [10**6], "executor": "theory"}, InputError),
    ],
)
def test_bad_input_is_refused_before_anything_runs(settings, error, monkeypatch):
    monkeypatch.delattr(in_theory.TheoryBench, "profile_shape")
    with pytest.raises(error):
        profile(**settings)


def test_ctrl_c_keeps_the_shapes_that_are_done():
    result = profile([32, 16], ["tiled"], executor="theory", progress=Heard("16x16x16"))
    assert result.status == "interrupted"
    assert [(str(r.shape), r.status) for r in result.records] == [("32x32x32", "ok")]


def test_ctrl_c_before_anything_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt):
        profile([32], ["tiled"], executor="theory", progress=Heard("32x32x32"))


def test_scores_stand_in_the_profile():
    result = profile([64], ["tiled", "cpu"], executor="simulate", sampling=ONE)
    tiled, cpu = result.records
    assert cpu.scores == ()
    exact = [score for score in tiled.scores if score.grade == "exact" and score.theory is not None]
    assert {score.verdict for score in exact} == {"equal"}  # 64 is a multiple of the tile
