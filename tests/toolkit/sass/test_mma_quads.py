"""HMMA.884 of sm_75 (mma.m8n8k4 of halves): four products of 8 x 4 and 4 x 8 elements each.

No GPU of sm_75 was at hand. Where the elements lie is compared with the code of shuffles that the
same PTX becomes on sm_80; how sums round, with m16n8k8 on sm_75, half of whose elements are zeros.
"""

import numpy as np
import pytest

from tests.toolkit.sass.test_mma import product
from toolkit import simulate
from validation.mma.forms import FORMS

LANES = np.arange(32)
QUAD = LANES % 16 // 4  # the product that a lane has a part of
PLACE = LANES % 4 + LANES // 16 * 4  # and its row or column
SUMS = {"f16": "rrrr", "f32": "ffffffff"}


def source(layout_a, layout_b, of_d, of_c):
    """The product as a kernel: registers of each lane lie beside each other in memory."""
    outputs, added = len(SUMS[of_d]), len(SUMS[of_c])
    letter, of_sums = SUMS[of_d][0], "float" if of_c == "f32" else "unsigned"
    numbers = iter(range(outputs + 4 + added))

    def listed(count):
        return "{" + ", ".join(f"%{next(numbers)}" for _ in range(count)) + "}"

    places = ", ".join([listed(outputs), listed(2), listed(2), listed(added)])
    given = [f'"r"({x}[2 * lane + {k}])' for x in "ab" for k in range(2)]
    given += [f'"{SUMS[of_c][0]}"(c[{added} * lane + {k}])' for k in range(added)]
    return f"""__global__ void k({"float" if letter == "f" else "unsigned"} *d, const unsigned *a,
                       const unsigned *b, const {of_sums} *c) {{
    const int lane = threadIdx.x;
    {"float" if letter == "f" else "unsigned"} x[{outputs}];
    asm volatile("mma.sync.aligned.m8n8k4.{layout_a}.{layout_b}.{of_d}.f16.f16.{of_c} {places};"
                 : {", ".join(f'"={letter}"(x[{k}])' for k in range(outputs))}
                 : {", ".join(given)});
    for (int k = 0; k < {outputs}; k++) d[{outputs} * lane + k] = x[k];
}}"""


def executed(layouts, of_d, of_c, a, b, c, arch):
    d = np.zeros((32, 8), np.float32 if of_d == "f32" else np.float16)
    words = [x.view(np.float32 if x.dtype == np.float32 else np.uint32) for x in (d, a, b, c)]
    text = source(*layouts, of_d, of_c)
    options = {"grid": 1, "block": 32, "arch": arch, "predict": False}
    return simulate(text, "k", arguments=words, **options).outputs[0].view(d.dtype).reshape(32, 8)


@pytest.mark.parametrize("sums", [("f32", "f32"), ("f32", "f16"), ("f16", "f16")])
@pytest.mark.parametrize(
    "layouts", [("row", "col"), ("row", "row"), ("col", "col"), ("col", "row")]
)
def test_elements_lie_where_the_same_ptx_has_them_on_sm_80(layouts, sums):
    """Small whole numbers, whose sums are exact however they are added."""
    rng = np.random.default_rng()
    a, b = (rng.integers(-8, 9, (32, 4)).astype(np.float16) for _ in range(2))
    c = rng.integers(-50, 51, (32, 8)).astype(np.float32 if sums[1] == "f32" else np.float16)
    mine, other = (executed(layouts, *sums, a, b, c, arch) for arch in ("sm_75", "sm_80"))
    np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("name", ["m16n8k8_f32_f16", "m16n8k8_f16_f16"])
def test_sums_round_as_those_of_a_larger_product_with_zeros(name):
    form, rng = FORMS[name], np.random.default_rng()
    of_sums = "f16" if name == "m16n8k8_f16_f16" else "f32"
    exponents = rng.integers(-12, 12, (2, 32, 4))
    a, b = (rng.standard_normal((2, 32, 4)) * 2.0**exponents).astype(np.float16)
    c = (rng.standard_normal((32, 8)) * 2.0 ** rng.integers(-12, 12, (32, 8))).astype(
        np.float16 if of_sums == "f16" else np.float32
    )
    mine = executed(("row", "col"), of_sums, of_sums, a, b, c, "sm_75")
    wide = [np.zeros((4, n, 8), np.float16) for n in (16, 8)]
    wide[0][QUAD, PLACE, :4], wide[1][QUAD, PLACE, :4] = a, b
    sums = np.zeros((4, 16, 8), c.dtype)
    row, column = places(of_sums)
    sums[QUAD[:, None], row, column] = c
    bits = [x.view(np.uint16) for x in wide]
    whole = product(form, *bits, sums.view(form.sum), arch="sm_75").view(c.dtype)
    np.testing.assert_array_equal(mine, whole[QUAD[:, None], row, column])


def places(of_sums):
    """Row and column of each of the eight sums of each lane (PTX ISA, mma.m8n8k4)."""
    k = np.arange(8)
    if of_sums == "f16":
        return PLACE[:, None] + 0 * k, 0 * PLACE[:, None] + k
    lane = LANES[:, None]
    return (lane & 1) + (k & 2) + lane // 16 * 4, (k & 4) + (lane & 2) + (k & 1)
