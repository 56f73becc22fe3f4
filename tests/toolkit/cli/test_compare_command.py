"""`compare` as a user and a CI job meet it."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from analysis.comparison.accuracy import DEFAULT_DEVICE
from analysis.comparison.runs import compare as compare_profiles
from analysis.comparison.runs import compare_launches
from analysis.devices import find_device
from analysis.records.counters import MODELLED
from analysis.records.metrics import WARP_INSTRUCTIONS
from analysis.records.profile import Interval
from tests.records_by_hand import measured, predicted
from tests.toolkit.cli.commands import invoke, write
from toolkit import load, profile, save
from toolkit.store.profile_json import load_launch

pytestmark = pytest.mark.usefixtures("without_remedies")


@pytest.fixture(scope="module")
def simulated():
    return profile([64], ["naive-coalesced", "tiled"], executor="simulate", seed=1)


@pytest.fixture(autouse=True)
def profiles(folder, simulated):
    """In the folder: a.json, and c.json in which a kernel's traffic grew."""
    save(simulated, "a.json")
    save(replace(simulated, seed=2), "b.json")
    save(changed(simulated), "c.json")


def changed(made):
    """Tiled executes one warp instruction more."""

    def one_more(record):
        if record.label != "tiled" or record.simulated is None:
            return record
        counters = dict(record.simulated.counters)
        counters[WARP_INSTRUCTIONS] += 1
        return replace(record, simulated=replace(record.simulated, counters=counters))

    return replace(made, records=tuple(map(one_more, made.records)))


def timed(made, seconds, **more):
    """Every record with a median of so many seconds, known to 0.1%."""
    interval = Interval(low=0.999 * seconds, high=1.001 * seconds)
    time = measured(seconds, samples_s=(seconds,) * 20, interval_s=interval, **more)
    return replace(made, records=tuple(replace(r, measured=time) for r in made.records))


def foreseen(made, seconds, **more):
    """Every record with a predicted time."""
    time = predicted(seconds, **{"flop_per_s": 1.0} | more)
    return replace(made, records=tuple(replace(r, predicted=time) for r in made.records))


def compare(arguments):
    return invoke(f"compare {arguments}")


def refused(arguments, code=1):
    """The last line on standard error, of a command that fails with that code."""
    result = compare(arguments)
    assert result.exit_code == code, result.output
    return str(result.stderr.splitlines()[-1]).removeprefix("error: ")


def test_equal_counts_pass():
    result = compare("a.json b.json --fail-on counts")
    assert result.exit_code == 0
    assert re.search(r"^Counts: \d+ compared in 2 records; none changed\.$", result.stdout, re.M)
    assert result.stderr == ""


def test_a_change_is_named_and_fails_only_where_asked():
    result = compare("a.json c.json")
    assert result.exit_code == 0
    assert "1 changed, in tiled." in result.stdout
    assert re.search(r"^ tiled +warp instructions +[\d,]+ +[\d,]+ +\+", result.stdout, re.M)
    said = refused("a.json c.json --fail-on counts", code=3)
    assert said.startswith(f"--fail-on counts: tiled at 64x64x64: {WARP_INSTRUCTIONS} (simulated) ")


def test_a_slower_time_fails_where_asked(simulated):
    save(timed(simulated, 1e-3), "d.json")
    save(timed(simulated, 1.1e-3), "e.json")
    assert compare("d.json e.json --fail-on counts").exit_code == 0
    assert compare("e.json d.json --fail-on counts,time").exit_code == 0  # faster
    assert refused("d.json e.json --fail-on counts,time", code=3) == (
        "--fail-on time: naive-coalesced at 64x64x64: slower, 1.000 ms → 1.100 ms (and 1 more)"
    )


def test_a_gate_that_compares_nothing_does_not_pass(simulated):
    save(timed(simulated, 1e-3), "d.json")
    save(timed(simulated, 1e-3, l2="warm"), "e.json")
    for files in ("a.json b.json", "d.json e.json"):
        assert refused(f"{files} --fail-on time") == (
            "--fail-on time: no measured time could be compared (predicted times are compared, "
            "but never fail a check): profile both sides alike"
        )
    assert "L2 was dirty before and warm after" in compare("d.json e.json").stdout


def test_predicted_times_are_compared_and_hold_nothing(simulated):
    save(foreseen(simulated, 1e-3), "d.json")
    save(foreseen(simulated, 1.1e-3, limiter="L1"), "e.json")
    result = compare("d.json e.json --fail-on counts")
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "Predicted times: 2 compared: 2 slower (naive-coalesced 1.10× and tiled 1.10×)."
    )
    assert re.search(r"^ tiled +1\.00 ms +1\.10 ms +\+10\.0 % +issue → L1", result.stdout, re.M)
    assert refused("d.json e.json --fail-on time") == (
        "--fail-on time: no measured time could be compared (predicted times are compared, but "
        "never fail a check): profile both sides alike"
    )
    save(foreseen(simulated, 1e-3), "f.json")
    assert "Predicted times: 2 compared: no change." in compare("d.json f.json").stdout


def test_a_kernel_that_is_no_longer_right_fails_whatever_is_held(simulated):
    records = tuple(
        replace(r, status="failed", reason="wrong result") if r.label == "tiled" else r
        for r in simulated.records
    )
    save(replace(simulated, records=records), "d.json")
    for kind in ("counts", "time"):
        said = refused(f"a.json d.json --fail-on {kind}", code=3)
        assert said == f"--fail-on {kind}: tiled at 64x64x64: failed: wrong result"


@pytest.mark.parametrize("kinds", ["", "speed", "counts,times", "counts;time"])
def test_unknown_kinds_are_wrong_usage(kinds):
    result = compare(f"a.json b.json --fail-on '{kinds}'")
    assert result.exit_code == 2
    assert "counts, time" in result.stderr


def test_json_is_a_document_with_a_version():
    result = compare("a.json c.json --json")
    document = json.loads(result.stdout)
    assert document["schema_version"] == 6
    assert (document["counts"], document["times"]) == ("changed", "not compared")
    (change,) = next(p for p in document["pairs"] if p["label"] == "tiled")["counts"]
    assert change["name"] == WARP_INSTRUCTIONS
    assert change["after"] - change["before"] == 1
    assert compare("a.json c.json --json").stdout == result.stdout  # stable
    assert compare("a.json c.json --json --fail-on counts").exit_code == 3


def test_python_and_the_command_compare_alike():
    found = compare_profiles(load("a.json"), load("c.json"))
    assert json.loads(compare("a.json c.json --json").stdout) == plain(found)
    files = launches(17, 16)
    found = compare_launches(*map(load_launch, files.split()))
    assert json.loads(compare(f"{files} --json").stdout) == plain(found)


def plain(found):
    return json.loads(json.dumps(asdict(found)))


def test_a_page_is_written_and_nothing_it_reads_is_overwritten():
    result = compare("a.json c.json --html page.html")
    assert result.exit_code == 0
    assert result.stderr == "wrote page.html\n"
    assert Path("page.html").read_text(encoding="utf-8").endswith("</html>")
    before = Path("a.json").read_bytes()
    assert "has that name" in refused("a.json c.json --html a.json")
    assert Path("a.json").read_bytes() == before


def test_bad_files_are_one_line(folder):
    text = Path("a.json").read_text(encoding="utf-8")
    write("cut.json", text[: len(text) // 2])
    write("foreign.json", '{"name": "something else"}')
    assert refused("a.json cut.json").startswith("cut.json: it is not JSON: line ")
    assert "it is not a profile of this toolkit" in refused("foreign.json a.json")
    assert refused("a.json absent.json") == (
        "absent.json: No such file or directory: "
        "this folder has a.json, b.json, c.json, cut.json, foreign.json"
    )
    assert refused("a.json /dev/zero").startswith("/dev/zero: it cannot be read: it is a device")
    assert "are one file: give two profiles or launches" in refused("a.json ./a.json")


def test_nothing_in_common_says_what_there_is():
    save(profile([32], ["tiled"], executor="theory"), "d.json")
    assert refused("a.json d.json") == (
        "the profiles have no shape in common: the first has 64x64x64, the second 32x32x32: "
        "profile the same --shape"
    )


def test_another_device_says_what_is_not_compared(simulated):
    other = find_device("h100-sxm")
    save(profile([64], ["tiled"], executor="simulate", device=other.key, seed=1), "d.json")
    tiled = tuple(record for record in simulated.records if record.label == "tiled")
    save(replace(simulated, records=tiled), "e.json")
    result = compare("e.json d.json --fail-on counts")
    assert result.exit_code == 0  # of one architecture: the same machine code
    assert f"note: the devices differ, {DEFAULT_DEVICE.name} and {other.name}" in result.stdout
    result = compare("a.json d.json")
    assert "note: only in the first profile: naive-coalesced at 64 × 64 × 64" in result.stdout
    assert refused("a.json d.json --fail-on counts", code=3) == (
        "--fail-on counts: naive-coalesced at 64x64x64: missing in the second profile"
    )


def test_missing_counters_fail_the_counts_and_no_times(simulated):
    def without_traffic(record):
        counters = {k: v for k, v in record.simulated.counters.items() if k not in MODELLED}
        return replace(record, simulated=replace(record.simulated, counters=counters))

    save(timed(simulated, 1e-3), "d.json")
    fewer = replace(simulated, records=tuple(map(without_traffic, simulated.records)))
    save(timed(fewer, 1e-3), "e.json")
    said = refused("d.json e.json --fail-on counts", code=3)
    for name in MODELLED:
        assert name in said
    assert compare("d.json e.json --fail-on time").exit_code == 0
    assert compare("e.json d.json --fail-on counts").exit_code == 0


def test_another_tile_changes_theory_machine_code_and_registers(folder):
    made = profile([64], ["tiled:tile=16"], executor="simulate", seed=1)
    renamed = tuple(replace(record, label="tiled") for record in made.records)
    save(replace(made, records=renamed), "d.json")
    document = json.loads(compare("a.json d.json --json").stdout)
    names = {(c["grade"], c["name"]) for pair in document["pairs"] for c in pair["counts"]}
    assert ("theory", "global loads of A: elements") in names  # K/16 instead of K/32
    assert ("simulated", WARP_INSTRUCTIONS) in names
    assert ("compiled", "static shared bytes") in names
    assert any(c["lines"] for pair in document["pairs"] for c in pair["counts"])


# --- launches -----------------------------------------------------------------------------------

TURN = """extern "C" __global__ void turn(float *data) {
    __shared__ float tile[16][WIDTH];
    const int row = threadIdx.x / 16, column = threadIdx.x % 16;
    tile[column][row] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = tile[row][column];
}"""
STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"


def launch(name, width, more=""):
    """A file with the document of `simulate` of a block whose tile has rows of `width`."""
    write("turn.cu", TURN)
    asked = f"turn.cu -g 1 -b 256 -a f32[256] -D WIDTH={width} {more}"
    made = invoke(f"simulate {asked} --seed 1 --json")
    assert made.exit_code == 0, made.output
    write(name, made.stdout)


def launches(before, after, more=""):
    """Two such files, of tiles with rows of two widths."""
    launch("d.json", before, more)
    launch("e.json", after, more)
    return "d.json e.json"


def test_launches_that_count_alike_pass():
    result = compare(f"{launches(16, 16)} --fail-on counts")
    assert result.exit_code == 0
    assert re.search(r"^Counts: \d+ compared; none changed\.$", result.stdout, re.M)


def test_a_conflict_that_came_is_found_with_its_line():
    result = compare(f"{launches(17, 16)} --fail-on counts")
    assert result.exit_code == 3
    # each of 8 warps stores two rows as columns: 16 apart they meet in 4 banks, 8 lanes in each;
    # 17 apart only two lanes meet, 15 · 17 + 1 = 256 = 0 modulo 32
    assert re.search(r"^ wavefronts of shared stores +16 +64 ", result.stdout, re.M)
    assert re.search(r"^ turn.cu:4 +tile\[column\]", result.stdout, re.M)
    assert result.stderr.startswith("error: --fail-on counts: static shared bytes (compiled) 1,088")


def test_launches_as_a_document():
    found = json.loads(compare(f"{launches(17, 16)} --json").stdout)
    (pair,) = found["pairs"]
    (stores,) = [one for one in pair["counts"] if one["name"] == STORES]
    assert (stores["before"], stores["after"]) == (16, 64)
    assert found["after"]["kernel"] == "turn"


def test_a_baseline_with_a_device_holds_its_traffic():
    launch("d.json", 17, "-d h200")
    document = json.loads(Path("d.json").read_text("utf-8"))
    counters = {k: v for k, v in document["counters"].items() if k not in MODELLED}
    without = {"device": None, "predicted": None, "counters": counters}
    write("e.json", json.dumps(document | without))
    said = refused("d.json e.json --fail-on counts", code=3)
    assert said.endswith(": give --device h200")
    for name in MODELLED:
        assert name in said
        assert name in compare("d.json e.json").stdout.replace("\n", " ")


def test_times_of_launches_are_told_and_hold_nothing():
    files = launches(17, 16, "-d h200")
    said = compare(files).stdout
    assert said.startswith("turn: 3.77 µs predicted, no change.\n")
    assert refused(f"{files} --fail-on time").endswith(
        "but never fail a check): simulate or run both launches alike"
    )


def test_launches_are_compared_with_launches():
    launch("d.json", 16)
    assert refused("d.json a.json") == (
        "only d.json is of `simulate --json` or `run --json`: give two of a kind"
    )


def test_a_damaged_launch_is_refused():
    launch("d.json", 16)
    document = json.loads(Path("d.json").read_text("utf-8"))
    write("e.json", json.dumps(document)[:-99])
    assert refused("d.json e.json").startswith("e.json: it is not JSON: line 1, column ")
    write("e.json", json.dumps(document | {"grid": [1, 1]}))
    assert refused("d.json e.json").startswith("e.json: grid[2]: it is missing")
    name = next(iter(document["counters"]))
    for change, words in (
        ({"block": [0, 1, 1]}, "block[0]: it is 0, outside 1 to 2.14748e+09"),
        ({"dynamic_shared_bytes": -4}, "dynamic_shared_bytes: it is -4, outside 0 to "),
        ({"counters": {name: -1}}, f"counters['{name}']: it is -1, outside 0 to "),
    ):
        write("e.json", json.dumps(document | change))
        assert refused("d.json e.json").startswith(f"e.json: {words}")
    write("e.json", json.dumps(document | {"schema_version": 9}))
    assert "written by a newer version (schema 9, this one reads 5)" in refused("d.json e.json")


def test_launches_as_a_page():
    assert compare(f"{launches(17, 16)} --html x.html").exit_code == 0
    page = Path("x.html").read_text("utf-8")
    for words in ("Two launches of turn", "wavefronts of shared stores", "turn.cu:4", "WIDTH=16"):
        assert words in page


# --- estimates ----------------------------------------------------------------------------------

GATE = """extern "C" __global__ void gate(float *x) {
    int b = blockIdx.x;
    float s = x[b * 64 + threadIdx.x];
    if (b % 100 == 17) for (int i = 0; i < TURNS; i++) s = s * 1.0001f + 1.f;
    x[b * 64 + threadIdx.x] = s * 2.f;
}"""


def gate(name, turns, more=""):
    write("gate.cu", GATE)
    asked = f"gate.cu -g 4096 -b 64 -a f32[262144] -D TURNS={turns} --seed 1 --device h200 {more}"
    made = invoke(f"simulate {asked} --json")
    assert made.exit_code == 0, made.output
    write(name, made.stdout)


def test_a_gate_sees_blocks_that_are_rare():
    gate("d.json", 200)
    gate("e.json", 2000)
    said = refused("d.json e.json --fail-on counts", code=3)
    assert said.startswith(f"--fail-on counts: {WARP_INSTRUCTIONS} (simulated) ")


def test_a_gate_refuses_estimates_and_says_what_makes_them_exact():
    gate("d.json", 200)
    gate("e.json", 2000, "--limit 0")
    for files, side in (("d.json e.json", "second"), ("e.json d.json", "first")):
        said = refused(f"{files} --fail-on counts")
        assert said.startswith(f"--fail-on counts: counters of the {side} launch are estimates (")
        command = said.partition("makes them exact: python -m toolkit ")[2]
        assert command.endswith("--seed 1 --device h200 --blocks all --json")
        write("f.json", invoke(command).stdout)
        exact = json.loads(Path("f.json").read_text("utf-8"))
        assert (exact["executed_blocks"], exact["estimates"]) == (4096, {})
        # without a gate they are compared, with a remark
        assert "are estimates" in " ".join(compare(files).stdout.split())


def old_record(name, basis, rung=None):
    """A record as an earlier version wrote it."""
    gate(name, 200)
    document = json.loads(Path(name).read_text("utf-8"))
    for new in ("estimates", "unseen_share"):
        del document[new]
    write(name, json.dumps(document | {"schema_version": 3, "basis": basis, "rung": rung}))


@pytest.mark.parametrize(
    ("basis", "rung", "code"),
    [
        ("all 4,096 blocks executed: addresses do not shift evenly", None, 0),
        ("40 of 4,096 blocks executed, in one class of equal counts", None, 1),
        (
            "59 of 4,096 blocks executed; the other blocks count like the executed blocks",
            "tiled",
            0,
        ),
    ],
)
def test_a_record_of_an_earlier_version_that_executed_all_blocks_is_exact(basis, rung, code):
    old_record("d.json", basis, rung)
    gate("e.json", 200)
    assert compare("d.json e.json").exit_code == 0
    result = compare("d.json e.json --fail-on counts")
    assert result.exit_code == code, result.output
    assert ("--blocks all" in result.stderr) == (code == 1)


def test_outputs_have_a_digest_only_if_all_blocks_wrote_them():
    digests = {}
    for name, more in (("d.json", ""), ("e.json", "--limit 0")):
        gate(name, 200, more)
        document = json.loads(Path(name).read_text("utf-8"))
        digests[name] = [one["sha256"] for one in document["outputs"]]
    assert digests["d.json"][0]
    assert digests["e.json"] == [None]


def test_a_kernel_is_no_record_and_the_command_that_writes_one_is_named():
    launch("d.json", 16)
    write("turn.cu", "__global__ void turn() {}")
    said = refused("turn.cu d.json")
    assert said.startswith("turn.cu: it is not JSON: line 1")
    assert said.endswith(": `python -m toolkit simulate turn.cu --json` prints its record")
