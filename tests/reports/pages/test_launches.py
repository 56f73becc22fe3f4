"""The page of several launches: their order, their bars, and launches without facts."""

import re
from dataclasses import replace

from reports.pages.launches import MOST_BARS, page
from reports.templating import unbroken
from tests.reports.launches import LAUNCHES, executed, reports
from tests.reports.pages.test_kernel import MOST_BYTES, Tags


def test_the_longest_is_first_and_one_cause_is_marked():
    found = [executed(name).report for name in ("copy", "transpose", "saxpy")]
    html = page(found)
    longest = max(found, key=lambda one: one.predicted.time_s)
    assert f"<b>{unbroken(f'The longest is {longest.answer.time_sentence}')}</b>" in html
    assert html.count('class="c0"') == 1
    names = re.findall(r'data-l="launch" data-e="([^"]*)"', html)
    times = {one.name: one.predicted.time_s for one in found}
    assert names == sorted(times, key=lambda name: -times[name])


def test_forty_launches_of_any_kind_are_a_page():
    found = [*(executed(name).report for name in LAUNCHES), *reports().values()]
    found = [replace(one, name=f"{one.name}-{n}") for n, one in enumerate(found * 3)][:40]
    html = page(found)
    assert Tags(html).open == []
    assert html.count('data-l="launch"') == len(found) == 40
    assert html.count('class="nm"') == MOST_BARS
    assert len(html.encode()) <= MOST_BYTES
    assert "<script" not in html


def test_without_any_time_there_are_no_bars():
    bare = reports()["not predicted"]
    html = page([bare, bare])
    assert "No time is known." in html
    assert "<figure" not in html


def test_a_row_names_what_takes_most_time_and_what_is_avoidable():
    html = page([executed(name).report for name in ("copy", "transpose", "one thread")])
    rows = re.findall(
        r'data-l="most time"[^>]*>([^<,]*).*?data-l="largest[^>]*>([^<,]*)', html, re.S
    )
    assert rows == [
        ("DRAM bandwidth", "waiting for DRAM"),  # 8 MB
        ("launch", "waiting for DRAM"),  # 2 MB; a launch takes 2.7 µs
        ("launch", "idle SMs"),  # one thread
    ]
