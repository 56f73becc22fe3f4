"""Every kernel of the corpus, on every architecture: what the simulator leaves in memory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from toolkit.simulator import simulate

sys.path.append(str(Path(__file__).parent))
from case import Case
from cases import CASES
from compiled import compiled

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_kernel_does_what_its_reference_says(case: Case, arch: str) -> None:
    if not case.runs_on(arch):
        pytest.skip(f"of sm_{case.minimum_capability} to sm_{case.most_capability}")
    seed = np.random.SeedSequence().entropy
    arguments = case.make(np.random.default_rng(seed))
    execution = simulate(
        compiled(case, arch),
        grid=case.grid,
        block=case.block,
        dynamic_shared_bytes=case.dynamic_shared_bytes,
        arguments=arguments,
    )
    try:
        case.check(execution.outputs, arguments)
    except AssertionError as error:
        error.add_note(f"with numpy.random.default_rng({seed})")
        raise
