"""Parameters of a kernel: facts read from the source, and facts left open."""

import pytest

from kernels.variant import EXTENTS
from tests.rungs import every_rung
from toolkit.machine_code.signature import Declared, kernel_names, signature


def declared(parameter):
    (found,) = signature(f"__global__ void k({parameter}) {{}}", "k") or ()
    return found


@pytest.mark.parametrize(
    ("text", "name", "kind", "size"),
    [
        ("int n", "n", "integer", 4),
        ("const unsigned n", "n", "integer", 4),
        ("long long n", "n", "integer", 8),
        ("unsigned long n", "n", "integer", 8),
        ("long double x", "x", None, None),
        ("short int n", "n", "integer", 2),
        ("bool b", "b", "integer", 1),
        ("std::uint8_t n", "n", "integer", 1),
        ("size_t n", "n", "integer", 8),
        ("float x", "x", "float", 4),
        ("double x", "x", "float", 8),
        ("__half x", "x", "float", 2),
        ("float", None, "float", 4),
        ("float4 v", "v", None, None),  # a struct
        ("Pair<int, float> p", "p", None, None),
        ("const __grid_constant__ Config config", "config", None, None),
    ],
)
def test_values(text, name, kind, size):
    assert declared(text) == Declared(text=text, name=name, pointer=False, kind=kind, size=size)


@pytest.mark.parametrize(
    ("text", "name", "kind", "size"),
    [
        ("float *x", "x", "float", 4),
        ("const float* __restrict__ x", "x", "float", 4),
        ("float x[]", "x", "float", 4),
        ("float x[4][4]", "x", "float", 4),
        ("unsigned char *bytes", "bytes", "integer", 1),
        ("void *p", "p", None, None),
        ("const T *x", "x", None, None),
        ("float **rows", "rows", None, None),
        ("int (*f)(int, float)", None, None, None),
    ],
)
def test_pointers(text, name, kind, size):
    assert declared(text) == Declared(text=text, name=name, pointer=True, kind=kind, size=size)


def test_a_pointer_to_vectors_has_components():
    found = declared("float4 *x")
    assert (found.kind, found.size, found.components) == ("float", 4, 4)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("int up", "int32"),
        ("unsigned n", "uint32"),
        ("const uchar n", "uint8"),
        ("std::uint64_t n", "uint64"),
        ("size_t n", "uint64"),
        ("bool b", "int8"),
        ("double x", "float64"),
        ("half x", "float16"),
        ("T x", None),
    ],
)
def test_plain_types_have_a_name_in_numpy(text, dtype):
    assert declared(text).dtype == dtype


SOURCE = """
// __global__ void commented(int n) {}
const char *text = "__global__ void quoted(int n) {}";
template <int B, typename T>
__global__ void __launch_bounds__(B * (2), 1) gemm(const T *a, /* rows, */ int m) {}
extern "C" __global__ void empty() {}
static __global__ __launch_bounds__(32) void nothing(void) {}
__global__ void twice(int a) {}
__global__ void twice(float a) {}
__global__ void declared(int n);
__global__ void declared(int n) {}
#define KERNEL __global__
"""


def test_a_kernel_is_found_by_its_name_alone():
    for name in ("gemm<128, float>", "ns::gemm<2, ns::T>", "gemm"):
        parameters = signature(SOURCE, name)
        assert [parameter.text for parameter in parameters] == ["const T *a", "int m"]


def test_kernels_are_listed_in_order():
    assert kernel_names(SOURCE) == ["gemm", "empty", "nothing", "twice", "declared"]


def test_what_is_not_clear_is_left_open():
    assert signature(SOURCE, "empty") == signature(SOURCE, "nothing") == ()
    for absent in ("commented", "quoted", "twice", "none"):
        assert signature(SOURCE, absent) is None
    assert signature(SOURCE, "declared") is not None


@pytest.mark.parametrize("text", ["__global__", "__global__ void k(", "__global__ ; f(x) {}"])
def test_half_a_declaration_is_none(text):
    assert kernel_names(text) == []


@every_rung
def test_the_ladders_kernels_are_read(variant):
    parameters = signature(variant.source, variant.entry)
    for role, declared in zip(variant.arguments, parameters, strict=True):
        assert declared.pointer == (role in ("A", "B", "C", "workspace"))
        if role in EXTENTS:
            assert (declared.name, declared.kind, declared.size) == (role, "integer", 4)
        elif not role.startswith("tiles") and role != "workspace":
            assert (declared.kind, declared.size) == ("float", 4)
