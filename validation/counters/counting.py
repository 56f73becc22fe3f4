"""Launches under Nsight Compute: what the scripts that record counters share.

A script runs itself under ncu (`counted`); there it launches (`launch`), and ncu counts what
stands between the marks. Both need a GPU, the first one ncu too.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from statistics import median_low
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import Geometry
from toolkit.gpu.context import Gpu
from toolkit.gpu.launch import placed
from toolkit.gpu.nsight_compute import ncu
from toolkit.gpu.nsight_compute.replay_process import profiled
from toolkit.launch.launch import Argument, buffers_of
from toolkit.machine_code.kernel import Kernel
from validation.corpus.case import Case
from validation.timing.declared import Declared, rng

LIMIT_S = 450.0  # of a run of ncu

Counters = dict[str, int]


def launch(
    gpu: Gpu, code: Kernel, geometry: Geometry, arguments: Sequence[Argument], times: int = 1
) -> list[NDArray[Any]]:
    """Launch so many times, seen by the profiler; the arrays among the arguments afterwards."""
    kernel, arrays = gpu.load_image(code.image, code.symbol), buffers_of(arguments)
    buffers = {position: gpu.upload(array) for position, array in arrays.items()}
    once = kernel.prepared(geometry, placed(arguments, buffers, {}))
    with profiled(gpu):
        for _ in range(times):
            once()
    outputs = [np.empty_like(array, order="C") for array in arrays.values()]
    for output, buffer in zip(outputs, buffers.values(), strict=True):
        gpu.download(buffer, into=output)
    return outputs


def launch_cases(cases: Iterable[tuple[Declared, Case]], times: int) -> str:
    """Launch each case so many times, seen by the profiler; the name of the GPU."""
    with Gpu() as gpu:
        for one, case in cases:
            launch(gpu, one.code(gpu.device.sm_arch), case.geometry, case.make(rng()), times)
        return gpu.device.name


def counted(
    metrics: Sequence[str], module: str, *arguments: str, launches: int
) -> list[tuple[str, Counters]]:
    """(kernel, counters) of each launch of a module that runs under ncu; exits without them."""
    command = [str(ncu.path()), *ncu.counting_options(metrics), "--csv", "--print-units", "base"]
    done = subprocess.run(
        [*command, sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    found = counters_of(done.stdout)
    if len(found) != launches:
        said = done.stdout[-2000:], done.stderr[-2000:]
        sys.exit(f"{len(found)} of {launches} launches were counted: {' '.join(said)}")
    return [(kernel, {n: counters.get(n, 0) for n in metrics}) for kernel, counters in found]


def counters_of(text: str) -> list[tuple[str, Counters]]:
    """(kernel, counters) of each launch of ncu's CSV, in order; what was not counted is absent."""
    rows = csv.DictReader(line for line in text.splitlines() if line.startswith('"'))
    found: dict[str, tuple[str, Counters]] = {}
    for row in rows:
        _, counters = found.setdefault(row["ID"], (row["Kernel Name"], {}))
        value = row["Metric Value"].replace(",", "")
        if re.fullmatch(r"\d+(\.0*)?", value):
            counters[row["Metric Name"]] = int(float(value))
    return list(found.values())


def medians(
    found: Sequence[tuple[str, Counters]], metrics: Sequence[str], times: int
) -> Iterator[dict[str, Counters]]:
    """Median, lowest and highest counters of each group of `times` equal launches."""
    for first in range(0, len(found), times):
        alike = [counters for _, counters in found[first : first + times]]
        samples = {name: sorted(counters[name] for counters in alike) for name in metrics}
        yield {
            "counters": {name: median_low(values) for name, values in samples.items()},
            "lowest": {name: values[0] for name, values in samples.items()},
            "highest": {name: values[-1] for name, values in samples.items()},
        }
