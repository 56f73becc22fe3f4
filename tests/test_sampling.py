"""A sample holds each key, is the same each time, and the exhaustive run holds all cases."""

import pytest

from tests import sampling
from tests.sampling import sampled

CASES = [(opcode, number) for opcode in ("IADD3", "LOP3", "SHF") for number in range(50)]


def values(params):
    return [param.values for param in params]


def test_a_sample_holds_each_key_and_is_the_same_each_time():
    sample = sampled(CASES, key=lambda case: case[0], per_key=2)
    assert [opcode for opcode, _ in values(sample)] == ["IADD3"] * 2 + ["LOP3"] * 2 + ["SHF"] * 2
    assert values(sample) == values(sampled(CASES, key=lambda case: case[0], per_key=2))


def test_the_exhaustive_run_holds_all_cases_and_marks_those_outside_the_sample(
    monkeypatch,
):
    sample = values(sampled(CASES, key=lambda case: case[0]))
    monkeypatch.setattr(sampling, "RUNS_EXHAUSTIVE", True)
    params = sampled(CASES, key=lambda case: case[0])
    assert values(params) == CASES
    assert [param.values for param in params if not param.marks] == sample


def test_a_case_may_be_one_value_or_a_param():
    assert values(sampled(["a", pytest.param("b", id="named")], key=str)) == [("a",), ("b",)]
