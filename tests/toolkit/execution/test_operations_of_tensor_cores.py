"""Operations of tensor cores by type of operands, as Nsight Compute counted on an H200."""

import pytest

from analysis.records.counters import OF_TENSOR_CORES
from toolkit import explain, simulate
from validation import ROOT, recordings
from validation.timing.tensor_launches import LAUNCHES

RECORDED = recordings.read(ROOT / "validation/mma/recorded/operations_sm_90.json")["launches"]
BY_LABEL = {one.label: one for one in LAUNCHES}
OPERATIONS = tuple(tag for tag in OF_TENSOR_CORES if tag.startswith("sm__ops_path_tensor_src"))
SHORT = (
    "half_direct 512x512x512",
    "triton_half_small 512x512x512",
    "triton_attention_few_warps 8x512",
    "int8_padded 1024x1024x1024",
    "double_direct 256x512x256",
)


def _counted(label):
    one = BY_LABEL[label]
    found = simulate(
        one.code,
        grid=one.grid,
        block=one.block,
        dynamic_shared_bytes=one.dynamic_shared_bytes,
        arguments=one.make(),
        blocks="representative",
        outputs=False,
        predict=False,
    )
    return {tag: found.counters[tag] for tag in OPERATIONS}


@pytest.mark.parametrize(
    "label",
    [
        label if label in SHORT else pytest.param(label, marks=pytest.mark.exhaustive)
        for label in RECORDED
    ],
)
def test_an_h200_counted_the_same_operations(label):
    assert _counted(label) == dict.fromkeys(OPERATIONS, 0) | RECORDED[label]


def test_the_record_has_each_type_that_sm_90_has():
    others = ("_int4", "_fp4")  # of sm_80, and of sm_120
    assert {tag for counted in RECORDED.values() for tag in counted} == {
        tag for tag in OPERATIONS if not any(one in tag for one in others)
    }


FLOP = """
#include <cuda_fp16.h>
extern "C" __global__ void each(float *x, double *y, half2 *z) {
    int i = threadIdx.x;
    x[i] = x[i] * x[i + 32] + 1.5f;
    y[i] = (y[i] + 2.0) * y[i + 32];
    z[i] = __hfma2(z[i], z[i + 32], z[i]);
}
"""


def test_operations_elsewhere_are_metrics_by_type():
    import numpy as np

    from analysis.records.summaries import summaries

    arguments = [np.zeros(64, np.float32), np.zeros(64), np.zeros(128, np.float16)]
    found = simulate(FLOP, grid=1, block=32, arguments=arguments, device="h200", predict=False)
    values = {row["tag"]: row["value"] for row in summaries(found.counters)}
    assert values["flop_fp32"] == 32 * 2  # one multiply-add per thread
    assert values["flop_fp64"] == 32 * 2  # an addition, and a multiplication
    assert values["fp16__operations.sum"] == 32 * 4  # a multiply-add of two halves


@pytest.mark.parametrize("word", ["flop_fp32", "flop_fp64", "fp16__operations", *OPERATIONS])
def test_each_of_them_is_explained(word):
    assert "A multiply-add is two operations." in explain(word).sentences
