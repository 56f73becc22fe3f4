"""What never ends is told, kept and left, also where it hangs inside of the driver."""

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
# after some launches: it holds its thread as a driver does, where no exception comes.
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
        ctypes.CDLL(None).sleep(3600)

fake.kernels["sgemm_tiled"] = tiled
import toolkit.gpu, toolkit.gpu_bench, toolkit.experiment, toolkit.cli, toolkit.trial
toolkit.gpu.driver_library = object
toolkit.gpu_bench.WARM_UP_S = 0.0
toolkit.trial.LAUNCH_GRACE_S = 1.0
toolkit.experiment.survives = lambda trial: None  # it ends when it is tried
toolkit.cli.app([*{arguments!r}, *sys.argv[1:]])
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


def child(folder: Path, launches: int, *more: str) -> subprocess.CompletedProcess[str]:
    code = CHILD.format(folder=str(Path(__file__).parent), launches=launches, arguments=ARGUMENTS)
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


@pytest.mark.parametrize("launches", [1, 9], ids=["when it is checked", "when it is timed"])
def test_a_kernel_that_hangs_after_its_trial_ends_the_run_with_one_line(
    tmp_path: Path, launches: int
) -> None:
    started = time.monotonic()
    result = child(tmp_path, launches)
    assert result.returncode == 1, result.stderr
    assert time.monotonic() - started < 60
    (line,) = [x for x in result.stderr.splitlines() if x.startswith("error: ")]
    assert line.startswith("error: tiled at 32x32x32: did not end within 1 s, though it had before")
    assert "go on with --resume" in line


def test_what_hung_is_kept_and_not_launched_again(tmp_path: Path) -> None:
    child(tmp_path, 9)
    before = load(tmp_path / "profile.json")
    naive, tiled = before.records
    assert (tiled.status, (tiled.reason or "").startswith(HUNG)) == ("failed", True)
    assert naive.measured is None
    resumed = child(tmp_path, 1, "--resume")
    assert resumed.returncode == 1  # a record failed, and nothing hung
    naive, tiled = load(tmp_path / "profile.json").records
    assert naive.measured is not None
    assert (tiled.reason or "").startswith(HUNG)


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
