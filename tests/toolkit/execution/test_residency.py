"""Blocks that are resident at a time, without a device: those of the largest one."""

from types import SimpleNamespace

import pytest

from analysis.comparison import accuracy
from analysis.devices import DEVICES
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.occupancy import Resources
from tests.refusals import refusal
from toolkit.execution.residency import most_resident
from toolkit.launch.checks import check_fits, check_shared


def resident(device, architecture, blocks, shared_bytes):
    """Blocks of 1,024 threads that are resident at a time."""
    resources = SimpleNamespace(registers_per_thread=32, static_shared_bytes=shared_bytes)
    kernel = SimpleNamespace(architecture=architecture, resources=resources)
    geometry = Geometry.of(blocks, 1024)
    bound = SimpleNamespace(clusters=blocks, cluster_blocks=1, geometry=geometry)
    return most_resident(device, kernel, bound)


@pytest.mark.parametrize(
    ("device", "architecture", "expected"),
    [
        (None, "sm_86", 84),  # of an RTX A6000, one block of 1,536 threads per SM
        ("rtx-3090", "sm_86", 82),
        (None, "sm_90a", 264),  # 132 SMs, two blocks of 2,048 threads each
        ("h100-pcie", "sm_90", 228),
        (None, "sm_103", 1000),  # all: nobody knows its limits
    ],
)
def test_blocks_are_resident_as_on_the_largest_device(device, architecture, expected):
    found = DEVICES[device] if device else None
    assert resident(found, architecture, 1000, 0) == expected


def test_a_block_that_does_not_fit_is_refused_later():
    assert resident(None, "sm_86", 1000, 2**20) == 1000


def test_what_is_refused_does_not_depend_on_how_good_predictions_are(monkeypatch):
    monkeypatch.setattr(accuracy, "ACCURACIES", ())
    assert "sm_86 has 101,376" in refusal(InputError, check_shared, "k", 0, 103_424, "sm_86")
    assert "sm_103 has 232,448" in refusal(InputError, check_shared, "k", 0, 2**20, "sm_103")
    resources = Resources(
        architecture="sm_86",
        compiler="",
        registers_per_thread=65,
        static_shared_bytes=0,
        local_bytes=0,
    )
    launch = {"max_threads": None, "required_block": None, "cluster": (1, 1, 1), "arch": "sm_86"}
    assert refusal(InputError, check_fits, "k", Geometry.of(1, 1024), resources, **launch) == (
        "k: block of 1024 threads with 65 registers each takes 73728, more than the 65536 of one "
        "SM of sm_86: launch smaller blocks or compile with __launch_bounds__"
    )
