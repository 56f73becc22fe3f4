"""The script that records hardware counters, as far as it goes without a GPU."""

import struct

import numpy as np
import pytest

from analysis.problem import parse_shape
from kernels import LADDER
from toolkit.gpu.context import packed
from toolkit.launch.launch import buffers_of
from validation.corpus.cases import CASES
from validation.corpus.compiled import compiled
from validation.counters.counting import counters_of, medians
from validation.counters.record_counters import METRICS, Product, entries, source_tables

WITH_STRUCTURES = [case for case in CASES if case.kernel in ("by_value", "small_arguments")]


@pytest.mark.parametrize("case", WITH_STRUCTURES, ids=lambda case: case.name)
def test_arguments_stand_where_the_machine_code_looks_for_them(case):
    cubin = compiled(case, "sm_90")
    expected = cubin.parameters
    arguments = [
        1 if isinstance(argument, np.ndarray) else argument
        for argument in case.make(np.random.default_rng())
    ]
    ends = [len(pack(arguments[: count + 1])) for count in range(len(arguments))]
    assert ends == [parameter.offset + parameter.size for parameter in expected]


def pack(arguments):
    """Packed with no padding but that of the format, where `l` and `P` have their native size."""
    form, values = packed(arguments)
    return struct.pack("=" + form.translate(str.maketrans("PlL", "QqQ")), *values)


def test_metrics_are_named_once():
    assert len(set(METRICS)) == len(METRICS)
    assert all(metric.endswith(".sum") for metric in METRICS)


def test_what_ncu_prints_becomes_counters_by_launch():
    printed = "\n".join(
        [
            "==PROF== Connected to process 7",
            '"ID","Kernel Name","Metric Name","Metric Value"',
            '"0","twice","a.sum","1,024"',
            '"0","twice","b.sum","n/a"',
            '"1","thrice","a.sum","7"',
        ]
    )
    assert counters_of(printed) == [("twice", {"a.sum": 1024}), ("thrice", {"a.sum": 7})]


def test_a_source_page_has_a_table_per_kernel():
    page = '"Kernel Name","f"\n"#","Source","n"\n"1","MOV R1, R2","5"\n\n"#","Source","n"\n'
    assert source_tables(page) == [[{"#": "1", "Source": "MOV R1, R2", "n": "5"}], []]


@pytest.mark.parametrize("selection", ["tiled", "bulk-copy", "realigned"])
def test_a_product_with_a_wrong_or_missing_element_is_noticed(selection):
    """The check works for matrices, tensor maps of them, and maps of copies in a workspace."""
    of = Product(selection, parse_shape("5x8x4"))
    arguments = of.make(np.random.default_rng())
    arrays = buffers_of(arguments)
    a, b = (x for x in arrays.values() if x.shape in ((5, 4), (4, 8)))
    right = {**arrays, 2: a @ b}
    of.check(list(right.values()), arguments)
    for wrong in (0.0, np.nan):
        right[2][4, 5] = wrong
        with pytest.raises(AssertionError, match="the product is wrong"):
            of.check(list(right.values()), arguments)


def test_launches_that_are_alike_become_medians():
    found = [("f", {"n": value}) for value in (7, 5, 6, 1, 1, 4)]
    first, second = medians(found, ["n"], 3)
    assert first == {"counters": {"n": 6}, "lowest": {"n": 5}, "highest": {"n": 7}}
    assert second["counters"] == {"n": 1}


def test_launches_have_labels_and_seeds_of_their_own():
    found = entries()
    assert len({entry["label"] for entry in found}) == len(found)
    assert len({entry["seed"] for entry in found}) == len(found)
    assert {entry["group"] for entry in entries("bulk")} >= {"ladder", "corpus"}


def test_launches_are_of_every_rung_and_few_enough_for_one_run_of_ncu():
    found = entries()
    assert {entry["file"] for entry in found} >= {variant.file for variant in LADDER}
    assert len(found) < 500
