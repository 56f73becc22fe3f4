"""Rungs beside each other in processes: the same records, whoever makes them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from analysis.devices import find_device
from analysis.problem import parse_shape
from kernels.ladder import BEST
from kernels.selection import parse_selection
from toolkit.launch.progress import Progress
from toolkit.profiling import rung_processes
from toolkit.profiling.on_simulator import SimulatorBench
from toolkit.profiling.record import planned
from toolkit.profiling.rung_processes import side_by_side
from toolkit.rungs.best import best_for
from toolkit.rungs.matrices import Workload

DEVICE, SHAPE = find_device("h200"), parse_shape("128x128x64")
NAMES = ("one-block", "naive-coalesced", "tiled:tile=16", "coarsened-1d", "coarsened-2d", "tiled")
EIGHT = (
    *("naive-coalesced", "tiled:tile=8", "tiled:tile=16", "tiled", "coarsened-1d"),
    *("coarsened-1d:bk=8", "coarsened-1d:bk=16", "coarsened-2d"),
)  # on two cores, as many as have a process beside this one
MAKE = partial(SimulatorBench, DEVICE, sanitizes=False)


def done(processes, monkeypatch):
    """By label, and what was done in this process."""
    monkeypatch.setattr(rung_processes, "_processes", lambda rungs, problem: processes)
    bench, workload, here = MAKE(), Workload(SHAPE, 7), []

    def simulated(selection, record):
        here.append(selection.label)
        return bench.rung(record, selection, workload, Progress())

    selections = [*map(parse_selection, NAMES), best_for(DEVICE, SHAPE)]
    made = [(x, planned(x, SHAPE, DEVICE)) for x in selections if x.label != "one-block"]

    def begin():
        assert not here
        begun.append(True)

    begun = []
    found = {x.selection.label: x for x in side_by_side(MAKE, made, workload, simulated, begin)}
    assert len(found) == len(made)
    assert begun == [True]
    return found, here


def test_records_and_listings_of_another_process_are_the_same(
    monkeypatch,
):
    alone, here = done(0, monkeypatch)
    assert len(here) == len(alone)
    shared, here = done(2, monkeypatch)
    assert {x: one.record for x, one in shared.items()} == {
        x: one.record for x, one in alone.items()
    }
    for label in shared.keys() - set(here):
        listing = shared[label].record.simulated.listing
        assert list(shared[label].listings) == [listing]
    assert BEST.name in shared


def test_a_source_that_only_this_process_knows_is_simulated_here(edit_rung, monkeypatch):
    for name in ("tiled", "coarsened-1d", "coarsened-2d"):
        edit_rung(name, "__syncthreads();", "__syncthreads(); ")
    _, here = done(1, monkeypatch)
    assert {"tiled", "tiled:tile=16", "coarsened-1d", "coarsened-2d"} <= set(here)


def test_a_process_that_dies_leaves_its_rungs_to_this_one(monkeypatch):
    monkeypatch.setattr("toolkit.gpu.worker_process.COMMAND", (sys.executable, "-c", "exit(3)"))
    found, here = done(2, monkeypatch)
    assert set(here) == set(found)


def test_one_process_is_for_several_rungs_and_only_where_memory_is_free(
    monkeypatch,
):
    monkeypatch.setattr(rung_processes, "available_cores", lambda: 3)
    monkeypatch.setattr(rung_processes, "available_bytes", lambda: 10**12)
    assert [rung_processes._processes(n, SHAPE) for n in (0, 1, 7, 8, 12, 40)] == [0, 0, 0, 1, 2, 2]
    monkeypatch.setattr(rung_processes, "available_bytes", lambda: 12 * SHAPE.matrix_bytes)
    assert rung_processes._processes(40, SHAPE) == 1
    monkeypatch.setattr(rung_processes, "available_bytes", lambda: 0)
    assert rung_processes._processes(40, SHAPE) == 0


def test_every_rung_is_a_step_whoever_does_it(monkeypatch):
    monkeypatch.setattr(rung_processes, "_processes", lambda rungs, problem: 1)
    steps = []

    class Heard(Progress):
        def step(self, text):
            steps.append(text)

    made = [(x, planned(x, SHAPE, DEVICE)) for x in map(parse_selection, NAMES[1:])]
    bench = MAKE()
    found = list(bench.rungs(made, Workload(SHAPE, 7), Heard()))
    assert sorted(steps) == sorted(NAMES[1:])
    assert sorted(bench.listings) == sorted(x.simulated.listing for _, x in found)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc")
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(tmp_path):
    mark = f"MARK={tmp_path}"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "toolkit", "profile", "--shape", "512", "--device", "h200"),
            *(word for name in EIGHT for word in ("--variant", name)),
            *(f"--html={tmp_path / 'p.html'}", f"--record={tmp_path / 'p.json'}"),
            *("--executor", "simulate"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"MARK": str(tmp_path)},
    )
    while not (tmp_path / "p.json.journal").exists():
        assert process.poll() is None
        time.sleep(0.05)
    beside = [one for one in commands(mark) if "toolkit.gpu.worker_process" in one]
    assert len(beside) == rung_processes._processes(len(EIGHT), SHAPE)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 1
    assert (tmp_path / "p.json").exists()
    assert commands(mark) == []


def commands(mark):
    """Words of the commands of all processes with a mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_text(errors="replace").split("\0"):
                found.append((process / "cmdline").read_text(errors="replace").split("\0"))
    return found
