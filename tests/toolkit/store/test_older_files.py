"""Files that commit cad3d37 wrote are read, compared, rendered and resumed by today's commands.

They stand in written_by_cad3d37/, compressed by xz. These commands wrote them (`interrupted` with
Ctrl-C after the first record; `tuned` by the function that `tune` calls on a GPU):

    profile --executor simulate --device h200 --seed 1 --shape 64 --shape 96x33x20
        -v tiled -v vectorized:bk=16 -v cpu
    simulate transpose.cu -g 2,2 -b 32,32 -a 'f32[64,64]' -a 'f32[64,64]=zeros' -a i32=64
        --device h200 --seed 1 --json
    check sum.cu -g 1 -b 64 -a 'f32[64]' -a 'f32[64]=unwritten' --seed 1 --json
"""

import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.devices import find_device
from analysis.errors import RecordError
from analysis.problem import parse_shape
from analysis.records.counters import MODELLED, OF_BULK_COPIES
from tests.heard import Heard
from tests.toolkit.cli.commands import invoke
from toolkit.profiling.profile import profile
from toolkit.store import tuned
from toolkit.store.profile_json import dumps, load, load_launch, save

FOLDER = Path(__file__).with_name("written_by_cad3d37")
PROFILE, INTERRUPTED, LAUNCH, CHECK, TUNED = (
    FOLDER / f"{name}.json.xz" for name in ("profile", "interrupted", "launch", "check", "tuned")
)
SHAPES, VARIANTS = ("64", "96x33x20"), ("tiled", "vectorized:bk=16", "cpu")

TRANSPOSE = """#ifndef TILE
#define TILE 32
#endif
extern "C" __global__ void transpose(const float *in, float *out, int n) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
"""
SUM = """extern "C" __global__ void sum(const float *in, float *out) {
    __shared__ float part[64];
    part[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = part[63 - threadIdx.x];
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("transpose.cu").write_text(TRANSPOSE)
    Path("bad.cu").write_text(SUM)
    return tmp_path


def run(command, code=0):
    result = invoke(command)
    assert result.exit_code == code, result.output
    return str(result.stdout)


def document(path):
    return json.loads(lzma.decompress(path.read_bytes()))


def today(resume=None, progress=None):
    settings = {"executor": "simulate", "device": "h200", "seed": 1}
    return profile(SHAPES, VARIANTS, resume=resume, progress=progress, **settings)


@pytest.fixture(scope="module")
def now():
    return today()


def as_here(before, now):
    """The file as this machine would have written it: a resumption checks the versions.

    What is known of a device has grown, too.
    """
    return replace(before, environment=now.environment, command=now.command, device=now.device)


def test_a_profile_is_read():
    result = load(PROFILE)
    labels = [record.label for record in result.records]
    assert labels == [*VARIANTS, *VARIANTS]
    assert result.environment.commit == "cad3d37"
    old = document(PROFILE)["records"][0]
    (record, *_) = result.records
    assert record.simulated.counters == old["simulated"]["counters"]
    assert record.predicted.time_s == old["predicted"]["time_s"]
    assert record.predicted.causes == ()  # steps of a gap are not read


def test_a_profile_of_today_lacks_no_key_but_the_steps_of_a_gap(now):
    old = document(PROFILE)
    # rungs are explained by parts of the time now, not by steps of a gap
    steps = [f"records[].predicted.gap[].{name}" for name in ("detail", "name", "time_s")]
    gone = ["records[].predicted.gap", *steps]
    assert missing(old, json.loads(dumps(now))) == gone
    assert now.schema_version == 6


def missing(old, new):
    """The keys of a document that another one lacks, but for names of counters."""
    return sorted(keys(old) - keys(new))


def keys(of, place=""):
    if isinstance(of, list):
        return {key for item in of for key in keys(item, f"{place}[]")}
    if not isinstance(of, dict) or place.endswith("counters"):
        return set()
    named = {f"{place}.{key}".removeprefix("."): item for key, item in of.items()}
    return named.keys() | {key for name, item in named.items() for key in keys(item, name)}


def test_counts_of_the_same_run_today_are_equal(now):
    save(now, "now.json")
    found = json.loads(run(f"compare {PROFILE} now.json --json --fail-on counts"))
    assert found["counts"] == "same"
    assert len(found["pairs"]) == len(SHAPES) * len(VARIANTS)
    assert all(pair["predicted"] for pair in found["pairs"] if pair["label"] != "cpu")


@pytest.mark.parametrize("path", [PROFILE, INTERRUPTED])
def test_a_profile_is_rendered(path):
    said = run(f"report {path} --html r.html")
    assert "tiled" in said
    assert "64 × 64 × 64" in Path("r.html").read_text(encoding="utf-8")


def test_an_interrupted_run_goes_on(now):
    before = load(INTERRUPTED)
    assert before.status == "interrupted"
    assert [record.label for record in before.records] == ["tiled"]
    told = Heard()
    result = today(resume=as_here(before, now), progress=told)
    assert told.steps == [*VARIANTS[1:], *VARIANTS]
    assert result.status == "complete"
    assert result.records[0] == before.records[0]
    simulated = [[record.simulated for record in run.records] for run in (result, now)]
    # a counter that was added since is not in the file
    names = before.records[0].simulated.counters.keys() | OF_BULK_COPIES.keys()
    resumed, whole = ([one and exact(one.counters, names) for one in found] for found in simulated)
    assert resumed == whole


def exact(counters, names):
    """Some counters, without those of a model of caches: that model may be another one by now."""
    kept = names - MODELLED.keys()
    return {name: count for name, count in counters.items() if name in kept}


def test_a_launch_is_read_and_compared():
    assert load_launch(LAUNCH).counters == document(LAUNCH)["counters"]
    launch = "transpose.cu -g 2,2 -b 32,32 -a f32[64,64] -a f32[64,64]=zeros -a i32=64"
    shown = run(f"simulate {launch} --device h200 --seed 1 --json")
    Path("now.json").write_text(shown)
    # a time is divided by causes now, not by steps of a gap
    gone = {"predicted.gap", *(f"predicted.gap[].{x}" for x in ("name", "time_s", "detail"))}
    assert {*missing(document(LAUNCH), json.loads(shown))} == gone
    assert json.loads(shown)["predicted"]["costs"]
    found = json.loads(run(f"compare {LAUNCH} now.json --json --fail-on counts"))
    (pair,) = found["pairs"]
    assert pair["compared"] > 30
    assert (pair["counts"], pair["lost"], pair["notes"]) == ([], [], [])
    # the model of time is another one by now
    assert (found["counts"], found["predictions"]) == ("same", "changed")


def test_a_launch_of_an_older_version_is_refused():
    Path("old.json").write_text('{"schema_version": 2}')
    with pytest.raises(RecordError, match=r"schema 2, this one reads 3 to 5\): make it again"):
        load_launch("old.json")


def test_a_check_finds_the_same_today():
    command = "check bad.cu -g 1 -b 64 -a f32[64] -a f32[64]=unwritten --seed 1 --json"
    old, new = document(CHECK), json.loads(run(command, code=1))
    assert missing(old, new) == []
    for finding in (*old["findings"], *new["findings"]):
        assert finding.pop("message")  # its words may change
        for access in finding["accesses"]:
            assert access.pop("callers", []) == []
    assert new["findings"] == old["findings"]
    assert new["summary"] == old["summary"]


def test_tuned_parameters_are_found(folder, monkeypatch):
    Path("tuned.json").write_bytes(lzma.decompress(TUNED.read_bytes()))
    monkeypatch.setenv("GEMM_LADDER_DATA", str(folder))
    (entry,) = tuned.read(tuned.user_file())
    assert tuned.tuned_for(find_device("h200"), parse_shape("1024"))
    assert entry.commit == "cad3d37"
    assert tuned.selection_of(entry).label == "coarsened-1d:bk=8,tm=8"
    tuned.keep([replace(entry, date="2026-01-01")])
    (kept,) = tuned.read(tuned.user_file())
    assert kept.date == "2026-01-01"
