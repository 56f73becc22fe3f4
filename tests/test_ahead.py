"""Kernels of tests are compiled ahead: listed once, and disassembled in one run."""

import json
import lzma

import pytest

from kernels.ladder import LADDER
from tests import ahead
from toolkit.machine_code import compile as compiler
from toolkit.machine_code import disassemble as disassembly
from toolkit.machine_code.compile import compile_cubin
from validation import ROOT

OPTIONS = ["--gpu-architecture=sm_90", "-lineinfo"]


def source(name):
    return f"__global__ void {name}(float *x) {{ x[0] = 1; }}"


def entry(name, test="tests/test_a.py", **changes):
    return {
        "test": test,
        "source": source(name),
        "name": f"{name}.cu",
        "kernel": name,
        "options": OPTIONS,
    } | changes


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """The images on which nvdisasm is run, with an empty cache."""
    monkeypatch.setenv("GEMM_LADDER_CACHE", str(tmp_path / "cache"))
    real, images = disassembly._run, []
    monkeypatch.setattr(
        disassembly, "_run", lambda program, image: (images.append(image), real(program, image))[1]
    )
    return images


@pytest.fixture
def listed(monkeypatch, tmp_path):
    """Make some entries the list, and this process the only worker."""
    monkeypatch.setattr(ahead, "FILE", tmp_path / "list")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)

    def make(*entries):
        ahead.FILE.write_bytes(lzma.compress(json.dumps(entries).encode()))

    return make


def instructions(name):
    kernel = compile_cubin(source(name), name=f"{name}.cu", kernel=name, arch="sm_90")
    return kernel.instructions


def test_one_run_serves_the_tests_of_all_files(runs, listed):
    listed(entry("a"), entry("b", "tests/test_b.py"))
    ahead.compile_ahead(["tests/test_a.py", "tests/test_b.py"])
    assert instructions("a")
    assert instructions("b")
    assert len(runs) == 1


def test_files_of_which_few_tests_are_selected_are_left_out(runs, listed):
    listed(*(entry(name) for name in "abc"), entry("d", "tests/test_b.py"))
    ahead.compile_ahead(["tests/test_a.py"])  # a test of three kernels
    assert runs == []
    assert instructions("a")
    assert len(runs) == 1


def test_what_cannot_be_compiled_is_left_to_its_test(runs, listed):
    listed(entry("a"), entry("wrong", source="no C++"), entry("b"), entry("c", of="no such file"))
    ahead.compile_ahead(["tests/test_a.py"] * 4)
    assert instructions("a")
    assert instructions("b")
    assert len(runs) == 1


@pytest.fixture
def recorder(monkeypatch, tmp_path, runs):
    for module, name in ((compiler, "_compiled"), (disassembly, "_run_merged")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back at the end
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw3")
    made = ahead.Recorder(tmp_path / "recorded")
    made.test_file = "tests/test_a.py"
    return made


def test_kernels_that_are_disassembled_alone_are_recorded(recorder, tmp_path):
    images = [
        compile_cubin(source(name), name=f"{name}.cu", kernel=name, arch="sm_90").image
        for name in "ab"
    ]
    disassembly.disassemble_together(images)
    assert instructions("c")
    recorder.write()
    assert json.loads((tmp_path / "recorded" / "gw3.json").read_text()) == [entry("c")]


def test_the_list_names_sources_of_the_repository_and_leaves_out_duplicates(tmp_path):
    tiled = next(variant for variant in LADDER if variant.name == "tiled")
    rung = entry("r", source=tiled.source)
    large = entry("l", source="x" * (ahead.MOST_CHARACTERS + 1))
    local = entry("t", options=[*OPTIONS, "--include-path=/tmp/here"])
    for worker, entries in enumerate(([entry("a"), rung, large], [local, entry("a")])):
        (tmp_path / f"gw{worker}.json").write_text(json.dumps(entries))
    assert ahead._listed(tmp_path) == [
        entry("a"),
        {"of": "tiled"} | {key: value for key, value in rung.items() if key != "source"},
    ]


def test_what_is_added_stands_beside_what_was_listed(tmp_path, listed, monkeypatch, capsys):
    here, gone = "tests/test_ahead.py", "tests/test_gone.py"
    listed(entry("a", here), entry("b", here), entry("c", gone), entry("d", gone))
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    (recorded / "gw0.json").write_text(json.dumps([entry("a"), entry("c")]))
    monkeypatch.setattr("sys.argv", ["tests.ahead", str(recorded), "--add"])
    ahead.main()
    assert ahead._stored() == [entry("c"), entry("a", here), entry("b", here)]
    assert capsys.readouterr().out.startswith("3 kernels in ")


def test_every_listed_file_of_tests_exists():
    """After a file is renamed, its kernels would be compiled and disassembled one by one again."""
    assert {one["test"] for one in ahead._stored() if not (ROOT / one["test"]).exists()} == set()


def test_a_folder_without_recordings_leaves_the_list_as_it_is(tmp_path, listed, monkeypatch):
    listed(entry("a"))
    monkeypatch.setattr("sys.argv", ["tests.ahead", str(tmp_path / "absent")])
    with pytest.raises(SystemExit, match="holds no recording"):
        ahead.main()
    assert ahead._stored() == [entry("a")]


def test_nine_of_ten_files_that_the_list_names_exist():
    named = [one["of"] for one in ahead._stored() if "of" in one]
    assert len(named) > 50
    texts = ahead._texts()
    assert sum(name in texts for name in named) >= 0.9 * len(named)
