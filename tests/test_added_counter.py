"""A counter is one entry: those that are added here arrive wherever counters are shown."""

import json
import sys

import pytest

from analysis.records.counters import ALL_COUNTERS
from tests.processes import said
from validation import ROOT

EXACT, MODELLED = "smsp__inst_executed_op_added.sum", "lts__t_sectors_added.sum"
ENTRIES = """
_of_all_but_added = _of_instructions


def _of_instructions():
    yield from _of_all_but_added()
    yield _counter(
        "smsp__inst_executed_op_added",
        "FFMA of added warps",
        MetricUnit.INSTRUCTIONS,
        Group.INSTRUCTIONS,
        lambda i: i.executed if i.opcode == "FFMA" else 0,
        short="FFMA of warps",
        hint="added by a test",
    )


_all_but_added = _modelled


def _modelled():
    yield from _all_but_added()
    yield _counter(
        "lts__t_sectors_added",
        "added 32-byte sectors",
        MetricUnit.SECTORS,
        Group.BELOW_L1,
        counter_class=CounterClass.MODELLED,
        of_traffic=lambda traffic: traffic.written_sectors,
    )


"""
# A process of its own, whose file of counters has the entries.
PROGRAM = """
import importlib.util, json, sys, types
from dataclasses import replace
from pathlib import Path

name = "analysis.records.counters"
spec = importlib.util.find_spec(name)
module = sys.modules[name] = importlib.util.module_from_spec(spec)
source = Path(spec.origin).read_text(encoding="utf-8")
head, registry, tail = source.partition("ALL_COUNTERS: Mapping")
exec(compile(head + sys.argv[1] + registry + tail, spec.origin, "exec"), vars(module))

import toolkit
from analysis.comparison.runs import compare
from analysis.comparison.scorecard import scored
from analysis.records.profile import Counted
from analysis.records.summaries import rows
from reports.ladder import View, shapes
from reports.pages.comparison import page as comparison_page
from reports.sections.launch import counters_table
from reports.sections.scorecard import scorecard
from toolkit.cli.compare import print_comparison
from toolkit.cli.terminal import out, rich_table
from toolkit.gpu.nsight_compute import ncu


def told(show):
    out._width = 200
    with out.capture() as capture:
        show()
    return capture.get()


made = toolkit.profile([64], ["tiled"], executor="simulate", device="h200", seed=1)
(record,) = made.records
simulated = record.simulated
counted = Counted(counters=simulated.counters, kernels=(), caches="flushed", source="ncu")
made = replace(made, records=(scored(replace(record, counted=counted)),))
added = {tag: count for tag, count in simulated.counters.items() if "added" in tag}
fewer = simulated.counters | {tag: count // 2 for tag, count in added.items()}
before = replace(record, simulated=replace(simulated, counters=fewer))
other = replace(made, records=(before,))
toolkit.save(made, "made.json")
compared = compare(other, made)
launch = toolkit.simulate("tiled", shape="64", seed=1, device="h200")
table = counters_table(launch.instructions, launch.counters)
card = scorecard(View(made, *shapes(made)))
print(json.dumps({
    "terminal": told(lambda: out.print(rich_table(table))),
    "page": [[row[0].text, *row[0].details] for row in dict(card.everything)["tiled"].rows],
    "compare": told(lambda: print_comparison(compared)),
    "compared": {one.name: [one.label, one.unit] for one in compared.pairs[0].counts},
    "comparison page": comparison_page(compared),
    "frame": rows(made),
    "asked of ncu": ncu.COUNTER_NAMES,
    "stored": toolkit.load("made.json").records[0].simulated.counters,
}))
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Output of each place in a program whose file of counters has the entries."""
    folder = tmp_path_factory.mktemp("added")
    environment = {"PYTHONPATH": str(ROOT)}
    return json.loads(said([sys.executable, "-c", PROGRAM, ENTRIES], cwd=folder, env=environment))


def test_the_entries_are_new():
    assert not {EXACT, MODELLED} & ALL_COUNTERS.keys()


def test_the_terminal_shows_them_in_their_groups(shown):
    lines = [line.split() for line in shown["terminal"].splitlines()]
    assert ["FFMA", "of", "added", "warps", "8,192", EXACT] in lines  # 64³ / 32
    (modelled,) = (line for line in lines if MODELLED in line)
    assert modelled[:4] == ["added", "32-byte", "sectors", "(modelled)"]
    assert lines.index(modelled) > lines.index(["L2", "and", "DRAM"])


def test_the_page_shows_them_with_tag_and_hint(shown):
    assert ["FFMA of added warps", EXACT, "added by a test"] in shown["page"]
    assert ["added 32-byte sectors", MODELLED] in shown["page"]


def test_compare_shows_them(shown):
    assert "FFMA of warps" in shown["compare"]
    assert "FFMA of warps" in shown["comparison page"]
    assert shown["compared"][EXACT] == ["FFMA of added warps", "warp instructions"]
    assert shown["compared"][MODELLED] == ["added 32-byte sectors", "sectors"]


def test_json_and_a_data_frame_have_them(shown):
    assert shown["stored"][EXACT] == 8192
    found = {one["grade"]: one for one in shown["frame"] if one["tag"] == EXACT}
    assert found.keys() == {"simulated", "measured"}
    assert found["simulated"] == {
        "variant": "tiled", "m": 64, "n": 64, "k": 64, "grade": "simulated", "tag": EXACT,
        "label": "FFMA of added warps", "unit": "warp instructions", "format": "digits",
        "group": "instructions", "hint": "added by a test", "class": "exact", "value": 8192,
    }  # fmt: skip


def test_hardware_is_asked_for_them(shown):
    assert {EXACT, MODELLED} <= set(shown["asked of ncu"])
