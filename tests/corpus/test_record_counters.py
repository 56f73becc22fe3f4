"""The script that records hardware counters, as far as it goes without a GPU."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from validation.corpus.case import Case
from validation.corpus.cases import CASES
from validation.corpus.compiled import compiled
from validation.counters.record_counters import (
    METRICS,
    Gemm,
    counters_of,
    packing,
    source_tables,
    unknown_in,
)

WITH_STRUCTURES = [case for case in CASES if case.kernel in ("by_value", "small_arguments")]


@pytest.mark.parametrize("case", WITH_STRUCTURES, ids=lambda case: case.name)
def test_arguments_stand_where_the_machine_code_looks_for_them(case: Case) -> None:
    cubin = compiled(case, "sm_90")
    expected = cubin.parameters
    arguments = [
        1 if isinstance(argument, np.ndarray) else argument
        for argument in case.make(np.random.default_rng())
    ]
    ends = [len(pack(arguments[: count + 1])) for count in range(len(arguments))]
    assert ends == [parameter.offset + parameter.size for parameter in expected]


def pack(arguments: list) -> bytes:
    """Packed with no padding but that of the format, where `l` and `P` have their native size."""
    form, values = packing(arguments)
    return struct.pack("=" + form.translate(str.maketrans("PlL", "QqQ")), *values)


def test_metrics_are_named_once() -> None:
    assert len(set(METRICS)) == len(METRICS)
    assert all(metric.endswith(".sum") for metric in METRICS)


def test_what_ncu_prints_becomes_counters_by_launch() -> None:
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


def test_a_complaint_names_the_unknown_metrics() -> None:
    metrics = ["a__b.sum", "a__b_c.sum", "d__e.sum"]
    assert unknown_in("==ERROR== Failed to find metric a__b_c.sum", metrics) == ["a__b_c.sum"]
    assert unknown_in("==ERROR== no metric in a__b.sum,a__b_c.sum,d__e.sum", metrics) == []
    assert unknown_in('"0","a__b.sum"', metrics) == []


def test_a_source_page_has_a_table_per_kernel() -> None:
    page = '"Kernel Name","f"\n"#","Source","n"\n"1","MOV R1, R2","5"\n\n"#","Source","n"\n'
    assert source_tables(page) == [[{"#": "1", "Source": "MOV R1, R2", "n": "5"}], []]


def test_a_product_with_a_wrong_or_missing_element_is_noticed() -> None:
    of = Gemm(5, 6, 7)
    arguments = of.make(np.random.default_rng())
    a, b, c = arguments[:3]
    of.check([a, b, a @ b], arguments)
    for wrong in (0.0, np.nan):
        c[:] = a @ b
        c[4, 5] = wrong
        with pytest.raises(AssertionError, match="the product is wrong"):
            of.check([a, b, c], arguments)
