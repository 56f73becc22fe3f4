"""The errors that pages state of launches on tensor cores are those of this model."""

import re
from statistics import fmean

import pytest

from analysis.errors import InputError
from benchmarks.tensor_clocks import clocks_in, recorded_clocks
from benchmarks.tensor_errors import PREDICTED, prediction, recorded_ratios, table
from validation import ROOT, recordings
from validation.timing.tensor_launches import LAUNCHES

FOUND = recordings.read(PREDICTED)["launches"]


def page(name):
    return ROOT.joinpath(name).read_text(encoding="utf-8")


def test_every_launch_is_predicted():
    assert FOUND.keys() == {one.label for one in LAUNCHES}


def test_the_page_has_the_recorded_errors():
    assert "\n".join(table()) in page("docs/tensor_cores.md")


def test_readme_has_the_recorded_errors():
    ratios = recorded_ratios("first")["all"]
    error = f"{100 * fmean(abs(ratio - 1) for ratio in ratios):.1f}%"
    rows = re.findall(r"^\| kernels on tensor cores.*", page("README.md"), re.MULTILINE)
    assert any(f"| {len(ratios)}, fitted |" in row and error in row for row in rows)


@pytest.mark.parametrize("label", ["wmma_half 512x512x512", "wmma_tiles 1024x1024x1024"])
def test_what_is_recorded_is_of_this_model(label):
    """If not: `python -m benchmarks.tensor_errors --half both --output` the recording."""
    found = prediction(label)
    assert found.time_s == pytest.approx(FOUND[label]["predicted_s"], rel=1e-3)


def raw_page(symbols):
    rows = [f'"{k}","{symbol}","1,000","2,000,000"' for k, symbol in enumerate(symbols)]
    return [
        "==PROF== Connected to process 1",
        '"ID","Kernel Name","gpu__time_duration.sum","sm__cycles_elapsed.max"',
        '"","","us","cycle"',
        *rows,
    ]


def test_clocks_are_cycles_per_time():
    two = LAUNCHES[:2]
    found = clocks_in(raw_page([one.symbol for one in two]), two)
    assert found == {one.label: 2e9 for one in two}  # 2,000,000 cycles in 1,000 us


def test_clocks_of_other_launches_are_refused():
    with pytest.raises(InputError, match="in another order"):
        clocks_in(raw_page(["half_words", "other"]), LAUNCHES[:2])


def test_every_launch_has_a_recorded_clock():
    found = recorded_clocks()
    assert found.keys() == {one.label for one in LAUNCHES}
    assert all(1.4e9 <= clock <= 1.98e9 for clock in found.values())
