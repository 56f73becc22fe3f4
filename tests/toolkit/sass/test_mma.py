"""HMMA, IMMA, DMMA, BMMA and QMMA: values bit for bit, through the machine code of mma.sync.

Vectors were recorded on an H100, digests of random products and counters on an H200 (CUDA 13.0).
The rule of other architectures is compared with the same rule in whole numbers.
"""

import numpy as np
import pytest

from analysis.errors import LaunchError
from tests.probe import holding, probe
from tests.sampling import exhaustive, sampled
from toolkit import simulate
from toolkit.gpu.context import Gpu
from toolkit.sass.isa.mma import sums_of
from validation.mma import counted, random_products, recorded_products
from validation.mma.forms import FORMS, THREADS, arguments, blocks, source, sums_of_registers


def product(form, a, b, c, arch="sm_90"):
    execution = simulate(
        source(form),
        form.name,
        grid=blocks(len(a)),
        block=THREADS,
        arguments=arguments(form, a, b, c),
        arch=arch,
        blocks="all",
        predict=False,
    )
    return sums_of_registers(form, execution.outputs[3])


@pytest.mark.parametrize(
    "name", sampled(recorded_products.names(), lambda name: FORMS[name].family)
)
def test_sums_have_the_bits_of_a_gpu(name):
    wanted = recorded_products.vectors(name)
    sums = wanted.of_tiles(product(wanted.form, *wanted.tiles()))
    np.testing.assert_array_equal(sums, wanted.d)


@pytest.mark.parametrize("name", sampled(list(FORMS), lambda name: FORMS[name].family))
def test_random_products_are_those_of_a_gpu(name):
    """100,000 outputs of each class, drawn by the seed of the record."""
    wanted = [row for row in random_products.recorded() if row["form"] == name]
    assert min(row["outputs"] for row in wanted) >= 100_000
    assert list(random_products.of_forms([FORMS[name]])) == wanted


@pytest.mark.parametrize("arch", [exhaustive("sm_100"), "sm_120"])
@pytest.mark.parametrize(
    "name", sampled([name for name in FORMS if "_b1_" in name], key=lambda name: name[-3:])
)
def test_products_of_bits_that_are_made_of_bytes_are_the_same(name, arch):
    """From sm_100 on; integer sums are exact, so that all architectures have the same bits."""
    form = FORMS[name]
    for kind in random_products.classes(form):
        given = random_products.operands(form, kind, 1_000)
        sums = [random_products.of_simulator(form, given, one) for one in ("sm_90", arch)]
        np.testing.assert_array_equal(*sums)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sampled(list(FORMS), lambda name: FORMS[name].family))
def test_a_gpu_multiplies_as_the_simulator(name):
    form = FORMS[name]
    with Gpu() as gpu:
        for kind in random_products.classes(form):
            given = random_products.operands(form, kind, 20_000)
            sums = random_products.of_gpu(gpu, form, given)
            mine = random_products.of_simulator(form, given, gpu.device.sm_arch)
            np.testing.assert_array_equal(mine, sums)


@pytest.mark.parametrize("row", counted.recorded(), ids=lambda row: row["kernel"])
def test_counters_are_those_of_nsight_compute(row):
    counters = counted.of_simulator(row["kernel"])
    assert {name: counters[name] for name in row["counters"]} == row["counters"]


def test_a_launch_without_products_has_no_counters_of_tensor_cores():
    execution = simulate("__global__ void k() {}", "k", grid=1, block=32, arguments=[])
    assert not [name for name in execution.counters if "tensor" in name]


FORMATS = {
    **{"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "e4m3": (4, 3), "e5m2": (5, 2)},
    "f32": (8, 23),
}


SIGN = {"f16": 0x8000, "f32": 0x8000_0000}
INF = {"f16": 0x7C00, "f32": 0x7F80_0000}


def decoded(bits, kind):
    """Sign, exponent, significand as a whole number, and its fraction bits, of a finite number."""
    exponent_bits, fraction_bits = FORMATS[kind]
    bits = int(bits) >> 13 if kind == "tf32" else int(bits)
    field = bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = bits & (1 << fraction_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    significand = fraction | (1 << fraction_bits if field else 0)
    sign = -1 if bits >> exponent_bits + fraction_bits else 1
    return sign, max(field, 1) - bias, significand, fraction_bits


def rounded(total, unit, kind, kept):
    """total * 2^unit: FP32 cut off to `kept` fraction bits, FP16 to nearest even."""
    exponent_bits, fraction_bits = FORMATS[kind]
    bias = (1 << exponent_bits - 1) - 1
    if not total:
        return 0
    magnitude = abs(total)
    exponent = max(magnitude.bit_length() - 1 + unit, 1 - bias)
    drop = exponent - kept - unit
    whole = magnitude << -drop if drop <= 0 else magnitude >> drop
    if kind == "f16" and drop > 0:
        rest, half = magnitude & (1 << drop) - 1, 1 << drop - 1
        whole += rest > half or (rest == half and whole & 1)
    whole <<= fraction_bits - kept
    # a significand of one bit more is the next exponent
    bits = whole + (exponent + bias - 1 << fraction_bits)
    bits = min(bits, (1 << exponent_bits) - 1 << fraction_bits)
    sign = 1 << exponent_bits + fraction_bits if total < 0 and bits else 0
    return bits | sign


def by_rule(form, a, b, c, sums):
    """One element of D, in whole numbers."""
    for first in range(0, len(a), sums.block):
        pairs = zip(a[first : first + sums.block], b[first : first + sums.block], strict=True)
        terms = []
        for x, y in pairs:
            left, right = decoded(x, form.a), decoded(y, form.b)
            terms.append(tuple(f(p, q) for f, p, q in zip(JOINED, left, right, strict=True)))
        terms.append(decoded(c, form.sums))
        terms = [term for term in terms if term[2]]
        floor = -21 if form.sums == "f16" else -133
        unit = max([floor, *(exponent for _, exponent, _, _ in terms)]) - sums.fraction
        total = 0
        for sign, exponent, significand, fraction_bits in terms:
            shift = exponent - fraction_bits - unit
            total += sign * (significand << shift if shift >= 0 else significand >> -shift)
        kept = 10 if form.sums == "f16" else 13 if sums.short else 23
        c = rounded(total, unit, form.sums, kept)
        if c & ~SIGN[form.sums] == INF[form.sums]:
            return c  # it stays
    return c


def _times(x, y):
    return x * y


def _plus(x, y):
    return x + y


JOINED = (_times, _plus, _times, _plus)


@pytest.mark.parametrize(
    ("arch", "name"),
    [
        ("sm_75", "m16n8k8_f32_f16"),
        ("sm_75", "m16n8k8_f16_f16"),
        ("sm_80", "m16n8k16_f32_f16"),
        ("sm_80", "m16n8k16_f16_f16"),
        ("sm_86", "m16n8k16_f32_bf16"),
        ("sm_80", "m16n8k8_f32_tf32"),
        ("sm_89", "m16n8k32_f32_e4m3_e5m2"),
        ("sm_89", "m16n8k32_f16_e4m3"),
        ("sm_100", "m16n8k16_f32_f16"),
        ("sm_120", "m16n8k32_f32_e4m3"),
        ("sm_120", "m16n8k32_f32_e5m2"),
    ],
)
@pytest.mark.parametrize("kind", ["ordinary", "whole range", "cancellation", "subnormal"])
def test_the_rule_of_an_architecture(arch, name, kind):
    form = FORMS[name]
    a, b, c = random_products.operands(form, kind, 512)
    if form.a == "e4m3" or form.b == "e4m3":  # without its NaN
        for x in (y for y, of in ((a, form.a), (b, form.b)) if of == "e4m3"):
            x[x & 0x7F == 0x7F] = 0
    sums = product(form, a, b, c, arch)
    how = sums_of(int(arch.removeprefix("sm_")), form.a.upper())
    for tile, row, column in np.ndindex(sums.shape):
        wanted = by_rule(form, a[tile, row], b[tile, column], c[tile, row, column], how)
        assert sums[tile, row, column] == wanted


@pytest.mark.parametrize(
    "text",
    [
        "HMMA.16816.F32 R16, R4, R12, RZ",
        "IMMA.16832.S8.S8 R16, R4.ROW, R12.COL, R16",
        "BMMA.88128.XOR.POPC R16, R4.ROW, R12.COL, R16",
        "DMMA.8x8x4 R16, R4, R12, R16",
    ],
)
def test_a_part_of_a_warp_cannot_multiply(text):
    with pytest.raises(LaunchError):
        probe(f"@P0 {text}", holding(P0=0xFFFF))
    probe(f"@P1 {text}", holding(P0=0xFFFF))  # no lane at all does nothing
