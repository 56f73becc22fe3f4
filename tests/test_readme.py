"""Statements of README.md are true; tests/docs executes its commands and snippets."""

import re
import shlex
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest

from analysis.comparison.accuracy import ACCURACIES
from analysis.problem import parse_shape
from toolkit.execution.simulate import simulate
from toolkit.store.recorded_runs import recorded_run
from validation import ROOT

README = ROOT.joinpath("README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.S | re.M)


TOOLKIT_CALLS = [
    words[words.index("toolkit") + 1 :]
    for block in blocks("bash")
    for line in block.splitlines()
    for part in line.split("&&")
    if "toolkit" in (words := shlex.split(part, comments=True))
]


def test_it_is_short_and_states_limits_and_held_out_errors_first():
    assert len(README.splitlines()) <= 110
    first = README.partition("## Two commands")[0]
    assert len(first.splitlines()) <= 30
    for limit in ("not sparse products and tcgen05", "Hopper only"):
        assert limit in first
    quoted = [line for line in first.splitlines() if re.search(r"\d%", line)]
    held_out = [line for line in quoted if "held out" in line]
    assert quoted == [*held_out, *(line for line in quoted if "fitted" in line)]


def test_its_errors_are_those_that_the_benchmark_computes():
    for one in ACCURACIES:
        how = "held out" if one.is_held_out else "fitted"
        error = f"{100 * one.mean_error:.1f}%"
        rows = [line for line in README.splitlines() if str(one.launches) in line and error in line]
        assert any(how in row for row in rows), one


def test_every_command_is_shown():
    from toolkit.cli.app import app

    in_text = {"doctor", "run"}  # what needs a GPU is not executed
    assert all(f"python -m toolkit {name}`" in README for name in in_text)
    shown = {words[0] for words in TOOLKIT_CALLS} | in_text
    assert shown == {
        command.name or command.callback.__name__ for command in app.registered_commands
    }


@pytest.mark.parametrize("words", TOOLKIT_CALLS, ids=" ".join)
def test_every_command_is_valid(words):
    """Its options and arguments; the exhaustive tests execute the command too."""
    from typer.main import get_group

    from toolkit.cli.app import app

    name, *arguments = words[: words.index(">")] if ">" in words else words
    get_group(app).commands[name].make_context(name, arguments)


def test_there_is_one_test_command():
    found = re.findall(r"<!-- test-command -->\n```bash\n(.+)\n```", README)
    assert len(found) == 1
    assert found[0].endswith("-m pytest")


def test_the_remedy_of_the_kernel_leaves_no_bank_conflict():
    (kernel,) = (text for text in blocks("cuda") if "turn" in text)
    (console,) = (text for text in blocks("console") if "my.cu" in text)
    edited = re.search(r"line 3: (\S+ \+ 1\]), pads each row", console)[1]
    found = []
    for source in (kernel, kernel.replace("tile[TILE][TILE];", f"{edited};")):
        given = np.random.default_rng().random((1024, 1024), dtype=np.float32)
        arguments = [np.zeros_like(given), given, np.int32(1024)]
        execution = simulate(source, "turn", grid=(32, 32), block=(32, 8), arguments=arguments)
        assert np.array_equal(execution.outputs[0], given.T)
        shared = [one for one in execution.instructions if one.space == "shared"]
        found.append(sum(one.wavefronts - one.conflict_free for one in shared))
    before, after = found
    assert (before > 0, after) == (True, 0)


@cache  # a quarter of a second each
def shipped(device):
    run = recorded_run(device)
    assert run is not None
    return run


def recorded_rows():
    square = parse_shape("4096")
    return {r.label: r for r in shipped("h200").records if r.shape == square}


def test_tables_are_those_of_the_recorded_run():
    spec = spec_from_file_location("tables", ROOT / "benchmarks" / "recorded_tables.py")
    tables = module_from_spec(spec)
    spec.loader.exec_module(tables)
    run, other = shipped("h200"), shipped("h100-sxm")
    validation = ROOT.joinpath("docs/validation.md").read_text("utf-8")
    assert tables.rungs_table(run) in ROOT.joinpath("docs/against_cublas.md").read_text("utf-8")
    assert tables.roofs_table(run) in validation
    assert tables.predictions_table((other, run)) in validation
    for one in (run, other):
        errors = tables.prediction_errors(one)
        mean_error = f"{100 * sum(errors) / len(errors):.1f}%"
        assert f"{len(errors)} launches of 15 µs and more on the {one.device.name.split()[1]}" in (
            validation
        )
        assert mean_error in README
        assert mean_error in validation


def test_recorded_runs_are_readable_and_right():
    folder = ROOT / "toolkit" / "recorded"
    paths = sorted(set(folder.glob("*.json.xz")) - set(folder.glob("*.model.json.xz")))
    assert paths
    for path in paths:
        run = shipped(path.name.removesuffix(".json.xz"))
        assert run.executor == "gpu"
        assert run.status == "complete"
        assert path.name == f"{run.device.key}.json.xz"
        assert run.environment.commit
        assert all(record.status in ("ok", "skipped") for record in run.records)
        for record in run.records:
            assert record.measured is None or (record.check is not None and record.check.passed)
            if record.measured and record.theory:  # a roof that is passed is no roof
                assert record.measured.flop_per_s < record.theory.attainable_flop_per_s


@pytest.mark.parametrize(
    ("label", "least_tflop_per_s"),
    [
        ("naive-uncoalesced", 0.45),
        ("naive-coalesced", 6.0),
        ("tiled", 8.5),
        ("coarsened-1d", 17),
        ("coarsened-2d", 24),
        ("vectorized", 33),
    ],
)
def test_recorded_rungs_reach_what_was_asked_of_them(label, least_tflop_per_s):
    measured = recorded_rows()[label].measured
    assert measured.flop_per_s >= 1e12 * least_tflop_per_s


def test_the_picture_of_the_kernel_shows_the_times_of_its_output():
    time, cost, new = re.search(
        r"!\[.*: (\S+) µs, of which bank conflicts cost (\S+);.* the kernel takes (\S+) µs\]",
        README,
    ).groups()
    answer = next(block for block in blocks("console") if "simulate my.cu" in block)
    assert f"bank conflicts take the most time: {cost} of {time} µs." in answer
    assert re.search(rf"^ 1 .* {re.escape(new)}$", answer, re.MULTILINE)


def test_the_number_of_devices_is_right():
    from analysis.devices import DEVICES

    assert f"for [{len(DEVICES)} devices]" in README
    assert f"{len(DEVICES)} devices" in ROOT.joinpath("CHANGELOG.md").read_text("utf-8")
