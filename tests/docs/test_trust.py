"""docs/trust.md sums up docs/validation.md: what it says of errors stands there."""

import re

from docs.snippets.pages import ROOT
from validation import recordings

FIGURE = re.compile(r"\b\d+(?:\.\d+)?%|\b\d+ (?:of \d+ )?launches|45,000")
COUNTERS = ROOT / "tests/toolkit/execution/recorded/counters_sm_90.json"
TRUST, VALIDATION = (
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("trust.md", "validation.md")
)


def test_figures_are_those_of_the_validation():
    tables = "\n".join(line for line in TRUST.splitlines() if line.startswith("|"))
    figures = {figure for figure in FIGURE.findall(tables) if figure != "95%"}  # of an interval
    assert len(figures) > 12
    assert {figure for figure in figures if figure.partition(" of ")[0] not in VALIDATION} == set()


def test_launches_with_equal_counters_are_those_of_the_table():
    row = re.compile(r"^\| (ladder|other kernels.*) \| (\d+) \| (\d+) \|$", re.MULTILINE)
    rows = row.findall(VALIDATION)
    (ladder, of_ladder), *others = ((int(equal), int(all_)) for _, all_, equal in rows)
    equal, all_others = (sum(column) for column in zip(*others, strict=True))
    assert of_ladder + all_others == len(recordings.read(COUNTERS)["launches"])
    assert (
        f"all equal in {ladder} of {of_ladder} launches of the ladder, "
        f"and in {equal} of {all_others} others"
    ) in TRUST


def test_modelled_traffic_within_its_bounds_is_that_of_all_devices():
    line = next(one for one in VALIDATION.splitlines() if one.startswith("Of h100-sxm and h200: "))
    for level, within in (("L2", 10), ("DRAM", 15)):
        told = [part for part in line.split(";") if re.search(f"{level} (reads|writes)", part)]
        pairs = [map(int, pair) for part in told for pair in re.findall(r"(\d+) of (\d+)", part)]
        good, cases = (sum(column) for column in zip(*pairs, strict=True))
        assert f"within {within}% at {level} in {good} of {cases}" in TRUST
