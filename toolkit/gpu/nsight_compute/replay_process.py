"""Launches for a profiler to look at: kept in a folder, run by a process of their own.

    python -m toolkit.gpu.nsight_compute.replay_process FOLDER [MARKER ...]

runs each launch of the folder once, or only those named, on the machine code that lies there.
What a profiler should see is between cuProfilerStart and cuProfilerStop: one empty kernel, whose
name says which launch follows, and the launch. Lines on standard output say which launch begins or
fails, and that all are done.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from analysis.errors import ToolkitError
from analysis.geometry import Geometry
from analysis.problem import parse_shape
from toolkit.gpu.context import Gpu
from toolkit.gpu.launch import OnGpu, task_of
from toolkit.gpu.nsight_compute.attribution import CountableLaunch
from toolkit.gpu.product_launch import launch_of_product
from toolkit.rungs.matrices import Workload

MANIFEST = "launches.json"
BEGINS, FAILS, ENDS = "begins", "fails", "ends"  # what a line of the process begins with
_ONCE = Geometry.of(1, 1)

Entry = dict[str, Any]
_workload = lru_cache(1)(Workload)  # of the launches of one shape


@contextmanager
def profiled(gpu: Gpu) -> Iterator[None]:
    """Start the profiler for the launches inside: it waits for this program's call."""
    gpu.driver.start_profiler()
    try:
        yield
        gpu.synchronize()
    finally:
        gpu.driver.stop_profiler()


def marker_source(launches: Sequence[CountableLaunch]) -> str:
    """A kernel per launch that does nothing."""
    kernels = (
        f'extern "C" __global__ void {launch.marker}(unsigned unused)\n{{\n}}\n'
        for launch in launches
    )
    return "".join(kernels)


class LaunchFolder:
    """Launches, with their machine code, in files that another process reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: list[Entry] = []

    def add(
        self,
        launches: Sequence[CountableLaunch],
        *,
        seed: int,
        images: Mapping[str, bytes],
        markers: bytes,
    ) -> None:
        """Add launches with inputs of one seed; `images` is the machine code by label."""
        self._entries += [
            {
                "label": launch.label,
                "marker": launch.marker,
                "shape": str(launch.record.shape),
                "executed_shape": str(launch.record.executed_shape),
                "seed": seed,
                "markers": self._kept(markers),
                "variant": launch.record.variant,
                "parameters": dict(launch.record.parameters),
                "image": self._kept(images[launch.label]) if launch.entry else None,
            }
            for launch in launches
        ]
        text = json.dumps(self._entries, indent=1)
        (self.path / MANIFEST).write_text(text, encoding="utf-8")

    def command(self, markers: Sequence[str] = ()) -> list[str]:
        """Command that launches the kernels of these markers; all kernels without markers."""
        return [sys.executable, "-m", __name__, str(self.path), *markers]

    def _kept(self, image: bytes) -> str:
        name = f"{sha256(image).hexdigest()[:16]}.cubin"
        (self.path / name).write_bytes(image)
        return name


def process_environment() -> dict[str, str]:
    """The variables of a process that launches: it finds this toolkit from every folder."""
    here = str(Path(__file__).parents[3])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{known}" if known else here}


def launch_all(
    folder: Path, chosen: Sequence[str], say: Callable[[str], None] = lambda line: None
) -> bool:
    """Run the launches of a folder; whether all of them ran."""
    entries = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    wanted = [entry for entry in entries if not chosen or entry["marker"] in chosen]
    complete = True
    with Gpu() as gpu:
        for entry in wanted:
            say(f"{BEGINS} {entry['marker']}")
            try:
                _launch(entry, folder, gpu)
            except ToolkitError as error:
                complete = False
                say(f"{FAILS} {entry['marker']} {error}")
                if not gpu.alive:
                    return False
    say(ENDS)
    return complete


def _launch(entry: Entry, folder: Path, gpu: Gpu) -> None:
    image = (folder / entry["image"]).read_bytes() if entry["image"] else ""
    launch = launch_of_product(
        entry["variant"],
        entry["parameters"],
        source=image,
        problem=parse_shape(entry["shape"]),
        executed=parse_shape(entry["executed_shape"]),
        seed=entry["seed"],
        workload=_workload,
    )
    with OnGpu(task_of(launch), gpu) as held:
        markers = (folder / entry["markers"]).read_bytes()
        mark = gpu.load_image(markers, entry["marker"]).prepared(_ONCE, [np.uint32(0)])
        if not image:
            held.once()  # the first call sets cuBLAS up
        held.poison()
        with gpu.launch_errors("launch"):
            gpu.synchronize()
            with profiled(gpu):
                mark()
                held.once()


def main(arguments: Sequence[str]) -> int:
    """Run the command line above."""
    folder, *chosen = arguments
    try:
        complete = launch_all(Path(folder), chosen, lambda line: print(line, flush=True))
    except ToolkitError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
