"""From the kernels that ncu profiled to what was counted of each launch. Values in, values out.

Before each launch a kernel runs that does nothing and whose name says which launch follows. So the
launches are known again in any order, with any number of kernels each, in a report from anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.errors import CountersError
from analysis.records.profile import Counted, CountedKernel, Record
from toolkit.gpu.cublas import tile_of
from toolkit.gpu.nsight_compute.ncu import (
    DYNAMIC_SHARED,
    OF_LAUNCH,
    REGISTERS,
    STATIC_SHARED,
    ProfiledKernel,
)

MARKER = "next_is__"


@dataclass(frozen=True)
class CountableLaunch:
    """The launch of a record, which is to be counted: `entry` is None where a library chooses."""

    record: Record
    entry: str | None

    @property
    def label(self) -> str:
        return self.record.label

    @property
    def marker(self) -> str:
        """The kernel that announces it."""
        return MARKER + re.sub(r"\W", "_", f"{self.label}__{self.record.shape}")

    def __str__(self) -> str:
        return f"{self.label} at {self.record.shape}"


def by_marker(kernels: Iterable[ProfiledKernel]) -> dict[str, list[ProfiledKernel]]:
    """Kernels after each marker; the last group for a launch that was counted twice."""
    groups: dict[str, list[ProfiledKernel]] = {}
    current: list[ProfiledKernel] = []  # kernels before the first marker belong to no launch
    for kernel in kernels:
        name = kernel.name.partition("(")[0]
        if name.startswith(MARKER):
            current = groups[name] = []
        else:
            current.append(kernel)
    return groups


def counted(
    launch: CountableLaunch,
    kernels: Sequence[ProfiledKernel],
    *,
    asked: Sequence[str],
    source: str,
) -> Counted:
    """Counters of one launch: sums over its kernels.

    Raises CountersError if these are not its kernels, or ncu does not report their resources.
    """
    _check(launch, kernels)
    missing = [name for name in asked if any(name not in kernel.values for kernel in kernels)]
    return Counted(
        counters={
            name: sum(kernel.values[name] for kernel in kernels)
            for name in asked
            if name not in missing
        },
        kernels=tuple(_counted_kernel(kernel) for kernel in kernels),
        caches="flushed",
        source=source,
        missing=tuple(missing),
    )


def _check(launch: CountableLaunch, kernels: Sequence[ProfiledKernel]) -> None:
    found = ", ".join(kernel.name for kernel in kernels) or "no kernel"
    if not kernels:
        raise CountersError(f"{launch}: {found} was counted")
    for kernel, metric in ((kernel, metric) for kernel in kernels for metric in OF_LAUNCH):
        if metric not in kernel.values:
            raise CountersError(f"{launch}: {metric} of {kernel.name} was not counted")
    if launch.entry is None:
        return
    if len(kernels) > 1:
        raise CountersError(f"{launch}: {found} were counted, and {launch.entry} alone is launched")
    (kernel,) = kernels
    if kernel.name.partition("(")[0] != launch.entry:
        raise CountersError(f"{launch}: {found} was counted, and {launch.entry} is launched")


def _counted_kernel(kernel: ProfiledKernel) -> CountedKernel:
    values: Mapping[str, int] = kernel.values
    return CountedKernel(
        name=kernel.name,
        grid=kernel.grid,
        block=kernel.block,
        registers_per_thread=values[REGISTERS],
        static_shared_bytes=values[STATIC_SHARED],
        dynamic_shared_bytes=values[DYNAMIC_SHARED],
        tile=tile_of(kernel.name),
    )
