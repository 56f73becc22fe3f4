"""Parts of public launches that are drawn by the rows that machine code shows."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.cubins import kernel_of
from validation import recordings
from validation.public_launches import draw, predict
from validation.public_launches import listed as listed_launches
from validation.public_launches.draw import drawn_by_rows
from validation.public_launches.listed import (
    SEEDS,
    TIMES,
    before,
    gap_of,
    list_of,
    listed,
    without_gap,
)
from validation.public_launches.shown_rows import SHORT_BYTES, Row, rows_of

HEAD = """
#include <cuda_fp16.h>
__constant__ float table[64];
"""
KERNEL = """
extern "C" __global__ void kNUMBER(float *out, const float *in, const int *where, double *wide,
                                   __half2 *halves, unsigned char *bytes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""
BODIES = {
    "out[i] = 2 * in[i];": [Row.SHORT_STREAMS],
    "out[i] = i;": [Row.WRITES],
    "bytes[i] = in[i] > 0;": [Row.PARTS],
    "out[where[i]] = 1;": [Row.PARTS],
    "out[i] = in[where[i]];": [Row.GATHERS],
    "atomicAdd(out + (i & 7), in[i]);": [Row.ATOMICS],
    "wide[i] += 1;": [Row.DOUBLES],
    "halves[i] = __hadd2(halves[i], halves[i + 1]);": [Row.HALVES],
    "out[i] = in[i] * table[threadIdx.x & 63];": [Row.CONSTANTS],
    "float a[64]; for (int j = 0; j < n; ++j) a[j] = in[j + i]; out[i] = a[n / 2];": [Row.LOCAL],
    "float s = 0; for (int j = 0; j < where[i]; ++j) s = s * s + in[i]; out[i] = s;": [Row.UNEQUAL],
    "while (((volatile int *)where)[0] < n) {} out[i] = 1;": [Row.CHAINS],
}
TREE = """
    __shared__ float part[256];
    part[threadIdx.x] = in[i];
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    }
    out[i] = part[0];
"""
SWAPS = """
    __shared__ float sum;
    atomicAdd(&sum, in[i]);
    __syncthreads();
    out[i] = sum;
"""
EVERY = [*BODIES, TREE, SWAPS]
SOURCE = HEAD + "".join(
    KERNEL.replace("NUMBER", str(number)).replace("BODY", body) for number, body in enumerate(EVERY)
)


def shown(body, *, grid=(64, 1, 1), block=(256, 1, 1), size=SHORT_BYTES):
    code = kernel_of(SOURCE, f"k{EVERY.index(body)}").instructions
    return rows_of(code, grid, block, size)


@pytest.mark.parametrize(("body", "rows"), BODIES.items())
def test_rows_that_code_shows(body, rows):
    assert set(rows) <= set(shown(body))
    others = {Row.HALVES, Row.DOUBLES, Row.LOCAL, Row.SHARED_SUMS, Row.SCANS, Row.ATOMICS}
    assert not others & (set(shown(body)) - set(rows))


def test_rows_of_shared_memory():
    assert shown(TREE) == [Row.SCANS]
    assert shown(SWAPS) == [Row.UNEQUAL, Row.SHARED_SUMS]  # swaps until one succeeds


def test_sizes_decide_two_rows():
    stream = "out[i] = 2 * in[i];"
    assert shown(stream, size=SHORT_BYTES + 1) == []
    assert shown(stream, grid=(128, 64, 1), block=(128, 1, 1)) == [Row.SMALL_BLOCKS]
    assert Row.SMALL_BLOCKS not in shown(stream, grid=(128, 63, 1), block=(128, 1, 1))


def launch(family, kernel, grid):
    return {
        "family": family,
        "kernel": kernel,
        "grid": [grid, 1, 1],
        "block": [64, 1, 1],
        "shared": 0,
        "parameters": [],
    }


def test_kernels_of_earlier_parts_are_not_drawn_again(monkeypatch, tmp_path):
    """Neither one of the same name, nor one whose machine code an earlier part has."""
    first, second = (kernel_of(SOURCE, f"k{number}") for number in (0, 1))
    for number, kernel in enumerate((first, second)):
        (tmp_path / f"{number}.cubin").write_bytes(kernel.image)
    launches = [
        launch(f"f{number}", f"k{number}", 64) | {"cubin": f"{number}.cubin"} for number in (0, 1)
    ]

    def drawn(earlier):
        monkeypatch.setattr(draw, "before", lambda part: earlier)
        return [one["kernel"] for one, _ in draw.with_rows("fourth", launches, tmp_path)]

    listed_before = listed("first")[0]
    assert drawn([listed_before]) == ["k0", "k1"]  # whose machine code is not there
    same_name = replace(listed_before, symbol="k1")
    assert drawn([same_name]) == ["k0"]
    other_name = replace(listed_before, symbol="k2", cubin="0.cubin")
    assert drawn([other_name]) == ["k0", "k1"]
    monkeypatch.setattr(draw, "_text_of", lambda kernel: "the same")
    assert drawn([other_name]) == []


def test_a_name_and_code_with_other_constants_are_drawn_once(monkeypatch, tmp_path):
    bodies = ("out[i] = 5 * in[i];", "out[i] = 3 * in[i];", "out[i] = in[i] + 3;")
    source = HEAD + "".join(
        KERNEL.replace("NUMBER", str(number)).replace("BODY", body)
        for number, body in enumerate(bodies)
    )
    launches = []
    for number in range(3):
        (tmp_path / f"{number}.cubin").write_bytes(kernel_of(source, f"k{number}").image)
        launches.append(launch(f"f{number}", f"k{number}", 64) | {"cubin": f"{number}.cubin"})
    launches.append(launches[2] | {"family": "f3"})
    monkeypatch.setattr(draw, "before", lambda part: [])
    found = [one["family"] for one, _ in draw.with_rows("fifth", launches, tmp_path)]
    assert found == ["f0", "f2"]


def test_rows_are_drawn_first_then_kernels(monkeypatch):
    monkeypatch.setattr(draw, "LAUNCHES_OF_PART", 9)
    launches = [
        launch(f"f{family}", f"k{kernel}", grid)
        for family in range(4)
        for kernel in range(3)
        for grid in (1, 2)
    ]
    rows = {(one["family"], one["kernel"]): [] for one in launches}
    rows["f1", "k2"], rows["f3", "k0"] = [Row.GATHERS], [Row.SCANS, Row.GATHERS]
    found = sorted(drawn_by_rows("fourth", launches, rows), key=lambda one: one["place"])
    assert [one["place"] for one in found] == list(range(9))
    assert {(one["family"], one["kernel"]) for one in found[:2]} == {("f1", "k2"), ("f3", "k0")}
    assert max(Counter((one["family"], one["kernel"]) for one in found).values()) == 1
    assert max(Counter(one["family"] for one in found).values()) <= draw.MOST_OF_FAMILY_IN_PART
    assert Counter(one["l2"] for one in found) == {"warm": 2, "clean": 1, "dirty": 6}
    assert {one["half"] for one in found} == {"fourth"}


def test_dram_counts_where_it_is_the_busiest_unit(monkeypatch):
    counters = [
        {"DRAM": 61.0, "L2": 40.0},
        {"DRAM": 59.0, "L2": 40.0},
        {"DRAM": 80.0, "L2": 85.0},
    ]
    monkeypatch.setattr(predict, "measurements", lambda part: {"counters": counters})
    assert predict.limited_by_dram("third").endswith("of 1 of 3")


@pytest.mark.parametrize(
    ("part", "rare"),
    [
        ("third", {Row.SHARED_SUMS}),
        ("fourth", set()),
        ("fifth", {Row.CHAINS, Row.SHARED_SUMS}),
    ],
)
def test_the_list_has_what_was_asked_for(part, rare):
    found, earlier = listed(part), before(part)
    assert len(found) == draw.LAUNCHES_OF_PART
    assert len({(one.family, one.symbol) for one in found}) >= 100
    assert not {one.family for one in found} & {one.family for one in earlier}
    assert not {one.symbol for one in found} & {one.symbol for one in earlier}
    assert sum(one.l2 == "warm" for one in found) >= len(found) / 4
    rows = Counter(row for one in found for row in one.rows)
    assert {row for row in Row if rows[row] < 3} == rare


@pytest.mark.parametrize("part", SEEDS)
def test_the_list_follows_from_its_order(part):
    rows = sorted(recordings.read(list_of(part))["launches"], key=lambda one: one["place"])
    assert [one["place"] for one in rows] == list(range(len(rows)))
    shown = [row for row in Row if any(row in one["rows"] for one in rows)]
    assert all(row in one["rows"] for row, one in zip(shown[:8], rows, strict=False))


@pytest.mark.parametrize(("longer_s", "gap_s"), [(2e-6, 2e-6), (-5e-8, 0.0)])
def test_a_gap_is_what_short_launches_take_longer(monkeypatch, longer_s, gap_s):
    recorded = [{"name": name} | dict.fromkeys(TIMES, 9e-6) for name in "abc"]
    recorded[2] |= dict.fromkeys(TIMES, 1.0)  # a long one, which shows no gap
    monkeypatch.setattr(listed_launches, "measurements", lambda part: {"times": recorded})
    beside = [
        row | {"hold_ns": 100} | dict.fromkeys(TIMES, row["warm_s"] + longer_s) for row in recorded
    ]
    assert gap_of(beside) == {"hold_ns": 100, "time_s": gap_s}


def test_a_gap_is_subtracted_from_launches_behind_short_holds():
    row = {"name": "k", "hold_ns": 2e5} | dict.fromkeys(TIMES, 9e-6)
    gap = {"hold_ns": 2e5, "time_s": 2e-6}
    assert [without_gap(row, gap)[key] for key in TIMES] == pytest.approx([7e-6] * len(TIMES))
    assert without_gap(row, gap)["gap_s"] == 2e-6
    assert without_gap(row, gap | {"hold_ns": 1e5}) == row
    assert without_gap(row, {}) == row
    failed = {"name": "k", "failed": "illegal"}
    assert without_gap(failed, gap) == failed
