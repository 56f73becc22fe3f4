"""A run that is cut short leaves a valid profile, and goes on from it unless something changed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.errors import InputError, RecordError
from kernels.variant import Variant
from tests.heard import Heard
from tests.refusals import refusal
from tests.sampling import exhaustive
from tests.toolkit.cli.commands import invoke
from toolkit.profiling.profile import profile
from toolkit.store.profile_json import load
from validation import ROOT

VARIANTS = ["tiled", "tiled:tile=16", "tiled:tile=8"]
COMMAND = [sys.executable, "-m", "toolkit", "profile", "--executor", "simulate", "--seed", "3"]


def run(**settings):
    return profile(["32", "64"], VARIANTS, executor="simulate", device="t4", **settings)


@pytest.fixture(scope="module")
def cut_short():
    result = run(progress=Heard("tiled:tile=8"))
    assert result.status == "interrupted"
    assert [record.label for record in result.records] == VARIANTS[:2]
    return result


def test_only_what_is_missing_is_done(cut_short):
    progress = Heard()
    result = run(resume=cut_short, progress=progress)
    assert progress.steps == ["tiled:tile=8", *VARIANTS]
    assert result.status == "complete"
    assert [record.label for record in result.records] == [*VARIANTS, *VARIANTS]
    assert result.records[:2] == cut_short.records
    assert result.seed == cut_short.seed


def test_every_record_is_appended_once(tmp_path):
    path = tmp_path / "profile.json.journal"
    read = []

    def reading():
        if path.exists():
            read.append(load(path))

    result = run(journal=path, progress=Heard("|".join(VARIANTS), then=reading))
    assert [len(so_far.records) for so_far in read] == [1, 2, 3, 4, 5]
    head, *lines = path.read_text().splitlines()
    assert json.loads(head)["records"] == []
    assert [len(json.loads(line)["records"]) for line in lines] == [1] * 6
    # a variant has one listing, the same at both shapes
    assert [len(json.loads(line)["listings"]) for line in lines] == [1, 1, 1, 0, 0, 0]
    journal = load(path)
    assert journal.status == "interrupted"
    assert journal.listings == result.listings
    assert run(resume=journal).records == result.records


def test_a_journal_begins_with_the_first_result(tmp_path):
    path = tmp_path / "profile.json.journal"
    variants = ["cublas", "tiled"]
    settings = {"executor": "simulate", "device": "t4", "journal": path}
    profile([32], variants, progress=Heard("tiled"), **settings)
    assert not path.exists()  # that cuBLAS needs a GPU is no result
    profile([32], variants, **settings)
    assert [record.label for record in load(path).records] == variants


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "profile.json.journal"
    run(journal=path, progress=Heard("tiled:tile=8"))
    return path.read_bytes()


@pytest.mark.parametrize("cut", [1, 2, 1000])
def test_a_last_line_that_was_cut_is_left_out(tmp_path, journal, cut):
    path = tmp_path / "x.journal"
    path.write_bytes(journal[:-cut])
    (record,) = load(path).records
    assert record.label == "tiled"


def test_the_journal_of_a_resumed_run_has_the_records_of_the_first(tmp_path, journal):
    path = tmp_path / "x.journal"
    path.write_bytes(journal)
    before = load(path).records
    run(resume=load(path), journal=path, progress=Heard("tiled"))
    after = load(path).records
    assert [record.label for record in after] == VARIANTS
    assert after[:2] == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: "", "it is not a journal of a run, or it is damaged: remove it"),
        (lambda text: text[:50], "it is not a journal of a run, or it is damaged"),
        (lambda text: text.replace("\n", "\n{]\n", 1), "it is not a journal of a run, or"),
        (lambda text: text.replace("\n", "\n7\n", 1), "it is not a journal of a run, or"),
        (lambda text: "7\n" + text, "it is not a journal of a run, or it is damaged"),
        (lambda text: text.replace('"registers_per_thread":', '"registers_per_thread":-'),
         "records[0].resources.registers_per_thread: it is -"),
    ],
)  # fmt: skip
def test_a_damaged_journal_is_one_line(tmp_path, journal, change, words):
    path = tmp_path / "x.journal"
    path.write_text(change(journal.decode()))
    assert refusal(RecordError, load, path).startswith(f"{path}: {words}")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_keeps_the_records_before(tmp_path, journal):
    path = tmp_path / "x.journal"

    def fill():
        path.rename(tmp_path / "kept.journal")
        path.symlink_to("/dev/full")

    assert refusal(InputError, run, journal=path, progress=Heard("tiled:tile=8", then=fill)) == (
        f"cannot write {path}: No space left on device: the records before are kept; make room, "
        "and repeat the command with --resume"
    )
    assert len(load(tmp_path / "kept.journal").records) == 2


def test_the_command_goes_on_from_a_journal_and_removes_it(tmp_path, journal, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("profile.json.journal").write_bytes(journal[:-1])
    command = load("profile.json.journal").command.removeprefix("python -m toolkit ")
    monkeypatch.setattr("reports.render", lambda *_, **__: "")
    done = invoke(command, "--resume")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["profile.html", "profile.json"]
    assert load("profile.json").status == "complete"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"device": "a100-sxm-80gb"}, "the device was NVIDIA A100"),
        (
            {"command": "python -m toolkit profile --shape 8"},
            "--shape was 8, now it is 32x32x32, 64x64x64: leave out --resume, or repeat what",
        ),
        ({"software": {"NVIDIA driver": "570.1"}}, "NVIDIA driver was 570.1, now it is absent"),
        ({"software": {"kernel sources": "0" * 12}}, f"kernel sources was {'0' * 12}, now it is"),
        ({"toolkit_version": "0.0.1"}, "toolkit was 0.0.1, now it is"),
    ],
)
def test_what_has_changed_is_named(cut_short, change, words):
    from analysis.devices import DEVICES

    environment = cut_short.environment
    if "software" in change:
        change = {
            "environment": replace(environment, software=environment.software | change["software"])
        }
    elif "toolkit_version" in change:
        change = {"environment": replace(environment, **change)}
    elif "device" in change:
        other = next(d for d in DEVICES.values() if d.name.startswith("NVIDIA A100"))
        change = {"device": other}
    assert words in refusal(InputError, run, resume=replace(cut_short, **change))


def test_what_was_not_known_of_a_device_when_a_run_began_does_not_stop_it(cut_short):
    assert cut_short.device.tensor_flop_per_s is not None
    device = replace(cut_short.device, tensor_flop_per_s=None, sources={})  # as before it was known
    assert run(resume=replace(cut_short, device=device)).status == "complete"


def test_a_changed_value_of_the_device_is_named(cut_short):
    device = replace(cut_short.device, l2_bytes=1 << 20)
    said = refusal(InputError, run, resume=replace(cut_short, device=device))
    assert "l2_bytes of the device was 1048576, now it is 4194304" in said


@pytest.mark.parametrize("variants", [VARIANTS[:2], [*VARIANTS, "vectorized"]])
def test_another_list_of_variants_is_named(cut_short, variants):
    assert refusal(
        InputError,
        profile,
        ["32", "64"],
        variants,
        executor="simulate",
        device="t4",
        resume=cut_short,
    ).startswith(
        f"cannot resume the profile: --variant was {', '.join(VARIANTS)}, "
        f"now it is {', '.join(variants)}: leave out --resume, or repeat what was run: python -m"
    )


def test_a_run_that_only_one_side_asked_a_flag_of_is_refused(cut_short):
    assert "--l2 was absent, now it is warm" in refusal(
        InputError, run, resume=cut_short, l2="warm"
    )


def test_a_changed_source_is_refused(cut_short, monkeypatch):
    monkeypatch.setattr(Variant, "source", property(lambda variant: "// another"))
    assert "kernel sources was" in refusal(InputError, run, resume=cut_short)


@pytest.mark.exhaustive  # what a journal holds is tested above
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize("how", [signal.SIGKILL, exhaustive(signal.SIGTERM)])
def test_a_killed_run_leaves_what_it_had(tmp_path, how):
    shapes, variants = ["32", "48", "64", "80"], ["tiled", "tiled:tile=16"]
    options = [f"--shape={x}" for x in shapes] + [f"--variant={x}" for x in variants]
    process = subprocess.Popen([*COMMAND, *options], cwd=tmp_path, env=environment())
    record, journal = tmp_path / "profile.json", tmp_path / "profile.json.journal"
    ends = time.monotonic() + 60
    while not journal.exists() and process.poll() is None and time.monotonic() < ends:
        time.sleep(0.01)
    process.send_signal(how)
    assert process.wait(60) != 0
    assert not record.exists()
    before = load(journal)
    assert before.status == "interrupted"
    assert 1 <= len(before.records) < 8
    after = profile(shapes, variants, executor="simulate", resume=before)
    assert after.status == "complete"
    assert len(after.records) == 8
    made = [replace(record, scores=()) for record in after.records]
    assert made[: len(before.records)] == list(before.records)


def environment():
    return os.environ | {"PYTHONPATH": str(ROOT)}
