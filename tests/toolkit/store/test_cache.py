"""The user's cache, on folders that can and cannot be written."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolkit.store import cache
from toolkit.store.cache import (
    cache_directory,
    cached,
    digest_of_files,
    digest_of_folders,
    keep,
)

pytestmark = pytest.mark.usefixtures("empty_cache")


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def test_what_is_kept_is_found(empty_cache):
    assert cached("a.json") is None
    keep("a.json", b"first")
    keep("a.json", b"second")
    keep("b.json", b"")
    assert cached("a.json") == b"second"
    assert cached("b.json") == b""
    assert sorted(path.name for path in empty_cache.iterdir()) == ["a.json", "b.json"]


@pytest.mark.parametrize("damage", [flipped, lambda entry: entry[:-1], lambda entry: b""])
def test_a_damaged_entry_counts_as_absent(damage, empty_cache):
    keep("a.json", b"content")
    entry = empty_cache / "a.json"
    entry.write_bytes(damage(entry.read_bytes()))
    assert cached("a.json") is None
    keep("a.json", b"content")
    assert cached("a.json") == b"content"


def test_an_entry_under_another_name_counts_as_absent(empty_cache):
    keep("a.json", b"of a")
    keep("b.json", b"of b")
    (empty_cache / "a.json").rename(empty_cache / "c.json")
    (empty_cache / "b.json").rename(empty_cache / "a.json")
    assert [cached(name) for name in ("a.json", "b.json", "c.json")] == [None] * 3


def test_entries_that_were_not_used_for_longest_make_room(empty_cache, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 4000)
    for n in range(3):
        keep(f"{n}", bytes(1000))
        os.utime(empty_cache / f"{n}", (n, n))
    (empty_cache / "tuning").mkdir()
    (empty_cache / "tuning" / "measured").write_bytes(bytes(9000))
    assert cached("0") is not None  # used: now the newest
    keep("3", bytes(1000))
    keep("4", bytes(1000))
    assert [name for name in "01234" if cached(name)] == ["0", "3", "4"]
    assert (empty_cache / "tuning" / "measured").exists()


def test_many_writers_and_readers_of_one_entry_see_it_whole(empty_cache):
    contents = [bytes([n]) * 200_000 for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            list(pool.map(lambda content: keep("a", content), contents))
            assert set(pool.map(lambda _: cached("a"), contents)) <= set(contents)
    assert [path.name for path in empty_cache.iterdir()] == ["a"]


def test_the_digest_of_files_is_of_their_content(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a")
    other.write_text("b")
    before = digest_of_files(str(one), str(other))
    assert before == digest_of_files(str(one), None, str(other)) != digest_of_files(str(one))
    other.write_text("c")
    assert digest_of_files(str(one), str(other)) != before


def test_where_nothing_can_be_written_nothing_is_kept(empty_cache):
    empty_cache.write_text("a file where the folder should be")
    keep("a.json", b"content")
    assert cached("a.json") is None


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    for name in ("GEMM_LADDER_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home(self):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", no_home)
    keep("a.json", b"content")
    assert cached("a.json") is None


def test_the_cache_is_in_the_users_cache_directory(monkeypatch):
    monkeypatch.delenv("GEMM_LADDER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_directory() == Path("/caches/gemm-ladder")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/u")
    assert cache_directory() == Path("/home/u/.cache/gemm-ladder")


def test_a_digest_of_folders_is_that_of_names_and_contents(tmp_path):
    (tmp_path / "one" / "deep").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    for name in ("one/a.py", "one/deep/b.toml", "two/c.py", "one/k.cu", "one/a.pyc"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "one" / ".#lock").symlink_to("nowhere")  # what an editor leaves

    def digest(*folders):
        return digest_of_folders(tmp_path, folders)

    both = digest("one", "two")
    assert both == digest("one", "two") != digest("one")
    (tmp_path / "one" / "k.cu").write_text("other", encoding="utf-8")
    (tmp_path / "one" / "a.pyc").write_text("other", encoding="utf-8")
    assert digest("one", "two") == both
    (tmp_path / "one" / "deep" / "b.toml").write_text("other", encoding="utf-8")
    changed = digest("one", "two")
    assert changed != both
    (tmp_path / "one" / "deep" / "b.toml").rename(tmp_path / "one" / "b.toml")
    assert digest("one", "two") not in (both, changed)
