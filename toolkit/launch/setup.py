"""Setup by a host program before a launch: variables, the heap, the kind of launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import shown
from analysis.errors import InputError
from toolkit.launch.heap import HEAP_BYTES, MOST_HEAP_BYTES

Content = Mapping[str, NDArray[np.generic] | np.generic]  # of variables, by name


@dataclass(frozen=True, kw_only=True)
class LaunchSetup:
    """Setup of a launch: what cudaMemcpyToSymbol, cudaDeviceSetLimit and the kind of launch decide.

    `symbols` maps names of `__constant__` and `__device__` variables to their content. Raises
    InputError for content that is no NumPy array or scalar, and for a heap that is too large.
    """

    symbols: Content = field(default_factory=dict)
    cooperative: bool = False
    heap_bytes: int = HEAP_BYTES

    def __post_init__(self) -> None:
        for name, content in self.symbols.items():
            if not isinstance(content, np.ndarray | np.generic) or content.dtype.hasobject:
                raise InputError(
                    f"symbols[{name!r}] is {shown(content)}: give a NumPy array of numbers or, for "
                    "one value, a NumPy scalar such as numpy.int32(5)"
                )
        if not 0 <= self.heap_bytes <= MOST_HEAP_BYTES:
            raise InputError(
                f"heap_bytes = {shown(self.heap_bytes)}: give 0 to {MOST_HEAP_BYTES:,}"
            )


PLAIN = LaunchSetup()


def setup_of(symbols: Content | None, cooperative: bool, heap_bytes: int) -> LaunchSetup:
    """The setup that the arguments of `simulate`, `check` and `run` ask for."""
    return LaunchSetup(symbols=dict(symbols or {}), cooperative=cooperative, heap_bytes=heap_bytes)
