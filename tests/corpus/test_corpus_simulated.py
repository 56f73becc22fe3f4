"""Every kernel of the corpus, on every architecture: what the simulator leaves in memory."""

import numpy as np
import pytest

from tests.sampling import chosen_of
from toolkit.execution.simulate import simulate
from validation.corpus.cases import CASES
from validation.corpus.compiled import compiled
from validation.corpus.inventory import ARCHITECTURES
from validation.corpus.sample import in_sample

LAUNCHES = [
    pytest.param(case, arch, id=f"{case.name}-{arch}")
    for case in CASES
    for arch in ARCHITECTURES
    if case.runs_on(arch)
]


@pytest.mark.parametrize(
    ("case", "arch"), chosen_of(LAUNCHES, lambda launch: in_sample(launch[0].file, launch[1]))
)
def test_a_kernel_does_what_its_reference_says(case, arch):
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
