"""Arguments of bfloat16, FP8, complex, structured and bool types, from Python and compared."""

import struct

import ml_dtypes
import numpy as np
import pytest

from analysis.errors import InputError
from tests.refusals import refusal
from toolkit import simulate
from toolkit.cli.call import _npy
from toolkit.gpu.context import packed
from toolkit.launch.checks import check_arguments
from toolkit.launch.element_types import SMALL_FLOATS, epsilon, type_named
from toolkit.machine_code.attributes import KernelParameter
from toolkit.machine_code.signature import signature
from toolkit.remedies.verification import _bound, _error

BF16, E4M3, E5M2 = (type_named(one.name) for one in SMALL_FLOATS.values())
STRUCT = np.dtype([("key", np.int8), ("value", np.float32)], align=True)


def given(declared, argument):
    """Check an argument against a parameter that is declared so."""
    parameters = signature(f"__global__ void k({declared} x) {{}}", "k")
    size = 8 if isinstance(argument, np.ndarray) else argument.nbytes
    check_arguments("k", [argument], [KernelParameter(ordinal=0, offset=0, size=size)], parameters)


BF16_DATA, E4M3_DATA, E5M2_DATA = (np.zeros(4, x) for x in (BF16, E4M3, E5M2))
HALVES, WORDS, BYTES = np.zeros(4, np.float16), np.zeros(4, np.uint16), np.zeros(4, np.uint8)
FITS = [
    ("const __nv_bfloat16 *", BF16_DATA),
    ("nv_bfloat16 *__restrict__", WORDS),  # their bits
    ("__nv_bfloat162 *", BF16_DATA),
    ("unsigned short *", BF16_DATA),
    ("__nv_fp8_e4m3 *", E4M3_DATA),
    ("__nv_fp8_e5m2 *", BYTES),
    ("__nv_fp8x4_e5m2 *", E5M2_DATA),
    ("__nv_fp8_storage_t *", E4M3_DATA),
    ("cuFloatComplex *", np.zeros(4, np.complex64)),
    ("cuDoubleComplex *", np.zeros(4, np.complex128)),
    ("cuComplex *", np.zeros(8, np.float32)),
    ("const thrust::complex<float> *", np.zeros(4, np.complex64)),
    ("cuda::std::complex< double > *", np.zeros(4, np.complex128)),
    ("float2 *", np.zeros(4, np.complex64)),
    ("bool *", np.zeros(4, np.bool_)),
    ("Item *", np.zeros(4, STRUCT)),
    ("T *", BF16_DATA),  # nothing is known of it
    ("__nv_bfloat16", BF16.type(1)),
    ("float2", np.complex64(1)),
    ("bool", np.bool_(True)),
]
REFUSED = [
    ("__nv_bfloat16 *", HALVES, "an array of float16: give bfloat16 (x.astype(ml_dtypes.bfloat16)"),
    ("half *", BF16_DATA, "an array of bfloat16: give float16 (x.astype('float16') converts"),
    ("float *", BF16_DATA, "an array of bfloat16: give float32"),
    ("float *", E4M3_DATA, "an array of float8_e4m3fn: give float32"),
    ("__nv_fp8_e4m3 *", E5M2_DATA, "an array of float8_e5m2: give float8_e4m3fn"),
    ("__nv_fp8_e4m3 *", np.zeros(4, np.float32), "an array of float32: give float8_e4m3fn"),
    ("cuComplex *", np.zeros(4, np.complex128), "an array of complex128: give float32"),
    ("cuDoubleComplex *", np.zeros(4, np.complex64), "an array of complex64: give float64"),
    ("__nv_bfloat16", np.float16(1), "is float16 1.0: give bfloat16"),
    ("half", BF16.type(1), "is bfloat16 1.0: give float16"),
]


@pytest.mark.parametrize(("declared", "argument"), FITS)
def test_a_right_type_is_accepted(declared, argument):
    given(declared, argument)


@pytest.mark.parametrize(("declared", "argument", "said"), REFUSED)
def test_a_wrong_type_is_refused_with_the_conversion(declared, argument, said):
    assert said in refusal(InputError, given, declared, argument)


SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp8.h>
struct Item { char key; float value; };
extern "C" __global__ void twice(__nv_bfloat16 *b, __nv_fp8_e4m3 *e, float2 *c, Item *s, bool *t)
{
    const int i = threadIdx.x;
    b[i] = __float2bfloat16(2 * __bfloat162float(b[i]));
    e[i] = __nv_fp8_e4m3(2 * float(e[i]));
    c[i] = make_float2(2 * c[i].x, 2 * c[i].y);
    s[i].value *= s[i].key;
    t[i] = !t[i];
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])  # which convert FP8 by integer arithmetic
def test_outputs_have_the_types_of_the_arguments(arch):
    numbers = np.arange(32) / 4
    items = np.zeros(32, STRUCT)
    items["key"], items["value"] = np.arange(32), 0.5
    arrays = [numbers.astype(BF16), numbers.astype(E4M3), (numbers - 1j).astype(np.complex64)]
    arrays += [items, np.arange(32) % 2 == 0]
    b, e, c, s, t = simulate(SOURCE, grid=1, block=32, arguments=arrays, arch=arch).outputs
    assert (b.dtype, e.dtype, s.dtype) == (BF16, E4M3, STRUCT)
    np.testing.assert_array_equal(b, (2 * numbers).astype(BF16))
    np.testing.assert_array_equal(e, (2 * numbers.astype(E4M3).astype(np.float32)).astype(E4M3))
    np.testing.assert_array_equal(c, (2 * (numbers - 1j)).astype(np.complex64))
    np.testing.assert_array_equal(s["value"], np.arange(32, dtype=np.float32) / 2)
    np.testing.assert_array_equal(t, np.arange(32) % 2 == 1)


@pytest.mark.parametrize("dtype", [BF16, E4M3, E5M2])
def test_the_distance_from_one_to_the_next_number(dtype):
    one = np.ones(1, dtype)
    following = (one.view(f"u{dtype.itemsize}") + 1).view(dtype)
    assert epsilon(dtype) == float(following[0]) - 1 == float(ml_dtypes.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [BF16, E4M3, E5M2])
def test_a_saved_array_is_read_as_bytes(dtype, tmp_path):
    array = np.arange(8).astype(dtype)
    (tmp_path / "x.npy").write_bytes(_npy(array))
    assert (np.load(tmp_path / "x.npy").view(dtype) == array).all()


@pytest.mark.parametrize(
    "value", [BF16.type(1.5), E5M2.type(-2), np.complex64(1 - 2j), np.float16(1.5)]
)
def test_a_value_of_these_types_is_passed_by_its_bytes(value):
    """PyCUDA has formats of its own, and none of them is for float16."""
    form, values = packed([value])
    assert form == f"{value.nbytes}s"
    assert struct.pack("=" + form, *values) == value.tobytes()


def difference(old, new):
    return _error(old.dtype, old.view(np.uint8), new.view(np.uint8))


def test_outputs_of_these_types_are_compared_as_numbers():
    """NaN equals NaN, whatever its bits; a struct is as its fields, without what is between."""
    old = np.array([1, 2, np.nan, 4], BF16)
    new = old.copy()
    new.view(np.uint16)[2] = 0x7FFF  # another NaN
    assert difference(old, new) == 0
    new[1] = 2.015625
    assert difference(old, new) == 0.0078125 <= _bound(BF16)
    pairs = np.array([1 + 2j, np.nan], np.complex64)
    close = (pairs.view(np.float32) * np.float32(1 + 2**-20)).view(np.complex64)
    assert 0 < difference(pairs, close) <= _bound(pairs.dtype)
    assert difference(pairs, np.array([1 + 2j, 1], np.complex64)) == np.inf
    structs = np.zeros(2, STRUCT)
    other = np.frombuffer(bytearray(structs.tobytes()), STRUCT)
    other.view(np.uint8)[1] = 7  # between the fields
    assert difference(structs, other) == 0
    other["value"][1] = 1e-3
    assert difference(structs, other) > _bound(STRUCT)
    other["key"][0] = 1
    assert difference(structs, other) == np.inf
    assert difference(np.array([True]), np.array([False])) == np.inf


def test_structs_across_the_ends_of_pages_are_compared_as_bytes():
    dtype = np.dtype([("x", np.float32, 3)])  # 65,536 bytes are no whole number of them
    old, new = np.zeros(1 << 16, np.uint8), np.ones(1 << 16, np.uint8)
    assert _error(dtype, old, new) == np.inf
    assert _bound(dtype) == 0
