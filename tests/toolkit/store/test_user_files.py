"""Paths that a user names are read as regular files of a limited size, or refused."""

import os
from pathlib import Path

import pytest

from toolkit.store import user_files as files
from toolkit.store.user_files import check_regular, read_file, same_file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(b"12345")
    return tmp_path


def test_a_file_is_read_whole(folder):
    assert read_file("a") == b"12345"


def test_what_may_never_end_is_refused(folder):
    os.mkfifo("pipe")
    Path("zero").symlink_to("/dev/zero")
    for path in ("pipe", "zero", "/dev/zero"):
        for attempt in (read_file, check_regular):
            with pytest.raises(OSError, match="it is a device or a pipe") as caught:
                attempt(path)
            assert caught.value.filename == path
    with pytest.raises(IsADirectoryError):
        read_file(folder)


def test_a_file_over_the_limit_is_refused(folder, monkeypatch):
    with Path("a").open("r+b") as file:
        file.truncate(2 * files.MOST_BYTES)  # takes no room on the disk
    monkeypatch.setattr(files, "MOST_BYTES", 2_000_000)  # nor, then, in memory
    with pytest.raises(OSError, match=r"it has 537 MB, and at most 2 MB are read"):
        read_file("a")


def test_one_file_is_known_by_all_its_names(folder):
    Path("b").symlink_to("a")
    os.link("a", "c")
    for name in ("a", "b", "c", "./a", f"../{folder.name}/a", folder / "b"):
        assert same_file("a", name)
    Path("d").write_bytes(b"12345")
    assert not same_file("a", "d")


def test_files_that_are_not_there_yet_are_compared_by_where_they_would_be(folder):
    Path("later").symlink_to("absent")
    assert same_file("absent", "./absent")
    assert same_file("absent", "later")
    assert not same_file("absent", "other")
    assert not same_file("absent", "a")
    assert not same_file("a", "a\0")


def test_a_link_to_itself_is_no_other_file(folder):
    Path("loop").symlink_to("loop")
    assert same_file("loop", "loop")
    assert not same_file("loop", "a")


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [
        ("transpos.cu", "did you mean transpose.cu?"),
        ("a.cu", "this folder has copy.cu, transpose.cu"),
        ("a.json", "this folder has no .json file"),
        ("sub/a.cu", "sub has k0.cu, k1.cu, k2.cu, k3.cu, k4.cu, and 2 more"),
        ("none/a.cu", "there is no folder none"),
        ("none", "check the path"),
    ],
)
def test_a_file_that_is_not_there_is_said_with_what_is_there(folder, asked, remedy):
    Path("transpose.cu").touch()
    Path("copy.cu").touch()
    Path("sub").mkdir()
    for number in range(7):
        Path(f"sub/k{number}.cu").touch()
    with pytest.raises(FileNotFoundError) as caught:
        read_file(asked)
    assert caught.value.strerror == f"No such file or directory: {remedy}"
