"""Every kernel of the corpus, on every architecture and on silicon: what it leaves in memory."""

from functools import partial

import numpy as np
import pytest

from tests.machines import GPU
from tests.sampling import chosen_of
from toolkit.execution.simulate import simulate
from toolkit.gpu.gpu_launch import GpuLaunch
from validation.corpus.cases import CASES, COUNTED
from validation.corpus.compiled import compiled
from validation.corpus.inventory import ARCHITECTURES
from validation.corpus.refused import marks
from validation.corpus.sample import in_sample

# MUFU approximates, and its table is not known: results differ in their last bits. Atomics of
# several blocks, or of lanes that came apart, meet in no fixed order.
CHECKED_BY_REFERENCE = {"MUFU", "ATOM", "ATOMG", "ATOMS", "RED", "REDG"}
# Lanes that arrive at a barrier do so in any order, and this one says how many lack before each.
COUNTS_ARRIVALS = {"phases"}
# Clocks tick as they please.
UNLIKE = {"clocks"}

SIMULATED = chosen_of(
    [
        pytest.param(case, arch, id=f"{case.name}-{arch}")
        for case in CASES
        for arch in ARCHITECTURES
        if case.runs_on(arch)
    ],
    lambda launch: in_sample(launch[0].file, launch[1]),
)
# The simulator executes COUNTED in tests/toolkit/execution/test_golden_counters.py.
ON_SILICON = [
    pytest.param(case, *GPU.values, id=f"{name}-gpu", marks=[*GPU.marks, *marks(case)])
    for name, case in {
        **{case.name: case for case in CASES},
        **{f"counted-{case.name}": case for case in COUNTED},
    }.items()
]


def launched(machine, case, arguments):
    if not case.runs_on(machine.arch):
        pytest.skip(f"needs sm_{case.minimum_capability}")
    launch = GpuLaunch(
        source=case.source,
        name=case.file,
        kernel=case.kernel,
        geometry=case.geometry,
        arguments=arguments,
    )
    return machine.execution(launch, code=partial(compiled, case))


@pytest.mark.parametrize(("case", "machine"), [*SIMULATED, *ON_SILICON], indirect=["machine"])
def test_a_kernel_does_what_its_reference_says(case, machine):
    seed = np.random.SeedSequence().entropy
    arguments = case.make(np.random.default_rng(seed))
    execution = launched(machine, case, arguments)
    try:
        case.check(execution.outputs, arguments)
    except AssertionError as error:
        error.add_note(f"with numpy.random.default_rng({seed})")
        raise


@pytest.mark.gpu
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=marks(case)) for case in CASES]
)
def test_the_machine_code_of_silicon_leaves_the_same_bits_on_the_simulator(case, silicon):
    if case.kernel in UNLIKE:
        pytest.skip("reads a clock")
    arguments = case.make(np.random.default_rng())
    measured = launched(silicon, case, arguments)
    simulated = simulate(
        measured.cubin,
        grid=case.grid,
        block=case.block,
        dynamic_shared_bytes=case.dynamic_shared_bytes,
        arguments=arguments,
        predict=False,
    )
    opcodes = {i.opcode for i in simulated.instructions if i.executed}
    if opcodes & CHECKED_BY_REFERENCE or case.kernel in COUNTS_ARRIVALS:
        case.check(simulated.outputs, arguments)
        return
    for index, (ours, theirs) in enumerate(zip(simulated.outputs, measured.outputs, strict=True)):
        same = ours.view(np.uint8) == theirs.view(np.uint8)
        assert same.all(), f"array {index}: {np.count_nonzero(~same)} bytes differ"
