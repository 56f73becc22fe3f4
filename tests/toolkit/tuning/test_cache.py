"""Caches of sweeps: reused on the same machine, set aside on another, repaired where cut short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.errors import InputError
from kernels import find
from kernels.variant import Variant
from toolkit.tuning.cache import Known, SweepCache

HERE = {"GPU": "NVIDIA H200", "driver": "580.1", "compiler": "nvcc 13.0"}
# As Kernel Tuner 1.5.0 writes it: a header, then one line per configuration.
HEADER = '{\n"device_name": "NVIDIA H200",\n"kernel_name": "sgemm_tiled",\n"cache": {'
EIGHT = '\n"8,8,8,1": {"tile": 8, "block_size_x": 8, "time": 2.5, "times": [2.0, 3.0]},'
FAILED = '\n"16,16,16,1": {"tile": 16, "__error__": "RuntimeFailedConfig", "times": [1.0]},'


def cache_at(path: Path, **machine: str) -> SweepCache:
    rung = find("tiled")
    assert isinstance(rung, Variant)
    return SweepCache(path, rung, HERE | machine)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A cache that an earlier sweep of this machine left, cut off after its second entry."""
    path = tmp_path / "caches" / "tiled.json"
    assert cache_at(path).open() is None
    path.write_text(HEADER + EIGHT + FAILED)
    return path


def test_a_new_cache_knows_nothing_and_its_folder_is_made(tmp_path: Path) -> None:
    cache = cache_at(tmp_path / "new" / "tiled.json")
    assert cache.open() is None
    assert cache.known() == {}


def test_times_are_read_in_seconds_and_failures_as_such(path: Path) -> None:
    cache = cache_at(path)
    assert cache.open() is None
    assert cache.known() == {
        "tile=8": Known(samples_s=(0.002, 0.003)),
        "tile=16": Known(failure="Kernel Tuner: RuntimeFailedConfig"),
    }


def test_a_finished_cache_is_read_as_well(path: Path) -> None:
    path.write_text((HEADER + EIGHT).removesuffix(",") + "}\n}")
    cache = cache_at(path)
    assert cache.open() is None
    assert list(cache.known()) == ["tile=8"]


def test_an_entry_that_was_cut_short_is_dropped_and_the_others_stay(path: Path) -> None:
    path.write_text(HEADER + EIGHT + FAILED[:30])
    cache = cache_at(path)
    assert cache.open() is None
    assert list(cache.known()) == ["tile=8"]
    assert path.read_text() == HEADER + EIGHT


def test_reasons_are_remembered_also_of_one_that_was_timed(path: Path) -> None:
    first = cache_at(path)
    first.open()
    first.fail("tile=32", "an illegal memory access")
    first.fail("tile=8", "at 9x9x9: wrong result")
    second = cache_at(path)
    assert second.open() is None
    assert second.known()["tile=32"] == Known(failure="an illegal memory access")
    assert second.known()["tile=8"] == Known(failure="at 9x9x9: wrong result")


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        ({"GPU": "NVIDIA H100"}, "another GPU: NVIDIA H200, this is NVIDIA H100"),
        ({"driver": "590.2"}, "another driver: 580.1, this is 590.2"),
        ({"Kernel Tuner": "1.5.0"}, "another Kernel Tuner: None, this is 1.5.0"),
    ],
)
def test_a_cache_of_another_machine_is_set_aside_with_a_line(
    path: Path, machine: dict[str, str], reason: str
) -> None:
    before = path.read_text()
    cache = cache_at(path, **machine)
    assert cache.open() == (
        f"the cache {path} was set aside as tiled.aside-1.json: it was measured with {reason}"
    )
    assert cache.known() == {}
    assert path.with_name("tiled.aside-1.json").read_text() == before
    assert cache_at(path, **machine).open() is None  # from now on it is this machine's


def test_earlier_caches_that_were_set_aside_are_kept(path: Path) -> None:
    for number, driver in enumerate(("1", "2", "3"), start=1):
        path.write_text(HEADER + EIGHT)
        assert f"tiled.aside-{number}.json" in str(cache_at(path, driver=driver).open())
    assert len(list(path.parent.glob("*.aside-?.json"))) == 3


def test_a_cache_that_does_not_say_where_it_is_from_is_not_believed(path: Path) -> None:
    path.with_name("tiled.about.json").unlink()
    assert "it does not say what it was measured with" in str(cache_at(path).open())


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", HEADER[:20], '{"cache": 7}'])
def test_a_damaged_cache_is_set_aside(path: Path, content: str) -> None:
    path.write_text(content)
    notice = cache_at(path).open()
    assert notice is not None
    assert notice.endswith("it is damaged")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"^cannot write .*file: (Not a directory|File exists)$"):
        cache_at(tmp_path / "file" / "tiled.json").open()


def test_what_a_cache_was_measured_with_stands_beside_it(path: Path) -> None:
    about = json.loads(path.with_name("tiled.about.json").read_text())
    assert about == {"measured_with": HERE, "failures": {}}
