"""Sweeps by workers of Ray, each of which finds a made-up GPU."""

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from analysis.errors import InputError
from toolkit.gpu.sampling import Sampling
from toolkit.tuning.tune import tune
from toolkit.tuning.tuner import Effort

MadeUpGpu = Callable[..., None]


def test_more_workers_than_gpus_are_refused_before_anybody_waits_for_them(
    cuda, monkeypatch, tmp_path
):
    ray = SimpleNamespace(
        init=lambda: None,
        shutdown=lambda: None,
        cluster_resources=lambda: {"CPU": 8.0, "GPU": 2.0},
        exceptions=SimpleNamespace(RayError=RuntimeError),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    monkeypatch.setattr("toolkit.tuning.tune.check_workers", lambda workers: None)
    with pytest.raises(InputError) as caught:
        tune("coarsened-1d:tm=16", ["48"], effort=Effort(workers=3, cache=tmp_path), seed=1)
    assert str(caught.value) == (
        "3 workers were asked for, and Ray has 2 GPUs: ask for fewer, or add machines with "
        "`ray start`"
    )


def test_workers_of_ray_share_a_sweep_and_survive_what_fails(
    cuda, made_up_gpu, tmp_path, monkeypatch
):
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    monkeypatch.setenv("RAY_OVERRIDE_RESOURCES", '{"GPU": 2, "CPU": 2}')
    monkeypatch.setenv("HOME", str(tmp_path))  # Ray keeps a token there
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    made_up_gpu(does_not_compile=["BK=4"], wrong=["TM=4"], times_s={"BK=16": 0.001})
    quick = Sampling(time_limit_s=60, max_samples=25, precision=1e-9)
    effort = Effort(workers=2, cache=tmp_path, sampling=quick)
    found = tune("coarsened-1d", ["40x64x31"], effort=effort, seed=1)
    swept = {
        one.label: round(one.swept.median_s, 6)
        for one in found.shapes[0].candidates
        if one.swept is not None
    }
    assert swept == {
        "coarsened-1d:bk=8,tm=8": 0.002,
        "coarsened-1d:bk=8": 0.002,
        "coarsened-1d:bk=16,tm=8": 0.001,
        "coarsened-1d:bk=16": 0.001,
    }
    reasons = {one.label: str(one.reason) for one in found.shapes[0].candidates}
    assert "does not compile" in reasons["coarsened-1d"]
    assert "wrong result" in reasons["coarsened-1d:bk=16,tm=4"]
