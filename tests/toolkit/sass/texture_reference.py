"""Result of a texture fetch of an H200, in exact arithmetic.

The formulas are those of the CUDA Programming Guide, "Texture Fetching". Slow and obvious: one
fetch at a time, on arrays [layer or depth, height, width, channel].
"""

from fractions import Fraction
from itertools import product
from math import floor, frexp, isnan, trunc

import numpy as np

STEPS = 256  # of a weight: 1.8 fixed point
COORDINATE_STEPS = 1 << 21  # of a normalized coordinate, which is cut off
FAR = Fraction(2**24)  # all address modes say the same beyond
HALF = Fraction(1, 2)


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
    """A coordinate in texels; NaN and subnormal numbers are 0."""
    if isnan(x) or abs(float(x)) < 2.0**-126:
        return Fraction(0)
    if np.isinf(x):
        return FAR * (1 if x > 0 else -1) * (n if normalized else 1)
    exact = min(max(Fraction(float(x)), -FAR), FAR)
    if normalized:
        return Fraction(floor(exact * COORDINATE_STEPS), COORDINATE_STEPS) * n
    return exact


def neighbours(at, n, mode, filter):
    """The texels along one axis, and the weight of the second one in 1 / STEPS."""
    if filter == "point":
        return [index(floor(at), n, mode)], 0
    fixed = floor(at * STEPS + HALF) - STEPS // 2
    if mode == "clamp":
        fixed = min(max(fixed, 0), (n - 1) * STEPS)
    k, weight = divmod(fixed, STEPS)
    return [index(k, n, mode), index(k + 1, n, mode)], weight


def split(whole, weight):
    """The part of a weight, rounded."""
    return floor(Fraction(whole * weight, STEPS) + HALF)


def corner_weight(a, b, g, x, y, z):
    """The weight of a corner: split along z, x and y. All eight add up to STEPS."""
    of_slice = g if z else STEPS - g
    of_right = split(of_slice, a)
    of_column = of_right if x else of_slice - of_right
    rounded = split(of_column, b if x else STEPS - b)
    return rounded if x == y else of_column - rounded


def share(x, most):
    return float(np.float32(max(x, -most)) / np.float32(most))


def rounded_away(x, dtype):
    """A number in a floating type, the farther one from zero of two that are equally near."""
    near = dtype(float(x))
    for other in (np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf))):
        if abs(Fraction(float(other)) - x) == abs(Fraction(float(near)) - x):
            near = max(near, other, key=abs)
    return float(near)


def sum_of_floats(terms, dtype):
    """For each slice of a 3D texture: texels lose what is too far below the largest."""
    kept = 14 if dtype.itemsize == 2 else 27
    total = Fraction(0)
    for slice in {z for z, _, _ in terms}:
        texels = [(weight, float(stored)) for z, weight, stored in terms if z == slice]
        unit = Fraction(2) ** (max(max(frexp(x)[1] - 1, -126) for _, x in texels) - kept)
        total += sum(weight * trunc(Fraction(x) / unit) * unit for weight, x in texels)
    return total


def fetch(array, coordinates, *, filter, modes, normalized, read):
    """All channels at (x, y, z) of an array of as many axes and channels, the innermost last."""
    sizes = array.shape[-2::-1]
    along = [
        neighbours(texels(x, n, normalized), n, mode, filter)
        for x, n, mode in zip(coordinates, sizes, modes, strict=False)
    ]
    a, b, g = [weight for _, weight in along] + [0] * (3 - len(along))
    found = []
    for channel in range(array.shape[-1]):
        total, terms = 0, []
        for corner in product(*(range(len(places)) for places, _ in along)):
            place = [places[k] for k, (places, _) in zip(corner, along, strict=True)]
            weight = corner_weight(a, b, g, *corner, *[0] * (3 - len(corner)))
            if weight and None not in place:
                stored = array[(*place[::-1], channel)]
                terms.append((corner[2:], weight, stored))
        if array.dtype.kind == "f":
            total = sum_of_floats(terms, array.dtype)
        else:
            total = sum(weight * int(stored) for _, weight, stored in terms)
        found.append(result(Fraction(total, STEPS), array.dtype, filter, read))
    return found


def result(total, dtype, filter, read):
    """A weighted sum of stored channels as a fetch returns it."""
    if dtype.kind == "f":
        return rounded_away(total, dtype.type)
    if read == "element":
        return int(total)
    most = int(np.iinfo(dtype).max)
    if filter == "point":
        return share(int(total), most)
    if dtype == np.int8:  # 127.5 parts become 128.5, in whole numbers of 1 / 256
        steps = int(total * STEPS)
        return share(steps + floor(Fraction(steps + 16 * (steps // 4096) + 64, 128)), 32767)
    wide = int(np.iinfo(f"{dtype.kind}2").max)  # a filter returns 16 bits
    return share(floor(total * wide / most + HALF), wide)
