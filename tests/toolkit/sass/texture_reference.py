"""What a texture fetch returns, by the formulas of the CUDA Programming Guide in float64.

Slow and obvious: one fetch at a time, on arrays [layer or depth, height, width, channel].
"""

from fractions import Fraction
from itertools import product
from math import floor, isnan

import numpy as np

FRACTION = 256  # 1.8 fixed point


def index(k, n, mode):
    """The texel that a whole coordinate names; None beyond a border."""
    if mode == "border":
        return k if 0 <= k < n else None
    if mode == "wrap":
        return k % n
    if mode == "mirror":
        k %= 2 * n
        return k if k < n else 2 * n - 1 - k
    return min(max(k, 0), n - 1)


def texels(x, n, normalized):
    """A coordinate in texels, as float32 holds it; NaN is 0, and 2^30 is the most."""
    with np.errstate(all="ignore"):
        x = np.float32(x) * np.float32(n) if normalized else np.float32(x)
    return (
        Fraction(0)
        if isnan(x)
        else Fraction(float(min(max(x, np.float32(-(2**30))), np.float32(2**30))))
    )


def value(x, read):
    """A channel as it is fetched: an integer, or a float."""
    if read == "element":
        return float(x) if x.dtype.kind == "f" else int(x)
    most = np.iinfo(x.dtype).max
    return float(np.float32(max(int(x), -most)) / np.float32(most))


def fetch(array, coordinates, *, filter, modes, normalized, read):
    """All channels at (x, y, z) of an array of as many axes, the innermost last, and channels."""
    sizes = array.shape[-2::-1]
    where = [texels(x, n, normalized) for x, n in zip(coordinates, sizes, strict=True)]
    along = []
    for at, n, mode in zip(where, sizes, modes, strict=False):
        if filter == "point":
            along.append([(index(floor(at), n, mode), Fraction(1))])
            continue
        fixed = floor(at * FRACTION + Fraction(1, 2)) - FRACTION // 2
        k, weight = fixed // FRACTION, Fraction(fixed % FRACTION, FRACTION)
        along.append([(index(k, n, mode), 1 - weight), (index(k + 1, n, mode), weight)])
    found = []
    for channel in range(array.shape[-1]):
        total = 0
        for corner in product(*along):
            weight = np.prod([w for _, w in corner])
            if not weight:
                continue
            place = [k for k, _ in corner]
            texel = 0 if None in place else value(array[(*place[::-1], channel)], read)
            total += texel if filter == "point" else float(weight) * texel
        found.append(total)
    return found
