"""The commands as a user meets them: exit codes, one line per mistake, whole files or none."""

import errno
import json
import lzma
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import toolkit
from analysis.comparison.accuracy import DEFAULT_DEVICE
from analysis.devices import DEVICES
from kernels.selection import BY_NAME
from tests.reports.tuned_by_hand import TUNING
from tests.sampling import exhaustive
from tests.toolkit.cli.commands import interrupted, invoke, refused, run, started, write
from toolkit import load, profile, save
from toolkit.cli import app as cli
from toolkit.cli import terminal as console
from toolkit.cli.options import complete_device, complete_variant
from toolkit.gpu.sampling import Sampling
from validation import ROOT

TOOLKIT = ("-m", "toolkit")
THEORY = "--executor theory --shape 32 --variant tiled"
COMMANDS = ["profile", "simulate", "run", "check", "tune", "report", "compare", "list", "doctor"]


@pytest.fixture
def saved(folder):
    path = folder / "saved.json"
    save(profile([32], ["tiled"], executor="theory", seed=1), path)
    return path


# --- profile --------------------------------------------------------------------------------


def test_profile_writes_both_files_and_prints_the_ladder(folder):
    result = invoke(f"profile {THEORY} --seed 5")
    assert result.exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["profile.html", "profile.json"]
    stored = load("profile.json")
    assert (stored.seed, stored.device.key) == (5, DEFAULT_DEVICE.key)
    made = profile([32], ["tiled"], executor="theory", seed=5)
    assert stored == replace(made, created=stored.created)
    assert "</html>" in Path("profile.html").read_text(encoding="utf-8")
    assert "tiled" in result.stdout
    assert result.stderr == "wrote profile.html\nwrote profile.json\n"


def test_the_version_is_printed():
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"gemm-ladder {toolkit.__version__}\n")


def test_profile_without_a_gpu_says_so_and_goes_on():
    result = invoke("profile --shape 32 --variant tiled")
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "note: simulated, no GPU is used: this machine has no NVIDIA driver"
    )


def test_every_option_reaches_the_run(monkeypatch):
    asked = {}
    made = profile([32], ["tiled"], executor="theory")

    def remembered(*arguments, **settings):
        asked.update(settings, arguments=arguments)
        return made

    monkeypatch.setattr("toolkit.profiling.profile.profile", remembered)
    options = (
        "-s 64 --shape 1x2x3 -v tiled -v cpu -d t4 --executor theory --seconds 0.5 --samples 7 "
        "--precision 0.2 --l2 warm --seed 9 --html a.html --record b.json --counters "
        "--constants c.json --clock 1500 --accuracy"
    )
    assert invoke(f"profile {options}").exit_code == 0
    asked.pop("progress")
    assert asked.pop("journal") == Path("b.json.journal")
    assert asked == {
        "resume": None,
        "arguments": (["64", "1x2x3"], ["tiled", "cpu"]),
        "device": "t4",
        "constants": Path("c.json"),
        "clock": 1500.0,
        "executor": "theory",
        "sampling": Sampling(precision=0.2, time_limit_s=0.5, max_samples=7),
        "l2": "warm",
        "seed": 9,
        "counters": True,
        "accuracy": True,
    }
    assert load("b.json") == made
    assert Path("a.html").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--shape 0", "shape 0x0x0: M = 0 is out of range: give 1 to "),
        ("--shape=-1", "shape '-1' is not understood: give one size"),
        ("--shape 4096x", "shape '4096x' is not understood: give one size"),
        ("--shape １２", "shape '１２' is not understood"),
        ("--shape 1x99999999999x1", "shape 1x99999999999x1: N = 99999999999 is out of range"),
        (f"--shape {'9' * 5000}", "shape '999"),
        ("--shape 200000", "shape 200000x200000x200000: A, B and C take 480.0 GB, "),
        ("--device rtx-309", "unknown device 'rtx-309': did you mean 'rtx-3090'?"),
        ("--variant tield", "unknown variant 'tield': did you mean 'tiled'?"),
        ("--variant tiled:tyle=8", "unknown parameter of tiled 'tyle': did you mean 'tile'?"),
        ("--variant tiled:tile=7", "tiled: tile = 7 is not legal: choose one of 8, 16, 32"),
        ("--variant [red] -s 8", "unknown variant '[red]': choose one of "),
        ("--variant [/] -s 8", "unknown variant '[/]': choose one of "),
        ("--shape [/red]", "shape '[/red]' is not understood"),
        ("--variant one-block --shape 33", "one-block cannot take 33x33x33: C has at most"),
        ("--seed -1", "seed -1 is out of range: give 0 to "),
        ("--html .", "cannot write .: it is a folder"),
        ("--record .", "cannot write .: it is a folder"),
        ("--html absent/x.html", "cannot write absent/x.html: there is no folder "),
        ("--html same --record same", "cannot write the report to same: the record has that"),
        ("--html a/../same --record ./same", "cannot write "),
        ("--html page.txt", "page.txt: a page is HTML: give a path that ends in .html"),
        ("--executor gpu", "this machine has no NVIDIA driver (if it has"),
        (
            "--executor auto --counters",
            "--counters needs a GPU, and this run is simulated, no GPU is used: this machine has "
            "no NVIDIA driver (if it has an NVIDIA GPU, install the driver): leave it out, "
            "simulated counters are there without it",
        ),
        ("--counters", "--counters needs a GPU, and executor theory takes none: leave it out"),
        ("--html loop", "cannot write loop: the link leads to itself: give another place"),
        ("--record loop", "cannot write loop: the link leads to itself: give another place"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(options, message):
    Path("loop").symlink_to("loop")
    executor = "" if "--executor" in options else "--executor theory"
    assert refused(f"profile {options} {executor}").startswith(message)


def test_outputs_are_checked_before_any_work(monkeypatch):
    monkeypatch.setattr("toolkit.profiling.profile.profile", None)
    for option in ("--html", "--record"):
        assert refused(f"profile {option} absent/x").startswith("cannot write absent/x: ")


@pytest.mark.parametrize(
    "options",
    [
        "--seconds nan", "--seconds -1", "--seconds 0", "--precision nan", "--precision 2",
        "--precision 0", "--samples 0", "--samples 1.5", "--samples x", "--seed x",
        "--executor nothing", "--nothing", "something",
    ],
)  # fmt: skip
def test_wrong_usage_is_said_with_code_2(options):
    said = refused(f"profile {THEORY} {options}", code=2)
    option, _, value = options.partition(" ")
    assert said.startswith(f"{option} {value!r}: give " if value else ("no such", "got"))


def test_an_endless_time_limit_is_refused():
    result = invoke(f"profile {THEORY} --seconds inf")
    assert result.exit_code in (1, 2)
    assert not Path("profile.json").exists()


def test_files_that_were_there_stay_when_it_fails(folder):
    for name in ("profile.html", "profile.json"):
        write(name, "precious")
    refused("profile --shape 0")  # compares them


def test_a_failed_kernel_is_code_1_with_both_files(monkeypatch):
    whole = profile([32], ["tiled", "naive-coalesced"], executor="theory")
    first, *others = whole.records
    broken = replace(first, status="failed", reason="04_tiled.cu, line 3: [/] does not compile")
    broken_profile = replace(whole, records=(broken, *others))
    monkeypatch.setattr("toolkit.profiling.profile.profile", lambda *a, **k: broken_profile)
    result = invoke("profile --shape 32")
    assert result.exit_code == 1
    assert "tiled failed: 04_tiled.cu, line 3: [/] does not compile" in result.stdout
    assert result.stderr.splitlines() == [
        "wrote profile.html",
        "wrote profile.json",
        "error: 1 failed: tiled; the reasons are above and in the report",
    ]
    assert load("profile.json") == broken_profile


def test_ctrl_c_before_anything_is_one_line(monkeypatch):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("toolkit.profiling.profile.profile", interrupted)
    assert refused(f"profile {THEORY}") == "interrupted: nothing was written"


def test_ctrl_c_with_nothing_measured_replaces_nothing(monkeypatch):
    for name in ("profile.html", "profile.json"):
        write(name, "precious")
    cut = replace(profile([32], ["tiled"], executor="theory"), status="interrupted")
    monkeypatch.setattr("toolkit.profiling.profile.profile", lambda *a, **k: cut)
    said = refused(f"profile {THEORY}")  # compares the files
    assert said == "interrupted before anything was measured; nothing was written"


def test_a_page_of_another_profile_is_not_replaced_without_a_word():
    first = invoke(f"profile {THEORY} --seed 1")
    again = invoke(f"profile {THEORY} --seed 2")
    assert first.stderr == again.stderr == "wrote profile.html\nwrote profile.json\n"
    other = invoke("profile --executor theory --shape 64 --variant tiled")
    note = other.stderr.splitlines()[0]
    assert note.startswith(
        "note: profile.html held another profile and is replaced; to repeat that one: "
    )
    assert note.endswith("--seed 2")
    Path("profile.json").unlink()
    alone = invoke(f"profile {THEORY}")
    assert alone.stderr.startswith("note: profile.html existed and is replaced\n")


@pytest.mark.parametrize("broken", ["reports.render", "toolkit.store.profile_json.dumps"])
def test_ctrl_c_while_the_texts_are_made_replaces_neither_file(monkeypatch, broken):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    for name in ("profile.html", "profile.json"):
        write(name, "precious")
    monkeypatch.setattr(broken, interrupted)
    said = refused(f"profile {THEORY}")  # compares the files
    assert said == "interrupted: only the files listed as written are new"


def test_ctrl_c_between_the_files_tells_which_are_new(monkeypatch):
    from toolkit.store.user_files import write_atomically

    def once(path, content):
        if path.suffix == ".json":
            raise KeyboardInterrupt
        write_atomically(path, content)

    monkeypatch.setattr("toolkit.store.user_files.write_atomically", once)
    result = invoke(f"profile {THEORY}")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "wrote profile.html",
        "error: interrupted while writing: each file is complete, either the old or the new one",
    ]


@pytest.mark.parametrize("place", ["toolkit.cli.app.app", "toolkit.profiling.doctor.examine"])
def test_ctrl_c_anywhere_else_is_one_line(monkeypatch, place):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupted)
    monkeypatch.setattr(sys, "argv", ["gemm-ladder", "doctor"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == "error: interrupted"  # printed, and exit code 1


def test_ctrl_c_while_the_commands_are_imported_is_one_line(folder):
    (folder / "typer.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    path = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    assert run(*TOOLKIT, "doctor", environment=path) == (1, "", "error: interrupted\n")


# The command line, which gets Ctrl-C when a module is asked for.
INTERRUPTED_AT = """
import os, runpy, signal, sys
class Finder:
    here = sys.argv.pop(1)
    def find_spec(self, name, *rest):
        if name == self.here:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
runpy.run_module("toolkit", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    "module",
    [
        exhaustive("typer"),
        exhaustive("toolkit.cli.app"),
        "numpy",
        exhaustive("toolkit.cli.parsed_call"),
        exhaustive("toolkit.machine_code.disassemble"),
        exhaustive("analysis.timing.predict"),
        exhaustive("reports.sections.launch"),
    ],
)
def test_ctrl_c_while_a_module_is_imported_is_status_1_and_one_line(module):
    write("k.cu", "__global__ void k(float *x) { x[0] = 1; }")
    words = "simulate k.cu -g 1 -b 32 -a f32[32] -d h200"
    status, _, stderr = run("-c", INTERRUPTED_AT, module, *words.split())
    assert status == 1, stderr
    assert stderr.startswith("error: interrupted")
    assert stderr.count("\n") == 1


# The same within code that `exec` runs, and where Python can raise nothing.
STRUCK = """
import os, runpy, signal, sys
from toolkit.profiling import doctor
strike = "os.kill(os.getpid(), signal.SIGINT); [0 for _ in range(10**5)]"
class Lost:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        [0 for _ in range(10**5)]
def examine(*given, **named):
    exec(strike) if how == "exec" else Lost()
    return [0 for _ in range(10**7)]
how = sys.argv.pop(1)
doctor.examine = examine
runpy.run_module("toolkit", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("how", ["exec", exhaustive("del")])
def test_ctrl_c_is_status_1_wherever_it_comes(how):
    status, stdout, stderr = run("-c", STRUCK, how, "doctor")
    assert (status, stdout) == (1, "")
    assert stderr.startswith("error: interrupted")
    assert stderr.count("\n") == 1


# A lock that nobody gives back, as an interrupt within a library may leave one behind.
STUCK = """
import os, runpy, signal, sys, threading
from toolkit.profiling import doctor
timer = signal.setitimer
signal.setitimer = lambda which, seconds: timer(which, seconds / 100)
def examine(*given, **named):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        return [0 for _ in range(10**7)]
    finally:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
doctor.examine = examine
runpy.run_module("toolkit", run_name="__main__", alter_sys=True)
"""


def test_a_command_that_ctrl_c_does_not_end_is_stopped():
    status, stdout, stderr = run("-c", STUCK, "doctor")
    assert (status, stdout) == (1, "")
    assert stderr == "error: interrupted, and stopped after 20 s: files may be missing\n"


# A process that says when the CPU's third sample begins: Ctrl-C shall come after it.
TELLS_WHEN_IT_TIMES = """
from itertools import count
from pathlib import Path
from toolkit.cli import app as cli
from toolkit.profiling import on_cpu as host
calls, seconds = count(), host._seconds
def told(workload):
    if next(calls) == 2:
        Path("timing").touch()
    return seconds(workload)
host._seconds = told
cli.main()
"""


@pytest.mark.exhaustive  # in this process: test_tune.py, test_collect.py
def test_ctrl_c_keeps_what_was_measured(folder):
    options = "--executor theory --variant tiled --variant cpu --shape 256 --seconds 60"
    limits = "--samples 100000000 --precision 0.000001 --record kept.json --html kept.html"
    words = ["-c", TELLS_WHEN_IT_TIMES, "profile", *options.split(), *limits.split()]
    status, stdout, stderr = interrupted(*words, when=Path("timing").exists)
    assert status == 1
    assert "Traceback" not in stdout + stderr
    *wrote, error = stderr.splitlines()
    assert wrote == ["wrote kept.html", "wrote kept.json"]
    assert error.startswith("error: interrupted: results kept: 1; repeat with: python -m ")
    stored = load("kept.json")
    assert stored.status == "interrupted"
    cpu = stored.records[1].measured
    assert cpu.stopped_by == "interrupt"
    assert len(cpu.samples_s) >= 2
    assert sorted(path.name for path in folder.iterdir()) == ["kept.html", "kept.json", "timing"]


# --- report ---------------------------------------------------------------------------------


LAUNCH = "-g 1 -b 32 -a f32[32] --seed 1 --json"


def saved_launch(more="-d h200"):
    text = "__global__ void twice(float *x) {\n    x[threadIdx.x] *= 2;\n}\n"
    Path("twice.cu").write_text(text, encoding="utf-8")
    result = invoke(f"simulate twice.cu {LAUNCH} {more}")
    assert result.exit_code == 0, result.output
    Path("launch.json").write_text(result.stdout, encoding="utf-8")
    return json.loads(result.stdout)


def test_report_renders_a_saved_launch(folder):
    document = saved_launch()
    result = invoke("report launch.json")
    assert result.exit_code == 0, result.output
    assert result.stderr == "wrote launch.html\n"
    assert result.stdout.startswith("twice: ")
    page = Path("launch.html").read_text(encoding="utf-8")
    assert "x[threadIdx.x] *= 2;" in page
    assert f"{len(document['instructions'])} SASS instructions" in page
    assert json.loads(invoke("report launch.json --json").stdout) == document
    assert refused("report launch.json --recorded launch.json").startswith("--recorded is for prof")
    assert refused("report launch.json --verbose").startswith("--verbose is for profiles, and laun")


def test_the_page_of_a_compressed_launch_has_its_plain_name(folder):
    saved_launch("--no-remedies")
    Path("b.json.xz").write_bytes(lzma.compress(Path("launch.json").read_bytes()))
    assert invoke("report b.json.xz").stderr == "wrote b.html\n"


def test_report_says_what_the_command_said(folder):
    more = "twice.cu -g 4096 -b 32 -a f32[32] --seed 1 -d rtx-3090 --no-remedies --limit 0"
    branch = "if (blockIdx.x % 100 == 17) for (int i = 0; i < 2000; i++) s = s * 1.0001f + 1;"
    write(
        "twice.cu",
        f"""__global__ void twice(float *x) {{
    float s = x[threadIdx.x];
    {branch}
    x[threadIdx.x] = s;
}}""",
    )
    write("launch.json", invoke(f"simulate {more} --json").stdout)
    first = invoke(f"simulate {more}").stdout
    said = invoke("report launch.json").stdout
    assert first.startswith(said)
    for doubt in ("Counters are estimates from ", "Most constants are those of sm_90, not of"):
        assert doubt in said
    page = Path("launch.html").read_text(encoding="utf-8")
    assert "counters are estimates from" in page


def test_report_renders_several_launches_on_one_page(folder):
    saved_launch()
    saved_launch("-d h200 --no-remedies")
    Path("second.json").write_bytes(Path("launch.json").read_bytes())
    result = invoke("report launch.json second.json")
    assert (result.exit_code, result.stderr) == (0, "wrote launches.html\n")
    first, second = result.stdout.splitlines()
    assert first.startswith("launch.json: twice: ")
    assert second.startswith("second.json: twice: ")
    page = Path("launches.html").read_text(encoding="utf-8")
    assert "<h1>2 launches</h1>" in page
    assert re.findall(r'data-l="launch" data-e="([^"]*)"', page) == ["launch", "second"]
    Path("folder").mkdir()
    Path("folder/launch.json").write_bytes(Path("launch.json").read_bytes())
    assert invoke("report launch.json folder/launch.json").exit_code == 0
    page = Path("launches.html").read_text(encoding="utf-8")
    names = ["launch.json", str(Path("folder/launch.json"))]
    assert re.findall(r'data-l="launch" data-e="([^"]*)"', page) == names
    assert len(json.loads(invoke("report launch.json second.json --json").stdout)) == 2
    write("other.json", "{}")
    assert refused("report launch.json other.json") == (
        "other.json is not the record of a launch: give one profile, or launches"
    )
    assert refused("report launch.json none.json") == (
        "none.json: No such file or directory: this folder has launch.json, other.json, second.json"
    )


def test_report_renders_a_launch_of_an_earlier_version(folder):
    document = saved_launch()
    for new in ("estimates", "unseen_share", "samples_s", "remedies", "prediction_basis"):
        del document[new]
    Path("old.json").write_text(json.dumps(document | {"schema_version": 3}), encoding="utf-8")
    assert invoke("report old.json --html old.html").exit_code == 0


def test_a_launch_is_told_from_a_profile(folder):
    saved_launch("--no-remedies")
    assert refused("profile --resume --record launch.json") == (
        "launch.json: it is the record of a launch, not of a profile: `python -m toolkit report` "
        "writes its page, and `compare` takes two of them"
    )


def test_report_renders_a_saved_profile(saved):
    result = invoke("report saved.json --html new.html")
    assert result.exit_code == 0
    assert "tiled" in result.stdout
    assert result.stderr == "wrote new.html\n"
    assert Path("new.html").is_file()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "given.json: No such file or directory: this folder has no .json file"),
        ("", "given.json: it is not JSON: line 1"),
        ('{"name": "package"}', "given.json: it is not a profile of this toolkit"),
        ('{"schema_version": 99}', "given.json: it was written by a newer version (schema 99"),
        ('{"schema_version": 6}', "given.json: created: it is missing"),
        ("\0\x01", "given.json: it is not JSON"),
    ],
)
def test_a_file_that_is_no_profile_is_one_line(content, message):
    if content is not None:
        write("given.json", content)
    assert refused("report given.json").startswith(message)


@pytest.mark.parametrize(
    "impossible",
    [
        {"intensity_loads": 0.0},
        {"attainable_flop_per_s": -1.0},
        exhaustive({"intensity_loads": -1.0}),
        exhaustive({"intensity_compulsory": 0.0}),
        exhaustive({"attainable_flop_per_s": 0.0}),
    ],
)
def test_impossible_numbers_are_one_line_or_drawn(saved, impossible):
    document = json.loads(saved.read_text(encoding="utf-8"))
    document["records"][0]["theory"] |= impossible
    saved.write_text(json.dumps(document), encoding="utf-8")
    result = invoke("report saved.json")
    assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("broken", ["reports.render", "toolkit.cli.profile_tables.print_profile"])
@pytest.mark.parametrize(
    "error", [ZeroDivisionError("division\nmore"), *map(exhaustive, (TypeError(), ValueError()))]
)
def test_numbers_that_cannot_be_drawn_are_blamed_on_the_file(saved, monkeypatch, broken, error):
    def fail(*arguments, **settings):
        raise error

    monkeypatch.setattr(broken, fail)
    why = "division" if isinstance(error, ZeroDivisionError) else type(error).__name__
    assert refused("report saved.json") == (
        f"saved.json: its numbers cannot be drawn ({why}): it was edited or damaged; profile again"
    )


def test_report_never_overwrites_what_it_reads(saved):
    for options in ("saved.json", "other.json --recorded saved.json"):
        said = refused(f"report {options} --html ./saved.json")
        assert said.startswith("cannot write the report to saved.json: the record has that name")


def test_a_recorded_run_of_another_device_is_refused(saved):
    save(profile([32], ["tiled"], executor="theory", device="t4"), "t4.json")
    assert refused("report saved.json --recorded t4.json") == (
        f"the recorded run is of NVIDIA T4, the profile of {DEFAULT_DEVICE.name}: "
        "give a run of the same GPU model"
    )


@pytest.mark.parametrize(
    "name", ["[bold]x", "größe \\", *map(exhaustive, ("[red]", ":warning:", "a b"))]
)
def test_names_are_printed_as_they_are(saved, name):
    result = invoke("report saved.json --html", f"{name}.html")
    assert result.stderr == f"wrote {name}.html\n"
    assert (
        refused("report", f"{name}.json")
        == f"{name}.json: No such file or directory: this folder has saved.json"
    )


def test_markup_in_a_profile_is_printed_as_it_is(saved):
    stored = load(saved)
    (record,) = stored.records
    odd = replace(
        record,
        label="[/]",
        status="skipped",
        reason="[bold] :warning: [/]",
        theory=replace(record.theory, limiter="[/red]"),
    )
    device = replace(stored.device, name="[red]GPU[/]")
    right = replace(odd, label="[/ok]", status="ok")
    save(replace(stored, records=(odd, right), device=device), saved)
    console.out.width, before = 200, console.out.width
    try:
        result = invoke("report saved.json")
    finally:
        console.out.width = before
    assert result.exit_code == 0
    for literal in ("Not run: [/] ([bold] :warning: [/]).", "[/red]", "[/ok]"):
        assert literal in result.stdout
    assert re.search(r"^SGEMM 32 × 32 × 32, \[red\]GPU\[/\]", result.stdout, re.MULTILINE)


def test_a_profile_of_nothing_is_rendered(saved):
    save(replace(load(saved), records=()), saved)
    result = invoke("report saved.json")
    assert result.exit_code == 0
    assert "holds no record" in result.stdout


# --- list, doctor, completion ---------------------------------------------------------------


def test_list_names_every_variant_and_device():
    printed = invoke("list").stdout
    assert all(name in printed for name in (*BY_NAME, *DEVICES))
    assert "rtx-3090" not in invoke("list variants").stdout
    assert "coarsened" not in invoke("list devices").stdout
    assert refused("list nothing", code=2) == "kind 'nothing': give variants or devices"


def test_listed_names_can_be_used():
    listing = json.loads(invoke("list --json").stdout)
    assert [variant["name"] for variant in listing["variants"]] == list(BY_NAME)
    assert [device["key"] for device in listing["devices"]] == list(DEVICES)
    assert listing["variants"][3]["parameters"]["tile"]["legal"] == [8, 16, 32]
    assert list(json.loads(invoke("list devices --json").stdout)) == ["devices"]


def test_doctor_says_what_works_here():
    assert "Profile with no GPU" in invoke("doctor").stdout


@pytest.mark.parametrize(
    "arguments",
    ["profile --shape 32 --variant tiled", "report saved.json", "list", "doctor"],
)
def test_json_is_all_there_is_on_standard_output(saved, arguments):
    result = invoke(f"{arguments} --json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)
    if "profile " in arguments:
        assert result.stdout == Path("profile.json").read_text(encoding="utf-8")
        assert result.stderr.startswith("note: ")


def test_names_complete():
    assert complete_device("rtx-") == [key for key in DEVICES if key.startswith("rtx-")]
    assert complete_variant("c") == [
        "coarsened-1d", "coarsened-2d", "conflict-free", "cpu", "cublas",
    ]  # fmt: skip
    assert complete_variant("x") == []


def test_completion_is_offered_to_the_script_only(folder):
    script = folder / "gemm-ladder"
    script.write_text("from toolkit.cli.app import main\nmain()\n", encoding="utf-8")
    assert "--install-completion" in run(str(script), "--help")[1]
    assert "completion" not in invoke("--help").stdout


# --- help and output ------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_that_is_valid(name, saved, monkeypatch):
    result = invoke(f"{name} --help")
    assert result.exit_code == 0
    (example,) = re.findall(r"Example: python -m toolkit (.+?)\s*$", result.stdout, re.MULTILINE)
    assert example.split()[0] == name
    if name != "profile":  # a minute on two cores
        saved.rename("profile.json")
        kernel = "__global__ void mine(float *x) { x[blockIdx.x * 256 + threadIdx.x] += 1; }"
        write("my.cu", kernel)
        for copy in ("before.json", "after.json"):
            Path(copy).write_bytes(Path("profile.json").read_bytes())
        monkeypatch.setattr("toolkit.tuning.tune.tune", lambda *_, **__: TUNING)  # minutes
        done = invoke(example)
        assert done.exit_code == (name == "run"), done.output  # which needs a GPU
        assert name != "run" or done.stderr.startswith("error: no GPU to measure on")


def test_help_shows_the_defaults():
    shown = " ".join(invoke("profile --help").stdout.split())
    for default in ("4096", "the whole ladder", "the GPU of this machine, else h200", "random"):
        assert f"[default: {default}]" in shown
    assert "[default: profile.html]" in shown
    assert "[default: both]" in invoke("list --help").stdout


def test_help_has_its_options_in_groups_and_fits_80_columns():
    for name in COMMANDS:
        shown = invoke(f"{name} --help").stdout.splitlines()
        assert max(map(len, shown)) <= 80
        assert not any(mark in line for line in shown for mark in ("[]", "x>=", "default: ("))
    shown = invoke("simulate --help").stdout
    groups = ["Arguments", "Launch", "Compiler", "Execution on the CPU", "Prediction", "Results"]
    assert re.findall(r"^(\w.*):$", shown, re.MULTILINE) == [*groups, "Remedies", "Options"]
    assert "  f32[64,64]       buffer of random numbers with two axes" in shown
    assert len(shown.splitlines()) <= 110
    assert "Launch:" not in invoke("profile --help").stdout  # whose options are one list


def test_no_command_is_wrong_usage_with_the_list_of_commands():
    result = invoke("")
    assert result.exit_code == 2
    assert all(name in result.output for name in COMMANDS)


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from toolkit.cli.app import app\n"
        f"for name in {['', *COMMANDS]!r}:\n"
        "    try: app([*name.split(), '--help'])\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    modules = set(run("-c", code)[2].split())
    assert "typer" in modules
    assert not modules & {
        "numpy",
        "scipy",
        "plotly",
        "jinja2",
        "pycuda",
        "toolkit.store.profile_json",
    }
    own = {x for x in modules if x.split(".")[0] in {"analysis", "kernels", "reports"}}
    # the default device and what it is called in the help, and nothing else
    assert own == {
        "analysis",
        "analysis.argument_types",
        *("analysis.comparison", "analysis.comparison.accuracy", "analysis.comparison.held_out"),
        *("analysis.device_table", "analysis.devices", "analysis.errors", "analysis.geometry"),
        *("analysis.l2_state", "analysis.problem", "analysis.vocabulary"),
        *("analysis.timing", "analysis.timing.resources"),
    }


def test_a_pipe_gets_utf8_no_control_characters_and_whole_lines(saved):
    latin = {"COLUMNS": "60", "PYTHONIOENCODING": "latin-1"}
    status, stdout, stderr = run(*TOOLKIT, "report", "saved.json", environment=latin)
    assert status == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", stdout + stderr)
    assert "\nSGEMM " in stdout
    assert "32 × 32 × 32" in stdout


@pytest.mark.exhaustive  # as the test above of a pipe
def test_json_is_utf8_whatever_the_locale(saved):
    ascii_ = {"PYTHONIOENCODING": "ascii"}
    status, stdout, _ = run(*TOOLKIT, "report", "saved.json", "--json", environment=ascii_)
    assert (status, stdout) == (0, saved.read_text(encoding="utf-8"))


@pytest.mark.exhaustive  # in this process: above
def test_a_process_refuses_in_one_line():
    status, stdout, stderr = run(*TOOLKIT, "report", "absent.json")
    assert (status, stdout) == (1, "")
    assert stderr.startswith("error: absent.json: No such file or directory: ")
    assert stderr.count("\n") == 1


def test_a_file_that_fails_is_named(monkeypatch, capsys):
    def fail(**_):
        raise OSError(errno.EROFS, "Read-only file system", "some.file")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli._run_app()
    assert ended.value.code == "error: some.file cannot be used: Read-only file system"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments", ["list devices --json", "--version"]
)  # more than a buffer, less
def test_a_full_disk_is_one_line(arguments):
    with Path("/dev/full").open("w") as full:
        status, _, said = run(*TOOLKIT, *arguments.split(), stdout=full)
    assert status == 1
    assert re.fullmatch(r"error: standard output cannot be written: [^\n]+\n", said)


def test_a_reader_that_leaves_early_is_no_error():
    with started(*TOOLKIT, "list", "--json") as process:
        assert process.stdout.readline() == "{\n"
        process.stdout.close()
        assert process.stderr.read() == ""


def test_a_reader_that_is_gone_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    assert run(*TOOLKIT, "--version", stdout=writing)[2] == ""
    os.close(writing)
