"""Samples with a fixed seed, in place of enumerations of thousands of similar cases."""

import random

import pytest

RUNS_EXHAUSTIVE = False  # set by conftest.py: otherwise cases outside the sample are not collected


def sampled(cases, key, per_key=1, seed=0):
    """Parameters of a test: `per_key` random cases of each key; the others are `exhaustive`.

    A case is a value, a tuple of values for several parameters, or a `pytest.param`; `key` gets
    its values as one argument. All cases of the sample come in their order.
    """
    params = [case if is_param(case) else as_param(case) for case in cases]
    by_key = {}
    for number, param in enumerate(params):
        by_key.setdefault(key(values_of(param)), []).append(number)
    draw = random.Random(seed)
    chosen = {
        number
        for numbers in by_key.values()
        for number in draw.sample(numbers, min(per_key, len(numbers)))
    }
    return _others_exhaustive(params, [number in chosen for number in range(len(params))])


def exhaustive(*values):
    """A case of the exhaustive run alone."""
    return pytest.param(*values, marks=pytest.mark.exhaustive)


def chosen_of(cases, is_chosen):
    """The same for a sample that `is_chosen` describes."""
    params = [case if is_param(case) else as_param(case) for case in cases]
    return _others_exhaustive(params, [is_chosen(values_of(param)) for param in params])


def _others_exhaustive(params, chosen):
    return [
        param
        if is_chosen
        else pytest.param(*param.values, id=param.id, marks=[*param.marks, pytest.mark.exhaustive])
        for param, is_chosen in zip(params, chosen, strict=True)
        if is_chosen or RUNS_EXHAUSTIVE
    ]


def values_of(param):
    return param.values[0] if len(param.values) == 1 else param.values


def is_param(case):
    return isinstance(case, type(pytest.param()))


def as_param(case):
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)
