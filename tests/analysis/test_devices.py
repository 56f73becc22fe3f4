"""The device database, and the records of GPUs that a driver describes."""

import re
from dataclasses import fields, replace

import pytest

from analysis.devices import (
    DEVICES,
    Device,
    DriverFacts,
    Limits,
    device_from_driver,
    find_device,
    limits_of,
    most_sms,
    nearest_compilable,
)
from analysis.errors import InputError, UnknownNameError
from tests.refusals import refusal

# `key` is this project's own name, `measured` and `constants` have theirs, `sources` is all others.
SOURCED_FIELDS = {field.name for field in fields(Device)} - {
    *("key", "measured", "sources", "constants"),
}

every_device = pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.key)


# What records and drivers say in the same words.
SAID_ALIKE = [
    "compute_capability", "sm_count", "l2_bytes", "dram_bytes", "max_threads_per_sm",
    "registers_per_sm", "shared_bytes_per_sm", "shared_bytes_per_block",
    "shared_bytes_per_block_optin",
]  # fmt: skip


def driver_facts(device, **changes):
    """Facts of a driver for a GPU that is exactly as its record says."""
    facts = {name: getattr(device, name) for name in SAID_ALIKE}
    facts |= {"name": device.driver_names[0], "clock_hz": device.boost_clock_hz}
    facts |= {"memory_clock_hz": 1e9, "memory_bus_width_bits": 256}
    return DriverFacts(**facts | changes)


A100_80GB_PCIE = DriverFacts(
    name="NVIDIA A100 80GB PCIe",
    compute_capability=(8, 0),
    sm_count=108,
    clock_hz=1410e6,
    memory_clock_hz=1512e6,
    memory_bus_width_bits=5120,
    l2_bytes=41_943_040,
    dram_bytes=85_097_971_712,
    max_threads_per_sm=2048,
    registers_per_sm=65_536,
    shared_bytes_per_sm=167_936,
    shared_bytes_per_block=49_152,
    shared_bytes_per_block_optin=166_912,
    max_blocks_per_sm=32,
    reserved_shared_bytes_per_block=1024,
)


def assert_complete(device):
    assert set(device.sources) == SOURCED_FIELDS
    assert all(len(source) > 10 for source in device.sources.values()), device.sources
    may_be_none = {"l2_bytes_per_s", "reserved_shared_bytes_per_block"}
    may_be_none |= {"sustained_clock_hz", "tensor_clock_hz", "tensor_flop_per_s"}
    for name in SOURCED_FIELDS - may_be_none:
        assert getattr(device, name), name  # neither empty nor 0


# --- the database -----------------------------------------------------------------------------


def test_the_database_holds_the_devices_that_were_promised():
    assert set(DEVICES) == {
        "gtx-1080-ti",
        "t4",
        "v100",
        "rtx-3090",
        "rtx-a6000",
        "a100-40gb",
        "a100-80gb",
        "rtx-4090",
        "l4",
        "l40s",
        "h100-pcie",
        "h100-sxm",
        "h200",
        "b200",
        "rtx-5090",
    }


@every_device
def test_every_field_has_a_value_and_a_source(device):
    assert_complete(device)


@every_device
def test_the_key_of_a_record_is_its_key_in_the_database(device):
    assert DEVICES[device.key] is device


@every_device
def test_nominal_flop_rate_is_two_per_lane_and_clock(device):
    lanes = device.fp32_lanes_per_sm * device.sm_count
    # datasheets round to three digits
    assert device.fp32_flop_per_s == pytest.approx(2 * lanes * device.boost_clock_hz, rel=0.01)


def test_a_device_holds_its_boost_clock_where_nothing_else_is_known():
    held = {key: device.held_clock_hz for key, device in DEVICES.items()}
    boost = {key: device.boost_clock_hz for key, device in DEVICES.items()}
    assert held == boost | {"t4": 585e6}


def test_a_card_that_boosts_higher_holds_that_or_what_its_power_limit_leaves():
    rtx_3090 = driver_facts(DEVICES["rtx-3090"], clock_hz=1860e6)
    assert device_from_driver(rtx_3090).held_clock_hz == 1860e6
    t4 = driver_facts(DEVICES["t4"], clock_hz=1600e6)
    assert device_from_driver(t4).held_clock_hz == 585e6


@every_device
def test_the_limits_of_a_block_fit_into_an_sm(device):
    assert device.max_threads_per_block <= device.max_threads_per_sm
    assert device.max_threads_per_sm % 32 == 0
    assert device.shared_bytes_per_block <= device.shared_bytes_per_block_optin
    block = device.shared_bytes_per_block_optin + device.reserved_shared_bytes_per_block
    assert block <= device.shared_bytes_per_sm
    assert device.shared_bytes_per_sm % device.shared_allocation_unit == 0
    assert device.registers_per_sm % device.register_allocation_unit == 0


def test_measured_ceilings_stay_below_nominal_ones():
    measured = {key: device.measured for key, device in DEVICES.items() if device.measured}
    assert set(measured) == {"h100-sxm", "h200"}
    nominal, reached = DEVICES["h100-sxm"], measured["h100-sxm"]
    assert "H100 80GB HBM3" in reached.source
    for name in ("fp32_flop_per_s", "dram_bytes_per_s", "shared_bytes_per_s"):
        assert 0.8 * getattr(nominal, name) < getattr(reached, name) < getattr(nominal, name)


def test_no_name_belongs_to_two_devices():
    for device in DEVICES.values():
        for name in (device.key, device.name, *device.driver_names):
            assert find_device(name) is device


@pytest.mark.parametrize(
    ("key", "warps_per_sm", "blocks_per_sm", "shared_kib_per_sm", "optin_kib"),
    [
        # Programming Guide, Technical Specifications per Compute Capability
        ("gtx-1080-ti", 64, 32, 96, 48),  # 6.1
        ("v100", 64, 32, 96, 96),  # 7.0
        ("t4", 32, 16, 64, 64),  # 7.5
        ("a100-80gb", 64, 32, 164, 163),  # 8.0
        ("rtx-3090", 48, 16, 100, 99),  # 8.6
        ("rtx-4090", 48, 24, 100, 99),  # 8.9
        ("h200", 64, 32, 228, 227),  # 9.0
        ("b200", 64, 32, 228, 227),  # 10.0
        ("rtx-5090", 48, 24, 100, 99),  # 12.0
    ],
)
def test_limits_of_the_compute_capability(
    key, warps_per_sm, blocks_per_sm, shared_kib_per_sm, optin_kib
):
    device = DEVICES[key]
    assert device.max_warps_per_sm == warps_per_sm
    assert device.max_blocks_per_sm == blocks_per_sm
    assert device.shared_bytes_per_sm == shared_kib_per_sm * 1024
    assert device.shared_bytes_per_block_optin == optin_kib * 1024
    assert device.registers_per_sm == 65_536
    assert device.max_registers_per_thread == 255


@pytest.mark.parametrize(("key", "unit", "reserved"), [("t4", 256, 0), ("a100-40gb", 128, 1024)])
def test_shared_memory_is_reserved_and_cut_finer_from_ampere_on(key, unit, reserved):
    assert DEVICES[key].shared_allocation_unit == unit
    assert DEVICES[key].reserved_shared_bytes_per_block == reserved


@pytest.mark.parametrize(
    ("key", "transfers_per_s_and_pin", "bus_bits"),
    [
        ("gtx-1080-ti", 11e9, 352),
        ("t4", 2 * 5001e6, 256),  # two transfers per clock
        ("v100", 2 * 877e6, 4096),
        ("rtx-3090", 19.5e9, 384),
        ("rtx-a6000", 16e9, 384),
        ("a100-40gb", 2 * 1215e6, 5120),
        ("a100-80gb", 2 * 1593e6, 5120),
        ("rtx-4090", 21e9, 384),
        ("l4", 2 * 6251e6, 192),
        ("l40s", 18e9, 384),
        ("h100-pcie", 2 * 1593e6, 5120),
        ("h100-sxm", 2 * 2619e6, 5120),
        ("h200", 2 * 3201e6, 6016),
        ("b200", 2 * 3996e6, 7680),
        ("rtx-5090", 28e9, 512),
    ],
)
def test_dram_bandwidth_is_that_of_its_pins(key, transfers_per_s_and_pin, bus_bits):
    expected = transfers_per_s_and_pin * bus_bits / 8
    assert DEVICES[key].dram_bytes_per_s == pytest.approx(expected, rel=0.005)


def test_l2_bandwidth_is_nominal_only_where_nvidia_publishes_one():
    nominal = {key for key, device in DEVICES.items() if device.l2_bytes_per_s is not None}
    assert nominal == {"v100", "a100-40gb", "a100-80gb"}
    # "2.3x the L2 cache read bandwidth of V100": 5,120 · 1,410 MHz over 2,048 · 1,530 MHz
    ratio = DEVICES["a100-40gb"].l2_bytes_per_s / DEVICES["v100"].l2_bytes_per_s
    assert ratio == pytest.approx(2.3, rel=0.01)


# --- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "rtx-3090",
        "RTX 3090",
        "rtx_3090",
        " Rtx  3090 ",
        "NVIDIA GeForce RTX 3090",
        "GeForce RTX 3090",
        "nvidia_geforce_rtx_3090",
    ],
)
def test_a_device_is_found_under_its_names(name):
    assert find_device(name) is DEVICES["rtx-3090"]


@pytest.mark.parametrize(
    ("name", "suggestion"), [("rtx-3091", "rtx-3090"), ("RTX 409", "rtx-4090"), ("h20", "h200")]
)
def test_an_unknown_device_is_an_error_with_a_suggestion(name, suggestion):
    with pytest.raises(UnknownNameError, match=f"did you mean '{suggestion}'") as error:
        find_device(name)
    assert repr(name) in str(error.value)
    assert str(error.value).endswith("? (`python -m toolkit list devices` lists all)")


def test_a_device_like_no_other_is_an_error_that_lists_all():
    with pytest.raises(UnknownNameError) as error:
        find_device("qqq")
    assert str(error.value) == f"unknown device 'qqq': choose one of {', '.join(DEVICES)}"


# --- GPUs that a driver describes -------------------------------------------------------------


@every_device
def test_a_gpu_as_in_its_record_keeps_its_record(device):
    for name in device.driver_names:
        assert device_from_driver(driver_facts(device, name=name)) == device


@pytest.mark.parametrize(
    ("driver_name", "key"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("A100-SXM4-40GB", "a100-40gb"),  # before release 470 there was no "NVIDIA"
        ("Tesla V100-SXM2-32GB", "v100"),
        ("Tesla T4", "t4"),
        ("GeForce GTX 1080 Ti", "gtx-1080-ti"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
    ],
)
def test_driver_names_lead_to_records(driver_name, key):
    assert device_from_driver(driver_facts(DEVICES[key], name=driver_name)).key == key


def test_h200_as_its_driver_reports_it():
    # cuDeviceGetAttribute of driver 580 on an H200
    device = device_from_driver(
        DriverFacts(
            name="NVIDIA H200",
            compute_capability=(9, 0),
            sm_count=132,
            clock_hz=1980e6,
            memory_clock_hz=3201e6,
            memory_bus_width_bits=6016,
            l2_bytes=62_914_560,
            dram_bytes=150_109_880_320,
            max_threads_per_sm=2048,
            registers_per_sm=65_536,
            shared_bytes_per_sm=233_472,
            shared_bytes_per_block=49_152,
            shared_bytes_per_block_optin=232_448,
            max_blocks_per_sm=32,
            reserved_shared_bytes_per_block=1024,
        )
    )
    record = DEVICES["h200"]
    assert device.dram_bytes == 150_109_880_320
    assert device.sources["dram_bytes"] == "CUDA driver: cuDeviceTotalMem"
    assert replace(device, dram_bytes=record.dram_bytes, sources=record.sources) == record


def test_the_driver_overrules_the_record_and_says_so():
    record = DEVICES["rtx-3090"]
    device = device_from_driver(driver_facts(record, clock_hz=1860e6, dram_bytes=25_438_126_080))
    assert device.boost_clock_hz == 1860e6
    assert device.dram_bytes == 25_438_126_080
    assert device.fp32_flop_per_s == 2 * 10_496 * 1860e6  # the rate follows the clock
    changed = {"boost_clock_hz", "dram_bytes", "fp32_flop_per_s"}
    for name in SOURCED_FIELDS:
        assert ("CUDA driver" in device.sources[name]) == (name in changed), name
    assert_complete(device)
    assert record.boost_clock_hz == 1695e6  # the database itself is as before


def test_fewer_sms_than_in_the_record_lower_the_nominal_rate():
    device = device_from_driver(driver_facts(DEVICES["h100-sxm"], sm_count=66))
    assert device.sm_count == 66
    assert device.fp32_flop_per_s == pytest.approx(66.9e12 / 2, rel=1e-3)


def test_a_nominal_l2_bandwidth_follows_the_clock():
    device = device_from_driver(driver_facts(DEVICES["a100-80gb"], clock_hz=1275e6))
    assert device.l2_bytes_per_s == pytest.approx(5120 * 1275e6)
    assert "CUDA driver" in device.sources["l2_bytes_per_s"]


@pytest.mark.parametrize(
    "name", ["NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA H100 NVL"]
)
def test_a_similar_name_is_another_gpu(name):
    device = device_from_driver(driver_facts(DEVICES["rtx-3090"], name=name))
    assert device.name == name
    assert device.key not in DEVICES


def test_an_unknown_gpu_is_built_from_its_driver():
    device = device_from_driver(A100_80GB_PCIE)
    assert_complete(device)
    assert device.key == "a100-80gb-pcie"
    assert device.name == "NVIDIA A100 80GB PCIe"
    assert device.architecture == "Ampere"
    assert device.fp32_lanes_per_sm == 64
    assert device.fp32_flop_per_s == pytest.approx(19.49e12, rel=1e-3)  # 2 · 64 · 108 · 1.41e9
    assert device.dram_bytes_per_s == pytest.approx(1935.36e9)  # 2 · 1.512e9 · 5,120 / 8
    assert device.l2_bytes_per_s is None
    assert device.measured is None
    assert device.sources["sm_count"].startswith("CUDA driver: CU_DEVICE_ATTRIBUTE_")
    assert "assumed" not in " ".join(device.sources.values())


def test_attributes_that_an_old_driver_lacks_come_from_the_table():
    device = device_from_driver(
        replace(A100_80GB_PCIE, max_blocks_per_sm=None, reserved_shared_bytes_per_block=None)
    )
    assert device.max_blocks_per_sm == 32
    assert device.reserved_shared_bytes_per_block == 1024
    assert "CUDA driver" not in device.sources["max_blocks_per_sm"]
    assert_complete(device)


@pytest.mark.parametrize(
    ("compute_capability", "nearest", "lanes"),
    [((7, 2), "7.0", 64), ((8, 7), "8.6", 128), ((10, 3), "10.0", 128), ((13, 0), "12.0", 128)],
)
def test_an_unknown_compute_capability_borrows_the_nearest_lower_one(
    compute_capability, nearest, lanes
):
    device = device_from_driver(replace(A100_80GB_PCIE, compute_capability=compute_capability))
    assert_complete(device)
    assert device.compute_capability == compute_capability
    assert device.fp32_lanes_per_sm == lanes
    assert f"assumed as for compute capability {nearest}" in device.sources["fp32_lanes_per_sm"]
    assert device.sources["compute_capability"].startswith("CUDA driver")
    assert device.sources["shared_bytes_per_sm"].startswith("CUDA driver")
    assert device.shared_bytes_per_sm == 167_936  # the driver's, not the borrowed one


def test_a_gpu_older_than_the_table_is_an_error():
    assert "5.2 is older than 6.1" in refusal(
        InputError, device_from_driver, replace(A100_80GB_PCIE, compute_capability=(5, 2))
    )


def test_an_unknown_gpu_without_a_memory_clock_is_an_error():
    with pytest.raises(InputError, match=r"memory clock of 0\.0 Hz.*A100 80GB PCIe"):
        device_from_driver(replace(A100_80GB_PCIE, memory_clock_hz=0.0))


def test_a_known_gpu_needs_no_memory_clock():
    facts = driver_facts(DEVICES["t4"], memory_clock_hz=0.0, memory_bus_width_bits=0)
    assert device_from_driver(facts) == DEVICES["t4"]


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_driver_that_reports_nonsense_is_an_error(value):
    with pytest.raises(InputError, match=f"clock_hz = {value}"):
        replace(A100_80GB_PCIE, clock_hz=value)


# --- what to compile for ----------------------------------------------------------------------

CUDA_13 = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121]


@every_device
def test_a_device_is_compiled_for_itself_or_shown_with_the_oldest_architecture(device):
    arch, note = nearest_compilable(device.compute_capability, CUDA_13)
    if device.key in ("gtx-1080-ti", "v100"):
        assert arch == "sm_75"
        assert {"sm_75", device.sm_arch} <= set(re.findall(r"sm_\d+", note))
    else:
        major, minor = device.compute_capability
        assert (arch, note) == (device.sm_arch, None) == (f"sm_{major}{minor}", None)


@pytest.mark.parametrize(
    ("supported", "arch"),
    [([75, 80, 86], "sm_86"), ([86, 75, 80], "sm_86"), ([90, 80], "sm_80"), ([100, 90], "sm_90")],
)
def test_the_highest_architecture_below_is_next_best(supported, arch):
    found, note = nearest_compilable((8, 9), supported)
    assert found == arch
    assert note is not None


def test_no_supported_architecture_is_an_error():
    assert "no architecture" in refusal(InputError, nearest_compilable, (8, 6), [])


@every_device
def test_limits_of_an_architecture_are_those_of_its_devices(device):
    limits = limits_of(device.sm_arch)
    for field in fields(Limits):
        if field.name not in ("name", "sources"):
            assert getattr(limits, field.name) == getattr(device, field.name), field.name
            assert limits.sources[field.name] == device.sources[field.name]
    assert (limits.name, limits.sm_arch) == (device.sm_arch, device.sm_arch)


def test_code_for_one_architecture_alone_has_its_limits():
    assert limits_of("sm_90a") == limits_of("sm_90")
    assert limits_of("sm_100f").shared_bytes_per_block_optin == 232_448  # 227 KiB
    assert limits_of("sm_87") is limits_of("nonsense") is None


@pytest.mark.parametrize(
    ("architecture", "sms"),
    [("sm_86", 84), ("sm_90a", 132), ("sm_87", 0)],  # RTX A6000; H100 SXM and H200; unknown
)
def test_the_largest_device_of_an_architecture(architecture, sms):
    assert most_sms(architecture) == sms
