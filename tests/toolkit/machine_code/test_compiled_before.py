"""A command that compiles nothing starts no process."""

import os
import signal
import sys
from importlib import import_module

import pytest

from toolkit.machine_code import compiled_before, compiler_process
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.compiled_before import about_compiler, was_compiled

PLAIN = 'extern "C" __global__ void plain(int *x) { x[0] = 1; }\n'
ABOUT = ((13, 0), [75, 90])


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMM_LADDER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def asked(monkeypatch):
    """One entry for each time that the compiler was asked about itself."""
    times = []
    monkeypatch.setattr(compiler_process, "about_compiler", lambda: times.append(1) or ABOUT)
    return times


@pytest.fixture
def library(tmp_path, monkeypatch):
    """The library that a wheel has installed."""
    path = tmp_path / "libnvrtc.so.13"
    path.write_bytes(b"one")
    monkeypatch.setattr(compiled_before, "files_of_wheel", lambda wheel, *names: [path])
    return path


def test_the_compiler_tells_its_architectures_once(asked, library):
    assert about_compiler() == about_compiler() == ABOUT
    assert len(asked) == 1


def test_another_library_is_asked_again(asked, library):
    about_compiler()
    library.write_bytes(b"another")
    assert about_compiler() == ABOUT
    assert len(asked) == 2


def test_other_bindings_are_asked_again(asked, library, monkeypatch):
    about_compiler()
    monkeypatch.setattr(compiled_before.metadata, "version", lambda package: "13.9.9")
    about_compiler()
    assert len(asked) == 2


def test_a_library_of_no_wheel_is_asked_each_time(asked, monkeypatch):
    monkeypatch.setattr(compiled_before, "files_of_wheel", lambda wheel, *names: [])
    assert about_compiler() == about_compiler() == ABOUT
    assert len(asked) == 2


def test_the_installed_compiler_has_an_entry():
    found = compiler_process.about_compiler()
    assert about_compiler() == about_compiler() == found
    assert compiled_before._entry() is not None


@pytest.fixture
def started(monkeypatch):
    """Function from the words of a command to the number of compilers that it starts ahead."""
    # Imported, the command handles Ctrl-C for good: by an end of the process, of all tests in it.
    handler = signal.getsignal(signal.SIGINT)
    try:
        command = import_module("toolkit.__main__")
    finally:
        signal.signal(signal.SIGINT, handler)
    times = []
    monkeypatch.setattr(compiler_process, "start_compiler", lambda: times.append(1))

    def start(*words):
        times.clear()
        monkeypatch.setattr(sys, "argv", ["gemm-ladder", *words])
        command._start_compiler()
        return len(times)

    return start


def test_a_compiler_is_started_ahead_only_for_what_was_not_compiled(tmp_path, started):
    path = tmp_path / "plain.cu"
    path.write_text(PLAIN, encoding="utf-8")
    words = "simulate", str(path), "-g", "1", "-b", "32", "-a", "i32[1]"
    assert started(*words) == 1
    compile_cubin(PLAIN, name="plain.cu", kernel="plain", arch="sm_90")
    assert started(*words) == 0
    path.write_text(PLAIN.replace("= 1", "= 2"), encoding="utf-8")
    assert started(*words) == 1
    assert started("simulate", "tiled", "--shape", "64") == 1
    assert started("profile") == 1


def test_a_source_that_includes_files_may_need_the_compiler_each_time(tmp_path):
    (tmp_path / "part.cuh").write_text("#define ONE 1\n", encoding="utf-8")
    text = '#include "part.cuh"\n' + PLAIN
    path = tmp_path / "plain.cu"
    path.write_text(text, encoding="utf-8")
    compile_cubin(text, name="plain.cu", kernel="plain", arch="sm_90", folder=tmp_path)
    assert not was_compiled([str(path)])


def test_a_pipe_is_left_to_who_reads_it(tmp_path):
    pipe = tmp_path / "pipe.cu"
    os.mkfifo(pipe)
    assert not was_compiled([str(pipe)])  # reading would wait for someone who writes


@pytest.mark.parametrize("word", ["", "a\0b", "no/such/file.cu", "."])
def test_words_that_are_no_file_are_not_compiled(word):
    assert not was_compiled([word])
