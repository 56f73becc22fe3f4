"""Caches of sweeps: reused on the same machine, set aside on another, read where cut short."""

from dataclasses import replace

import pytest

from analysis.devices import find_device
from analysis.errors import InputError
from analysis.l2_state import L2State
from analysis.problem import parse_shape
from analysis.records.profile import SCHEMA_VERSION, Environment, Profile
from kernels.selection import parse_selection
from toolkit.gpu.sampling import Series
from toolkit.profiling.record import failed, planned, with_measurement
from toolkit.tuning.cache import SweepCache

SHAPE, H200 = parse_shape("48"), find_device("h200")
SOFTWARE = {"NVIDIA driver": "580.1", "compiler": "nvcc 13.0"}
EMPTY = Profile(
    schema_version=SCHEMA_VERSION,
    created="",
    command="python -m toolkit tune tiled",
    status="interrupted",
    executor="gpu",
    seed=1,
    device=H200,
    environment=Environment(toolkit_version="1", commit=None, software=SOFTWARE, hardware={}),
    records=(),
)


def timed(label, stopped_by="sample limit"):
    record = planned(parse_selection(label), SHAPE, H200)
    series = Series(samples_s=[2e-3, 3e-3, 4e-3], stopped_by=stopped_by)  # type: ignore[arg-type]
    return with_measurement(record, series, clock="CUDA events", l2=L2State.DIRTY)


def opened(path, empty=EMPTY):
    cache = SweepCache(path, empty)
    assert cache.open() is None
    return cache


@pytest.fixture
def path(tmp_path):
    """A cache that an earlier sweep of this machine left."""
    path = tmp_path / "caches" / "tiled.json.journal"
    cache = opened(path)
    for label in ("tiled:tile=8", "tiled:tile=16"):
        cache.records[SHAPE, timed(label).label] = timed(label)
    return path


def test_a_new_cache_knows_nothing_and_its_folder_is_made(tmp_path):
    assert opened(tmp_path / "new" / "tiled.json.journal").records == {}
    assert (tmp_path / "new").is_dir()


def test_times_are_known_the_next_time_and_added_to(path):
    cache = opened(path)
    assert list(cache.records.values()) == [timed("tiled:tile=8"), timed("tiled:tile=16")]
    cache.records[SHAPE, "tiled"] = timed("tiled")
    assert len(opened(path).records) == 3


def test_what_failed_or_was_interrupted_is_tried_again(path):
    cache = opened(path)
    cache.records[SHAPE, "tiled"] = failed(timed("tiled"), "does not compile")
    cache.records[SHAPE, "tiled"] = timed("tiled", "interrupt")
    assert len(opened(path).records) == 2


def test_what_failed_in_the_final_is_remembered(path):
    cache = opened(path)
    cache.fail(failed(timed("tiled:tile=8"), "at 9x9x9: wrong result"))
    found = opened(path).records[SHAPE, "tiled:tile=8"]
    assert (found.status, found.reason) == ("failed", "at 9x9x9: wrong result")


def test_an_entry_that_was_cut_short_is_dropped_and_the_others_stay(path):
    path.write_text(path.read_text()[:-30])
    assert list(opened(path).records.values()) == [timed("tiled:tile=8")]


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (
            replace(EMPTY, device=find_device("h100-sxm")),
            "the device was NVIDIA H200 SXM 141 GB, now it is NVIDIA H100 SXM5 80 GB",
        ),
        (
            replace(
                EMPTY,
                environment=replace(
                    EMPTY.environment, software=SOFTWARE | {"NVIDIA driver": "590.2"}
                ),
            ),
            "NVIDIA driver was 580.1, now it is 590.2",
        ),
    ],
    ids=["GPU", "driver"],
)
def test_a_cache_of_another_machine_is_set_aside_with_a_line(path, now, reason):
    before = path.read_text()
    cache = SweepCache(path, now)
    aside = path.with_name("tiled.json.aside-1.journal")
    assert cache.open() == f"the cache {path} was set aside as {aside.name}: {reason}"
    assert cache.records == {}
    assert aside.read_text() == before
    assert opened(path, now).records == {}  # from now on it is this machine's


def test_earlier_caches_that_were_set_aside_are_kept(path):
    for number in (1, 2, 3):
        path.write_text("damaged\n")
        assert f"tiled.json.aside-{number}.journal" in str(SweepCache(path, EMPTY).open())
    assert len(list(path.parent.glob("*.aside-?.journal"))) == 3


@pytest.mark.parametrize("content", ["", "{}\n", "[1, 2]\n", '{"cache": 7}\n'])
def test_a_damaged_cache_is_set_aside(path, content):
    path.write_text(content)
    notice = SweepCache(path, EMPTY).open()
    assert notice.endswith("it is not a journal of a run, or it is damaged: remove it")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        InputError, match=r"^cannot write .*file: (Not a directory|File exists): give a place"
    ):
        opened(tmp_path / "file" / "tiled.json.journal")
