"""Theory, simulation and hardware as grouped bars."""

from analysis.problem import Gemm
from reports.figures import grades
from reports.ladder import View


def test_three_bars_per_variant_of_the_chosen_quantity(build, in_counters):
    figure = grades.figure(build.view(in_counters))
    assert [trace.name for trace in figure.data] == ["theory", "simulated", "hardware"]
    assert len({trace.marker.pattern.shape for trace in figure.data}) == 3
    assert figure.layout.xaxis.title.text == "32-byte sectors of global loads"
    for trace in figure.data:  # 4096³ / 32 requests each of A and B, of 32 and 4 sectors
        assert trace.x[0] == 36 * 4096**3 // 32


def test_the_menu_changes_all_grades_at_once(build, in_counters):
    figure = grades.figure(build.view(in_counters))
    (menu,) = figure.layout.updatemenus
    assert menu.active == 1
    assert [button.label for button in menu.buttons] == list(grades.QUANTITIES.values())
    of_stores = menu.buttons[-1].args[0]["x"]
    simulated, measured = of_stores[1], of_stores[2]
    tiled = 2  # below the two naive rungs, which have no shared memory
    assert simulated[0] is None
    assert round(measured[tiled] / simulated[tiled], 2) == 1.12


def test_grades_that_are_missing_leave_gaps(build, in_trace):
    figure = grades.figure(build.view(in_trace))
    assert set(figure.data[2].x) == {None}
    assert all(figure.data[1].x)


def test_without_counters_it_says_so(in_theory):
    assert not grades.figure(View(in_theory, Gemm(m=1, n=1, k=1))).data


def test_bars_have_room_so_that_counts_that_are_near_look_near(build, in_counters):
    """Left to itself the axis begins just below the smallest: 0.1 % looked like a factor of 18."""
    figure = grades.figure(build.view(in_counters))
    (menu,) = figure.layout.updatemenus
    for button in menu.buttons:
        of_trace, of_layout = button.args
        low, high = of_layout["xaxis.range"]
        counts = [count for grade in of_trace["x"] for count in grade if count]
        assert 10**low <= min(counts) / 10
        assert max(counts) <= 10**high
    shown = menu.buttons[menu.active].args[1]["xaxis.range"]
    assert list(figure.layout.xaxis.range) == list(shown)
