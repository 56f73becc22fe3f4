"""Predicted times of products of several launches."""

import numpy as np

from analysis.devices import find_device
from analysis.l2_state import L2State
from analysis.timing.predicted import Explanation
from kernels.product import Product
from kernels.split_paths import NARROW, split
from toolkit.execution.path_time import arguments_of, predicted_time
from toolkit.execution.simulator import Simulator
from toolkit.launch.launch import launch_geometry
from toolkit.machine_code.kernel_source import compile_kernel

H200 = find_device("h200")
PRODUCT = Product(m=130, n=70, k=200, transpose_a=True, transpose_b=True)
PLAN = split(PRODUCT, NARROW, 4)


def operands():
    random = np.random.default_rng(3)
    a, b = random.standard_normal(130 * 200), random.standard_normal(200 * 70)
    return {
        "A": a.astype(np.float32),
        "B": b.astype(np.float32),
        "C": np.zeros(130 * 70, np.float32),
    }


def test_no_counter_of_the_launches_depends_on_sums():
    workspace = {"workspace": np.zeros(PLAN.workspace_bytes // 4 + 1, np.float32)}
    for launch in PLAN.launches:
        kernel = compile_kernel(
            launch.source,
            launch.entry,
            target=H200,
            name=launch.file,
            defines=dict(launch.defines),
            options=(),
        )
        with_sums, without = (
            Simulator(arch="sm_90a", outputs=False, sums_decide=decide).run(
                kernel,
                launch_geometry(launch.grid, launch.block, launch.dynamic_shared_bytes),
                arguments_of(launch, PRODUCT, operands() | workspace),
            )
            for decide in (True, False)
        )
        assert with_sums.counters == without.counters


def test_the_time_of_a_call_is_that_of_its_launches():
    found = predicted_time(PLAN, PRODUCT, operands(), H200, L2State.DIRTY, Explanation.NONE)
    warm = predicted_time(PLAN, PRODUCT, operands(), H200, L2State.WARM, Explanation.NONE)
    assert 4e-6 < warm.time_s < found.time_s < 30e-6
    assert found.basis.count("blocks executed") <= 3
    assert found.flop_per_s == 2 * 130 * 70 * 200 / found.time_s
