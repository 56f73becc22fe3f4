"""Tuned configurations: the file's format, and which of them a shape gets."""

import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from analysis.devices import find_device
from analysis.errors import InputError, RecordError
from analysis.problem import parse_shape
from tests.refusals import refusal
from tests.toolkit.tuned_entries import entry
from toolkit.store import tuned
from toolkit.store.tuned import keep, octaves, read, selection_of, ship, tuned_for, user_file

H200, H100, T4 = map(find_device, ("h200", "h100-sxm", "t4"))


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """An empty data folder of the user, and an empty one of the package."""
    monkeypatch.setenv("GEMM_LADDER_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(tuned, "FOLDER", tmp_path / "shipped")
    return tmp_path


def label_at(shape, device=H200):
    found = tuned_for(device, parse_shape(shape))
    return selection_of(found).label if found else None


def test_nothing_is_tuned_where_there_are_no_files():
    assert tuned_for(H200, parse_shape("64")) is None


def test_entries_survive_the_file_and_newer_ones_replace_older_ones():
    first, other = entry(), entry("512")
    newer = replace(first, parameters={"bk": 16, "tm": 16}, ratio_to_cublas=None, interval=None)
    assert keep([first, other]) == user_file()
    assert read(user_file()) == (first, other)
    keep([newer])
    assert read(user_file()) == (newer, other)
    document = json.loads(user_file().read_text())
    assert document["schema_version"] == 1
    assert document["entries"][0]["parameters"] == {"bk": 16, "tm": 16}


KEEPS_SHAPES = """
import sys
from tests.toolkit.tuned_entries import entry
from toolkit.store.tuned import keep
for size in map(int, sys.argv[1:]):
    keep([entry(shape=str(size))])
"""


def test_runs_that_end_together_keep_the_entries_of_all():
    sizes = [[str(64 * (4 * k + run + 1)) for k in range(12)] for run in range(4)]
    runs = [subprocess.Popen([sys.executable, "-c", KEEPS_SHAPES, *some]) for some in sizes]
    assert [run.wait() for run in runs] == [0] * 4
    assert len(read(user_file())) == 48


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("64x64x64", "64x64x64", 0.0),
        ("64x64x64", "64x256x32", 2.0),  # N four times, K half: two octaves
        ("256x64x64", "64x64x64", 2.0),
    ],
)
def test_distance_is_the_most_doublings_of_any_dimension(one, other, distance):
    assert octaves(parse_shape(one), parse_shape(other)) == distance


def test_the_nearest_shape_decides():
    keep([entry("1024"), entry("4096", parameters={"bk": 16, "tm": 16})])
    assert label_at("1024") == label_at("1500") == "coarsened-1d:bk=8,tm=8"
    assert label_at("3000") == "coarsened-1d:bk=16"


def test_a_shape_further_than_an_octave_gets_nothing():
    keep([entry("1024")])
    assert label_at("1024x1024x2048") is not None
    assert label_at("1024x1024x2049") is None
    assert label_at("511x1024x1024") is None


def test_of_one_shape_the_variant_that_is_fastest_against_cublas_is_chosen():
    keep(
        [
            entry(variant="vectorized", parameters={"bk": 16}, ratio_to_cublas=0.7),
            entry(ratio_to_cublas=0.6),
            entry(variant="tiled", parameters={"tile": 32}, ratio_to_cublas=None),
        ]
    )
    assert label_at("4096") == "vectorized:bk=16"


def test_the_same_device_goes_before_its_architecture_and_others_do_not_count():
    near = entry("1024", device=H100.name, parameters={"bk": 16, "tm": 16})
    keep([near, entry("2048")])
    assert label_at("1024") == "coarsened-1d:bk=8,tm=8"  # an octave off, but this device
    assert label_at("600", H200) == "coarsened-1d:bk=16"  # too far from its own entry
    assert label_at("1024", T4) is None


def test_the_users_own_go_before_the_shipped_ones():
    keep([entry(parameters={"bk": 16, "tm": 16})])
    assert ship("h200").name == "h200.json"
    keep([entry()])
    assert label_at("4096") == "coarsened-1d:bk=8,tm=8"
    user_file().unlink()
    assert label_at("4096") == "coarsened-1d:bk=16"


def test_only_the_entries_of_a_device_are_shipped_beside_those_that_were():
    keep([entry("1024"), entry("512", device=H100.name)])
    ship("h200")
    user_file().unlink()
    keep([entry("2048")])
    assert [one.shape for one in read(ship("h200"))] == ["1024", "2048"]
    with pytest.raises(InputError, match=r"tuned\.json has no entry of .*: run python -m toolkit"):
        ship("t4")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"time_s": "fast"}, "entries[0].time_s: "),
        ({"shape": "12x"}, "shape '12x' is not understood"),
        ({"parameters": {"bk": 1.5}}, "entries[0].parameters.bk: "),
        ({"time_s": -1e-3}, "entries[0].time_s: it is -0.001, outside 0 to 1e+06: tune again, or"),
        ({"ratio_to_cublas": float("nan")}, "entries[0].ratio_to_cublas: it is nan, outside 0 to"),
    ],
)
def test_a_damaged_file_is_one_line_that_names_the_place(change, problem):
    keep([entry()])
    document = {"schema_version": 1, "entries": [asdict(entry()) | change]}
    user_file().write_text(json.dumps(document))
    assert refusal(RecordError, tuned_for, H200, parse_shape("4096")).startswith(
        f"{user_file()}: {problem}"
    )


@pytest.mark.parametrize("content", ["", "[]", '{"schema_version": 2, "entries": []}', "\udcff"])
def test_a_foreign_file_is_one_line(content):
    keep([])
    user_file().write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(RecordError, match=f"^{user_file()}: "):
        read(user_file())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"variant": "tilde"}, "unknown variant 'tilde'"),
        ({"variant": "cublas"}, "cublas is not a rung"),
        ({"parameters": {"bk": 8, "tm": 7}}, "tm = 7 is not legal"),
        ({"parameters": {"bk": 4, "tm": 4}}, "bk * tm must be at least 64"),
    ],
)
def test_an_entry_that_the_ladder_no_longer_has_says_how_to_tune_it_again(change, problem):
    keep([replace(entry(), **change)])
    found = tuned_for(H200, parse_shape("4096"))
    said = refusal(RecordError, selection_of, found)
    assert problem in said
    assert "tune it again: python -m toolkit tune" in said


def test_a_data_folder_that_cannot_be_made_is_one_line(folders, monkeypatch):
    (folders / "file").write_text("")
    monkeypatch.setenv("GEMM_LADDER_DATA", str(folders / "file" / "data"))
    assert "cannot write" in refusal(InputError, keep, [entry()])


def test_the_command_line_ships_or_says_why_not(monkeypatch, capsys):
    keep([entry()])
    monkeypatch.setattr("sys.argv", ["tuned", "h200"])
    tuned.main()
    assert capsys.readouterr().out.endswith("h200.json\n")
    for arguments, message in (
        (["tuned"], "usage: "),
        (["tuned", "--help"], "usage: "),
        (["tuned", "t4"], "error: "),
    ):
        monkeypatch.setattr("sys.argv", arguments)
        with pytest.raises(SystemExit, match=f"^{message}"):
            tuned.main()


def test_a_user_without_a_home_has_no_entries_and_is_told_what_to_set(monkeypatch):
    def homeless(path):
        raise RuntimeError("Could not determine home directory.")

    for name in ("GEMM_LADDER_DATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.expanduser", homeless)
    assert tuned_for(find_device("h200"), parse_shape("512")) is None
    assert "set XDG_DATA_HOME to a folder" in refusal(InputError, keep, [entry()])
