"""The workflows that docs/ci.md shows: their steps are executed, or stand on what is there."""

import re
import shlex
from pathlib import Path

import pytest

from docs.snippets.pages import ROOT, blocks
from docs.snippets.session import Session

yaml = pytest.importorskip("yaml")

FOLDER = ROOT / "docs" / "workflows"
CPU, GPU = "cpu-traffic.yml", "gpu-runner.yml"
EXECUTED = ("no races, nothing out of bounds", "simulate", "compare")
BY_COLUMNS = "sed -i 's/row [*] columns + column/column * rows + row/' scale_rows.cu"


def steps(name):
    document = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    (job,) = document["jobs"].values()
    return [step for step in job["steps"] if "run" in step]


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """A repository with the files of the page, and the record that its author committed."""
    with Session(tmp_path_factory.mktemp("repository")) as session:
        lay_out(session)
        session.script(
            "bash traffic/launch.sh simulate --device h200 --json > traffic/scale_rows.json", "here"
        )
        yield session


@pytest.fixture
def repository(committed):
    """The same, without what another test changed."""
    lay_out(committed)
    return committed


def lay_out(session):
    for block in blocks(ROOT / "docs" / "ci.md"):
        session.lay_out(block)


def statuses(repository, *names):
    """The exit statuses of steps of the CPU workflow, by name."""
    runs = {step["name"]: step["run"] for step in steps(CPU)}
    return [status for _, status in repository.commands([runs[name] for name in names], CPU)]


@pytest.mark.exhaustive  # the next test takes the same steps
def test_cpu_workflow_passes_what_did_not_change(repository):
    assert statuses(repository, *EXECUTED) == [0, 0, 0]
    assert [step["name"] for step in steps(CPU)] == ["install", *EXECUTED]  # which is done here


@pytest.mark.exhaustive  # the next test takes the same commands in this process
def test_cpu_workflow_stops_traffic_that_grew(repository):
    repository.script(BY_COLUMNS, "here")
    assert statuses(repository, *EXECUTED[1:]) == [0, 3]


def in_this_process(command, launch):
    """Exit status of a command of the workflow, whose output is redirected to a file."""
    from tests.toolkit.cli.commands import invoke

    words, _, output = command.partition(" > ")
    _, *words = shlex.split(words)
    if words[0] == "traffic/launch.sh":
        _, *named = shlex.split(launch.replace("\\\n", " "))
        behind = {"$1": words[1:2], "${@:2}": words[2:]}
        words = [word for one in named[1:] for word in behind.get(one, [one])]
    assert words[:2] == ["-m", "toolkit"]
    found = invoke("", *words[2:])
    if output:
        Path(output).write_text(found.stdout, encoding="utf-8")
    return found.exit_code


def test_traffic_that_grew_has_a_status_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {block.file: block.text for block in blocks(ROOT / "docs" / "ci.md") if block.file}
    for name, text in given.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    (launch,) = [text for name, text in given.items() if name.endswith("launch.sh")]
    runs = {step["name"]: step["run"] for step in steps(CPU)}
    simulated, compared = (runs[name] for name in EXECUTED[1:])
    assert in_this_process(simulated, launch) == 0
    Path("now.json").rename("traffic/scale_rows.json")
    source, by_rows = Path("scale_rows.cu"), "row * columns + column"
    text = source.read_text(encoding="utf-8")
    assert by_rows in text
    source.write_text(text.replace(by_rows, "column * rows + row"), encoding="utf-8")
    assert in_this_process(simulated, launch) == 0
    assert in_this_process(compared, launch) == 3


@pytest.mark.exhaustive  # as `check` alone
def test_cpu_workflow_stops_an_access_out_of_bounds(repository):
    repository.script("sed -i 's/column < columns && row < rows/true/' scale_rows.cu", "here")
    assert statuses(repository, EXECUTED[0]) == [1]


def test_cpu_workflow_installs_the_toolkit_and_nothing_for_a_gpu():
    (install,) = [step["run"] for step in steps(CPU) if step["name"] == "install"]
    assert install == "pip install ./gemm-ladder"


def commands(name):
    for step in steps(name):
        for line in step["run"].replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if "-m" in words:
                yield words[words.index("-m") + 1 :]


def test_gpu_workflow_calls_what_is_there():
    from tests.toolkit.cli.commands import invoke

    called = list(commands(GPU))
    assert ["pytest", "-m", "gpu"] in called
    ours = [words[1:] for words in called if words[0] == "toolkit"]
    assert [words[0] for words in ours] == ["doctor", "profile", "compare"]
    for words in ours:
        asked = invoke("", *words, "--help")
        assert asked.exit_code == 0, asked.output


def test_gpu_workflow_installs_extras_that_exist():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    (named,) = re.findall(r"-e '\.\[(.*?)\]'", (FOLDER / GPU).read_text(encoding="utf-8"))
    assert set(named.split(",")) <= extras.keys()


@pytest.mark.parametrize("name", [CPU, GPU])
def test_page_shows_every_workflow(name):
    assert f"{{literalinclude}} workflows/{name}" in (ROOT / "docs/ci.md").read_text("utf-8")
    assert {path.name for path in FOLDER.glob("*.yml")} == {CPU, GPU}
