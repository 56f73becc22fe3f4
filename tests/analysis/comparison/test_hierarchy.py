"""The hierarchical roofline: bytes per level, the roof of each, and which one is lowest."""

from dataclasses import replace

import pytest

from analysis.access import Pattern, Tiling, access_counts
from analysis.comparison.hierarchy import (
    MOVEMENTS,
    measured_hierarchy,
    moved_bytes,
    predicted_hierarchy,
)
from analysis.devices import MeasuredCeilings, find_device
from analysis.problem import parse_shape
from analysis.records.counters import ALL_COUNTERS
from analysis.theory import theory
from tests import records_by_hand
from tests.records_by_hand import counted

SHAPE = parse_shape("1024")  # 2^31 FLOP
H200 = find_device("h200")

COUNTERS = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 3 * 2**20,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 2**20,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 3 * 2**20,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 2**20,
    "lts__t_sectors_srcunit_tex_op_read.sum": 3 * 2**18,
    "lts__t_sectors_op_read.sum": 2**30,  # crosses between partitions too: of no account
    "lts__t_sectors_op_write.sum": 2**18,
    "dram__bytes_read.sum": 3 * 2**20,
    "dram__bytes_write.sum": 2**20,
}


def record(*, is_small=False, **grades):
    """One thread per element, with counters of one grade or another."""
    counts = access_counts(Tiling(block_m=32, block_n=32), SHAPE)
    values = {
        "executed_shape": replace(SHAPE, n=2048),  # padded: no useful work
        "theory": theory(counts, (), H200, blocks=33 if is_small else None),
    }
    return records_by_hand.record(SHAPE, **(values | grades))


def simulated(**counters):
    return records_by_hand.simulated(COUNTERS | counters)


def predicted(made=None, device=H200, **counters):
    """Predicted hierarchy of a record, or of one with simulated counters."""
    return predicted_hierarchy(made or record(simulated=simulated(**counters)), device)


def test_the_counters_are_known_ones():
    for movement in MOVEMENTS.values():
        assert set(movement.counters) <= ALL_COUNTERS.keys()


def test_bytes_of_every_level():
    assert moved_bytes(COUNTERS) == {
        "shared": 2**29,  # 2^22 wavefronts of 128 B
        "L1": 2**27,  # 2^22 sectors of 32 B
        "L2": 2**25,  # 2^20 sectors of 32 B
        "DRAM": 2**22,
    }


def test_spills_move_through_l1():
    spilled = COUNTERS | {"l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": 2**20}
    assert moved_bytes(spilled)["L1"] == 2**27 + 2**25


def test_a_level_that_was_not_counted_is_absent():
    counters = dict(COUNTERS)
    del counters["lts__t_sectors_op_write.sum"], counters["dram__bytes_read.sum"]
    assert list(moved_bytes(counters)) == ["shared", "L1"]


def test_the_roof_of_a_level_is_its_bandwidth_times_the_intensity():
    found = predicted()
    shared, l1 = found.level("shared"), found.level("L1")
    assert shared.nominal_flop_per_s == pytest.approx(4 * 128 * 132 * 1.98e9)
    assert shared.reached_flop_per_s == pytest.approx(4 * 33.2e12)
    assert l1.nominal_flop_per_s == pytest.approx(16 * 128 * 132 * 1.98e9)  # one data path
    assert found.level("DRAM").nominal_flop_per_s == pytest.approx(512 * 4.8e12)


def test_a_bandwidth_that_is_not_known_gives_no_roof():
    l2 = predicted().level("L2")
    assert l2.nominal_flop_per_s is None
    assert l2.flop_per_s == l2.reached_flop_per_s == pytest.approx(64 * 7.70e12)
    unknown = replace(H200, measured=None)
    l2 = predicted(device=unknown).level("L2")
    assert l2.moved_bytes == 2**25
    assert l2.flop_per_s is None


def test_where_nothing_moves_there_is_no_intensity_and_no_roof():
    idle = dict.fromkeys(MOVEMENTS["shared"].counters, 0)
    shared = predicted(**idle).level("shared")
    assert shared.moved_bytes == 0
    assert shared.flop_per_byte is None
    assert shared.flop_per_s is None


def test_the_lowest_roof_limits():
    found = predicted()
    # FP32 66.9 TFLOP/s is below shared 134, L1 535, L2 493 and DRAM 2,458
    assert found.limiter == "FP32"
    assert found.attainable_flop_per_s == H200.fp32_flop_per_s
    assert found.limiting_level == "shared"
    heavy = {"dram__bytes_read.sum": 2**30 - 2**20}
    found = predicted(**heavy)
    assert found.limiter == "DRAM"  # 2 FLOP/B
    assert found.limiting_level == "DRAM"
    assert found.attainable_flop_per_s == pytest.approx(2 * 4.8e12)


def test_a_roof_of_theory_may_be_lower_than_all_of_the_levels():
    made = record(simulated=simulated())
    low = replace(made.theory, attainable_flop_per_s=1e9, limiter="load/store unit")
    found = predicted(replace(made, theory=low))
    assert (found.limiter, found.attainable_flop_per_s) == ("load/store unit", 1e9)


def test_sms_without_a_block_have_no_part_in_the_roofs_near_them():
    found = predicted(record(is_small=True, simulated=simulated()))
    # 33 of 132 SMs
    assert found.level("shared").nominal_flop_per_s == pytest.approx(33 * 4 * 128 * 1.98e9)
    assert found.level("L1").nominal_flop_per_s == pytest.approx(33 * 16 * 128 * 1.98e9)
    assert found.level("DRAM").nominal_flop_per_s == pytest.approx(512 * 4.8e12)


def test_closed_forms_stand_in_for_what_was_not_simulated():
    made = record()
    sectors = {"load": 8, "store": 4}
    patterns = tuple(
        Pattern(
            space="global",
            operation=operation,
            operand=operand,
            instruction_bytes=4,
            requests=2**20,
            cycles=1,
            sectors=sectors[operation],
            ideal_sectors=4,
        )
        for operation, operand in (("load", "A"), ("load", "B"), ("store", "C"))
    )
    found = predicted(replace(made, theory=replace(made.theory, patterns=patterns)))
    assert found.grade == "theory"
    assert [one.level for one in found.levels] == ["shared", "L1"]
    assert found.level("L1").moved_bytes == 32 * (8 + 8 + 4) * 2**20
    assert found.level("shared").moved_bytes == 0
    assert predicted_hierarchy(replace(made, theory=None), H200) is None


def test_what_hardware_counted_is_a_hierarchy_of_its_own():
    made = record(counted=counted(COUNTERS | {"dram__bytes_read.sum": 7 * 2**20}))
    found = measured_hierarchy(made, H200)
    assert found.grade == "measured"
    assert found.level("DRAM").flop_per_byte == 256  # 2^31 FLOP over 2^23 B
    assert measured_hierarchy(record(), H200) is None
    nothing = record(counted=counted({"smsp__inst_executed.sum": 1}))
    assert measured_hierarchy(nothing, H200) is None


def test_a_kernel_of_a_library_has_no_theory_and_still_levels():
    made = replace(record(counted=counted(COUNTERS)), theory=None)
    found = measured_hierarchy(made, H200)
    assert found.limiter == "FP32"
    assert [one.flop_per_byte for one in found.levels] == [4, 16, 64, 512]


def test_before_volta_l1_has_no_roof():
    pascal = find_device("gtx-1080-ti")
    counts = access_counts(Tiling(block_m=32, block_n=32), SHAPE)
    made = record(simulated=simulated(), theory=theory(counts, (), pascal))
    found = predicted(made, pascal)
    assert found.level("L1").flop_per_s is None
    assert found.level("shared").nominal_flop_per_s == pytest.approx(4 * pascal.shared_bytes_per_s)


def test_reached_ceilings_alone_are_ceilings():
    made = replace(
        find_device("t4"), measured=MeasuredCeilings(source="a benchmark", l2_bytes_per_s=1e12)
    )
    assert predicted(device=made).level("L2").flop_per_s == 64e12
