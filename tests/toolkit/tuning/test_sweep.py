"""Sweeps by Kernel Tuner itself, in processes of their own, on a made-up GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.errors import InputError, LaunchError, UnavailableError, UnknownNameError
from kernels.selection import Selection
from toolkit.launch.progress import Progress
from toolkit.tuning import sweep as sweep_module
from toolkit.tuning import worker
from toolkit.tuning.cache import Known, SweepCache
from toolkit.tuning.request import Request, key_of, tunable
from toolkit.tuning.space import parse_space
from toolkit.tuning.sweep import check_available, sweep

pytest.importorskip("kernel_tuner", reason="Kernel Tuner is not installed: pip install '.[tune]'")

MadeUpGpu = Callable[..., None]
FAST, SLOW = Known(samples_s=(0.001,) * 3), Known(samples_s=(0.002,) * 3)


class Heard(Progress):
    """What a sweep tells while it works."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, text: str) -> None:
        self.steps.append(text)


def request(folder: Path, space: str = "coarsened-1d:tm=16", **more: Any) -> Request:
    found = parse_space(space)
    settings: dict[str, Any] = {
        "variant": found.variant.name,
        "shape": "33x70x31",
        "seed": 1,
        "configurations": tuple(dict(one.parameters) for one in found.selections),
        "cache": str(folder / "sweep.json"),
        "iterations": 3,
        "strategy": "brute_force",
        "most": 2,
    }
    return Request(**settings | more)


def swept(asked: Request, progress: Progress | None = None) -> dict[str, Known]:
    cache = SweepCache(Path(asked.cache), asked.rung, {"GPU": "made up"})
    cache.open()
    found = sweep(asked, cache, progress or Progress())
    return {
        key: Known(samples_s=tuple(round(s, 9) for s in known.samples_s), failure=known.failure)
        for key, known in found.items()
    }


def test_all_are_timed_with_their_own_macros_in_the_order_of_the_request_and_none_twice(
    made_up_gpu: MadeUpGpu, tmp_path: Path
) -> None:
    made_up_gpu(times_s={"BK=16": 0.001})
    part = request(tmp_path, "coarsened-1d:tm=16")
    first = swept(part)
    assert first == {"bk=4,tm=16": SLOW, "bk=8,tm=16": SLOW, "bk=16,tm=16": FAST}
    made_up_gpu()  # from now on all are slow
    everything, heard = request(tmp_path, "coarsened-1d"), Heard()
    backwards = tuple(reversed(everything.configurations))  # Kernel Tuner's own order is forwards
    everything = replace(everything, configurations=backwards)
    assert swept(everything, heard) == first | {
        "bk=8,tm=8": SLOW,
        "bk=16,tm=4": SLOW,
        "bk=16,tm=8": SLOW,
    }
    assert heard.steps == [
        f"measure {key_of(one)}"
        for one in everything.configurations
        if one not in part.configurations
    ]


def test_what_does_not_compile_faults_is_wrong_or_does_nothing_fails_and_the_sweep_goes_on(
    made_up_gpu: MadeUpGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    log = "kernel.cu(12): error: identifier x is undefined"
    made_up_gpu(
        does_not_compile=["BK=4"],
        faults=["BK=8"],
        wrong=["TM=4"],
        does_nothing=["TM=8"],  # what ran before it computed the same
        compiler_log=log,
    )
    pairs = ((4, 16), (8, 16), (16, 4), (16, 16), (16, 8))
    chosen = tuple({"bk": bk, "tm": tm} for bk, tm in pairs)
    found = swept(request(tmp_path, "coarsened-1d", shape="40x64x31", configurations=chosen))
    assert found["bk=4,tm=16"].failure == (
        "05_coarsened_1d.cu, line 12: does not compile: identifier x is undefined"
    )
    assert "wrong result: the error of C[39][63] is" in str(found["bk=16,tm=4"].failure)
    assert found["bk=8,tm=16"].failure == (
        "cuCtxSynchronize failed: an illegal memory access was encountered"
    )
    assert found["bk=16,tm=16"] == SLOW
    assert "is not a number" in str(found["bk=16,tm=8"].failure)
    assert list(here.iterdir()) == []  # Kernel Tuner writes the sources of what faults


def test_operands_are_padded_and_only_the_product_that_was_asked_for_is_checked(
    made_up_gpu: MadeUpGpu, tmp_path: Path
) -> None:
    made_up_gpu(wrong=["BK=8"])  # in the last element of C, which lies in the padding of N
    asked = request(tmp_path, "vectorized", shape="33x70x31")
    assert str(asked.rung.executed(asked.problem)) == "33x72x32"
    assert swept(asked) == {"bk=8": SLOW, "bk=16": SLOW}


def test_one_of_kernel_tuners_strategies_measures_no_more_than_it_may(
    made_up_gpu: MadeUpGpu, tmp_path: Path
) -> None:
    found = swept(request(tmp_path, "coarsened-1d", strategy="random_sample", most=2))
    assert len(found) == 2


def test_a_full_disk_stops_the_sweep_with_one_line(made_up_gpu: MadeUpGpu, tmp_path: Path) -> None:
    made_up_gpu(does_not_compile=["BK=8"], compiler_log="tmp.ii: No space left on device")
    asked = request(tmp_path)
    with pytest.raises(InputError) as caught:
        swept(asked)
    assert str(caught.value) == (
        "the sweep cannot go on: No space left on device (the compiler's files): repair that, and "
        "repeat the command"
    )
    kept = SweepCache(Path(asked.cache), asked.rung, {"GPU": "made up"}).known()
    assert list(kept) == ["bk=4,tm=16"]  # what was done before, and no configuration is blamed
    assert kept["bk=4,tm=16"].failure is None


def test_a_cache_that_cannot_grow_stops_the_sweep_with_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(asked: Request) -> None:
        raise OSError(28, "No space left on device")  # as a write to an open file does

    monkeypatch.setattr(worker, "sweep", full)
    asked = request(tmp_path)
    asked.save(tmp_path / "request.json")
    assert worker.main(str(tmp_path / "request.json")) == 1
    assert capsys.readouterr().out == (
        f"tuning-stops No space left on device ({asked.cache}): repair that, and repeat the "
        "command\n"
    )


def test_more_workers_than_gpus_are_refused_before_anybody_waits_for_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ray = SimpleNamespace(init=lambda: None, cluster_resources=lambda: {"CPU": 8.0, "GPU": 2.0})
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    request(tmp_path, workers=3).save(tmp_path / "request.json")
    assert worker.main(str(tmp_path / "request.json")) == 1
    assert capsys.readouterr().out == (
        "tuning-stops 3 workers were asked for, and Ray has 2 GPUs: ask for fewer, or add machines "
        "with `ray start`\n"
    )


def test_a_process_that_dies_before_any_configuration_is_no_configurations_fault(
    made_up_gpu: MadeUpGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(LaunchError, match=r"^Kernel Tuner stopped: its process ended with 1$"):
        swept(request(tmp_path))


def test_a_process_that_hangs_is_stopped_and_its_configuration_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = tmp_path / "hangs"
    hangs.write_text('#!/bin/sh\necho "tuning-begins bk=4,tm=16"\nsleep 60\n')
    hangs.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hangs))
    monkeypatch.setattr(sweep_module, "PATIENCE_S", 2.0)
    found = swept(request(tmp_path, configurations=({"bk": 4, "tm": 16},)))
    assert found == {"bk=4,tm=16": Known(failure="it took more than 2 s and was stopped")}


def test_of_several_that_a_broken_process_had_begun_each_is_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # workers begin two at once; alone, the second one is what breaks the process
    script = tmp_path / "breaks"
    script.write_text(
        "#!/bin/sh\n"
        "for last; do :; done\n"
        'case "$(cat "$last")" in\n'
        '*"bk\\": 4"*"bk\\": 8"*) echo "(w pid=1) tuning-begins bk=4,tm=16";\n'
        '  echo "(w pid=2) tuning-begins bk=8,tm=16"; exit 9;;\n'
        '*"bk\\": 8"*) echo "tuning-begins bk=8,tm=16"; echo "tuning-breaks a fault"; exit 1;;\n'
        "*) exit 0;;\n"
        "esac\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    both = ({"bk": 4, "tm": 16}, {"bk": 8, "tm": 16})
    assert swept(request(tmp_path, configurations=both, workers=2)) == {
        "bk=8,tm=16": Known(failure="a fault")
    }


def test_kernel_tuner_sees_the_blocks_size_beside_the_parameters(tmp_path: Path) -> None:
    assert tunable(request(tmp_path, "coarsened-1d:bk=16")) == {
        "bk": [16],
        "tm": [4, 8, 16],
        "block_size_x": [256, 512, 1024],  # 64 × 64 / tm
        "block_size_y": [1],
        "block_size_z": [1],
    }


def test_a_request_survives_its_file(tmp_path: Path) -> None:
    asked = request(tmp_path, workers=3)
    asked.save(tmp_path / "request.json")
    assert Request.load(tmp_path / "request.json") == asked


def test_keys_name_every_parameter() -> None:
    selection: Selection = parse_space("coarsened-1d:bk=8,tm=8").selections[0]
    assert key_of(selection.parameters) == "bk=8,tm=8"


def test_what_is_not_installed_is_one_line_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without(missing: str) -> Callable[[str], object | None]:
        return lambda name: None if name == missing else object()

    monkeypatch.setattr(sweep_module, "find_spec", without("kernel_tuner"))
    with pytest.raises(UnavailableError, match=r"Kernel Tuner is not installed: pip install '\.\["):
        check_available("brute_force", None)
    monkeypatch.setattr(sweep_module, "find_spec", without("ray"))
    check_available("brute_force", None)
    with pytest.raises(UnavailableError, match="--workers needs Ray"):
        check_available("brute_force", 2)


def test_an_unknown_strategy_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'brute_force'"):
        check_available("brute-force", None)


def test_workers_of_ray_share_a_sweep_and_survive_what_fails(
    made_up_gpu: MadeUpGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    monkeypatch.setenv("RAY_OVERRIDE_RESOURCES", '{"GPU": 2, "CPU": 2}')
    monkeypatch.setenv("HOME", str(tmp_path))  # Ray keeps a token there
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    made_up_gpu(does_not_compile=["BK=4"], wrong=["TM=4"], times_s={"BK=16": 0.001})
    asked = request(tmp_path, "coarsened-1d", workers=2, shape="40x64x31")
    found = swept(asked)
    assert found["bk=16,tm=8"] == found["bk=16,tm=16"] == FAST
    assert found["bk=8,tm=8"] == found["bk=8,tm=16"] == SLOW
    assert "does not compile" in str(found["bk=4,tm=16"].failure)
    assert "wrong result" in str(found["bk=16,tm=4"].failure)
    content = Path(asked.cache).read_text()
    actors = {word for word in content.split('"') if len(word) == 32 and word.isalnum()}
    assert len(actors) == 2, "both workers took part"
