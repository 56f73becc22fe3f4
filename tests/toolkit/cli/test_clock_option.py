"""Predictions at an SM clock that the user gives, and clocks that are none."""

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.devices import DEVICES, with_clock
from analysis.errors import InputError
from tests.refusals import refusal
from tests.toolkit.cli.commands import invoke, refused, write
from toolkit import load, profile, simulate

ADD = 'extern "C" __global__ void add(float *x) { x[threadIdx.x] += 1; }\n'
LAUNCH = "add.cu -g 1 -b 32 -a f32[32] --device h200 --l2 clean"
IN_PYTHON = {"grid": 1, "block": 32, "device": "h200"}


@pytest.fixture(autouse=True)
def files(folder):
    write("add.cu", ADD)


def _arguments():
    return [np.zeros(32, np.float32)]


def test_simulate_predicts_at_the_given_clock_and_prints_it_beside_the_time():
    usual = json.loads(invoke(f"simulate {LAUNCH} --json").stdout)["predicted"]
    slow = json.loads(invoke(f"simulate {LAUNCH} --clock 990 --json").stdout)
    assert usual["clock_hz"] == 1980e6
    assert slow["predicted"]["clock_hz"] == 990e6
    assert slow["clock_mhz"] == 990
    # neither the launch itself nor, if L2 is dirty, the first request takes clocks of the SM
    twice = 2 * (usual["time_s"] - usual["launch_s"])
    assert slow["predicted"]["time_s"] - slow["predicted"]["launch_s"] == pytest.approx(
        twice, rel=0.01
    )
    said = invoke(f"simulate {LAUNCH} --clock 990 --html page.html").stdout.splitlines()[0]
    assert said.endswith(" predicted on NVIDIA H200 SXM 141 GB at 990 MHz, L2 clean.")
    assert "990 MHz" in Path("page.html").read_text(encoding="utf-8")
    assert "MHz" not in invoke(f"simulate {LAUNCH}").stdout.splitlines()[0]


def test_the_function_takes_a_clock_too():
    found = simulate(ADD, **IN_PYTHON, arguments=_arguments(), clock=1500)
    assert found.predicted.clock_hz == 1500e6
    assert refusal(
        InputError, simulate, ADD, grid=1, block=32, arguments=_arguments(), arch="sm_87", clock=1
    ) == ("a clock is for a predicted time, and no device of sm_87 is known: name one")
    assert refusal(
        InputError, simulate, ADD, **IN_PYTHON, arguments=_arguments(), clock=1500, predict=False
    ) == ("a clock is for a predicted time: leave out predict=False")


def test_a_given_clock_holds_whatever_tensor_cores_do():
    device = with_clock(DEVICES["h200"], 1234.5)
    assert device.clock_under_load_hz(0.0) == device.clock_under_load_hz(1.0) == 1234.5e6
    assert DEVICES["h200"].clock_under_load_hz(1.0) < DEVICES["h200"].clock_under_load_hz(0.0)


@pytest.mark.parametrize("clock", ["0", "-5", "99.9", "4001", "nan", "inf", "1e300"])
def test_a_clock_that_no_gpu_has_is_refused(clock):
    number = str(float(clock))
    assert refused(f"simulate {LAUNCH} --clock={clock}") == (
        f"a clock of {number} MHz: give the SM clock in MHz, from 100 to 4,000"
    )


def test_a_clock_is_a_number():
    assert (
        invoke(f"simulate {LAUNCH} --clock fast").stderr == "error: --clock 'fast': give a number\n"
    )
    assert refusal(
        InputError, simulate, ADD, **IN_PYTHON, arguments=_arguments(), clock="fast"
    ).startswith("clock")


def test_a_profile_at_a_clock_says_so_and_repeats_it():
    options = "-s 64 -v tiled --executor simulate --device h200 --seed 1 --clock 1200"
    assert invoke(f"profile {options}").exit_code == 0
    found = load("profile.json")
    assert found.command.endswith("--device h200 --clock 1200 --seed 1")
    (record,) = found.records
    assert record.predicted.clock_hz == 1200e6
    assert "given by the user (--clock)" in Path("profile.html").read_text(encoding="utf-8")
    assert refusal(InputError, profile, ["64"], ["tiled"], executor="theory", clock=1200) == (
        "a clock is for predicted times, and executor theory predicts none: leave it out"
    )
