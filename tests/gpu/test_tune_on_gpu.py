"""Tuning on silicon: Kernel Tuner sweeps, the leaders race cuBLAS, the cache and Ray hold."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernels import find
from kernels.variant import Variant
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress

pytestmark = pytest.mark.gpu

pytest.importorskip("kernel_tuner", reason="Kernel Tuner is not installed: pip install '.[tune]'")

from toolkit.tuning.cache import SweepCache  # noqa: E402
from toolkit.tuning.request import Request  # noqa: E402
from toolkit.tuning.space import parse_space  # noqa: E402
from toolkit.tuning.sweep import sweep  # noqa: E402
from toolkit.tuning.tune import entries_of, tune  # noqa: E402
from toolkit.tuning.tuner import Effort  # noqa: E402

# What the sweep's process runs first: the rung's source, broken for two values of BK.
BROKEN = """
from kernels.variant import Variant
text = SOURCE
head = text.index('extern "C"')
body = text.index("{", head) + 1
text = (
    text[:head] + "\\n#if BK == 4\\n#error not today\\n#endif\\n" + text[head:body]
    + "\\n#if BK == 8\\nC[1ull << 40] = 0.0f;\\n#endif\\n" + text[body:]
)
Variant.source = property(lambda self: text)
"""

QUICK = Sampling(time_limit_s=0.2)
SPACE = "coarsened-1d:tm=16"  # three configurations


class Notices(Progress):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def notice(self, text: str) -> None:
        self.heard.append(text)


def run(folder: Path, text: str = SPACE, shape: str = "512", **more: int):
    progress = Notices()
    effort = Effort(sampling=QUICK, cache=folder, **more)
    return tune(text, [shape], effort=effort, seed=1, progress=progress), progress.heard


def test_a_space_is_swept_checked_and_raced_and_the_second_run_sweeps_nothing(
    tmp_path: Path,
) -> None:
    found, heard = run(tmp_path)
    shape = found.shapes[0]
    assert heard == []
    assert [one.status for one in shape.candidates] == ["ok"] * 3
    assert all(one.swept and one.swept.median_s > 0 for one in shape.candidates)
    assert shape.winners
    for winner in shape.winners:
        assert winner.check is not None
        assert winner.check.passed
        assert winner.measured is not None
        assert winner.measured.relative_to_cublas is not None
    assert len(entries_of(found)) == 1
    again, said = run(tmp_path)
    assert "3 of 3 configurations of 512x512x512 were measured before" in said[0]
    swept = {one.label: one.swept.samples_s for one in shape.candidates if one.swept}
    for one in again.shapes[0].candidates:
        assert one.swept is not None
        assert one.swept.from_cache
        assert one.swept.samples_s == swept[one.label]


def test_the_sweep_and_the_final_agree_on_a_time(tmp_path: Path) -> None:
    # the same machine code, both with L2 flushed; a sweep's events have the launch between them
    found, _ = run(tmp_path, "coarsened-1d:bk=8,tm=8", "2048")
    (one,) = found.shapes[0].candidates
    assert one.swept is not None
    assert one.measured is not None
    assert one.swept.median_s == pytest.approx(one.measured.median_s, rel=0.1)


def test_padded_operands_and_a_ragged_shape(tmp_path: Path) -> None:
    found, _ = run(tmp_path, "vectorized", "511x513x127")
    shape = found.shapes[0]
    assert str(shape.executed_shape) == "511x516x128"
    assert {one.status for one in shape.candidates} == {"ok"}
    assert shape.winners


def test_what_does_not_compile_or_faults_on_silicon_fails_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    """A sweep alone, of a rung whose source breaks for two values: nvcc and the context tell."""
    rung = find("coarsened-1d")
    assert isinstance(rung, Variant)
    broken = BROKEN.replace("SOURCE", json.dumps(rung.source))
    (tmp_path / "sitecustomize.py").write_text(broken, encoding="utf-8")
    configurations = tuple(dict(one.parameters) for one in parse_space(SPACE).selections)
    asked = Request(
        variant=rung.name,
        shape="512x512x512",
        seed=1,
        configurations=configurations,
        cache=str(tmp_path / "sweep.json"),
        iterations=3,
        strategy="brute_force",
        most=3,
    )
    cache = SweepCache(Path(asked.cache), rung, {})
    cache.open()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        known = sweep(asked, cache, Progress())
    assert "does not compile" in str(known["bk=4,tm=16"].failure)
    assert "illegal memory access" in str(known["bk=8,tm=16"].failure)
    assert known["bk=16,tm=16"].failure is None
    assert len(known["bk=16,tm=16"].samples_s) == 3


def test_workers_of_ray_sweep_too(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    found, _ = run(tmp_path, workers=1)
    assert [one.status for one in found.shapes[0].candidates] == ["ok"] * 3
    content = json.loads(next(tmp_path.glob("*-512x512x512-*[!t].json")).read_text())
    assert all("ray_actor_id" in entry for entry in content["cache"].values())


def test_two_gpus_share_a_sweep(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    driver = pytest.importorskip("pycuda.driver")
    driver.init()
    if driver.Device.count() < 2:
        pytest.skip("this machine has one GPU")
    found, _ = run(tmp_path, "coarsened-1d", workers=2)
    shape = found.shapes[0]
    assert {one.status for one in shape.candidates} == {"ok"}
    content = json.loads(next(tmp_path.glob("*-512x512x512-*[!t].json")).read_text())
    actors = {entry["ray_actor_id"] for entry in content["cache"].values()}
    assert len(actors) == 2
    assert shape.winners
