"""Published times: the kernels that were timed, and the table of what is predicted for them."""

import re
from functools import cache

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.problem import Gemm, parse_shape
from benchmarks.prediction_errors import LEAST_PUBLISHED, of_rung
from kernels.selection import parse_selection
from kernels.variant import Variant
from tests.cubins import cubin_of
from tests.sampling import sampled
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.execution.simulate import simulate
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.matrices import Workload
from validation import ROOT
from validation.timing.published_kernels import FILE, TIMED, rebuilt, timed
from validation.timing.published_times import publications

SIZE = 128  # of the square product that is executed: the largest tile, several phases
AS_MOST = {"rtx-3090": 0.15, "t4": 0.20}  # of mean absolute error, promised
QUICK = {"rtx-3090": 1024, "t4": 4096}  # the size at which the table is predicted again
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


@cache
def image_of(device):
    """All of the kernels for a device."""
    first, arch = next(iter(TIMED.values())), find_device(device).sm_arch
    return cubin_of(FILE.read_text(encoding="utf-8"), first, arch).image


def product(entry, a, b):
    """Product that a kernel computes: the 2D kernel of the notes takes other rows of B."""
    if entry != "notes_coarsened_2d":
        return a @ b
    depth, column = np.arange(SIZE)[:, None], np.arange(SIZE)[None, :]
    # of each phase of 8: two rows of threads go on by two, both from the row of their column
    row = depth // 8 * 8 + column % 128 + depth % 8 // 2 * 2
    return a @ b[row % SIZE, column]


@pytest.mark.parametrize(("device", "rung"), sampled(TIMED, key=lambda timed: timed[0]))
def test_a_rebuilt_kernel_computes_what_its_source_does(device, rung):
    entry = TIMED[device, rung]
    selection, shape = rebuilt(entry, rung), Gemm(m=SIZE, n=SIZE, k=SIZE)
    geometry = selection.variant.geometry({}, shape)
    a, b = np.random.default_rng(0).normal(size=(2, SIZE, SIZE)).astype(np.float32)
    found = simulate(
        Kernel.from_image(image_of(device), entry),
        grid=geometry.grid,
        block=geometry.block,
        arguments=[
            a,
            b,
            np.ones_like(a),
            *(np.int32(SIZE) for _ in range(3)),
            np.float32(1),
            np.float32(0),
        ],
        device=device,
        predict=False,
    )
    assert np.allclose(found.outputs[2], product(entry, a, b), atol=1e-4)


@pytest.mark.parametrize(("device", "rung"), TIMED)
def test_a_rebuilt_kernel_has_the_blocks_of_its_rung(device, rung):
    shape, (own, taken) = parse_shape("512x256x128"), (timed(device, rung), parse_selection(rung))
    assert own.variant.geometry(own.parameters, shape) == taken.variant.geometry(
        taken.parameters, shape
    )


def test_every_kernel_that_its_source_shows_is_rebuilt():
    rungs = {
        (publication.device, timing.rung)
        for publication in publications()
        if publication.device in AS_MOST
        for timing in publication.timings
        if isinstance(parse_selection(timing.rung).variant, Variant)
    }
    assert rungs - set(TIMED) == {("t4", "vectorized:bk=8")}  # not shown
    assert set(TIMED) <= rungs


# The table of docs/validation.md.


def section():
    text = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    return text.partition("## Published times, not fitted")[2].partition("\n## ")[0]


@cache
def table():
    """Predicted over published, by device, rung and size."""
    return {
        (device, rung, size): float(cell)
        for device, part in zip(("rtx-3090", "t4"), section().split("| T4, 4096 |"), strict=True)
        for rung, cells in re.findall(r"^\| ([a-z][^ |]+) \|(.+)\|$", part, flags=re.M)
        for size, cell in zip(
            (1024, 2048, 4096) if device == "rtx-3090" else (4096,), cells.split("|"), strict=True
        )
    }


def test_every_timing_has_a_device_a_rung_and_a_time_for_each_size():
    assert [one.device for one in publications()] == ["t4", "gtx-1080-ti", "rtx-3090"]
    for publication in publications():
        assert find_device(publication.device).key == publication.device
        assert publication.source
        assert publication.caveat
        for timing in publication.timings:
            parse_selection(timing.rung)
            assert len(timing.seconds) == len(publication.sizes)
            assert all(0 < seconds < 1 for seconds in timing.seconds)


def published():
    for publication in publications():
        for timing in publication.timings if publication.device in AS_MOST else ():
            for size, seconds in zip(publication.sizes, timing.seconds, strict=True):
                known = isinstance(parse_selection(timing.rung).variant, Variant)
                if known and size >= LEAST_PUBLISHED:
                    yield publication.device, timing.rung, size, seconds


@pytest.mark.parametrize("device", AS_MOST)
def test_published_times_are_predicted_as_well_as_promised(device):
    errors = {key: abs(ratio - 1) for key, ratio in table().items() if key[0] == device}
    assert set(errors) == {tuple(found[:3]) for found in published() if found[0] == device}
    mean = sum(errors.values()) / len(errors)
    assert mean <= AS_MOST[device]
    said = [float(percent) for percent in re.findall(r"are ([\d.]+)% off", section())]
    assert any(100 * mean == pytest.approx(percent, abs=0.2) for percent in said)


@cache
def simulator(size):
    return LadderSimulator(Workload(Gemm(m=size, n=size, k=size), seed=0))


@pytest.mark.exhaustive  # the table's errors are tested above
@pytest.mark.parametrize(
    ("device", "rung", "size", "seconds"),
    [found for found in published() if found[2] == QUICK[found[0]]],
)
def test_the_table_is_what_is_predicted(device, rung, size, seconds):
    found = of_rung(simulator(size), timed(device, rung), find_device(device))
    assert found["predicted_s"] / seconds == pytest.approx(table()[device, rung, size], abs=0.006)
