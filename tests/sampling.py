"""Samples with a fixed seed, in place of enumerations of thousands of similar cases."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest

RUNS_EXHAUSTIVE = False  # set by conftest.py: otherwise cases outside the sample are not collected


def sampled(
    cases: Iterable[Any], key: Callable[[Any], Hashable], per_key: int = 1, seed: int = 0
) -> list[Any]:
    """Parameters of a test: `per_key` random cases of each key; the others are `exhaustive`.

    A case is a value, a tuple of values for several parameters, or a `pytest.param`; `key` gets
    its values as one argument. All cases of the sample come in their order.
    """
    params = [case if is_param(case) else as_param(case) for case in cases]
    by_key: dict[Hashable, list[int]] = {}
    for number, param in enumerate(params):
        values = param.values[0] if len(param.values) == 1 else param.values
        by_key.setdefault(key(values), []).append(number)
    draw = random.Random(seed)
    chosen = {
        number
        for numbers in by_key.values()
        for number in draw.sample(numbers, min(per_key, len(numbers)))
    }
    if not RUNS_EXHAUSTIVE:
        return [params[number] for number in sorted(chosen)]
    return [
        param
        if number in chosen
        else pytest.param(*param.values, id=param.id, marks=[*param.marks, pytest.mark.exhaustive])
        for number, param in enumerate(params)
    ]


def is_param(case: Any) -> bool:
    return isinstance(case, type(pytest.param()))


def as_param(case: Any) -> Any:
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)
