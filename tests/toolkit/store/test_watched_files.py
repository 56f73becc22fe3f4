"""Saves are noticed, however an editor saves, on a clock that the tests move."""

import os
from pathlib import Path

import pytest

from toolkit.store.watched_files import SETTLED_S, WatchedFiles

now_s = [0.0]


def watched(source="a.cu", *options):
    files = WatchedFiles(Path(source), options, clock=lambda: now_s[0])
    assert files.take() == []
    return files


def save(name, text):
    """As editors do that write another file first."""
    Path("new").write_text(text, encoding="utf-8")
    Path("new").replace(name)


def are_newer(files):
    """The answer when what is there has settled; before, it is no."""
    assert not files.are_newer()
    now_s[0] += 1.5 * SETTLED_S
    return files.are_newer()


@pytest.fixture(autouse=True)
def sources(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text("one", encoding="utf-8")


def test_a_file_that_is_replaced_is_newer_until_it_is_taken():
    files = watched()
    assert not are_newer(files)
    save("a.cu", "two")
    assert are_newer(files)
    assert files.take() == ["a.cu"]
    assert not are_newer(files)


def test_a_file_that_is_written_to_counts_when_it_is_written_whole():
    files = watched()
    for text in ("", "tw", "two"):
        Path("a.cu").write_text(text, encoding="utf-8")
        assert not files.are_newer()
        now_s[0] += SETTLED_S * 0.75
        assert not files.are_newer()
    now_s[0] += SETTLED_S * 0.75
    assert files.are_newer()


def test_a_file_of_the_same_content_is_newer_if_it_is_saved():
    files = watched()
    save("a.cu", "one")
    assert are_newer(files)


def test_a_lost_source_is_told_once_and_is_newer_when_it_comes_back():
    files = watched()
    Path("a.cu").rename("b.cu")
    assert not files.lost_source()  # an editor may be about to replace it
    assert not are_newer(files)
    assert [files.lost_source(), files.lost_source()] == [True, False]
    Path("b.cu").rename("a.cu")
    assert are_newer(files)
    assert files.take() == ["a.cu"]


def test_what_is_included_is_watched_too_in_turn_and_where_options_say():
    Path("inner").mkdir()
    Path("far").mkdir()
    save("a.cu", '#include "inner/b.cuh"\n  #  include <c.cuh>\n// #include "d.cuh"\n')
    save("inner/b.cuh", '#include "e.cuh"\n#include "../inner/b.cuh"\n#include "../a.cu"\n')
    for name in ("inner/e.cuh", "far/c.cuh", "d.cuh", "inner/c.cuh"):
        save(name, "")
    for options in (["-Ifar"], ["-I", "far"], ["--include-path=far"], ["-lineinfo", "-I=far"]):
        files = watched("a.cu", *options)
        for name in ("inner/b.cuh", "inner/e.cuh", "far/c.cuh"):
            save(name, Path(name).read_text(encoding="utf-8"))
            assert are_newer(files), name
            assert files.take() == [os.path.basename(name)]  # noqa: PTH119
        for name in ("d.cuh", "inner/c.cuh"):
            save(name, "2")
            assert not are_newer(files), name


def test_an_included_file_may_be_missing_and_come():
    save("a.cu", '#include "b.cuh"')
    files = watched()
    save("b.cuh", '#include "c.cuh"')
    assert are_newer(files)
    assert files.take() == ["b.cuh"]
    save("c.cuh", "")
    assert are_newer(files)
    assert files.take() == ["c.cuh"]
    Path("c.cuh").unlink()  # the compiler says that it is missing
    assert are_newer(files)
    assert not files.lost_source()


def test_a_pipe_and_a_device_are_looked_for_and_not_read():
    os.mkfifo("pipe")
    save("a.cu", '#include "pipe"\n#include "/dev/zero"\n')
    files = watched()
    assert not are_newer(files)


def test_a_link_to_its_own_folder_has_no_paths_without_end():
    Path("here").symlink_to(".")
    save("a.cu", '#include "here/b.cuh"\n')
    save("b.cuh", '#include "here/b.cuh"\n#include "here/c.cuh"\n')
    files = watched()
    save("c.cuh", "new")
    assert are_newer(files)
