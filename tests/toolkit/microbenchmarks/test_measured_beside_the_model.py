"""Microbenchmarks of tensor cores and copies take as long in the model as on an H200."""

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.hardware.sm_constants import CONSTANTS
from analysis.sm import Unit
from analysis.timing.modelled_sm import LOCAL_READ_FROM
from analysis.timing.predicted import Explanation
from toolkit.execution.simulator import Simulator
from toolkit.launch.launch import launch_geometry
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.microbenchmarks import copies
from toolkit.microbenchmarks.tensor import BESIDE, COUNT
from validation import ROOT, recordings

H200 = find_device("h200")
RECORDED = ROOT / "validation" / "timing" / "recorded"
BESIDE_MEASURED = recordings.read(RECORDED / "tiles_h200.json")["constants"]
LOCAL = recordings.read(RECORDED / "local_memory_h200.json")["constants"]
COHERENT = recordings.read(RECORDED / "coherent_loads_h200.json")["constants"]
COPIES_MEASURED = recordings.read(RECORDED / "copies_h200.json")["cycles"]
FEW, MANY = 32, 96  # rounds


def clocks(kernel, warps, arguments, dynamic=0):
    """Clocks of one block in the model for a further round."""

    def of(rounds):
        simulator = Simulator(
            arch=None, blocks="all", device=H200, outputs=False, explanation=Explanation.NONE
        )
        found = simulator.run(
            kernel, launch_geometry((1, 1, 1), (32 * warps, 1, 1), dynamic), arguments(rounds)
        )
        return found.predicted.cycles

    return (of(MANY) - of(FEW)) / (MANY - FEW)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("op", "within"), [("ffma", 0.02), ("iadd", 0.07)])
def test_products_wait_for_the_banks_that_others_read(op, within, count):
    probe = BESIDE[op, count]
    kernel = compile_kernel(probe.source, probe.name, target=H200)

    def arguments(rounds):
        noted, sink = np.zeros(16, np.int64), np.zeros(65536, np.uint32)
        offsets, memory = np.zeros(4096, np.int32), np.zeros(4096, np.int8)
        return [noted, sink, offsets, memory, np.int32(rounds), np.int32(0)]

    products = COUNT // 2 * 2  # of the two warps of a scheduler
    measured = BESIDE_MEASURED[f"hmma_16816_f32_beside_{count}_{op}_cycles"]["value"]
    assert clocks(kernel, 8, arguments) / products == pytest.approx(measured, rel=within)


@pytest.mark.parametrize(
    ("name", "row", "pad", "shift"),
    [
        ("copy_rows_of_128_padded_by_16_cycles", 128, 16, 0),
        ("copy_rows_of_128_shifted_by_16_cycles", 128, 0, 16),
        ("copy_rows_of_64_padded_by_0_cycles", 64, 0, 0),
        ("copy_rows_of_64_padded_by_16_cycles", 64, 16, 0),
        ("copy_rows_of_64_shifted_by_16_cycles", 64, 0, 16),
    ],
)
def test_copies_take_a_clock_for_each_write(name, row, pad, shift):
    pitch, rows = row + pad, copies.COPIES * 512 // row
    layout = {"ROW": row, "SHARED_PITCH": pitch, "SHIFT": shift, "SWIZZLE": 0}
    defines = layout | {"LANE_BYTES": 16, "TURNS": copies.TURNS}
    kernel = compile_kernel(copies.SOURCE, "copies", target=H200, defines=defines)

    def arguments(rounds):
        memory = np.zeros(copies.WARPS * rows * copies.PITCH + 4096, np.uint8)
        return [np.zeros(2 * copies.WARPS, np.int64), memory, np.int32(rounds)]

    dynamic = copies.WARPS * (rows * pitch + 128)
    found = clocks(kernel, copies.WARPS, arguments, dynamic) / copies.WARPS / copies.COPIES
    assert found == pytest.approx(COPIES_MEASURED[name], rel=0.1)


def test_conversions_of_integers_take_as_long_as_other_special_functions():
    measured = LOCAL["i2f_up_issue_cycles"]["value"]
    assert CONSTANTS["sm_90"].units[Unit.XU] == pytest.approx(measured, rel=0.01)


def test_a_part_of_39_and_43_megabytes_of_local_memory_comes_from_dram():
    """64 threads per SM follow it. In the model, none of less than 0.75 of L2 does, 47 MB."""
    constants, megabytes = CONSTANTS["sm_90"], 132 * 64 * 4 / 1e6
    before = constants.l2_latency
    for words in (1152, 1280):
        assert words * megabytes < LOCAL_READ_FROM * H200.l2_bytes / 1e6
        measured = LOCAL[f"local_follow_{words}_words_cycles"]["value"]
        assert before < measured < constants.l2_latency + constants.dram_latency
        before = measured


def test_a_load_with_the_scope_of_the_system_queues_twice_as_long():
    of_device, of_system = (COHERENT[f"coherent_load_{s}_s"]["value"] for s in ("gpu", "sys"))
    assert of_system == pytest.approx(2 * of_device, rel=0.01)
