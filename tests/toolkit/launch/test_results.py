"""Views of a launch and of a profile: in a prompt, a notebook and pandas."""

import re
import sys
from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from analysis.errors import InputError, UnavailableError, UnknownNameError
from analysis.records.profile import Profile as Record
from analysis.timing.predicted import NAMED, Cost, Effect
from reports.figures import launch as figures
from reports.figures import named
from tests.reports.launches import TRANSPOSE
from toolkit import load, profile, save, simulate
from toolkit.gpu.launch import run

ARGUMENTS = [np.zeros((2048, 2048), np.float32), np.ones((2048, 2048), np.float32), np.int32(2048)]
LAUNCH = {"grid": (64, 64), "block": (32, 8), "arguments": ARGUMENTS}


@pytest.fixture(scope="module")
def execution():
    return simulate(TRANSPOSE, **LAUNCH, blocks="representative", outputs=False)


@pytest.fixture(scope="module")
def found():
    return profile(
        ["64", "128"], ["tiled", "vectorized"], device="h200", executor="simulate", seed=1
    )


def test_a_prompt_shows_at_most_three_lines(execution, found):
    for one in (execution, found, replace(execution, instructions=(), cubin=None)):
        assert 0 < len(repr(one).splitlines()) <= 3
        assert len(repr(one)) < 600
    first = execution.verdict.splitlines()[0]
    assert repr(execution).startswith(f"<Execution {first}\n  ")
    assert repr(found).startswith("<Profile of 2 variants at 64 × 64 × 64 and 1 more shape on ")


def test_a_profile_has_no_hash(found):
    with pytest.raises(TypeError, match="unhashable type: 'ShownProfile'"):
        hash(found)
    assert not isinstance(found, Hashable)


def test_a_measured_launch_shows_its_time(execution):
    measured = replace(
        execution, samples_s=(4e-5,), predicted=None, instructions=(), prediction_basis=None
    )
    assert measured.verdict.splitlines()[0].startswith("transpose: 40.0 µs measured on ")
    assert replace(measured, samples_s=()).verdict == ""


def test_causes_are_ranked_and_none_is_negligible(execution):
    causes = execution.causes
    assert [one.time_s for one in causes] == sorted((c.time_s for c in causes), reverse=True)
    assert all(one.share >= NAMED for one in causes)
    assert all(c.share == c.time_s / execution.predicted.time_s for c in causes)
    avoidable = [one for one in causes if one.is_avoidable]
    assert avoidable[0].cause == Effect.CONFLICTS == execution.report.answer.cause.effect
    assert replace(execution, predicted=None).causes == ()


def test_work_that_does_not_overlap_is_never_the_first_cause(execution):
    predicted = execution.predicted
    rest = Cost(effect=Effect.REMAINDER, time_s=predicted.time_s, alone_s=0.0)
    *others, last = replace(predicted, costs=(rest, *predicted.costs)).causes
    assert (len(others), last.cause) == (len(predicted.causes), Effect.REMAINDER)


def test_causes_of_a_profile_are_those_of_its_records(found):
    assert {label for label, _ in found.causes} == {"tiled", "vectorized"}
    for causes in found.causes.values():
        assert causes
        assert all(one.share >= NAMED for one in causes)


def test_remedies_are_found_once_and_then_shown(execution, monkeypatch):
    import toolkit

    asked = []

    def find_remedies(source, **launch):
        asked.append(launch)
        return ()

    monkeypatch.setattr(toolkit, "find_remedies", find_remedies, raising=False)
    again = replace(execution)
    assert again.remedies == again.remedies == ()
    (launch,) = asked
    assert (launch["grid"], launch["block"]) == (LAUNCH["grid"], LAUNCH["block"])
    assert (launch["device"].key, launch["arch"]) == ("h200", "sm_90")
    assert launch["arguments"] is ARGUMENTS


@pytest.mark.exhaustive  # a minute of trials; tests/toolkit/remedies has them one by one
def test_the_first_remedy_of_a_transpose_pads_or_swizzles(execution):
    again = replace(execution)
    assert again.remedies[0].effect == Effect.CONFLICTS
    assert again.report.remedies == again.remedies
    assert again.remedies[0].title in again.html()


@pytest.mark.parametrize("changes", [{"call": None}, {"predicted": None}])
def test_remedies_need_a_source_and_a_time(execution, changes):
    with pytest.raises(InputError, match="transpose: remedies need CUDA C"):
        _ = replace(execution, **changes).remedies


# Figures.


@pytest.mark.parametrize("name", figures.FIGURES)
def test_each_figure_of_a_launch_has_the_data_of_its_page(execution, name):
    figure = execution.figure(name)
    go.Figure(figure.to_dict())  # validates
    assert figure.data
    nothing = replace(
        execution, predicted=None, instructions=(), geometry=None, counters={}, samples_s=()
    )
    assert not nothing.figure(name).data
    assert nothing.figure(name).layout.annotations[0].text


def test_parts_of_the_figure_of_time_sum_to_the_time(execution):
    whole = sum(trace.x[0] for trace in execution.figure("time").data)
    assert whole == pytest.approx(1e6 * execution.predicted.time_s)


def test_points_of_the_roofline_are_at_or_below_their_roofs(execution):
    roofs, points = execution.figure("roofline").data[::2], execution.figure("roofline").data[1::2]
    assert len(points) == 3  # shared memory, L2, DRAM
    for roof, point in zip(roofs, points, strict=True):
        slope = roof.y[1] / roof.x[1]  # up to the ridge
        assert point.y[0] <= 1.001 * min(slope * point.x[0], roof.y[2])


def test_figures_of_a_profile_have_names(found):
    for name in named.FIGURES:
        assert found.figure(name, shape="128").layout.title.text
    chosen = [found.figure("ladder", variant=label) for label in (None, "tiled", "vectorized")]
    assert chosen[1] != chosen[2]
    assert chosen[0] in chosen[1:]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"name": "laddr"}, "unknown figure 'laddr': did you mean 'ladder'?"),
        (
            {"name": "ladder", "shape": 4096},
            "unknown shape '4096x4096x4096': choose one of 64x64x64",
        ),
        ({"name": "ladder", "variant": "tile"}, "unknown variant 'tile': did you mean 'tiled'?"),
    ],
)
def test_unknown_names_list_the_known_ones(execution, found, asked, said):
    with pytest.raises(UnknownNameError) as raised:
        found.figure(**asked)
    assert str(raised.value).startswith(said)
    with pytest.raises(UnknownNameError, match="did you mean 'roofline'"):
        execution.figure("roofs")


# Tables.


def test_tables_need_pandas(execution, found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for one in (execution, found):
        with pytest.raises(UnavailableError) as raised:
            one.to_dataframe()
        assert str(raised.value) == "to_dataframe needs pandas: pip install 'gemm-ladder[pandas]'"
        with pytest.raises(UnknownNameError, match="unknown table 'rows'"):
            one.to_dataframe("rows")


def test_tables_of_a_launch_and_a_profile(execution, found):
    pytest.importorskip("pandas")
    lines = execution.to_dataframe()
    assert lines["smsp__inst_executed.sum"].sum() == execution.counters["smsp__inst_executed.sum"]
    assert set(lines.line) == {line for _, line in execution.lines}
    causes = execution.to_dataframe("causes")
    assert list(causes.time_s) == [one.time_s for one in execution.causes]
    assert len(execution.to_dataframe("instructions")) == len(execution.instructions)
    counters = execution.to_dataframe("counters").set_index("tag")
    assert counters.value["smsp__inst_executed.sum"] == lines["smsp__inst_executed.sum"].sum()
    times = found.to_dataframe()
    assert list(times.predicted_s) == [record.predicted.time_s for record in found.records]
    assert set(found.to_dataframe("counters").variant) == {"tiled", "vectorized"}


# Pages.


def test_a_launch_is_saved_as_a_page(execution, tmp_path):
    execution.save(tmp_path / "launch.html")
    assert (tmp_path / "launch.html").read_text("utf-8") == execution.html()
    with pytest.raises(InputError, match=r"give a path that ends in \.html"):
        execution.save(tmp_path / "launch.json")


def test_a_profile_is_saved_as_record_and_page(found, tmp_path):
    found.save(tmp_path / "profile.json")
    found.save(tmp_path / "profile.html")
    assert load(tmp_path / "profile.json") == found
    assert (tmp_path / "profile.html").read_text("utf-8") == found.html()
    with pytest.raises(InputError, match=r"\.json \(record\) or \.html \(page\)"):
        found.save(tmp_path / "profile.txt")


def test_a_profile_with_methods_is_the_record(found, tmp_path):
    values = {name: getattr(found, name) for name in found.__dataclass_fields__}
    record = Record(**values)
    assert type(found) is not Record
    assert record == found
    assert found == record
    assert replace(found, seed=2) != record
    save(record, tmp_path / "one.json")
    save(found, tmp_path / "other.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()


@pytest.mark.parametrize("which", ["execution", "found"])
def test_a_cell_of_a_notebook_keeps_its_style_and_needs_no_script(which, request):
    html = str(request.getfixturevalue(which)._repr_html_())
    assert html.startswith("<iframe srcdoc=")
    assert html.endswith("</iframe>")
    assert html.count("<") == 2  # all else is the text of an attribute
    assert "&lt;script" not in html
    assert "href=&#34;#" not in html  # what it would lead to is not there
    assert re.search(r"bank conflicts|Largest parts of the time: ", html)


def test_a_profile_without_records_says_so(found):
    empty = replace(found, records=())
    assert empty.verdict == "This profile holds no record: no rung was profiled."
    assert "This profile holds no record" in empty._repr_html_()
    assert empty.causes == {}
    with pytest.raises(InputError, match="no record, so it has no figure"):
        empty.figure("ladder")


def test_docstrings_of_the_public_functions_have_an_example():
    import toolkit

    for name in set(toolkit.__all__) - {"__version__"}:
        doc = getattr(toolkit, name).__doc__
        assert "Parameters\n" in doc, name
        assert ">>> " in doc.split("Examples\n")[1], name
    assert run.__doc__.count("+SKIP") == 1  # it needs a GPU
