"""Sort of the native library against NumPy's, and calls that Ctrl-C ends."""

import ctypes
import time
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.traffic import native
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


def test_a_call_is_ended_whose_thread_was_interrupted_at_its_start(monkeypatch):
    class Argument(ctypes.Structure):
        _fields_ = (("is_cancelled", ctypes.c_int),)

    start, returned = Thread.start, []

    def goes_on(argument):
        while not argument._obj.is_cancelled:
            time.sleep(0.001)
        returned.append(True)

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(native, "library", lambda: SimpleNamespace(goes_on=goes_on))
    monkeypatch.setattr(Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        native.call("goes_on", Argument())
    assert returned == [True]
