"""Pages of checks, comparisons and tuning in a browser: three widths, two schemes."""

from dataclasses import replace

import pytest

from analysis.comparison.runs import compare, compare_launches
from analysis.records.launch import LaunchRecord
from reports.pages import check, comparison, launches, tuning
from tests.reports.launches import LAUNCHES, LONG_NAME, executed, reports
from tests.reports.pages.test_check import HAZARD, REPORT
from tests.reports.test_kernel_page_in_browser import CONTRAST, LAYOUT, READ_AT, WIDTHS, seen_at
from tests.reports.tuned_by_hand import TUNING
from tests.sampling import chosen_of

pytestmark = pytest.mark.browser


def record(name, **more):
    """The record of a launch, which is compared with another one whatever its kernel is."""
    made = executed(name)
    facts = {
        "source": "kernel.cu",
        "kernel": name,
        "grid": made.geometry.grid,
        "block": made.geometry.block,
        "dynamic_shared_bytes": 0,
        "arguments": ("f32[1048576]",) * 2,
        "defines": {},
        "options": (),
        "seed": 1,
        "device": "h100-sxm",
        "resources": made.resources,
        "basis": made.basis,
        "counters": dict(made.counters),
        "lines": (),
        "predicted": made.predicted,
        "estimates": {},
    }
    return LaunchRecord(**facts | more)


def changed(profile):
    """Every counter doubled, and a record lost."""

    def doubled(one):
        if one.simulated is None:
            return one
        counters = {name: 2 * count for name, count in one.simulated.counters.items()}
        return replace(one, simulated=replace(one.simulated, counters=counters))

    return replace(profile, records=tuple(map(doubled, profile.records[1:])))


def made(name):
    return executed(name).report


PAGES = {
    "check with findings": lambda _: check.page(replace(REPORT, findings=[HAZARD] * 20)),
    "check without findings": lambda _: check.page(replace(REPORT, kernel=LONG_NAME, findings=[])),
    "launches, better": lambda _: comparison.page(
        compare_launches(record("transpose"), record("copy"))
    ),
    "launches, worse": lambda _: comparison.page(
        compare_launches(record("copy"), record("transpose", kernel=LONG_NAME))
    ),
    "measured launches": lambda _: comparison.page(
        compare_launches(
            record("copy", samples_s=(4e-6,) * 9), record("copy", samples_s=(9e-6,) * 9)
        )
    ),
    "profiles": lambda profile: comparison.page(compare(profile, changed(profile))),
    "40 launches": lambda _: launches.page([*map(made, LAUNCHES), *reports().values()] * 3),
    "tuning": lambda _: tuning.page(TUNING),
}


# with fewer parts, or with more of the same
LIKE_OTHERS = ("check without findings", "launches, better", "measured launches", "40 launches")
IS_OF_SCHEME = """[...document.querySelectorAll(".plot .xtick text")].every((text) =>
  getComputedStyle(text).fill === getComputedStyle(document.querySelector(".mu")).color)"""


@pytest.mark.parametrize("name", chosen_of(list(PAGES), lambda name: name not in LIKE_OTHERS))
def test_it_is_readable_at_each_width_in_both_schemes(window, in_prediction, name):
    visit = window.show(PAGES[name](in_prediction), width=1440, waits=False)
    for width in WIDTHS:
        seen_at(visit, width, "light")
        assert visit.overflow() == 0, width
        found = visit.page.evaluate(LAYOUT)
        assert not any(found.values()), (width, found)
        if width in READ_AT:
            visit.until(IS_OF_SCHEME)
            assert visit.page.evaluate(CONTRAST) == [], width
    for width in reversed(READ_AT):
        seen_at(visit, width, "dark").until(IS_OF_SCHEME)  # a figure is drawn again
        assert visit.page.evaluate(CONTRAST) == [], width
    assert visit.complaints == []
    assert visit.fetched() == []
