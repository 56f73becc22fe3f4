"""Remedies measured on a GPU: the launch with each edit is timed as the launch itself was."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from analysis.errors import ToolkitError
from analysis.records.remedy import Remedy
from toolkit.gpu.launch import run
from toolkit.gpu.sampling import Sampling
from toolkit.remedies.result import Remedies


def measured(remedies: Remedies, sampling: Sampling) -> Remedies:
    """Copy in which each remedy that was made has its measured time.

    One that cannot be launched on the GPU stays as it is.
    """
    return replace(remedies, found=tuple(_measured(remedies, x, sampling) for x in remedies.found))


def _measured(remedies: Remedies, remedy: Remedy, sampling: Sampling) -> Remedy:
    edit, launch = remedies.edits.get(remedy.number), remedies.launch
    if edit is None or launch is None:
        return remedy
    changed = launch.edited(edit)
    try:
        execution = run(
            changed.compiled(),
            grid=changed.grid,
            block=changed.block,
            arguments=changed.arguments,
            dynamic_shared_bytes=changed.dynamic_shared_bytes,
            symbols=changed.setup.symbols,
            cooperative=changed.setup.cooperative,
            heap_bytes=changed.setup.heap_bytes,
            samples=sampling,
            l2=changed.l2,
        )
    except ToolkitError:
        return remedy
    return replace(remedy, measured_s=median(execution.samples_s))
