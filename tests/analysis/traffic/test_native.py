"""Sort of the native library against NumPy's."""

import numpy as np
import pytest

from analysis.traffic.native import sorted_keys


@pytest.mark.parametrize("most", [2, 1000, 1 << 63])
@pytest.mark.parametrize("count", [0, 1, 3000])
def test_keys_are_sorted_as_numpy_does_and_equal_ones_keep_their_order(most, count):
    keys = np.random.default_rng(most).integers(0, most, count, dtype=np.uint64)
    before = keys.copy()
    ordered, indices = sorted_keys(keys)
    expected = np.argsort(keys, kind="stable")
    assert indices.tolist() == expected.tolist()
    assert ordered.tolist() == keys[expected].tolist()
    assert (keys == before).all()
