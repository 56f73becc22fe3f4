"""The page of a check: its verdict, lines with threads, and what it does without facts."""

from dataclasses import replace

import pytest

from reports.pages.check import MOST_FINDINGS, Action, CheckFinding, CheckReport, page
from tests.reports.pages.test_kernel import MOST_BYTES, Tags

SOURCE = """extern "C" __global__ void reverse(const float *x, float *y) {
    __shared__ float copy[64];
    copy[threadIdx.x] = x[threadIdx.x];

    // <b>no barrier</b>

    y[threadIdx.x] = copy[63 - threadIdx.x];
}
"""
HAZARD = CheckFinding(
    tool="racecheck",
    kind="RAW",
    sentence="read-after-write hazard on shared memory at byte 124: no barrier",
    memory="shared",
    number=32,
    actions=[
        Action(what="write", thread=(31, 0, 0), block=(0, 0, 0), file="reverse.cu", line=3),
        Action(what="read", thread=(32, 0, 0), block=(0, 0, 0), file="reverse.cu", line=7),
    ],
)
REPORT = CheckReport(
    kernel="reverse",
    file="reverse.cu",
    source=SOURCE,
    architecture="sm_90",
    grid=(4, 1, 1),
    block=(64, 1, 1),
    findings=[HAZARD],
    executed_blocks=4,
    blocks=4,
    tools=("memcheck", "racecheck", "synccheck", "initcheck"),
    notes=(),
    command="python -m toolkit check reverse.cu",
)


def test_a_finding_is_the_verdict_with_its_lines_and_threads():
    html = page(REPORT)
    assert "<b>Read-after-write hazard in shared memory at lines 3 and 7.</b>" in html
    assert "All 4 blocks were executed." in html
    hot = [line for line in html.splitlines() if '<li class="hot">' in line]
    assert len(hot) == 2
    assert "copy[threadIdx.x] = x[threadIdx.x];" in hot[0]
    assert "write by thread (31, 0, 0) of block (0, 0, 0)" in hot[0]
    assert "read by thread (32, 0, 0) of block (0, 0, 0)" in hot[1]
    assert '<div class="big cost"><span class="v">1</span><small>error</small>' in html
    assert "32 times" in html


def test_nothing_found_says_what_was_executed():
    html = page(replace(REPORT, findings=[]))
    assert "<b>Nothing was found.</b> All 4 blocks were executed." in html
    assert 'class="big"' in html
    assert "Findings" not in html.split("<main")[1]
    some = page(replace(REPORT, findings=[], executed_blocks=2))
    assert "<b>Nothing was found.</b> 2 of 4 blocks were executed." in some


def test_a_tool_that_did_not_run_is_told():
    html = page(replace(REPORT, findings=[], tools=("memcheck", "synccheck", "initcheck")))
    assert "did not run" in html
    assert "did not run" not in page(REPORT)


def test_without_line_information_the_sentence_stands_alone():
    actions = [replace(one, file=None, line=None) for one in HAZARD.actions]
    html = page(replace(REPORT, findings=[replace(HAZARD, actions=actions)]))
    assert "<b>Read-after-write hazard in shared memory.</b>" in html
    assert 'class="src"' not in html
    assert "on shared memory at byte 124" in html


@pytest.mark.parametrize(
    "changed",
    [
        {"kernel": "k" * 300},
        {"source": None},
        {"findings": [HAZARD] * 500},
        {"findings": [replace(HAZARD, actions=())]},
        {"source": "</style><script>alert(1)</script>\n" * 8},
        {"notes": ("there are more findings than are listed",)},
    ],
)
def test_any_result_is_a_page(changed):
    html = page(replace(REPORT, **changed))
    tags = Tags(html)
    assert tags.open == []
    assert all(place.startswith(("#", "data:,")) for place in tags.places)
    assert len(html.encode()) <= MOST_BYTES
    assert "<script" not in html
    assert "<b>no barrier" not in html


def test_of_many_findings_the_first_are_listed():
    html = page(replace(REPORT, findings=[HAZARD] * 500))
    assert html.count("<h3>") == MOST_FINDINGS
    assert "460 further findings are in the output of --json." in html
