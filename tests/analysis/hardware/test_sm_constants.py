"""The constants of an SM: every one has a source, and those measured are what was recorded."""

import inspect
import re
from statistics import fmean

import pytest

from analysis.devices import DEVICES
from analysis.hardware.sm_constants import CONSTANTS, NAMES, constants_for
from analysis.sm import Numbers
from analysis.traffic.l2 import caches_of
from benchmarks.constants import PARTS, RULES, SM, recorded_errors
from benchmarks.timing_tables import table
from validation import ROOT, recordings

RECORDED = ROOT / "validation/timing/recorded/constants_h200.json"
RUN = recordings.read(RECORDED)
MEASURED = {name: constant["value"] for name, constant in RUN["constants"].items()}
ON_AN_H100 = {
    name: constant["value"]
    for name, constant in recordings.read(RECORDED.with_stem("constants_h100"))["constants"].items()
}
LATER = {
    name: constant["value"]
    for name, constant in recordings.read(RECORDED.with_stem("mechanisms_h200"))[
        "constants"
    ].items()
}
TILES = {
    name: constant["value"]
    for name, constant in recordings.read(RECORDED.with_stem("tiles_h200"))["constants"].items()
}
COLUMNS = {
    name: constant["value"]
    for name, constant in recordings.read(RECORDED.with_stem("columns_h200"))["constants"].items()
}
HOPPER = CONSTANTS["sm_90"]

L1_CLOCKS = MEASURED["l1_hit_latency_cycles"]

# What sm_90 says it has measured, from what was recorded: (expected, relative tolerance).
LOOPS = {
    int(name.split("_")[1]): clocks
    for name, clocks in MEASURED.items()
    if name.startswith("code_") and "one_sm" in name and clocks < 8.4
}
FETCHES = RUN["constants"]["code_48_kib_all_sms_cycles"]["detail"]["cycles_by_warps_per_scheduler"]
FAR_LOOPS = {kib: MEASURED[f"code_{kib}_kib_all_sms_cycles"] for kib in (40, 48, 64, 96, 112, 144)}
FROM_RECORDED = {
    "store_s": (MEASURED["st_word_beside_loads_s"], 0.001),
    "store_line_s": (MEASURED["st_line_beside_loads_s"], 0.001),
    "global_queue": (MEASURED["queue_global_loads_requests"], 0.02),
    "fetch_clocks": (FETCHES["1"], 0.03),
    "fetch_clocks_of_several": (FETCHES["2"], 0.03),
    "far_fetch_clocks": (FAR_LOOPS[144], 0.01),
    "cached_code_bytes": (  # between the last loop of FETCHES and the next larger one
        1024 * max(kib for kib, clocks in FAR_LOOPS.items() if clocks < 20),
        0.15,
    ),
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
        MEASURED["barrier_16_warps_2_blocks_cycles"] / 32,
        0.001,
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
        1 / (LATER["mix_1_loads_0_stores_512_and_512_mib_s"] * DEVICES["h200"].dram_bytes_per_s),
        0.01,
    ),
    "fill_share": (
        2
        * LATER["mix_1_loads_1_stores_512_and_8_mib_s"]
        / LATER["mix_0_loads_1_stores_512_and_8_mib_s"]
        - 1,
        0.1,
    ),  # of the bytes of the loop, the time of stores that is left for what is loaded
    "lookup_clocks": (
        COLUMNS["mix_1_loads_1_stores_of_4_bytes_in_columns_cycles"] / (32 * (1 + 1.65)),
        0.01,
    ),  # a line of a store is looked up 1.65 times (STORED_LOOKUPS)
    "launch_s": (MEASURED["empty_kernel_256_threads_s"], 0.03),
}
FROM_RECORDED |= {
    f"units.{unit}": (clocks, 0.06)
    for unit, clocks in {
        "FMA": 2 * MEASURED["ffma_issue_cycles"],  # on one of two halves
        "FMA_HEAVY": MEASURED["imad_issue_cycles"],
        "FMA_WIDE": MEASURED["imad_wide_issue_cycles"],
        "HALF": MEASURED["hfma2_issue_cycles"],
        "ALU": MEASURED["iadd3_issue_cycles"],
        "FP64": MEASURED["dfma_issue_cycles"],
        "XU": MEASURED["mufu_ex2_issue_cycles"],
    }.items()
}
FROM_RECORDED |= {
    "latencies.XU": (MEASURED["mufu_ex2_latency_cycles"], 0.01),
    "latencies.FP64": (MEASURED["dfma_latency_cycles"], 0.01),
}
FROM_RECORDED |= {
    "next_block_s": (MEASURED["empty_blocks_256_threads_s"], 0.003),
    "fence_clocks": (
        (MEASURED["flag_1_fences_cycles"] - MEASURED["flag_0_fences_cycles"]) / 2,
        0.001,
    ),
    "whole_line_bytes": (  # 16 stores of 8 warps to 8 lines each, where all SMs store
        fmean(value for name, value in TILES.items() if "_stores_of_8_" in name and "_all_" in name)
        / (16 * 8 * 8)
        * HOPPER.write_bytes_per_clock,
        0.005,
    ),
    "part_bytes": (
        128
        * MEASURED["stg_4_of_32_bytes_in_order_16_mib_cycles"]
        / MEASURED["stg_32_all_sms_cycles"],
        0.01,
    ),
    "l2_line_bytes": (  # of what L2 delivers per clock
        MEASURED["gather_32_lines_of_1_sectors_16_mib_cycles"] * HOPPER.l2_bytes_per_clock,
        0.01,
    ),
    "dram_pair_bytes": (
        128
        * MEASURED["gather_32_lines_of_1_sectors_512_mib_cycles"]
        / MEASURED["gather_8_lines_of_4_sectors_512_mib_cycles"],
        0.005,
    ),
    "l1_bytes": (
        1024
        * max(
            int(name.split("_")[3])
            for name, hits in MEASURED.items()
            if name.startswith("l1_hits_again") and hits > 0.5
        ),
        0.001,
    ),
}
FROM_RECORDED |= {
    "constant_miss_latency": (MEASURED["ldc_miss_latency_cycles"], 0.001),
    "constant_line_clocks": (MEASURED["ldc_line_all_sms_cycles"], 0.002),
    "constant_line_clocks_alone": (MEASURED["ldc_line_one_sm_cycles"], 0.005),
}
TENSOR = {
    name: one["value"]
    for name, one in recordings.read(
        ROOT / "validation/timing/recorded/tensor_constants_h200.json"
    )["constants"].items()
}
SHARED_L2 = recordings.read(ROOT / "validation/timing/recorded/l2_sharing_h200.json")["constants"]
FROM_RECORDED |= {
    "merged_l2_bytes_per_clock": (SHARED_L2["l2_shared_12_bytes_per_cycle"]["value"], 0.01),
}
FULL, HALF = (TENSOR[f"wgmma_64_{a}_loads_beside_per_cycle"] for a in ("shared", "registers"))
FROM_RECORDED |= {
    "products_in_flight": (TENSOR["wgmma_in_flight_products"], 0.0),
    "group_fence_clocks": (TENSOR["wgmma_fence_cycles"], 0.02),
    "proxy_fence_clocks": (TENSOR["wgmma_proxy_fence_cycles"], 0.02),
    "product_column_clocks": (TENSOR["wgmma_256_shared_interval_cycles"] / 256, 0.001),
    "product_register_clocks": (TENSOR["wgmma_32_registers_interval_cycles"] - 16, 0.001),
    "least_beside_products": (FULL, 0.05),
    "idle_beside_products": (2 * (HALF - FULL), 0.02),
    "units.TENSOR": (TENSOR["hmma_16816_f32_interval_cycles"], 0.001),
    "units.TENSOR_SHORT": (TENSOR["hmma_1688_f32_interval_cycles"], 0.001),
    "units.TENSOR_DOUBLE": (TENSOR["dmma_1684_interval_cycles"], 0.001),
    "latencies.TENSOR_DOUBLE": (
        TENSOR["dmma_1684_latency_cycles"] - TENSOR["dmma_1684_interval_cycles"],
        0.001,
    ),
}
FROM_H100 = {
    "constant_latency": (ON_AN_H100["ldc_1_words_latency_cycles"] - 5, 0.01),
    "constant_word_latency": (
        (ON_AN_H100["ldc_32_words_latency_cycles"] - ON_AN_H100["ldc_1_words_latency_cycles"]) / 31,
        0.001,
    ),
    "constant_clocks": (ON_AN_H100["ldc_32_words_cycles"] / 32, 0.001),
    "constant_clocks_of_one": (ON_AN_H100["ldc_32_words_one_scheduler_cycles"] / 32, 0.01),
    "least_constant_clocks": (ON_AN_H100["ldc_1_words_one_scheduler_cycles"], 0.01),
    "l2_slice_bytes": (ON_AN_H100["l2_bytes_per_slice"], 0.02),
    "atomic_part_s": (ON_AN_H100["red_u32_word_s"], 0.002),
    "atomic_whole_s": (ON_AN_H100["red_u32_line_s"], 0.01),
    "atomic_sum_s": (ON_AN_H100["red_f32_word_s"], 0.001),
    "atomic_window": (10 / 8 * ON_AN_H100["red_walk_lines"], 0.01),  # 24 lines in 3 windows
}
ASSUMED = {
    *("units.CONTROL", "units.UNIFORM", "units.LSU"),
    *("latencies.UNIFORM", "latencies.CONTROL"),
}
LEFT_OUT = {"lookup_clocks", "fill_share", "dirty_start_s"}  # where L2 has one partition
RUN_OF = "python -m toolkit.microbenchmarks --only "


every_architecture = pytest.mark.parametrize(
    "constants", CONSTANTS.values(), ids=lambda c: c.architecture
)


@every_architecture
def test_every_number_has_a_unit_that_is_the_same_everywhere(constants):
    assert list(constants.entries) == list(NAMES)
    for name, entry in constants.entries.items():
        assert entry.unit == HOPPER.entries[name].unit, name


@every_architecture
def test_what_is_taken_over_says_so_and_is_equal(constants):
    for name, entry in constants.entries.items():
        if entry.kind == "taken over":
            assert (entry.source, entry.value) == ("sm_90", HOPPER.entries[name].value), name
    assert (constants.taken_from is None) == (constants.architecture == "sm_90")
    assert constants.is_fitted == (constants.architecture == "sm_90")


@every_architecture
def test_a_number_that_nobody_measured_says_so(constants):
    assert {n for n, entry in constants.entries.items() if entry.kind == "not measured"} == ASSUMED


@every_architecture
def test_mechanisms_of_an_l2_of_two_partitions_are_left_out_elsewhere(constants):
    left = {name: one.value for name, one in constants.entries.items() if one.kind == "left out"}
    devices = [one for one in DEVICES.values() if one.sm_arch == constants.architecture]
    partitions = {caches_of(one).partitions for one in devices}
    assert left == ({} if partitions == {2} else dict.fromkeys(LEFT_OUT, 0))


def test_a_dirty_l2_serves_the_first_request_later_by_what_was_measured():
    cells = recordings.read(RECORDED.with_stem("l2_states_h200"))["cells"]
    times = {one["kernel"]: one["times_s"] for one in cells if one["mib"] == 1}
    for kernel in ("reads", "copies", "chains"):
        later_s = times[kernel]["dirty"] - times[kernel]["clean"]
        assert HOPPER.dirty_start_s == pytest.approx(later_s, rel=0.05)


@pytest.mark.parametrize("name", FROM_RECORDED | FROM_H100)
def test_constants_are_what_was_measured(name):
    expected, tolerance = (FROM_RECORDED | FROM_H100)[name]
    assert HOPPER.entries[name].value == pytest.approx(expected, rel=tolerance)


def test_all_that_says_measured_is_compared_and_has_its_command():
    says = {name for name, entry in HOPPER.entries.items() if entry.command}
    assert says == set(FROM_RECORDED | FROM_H100)
    for name in says:
        entry, gpu = HOPPER.entries[name], "H100" if name in FROM_H100 else "H200"
        assert entry.kind == "measured"
        assert entry.source.startswith(f"{gpu}, CUDA 13.0")
        assert entry.command.startswith(RUN_OF)
        chosen = entry.command.removeprefix(RUN_OF)
        recorded = (
            ON_AN_H100
            if name in FROM_H100
            else {**MEASURED, **TENSOR, **SHARED_L2, **LATER, **TILES, **COLUMNS}
        )
        assert any(chosen in bench for bench in recorded), name


def test_fitted_numbers_have_the_recorded_errors():
    """After `python -m benchmarks.rules_on_trial ... --errors`: write them in the machine file."""
    errors = recorded_errors()
    fitted = {name: entry for name, entry in HOPPER.entries.items() if entry.kind == "fitted"}
    assert fitted.keys() == {name for rule in RULES.values() for of, name, _ in rule if of == SM}
    for name, entry in fitted.items():
        assert [(SM, name, entry.instead)] == RULES[name]
        assert [error.part for error in entry.errors] == list(PARTS)
        for error in entry.errors:
            recorded = errors[error.part][name]["time"]
            assert error.launches == recorded["cells"]
            expected = recorded.get("with"), recorded.get("without")
            assert (error.with_it, error.without_it) == pytest.approx(expected, abs=5e-5)


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


def test_sms_that_read_the_same_lines_in_step_read_faster():
    """The rule of `ModelledSm.machine`, on what an H200 measured: 1 fetch for 2 SMs, 1 for 4."""
    distinct = SHARED_L2["l2_shared_1_bytes_per_cycle"]["value"]
    for sharers, fetches in ((2, 1), (4, 1), (12, 3), (132, 33)):  # up to four of a GPC
        read = SHARED_L2[f"l2_shared_{sharers}_bytes_per_cycle"]["value"]
        merged_share = fetches / sharers
        assert read == pytest.approx(
            min(HOPPER.merged_l2_bytes_per_clock, distinct / merged_share), rel=0.05
        )
    # without a common GPC nothing is merged, and little where SMs are 1,000 clocks apart
    assert SHARED_L2["l2_shared_4_apart_bytes_per_cycle"]["value"] == pytest.approx(
        distinct, rel=0.01
    )
    late = SHARED_L2["l2_shared_2_delay_1000_bytes_per_cycle"]["value"]
    assert late == pytest.approx(distinct, rel=0.06)


# Where constants are declared, and how they follow from benchmarks.
DECLARED = ("analysis/sm/__init__.py", "analysis/hardware/")


def readers_of(constant):
    """The files of analysis/ and toolkit/ whose code has the name of a constant."""
    word = re.compile(rf"\b{constant}\b")
    comments = {".py": re.compile(r"#.*"), ".c": re.compile(r"/\*.*?\*/", re.DOTALL)}
    for folder in ("analysis", "toolkit"):
        for path in sorted((ROOT / folder).rglob("*.[cp]*")):
            file = path.relative_to(ROOT).as_posix()
            if path.suffix not in comments or file.startswith(DECLARED):
                continue
            if word.search(comments[path.suffix].sub("", path.read_text(encoding="utf-8"))):
                yield file


def test_comments_of_constants_name_every_file_that_reads_them():
    source = inspect.getsource(Numbers)
    commented = re.findall(r"((?: *#:.*\n)+) *(\w+):", source)
    told = {name: re.findall(r"[\w/]+\.(?:c|py)\b", comment) for comment, name in commented}
    assert "shared_latency" in told
    for name, files in told.items():
        assert sorted(files) == sorted(readers_of(name))


CLUSTERS = recordings.read(ROOT / "validation/timing/recorded/cluster_copies_h200.json")[
    "constants"
]


def test_l2_sends_as_much_whichever_block_of_a_cluster_asks():
    """The rule of `Work.copied_for_cluster`: 32 KiB for the cluster, 16 for each block."""

    def received(cluster, of, own):
        name = f"cluster_{cluster}_of_{of}_32_and_own_{own}_all_sms_bytes_per_cycle"
        return CLUSTERS[name]["value"]

    alone = CLUSTERS["cluster_1_alone_48_all_sms_bytes_per_cycle"]["value"]
    for cluster in (2, 4):
        assert received(cluster, "first", 16) == pytest.approx(
            received(cluster, "each", 16), rel=0.05
        )
        sent = received(cluster, "first", 16) * (32 / cluster + 16) / 48  # per SM, on average
        assert sent == pytest.approx(alone, rel=0.1)
    assert received(2, "first", 0) == pytest.approx(2 * alone, rel=0.1)  # as much as one SM asks


def test_a_slice_of_l2_is_as_fast_where_there_are_more():
    """The rule of `l2_bytes_per_clock` for copies past L1."""
    h100_mib, h200_mib = 50, 60
    copied = CLUSTERS["cluster_1_alone_48_all_sms_bytes_per_cycle"]["value"]
    assert copied == pytest.approx(HOPPER.l2_bytes_per_clock * h200_mib / h100_mib, rel=0.01)
    parts = recordings.read(ROOT / "validation/timing/recorded/copies_of_parts_h200.json")
    of_sector = parts["constants"]["copy_rows_of_32_padded_by_0_all_sms_cycles"]["value"] / 16
    assert of_sector == pytest.approx(HOPPER.l2_line_bytes / HOPPER.l2_bytes_per_clock, rel=0.02)
