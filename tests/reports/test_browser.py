"""Pages of comparisons and of tuning runs in a browser."""

import re
from dataclasses import replace

import pytest

from analysis.comparison.runs import compare
from analysis.records.profile import Interval
from reports.pages.comparison import page
from reports.pages.tuning import page as tuning_page
from tests.reports.browsing import WIDTHS
from tests.reports.tuned_by_hand import TUNING
from tests.sampling import chosen_of

pytestmark = pytest.mark.browser

AT_ONE_WIDTH = chosen_of(map(pytest.param, [(400,), *WIDTHS]), lambda widths: widths == (400,))


FILL = "getComputedStyle(document.querySelector('.plot .ytick text')).fill"


def halves(measured):
    """A time of half as much, None without one."""
    if measured is None:
        return None
    low, high = measured.interval_s.low / 2, measured.interval_s.high / 2
    return replace(
        measured, median_s=measured.median_s / 2, interval_s=Interval(low=low, high=high)
    )


at_one_width = pytest.mark.parametrize("widths", AT_ONE_WIDTH)


@pytest.mark.exhaustive  # test_result_pages_in_browser.py has one, too
@at_one_width
def test_a_comparison_fits_its_window(window, in_counters, in_simulation, widths):
    html = page(compare(in_simulation, in_counters))
    visit = window.show(html, width=widths[0], scheme="dark", is_resized=False)
    visit.open_details()
    visit.assert_it_fits(widths)


@pytest.mark.exhaustive  # as those of a ladder
def test_a_figure_of_a_comparison_is_drawn_when_it_is_reached(window, in_counters):
    halved = tuple(replace(r, measured=halves(r.measured)) for r in in_counters.records)
    compared = compare(in_counters, replace(in_counters, records=halved))
    html = page(compared)
    far = re.sub('<figure class="first drawing"', r'<div style="height: 3000px"></div>\g<0>', html)
    visit = window.show(far, width=1000, waits=False)
    visit.until("typeof Plotly === 'object'")
    assert visit.count(".plot[data-drawn]") == 0
    visit.page.evaluate("document.querySelector('.plot').scrollIntoView()")
    visit.wait()
    assert visit.count(".plot .bars path") == sum(1 for one in compared.pairs if one.time) > 5
    light = visit.page.evaluate(FILL)
    visit.page.emulate_media(color_scheme="dark")
    visit.until(f"{FILL} !== '{light}'")
    assert visit.complaints == []


@pytest.mark.exhaustive  # test_result_pages_in_browser.py has one, too
def test_a_tuning_run_fits_its_window(window):
    visit = window.show(tuning_page(TUNING), width=400)
    visit.assert_it_fits((400,))
