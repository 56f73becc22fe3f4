"""The main job and `run` on silicon."""

import numpy as np
import pytest

from analysis.comparison.agreement import unexplained
from analysis.errors import CompileError, InputError, LaunchError
from kernels import LADDER, Variant

pytestmark = pytest.mark.gpu

SAXPY = """
extern "C" __global__ void saxpy(float* y, const float* x, float a, int n)
{
    extern __shared__ float staged[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        staged[threadIdx.x] = x[i];
        y[i] += a * staged[threadIdx.x];
    }
}
"""


@pytest.fixture(scope="module")
def quick():
    from toolkit.gpu.sampling import Sampling

    return Sampling(time_limit_s=0.2)


def test_the_whole_ladder_is_right_and_timed_beside_cublas(quick):
    from toolkit import profile

    result = profile(["512", "127x129x31"], executor="gpu", sampling=quick)
    assert result.executor == "gpu"
    assert result.status == "complete"
    assert len(result.records) == 2 * (len(LADDER) + 3)  # best, the CPU and cuBLAS
    for record in result.records:
        if record.variant == "one-block":
            assert record.status == "skipped"
            continue
        assert record.status == "ok", record.reason
        assert record.check.passed
        assert record.measured.median_s > 0
        if record.rung:
            assert record.measured.relative_to_cublas is not None
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


def test_run_returns_outputs_resources_and_samples():
    from toolkit import run

    rng = np.random.default_rng()
    x, y = (rng.random(1000, dtype=np.float32) for _ in range(2))
    execution = run(
        SAXPY,
        "saxpy",
        grid=(4,),
        block=(256,),
        dynamic_shared_bytes=1024,
        arguments=[y, x, np.float32(2), np.int32(1000)],
        samples=7,
    )
    np.testing.assert_allclose(execution.outputs[0], y + 2 * x, rtol=1e-6)
    np.testing.assert_array_equal(execution.outputs[1], x)
    assert len(execution.samples_s) == 7
    assert all(sample > 0 for sample in execution.samples_s)
    assert execution.resources.registers_per_thread > 0


def test_more_dynamic_shared_memory_than_48_kilobytes_is_asked_for():
    from toolkit import run

    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    execution = run(
        SAXPY,
        "saxpy",
        grid=(1,),
        block=(64,),
        dynamic_shared_bytes=60_000,
        arguments=[y, x, np.float32(3), np.int32(64)],
    )
    assert (execution.outputs[0] == 3).all()


def test_source_that_does_not_compile_says_where():
    from toolkit import run

    with pytest.raises(CompileError, match=r"line 3: does not compile: .*undefined"):
        run(
            '\nextern "C" __global__ void f() {\n nothing(); }',
            "f",
            grid=(1,),
            block=(1,),
            arguments=[],
        )


def test_a_kernel_that_is_not_there_is_named():
    from toolkit import run

    with pytest.raises(InputError, match="no kernel 'g'"):
        run('extern "C" __global__ void f() {}', "g", grid=(1,), block=(1,), arguments=[])


def test_an_illegal_access_is_a_launch_error_that_leaves_the_next_launch_alone():
    from toolkit import run

    source = 'extern "C" __global__ void f(float* p, long i) { p[i] = 1.0f; }'
    for index, reason in ((1 << 40, "^f: .*illegal"), (1, "1 words behind argument 0 `p`")):
        arguments = [np.zeros(1, np.float32), np.int64(index)]
        with pytest.raises(LaunchError, match=reason):
            run(source, "f", grid=(1,), block=(1,), arguments=arguments)
    run(source, "f", grid=(1,), block=(1,), arguments=[np.zeros(1, np.float32), np.int64(0)])
