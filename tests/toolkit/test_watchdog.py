"""What never ends is told, kept and left, also where it hangs inside of the driver.

So is what faults after its trial: the run goes on in a process that has neither.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolkit.store import load
from toolkit.watchdog import HUNG, Watchdog

# A process with the made-up GPU of conftest.py, on which the tiled kernel does not end any more
# after some launches: it holds its thread as a driver does, where no exception comes. Or it faults.
CHILD = """
import ctypes, sys
sys.path.insert(0, {folder!r})
import conftest, types

fake = conftest.FakeCuda()
package = types.ModuleType("pycuda")
package.driver, package.compiler = fake.driver, fake.compiler()
sys.modules["pycuda"], sys.modules["pycuda.driver"] = package, fake.driver
sys.modules["pycuda.compiler"] = package.compiler
sys.modules |= {{"nvmath.bindings": None, "pynvml": None}}

def tiled(launch):
    conftest.product(launch)
    if fake.log.count("sgemm_tiled") == {launches}:
        {bug}

fake.kernels["sgemm_tiled"] = tiled
import toolkit.gpu, toolkit.gpu_bench, toolkit.experiment, toolkit.cli, toolkit.trial
toolkit.gpu.driver_library = object
toolkit.gpu_bench.WARM_UP_S = 0.0
toolkit.trial.LAUNCH_GRACE_S = 1.0
toolkit.experiment.survives = lambda trial: None  # it ends when it is tried
{program}
"""
HANGS = "ctypes.CDLL(None).sleep(3600)"
FAULTS = "fake.fault()"
CLI = "sys.argv[1:1] = {arguments!r}; toolkit.cli.main()"
LIBRARY = """
from toolkit.store import save
toolkit.experiment.profile(
    [32], ["naive-coalesced", "tiled"], executor="gpu", checkpoint=lambda x: save(x, "profile.json")
)
"""
SETTINGS = {
    "executor": "gpu",
    "shape": "32",
    "seed": "1",
    "seconds": "60",
    "samples": "30",
    "precision": "1e-6",
}
ARGUMENTS = ["profile", "--variant", "naive-coalesced", "--variant", "tiled"]
ARGUMENTS += [word for name, value in SETTINGS.items() for word in (f"--{name}", value)]


def child(
    folder: Path, launches: int, *more: str, bug: str = HANGS, program: str = CLI
) -> subprocess.CompletedProcess[str]:
    code = CHILD.format(
        folder=str(Path(__file__).parent),
        launches=launches,
        bug=bug,
        program=program.format(arguments=ARGUMENTS),
    )
    return subprocess.run(
        [sys.executable, "-c", code, *more],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


WHEN = pytest.mark.parametrize("launches", [1, 9], ids=["when it is checked", "when it is timed"])


@WHEN
@pytest.mark.parametrize(
    ("bug", "words"),
    [
        (HANGS, "did not end within 1 s, though it had before"),
        (FAULTS, "launch: cuCtxSynchronize failed: an illegal memory access was encountered"),
    ],
    ids=["hangs", "faults"],
)
def test_the_run_goes_on_without_what_breaks_it_after_its_trial(
    tmp_path: Path, launches: int, bug: str, words: str
) -> None:
    started = time.monotonic()
    result = child(tmp_path, launches, bug=bug)
    assert result.returncode == 1, result.stderr  # a kernel failed
    assert time.monotonic() - started < 60
    notes = [line for line in result.stderr.splitlines() if "going on without it" in line]
    assert len(notes) == 1
    assert notes[0].startswith("note: tiled at 32x32x32: ")
    assert words in notes[0]
    profile = load(tmp_path / "profile.json")
    assert profile.status == "complete"
    assert (tmp_path / "profile.html").exists()
    naive, tiled = profile.records
    assert (naive.status, tiled.status) == ("ok", "failed")
    assert naive.measured is not None
    assert words in (tiled.reason or "")


def test_the_process_that_goes_on_is_the_same_to_who_waits_for_it(tmp_path: Path) -> None:
    """With --resume, too: its number, its working directory and its other words stay."""
    child(tmp_path, 1)
    (tmp_path / "profile.json").rename(tmp_path / "first.json")
    code = "import os; print('process', os.getpid(), flush=True)\n"
    result = child(tmp_path, 1, "--record", "second.json", program=code + CLI)
    numbers = [line for line in result.stdout.splitlines() if line.startswith("process ")]
    assert len(numbers) == 2
    assert len(set(numbers)) == 1
    assert load(tmp_path / "second.json").status == "complete"


def test_a_full_disk_ends_the_run_with_one_line_instead_of_running_it_again(tmp_path: Path) -> None:
    program = """
import toolkit.store
def full(*arguments):
    raise OSError(28, "No space left on device")
toolkit.store.save = full
"""
    result = child(tmp_path, 1, program=program + CLI)
    assert result.returncode == 1
    assert "going on without it" not in result.stderr
    (line,) = [x for x in result.stderr.splitlines() if x.startswith("error: ")]
    assert line.startswith("error: tiled at 32x32x32: did not end within 1 s, though it had before")


@pytest.mark.parametrize("bug", [HANGS, FAULTS], ids=["hangs", "faults"])
def test_a_process_that_cannot_be_replaced_ends_all_the_same(tmp_path: Path, bug: str) -> None:
    program = """
import os
def gone(*arguments):
    raise OSError(2, "No such file or directory")
os.execv = gone
"""
    result = child(tmp_path, 9, bug=bug, program=program + CLI)
    assert result.returncode == 1
    tiled = load(tmp_path / "profile.json").records[1]
    assert tiled.status == "failed"
    assert "Traceback" not in result.stderr


def test_a_program_that_calls_the_command_line_is_not_run_again(tmp_path: Path) -> None:
    program = "toolkit.cli.app([*{arguments!r}, *sys.argv[1:]])"
    result = child(tmp_path, 1, program=program)
    assert result.returncode == 1
    assert "going on without it" not in result.stderr
    assert "go on with --resume" in result.stderr


@WHEN
def test_a_program_that_cannot_begin_anew_ends_with_one_line_and_what_was_done(
    tmp_path: Path, launches: int
) -> None:
    result = child(tmp_path, launches, program=LIBRARY)
    assert result.returncode == 1, result.stderr
    (line,) = [x for x in result.stderr.splitlines() if x.startswith("error: ")]
    assert line.startswith("error: tiled at 32x32x32: did not end within 1 s, though it had before")
    assert "go on with --resume" in line
    before = load(tmp_path / "profile.json")
    naive, tiled = before.records
    assert (tiled.status, (tiled.reason or "").startswith(HUNG)) == ("failed", True)
    assert naive.measured is None


def test_what_ends_in_time_is_left_alone() -> None:
    told: list[str] = []
    with Watchdog(lambda what, limit_s: told.append(what)) as watchdog:
        for _ in range(3):
            with watchdog.limit("short", 30):
                pass
        time.sleep(0.6)
    assert told == []


def test_the_limit_is_that_of_what_is_watched() -> None:
    told: list[tuple[str, float]] = []
    with (
        Watchdog(lambda what, limit_s: told.append((what, limit_s))) as watchdog,
        watchdog.limit("outer", 1000),
        watchdog.limit("inner", 0.1),
    ):
        time.sleep(1)
    assert told == [("inner", 0.1)]


def test_a_process_that_was_stopped_is_not_late() -> None:
    code = """
import os, time
from toolkit.watchdog import Watchdog

with Watchdog(lambda what, limit_s: os._exit(1)) as watchdog, watchdog.limit("stopped", 2):
    print("begun", flush=True)
    for _ in range(8):
        time.sleep(0.1)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        process.send_signal(signal.SIGCONT)
        assert process.wait(30) == 0
