"""Kernels bound to a launch in one dimension, below what `simulate` does for a user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.geometry import Geometry
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.machine import Bound
from toolkit.sass.translate import Translated, bind, translate


def bound_to(
    kernel: Kernel, arguments: Sequence[Any], *, blocks: int = 1, threads: int = 32
) -> tuple[Bound, list[Any], Translated]:
    """The launch, the arrays that it writes to, and the translated kernel."""
    translated = translate(kernel)
    geometry = Geometry(grid=(blocks, 1, 1), block=(threads, 1, 1))
    return *bind(translated, geometry, list(arguments)), translated


def for_an_h200(source: str, kernel: str) -> Kernel:
    return compile_cubin(source, name="k.cu", kernel=kernel, arch="sm_90")
