"""The launches on trial: how they are split, and their kernels against a GPU."""

import shutil
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from statistics import median

import pytest

from benchmarks import prediction_errors
from tests.sampling import chosen_of, sampled
from toolkit.execution.simulate import simulate
from validation.timing.declared import recorded_results, rng
from validation.timing.timed_launches import LAUNCHES, TIMED
from validation.timing.trial_launches import (
    DEVICES,
    PARTS,
    TRIALS,
    kernels_of,
    recorded,
)

CASES = [(trial, case) for trial in TRIALS for case in trial.cases]


@pytest.mark.parametrize("trial", sampled(TRIALS, key=lambda trial: trial.compiler))
def test_a_kernel_on_trial_leaves_what_it_left_on_a_gpu(trial):
    if trial.compiler == "nvcc" and not shutil.which("nvcc"):
        pytest.skip("there is no nvcc")
    case = trial.small_case
    arguments = case.make(rng())
    execution = simulate(
        trial.code("sm_90"), grid=case.grid, block=case.block, arguments=arguments, predict=False
    )
    case.check(execution.outputs, arguments)


def test_what_a_gpu_left_is_known_of_every_kernel_that_writes():
    known = {name.rpartition(" ")[0] for name in recorded_results()}
    assert known == {one.key for one in (*TIMED, *TRIALS)} - {"streams read_stream"}


def test_the_split_is_by_kernel_and_similar_kernels_stay_together():
    by_family = groupby(sorted(TRIALS, key=lambda t: t.family), key=lambda t: t.family)
    assert all(len({trial.part for trial in family}) == 1 for _, family in by_family)
    for part in PARTS:  # a hash chose: about a third each
        assert 0.2 < sum(trial.part == part for trial, _ in CASES) / len(CASES) < 0.45


def test_no_part_is_predicted_without_being_named():
    assert not set(PARTS) & set(prediction_errors.PARTS)


def test_there_are_enough_kernels_that_nothing_was_fitted_on():
    names = [trial.kernel for trial in TRIALS]
    assert len(names) == len(set(names))
    files = {Path(trial.file).stem for trial in TRIALS}
    assert set(names) == {kernel for file in files for kernel in kernels_of(file)}
    assert not set(names) & {case.kernel for case in LAUNCHES}
    assert len(names) >= 60
    assert len({case.name for _, case in CASES}) == len(CASES) >= 90
    assert sum(not trial.is_product for trial, _ in CASES) >= 60
    assert 0.4 < sum(trial.compiler == "nvcc" for trial in TRIALS) / len(TRIALS) < 0.6


FEWEST_SAMPLES = 15
EXECUTED = "smsp__inst_executed.sum"
SECTORS = {
    operation: f"l1tex__t_sectors_pipe_lsu_mem_global_op_{operation}.sum"
    for operation in ("ld", "st")
}
QUICK = ("fill_pairs 1000001",)  # of NVRTC; nvcc takes a second for a kernel


@cache
def recording(device):
    return recorded(device)


@pytest.mark.parametrize("device", DEVICES)
def test_every_launch_was_timed_and_counted(device):
    found = recording(device)
    cells = {(cell["label"], cell["l2"]): cell for cell in found["cells"]}
    names = {case.name for _, case in CASES}
    assert set(cells) == {(name, l2) for name in names for l2 in ("flushed", "warm")}
    assert {one["label"] for one in found["counted"]} == names
    assert found["flush"].startswith("memset")
    for trial, case in CASES:
        cell = cells[case.name, "flushed"]
        assert (cell["part"], cell["compiled_by"]) == (trial.part, trial.compiler)
        assert (tuple(cell["grid"]), tuple(cell["block"])) == (case.grid, case.block)
    for cell in cells.values():
        assert "error" not in cell
        assert len(cell["samples_s"]) >= FEWEST_SAMPLES
        assert cell["median_s"] == median(cell["samples_s"])
        assert 3e-6 < cell["median_s"] < 2e-3


def test_counters_that_follow_from_the_code_are_the_same_on_both_gpus():
    one, other = (
        {
            launch["label"]: [launch["counters"][name] for name in (EXECUTED, *SECTORS.values())]
            for launch in recording(device)["counted"]
        }
        for device in DEVICES
    )
    assert one == other


@pytest.mark.parametrize(
    ("trial", "case"),
    chosen_of(
        [pytest.param(*both, id=both[1].name) for both in CASES], lambda both: both[1].name in QUICK
    ),
)
def test_counters_of_a_launch_are_those_of_the_simulator(trial, case):
    if trial.compiler == "nvcc" and not shutil.which("nvcc"):
        pytest.skip("there is no nvcc")
    found = recording("h200")
    code = trial.code("sm_90")
    cell = next(cell for cell in found["cells"] if cell["label"] == case.name)
    assert sha256(code.code).hexdigest() == cell["code_sha256"]
    counted = next(one for one in found["counted"] if one["label"] == case.name)["counters"]
    execution = simulate(
        code, grid=case.grid, block=case.block, arguments=case.make(rng()), predict=False
    )
    for name in (EXECUTED, *SECTORS.values()):
        assert execution.counters[name] == counted[name]
