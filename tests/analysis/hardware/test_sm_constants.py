"""The constants of an SM: every one has a source, and those measured are what was recorded."""

import re
from dataclasses import fields

import pytest

from analysis.devices import DEVICES
from analysis.hardware.sm_constants import CONSTANTS, SmConstants, constants_for
from analysis.sm import Unit
from benchmarks.timing_tables import table
from validation import ROOT, recordings

RECORDED = ROOT / "validation/timing/recorded/constants_h200.json"
RUN = recordings.read(RECORDED)
MEASURED = {name: constant["value"] for name, constant in RUN["constants"].items()}
ABOUT_THE_RECORD = {"architecture", "taken_from", "is_fitted", "sources"}
HOPPER = CONSTANTS["sm_90"]

L1_CLOCKS = MEASURED["l1_hit_latency_cycles"]

# What sm_90 says it has measured, from what was recorded: (expected, relative tolerance).
LOOPS = {
    int(name.split("_")[1]): clocks
    for name, clocks in MEASURED.items()
    if name.startswith("code_") and "one_sm" in name and clocks < 8.4
}
FETCHES = RUN["constants"]["code_48_kib_all_sms_cycles"]["detail"]["cycles_by_warps_per_scheduler"]
FROM_RECORDED = {
    "global_queue": (MEASURED["queue_global_loads_requests"], 0.02),
    "fetch_clocks": (FETCHES["1"], 0.03),
    "fetch_clocks_of_several": (FETCHES["2"], 0.03),
    "l2_latency": (MEASURED["l2_hit_latency_cycles"], 0.01),
    "operand_clocks": (
        (MEASURED["sts_128_one_scheduler_cycles"] - MEASURED["sts_32_one_scheduler_cycles"]) / 3,
        0.01,
    ),  # 5 registers instead of 2
    "bank_count": (MEASURED["ffma_banks_even_even_odd_cycles"], 0.03),
    "fma_halves": (2 / MEASURED["ffma_beside_imad_issue_cycles"], 0.02),
    "write_slots": (  # beside 16 multiply-adds, less its own slot
        (MEASURED["lds_128_beside_16_ffma_cycles"] - 1) / 4,
        0.25,
    ),
    "register_latency": (
        (MEASURED["lds_128_latency_cycles"] - MEASURED["lds_32_latency_cycles"]) / 3,
        0.001,
    ),
    "shared_latency": (MEASURED["lds_32_latency_cycles"], 0.001),
    "l1_latency": (L1_CLOCKS, 0.001),
    "code_bytes": (
        1024 * max(kib for kib, clocks in LOOPS.items() if clocks < 8.2),
        0.07,
    ),  # 30 KiB and the loop itself: the next larger one is slower
    "atomic_latency": (MEASURED["atom_add_latency_cycles"], 0.001),
    "shared_atomic_latency": (
        MEASURED["atoms_add_1_ways_latency_cycles"],
        0.001,
    ),
    "barrier_latency": (
        2 * MEASURED["barrier_1_warps_cycles"] - MEASURED["barrier_2_warps_cycles"],
        0.03,
    ),  # without any warp; and a jump for 64 of them
    "barrier_per_warp": (
        (MEASURED["barrier_32_warps_cycles"] - MEASURED["barrier_16_warps_cycles"]) / 16,
        0.001,
    ),
    "barrier_unit_clocks": (
        MEASURED["barrier_8_warps_8_blocks_cycles"] / 64,
        0.02,
    ),
    "block_start": (
        RUN["constants"]["block_gap_32_threads_cycles"]["detail"]["deciles"][1],
        0.03,
    ),  # the least of the gaps on a full device
    "block_interval": (
        MEASURED["block_turnover_32_threads_cycles"] / 32,
        0.02,
    ),
    "request_clocks": (MEASURED["lds_32_cycles"], 0.001),
    "load_clocks": (MEASURED["l1_32_rows_1_cycles"], 0.01),
    "store_line_bytes": (
        MEASURED["stg_32_lines_one_sm_cycles"] / 32 * HOPPER.most_write_bytes_per_clock,
        0.01,
    ),
    "most_l2_bytes_per_clock": (
        MEASURED["l2_read_128_one_sm_bytes_per_cycle"],
        0.01,
    ),
    "write_bytes_per_clock": (
        128 / MEASURED["stg_32_all_sms_cycles"],
        0.01,
    ),
    "most_write_bytes_per_clock": (
        128 / MEASURED["stg_32_one_sm_cycles"],
        0.01,
    ),
    "dram_efficiency": (
        MEASURED["dram_read_bytes_per_s"] / DEVICES["h200"].dram_bytes_per_s,
        0.03,
    ),
    "launch_s": (MEASURED["empty_kernel_256_threads_s"], 0.03),
}
# Whole records of units, by what was measured of one instruction of each.
UNIT_CLOCKS = {
    Unit.FMA: 2 * MEASURED["ffma_issue_cycles"],  # on one of two halves
    Unit.FMA_HEAVY: MEASURED["imad_issue_cycles"],
    Unit.FMA_WIDE: MEASURED["imad_wide_issue_cycles"],
    Unit.HALF: MEASURED["hfma2_issue_cycles"],
    Unit.ALU: MEASURED["iadd3_issue_cycles"],
    Unit.FP64: MEASURED["dfma_issue_cycles"],
    Unit.XU: MEASURED["mufu_ex2_issue_cycles"],
}
UNIT_LATENCIES = {
    Unit.XU: MEASURED["mufu_ex2_latency_cycles"],
    Unit.FP64: MEASURED["dfma_latency_cycles"],
}


every_architecture = pytest.mark.parametrize(
    "constants", CONSTANTS.values(), ids=lambda c: c.architecture
)


@every_architecture
def test_every_constant_has_a_source(constants):
    wanted = {field.name for field in fields(SmConstants)} - ABOUT_THE_RECORD
    assert set(constants.sources) == wanted
    assert all(source.strip() for source in constants.sources.values())
    assert set(constants.units) == set(Unit)


@every_architecture
def test_what_is_taken_over_says_so_and_is_equal(constants):
    """A source that says "as on sm_90" has sm_90's value; other values have their own source."""
    for name, source in constants.sources.items():
        taken = source.startswith("as on ")
        assert taken <= (getattr(constants, name) == getattr(HOPPER, name)), name
    assert (constants.taken_from is None) == (constants.architecture == "sm_90")
    assert constants.is_fitted == (constants.architecture == "sm_90")


@pytest.mark.parametrize("name", FROM_RECORDED)
def test_constants_are_what_was_measured(name):
    expected, tolerance = FROM_RECORDED[name]
    assert getattr(HOPPER, name) == pytest.approx(expected, rel=tolerance)


def test_units_take_the_clocks_that_were_measured():
    for unit, clocks in UNIT_CLOCKS.items():
        assert HOPPER.units[unit] == pytest.approx(clocks, rel=0.06), unit
    for unit, clocks in UNIT_LATENCIES.items():
        assert HOPPER.latencies[unit] == pytest.approx(clocks, rel=0.01), unit


def test_all_that_says_measured_on_an_h200_is_compared():
    says = {
        name for name, source in HOPPER.sources.items() if re.match("measured on an H200", source)
    }
    assert says == set(FROM_RECORDED) | {"units", "latencies"}


@every_architecture
def test_constants_are_possible(constants):
    assert constants.l2_bytes_per_clock <= constants.most_l2_bytes_per_clock
    assert constants.write_bytes_per_clock <= constants.most_write_bytes_per_clock
    assert 0 < constants.dram_efficiency <= 1
    assert 1 <= constants.sector_clocks <= constants.load_clocks
    assert constants.l1_bytes >= max(
        device.shared_bytes_per_sm
        for device in DEVICES.values()
        if device.sm_arch == constants.architecture
    )


def test_every_device_of_the_database_has_constants():
    for device in DEVICES.values():
        assert constants_for(device.sm_arch).architecture == device.sm_arch


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("sm_72", "sm_70"), ("sm_61", "sm_70"), ("sm_87", "sm_86"), ("sm_103", "sm_100")],
)
def test_an_unknown_architecture_gets_the_nearest(asked, nearest):
    found = constants_for(asked)
    assert (found.architecture, found.taken_from, found.is_fitted) == (asked, nearest, False)
    assert found.units == CONSTANTS[nearest].units


def test_a_known_architecture_gets_its_own():
    assert constants_for("sm_90") is HOPPER


def test_the_document_has_the_constants_of_the_code():
    """After a change: python -m benchmarks.timing_tables prints the table."""
    text = (ROOT / "docs/timing.md").read_text(encoding="utf-8")
    assert "\n".join(table()) in text
