"""Predictions with constants that were measured on the user's GPU, and files that are none."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.devices import DEVICES
from analysis.errors import InputError
from tests.refusals import refusal
from tests.toolkit.cli.commands import invoke, refused, write
from toolkit import load, profile, simulate
from toolkit.execution.prediction_cache import _name
from toolkit.store.constants_file import with_constants
from validation import ROOT

RECORDED = ROOT / "validation/timing/recorded/constants_h200.json"
ADD = 'extern "C" __global__ void add(float *x) { x[threadIdx.x] += 1; }\n'
LAUNCH = "add.cu -g 1 -b 32 -a f32[32]"
OWN = "sm_90 (43 of 96 measured on NVIDIA H200 SXM 141 GB, mine.json; "


@pytest.fixture(autouse=True)
def files(folder):
    write("add.cu", ADD)
    shutil.copy(RECORDED, "mine.json")


def test_simulate_predicts_with_the_constants_of_a_file():
    usual = json.loads(invoke(f"simulate {LAUNCH} --json").stdout)["predicted"]
    own = json.loads(invoke(f"simulate {LAUNCH} --json --constants mine.json").stdout)["predicted"]
    assert usual["launch_s"] == 2.7e-6
    assert own["launch_s"] == 2.62e-6  # empty_kernel_256_threads_s
    assert own["time_s"] < usual["time_s"]
    assert own["constants"].startswith(OWN)
    again = json.loads(invoke(f"simulate {LAUNCH} --json").stdout)["predicted"]
    assert again == usual
    shown = " ".join(invoke(f"simulate {LAUNCH} --constants mine.json --verbose").stdout.split())
    assert f"constants of {OWN}" in shown


def test_the_function_takes_the_file_too():
    launch = {"grid": 1, "block": 32, "arguments": [np.zeros(32, np.float32)]}
    found = simulate(ADD, **launch, device="h200", constants="mine.json")
    assert found.predicted.constants.startswith(OWN)
    unnamed = simulate(ADD, **launch, constants="mine.json")  # the default device has this arch
    assert unnamed.predicted == found.predicted
    assert refusal(InputError, simulate, ADD, **launch, arch="sm_87", constants="mine.json") == (
        "constants are for a predicted time, and no device of sm_87 is known: name one"
    )


def test_predictions_with_other_constants_have_another_place_in_the_cache():
    device = DEVICES["h200"]
    own = with_constants(device, "mine.json")
    longer = replace(own.constants, values=own.constants.values | {"l1_latency": 35})
    devices = (device, own, replace(own, constants=longer))
    assert len({_name("prediction", {}, one) for one in devices}) == 3


def test_a_profile_says_whose_constants_it_has():
    options = "-s 64 -v tiled --executor simulate --seed 1 --constants mine.json"
    assert invoke(f"profile {options}").exit_code == 0
    found = load("profile.json")
    assert found.command.endswith("--device h200 --constants mine.json --seed 1")
    assert found.device.constants.values["l1_latency"] == 34
    (record,) = found.records
    assert record.predicted.constants.startswith(OWN)
    page = Path("profile.html").read_text(encoding="utf-8")
    assert "43 constants were measured on NVIDIA H200 SXM 141 GB (mine.json)" in page
    assert "l1_latency, of the model of time" in page


def test_tune_ranks_by_the_constants_of_a_file():
    command = "tune tiled:tile=16 --shape 64 --device h200 --seed 1 --json"

    def ranked(options):
        found = json.loads(invoke(f"{command} {options}").stdout)
        (candidate,) = found["shapes"][0]["candidates"]
        return candidate["predicted"]["time_s"], found["command"]

    (usual_s, _), (own_s, repeated) = ranked(""), ranked("--constants mine.json")
    assert own_s < usual_s  # an empty kernel takes 2.62 and not 2.7 µs
    assert repeated.endswith("--device h200 --constants mine.json --seed 1")
    failed = invoke("tune tiled --device h200 --constants none.json")
    assert "error: none.json: it cannot be read" in failed.stderr


def test_theory_takes_no_constants():
    assert "executor theory predicts none" in refused(
        "profile -s 64 -v tiled --executor theory --constants mine.json"
    )


@pytest.mark.parametrize("command", [f"simulate {LAUNCH}", "profile -s 64 --executor simulate"])
def test_a_file_that_cannot_be_used_is_one_line(command):
    like = "give what `python -m toolkit.microbenchmarks --output FILE` wrote"
    other = "measure such a GPU, or choose a device of sm_90"
    for options, message in {
        "--constants none.json": "none.json: it cannot be read: No such file or directory: this "
        "folder has mine.json",
        "--constants .": ".: it cannot be read: Is a directory",
        "--constants add.cu": "add.cu: not JSON: Expecting value: "
        f"line 1 column 1 (char 0): {like}",
        "--constants mine.json -d t4": "mine.json: its constants are of sm_90 (NVIDIA H200 SXM "
        f"141 GB), and NVIDIA T4 is of sm_75: {other}",
    }.items():
        assert refused(f"{command} {options}") == message


def test_a_device_must_be_known():
    arch = "--arch sm_103 --constants mine.json"
    assert "no device of sm_103 is known" in refused(f"simulate {LAUNCH} {arch}")
    assert "no such option" in refused(f"check {LAUNCH} --constants mine.json", code=2)


def test_profile_refuses_before_anything_runs():
    given = {"executor": "simulate", "constants": "add.cu"}
    assert refusal(InputError, profile, [64], ["tiled"], **given).startswith("add.cu: not JSON")
