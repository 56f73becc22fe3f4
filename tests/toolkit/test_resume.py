"""A run that is cut short leaves a valid profile, and goes on from it unless something changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.errors import InputError
from analysis.result import Profile
from kernels.registry import Variant
from toolkit.experiment import profile
from toolkit.progress import Progress
from toolkit.store import load, save

VARIANTS = ["tiled", "tiled:tile=16", "tiled:tile=8"]
COMMAND = [sys.executable, "-m", "toolkit", "profile", "--executor", "simulate", "--seed", "3"]


class StopAt(Progress):
    def __init__(self, step: str) -> None:
        self._step = step
        self.steps: list[str] = []

    def step(self, text: str) -> None:
        self.steps.append(text)
        if text == self._step:
            raise KeyboardInterrupt


def run(**settings: Any) -> Profile:
    return profile(["32", "64"], VARIANTS, executor="simulate", device="t4", **settings)


@pytest.fixture(scope="module")
def cut_short() -> Profile:
    result = run(progress=StopAt("tiled:tile=8"))
    assert result.status == "interrupted"
    assert [record.label for record in result.records] == VARIANTS[:2]
    return result


def test_only_what_is_missing_is_done(cut_short: Profile) -> None:
    progress = StopAt("")
    result = run(resume=cut_short, progress=progress)
    assert progress.steps == ["tiled:tile=8", *VARIANTS]
    assert result.status == "complete"
    assert [record.label for record in result.records] == [*VARIANTS, *VARIANTS]
    assert result.records[:2] == cut_short.records
    assert result.seed == cut_short.seed


def test_every_new_record_is_kept_at_once() -> None:
    kept: list[Profile] = []
    result = run(checkpoint=kept.append)
    assert [len(so_far.records) for so_far in kept] == [1, 2, 3, 4, 5, 6]
    assert {so_far.status for so_far in kept} == {"interrupted"}
    assert kept[-1].records == result.records


def test_a_kept_profile_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    run(checkpoint=lambda so_far: save(so_far, path), progress=StopAt("tiled:tile=8"))
    assert len(load(path).records) == 2


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
def test_what_has_changed_is_named(cut_short: Profile, change: dict[str, Any], words: str) -> None:
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
    with pytest.raises(InputError) as error:
        run(resume=replace(cut_short, **change))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("variants", [VARIANTS[:2], [*VARIANTS, "vectorized"]])
def test_another_list_of_variants_is_named(cut_short: Profile, variants: list[str]) -> None:
    with pytest.raises(InputError) as error:
        profile(["32", "64"], variants, executor="simulate", device="t4", resume=cut_short)
    assert str(error.value).startswith(
        f"cannot resume the profile: --variant was {', '.join(VARIANTS)}, "
        f"now it is {', '.join(variants)}: leave out --resume, or repeat what was run: python -m"
    )


def test_a_run_that_only_one_side_asked_a_flag_of_is_refused(cut_short: Profile) -> None:
    with pytest.raises(InputError, match="--warm-l2 was absent, now it is given"):
        run(resume=cut_short, warm_l2=True)


def test_a_changed_source_is_refused(cut_short: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Variant, "source", property(lambda variant: "// another"))
    with pytest.raises(InputError, match="kernel sources was"):
        run(resume=cut_short)


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_what_it_had(tmp_path: Path, how: int) -> None:
    options = [word for size in (32, 48, 64, 80, 96, 112) for word in ("--shape", str(size))]
    options += ["--variant", "tiled", "--variant", "tiled:tile=16"]
    process = subprocess.Popen([*COMMAND, *options], cwd=tmp_path, env=environment())
    record = tmp_path / "profile.json"
    ends = time.monotonic() + 60
    while not record.exists() and process.poll() is None and time.monotonic() < ends:
        time.sleep(0.01)
    process.send_signal(how)
    assert process.wait(60) != 0
    before = load(record)
    assert before.status == "interrupted"
    assert 1 <= len(before.records) < 12
    done = subprocess.run(
        [*COMMAND, *options, "--resume"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    after = load(record)
    assert after.status == "complete"
    assert len(after.records) == 12
    assert after.records[: len(before.records)] == before.records


def environment() -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    return os.environ | {"PYTHONPATH": root}
