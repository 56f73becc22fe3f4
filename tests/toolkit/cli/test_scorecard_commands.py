"""The scorecard as a user meets it: a table on the terminal, and `profile --strict`."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.comparison.scorecard import disagreements, scored, scores
from analysis.records.counters import ALL_COUNTERS
from analysis.records.metrics import WARP_INSTRUCTIONS
from benchmarks.traffic_tables import shipped_run
from kernels.ladder import LADDER
from tests.records_by_hand import counted as of_hardware
from tests.rungs import without_times
from tests.sampling import chosen_of
from tests.toolkit.cli.commands import invoke
from toolkit import load, profile, save
from toolkit.cli.profile_tables import print_profile
from toolkit.cli.terminal import out
from toolkit.execution.sanitizer import Checked

# One rung of each way to copy tiles and to wait for them and for other blocks.
WAYS = ("vectorized", "async-copy", "bulk-copy", "fenced", "stream-k", "split-k", "realigned")
COUNTED_ON_H200 = {
    (one.label, str(one.shape)): one for one in shipped_run("h200").records if one.counted
}
COUNTED = [
    (rung.name, shape)
    for rung in LADDER
    for shape in ("1000x333x65", "512x512x512")
    if (rung.name, shape) in COUNTED_ON_H200
]


def is_one_of_each_way(case):
    label, shape = case
    return label in WAYS and shape == "1000x333x65"


@pytest.fixture(scope="module")
def simulated():
    return profile([64], ["naive-coalesced", "tiled"], executor="simulate", seed=1)


@pytest.fixture(scope="module")
def exact(simulated):
    """Number of exact counters of `tiled` that are not 0: 12, and those that are added later."""
    (tiled,) = (record for record in simulated.records if record.label == "tiled")
    counts = {name: count for name, count in tiled.simulated.counters.items() if count}
    found = sum(ALL_COUNTERS[name].counter_class == "exact" for name in counts)
    assert found >= 12
    return found


def counting(made, **more):
    """The profile as hardware would count it, with `more` added to counters by a part of a name."""

    def of(counters):
        return of_hardware(
            {
                name: count + sum(extra for part, extra in more.items() if part in name)
                for name, count in counters.items()
            }
        )

    return replace(
        made,
        records=tuple(
            scored(replace(r, counted=of(r.simulated.counters))) if r.simulated else r
            for r in made.records
        ),
    )


@pytest.fixture
def run_of(monkeypatch):
    """`profile --strict` where the run gives that profile."""

    def strictly(made):
        monkeypatch.setattr("toolkit.profiling.profile.profile", lambda *_, **__: made)
        return invoke("profile --strict")

    return strictly


def shown(made, monkeypatch, *, width=80):
    file = io.StringIO()
    monkeypatch.setattr(out, "_file", file)
    monkeypatch.setattr(out, "_width", width)
    print_profile(made, None, is_verbose=True)
    return file.getvalue()


def test_counters_of_hardware_get_a_table(simulated, exact, monkeypatch):
    text = shown(counting(simulated, dram=1), monkeypatch)
    assert "scorecard, 64 × 64 × 64" in text
    rows = text.partition("scorecard, 64 × 64 × 64")[2].splitlines()
    (tiled,) = (line for line in rows if line.startswith(" tiled "))
    assert tiled.split()[1:4] == ["✓", str(exact), "of"]
    assert max(map(len, text[text.index("scorecard,") :].splitlines())) <= 80


def test_without_hardware_the_answer_says_it_all(simulated, monkeypatch):
    assert "scorecard" not in shown(simulated, monkeypatch)


def test_what_is_apart_is_named(simulated, exact, monkeypatch):
    text = shown(counting(simulated, **{WARP_INSTRUCTIONS: 1}), monkeypatch, width=120)
    assert f"✗ {exact - 1} of {exact}" in text
    assert "different: warp instructions, −1" in text


def test_strict_is_content_with_what_agrees(simulated, run_of):
    for made in (simulated, counting(simulated)):
        assert run_of(made).exit_code == 0
    assert load("profile.json") == counting(simulated)


def test_strict_names_the_counter_that_disagrees(simulated, run_of):
    record = simulated.records[0]
    count = record.simulated.counters[WARP_INSTRUCTIONS]
    result = run_of(counting(simulated, **{WARP_INSTRUCTIONS: 1}))
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-1] == (
        f"error: an exact counter disagrees: naive-coalesced at 64x64x64: {WARP_INSTRUCTIONS} is "
        f"{count:,} simulated, {count + 1:,} measured (and 1 more, in the report)"
    )
    assert "wrote profile.json" in result.stderr  # the report is there to look at


def test_strict_does_not_hold_estimates_or_noise(simulated, run_of):
    assert run_of(counting(simulated, dram=10**6, wavefronts_mem_shared_op_st=10**6)).exit_code == 0


def test_strict_finds_nothing_in_theory_alone(run_of):
    result = run_of(profile([64], ["tiled"], executor="theory"))
    assert result.exit_code == 1
    assert "--strict found nothing to compare" in result.stderr


def test_strict_holds_a_real_simulation_against_its_closed_forms(folder):
    assert invoke("profile --executor simulate --shape 64 --variant tiled --strict").exit_code == 0


def test_a_report_of_a_file_without_scores_has_them(simulated, exact, folder, monkeypatch):
    counted = counting(simulated, **{WARP_INSTRUCTIONS: 1})
    old = replace(counted, records=tuple(replace(r, scores=()) for r in counted.records))
    save(old, "old.json")
    result = invoke("report old.json --verbose")
    assert result.exit_code == 0
    assert f"✗ {exact - 1} of {exact}" in result.stdout
    assert "Counters by class" in Path("profile.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("label", "shape"), chosen_of(COUNTED, is_one_of_each_way))
def test_the_rungs_execute_what_an_h200_counted_in_the_recorded_run(
    label,
    shape,
    monkeypatch,
):
    nothing = Checked(kernel="", findings=(), executed_blocks=0, blocks=0, tools=())
    without_times(monkeypatch)
    monkeypatch.setattr("toolkit.profiling.on_simulator.check_rung", lambda *_: nothing)
    (record,) = profile([shape], [label], executor="simulate", device="h200", seed=1).records
    found = scores(record, counted_in=COUNTED_ON_H200[label, shape])
    assert sum(score.measured is not None for score in found) > 10
    assert [(one.counter, one.simulated, one.measured) for one in disagreements(found)] == []
