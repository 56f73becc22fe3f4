"""Every number at the head of a kernel's source is what the closed forms say."""

import re
from fractions import Fraction

import pytest

from analysis.access import access_counts
from analysis.coalescing import shared_wavefronts
from analysis.geometry import ceil_div
from analysis.intensity import intensity_of_loads
from analysis.problem import Gemm
from kernels import LADDER, find
from kernels.closed_forms import first_warp_patterns
from tests.rungs import every_rung

K = 4096
SECTIONS = ("Idea", "Mapping", "Traffic", "Warp", "Limit", "Source")
COUNT = re.compile(
    r"(?P<elements>[\dK/ ]*\d?K?(?:/\d+)?) (?P<space>global|shared) (?P<operation>load|store)s?"
    r"(?: in (?P<instructions>[\dK/]+))?"
)


def head(variant):
    lines = [line for line in variant.source.splitlines() if line.startswith("//")]
    return "\n".join(line.removeprefix("//") for line in lines)


def section(variant, name):
    """The text of one section of the head, on one line."""
    names = "|".join(SECTIONS)
    found = re.search(rf"^ {name} +(.*?)(?=^ (?:{names}) |\Z)", head(variant), re.S | re.M)
    assert found, f"{variant.file} has no section {name}"
    return " ".join(found.group(1).split())


def value(expression):
    """Value of "2 K", "17K/16", "1/4" or "1" at K = 4096."""
    match = re.fullmatch(r"(\d*)(K?)(?:/(\d+))?", expression.replace(" ", ""))
    assert match, expression
    factor, k, divisor = match.groups()
    return Fraction(int(factor or 1) * (K if k else 1), int(divisor or 1))


def problem(variant):
    """Whole tiles."""
    extent, tiling = variant.max_extent or K, variant.tiling(variant.defaults)
    m, n = (ceil_div(extent, tile) * tile for tile in (tiling.block_m, tiling.block_n))
    return Gemm(m=m, n=n, k=K)


def patterns(variant):
    found = first_warp_patterns(variant, variant.defaults, problem(variant))
    return {(p.space, p.operation, p.operand): p for p in found}


@every_rung
class TestHead:
    def test_names_its_rung_and_the_equation(self, variant):
        assert f" Rung {variant.rung}, " in head(variant)
        assert "C = alpha * A * B + beta * C" in head(variant)
        assert 'extern "C" __global__ void __launch_bounds__(' in variant.source
        assert f"\n{variant.entry}(" in variant.source

    def test_has_every_section(self, variant):
        for name in SECTIONS:
            assert section(variant, name)

    def test_defaults_are_the_registrys(self, variant):
        defined = re.findall(r"^#define (\w+) (\d+)$", variant.source, re.M)
        assert {name.lower(): int(number) for name, number in defined} == variant.defaults

    def test_traffic_is_stated_at_the_defaults(self, variant):
        stated = re.findall(r"\b([A-Z]+) = (\d+)", section(variant, "Traffic"))
        assert all(variant.defaults[name.lower()] == int(number) for name, number in stated)

    def test_counts_are_the_closed_forms(self, variant):
        text = section(variant, "Traffic")
        counts = access_counts(variant.tiling(variant.defaults), problem(variant))
        per = "thread" if "per thread:" in text else "element of C"
        stated = list(COUNT.finditer(re.split(r"per (?:thread|element of C):|in all:", text)[1]))
        assert {(m["space"], m["operation"]) for m in stated} == {
            (a.space, a.operation) for a in counts.accesses
        }
        for match in stated:
            key = match["space"], match["operation"]
            units = counts.threads if per == "thread" else counts.problem.c_elements
            assert value(match["elements"]) == Fraction(counts.elements(*key), units), match[0]
            if match["instructions"]:
                assert value(match["instructions"]) == Fraction(counts.instructions(*key), units), (
                    match[0]
                )

    def test_totals_are_the_closed_forms(self, variant):
        text = section(variant, "Traffic")
        if "in all:" not in text:
            return
        assert "in all: 2 M N K global loads, M N global stores" in text
        shape = problem(variant)
        counts = access_counts(variant.tiling(variant.defaults), shape)
        assert counts.elements("global", "load") == 2 * shape.m * shape.n * shape.k
        assert counts.elements("global", "store") == shape.m * shape.n

    def test_intensity_is_the_closed_form(self, variant):
        stated = re.search(r"intensity: ([\d.]+) FLOP per byte loaded", section(variant, "Traffic"))
        counts = access_counts(variant.tiling(variant.defaults), problem(variant))
        digits = len(stated.group(1).partition(".")[2])
        assert stated.group(1) == f"{intensity_of_loads(counts):.{digits}f}"

    def test_sectors_are_those_of_the_first_warp(self, variant):
        text = section(variant, "Warp").split("shared")[0]
        stated = {
            operand: int(number)
            for operands, number in re.findall(r"([ABC](?:, [ABC])*): (\d+)", text)
            for operand in operands.split(", ")
        }
        actual = {
            operand: p.sectors
            for (space, _, operand), p in patterns(variant).items()
            if space == "global"
        }
        assert stated == actual

    def test_tiles_are_the_registrys(self, variant):
        tiling = variant.tiling(variant.defaults)
        for m, n in re.findall(r"block tile (\d+) x (\d+)", section(variant, "Mapping")):
            assert (int(m), int(n)) == (tiling.block_m, tiling.block_n)


def stated_wavefronts(variant):
    """The numbers after "A", "B", "stores of A", "stores of B" in the shared part of Warp."""
    text = section(variant, "Warp").split("shared", 1)[1]
    found = re.findall(
        r"(stores of )?\b([AB]) (\d+)(?: wavefronts\b[^,;]*)?(?: where (\d+))?", text
    )
    return {
        f"{store}{operand}": [int(n) for n in numbers if n] for store, operand, *numbers in found
    }


def test_wavefronts_in_the_head_of_the_2d_rung():
    rung = LADDER[5]
    a, b = (patterns(rung)["shared", "load", operand] for operand in "AB")
    assert stated_wavefronts(rung) == {"A": [a.wavefronts], "B": [b.wavefronts, b.ideal_wavefronts]}
    assert (a.wavefronts, b.wavefronts, b.ideal_wavefronts) == (2, 8, 2)


def test_wavefronts_in_the_head_of_the_vectorized_rung():
    rung = LADDER[6]
    of = patterns(rung)
    a, b = (of["shared", "load", operand] for operand in "AB")
    store_a, store_b = (of["shared", "store", operand] for operand in "AB")
    assert stated_wavefronts(rung) == {
        "A": [a.wavefronts],
        "B": [b.wavefronts, b.ideal_wavefronts],
        "stores of A": [store_a.wavefronts, store_a.ideal_wavefronts],
        "stores of B": [store_b.wavefronts],
    }


@pytest.mark.parametrize("rung", LADDER[3:5], ids=lambda v: v.name)
def test_where_the_head_says_no_bank_conflict_there_is_none(rung):
    assert "shared: no bank conflict" in section(rung, "Warp")
    for (space, operation, _), pattern in patterns(rung).items():
        # a merged 16-byte read takes at least 2 wavefronts, even where all lanes read one address
        fewest = 2 if pattern.instruction_bytes == 16 and operation == "load" else 1
        assert space == "global" or pattern.wavefronts == fewest


def test_the_merged_reads_of_the_tiled_rung_take_two_wavefronts_instead_of_four():
    assert "they take 2 wavefronts instead of 4" in section(LADDER[3], "Limit")
    assert patterns(LADDER[3])["shared", "load", "A"].wavefronts == 2


def test_the_uncoalesced_column_takes_the_clocks_that_the_head_says():
    rung = LADDER[1]
    limit = section(rung, "Limit")
    assert "where K is a multiple of 32, the 32 words of A" in limit
    assert "take 32 clocks" in limit
    for k, clocks in ((K, 32), (32, 32), (65, 8)):  # at 65, 32 banks and 32 lines / 4 tags
        found = first_warp_patterns(rung, rung.defaults, Gemm(m=64, n=64, k=k))
        assert next(p.cycles for p in found if p.operand == "A") == clocks


# The rungs without bank conflicts.

WITHOUT_CONFLICTS = LADDER[7:12]


def shared_accesses(variant, parameters):
    accesses = variant.warp(variant.tiling(parameters), problem(variant))
    return {key[1:]: access for key, access in accesses.items() if key[0] == "shared"}


def floats_per_k(variant, operand):
    """Distinct floats of a tile that the first warp reads for one k: two reads, 32 lanes each."""
    access = shared_accesses(variant, variant.defaults)["load", operand]
    return 2 * 4 * len(set(access.addresses.tolist()))


without_conflicts = pytest.mark.parametrize("rung", WITHOUT_CONFLICTS, ids=lambda v: v.name)


@without_conflicts
def test_wavefronts_in_the_head_are_those_of_the_first_warp(rung):
    assert "shared: no bank conflict" in section(rung, "Warp")
    prefix = {"load": "", "store": "stores of "}
    of_warp = {
        f"{prefix[operation]}{operand}": [pattern.wavefronts]
        for (space, operation, operand), pattern in patterns(rung).items()
        if space == "shared"
    }
    assert stated_wavefronts(rung) == of_warp


@without_conflicts
def test_no_parameter_brings_a_bank_conflict_back(rung):
    for parameters in rung.parameter_sets():
        for (operation, _), access in shared_accesses(rung, parameters).items():
            cost = shared_wavefronts(
                access.addresses, width_bytes=access.instruction_bytes, operation=operation
            )
            assert cost.conflicts == 0


def test_the_conflict_free_rung_takes_the_wavefronts_that_its_head_says():
    rung = find("conflict-free")
    assert "12 wavefronts per k and warp for 64 FFMA" in section(rung, "Limit")
    of = patterns(rung)
    assert 2 * sum(of["shared", "load", operand].wavefronts for operand in "AB") == 12
    tiling = rung.tiling(rung.defaults)
    assert tiling.thread_m * tiling.thread_n == 64


def test_the_warp_tile_needs_the_values_that_its_head_says():
    rung, before = find("warp-tiled"), find("conflict-free")
    text = section(rung, "Idea")
    assert "64 values of A and 32 of B per k instead of 16 and 128" in text
    assert [floats_per_k(rung, operand) for operand in "AB"] == [64, 32]
    assert [floats_per_k(before, operand) for operand in "AB"] == [16, 128]


@pytest.mark.parametrize("name", ["warp-tiled", "double-buffered", "async-copy"])
def test_warp_tiles_in_heads_are_the_sources(name):
    rung = find(name)
    assert "warp tiles of 64 x 32" in section(rung, "Mapping")
    assert "constexpr int WM = 64, WN = 32;" in rung.source


def test_the_wide_thread_tile_reads_what_its_head_says():
    rung, before = find("wide-thread-tile"), find("async-copy")
    assert "128 multiply-adds for 24 values read, where 8 x 8 needs 16 for 64" in section(
        rung, "Idea"
    )
    wide, narrow = rung.tiling(rung.defaults), before.tiling(before.defaults)
    assert (wide.thread_m * wide.thread_n, wide.thread_m + wide.thread_n) == (128, 24)
    assert (narrow.thread_m * narrow.thread_n, narrow.thread_m + narrow.thread_n) == (64, 16)
    assert "128 threads, two blocks per SM" in section(rung, "Mapping")
    assert wide.threads_per_block == 128
    assert "warp tiles of 64 x 64" in section(rung, "Mapping")
    assert "constexpr int WM = 64, WN = 64;" in rung.source
