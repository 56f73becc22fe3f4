"""The simulator beside silicon: the very machine code that a GPU ran, run again on the CPU."""

import numpy as np
import pytest

from analysis.geometry import Geometry
from toolkit.execution.simulate import simulate
from toolkit.gpu.launch import OnGpu, task_of
from toolkit.launch.launch import Launch
from validation.corpus.cases import CASES
from validation.corpus.refused import marks

pytestmark = pytest.mark.gpu

# MUFU approximates, and its table is not known: results differ in their last bits. Atomics of
# several blocks, or of lanes that came apart, meet in no fixed order.
CHECKED_BY_REFERENCE = {"MUFU", "ATOM", "ATOMG", "ATOMS", "RED", "REDG"}
# Lanes that arrive at a barrier do so in any order, and this one says how many lack before each.
COUNTS_ARRIVALS = {"phases"}
# Clocks tick as they please.
UNLIKE = {"clocks"}


@pytest.fixture(scope="module")
def gpu():
    from toolkit.gpu.context import Gpu

    with Gpu() as opened:
        yield opened


EACH = [pytest.param(case, id=case.name, marks=marks(case)) for case in CASES]


@pytest.mark.parametrize("case", EACH)
def test_the_same_machine_code_gives_the_same_bits(gpu, case):
    if not case.runs_on(gpu.device.sm_arch):
        pytest.skip(f"needs sm_{case.minimum_capability}")
    if case.kernel in UNLIKE:
        pytest.skip("reads a clock")
    if not case.kernel.isidentifier():
        pytest.skip("a template: nvcc does not tell its symbol")
    arguments = case.make(np.random.default_rng())
    geometry = {
        "grid": case.grid,
        "block": case.block,
        "dynamic_shared_bytes": case.dynamic_shared_bytes,
    }
    launch = Launch(
        source=case.source,
        name=case.file,
        kernel=case.kernel,
        geometry=Geometry(**geometry),
        arguments=arguments,
    )
    with OnGpu(task_of(launch), gpu) as held:
        measured = held.execution()
    simulated = simulate(measured.cubin, **geometry, arguments=arguments)
    opcodes = {i.opcode for i in simulated.instructions if i.executed}
    if opcodes & CHECKED_BY_REFERENCE or case.kernel in COUNTS_ARRIVALS:
        case.check(simulated.outputs, arguments)
        return
    for index, (ours, theirs) in enumerate(zip(simulated.outputs, measured.outputs, strict=True)):
        same = ours.view(np.uint8) == theirs.view(np.uint8)
        assert same.all(), f"array {index}: {np.count_nonzero(~same)} bytes differ"
