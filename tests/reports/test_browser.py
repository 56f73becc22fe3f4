"""Pages of comparisons and of tuning runs in a browser."""

import pytest

from analysis.comparison.runs import compare
from reports.pages.comparison import page
from reports.pages.tuning import page as tuning_page
from tests.reports.browsing import WIDTHS
from tests.reports.tuned_by_hand import TUNING
from tests.sampling import chosen_of

pytestmark = pytest.mark.browser

AT_ONE_WIDTH = chosen_of(map(pytest.param, [(400,), *WIDTHS]), lambda widths: widths == (400,))


at_one_width = pytest.mark.parametrize("widths", AT_ONE_WIDTH)


@at_one_width
def test_a_comparison_fits_its_window(window, in_counters, in_simulation, widths):
    html = page(compare(in_simulation, in_counters))
    visit = window.show(html, width=widths[0], scheme="dark", is_resized=False)
    visit.open_details()
    visit.assert_it_fits(widths)


def test_a_tuning_run_fits_its_window(window):
    visit = window.show(tuning_page(TUNING), width=400)
    visit.assert_it_fits((400,))
