"""The fourth part of public launches: its predictions, beside what was measured."""

from validation import ROOT, recordings
from validation.public_launches import predict
from validation.public_launches.listed import FOLDER, gap_of, listed, measurements
from validation.public_launches.page import page
from validation.public_launches.predict import with_measured

OPENED = FOLDER / "fourth_predicted.json"
VALIDATION = ROOT.joinpath("docs", "validation.md").read_text("utf-8")


def test_the_page_of_a_part_has_its_errors():
    """The third part's tables were written by hand."""
    cells = recordings.read(FOLDER / "third_predicted.json")["third"]
    lines = list(page("third", cells))
    limiters = lines[lines.index(next(line for line in lines if line.startswith("| limiter"))) :]
    assert limiters[0] in VALIDATION
    for line in limiters[2 : limiters.index("")]:
        assert line in VALIDATION
    errors = next(line for line in lines if line.startswith("| less 1.616 µs"))
    assert errors == "| less 1.616 µs | 115 | 20 | 8 | 12.3% | 6.1% | 33.1% | 3 | 65% | 10.4% |"
    assert any("23 of 25" in line and "72 of 84" in line for line in lines)


def test_predictions_are_beside_what_was_measured():
    cells = recordings.read(OPENED)["fourth"]
    assert [one["label"] for one in cells] == [one.name for one in listed("fourth")]
    assert with_measured("fourth", cells) == cells


def test_the_gap_comes_from_the_first_half_alone():
    document = measurements("fourth")
    assert {row["name"] for row in document["beside"]} <= {one.name for one in listed("first")}
    assert document["gap"] == gap_of(document["beside"])


def test_the_page_has_the_tables_of_the_record():
    assert "\n".join(page("fourth", recordings.read(OPENED)["fourth"])) in VALIDATION


def test_the_readme_states_the_newest_part():
    errors = predict.Errors.of(recordings.read(OPENED)["fourth"])
    readme = ROOT.joinpath("README.md").read_text("utf-8")
    mean = sum(errors.each) / len(errors.each)
    assert f"| {len(errors.timed)}, held out | {mean:.1%} |" in readme
