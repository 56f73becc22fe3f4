"""Arguments as text: what each means, and one clear line for each mistake."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import InputError, UnavailableError, UnknownNameError
from tests.refusals import refusal
from toolkit.cli.argument_syntax import (
    BufferArgument,
    make_arguments,
    parse_arguments,
)
from toolkit.cli.typed_numbers import TYPES, number
from toolkit.launch import random_arrays
from toolkit.launch.texture import Surface, Texture
from toolkit.machine_code.signature import signature


def made(*texts, seed=1):
    return make_arguments(parse_arguments(texts), seed=seed)


def refused(*texts):
    return refusal(InputError, made, *texts)


# --- what they mean -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[3]=zeros", np.zeros(3, np.float32)),
        ("f32[2,3]=ones", np.ones((2, 3), np.float32)),
        ("i64[2,2]=arange", np.array([[0, 1], [2, 3]])),
        ("f16[2]=2.5", np.array([2.5, 2.5], np.float16)),
        ("u8[2]=0xff", np.array([255, 255], np.uint8)),
        ("f32[1]=inf", np.array([np.inf], np.float32)),
        ("f32[0]", np.zeros(0, np.float32)),
        ("f32[2, 0, 3]=ones", np.zeros((2, 0, 3), np.float32)),
        ("float64[1]=-1e-3", np.array([-1e-3])),
        ("bool[2]=true", np.array([True, True])),
        ("i8[300]=arange", np.arange(300).astype(np.int8)),  # wraps
        ("c64[2]=1.5-2j", np.array([1.5 - 2j] * 2, np.complex64)),
        ("c128[2]=arange", np.array([0, 1 + 0j])),
        ("complex64[1]=2i", np.array([2j], np.complex64)),
        ("bf16[2]=1.5", np.full(2, 1.5, ml_dtypes.bfloat16)),
        ("bfloat16[3]=arange", np.arange(3).astype(ml_dtypes.bfloat16)),
        ("e4m3[2]=448", np.full(2, 448, ml_dtypes.float8_e4m3fn)),
        ("e5m2[2]=ones", np.ones(2, ml_dtypes.float8_e5m2)),
        ("bf16[1]=-inf", np.full(1, -np.inf, ml_dtypes.bfloat16)),
    ],
)
def test_a_buffer_has_a_type_a_shape_and_a_content(text, expected):
    (array,) = made(text)
    assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
    assert array.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i32=4096", np.int32(4096)),
        ("i32=-1", np.int32(-1)),
        ("u32=0xffff_ffff", np.uint32(2**32 - 1)),
        ("f32=1.5", np.float32(1.5)),
        ("f64=-2e-3", np.float64(-2e-3)),
        ("float16=65504", np.float16(65504)),
        ("int8=-128", np.int8(-128)),
        ("int=3", np.int32(3)),
        ("double=3", np.float64(3)),
        ("bool=False", np.bool_(False)),
        ("bool=1", np.bool_(True)),
        ("c64=1+2j", np.complex64(1 + 2j)),
        ("bf16=-3", ml_dtypes.bfloat16(-3)),
        ("e5m2=0.5", ml_dtypes.float8_e5m2(0.5)),
    ],
)
def test_a_value_has_its_type(text, expected):
    (value,) = made(text)
    assert type(value) is type(expected)
    assert value == expected


def test_a_struct_is_laid_out_as_in_c():
    (struct,) = made("struct:i8=1,f64=2.0,i32=3")
    # char, 7 bytes of padding, double, int, 4 bytes at the end
    assert struct.tobytes().hex() == (
        "01" + "00" * 7 + np.float64(2.0).tobytes().hex() + "03000000" + "00" * 4
    )


def test_an_array_of_structs_has_a_fill_for_each_field():
    structs, scalar, unwritten = made(
        "struct[4,2]:i8=arange,f32[3]=1.5,bf16=zeros", "struct[2]:c64", "struct[2]:i8=unwritten"
    )
    # char, 3 bytes of padding, three floats, bfloat16, 2 bytes at the end
    assert (structs.shape, structs.dtype.itemsize) == ((4, 2), 20)
    assert [structs.dtype.fields[f"f{k}"][1] for k in range(3)] == [0, 4, 16]
    assert structs["f0"].reshape(-1).tolist() == list(range(8))
    assert (structs["f1"] == 1.5).all()
    assert structs["f1"].shape == (4, 2, 3)
    assert not structs["f2"].astype(float).any()
    assert abs(scalar["f0"]).max() > 0
    assert unwritten.tobytes() == b"\xff\xff"


@pytest.mark.parametrize("name", ["bf16", "e4m3", "e5m2"])
def test_small_floats_come_from_a_file_by_their_bytes(name, tmp_path):
    (array,) = made(f"{name}[100]")
    assert -1 <= array.astype(float).min() < -0.9
    np.save(tmp_path / "x.npy", array.view(f"V{array.itemsize}"))
    (loaded,) = made(f"{name}[100]={tmp_path}/x.npy")
    assert loaded.dtype == array.dtype
    assert loaded.tobytes() == array.tobytes()


def test_structs_come_from_a_file(tmp_path):
    (array,) = made("struct[5]:i8,f64")
    np.save(tmp_path / "x.npy", array)
    (loaded,) = made(str(tmp_path / "x.npy"))
    assert loaded.dtype == array.dtype
    assert loaded.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fp8[8]", "fp8 is one of two types: give e4m3 or e5m2"),
        ("e4m3[8]=inf", "float8_e4m3fn has no infinity: give a number up to 448"),
        ("f16[70000]=arange", "69999 does not fit: float16 ends at 65504"),
        ("e4m3[500]=arange", "499 does not fit: float8_e4m3fn ends at 448"),
        ("e4m3[8]=1000", "1000 does not fit: float8_e4m3fn ends at 448"),
        ("bf16[8]=1e39", "1e39 does not fit: bfloat16 ends at 3.38953e+38"),
        ("c64[8]=x", "a fill 'x' is not known"),
        ("c64=1+", "'1+' is not a complex number: give one such as 1.5, 2j or 1-2j"),
        ("struct[8]", "its field 0 '' is not understood: give types, such as struct[64]:i32"),
        ("struct[8]:i32,7", "unknown type '7'"),
        ("struct[8]:i32=unwritten,f32", "all fields of a struct are unwritten, or none"),
    ],
)
def test_mistakes_in_these_types_are_told(text, said):
    assert said in refused(text)


def test_without_ml_dtypes_its_types_are_refused_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    said = refusal(UnavailableError, parse_arguments, ["bf16[8]"])
    assert said == "arrays of bfloat16 need ml_dtypes: pip install ml_dtypes"


def test_random_floats_lie_around_zero_and_integers_are_small():
    floats, halves, integers, bytes_, truths = made(
        "f32[10000]", "f16[10000]", "i64[10000]", "i8[10000]=random", "bool[1000]"
    )
    assert -1 <= floats.min() < -0.99
    assert 0.99 < floats.max() <= 1
    assert floats.dtype == np.float32
    assert -1 <= halves.min() < halves.max() <= 1
    for small in (integers, bytes_):
        assert (small.min(), small.max()) == (0, 99)
    assert set(truths.tolist()) == {False, True}


def test_random_content_follows_from_the_seed_and_the_position():
    first, second = made("f32[100]", "f32[100]")
    assert first.tolist() != second.tolist()
    assert made("i32=1", "f32[100]")[1].tolist() == second.tolist()
    assert made("f32[100]", seed=2)[0].tolist() != first.tolist()


@pytest.mark.parametrize("of_type", [np.float32, np.float64])
def test_random_floats_that_are_made_in_parts_are_those_of_one_call(of_type):
    shape = (3, random_arrays.IN_CACHE - 1)
    found = random_arrays.random_array(shape, np.dtype(of_type), np.random.default_rng(5))
    assert (found == 2 * np.random.default_rng(5).random(shape, dtype=of_type) - 1).all()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.float32(7).reshape(()),
        np.zeros((0, 4), np.float32),
    ],
)
def test_a_file_is_a_buffer_as_it_was_saved(array):
    np.save("data.npy", array)
    (loaded,) = made("data.npy")
    assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
    assert loaded.tolist() == array.tolist()
    loaded[...] = 1  # a copy, not the file


def test_a_file_fills_a_buffer_of_its_type_and_shape():
    np.save("data.npy", np.ones((2, 3), np.float32))
    assert made("f32[2,3]=data.npy")[0].tolist() == [[1, 1, 1]] * 2
    assert refused("f32[3,2]=data.npy") == (
        "--arg 0 ('f32[3,2]=data.npy'): data.npy holds float32 of shape [2, 3], not float32 of "
        "[3, 2]: give 'data.npy' alone to take it as it is"
    )


# --- mistakes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not understood: give 'f32[1024]', "),
        ("x", "it is not understood: give 'f32[1024]', "),
        ("f32[4]x", "it is not understood: give 'f32[1024]', "),
        ("f32", "a size or a value is missing: give 'f32[1024]' or 'f32=1'"),
        ("int32", "a size or a value is missing: give 'int32[1024]' or 'int32=1'"),
        ("f23[3]", "unknown type 'f23': did you mean 'f32'?"),
        ("=3", "unknown type ''"),
        ("[3]", "unknown type ''"),
        ("f32[]", "[] is not a size: give one such as [1024] or [64,64]"),
        ("f32[-1]", "[-1] is not a size"),
        ("f32[1.5]", "[1.5] is not a size"),
        ("f32[４]", "[４] is not a size"),
        ("f32[4**4]", "[4**4] is not a size"),
        (f"f32[{'9' * 30}]", "[999999999999999999999999999999] is not a size"),
        (
            "f32[4]=zeroes",
            "a fill 'zeroes' is not known: give random, zeros, ones, arange, unwritten, a num",
        ),
        ("f32[4]=", "a fill '' is not known"),
        ("i32[4]=1.5", "'1.5' is not an integer: give one such as 4096, -1 or 0x1000"),
        ("i8=128", "128 does not fit: int8 holds -128 to 127"),
        ("u8=-1", "-1 does not fit: uint8 holds 0 to 255"),
        ("bool=2", "2 does not fit: bool holds 0 to 1"),
        ("i32=", "'' is not an integer"),
        ("i32=1e6", "'1e6' is not an integer"),
        (f"i32={'9' * 5000}", "'99999"),
        ("f32=one", "'one' is not a number: give one such as 1.5, -2e-3, inf or nan"),
        ("f32=1e39", "1e39 does not fit: float32 ends at 3.40282e+38"),
        ("f16=70000", "70000 does not fit: float16 ends at 65504"),
        ("f64=1e400", "1e400 does not fit: float64 ends at 1.79769e+308"),
        ("f32=-1e400", "-1e400 does not fit: float32 ends at 3.40282e+38"),
        ("f16=1e400", "1e400 does not fit: float16 ends at 65504"),
        ("f32[4]=1e400", "1e400 does not fit: float32 ends at 3.40282e+38"),
        ("struct:i32=1,f64=1e400", "1e400 does not fit: float64 ends at 1.79769e+308"),
        (f"f32[{','.join('1' * 65)}]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"),
        (f"f32[{'*'.join(['9' * 18] * 20)}]", "[999999999999999999*999999999999999999*9999999"),
        ("struct:", "its field 0 '' is not understood: give a type and a value, such as i32=1"),
        ("struct:i32", "its field 0 'i32' is not understood"),
        ("struct:i32=1,", "its field 1 '' is not understood"),
        ("struct:i32=1,f32[2]", "its field 1 'f32[2]' is not understood"),
        ("struct:i32=1,f23=2", "unknown type 'f23'"),
        ("absent.npy", "absent.npy cannot be read as an array: No such file or directory"),
        ("f32[2]=absent.npy", "absent.npy cannot be read as an array: No such file or directory"),
        ("absent\0.npy", "absent\0.npy cannot be read as an array: embedded null byte"),
    ],
)
def test_a_mistake_is_one_line_that_says_where(text, message):
    said = refused("i32=1", text)
    assert said.startswith("--arg 1 (")
    assert f"): {message}" in said
    assert len(said) < 400


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY", b"PK\x05\x06" + b"\0" * 18])
def test_a_file_that_holds_no_array_is_one_line(content):
    Path("data.npy").write_bytes(content)
    assert refused("data.npy").startswith("--arg 0 ('data.npy'): data.npy ")


def test_an_array_of_python_objects_is_not_loaded():
    np.save("data.npy", np.array([{}], dtype=object))
    assert "data.npy cannot be read as an array" in refused("data.npy")


def test_several_arrays_in_a_file_are_refused():
    with Path("data.npy").open("wb") as file:
        np.savez(file, a=np.zeros(1), b=np.zeros(1))
    assert refused("data.npy").endswith("cannot be read as an array: numpy.save did not write it")


def test_buffers_beyond_memory_are_refused_before_any_is_made():
    parsed = parse_arguments(["f32[10]", "f32[1000000,1000000]"])
    assert parsed[1].bytes == 4 * 10**12
    assert refused("f32[10]", "f32[1000000,1000000]").startswith(
        "the buffers take 4,000 GB on the host, "
    )
    assert refused("f32[10]", "f32[1000000,1000000]").endswith(
        "GB are free: make 'f32[1000000,1000000]' smaller"
    )


# --- what the source declares -------------------------------------------------------------------


def typed(text, declaration):
    (value,) = parse_arguments([text], signature(f"__global__ void k({declaration}) {{}}", "k"))
    return value


@pytest.mark.parametrize(
    ("text", "declaration", "value"),
    [
        ("4096", "int n", np.int32(4096)),
        ("-1", "long long n", np.int64(-1)),
        ("0xff", "unsigned char n", np.uint8(255)),
        ("3", "float x", np.float32(3)),
        (".5", "double x", np.float64(0.5)),
        ("-2e-3", "half x", np.float16(-2e-3)),
    ],
)
def test_a_bare_number_has_the_declared_type(text, declaration, value):
    found = typed(text, declaration)
    assert (found, found.dtype) == (value, value.dtype)


@pytest.mark.parametrize(
    ("text", "declaration", "message"),
    [
        ("4096", "float *x", "the kernel takes `float *x`: give a buffer, such as f32[4096]"),
        ("4096", "T n", "`T n` is not a plain type: give one, such as i32=4096"),
        ("4096", "", "the type of this number is unknown here: give one, such as i32=4096"),
        ("1.5", "int n", "'1.5' is not an integer: give one such as 4096, -1 or 0x1000"),
        ("300", "char n", "300 does not fit: int8 holds -128 to 127"),
    ],
)
def test_a_bare_number_of_no_known_type_is_refused(text, declaration, message):
    assert refusal(InputError, typed, text, declaration) == f"--arg 0 ('{text}'): {message}"


@pytest.mark.parametrize("text", ["inf", "-inf", "Infinity", "nan", "+NaN"])
def test_no_number_and_infinity_need_no_type(text):
    found = typed(text, "float x")
    assert found.dtype == np.float32
    np.testing.assert_equal(found, np.float32(text))
    assert refusal(InputError, typed, text, "int n").endswith("give one such as 4096, -1 or 0x1000")


def test_a_size_may_be_a_product():
    found = parse_arguments(["f16[8192*4096]", "f32[ 4 * 2,3]"])
    assert [one.shape for one in found if isinstance(one, BufferArgument)] == [(33554432,), (8, 3)]
    assert refused("f32[4*]") == (
        "--arg 0 ('f32[4*]'): [4*] is not a size: give one such as [1024] or [64,64]"
    )


# --- any text, any number ---------------------------------------------------------------------


@given(st.sampled_from([t for t in TYPES.values() if t.kind in "iu"]), st.integers())
def test_integers_fit_or_are_refused(dtype, value):
    limits = np.iinfo(dtype)
    if limits.min <= value <= limits.max:
        assert number(str(value), dtype) == dtype.type(value)
    else:
        assert "does not fit" in refusal(InputError, number, str(value), dtype)


@given(st.sampled_from([TYPES["f32"], TYPES["f64"]]), st.floats(width=32))
def test_floats_keep_their_bits(dtype, value):
    result = number(repr(value), dtype)
    assert np.isnan(value) == np.isnan(result)
    assert np.isnan(value) or result == value


@pytest.mark.parametrize(
    ("text", "shape", "options"),
    [
        ("tex:f32[4,8]", (4, 8), {}),
        ("tex:f32[4,8]=zeros,linear,border", (4, 8), {"filter": "linear", "address": "border"}),
        (
            "tex:u8x4[4,8],float,normalized,wrap,mirror",
            (4, 8, 4),
            {"read": "float", "normalized": True, "address": ["wrap", "mirror"], "channels": 4},
        ),
        ("tex:f16x2[3,4,8],layered", (3, 4, 8, 2), {"layered": True, "channels": 2}),
        ("tex:i32[64]", (64,), {"is_memory": True}),
        ("tex:i32[64],array", (64,), {"is_memory": False}),
        ("tex:f32[64],linear", (64,), {"is_memory": False}),
    ],
)
def test_textures_are_buffers_with_options(text, shape, options):
    (texture,) = made(text)
    assert isinstance(texture, Texture)
    assert texture.array.shape == shape
    assert {name: getattr(texture, name) for name in options} == options


def test_surfaces_and_textures_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.save("image.npy", image)
    texture, surface = made("tex:image.npy,x4,float,linear", "surf:u8x4[2,3]=image.npy")
    assert isinstance(surface, Surface)
    assert texture.channels == surface.channels == 4
    assert np.array_equal(texture.array, image)
    assert np.array_equal(surface.array, image)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tex:f32[4,8],bilinear", "unknown option of tex: 'bilinear': did you mean 'linear'"),
        ("surf:f32[4,8],linear", "unknown option of surf: 'linear'"),
        ("tex:u8x3[4,8]", "3 channels: give 1, 2 or 4"),
        ("tex:f64[4,8]", "an array of float64: give one of uint8"),
        ("tex:f32[4,8]=unwritten", "cannot be unwritten: give zeros"),
        ("tex:i32=4", "is of an array: give one such as tex:f32\\[512,512\\]"),
        ("tex:f32[4,8],wrap", "needs normalized coordinates"),
        ("tex:u32[4,8],linear", "a linear filter of uint32: take float32"),
        ("tex:u8[4,8],linear", "a linear filter of uint8: read them as float"),
        ("tex:f32[1,2,3,4]", "give 1 to 3 axes of texels"),
        ("tex:f32[2,200000]", "200,000 texels along x: there are at most 131,072"),
    ],
)
def test_textures_that_cuda_does_not_have(text, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        parse_arguments([text])
