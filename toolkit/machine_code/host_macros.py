"""Replacements for the host's headers, which NVRTC lacks, as far as device code needs them.

nvcc reads the host's own headers; NVRTC has none, though most files with kernels include some.
The replacements declare what device code uses: types, limits, and names that are built in anyway.
The types are the same as those of CUDA's own headers for NVRTC (cuda/std/cstdint), so that a source
may include both.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


def _table(lines: str) -> dict[str, str]:
    """A name and what it stands for on each line."""
    return dict(line.split(maxsplit=1) for line in lines.strip().splitlines())


_TYPES = _table("""
int8_t signed char
int16_t signed short
int32_t signed int
int64_t signed long long
uint8_t unsigned char
uint16_t unsigned short
uint32_t unsigned int
uint64_t unsigned long long
intptr_t signed long long
uintptr_t unsigned long long
""")

_MACROS = {
    "math.h": _table("""
INFINITY __int_as_float(0x7f800000)
NAN __int_as_float(0x7fffffff)
HUGE_VALF __int_as_float(0x7f800000)
HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
M_E 2.7182818284590452354
M_LOG2E 1.4426950408889634074
M_LN2 0.69314718055994530942
M_PI 3.14159265358979323846
M_PI_2 1.57079632679489661923
M_1_PI 0.31830988618379067154
M_2_SQRTPI 1.12837916709551257390
M_SQRT2 1.41421356237309504880
M_SQRT1_2 0.70710678118654752440
"""),
    "float.h": _table("""
FLT_MAX 3.402823466e+38f
FLT_MIN 1.175494351e-38f
FLT_EPSILON 1.192092896e-07f
DBL_MAX 1.7976931348623158e+308
DBL_MIN 2.2250738585072014e-308
DBL_EPSILON 2.2204460492503131e-16
"""),
    "limits.h": _table("""
CHAR_BIT 8
SCHAR_MIN (-128)
SCHAR_MAX 127
UCHAR_MAX 255
SHRT_MIN (-32768)
SHRT_MAX 32767
USHRT_MAX 65535
INT_MIN (-2147483647 - 1)
INT_MAX 2147483647
UINT_MAX 4294967295u
LONG_MIN (-9223372036854775807l - 1)
LONG_MAX 9223372036854775807l
ULONG_MAX 18446744073709551615ul
LLONG_MIN (-9223372036854775807ll - 1)
LLONG_MAX 9223372036854775807ll
ULLONG_MAX 18446744073709551615ull
"""),
    "stdint.h": {
        **{f"INT{n}_MIN": f"(-{2 ** (n - 1) - 1} - 1)" for n in (8, 16, 32)},
        **{f"INT{n}_MAX": str(2 ** (n - 1) - 1) for n in (8, 16, 32)},
        **{f"UINT{n}_MAX": str(2**n - 1) for n in (8, 16)},
        "UINT32_MAX": "4294967295u",
        "INT64_MIN": "(-9223372036854775807ll - 1)",
        "INT64_MAX": "9223372036854775807ll",
        "UINT64_MAX": "18446744073709551615ull",
    },
}

_ONCE = "#pragma once\n"

# Built in, or of no use on a device.
_EMPTY = ("assert.h", "stdio.h", "stdlib.h", "string.h", "stdbool.h")

# What a program begins with though its kernels need none of it: NVRTC knows threadIdx, float4,
# atomicAdd and the rest by itself.
_EMPTY_OF_CUDA = ("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h")


def _texts() -> dict[str, str]:
    """The headers under their names in C and, where C++ has one, in C++."""
    types = "".join(f"typedef {meaning} {name};\n" for name, meaning in _TYPES.items())
    in_std = "".join(f"using ::{name}; " for name in _TYPES)
    texts = {
        "stddef.h": "namespace std { using ::size_t; using ::ptrdiff_t; }\n",
        "stdint.h": f"{types}namespace std {{ {in_std}}}\n",
        **dict.fromkeys(_EMPTY, ""),
    }
    for header, macros in _MACROS.items():
        texts[header] = texts.get(header, "") + "".join(
            f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in macros.items()
        )
    of_cpp = {f"c{name.removesuffix('.h')}": text for name, text in texts.items()}
    return {name: _ONCE + text for name, text in (texts | of_cpp).items()}


HOST_HEADERS: Mapping[str, str] = MappingProxyType(_texts() | dict.fromkeys(_EMPTY_OF_CUDA, _ONCE))

# Where the names come from that the headers define.
HEADER_OF: Mapping[str, str] = MappingProxyType(
    {name: header for header, macros in _MACROS.items() for name in macros}
    | dict.fromkeys(_TYPES, "stdint.h")
)

# What a source with host code is given beside these: headers of C++ whose declarations device code
# may use are those of CUDA; nvcc takes the host's.
_OF_LIBCUDACXX = (
    "array",
    "complex",
    "functional",
    "limits",
    "tuple",
    "type_traits",
    "utility",
)
# The parts of CUB for blocks and warps; the others are launched by the host.
_OF_CUB = (
    "block/block_discontinuity",
    "block/block_exchange",
    "block/block_histogram",
    "block/block_load",
    "block/block_radix_sort",
    "block/block_reduce",
    "block/block_scan",
    "block/block_store",
    "warp/warp_reduce",
    "warp/warp_scan",
)
#: by the name of the namespace whose use says that a kernel needs them
DEVICE_SIDE_HEADERS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "std": {
            name: f"{_ONCE}#include <cuda/std/{name}>\n"
            "namespace std { using namespace cuda::std; }\n"
            for name in _OF_LIBCUDACXX
        },
        "cub": {"cub/cub.cuh": _ONCE + "".join(f"#include <cub/{name}.cuh>\n" for name in _OF_CUB)},
    }
)

# Headers of libraries for hosts, whose types device code may use: what they include, or declare.
_OF_TORCH = ("torch/extension.h", "torch/all.h", "torch/torch.h", "torch/types.h", "ATen/ATen.h")
_OF_CUBLAS = ("cublas_v2.h", "cublasLt.h", "cublas.h")
_OF_CUFFT = ("cufft.h", "cufftXt.h")
_HALVES = {
    "#include <cuda_fp16.h>\n": frozenset((b"half", b"__half", b"half2", b"__half2")),
    "#include <cuda_bf16.h>\n": frozenset((b"__nv_bfloat16", b"__nv_bfloat162", b"nv_bfloat16")),
}
_LIMITS = {"#include <limits>\n": frozenset((b"numeric_limits",))}
_COMPLEX = {"#include <cuComplex.h>\n": frozenset((b"cuComplex", b"cuDoubleComplex"))}
_OF_FFT = {
    "#include <cuComplex.h>\n"
    "typedef float cufftReal;\ntypedef double cufftDoubleReal;\n"
    "typedef cuComplex cufftComplex;\ntypedef cuDoubleComplex cufftDoubleComplex;\n": frozenset(
        (b"cufftReal", b"cufftDoubleReal", b"cufftComplex", b"cufftDoubleComplex")
    )
}
_PARTS: Mapping[tuple[str, ...], Mapping[str, frozenset[bytes]]] = {
    _OF_TORCH: _HALVES | _LIMITS,
    _OF_CUBLAS: _HALVES | _COMPLEX,
    _OF_CUFFT: _OF_FFT,
}
LIBRARY_HEADERS = frozenset(name for names in _PARTS for name in names)


def library_headers(used: frozenset[bytes]) -> dict[str, str]:
    """Texts in place of headers of libraries for hosts: the parts that `used` words need."""
    return {
        name: _ONCE + "".join(text for text, words in parts.items() if words & used)
        for names, parts in _PARTS.items()
        for name in names
    }


_FUNCTIONS_IN_STD = (
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 "
    "expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan ldexp lgamma "
    "llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter pow "
    "remainder remquo rint round scalbln scalbn signbit sin sinh sqrt tan tanh tgamma trunc "
    "memcpy memset"
)

# Read before a source with host code, as nvcc reads <math.h>, <limits.h> and the like.
PRELUDE = (
    "".join(f"#include <{name}>\n" for name in ("math.h", "limits.h", "stdint.h", "stdlib.h"))
    + "#define register\n"  # C++17 has no such word
    + "typedef unsigned short ushort;\ntypedef unsigned int uint;\ntypedef unsigned long ulong;\n"
    + "namespace std {\n"
    + "".join(f"using ::{name};\n" for name in _FUNCTIONS_IN_STD.split())
    + """class string;
class ostream;
template <class T, class A = void> class vector;
template <class T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
}
"""
)
