"""Tensor cores in the model of an SM: against clocks of an H200, and of notes from an H100."""

import pytest

from analysis.hardware.sm_constants import constants_for
from analysis.sm import PRODUCT_ENDS_GROUP, PRODUCT_OF_REGISTERS, Kind, Unit
from tests.analysis.streams_by_hand import EXIT, LDS, QUIET, WAITING_EXIT, clocks, code, ran
from toolkit.microbenchmarks.tensor import FORMS
from validation import ROOT, recordings

RECORDED = ROOT / "validation/timing/recorded/tensor_constants_h200.json"
MEASURED = recordings.read(RECORDED)["constants"]
HOPPER = constants_for("sm_90")
WAIT = {"kind": Kind.PRODUCT_WAIT}
FENCE = {"kind": Kind.PRODUCT_FENCE}


def product(columns, source="shared", ends=False, stall=4):
    argument = columns // 8 - 1
    argument |= PRODUCT_OF_REGISTERS * (source == "registers") | PRODUCT_ENDS_GROUP * ends
    return {"unit": Unit.TENSOR, "kind": Kind.PRODUCT, "argument": argument, "stall": stall}


def group(columns, source, count, warps=4, wait=0):
    """Clocks of a group of `count` products, each of whose warps waits for it."""
    stall = max(4, columns // 8 - 4)  # what compilers write
    table = code(
        product(columns, source, stall=stall),
        product(columns, source, ends=True, stall=stall),
        WAIT | {"argument": wait},
        EXIT,
    )
    return clocks(table, *[[*[0] * (count - 1), 1, 2, 3]] * warps, **QUIET)


@pytest.mark.parametrize("source", ["shared", "registers"])
@pytest.mark.parametrize("columns", [8, 32, 64, 128, 256])
def test_products_follow_each_other_as_on_an_h200(columns, source):
    measured = MEASURED[f"wgmma_{columns}_{source}_interval_cycles"]["value"]
    modelled = (group(columns, source, 24) - group(columns, source, 8)) / 16
    assert modelled == pytest.approx(measured, abs=1.1)


def test_two_warpgroups_share_the_tensor_cores():
    (measured,) = MEASURED["wgmma_64_shared_interval_cycles"]["detail"].values()
    modelled = (group(64, "shared", 24, warps=8) - group(64, "shared", 8, warps=8)) / 16
    assert modelled == pytest.approx(measured, abs=0.1)


@pytest.mark.parametrize(("source", "rest"), [("shared", 43), ("registers", 33)])
def test_a_product_alone_is_waited_for(source, rest):
    # N / 2 + 43 or 33 from issue to the end of the wait; EXIT follows
    assert group(128, source, 1) == 64 + rest + 1 + 1


def test_the_eighth_product_waits_for_the_first():
    table = code(product(64), EXIT)

    def issued(count):
        return clocks(table, *[[*[0] * count, 1]] * 4, **QUIET)

    steps = [issued(count + 1) - issued(count) for count in range(1, 9)]
    assert steps[:6] == [4] * 6  # the second to the seventh product
    # the first leaves 28 + 32 clocks after it was issued, then one every 32 clocks
    assert steps[6:] == [60 - 7 * 4 + 4, 32]


def test_a_warp_waits_for_the_group_before_its_last_one():
    every = {wait: _groups_of_one(64, wait) for wait in (0, 1)}
    assert every[1] < every[0] <= 2 * every[1]


def _groups_of_one(columns, wait):
    table = code(FENCE, product(columns, ends=True), WAIT | {"argument": wait}, EXIT)

    def round_of(times):
        return clocks(table, *[[*[0, 1, 2] * times, 3]] * 4, **QUIET)

    return (round_of(40) - round_of(20)) / 20


@pytest.mark.parametrize(("columns", "measured"), [(64, 53), (128, 73), (256, 130)])
def test_groups_of_one_with_another_in_flight(columns, measured):
    """The notes of an H100 have 53, 73 and 130 clocks, the loop included."""
    assert _groups_of_one(columns, 1) == pytest.approx(measured, rel=0.2)


def test_a_product_begins_with_the_last_of_its_four_warps():
    late = {"stall": 15}
    table = code(product(64, ends=True), WAIT, EXIT, late)
    together = clocks(table, *[[0, 1, 2]] * 4, **QUIET)
    apart = clocks(table, *[[0, 1, 2]] * 3, [*[3] * 10, 0, 1, 2], **QUIET)
    assert apart == together + 150


@pytest.mark.parametrize("columns", [64, 256])
@pytest.mark.parametrize("source", ["shared", "registers"])
def test_loads_get_what_products_leave_of_shared_memory(columns, source):
    """Loads of four warps beside 200 products, with the constants of sm_90."""
    own = ("least_beside_products", "idle_beside_products")
    machine = QUIET | {name: getattr(HOPPER, name) for name in own}
    table = code(
        product(columns, source), product(columns, source, ends=True), WAIT, EXIT,
        LDS | {"write_barrier": 7}, WAITING_EXIT,
    )  # fmt: skip
    loads = 100
    warps = [[*[0] * 199, 1, 2, 3]] * 4 + [[*[(4, 1)] * loads, 5]] * 4
    found = ran(table, *warps, **machine)
    beside = clocks(table, *warps, **machine)
    alone = clocks(table, *warps[:4], **machine)
    assert found.load_store_busy == found.shared_busy == 4 * loads
    assert beside >= alone
    measured = MEASURED[f"wgmma_{columns}_{source}_loads_beside_per_cycle"]["value"]
    interval = MEASURED[f"wgmma_{columns}_{source}_interval_cycles"]["value"]
    reads = columns / 4 + 16 * (source == "shared")
    assert found.product_reads == 200 * reads  # past the load/store unit
    share = HOPPER.least_beside_products + HOPPER.idle_beside_products * (1 - reads / interval)
    assert share == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize("form", FORMS)
def test_intervals_of_products_of_a_warp_are_those_of_an_h200(form):
    """Those of the machine file, as `with_clocks` gives them."""
    unit, times = _unit_of(form)
    measured = MEASURED[f"{form}_interval_cycles"]["value"]
    assert HOPPER.units[unit] * times == pytest.approx(measured, abs=0.02)


def _unit_of(form):
    name, shape, *rest = form.split("_")
    if name == "dmma":
        return Unit.TENSOR_DOUBLE, {"884": 1, "1684": 1, "1688": 2, "16816": 4}[shape]
    is_long = shape in ("16832", "168256") or (shape, name) == ("16816", "hmma")
    is_long = is_long or (shape == "1688" and rest == ["tf32"])
    return (Unit.TENSOR if is_long else Unit.TENSOR_SHORT), 1


def test_warps_of_a_scheduler_share_its_tensor_core():
    table = code({"unit": Unit.TENSOR, "pipe_clocks": 6, "stall": 1}, EXIT)
    one, two = (clocks(table, *[[*[0] * 60, 1], *[[1]] * 3] * warps, **QUIET) for warps in (1, 2))
    assert two - one == pytest.approx(360, abs=6)
    ran_both = ran(table, [*[0] * 60, 1], **QUIET)
    assert ran_both.unit_busy[Unit.TENSOR] == 360
