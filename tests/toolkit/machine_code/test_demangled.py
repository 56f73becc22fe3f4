"""Symbols of kernels, as their source writes them."""

import shutil
import subprocess

import pytest

from toolkit.machine_code.demangled import demangled, parameters_of
from toolkit.machine_code.kernel_names import alike, plain_name
from toolkit.machine_code.kernel_source import compile_kernel


@pytest.mark.parametrize(
    ("symbol", "name", "parameters"),
    [
        ("_Z4gemmPf", "gemm", ["float *"]),
        ("_Z4nonev", "none", []),
        ("_Z7softmaxILi256EfEvPKT0_i", "softmax<256, float>", ["const float *", "int"]),
        ("_Z3addPKfS0_Pf", "add", ["const float *", "const float *", "float *"]),
        ("_ZN4deep2er4gemmILin8EEEvPf", "deep::er::gemm<-8>", ["float *"]),
        ("_Z1kILb1EdEvPT0_S1_PKS0_", "k<true, double>", ["double *", "double *", "const double *"]),
        ("_ZN2ns1kINS_1AELi3EEEvT_PS2_", "ns::k<ns::A, 3>", ["ns::A", "ns::A *"]),
        ("_Z1kIJLi1ELi2EEEvv", "k<1, 2>", []),
        ("_Z1fPPfPKiy", "f", ["float **", "const int *", "unsigned long long"]),
        ("_Z1f6float4P6__half", "f", ["float4", "__half *"]),
        ("_ZL6staticPi", "static", ["int *"]),
    ],
)
def test_names_and_parameters_are_those_of_the_source(symbol, name, parameters):
    found = demangled(symbol)
    assert (found.name, list(found.parameters)) == (name, parameters)


@pytest.mark.parametrize(
    "symbol", ["plain", "_Z", "_Z9short", "_Z1kIXadEEvv", "_Z1fDpT_", "_ZZ1fvE"]
)
def test_other_symbols_are_left_as_they_are(symbol):
    assert demangled(symbol) is None
    assert parameters_of(symbol) is None


def test_a_name_that_is_read_in_part_has_no_arguments():
    assert plain_name("_ZN4deep4gemmIXadL_Z1fvEEEEvv") == "deep::gemm<...>"


def test_parameters_have_types_of_numpy():
    found = parameters_of("_Z1kPKfiPdhb")
    assert [one.dtype for one in found] == ["float32", "int32", "float64", "uint8", "int8"]
    assert [one.pointer for one in found] == [True, False, True, False, False]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("gemm<128,64>", "gemm<128, 64>", True),
        ("gemm<(int)128, 64u>", "gemm<128, 64>", True),
        ("gemm<128>", "gemm<64>", False),
        ("t<unsigned int>", "t<unsignedint>", False),
    ],
)
def test_names_are_compared_by_what_they_mean(a, b, same):
    assert alike(a, b) == same


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="needs c++filt of binutils")
def test_names_are_those_of_binutils():
    source = """namespace a { struct S { int x; }; template <class T> struct V { T x; }; }
        template <class T, int N, bool B> __global__ void k(const T *x, T *y, a::V<T> v, a::S *s,
            const unsigned char *const *p, long long n, short m, const a::V<a::S> *w) {}"""
    symbol = compile_kernel(source, "k<double, -3, false>", target="sm_90").symbol
    text = subprocess.run(
        ["c++filt", symbol], capture_output=True, text=True, check=True
    ).stdout.strip()
    found = demangled(symbol)
    assert text.startswith(f"void {found.name}(")
    assert text.count(",") == found.name.count(",") + len(found.parameters) - 1
