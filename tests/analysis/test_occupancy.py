"""Occupancy, derived by hand from the rules of NVIDIA's cuda_occupancy.h."""

from dataclasses import replace

import pytest

from analysis.devices import DEVICES
from analysis.errors import InputError
from analysis.occupancy import occupancy, waves

RTX_3090 = DEVICES["rtx-3090"]  # sm_86: 48 warps, 16 blocks, 65,536 registers, 100 KiB shared
H100 = DEVICES["h100-sxm"]  # sm_90: 64 warps, 32 blocks, 65,536 registers, 228 KiB shared


@pytest.mark.parametrize(
    ("threads", "registers", "shared_bytes", "blocks", "limiters"),
    [
        (1024, 32, 0, 1, ("threads",)),  # 48 / 32 warps; registers: 64 / 32 = 2
        (1024, 64, 0, 1, ("threads", "registers")),  # 65536 / (64·32) = 32 warps: 1 as well
        (256, 32, 0, 6, ("threads",)),  # 48 / 8
        (256, 128, 0, 2, ("registers",)),  # 65536 / (128·32) = 16 warps, 16 / 8
        (256, 255, 0, 1, ("registers",)),  # 255·32 -> 8192; 65536 / 8192 = 8 warps
        (256, 40, 0, 6, ("threads", "registers")),  # 65536 / 1280 = 51 -> 48 warps
        (96, 88, 0, 6, ("registers",)),  # 16384 / 2816 = 5 warps in each of 4 partitions: 20 / 3
        (256, 33, 0, 6, ("threads", "registers")),  # 33·32 = 1056 -> 1280: as with 40
        (32, 16, 0, 16, ("blocks",)),
        (64, 16, 0, 16, ("blocks",)),  # 48 / 2 = 24 > 16
        (96, 16, 0, 16, ("threads", "blocks")),  # 48 / 3
        (33, 16, 0, 16, ("blocks",)),  # 2 warps
        (256, 32, 48 * 1024, 2, ("shared memory",)),  # 100 / (48 + 1)
        (256, 32, 16 * 1024, 5, ("shared memory",)),  # 100 / 17 = 5.9
        (256, 32, 16 * 1024 + 1, 5, ("shared memory",)),  # rounded up by 128 B
        (256, 32, 99 * 1024, 1, ("shared memory",)),  # 100 / 100: the opt-in limit
        (256, 128, 40 * 1024, 2, ("registers", "shared memory")),  # 100 / 41
    ],
)
def test_one_sm_of_an_rtx_3090_holds(threads, registers, shared_bytes, blocks, limiters):
    found = occupancy(
        RTX_3090,
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_bytes_per_block=shared_bytes,
    )
    assert (found.blocks_per_sm, found.limiters) == (blocks, limiters)
    assert found.warps_per_sm == blocks * -(-threads // 32)


def test_blocks_of_1024_threads_fill_two_thirds_of_an_sm_86_and_all_of_an_sm_90():
    launch = {"threads_per_block": 1024, "registers_per_thread": 32, "shared_bytes_per_block": 0}
    assert occupancy(RTX_3090, **launch).fraction == pytest.approx(0.667, abs=5e-4)  # 32 / 48
    assert occupancy(H100, **launch).fraction == 1  # 64 / 64


def test_shared_memory_is_rounded_up_after_the_reserved_bytes_are_added():
    # 10,240 + 128·k: with units of 1,024 B and 64 B reserved, 1,000 B take 2,048 B, not 1,088 B
    device = replace(
        RTX_3090,
        shared_bytes_per_sm=10_240,
        reserved_shared_bytes_per_block=64,
        shared_allocation_unit=1024,
    )
    found = occupancy(
        device, threads_per_block=32, registers_per_thread=16, shared_bytes_per_block=1000
    )
    assert found.blocks_per_sm == 5  # 10,240 / 2,048


def test_a_device_that_reserves_nothing_is_not_limited_by_shared_memory_that_is_not_used():
    found = occupancy(
        DEVICES["t4"], threads_per_block=64, registers_per_thread=0, shared_bytes_per_block=0
    )
    assert found.limiters == ("threads", "blocks")  # 32 / 2 = 16 blocks


@pytest.mark.parametrize(
    ("threads", "registers", "shared_bytes", "message"),
    [
        (2048, 32, 0, "block of 2048 threads exceeds 1024"),
        (256, 256, 0, "256 registers per thread exceed 255"),
        (256, 32, 101_377, "101377 shared bytes per block exceed 101376"),  # 99 KiB
        (1024, 65, 0, "takes 73728, more than the 65536"),  # 65·32 -> 2304, × 32 warps
        (32 * 9, 255, 0, "takes 98304"),  # 9 warps are checked as 12: 12 · 8192
        (0, 32, 0, "give at least 1, 0 and 0"),
        (32, 32, -1, "give at least 1, 0 and 0"),
    ],
)
def test_a_block_that_cannot_be_resident_is_refused(threads, registers, shared_bytes, message):
    with pytest.raises(InputError, match=message):
        occupancy(
            RTX_3090,
            threads_per_block=threads,
            registers_per_thread=registers,
            shared_bytes_per_block=shared_bytes,
        )


def test_waves_are_blocks_over_what_the_device_holds():
    found = occupancy(
        RTX_3090, threads_per_block=256, registers_per_thread=128, shared_bytes_per_block=0
    )
    assert waves(1024, RTX_3090, found) == pytest.approx(6.2439, abs=1e-4)  # 1024 / (2·82)
