"""Orders and groups of keys against NumPy's own."""

import numpy as np
import pytest

from analysis.traffic.order import groups, stable_order


@pytest.fixture(params=[1, 7, 1 << 20, 1 << 62])
def keys(request):
    """Keys up to a limit, most of them more than once; the last do not fit beside a position."""
    rng = np.random.default_rng(request.param)
    few = rng.integers(0, request.param, 300)
    return rng.choice(few, 5000)


def test_the_order_is_that_of_a_stable_sort(keys):
    assert stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()


def test_groups_are_those_of_unique(keys):
    found = groups(keys)
    _, first, group, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    assert found.first.tolist() == first.tolist()
    assert found.counts.tolist() == counts.tolist()
    assert found.group.tolist() == group.tolist()
    of_begins = keys[found.order[found.begins]]
    assert of_begins.tolist() == np.unique(keys).tolist()


def test_no_keys_have_no_groups():
    found = groups(np.zeros(0, dtype=np.int64))
    assert len(found.first) == len(found.counts) == len(found.group) == len(found.begins) == 0
