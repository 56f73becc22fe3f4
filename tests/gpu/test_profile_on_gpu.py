"""The main job and `run` on silicon."""

import numpy as np
import pytest

from analysis.comparison.agreement import unexplained
from analysis.product_errors import DATA_CLASSES
from kernels import LADDER, Variant
from toolkit.execution.rung_errors import LARGEST

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def quick():
    from toolkit.gpu.sampling import Sampling

    return Sampling(time_limit_s=0.2)


def test_errors_are_those_of_the_simulator_and_times_are_taken_on_the_own_inputs(quick):
    from toolkit import profile

    names = ["tf32-parts", "fp16-parts", "best-fp32x", "cublas"]
    shape = str(LARGEST)
    found = profile([shape], names, executor="gpu", sampling=quick, seed=1, accuracy=True)
    simulated = profile([shape], names[:2], executor="simulate", seed=1, accuracy=True)
    for record in found.records:
        assert record.status == "ok", record.reason
        assert [one.data for one in record.errors] == list(DATA_CLASSES)
        assert record.measured.median_s > 0
    for record, other in zip(found.records, simulated.records, strict=False):
        assert record.errors == other.errors


def test_the_whole_ladder_is_right_and_timed_beside_cublas(quick):
    from toolkit import profile

    result = profile(["512", "127x129x31"], executor="gpu", sampling=quick)
    assert result.executor == "gpu"
    assert result.status == "complete"
    assert len(result.records) == 2 * (len(LADDER) + 4)  # best, best-fp32x, CPU, cuBLAS
    for record in result.records:
        if record.variant == "one-block":
            assert record.status == "skipped"
            continue
        assert record.status == "ok", record.reason
        assert record.check.passed
        assert record.measured.median_s > 0
        if record.rung:
            assert record.measured.relative_to_cublas is not None
        if record.theory:  # not of several launches
            assert record.resources.registers_per_thread > 0
            assert record.simulated is not None, record.notes  # of the code that was launched
            assert unexplained(record) == ()
            # a roof that a measurement passes is no roof
            assert record.measured.flop_per_s < 1.02 * record.theory.attainable_flop_per_s
    cublas = next(r for r in result.records if r.variant == "cublas")
    assert cublas.notes == (f"cuBLAS {result.environment.software['cuBLAS']}",)
    padded = next(r for r in result.records if r.variant == "vectorized" and r.shape.m == 127)
    assert str(padded.executed_shape) == "127x132x32"


def test_a_wrong_kernel_is_a_failed_record_and_the_others_run_on(quick, monkeypatch):
    from toolkit import profile

    source = LADDER[3].source
    broken = source.replace("sum += tile_a[y][k] * tile_b[k][x];", "sum += tile_a[y][k];")
    assert broken != source
    monkeypatch.setattr(Variant, "source", property(lambda v: _source(v, broken)))
    result = profile(["300"], ["naive-coalesced", "tiled", "cublas"], sampling=quick)
    statuses = {record.label: record.status for record in result.records}
    assert statuses == {"naive-coalesced": "ok", "tiled": "failed", "cublas": "ok"}
    wrong = next(record for record in result.records if record.label == "tiled")
    assert wrong.measured is None
    assert "times its bound" in wrong.reason


def _source(variant, broken):
    if variant.name == "tiled":
        return broken
    from importlib.resources import files

    return files("kernels").joinpath("sgemm", variant.file).read_text(encoding="utf-8")


def test_run_returns_as_many_samples_as_asked_for():
    from toolkit import run

    source = 'extern "C" __global__ void f(float* p) { p[threadIdx.x] += 1; }'
    x = np.zeros(32, np.float32)
    execution = run(source, "f", grid=(1,), block=(32,), arguments=[x], samples=7)
    assert (execution.outputs[0] == 1).all()  # after the first launch
    assert len(execution.samples_s) == 7
    assert all(sample > 0 for sample in execution.samples_s)
