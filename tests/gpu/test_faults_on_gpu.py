"""Rungs that fail on real silicon: each becomes a red row with its reason, the others run on."""

import pytest

from toolkit.gpu.sampling import Sampling
from toolkit.profiling.profile import profile

pytestmark = pytest.mark.gpu

QUICK = Sampling(time_limit_s=0.2, max_samples=50, precision=0.05)


@pytest.fixture(autouse=True)
def short_patience(monkeypatch):
    monkeypatch.setattr("toolkit.gpu.product_launch.START_S", 15.0)
    monkeypatch.setattr("toolkit.gpu.product_launch.LAUNCH_GRACE_S", 5.0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum += ", "sum = "),  # wrong numbers
        ("alpha * sum", "alpha * (sum - sum) / (sum - sum)"),  # NaN
        ("__syncthreads();", 'while (alpha > 0.0f) asm volatile("");'),  # never ends
        ("float* const c = C", "float* const c = C + (1ull << 40)"),  # illegal address
    ],
)
def test_the_others_are_measured_beside_a_broken_one(old, new, edit_rung):
    edit_rung("tiled", old, new)
    result = profile(
        [256], ["naive-coalesced", "tiled", "vectorized", "cublas"], executor="gpu", sampling=QUICK
    )
    by_label = {record.label: record for record in result.records}
    assert by_label["tiled"].status == "failed"
    assert by_label["tiled"].reason
    for label in ("naive-coalesced", "vectorized"):
        measured = by_label[label].measured
        assert measured.relative_to_cublas is not None or by_label["cublas"].status == "skipped"


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ('while (1) asm volatile("");', "did not end within 5 s"),
        ("((volatile float*)C)[1ull << 40] = 1.0f;", "illegal memory access"),
        ("((volatile float*)C)[-1] = 1.0f;", "in front of argument 2 `C`, float32[256,256] were"),
    ],
    ids=["hangs", "faults", "writes beside C"],
)
def test_what_breaks_only_when_it_is_timed_breaks_alone_too(bug, words, edit_rung):
    """From its 100th launch on: a check has three."""
    first = "blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y == 0"
    edit_rung("tiled", 'extern "C"', '__device__ int launches; extern "C"')
    edit_rung(
        "tiled", "const int row =", f"if ({first} && ++launches > 99) {{ {bug} }} const int row ="
    )
    result = profile(
        [256], ["naive-coalesced", "tiled", "vectorized", "cublas"], executor="gpu", sampling=QUICK
    )
    naive, tiled, vectorized, _ = result.records
    assert result.status == "complete"
    assert (tiled.status, tiled.measured) == ("failed", None)
    assert words in (tiled.reason or "")
    for record in (naive, vectorized):
        assert record.measured is not None
