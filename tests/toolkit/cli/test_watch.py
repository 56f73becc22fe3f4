"""`simulate --watch`: what each save shows. Runs are in this process, on a clock of the tests."""

import re
import signal
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.timing.predicted import Predicted
from tests.toolkit.cli.commands import ended, invoke, refused, started
from toolkit.cli.options import LaunchOptions
from toolkit.cli.watch import watch_files
from toolkit.cli.watched_runs import Worker, run
from toolkit.store.watched_files import WatchedFiles

# With WIDTH 32, 32 words of a column are in one bank.
TRANSPOSE = """#include "width.cuh"
extern "C" __global__ void transpose(float *out, const float *in) {
    __shared__ float tile[32][WIDTH];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""
GRID = "-g 1 -b 32,32 -a f32[32,32]=zeros -a f32[32,32]"
LAUNCH = f"simulate transpose.cu {GRID} --watch"


@pytest.fixture(autouse=True)
def sources(folder):
    save("transpose.cu", TRANSPOSE)
    save("width.cuh", "#define WIDTH 32\n")


def save(name, text):
    Path("new").write_text(text, encoding="utf-8")
    Path("new").replace(name)


class Here(Worker):
    """Runs in this process. `edit` may replace what is told; an empty queue lets time pass."""

    def __init__(self, edit, **launch):
        self.now_s = 0.0
        self.cancelled = 0
        self._edit, self._told = edit, deque[Any]()
        self._launch = LaunchOptions(
            source="transpose.cu",
            grid="1",
            block="32,32",
            arguments=["f32[32,32]=zeros", "f32[32,32]"],
            seed=1,
            **launch,
        )

    def begin(self):
        told = []
        told.append(run(self._launch, told.append))
        self._told = deque(self._edit(told))

    def answer(self, limit_s):
        if self._told and (found := self._told.popleft()) is not None:
            return found() if callable(found) else found
        self.now_s += limit_s
        return None

    def cancel(self):
        self.cancelled += 1


def watched(
    steps,
    edit=lambda told: told,
    **launch,
):
    """Take each step while nothing runs, wait for what comes of it, and end with Ctrl-C."""
    worker, left = Here(edit, **launch), deque(steps)
    files = WatchedFiles(Path("transpose.cu"), (), clock=lambda: worker.now_s)

    def sleep(seconds):
        worker.now_s += seconds
        if worker.now_s > sleep.until:
            if not left:
                raise KeyboardInterrupt
            left.popleft()()
            sleep.until = worker.now_s + 0.5

    sleep.until = 0.0
    with pytest.raises(KeyboardInterrupt):
        watch_files(files, worker, top=None, sleep=sleep)
    return worker


def test_a_first_run_shows_all_and_a_save_what_changed(capsys):
    def change():
        first = capsys.readouterr()
        assert first.out.startswith("transpose: ")
        assert "\n line  source" in first.out or "\ntime, µs\n" in first.out
        assert first.err == "watching transpose.cu: press Ctrl-C to stop\n"
        save("width.cuh", "#define WIDTH 33\n")

    watched([change], device="h200")
    saved, time_changed, cause, *rows = capsys.readouterr().out.splitlines()
    assert saved.endswith(" saved: width.cuh")
    assert time_changed.startswith("transpose: ")
    assert time_changed.endswith(" µs predicted, no clear change.")  # 12%, within the intervals
    assert re.match(r"[A-Z][^:]+: \S+ → \S+ µs\.", cause)
    titles = [row.strip() for row in rows if row.startswith(("causes", "cost", "counts"))]
    assert titles == [
        "causes that moved", "cost of source lines", "counts", "counts of source lines",
    ]  # fmt: skip
    assert [row.split()[-5:-1] for row in rows if "wavefronts of shared loads  " in row] == [
        ["1,024", "32", "−96.9", "%"]  # 32 warps, 32 banks
    ]
    assert not any("shared stores" in row or "watching" in row for row in rows)
    assert any(row.startswith(" transpose.cu:6") for row in rows)


def test_mistakes_are_told_and_the_next_run_is_compared_with_the_last_that_ended(
    capsys,
):
    def check_mistake():
        assert capsys.readouterr().err == (
            'error: transpose.cu, line 5: identifier "__sync" is undefined\n'
        )
        save("transpose.cu", TRANSPOSE.replace("WIDTH]", "WIDTH + 1]"))

    watched(
        [
            capsys.readouterr,
            lambda: save("transpose.cu", TRANSPOSE.replace("__syncthreads()", "__sync()")),
            check_mistake,
        ]
    )
    found = capsys.readouterr()
    assert "wavefronts of shared loads" in found.out
    assert "Counts" not in found.out
    assert found.err == ""


@pytest.mark.exhaustive  # so does a source that was lost
def test_a_save_that_changes_nothing_says_so(capsys):
    watched([capsys.readouterr, lambda: save("transpose.cu", TRANSPOSE + "// the end\n")])
    saved, *rest = capsys.readouterr().out.splitlines()
    assert saved.endswith(" saved: transpose.cu")
    assert rest == ["Predicted time: no change.", "Counts: no change."]


def test_a_lost_source_is_waited_for(capsys):
    watched(
        [
            capsys.readouterr,
            Path("transpose.cu").unlink,
            lambda: save("transpose.cu", TRANSPOSE),
        ]
    )
    found = capsys.readouterr()
    assert found.err == "transpose.cu is gone: waiting for it\n"
    assert found.out.endswith(
        "saved: transpose.cu\nPredicted time: no change.\nCounts: no change.\n"
    )


def test_a_newer_save_cancels_a_run(capsys):
    runs = []

    def edit(told):
        runs.append(len(told))
        if len(runs) == 1:  # one that never ends
            return [lambda: save("width.cuh", "#define WIDTH 33\n"), *([(1, 2), None] * 99)]
        return told

    worker = watched([], edit)
    found = capsys.readouterr()
    assert worker.cancelled == 1
    assert len(runs) == 2
    assert found.err.startswith("cancelled: the file was saved again\n")
    assert "\ntime, µs\n" in found.out  # all of the first that ends


def test_counters_do_not_wait_long_for_the_time(capsys):
    def late(told):
        return [*told[:-1], None, lambda: told[-1] if print("--") is None else None]

    def change():
        early, _, rest = capsys.readouterr().out.partition("--\n")
        assert "wavefronts of shared loads" in early
        assert "predicted" not in early
        assert rest.startswith("transpose: ")
        save("width.cuh", "#define WIDTH 33\n")

    watched([change], late, device="h200")
    early, _, rest = capsys.readouterr().out.partition("--\n")
    assert "wavefronts of shared loads" in early
    assert "predicted" not in early
    assert rest.startswith("transpose: ")
    assert "wavefronts" not in rest.partition("\n")[2]  # is not shown again


@pytest.mark.exhaustive
def test_a_time_that_is_lost_is_told_with_the_reason(capsys):
    runs = []

    def edit(told):
        runs.append(told[-1])
        assert isinstance(told[-1].simulated.execution.predicted, Predicted)
        if len(runs) != 2:
            return told
        simulated = told[-1].simulated
        lost = replace(simulated.execution, predicted=None, prediction_basis="not predicted: x")
        return [replace(told[-1], simulated=replace(simulated, execution=lost))]

    again = [capsys.readouterr, *(lambda: save("transpose.cu", TRANSPOSE) for _ in range(2))]
    watched(again, edit, device="h200")
    first, second = capsys.readouterr().out.split("saved: transpose.cu\n")[1:]
    assert first.startswith("Counts: no change.\nnote: transpose: not predicted: x.\n")
    assert "\nnote: transpose: " in second
    assert ") predicted on NVIDIA H200 SXM 141 GB, L2 dirty." in second


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("tiled", "--watch needs a file, and tiled is a rung: copy its source, "),
        ("none.cu", "--watch needs a file, and 'none.cu' is not one"),
        ("none.cubin", "--watch needs a file, and 'none.cubin' is not one"),
        (".", "--watch needs a file, and '.' is not one"),
    ],
)
def test_only_a_file_is_watched(source, said):
    assert refused(f"simulate {source} {GRID} --watch").startswith(said)


@pytest.mark.parametrize("more", ["--json", "--save 0=x.npy", "--html x.html"])
def test_nothing_is_kept_of_watched_runs(more):
    result = invoke(f"{LAUNCH} {more}")
    assert result.exit_code == 2
    assert "not with --save, --json or --html" in result.stderr


@pytest.mark.parametrize("more", ["--verbose", "--left-out"])
def test_options_that_watched_runs_do_not_show_are_refused(more):
    result = invoke(f"{LAUNCH} {more}")
    assert result.exit_code == 2
    assert "not with --verbose or --left-out" in result.stderr


def test_a_run_that_needs_too_much_memory_says_so(monkeypatch):
    def call_of(*given):
        raise MemoryError("Unable to allocate 4 TiB")

    monkeypatch.setattr("toolkit.cli.watched_runs.call_of", call_of)
    launch = LaunchOptions(source="transpose.cu", grid="1", block="32", arguments=["f32[32]"])
    assert run(launch, print) == (
        "not enough memory (Unable to allocate 4 TiB): make the launch smaller, or free memory"
    )


def test_mistakes_of_the_launch_end_the_command():
    assert refused(f"{LAUNCH} -a x32[1]").startswith("--arg 2 (")


@pytest.mark.exhaustive
def test_in_processes_of_their_own_an_endless_run_is_cancelled_and_ctrl_c_ends_all():
    endless = TRANSPOSE.replace("__syncthreads();", "while (out) __syncthreads();")
    with started("-m", "toolkit", *LAUNCH.split()) as process:
        assert process.stderr.readline() == "watching transpose.cu: press Ctrl-C to stop\n"
        save("transpose.cu", endless)
        while "saved" not in process.stdout.readline():
            pass
        time.sleep(1)
        save("transpose.cu", TRANSPOSE)
        assert process.stderr.readline() == "cancelled: the file was saved again\n"
        assert process.stdout.readline().endswith("saved: transpose.cu\n")
        assert process.stdout.readline() == "Predicted time: no change.\n"
        assert process.stdout.readline() == "Counts: no change.\n"
        process.send_signal(signal.SIGINT)
        assert ended(process) == (0, "", "")


def test_the_source_of_machine_code_is_watched_too():
    files = WatchedFiles(Path("width.cuh"), (), others=[Path("transpose.cu")])
    assert not files.take()
    save("transpose.cu", TRANSPOSE + "\n")
    assert files.take() == ["transpose.cu"]
