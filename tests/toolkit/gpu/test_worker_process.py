"""Object in a process of its own: any failure there becomes one line, within the time limit."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from analysis.errors import CompileError, InputError, LaunchError, UnknownNameError
from tests.refusals import refusal
from toolkit.gpu import worker_process as isolated
from toolkit.gpu.worker_process import HUNG, Isolated


class Worker:
    """Object in the child; a child imports this module to find it."""

    def __init__(self, argument):
        self.argument = argument
        self.asked = 0

    def __enter__(self):
        if self.argument == "refuse":
            raise LaunchError("machine code of k: no kernel image is available")
        return self

    def __exit__(self, *exception):
        pass

    def echo(self, *words):
        self.asked += 1
        return [self.argument, self.asked, *words]

    def number(self):
        return os.getpid()

    def large(self, count):
        return bytes(range(256)) * (count // 256)

    def prints(self):
        os.write(1, b"what a kernel prints\n" * 10_000)
        os.write(2, b"and what a driver does\n" * 10_000)
        return "answer"

    def prints_to_a_buffer(self):
        ctypes.CDLL(None).printf(b"what a kernel prints\n")

    def is_refused(self):
        raise LaunchError("launch: an illegal memory access was encountered")

    def is_asked_for_what_is_unknown(self):
        raise UnknownNameError("kernel", "twize", ["twice"])

    def does_not_compile(self):
        raise CompileError("k.cu, line 1: no", log="everything")

    def stumbles(self):
        raise RuntimeError("first line\nsecond line")

    def exhausts_memory(self):
        raise MemoryError

    def answers_what_cannot_be_sent(self):
        return lambda: None

    def crashes(self):
        os.kill(os.getpid(), signal.SIGSEGV)

    def leaves(self):
        os._exit(3)

    def never_ends(self):
        time.sleep(3600)

    def never_ends_and_ignores_sigterm(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)

    def sleeps(self, seconds):
        time.sleep(seconds)
        return "awake"


class Child(Isolated):
    """A worker, asked with time enough."""

    def __init__(self, argument=None, **how):
        super().__init__(Worker, argument, **how)

    def ask(self, *words, limit_s=60.0):
        return super().ask(*words, limit_s=limit_s)


def alive(process):
    """True if a process runs; False for one that has ended and that nobody waited for."""
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


@contextmanager
def parent(code):
    """Another process that has children of its own."""
    head = """
import sys
from tests.toolkit.gpu.test_worker_process import Child
"""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    with subprocess.Popen(
        [sys.executable, "-c", head + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as process:
        yield process


def test_the_same_object_answers_all_that_is_asked():
    with Child(("any", 1)) as child:
        assert child.ask("echo") == [("any", 1), 1]
        assert child.ask("echo", "x", 2.5) == [("any", 1), 2, "x", 2.5]
        assert child.ask("number") != os.getpid()
        assert child.ask("large", 1 << 24) == bytes(range(256)) * (1 << 16)
        assert child.ask("prints") == "answer"


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("is_refused", "launch: an illegal memory access was encountered"),
        ("stumbles", "RuntimeError: first line"),
        ("exhausts_memory", "the host's memory is exhausted: take a smaller shape"),
        ("crashes", "the process that ran it died (signal SIGSEGV)"),
        ("leaves", "the process that ran it died (exit code 3)"),
        ("no_such_method", "AttributeError: 'Worker' object has no attribute 'no_such_method'"),
    ],
)
def test_what_goes_wrong_is_one_line_then_and_later(method, reason):
    with Child() as child:
        child.ask("echo")
        for later in (method, "echo"):
            assert refusal(LaunchError, child.ask, later) == reason


@pytest.mark.parametrize(
    ("method", "kind", "reason"),
    [
        ("is_asked_for_what_is_unknown", InputError, "unknown kernel 'twize': did you mean"),
        ("does_not_compile", CompileError, "k.cu, line 1: no"),
    ],
)
def test_an_error_of_ours_stays_what_it_is(method, kind, reason):
    with Child() as child, pytest.raises(kind, match=reason) as raised:
        child.ask(method)
    assert getattr(raised.value, "log", "everything") == "everything"


def test_what_it_prints_is_seen_where_that_is_wanted(capfd):
    for shows_output in (True, False):
        with Child(shows_output=shows_output) as child:
            child.ask("prints_to_a_buffer")
            assert capfd.readouterr().out == "what a kernel prints\n" * shows_output


def test_an_answer_that_cannot_be_sent_is_one_line():
    with Child() as child, pytest.raises(LaunchError) as raised:
        child.ask("answers_what_cannot_be_sent")
    assert "\n" not in str(raised.value)


def test_an_object_that_cannot_be_made_is_the_first_answer():
    with Child("refuse") as child, pytest.raises(LaunchError, match="no kernel image"):
        child.ask("echo")


def test_a_machine_that_starts_no_process_says_so(monkeypatch):
    monkeypatch.setattr(isolated, "COMMAND", ("/no/such/program",))
    with pytest.raises(LaunchError, match=r"^no process can be started \(.*No such file"):
        Child()


@pytest.mark.parametrize("method", ["never_ends", "never_ends_and_ignores_sigterm"])
def test_what_never_ends_is_ended(method, monkeypatch):
    monkeypatch.setattr(isolated, "GRACE_S", 0.2)
    with Child() as child:
        process = child.ask("number")
        started = time.monotonic()
        for _ in range(2):
            with pytest.raises(LaunchError, match=f"^{HUNG} 1 s and was stopped: an endless loop"):
                child.ask(method, limit_s=0.6)
        assert time.monotonic() - started < 60  # usually 2 s
        assert not alive(process)


def test_the_answer_to_what_was_interrupted_is_nobody_elses():
    def interrupt(signum, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Child() as child:
            child.ask("echo")
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                child.ask("sleeps", 0.5)
            assert "interrupted" in refusal(LaunchError, child.ask, "echo", "mine")
    finally:
        signal.signal(signal.SIGALRM, before)


def test_modules_of_the_working_directory_are_not_taken_for_ours(tmp_path, monkeypatch):
    (tmp_path / "analysis.py").write_text("raise SystemExit('not this one')")
    paths = [path or str(Path.cwd()) for path in sys.path]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", paths)
    with Child() as child:
        assert child.ask("echo") == [None, 1]


def test_a_child_ends_when_nobody_asks_any_more():
    with Child() as child:
        process = child.ask("number")
        assert alive(process)
    assert not alive(process)


@pytest.mark.parametrize("method", ["echo", "never_ends"])
def test_a_child_ends_with_a_parent_that_is_killed(method):
    """Also where it hangs and reads nothing: it would hold the GPU for ever."""
    code = f"""
child = Child()
print(child.ask("number"), flush=True)
child.ask({method!r}, limit_s=600)
print("answered", flush=True)
input()
"""
    with parent(code) as process:
        child = int(process.stdout.readline())
        if method == "echo":
            process.stdout.readline()
        time.sleep(0.2)
        assert alive(child)
        process.kill()
        process.wait()
    deadline = time.monotonic() + 10
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


def test_a_process_that_was_stopped_finds_its_answer():
    """Ctrl-Z holds the parent, not its child: what came meanwhile is not late."""
    code = """
with Child() as child:
    child.ask("echo")
    print("begun", flush=True)
    print(child.ask("sleeps", 0.3, limit_s=1.0), flush=True)
"""
    with parent(code) as process:
        process.stdout.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)
        process.send_signal(signal.SIGCONT)
        assert process.stdout.readline() == "awake\n"
