"""Kernels bound to a launch in one dimension, below what `simulate` does for a user."""

from analysis.geometry import Geometry
from tests.cubins import kernel_of
from toolkit.sass.translate import bind, translate


def bound_to(kernel, arguments, *, blocks=1, threads=32):
    """The launch, the arrays that it writes to, and the translated kernel."""
    translated = translate(kernel)
    geometry = Geometry(grid=(blocks, 1, 1), block=(threads, 1, 1))
    return *bind(translated, geometry, list(arguments)), translated


def for_an_h200(source, kernel):
    return kernel_of(source, kernel)
