"""Settings of all tests: tests of hardware run if the hardware is there, or if they are named.

The suite runs in as many processes as there are cores. Hardware runs one test at a time, so that a
run with hardware tests always has a single process: on a machine with a GPU that is the whole
suite. `-n 0` chooses one process for any run; `-n 4` leaves the hardware tests out.

Tests marked `exhaustive` run only if `-m` names them: `-m exhaustive` runs them alone, in parallel
and without those of hardware, `-m "gpu and exhaustive"` runs those of the GPU.
"""

import gc
import os
import shutil
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from tests import ahead, sampling
from tests.machines import gpu, machine, silicon
from tests.reports.browsing import window
from toolkit.gpu.environment import commit
from toolkit.launch.host_resources import available_cores
from toolkit.launch.process_memory import set_up_memory

__all__ = ["gpu", "machine", "silicon", "window"]  # one of each for all files of tests

# What an example takes depends on what else the machine does.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

MOST_PROCESSES = 8  # each collects all tests, and grows to 0.7 GB


@cache
def why_no_gpu():
    from analysis.errors import ToolkitError
    from toolkit.gpu.context import Gpu

    try:
        with Gpu():
            return None
    except ToolkitError as error:
        return str(error)


def why_no_ncu():
    if why_no_gpu():
        return why_no_gpu()
    return None if shutil.which("ncu") else "ncu is not on the PATH"


NEEDS = {"gpu": why_no_gpu, "ncu": why_no_ncu}


def is_asked_for(name, config):
    return name in config.getoption("-m").replace(f"not {name}", "")


def pytest_addoption(parser):
    parser.addoption("--record-ahead", metavar="FOLDER", help="record for `python -m tests.ahead`")


def pytest_configure(config):
    sampling.RUNS_EXHAUSTIVE = is_asked_for("exhaustive", config)
    set_up_memory()
    if not hasattr(config, "workerinput"):  # workers inherit the environment
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the cores are busy with other tests
        os.environ.setdefault("GEMM_LADDER_COMMIT", commit() or "")  # each profile asks for it
        os.environ["GEMM_LADDER_CACHE"] = str(compiler_outputs(config.rootpath))
        if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # each process would compile all anew
            os.environ["PYTHONPYCACHEPREFIX"] = str(config.rootpath / ".pytest_cache" / "bytecode")


def compiler_outputs(root):
    """The cache folder of the tests: machine code and disassembly stay from run to run.

    Predictions and times of the CPU do not: what our own code finds is found anew in each run.
    """
    folder = Path(os.environ.get("GEMM_LADDER_CACHE") or root / ".pytest_cache" / "compiled")
    for pattern in ("prediction-*", "cpu-*", "decoded-*", "product-*"):
        for entry in folder.glob(pattern):
            entry.unlink(missing_ok=True)
    return folder


def pytest_xdist_auto_num_workers(config):
    """Number of processes: one per core for whole folders, none beside this one for less."""
    is_part_of_a_file = not all(Path(argument).is_dir() for argument in config.args)
    if is_part_of_a_file or any(is_asked_for(name, config) for name in NEEDS):
        return 0
    if not is_asked_for("exhaustive", config) and not why_no_gpu():
        return 0
    return min(available_cores(), MOST_PROCESSES)


def files_of(session):
    """File of each test, below the root of the repository."""
    root = session.config.rootpath
    files = {
        path: path.relative_to(root).as_posix() for path in {one.path for one in session.items}
    }
    return [files[item.path] for item in session.items]


@pytest.hookimpl(tryfirst=True)  # no worker is given tests before all are done
def pytest_collection_finish(session):
    """Compile ahead what the tests need, or record what they compile."""
    if session.config.option.collectonly:
        return
    if folder := session.config.option.record_ahead:
        session.config.pluginmanager.register(Recording(folder))
    elif not any(is_asked_for(name, session.config) for name in NEEDS):  # a GPU runs nvcc's code
        ahead.compile_ahead(files_of(session))


class Recording:
    """Tells the recorder which file's tests run."""

    def __init__(self, folder):
        self._recorder = ahead.Recorder(folder)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        self._recorder.test_file = item.location[0]

    def pytest_sessionfinish(self):
        self._recorder.write()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Run a test in a worker, which tells how it ended and what went wrong around it.

    Six messages for each test, most of them of setups that passed, cost a millisecond. Those who
    ask for the slowest setups (`--durations`) get them all.
    """
    if not hasattr(item.config, "workerinput") or item.config.option.durations is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect without the garbage collector: what is made, modules and items, stays to the end."""
    gc.disable()
    try:
        if workers := getattr(session.config, "workerinput", None):
            import_in_turn(session.config, workers)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def import_in_turn(config, workers):
    """Import the files of tests, in each worker from another one on.

    After a change, pytest compiles each file with its assertions. Workers that begin elsewhere find
    most files compiled by others.
    """
    files = sorted(
        file for path in map(Path, config.args) if path.is_dir() for file in path.rglob("test_*.py")
    )
    number = int(workers["workerid"].removeprefix("gw"))
    first = len(files) * number // workers["workercount"]
    for file in [*files[first:], *files[:first]]:
        name = ".".join(file.resolve().relative_to(config.rootpath).with_suffix("").parts)
        with suppress(Exception, pytest.skip.Exception):  # told when the file is collected
            import_module(name)


def pytest_collection_modifyitems(config, items):
    """Leave out exhaustive tests unless asked for. Skip hardware tests that cannot run here."""
    if not is_asked_for("exhaustive", config):
        left_out = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    for item in items:
        for name in NEEDS:
            if item.get_closest_marker(name) and (reason := why_not(name, config)):
                item.add_marker(pytest.mark.skip(reason=f"{name}: {reason}"))


def why_not(name, config):
    """Reason why tests of some hardware are skipped; None if they run: if named, they must."""
    if missing := NEEDS[name]():
        return None if is_asked_for(name, config) else missing
    is_one_of_several = hasattr(config, "workerinput")
    return "one test at a time: run it with -n 0" if is_one_of_several else None


@pytest.fixture
def edit_rung(monkeypatch):
    """Replaces a part of a rung's source wherever it stands, as its author may have done."""
    from kernels.variant import Variant

    def edit(name, old, new):
        real = Variant.source.fget

        def source(variant):
            text = real(variant)
            if variant.name != name:
                return text
            assert old in text
            return text.replace(old, new)

        monkeypatch.setattr(Variant, "source", property(source))

    return edit
