"""Output on a terminal: tables that fit it, progress, and text as it is."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from analysis.devices import DEVICES
from analysis.problem import parse_shape
from analysis.records.profile import Ratio
from analysis.timing.predicted import TimeBound
from kernels.ladder import LADDER, REFERENCES
from kernels.selection import BY_NAME
from tests.records_by_hand import measured, predicted
from toolkit import profile
from toolkit.cli.doctor import print_findings
from toolkit.cli.list import print_devices, print_variants
from toolkit.cli.profile_tables import print_profile
from toolkit.cli.progress import TerminalProgress
from toolkit.cli.terminal import err, out
from toolkit.profiling.doctor import ProbeResult
from toolkit.store.recorded_runs import recorded_run


class Screen:
    """A terminal of a given width, or a file, whose text can be read."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch
        self._file = io.StringIO()

    def open(self, width, *, terminal=False):
        for console in (out, err):
            fake = Console(file=self._file, width=width, force_terminal=terminal)
            for name in ("_file", "_width", "_force_terminal", "is_interactive"):
                self._monkeypatch.setattr(console, name, getattr(fake, name))

    @property
    def text(self):
        return self._file.getvalue()

    def show(self, profile, recorded=None, *, is_verbose=False):
        print_profile(profile, recorded, is_verbose=is_verbose)
        return self.text

    def row(self, label):
        """The line of the ladder's table."""
        return re.search(rf"^ ?[ \d]\d {label} .*$", self.text, re.MULTILINE)[0]

    def full_row(self, label):
        """The line of the table with every column."""
        every = self.text.partition("every variant")[2]
        return re.search(rf"^ ?[ \d]\d {label} .*$", every, re.MULTILINE)[0]


@pytest.fixture
def screen(monkeypatch):
    shown = Screen(monkeypatch)
    shown.open(120)
    return shown


@pytest.fixture(scope="module")
def theory():
    rungs = [variant.name for variant in LADDER[:7]]
    return profile([32], rungs, executor="theory", seed=1)


def measured_at(seconds, ratio=None):
    return measured(
        seconds,
        flop_per_s=parse_shape("32").flop / seconds,
        stopped_by="time limit",
        relative_to_cublas=ratio and Ratio(peer="cublas", median=ratio, interval=None),
    )


def with_times(given):
    records = enumerate(given.records, 1)
    timed = tuple(replace(one, measured=measured_at(1e-3 * n, 0.25)) for n, one in records)
    return replace(given, executor="gpu", records=timed)


def test_without_a_gpu_ceilings_are_shown(screen, theory):
    screen.show(theory)
    titles, grades = screen.text.partition("rung ")[2].splitlines()[:2]
    assert titles.split() == ["TFLOP/s", "FLOP/B", "limited", "by"]
    assert grades.split() == ["at", "most", "of", "loads"]
    assert "cuBLAS" not in screen.text
    assert " in theory: " in screen.text.splitlines()[0]


def test_a_measured_profile_leads_with_its_rate_and_its_share_of_cublas(screen, theory):
    screen.show(with_times(theory))
    first = screen.text.splitlines()[0]  # 2 · 32³ / 1 ms
    assert first == "65.5 MFLOP/s with one-block: 25.0 % of cuBLAS, 0.0000980 % of the FP32 peak."
    shown = screen.row("naive-uncoalesced").split()
    assert shown[2:5] == ["0.0000328", "25.0", "0.500"]  # TFLOP/s, % of cuBLAS, speedup
    assert "meas." in screen.text


def test_sentences_are_not_broken_in_a_narrow_file(screen, theory):
    screen.open(40)
    screen.show(theory, with_times(theory))
    lines = screen.text.splitlines()
    assert any(len(line) > 60 and line.startswith("Speedup: over") for line in lines)
    assert [line for line in lines if line.endswith(". ")] == []


def test_a_recorded_run_fills_in_what_was_not_measured(screen, theory):
    screen.show(theory, with_times(theory))
    assert screen.row("naive-uncoalesced").split()[2] == "0.0000328"
    assert "rec." in screen.text
    assert re.search(r"^Recorded \d{4}-\d\d-\d\d on such a GPU\.$", screen.text, re.MULTILINE)


@pytest.fixture(scope="module")
def simulated():
    return profile([32], ["tiled", "vectorized"], executor="simulate", seed=1)


def with_predictions(given):
    """Every rung predicted to take 1.5, 3, 4.5 ... ms, by shared memory for the most part."""

    def foreseen(time_s):
        return predicted(
            time_s,
            flop_per_s=parse_shape("32").flop / time_s,
            limiter="shared memory",
            limiter_share=0.917,
            next_limiter="issue",
            bounds=(TimeBound(name="issue", time_s=time_s / 2, basis=""),),
        )

    records = enumerate(given.records, 1)
    return replace(
        given, records=tuple(replace(one, predicted=foreseen(1.5e-3 * n)) for n, one in records)
    )


def test_predictions_lead_with_what_limits_them(screen, theory):
    screen.show(with_predictions(theory))
    first, second, *_ = screen.text.splitlines()
    assert first.startswith("43.7 MFLOP/s predicted with one-block: ")  # 2 · 32³ / 1.5 ms
    assert second.startswith("Limited by shared memory, busy 91.7 % of the time; next instruction")
    assert "pred." in screen.text
    assert screen.row("naive-uncoalesced").split()[2:4] == ["0.0000218", "0.500"]


@pytest.mark.parametrize("width", [80, 100, 200])
def test_predicted_rates_stand_beside_recorded_ones(screen, theory, width):
    screen.open(width)
    screen.show(with_predictions(theory), with_times(theory))
    assert screen.row("naive-uncoalesced").split()[2:4] == ["0.0000328", "0.0000218"]
    _, _, table, _ = screen.text.split("\n\n")  # between sentences, which the terminal breaks
    assert table.startswith("rung ")
    assert max(map(len, table.splitlines())) <= width


def test_the_ending_is_short_and_names_where_more_is(screen, theory):
    shown = screen.show(with_predictions(theory), with_times(theory))
    assert len(shown.splitlines()) <= 32
    assert shown.splitlines()[-1] == "More: the page, or --verbose."
    for left_out in ("every variant", "where the time goes", "scorecard", "FLOP per byte at"):
        assert left_out not in shown


def test_verbose_has_every_column(screen, theory):
    screen.open(300)
    screen.show(with_times(theory), is_verbose=True)
    assert "2.000 ms" in screen.full_row("naive-uncoalesced")
    assert "not run" in screen.full_row("tiled")
    assert "--verbose" not in screen.text


@pytest.mark.parametrize(("width", "is_shown"), [(100, True), (30, False)])
def test_few_variants_are_taken_apart_where_there_is_room(screen, theory, width, is_shown):
    screen.open(width)
    two = with_predictions(replace(theory, records=theory.records[:2]))
    screen.show(two, is_verbose=True)
    assert ("each resource alone (predicted)" in screen.text) == is_shown


def test_the_whole_ladder_is_left_to_the_report(screen, theory):
    screen.open(100)
    assert "where the time goes" not in screen.show(with_predictions(theory), is_verbose=True)


def test_why_each_rung_beats_the_one_before_is_on_the_terminal(screen, simulated):
    screen.open(100)
    screen.show(with_predictions(simulated), is_verbose=True)
    after = screen.text.partition("why each rung is faster or slower than the one before")[2]
    (shown,) = re.findall(r"^ vectorized .*$", after.partition("FLOP per byte")[0], re.MULTILINE)
    # 1.5 ms before, 3 ms after; issue takes half of both
    assert re.search(r"0\.500× +warp instructions .*: 750 µs → 1\.50 ms", shown)


def test_without_predictions_the_terminal_says_nothing_of_them(screen, simulated):
    without = tuple(replace(record, predicted=None) for record in simulated.records)
    screen.show(replace(simulated, records=without))
    assert "predicted" not in screen.text
    assert "why each rung" not in screen.text


def test_what_closed_forms_explain_is_not_on_the_terminal(screen, simulated):
    assert "by the closed form" not in screen.show(simulated)


def test_what_no_reason_is_known_for_is_on_the_terminal(screen, simulated):
    screen.open(300)
    record = simulated.records[0]
    first, *others = record.simulated.accesses
    changed = replace(record.simulated, accesses=(replace(first, lanes=first.lanes + 1), *others))
    records = (replace(record, simulated=changed), *simulated.records[1:])
    screen.show(replace(simulated, records=records))
    riddles = [line for line in screen.text.splitlines() if "by the closed form" in line]
    assert riddles[0] == (
        "tiled: elements of global loads: 2,048 by the closed form, 2,049 simulated: not explained"
    )


def test_every_level_has_an_intensity_on_one_line_per_variant(screen, simulated):
    screen.open(80)
    screen.show(simulated, is_verbose=True)
    after = screen.text.partition("FLOP per byte at each level, 32 × 32 × 32 (simulated)")[2]
    lines = [line.split() for line in after.splitlines() if line.startswith((" tiled", " vector"))]
    assert [line[0] for line in lines] == ["tiled", "vectorized"]
    # A, B and C once: 2 · 32³ FLOP over 3 · 4 KiB, of which C stays in L2 until the end
    assert lines[0][4] == "8"


def test_levels_stand_only_where_traffic_below_l1_is_known(screen, theory):
    assert "FLOP per byte at each level" not in screen.show(theory, is_verbose=True)


def test_the_compilers_numbers_are_graded_so(screen, theory):
    screen.open(300)
    screen.show(theory, is_verbose=True)
    titles, grades = re.findall(r"^.*(?:occupancy|compiled).*$", screen.text, re.MULTILINE)[:2]
    assert grades.split().count("compiled") == 2
    assert grades.index("compiled") >= titles.index("regs") - len("compiled")


def test_a_wrong_result_shows_no_time(screen, theory):
    timed = with_times(theory)
    wrong = replace(timed.records[1], status="failed", reason="wrong result: [/] at C[0][0]")
    screen.show(replace(timed, records=(timed.records[0], wrong)))
    assert "0.0000328" not in screen.text
    assert "naive-uncoalesced failed: wrong result: [/] at C[0][0]" in screen.text


@pytest.mark.parametrize("width", [1, 20, 40, 60, 80, 96, 116, 300])
def test_tables_fit_any_width(screen, theory, width):
    screen.open(width)
    screen.show(with_times(theory), is_verbose=True)
    print_variants(LADDER, REFERENCES)
    print_devices(list(DEVICES.values()))
    rows = [line for line in screen.text.splitlines() if re.match(r" [ \d]\d |[│┃]", line)]
    assert max(map(len, rows), default=0) <= width


def test_names_are_whole_where_80_columns_are(screen):
    screen.open(80)
    print_variants(LADDER, REFERENCES)
    print_devices(list(DEVICES.values()))
    for name in (*BY_NAME, *DEVICES):
        assert re.search(rf"^ *(\d+ +)?{re.escape(name)} ", screen.text, re.MULTILINE)


def test_findings_are_printed_as_they_are(screen):
    finding = ProbeResult(name="[x]", status="ok", detail="a [/] b", remedy="pip install 'x[gpu]'")
    print_findings([finding])
    assert screen.text.splitlines() == [
        "              ok  [x]: a [/] b",
        "                  -> pip install 'x[gpu]'",
    ]


def test_progress_is_silent_where_it_is_no_terminal_but_for_notices(screen):
    screen.open(20)
    with TerminalProgress() as progress:
        progress.stage("[/]", 2)
        progress.step("[/]")
        progress.detail("[red]x")
        progress.notice("a notice that is longer than the terminal is wide: [/] :warning:")
    assert screen.text.strip() == (
        "note: a notice that is longer than the terminal is wide: [/] :warning:"
    )


def test_progress_on_a_terminal_shows_the_step_and_leaves_no_trace(screen):
    screen.open(100, terminal=True)
    with TerminalProgress() as progress:
        progress.stage("32x32x32 [/]", 2)
        progress.step("first")
        progress.step("second [/red]")
    assert "32x32x32 [/]" in screen.text
    assert "second [/red]" in screen.text
    assert screen.text.endswith("\x1b[2K")  # the line is cleared


def test_progress_counts_the_steps_that_are_done(screen):
    progress = TerminalProgress()
    task = progress._bar.tasks[0]
    for _ in range(2):  # a second shape begins anew
        progress.stage("shape", 2)
        done = []
        for step in ("first", "second"):
            progress.step(step)
            done.append(task.completed)
        assert done == [0, 1]


def test_a_recorded_run_of_other_shapes_changes_nothing(screen):
    result = profile(["96"], ["tiled"], device="h200", executor="theory")
    alone = screen.show(result)
    assert screen.show(result, recorded_run("h200")) == 2 * alone


def test_a_rung_that_did_not_run_says_so_beside_recorded_times(screen, theory):
    simulated = replace(theory, executor="simulate")
    records = tuple(
        replace(record, status="skipped", reason="too old", theory=None)
        if record.label == "tiled"
        else record
        for record in simulated.records
    )
    earlier = with_times(theory)
    earlier = replace(earlier, records=tuple(r for r in earlier.records if r.label != "tiled"))
    screen.show(replace(simulated, records=records), earlier)
    assert "Not run: tiled (too old)." in screen.text.splitlines()
