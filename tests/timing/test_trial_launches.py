"""The launches on trial: how they are split, and their kernels against their references."""

from __future__ import annotations

import shutil
import sys
from itertools import groupby
from pathlib import Path

import pytest

from tests.sampling import sampled
from toolkit.simulator import simulate

sys.path.append(str(Path(__file__).parent))
from timed_launches import LAUNCHES, rng
from trial_launches import PARTS, TRIALS, Trial, kernels_of

CASES = [(trial, case) for trial in TRIALS for case in trial.cases]


@pytest.mark.parametrize("trial", sampled(TRIALS, key=lambda trial: trial.compiler))
def test_a_kernel_on_trial_does_what_its_reference_says(trial: Trial) -> None:
    if trial.compiler == "nvcc" and not shutil.which("nvcc"):
        pytest.skip("there is no nvcc")
    case = trial.case(trial.small)
    arguments = case.make(rng())
    execution = simulate(trial.code("sm_90"), grid=case.grid, block=case.block, arguments=arguments)
    case.check(execution.outputs, arguments)


def test_the_split_is_by_kernel_and_similar_kernels_stay_together() -> None:
    by_family = groupby(sorted(TRIALS, key=lambda t: t.family), key=lambda t: t.family)
    assert all(len({trial.part for trial in family}) == 1 for _, family in by_family)
    for part in PARTS:  # a hash chose: about a third each
        assert 0.2 < sum(trial.part == part for trial, _ in CASES) / len(CASES) < 0.45


def test_there_are_enough_kernels_that_nothing_was_fitted_on() -> None:
    names = [trial.kernel for trial in TRIALS]
    assert len(names) == len(set(names))
    files = {trial.file for trial in TRIALS}
    assert set(names) == {kernel for file in files for kernel in kernels_of(file)}
    assert not set(names) & {case.kernel for case in LAUNCHES}
    assert len(names) >= 60
    assert len({case.name for _, case in CASES}) == len(CASES) >= 90
    assert sum(not trial.is_product for trial, _ in CASES) >= 60
    assert 0.4 < sum(trial.compiler == "nvcc" for trial in TRIALS) / len(TRIALS) < 0.6
