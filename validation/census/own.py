"""Kernels written for the census: one for each function, intrinsic and PTX instruction.

`sources(arch)` yields files of CUDA C++, each with many kernels; the kernels of CUB and Thrust are
those that the calls in cub.cu instantiate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent

_HEAD = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>
typedef long long ll; typedef unsigned long long ull; typedef unsigned u32;
typedef __int128 i128; typedef unsigned __int128 u128;
typedef unsigned char uchar; typedef signed char schar; typedef unsigned short ushort;
typedef __half half_t; typedef __half2 half2_t;
typedef __nv_bfloat16 bf16_t; typedef __nv_bfloat162 bf162_t;
#define I (blockIdx.x * blockDim.x + threadIdx.x)
template <class T> __device__ void put(void *r, T x) { ((T *)r)[I] = x; }
"""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file to compile."""

    name: str
    text: str


def kernel(name: str, types: str, expression: str) -> str:
    """A kernel on one line that stores an expression of a, b, c of `types` ("float float int")."""
    names = "abcd"[: len(types.split())]
    pairs = list(zip(types.split(), names, strict=True))
    parameters = "".join(f", const {kind} *p{x}" for kind, x in pairs)
    loads = " ".join(f"{kind} {x} = p{x}[I];" for kind, x in pairs)
    return f"__global__ void {name}(void *r{parameters}) {{ {loads} put(r, {expression}); }}"


def assembly(name: str, instruction: str) -> str:
    """The same of a PTX instruction such as "add.s32 d:r, a:r, b:r"; letters are constraints."""
    kinds = {"r": "u32", "l": "ull", "f": "float", "d": "double", "h": "ushort"}
    operands = re.findall(r"\b([abcde]):([rlfdh])", instruction)
    outputs = [(x, k) for x, k in dict(operands).items() if x in "de"]
    inputs = [(x, k) for x, k in dict(operands).items() if x not in "de"]
    text = instruction.replace("%", "%%")
    for number, (x, k) in enumerate([*outputs, *inputs]):
        text = text.replace(f"{x}:{k}", f"%{number}")
    parameters = "".join(f", const {kinds[k]} *p{x}" for x, k in inputs)
    loads = " ".join(f"{kinds[k]} {x} = p{x}[I];" for x, k in inputs)
    declared = " ".join(f"{kinds[k]} {x} = 0;" for x, k in outputs)
    out = ", ".join(f'"+{k}"({x})' for x, k in outputs)
    given = ", ".join(f'"{k}"({x})' for x, k in inputs)
    stores = " ".join(f"put((char *)r + {n} * 4096, {x});" for n, (x, _) in enumerate(outputs))
    return (
        f"__global__ void {name}(void *r{parameters}) {{ {loads} {declared} "
        f'asm volatile("{{ {text}; }}" : {out} : {given} : "memory"); {stores} }}'
    )


def _named(group: str, number: int, expression: str) -> str:
    word = re.sub(r"\W+", "_", expression).strip("_")[:40]
    return f"{group}_{number}_{word}"


def _file(group: str, rows: list[tuple[str, str]]) -> Source:
    lines = [
        kernel(_named(group, number, expression), types, expression)
        for number, (types, expression) in enumerate(rows)
    ]
    return Source(name=f"{group}.cu", text=_HEAD + "\n".join(lines) + "\n")


def _calls(types: str, names: str, arguments: str) -> list[tuple[str, str]]:
    return [(types, f"{name}({arguments})") for name in names.split()]


_ONE = """acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 erfc
erfcinv erfcx erf erfinv exp10 exp2 exp expm1 fabs floor ilogb j0 j1 lgamma llrint llround log10
log1p log2 logb log lrint lround nearbyint normcdf normcdfinv rcbrt rint round rsqrt sin sinh sinpi
sqrt tan tanh tgamma trunc y0 y1"""
_TWO = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder rhypot"


def _math() -> Iterator[Source]:
    for kind, suffix in (("float", "f"), ("double", "")):
        one = " ".join(f"{x}{suffix}" for x in _ONE.split())
        two = " ".join(f"{x}{suffix}" for x in _TWO.split())
        rows = _calls(kind, one, "a") + _calls(f"{kind} {kind}", two, "a, b")
        rows += _calls(
            f"{kind} {kind} {kind}", f"fma{suffix} norm3d{suffix} rnorm3d{suffix}", "a, b, c"
        )
        rows += _calls(
            f"{kind} {kind} {kind} {kind}", f"norm4d{suffix} rnorm4d{suffix}", "a, b, c, d"
        )
        rows += _calls(f"{kind} int", f"ldexp{suffix} scalbn{suffix} scalbln{suffix}", "a, b")
        rows += _calls(f"int {kind}", f"jn{suffix} yn{suffix}", "a, b")
        rows += _calls(kind, "isfinite isinf isnan signbit", "a")
        helper = f"""
template <class T> __device__ T both(T a, int w) {{ T x, y; int e;
  switch (w) {{ case 0: sincos{suffix}(a, &x, &y); return x + y;
  case 1: sincospi{suffix}(a, &x, &y); return x + y;
  case 2: x = frexp{suffix}(a, &e); return x + e; case 3: x = modf{suffix}(a, &y); return x + y;
  default: x = remquo{suffix}(a, a + 3, &e); return x + e; }} }}
"""
        rows += [(kind, f"both<{kind}>(a, {w})") for w in range(5)]
        rows += [
            (f"{kind} {kind}", f"a {op} b") for op in ["+", "-", "*", "/", "<", "==", "<=", "!="]
        ]
        source = _file(f"math_{kind}", rows)
        yield Source(name=source.name, text=source.text.replace("#define I", helper + "#define I"))
        if kind == "float":
            yield Source(
                name="fast_math_float.cu",
                text="// --use_fast_math\n"
                + source.text.replace("#define I", helper + "#define I"),
            )


def _rounded(names: str) -> str:
    return " ".join(f"{name}_{r}" for name in names.split() for r in ("rn", "rz", "ru", "rd"))


def _float_intrinsics() -> Source:
    rows = _calls(
        "float",
        "__cosf __exp10f __expf __log10f __log2f __logf __saturatef __sinf __tanf "
        "__frsqrt_rn " + _rounded("__frcp __fsqrt"),
        "a",
    )
    rows += _calls(
        "float float", "__powf __fdividef " + _rounded("__fadd __fdiv __fmul __fsub"), "a, b"
    )
    rows += _calls("float float float", _rounded("__fmaf __fmaf_ieee"), "a, b, c")
    rows += _calls("double", _rounded("__drcp __dsqrt"), "a")
    rows += _calls("double double", _rounded("__dadd __ddiv __dmul __dsub"), "a, b")
    rows += _calls("double double double", _rounded("__fma"), "a, b, c")
    return _file("intrinsics_float", rows)


def _integer_intrinsics() -> Source:
    rows = _calls("int", "__clz __ffs abs", "a") + _calls("u32", "__brev __popc", "a")
    rows += _calls("ll", "__clzll __ffsll llabs", "a") + _calls("ull", "__brevll __popcll", "a")
    rows += _calls("int int", "__hadd __rhadd __mul24 __mulhi min max", "a, b")
    rows += _calls("u32 u32", "__uhadd __urhadd __umul24 __umulhi umin umax", "a, b")
    rows += _calls("ll ll", "__mul64hi llmin llmax", "a, b")
    rows += _calls("ull ull", "__umul64hi ullmin ullmax", "a, b")
    rows += _calls(
        "u32 u32 u32",
        "__byte_perm __funnelshift_l __funnelshift_lc __funnelshift_r "
        "__funnelshift_rc __usad __dp4a __dp2a_lo __dp2a_hi",
        "a, b, c",
    )
    rows += _calls("int int u32", "__sad", "a, b, c") + _calls(
        "int int int", "__dp4a __dp2a_lo __dp2a_hi", "a, b, c"
    )
    rows += _calls("u32 u32 int", "__fns", "a, b, c")
    simd1 = [f"__{x}{n}" for n in (2, 4) for x in ("vabs", "vabsss", "vneg", "vnegss")]
    simd2 = [
        f"__{x}{n}"
        for n in (2, 4)
        for x in [
            "vabsdiffs",
            "vabsdiffu",
            "vadd",
            "vaddss",
            "vaddus",
            "vavgs",
            "vavgu",
            "vcmpeq",
            "vcmpges",
            "vcmpgeu",
            "vcmpgts",
            "vcmpgtu",
            "vcmples",
            "vcmpleu",
            "vcmplts",
            "vcmpltu",
            "vcmpne",
            "vhaddu",
            "vmaxs",
            "vmaxu",
            "vmins",
            "vminu",
            "vsads",
            "vsadu",
            "vseteq",
            "vsetges",
            "vsetgeu",
            "vsetgts",
            "vsetgtu",
            "vsetles",
            "vsetleu",
            "vsetlts",
            "vsetltu",
            "vsetne",
            "vsub",
            "vsubss",
            "vsubus",
        ]
    ]
    rows += _calls("u32", " ".join(simd1), "a") + _calls("u32 u32", " ".join(simd2), "a, b")
    dpx3 = [
        f"__{x}{k}{r}"
        for x in ("viaddmax", "viaddmin", "vimax3", "vimin3")
        for k in ("_s32", "_s16x2", "_u32", "_u16x2")
        for r in ("", "_relu")
        if not (r and "u" in k)
    ]
    rows += _calls("u32 u32 u32", " ".join(dpx3), "a, b, c")
    rows += _calls(
        "u32 u32", "__vimax_s32_relu __vimin_s32_relu __vimax_s16x2_relu __vimin_s16x2_relu", "a, b"
    )
    for x in ("max", "min"):
        for k in ("s32", "u32"):
            rows.append(
                ("u32 u32", f"[&] {{ bool p; auto x = __vib{x}_{k}(a, b, &p); return x + p; }}()")
            )
        for k in ("s16x2", "u16x2"):
            rows.append(
                (
                    "u32 u32",
                    f"[&] {{ bool p, q; auto x = __vib{x}_{k}(a, b, &p, &q); return x + p + 2 * q; }}()",  # noqa: E501
                )
            )
    return _file("intrinsics_integer", rows)


def _operators() -> Source:
    rows = []
    for kind in ["schar", "uchar", "short", "ushort", "int", "u32", "ll", "ull", "i128", "u128"]:
        both = f"{kind} {kind}"
        rows += [
            (both, f"({kind})(a {op} b)")
            for op in ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]
        ]
        rows += [(both, f"a {op} b") for op in ["<", "<=", "==", "!="]]
        rows += [
            (both, "a < b ? a : b"),
            (kind, f"({kind})(a / 7)"),
            (kind, f"({kind})(a % 10)"),
            (kind, f"({kind})(-a)"),
            (kind, f"({kind})(a * 5 + 3)"),
            (kind, f"({kind})(a << 3)"),
            (f"{kind} {kind} {kind}", f"({kind})(a * b + c)"),
            (f"{kind} {kind} {kind}", f"({kind})((a & b) | ~c)"),
        ]
    kinds = [
        "schar",
        "uchar",
        "short",
        "ushort",
        "int",
        "u32",
        "ll",
        "ull",
        "float",
        "double",
        "half_t",
        "bf16_t",
    ]
    for x in kinds:
        rows += [(x, f"({y})a") for y in kinds if x != y and {x, y} != {"half_t", "bf16_t"}]
    return _file("operators", rows)


def _conversions() -> Source:
    rows = []
    for x, y, kind in (
        ("float", "int", "float"), ("float", "uint", "float"), ("float", "ll", "float"),
        ("float", "ull", "float"), ("double", "int", "double"), ("double", "uint", "double"),
        ("double", "ll", "double"), ("double", "ull", "double"), ("double", "float", "double"),
        ("int", "float", "int"), ("uint", "float", "u32"), ("ll", "float", "ll"),
        ("ull", "float", "ull"), ("ll", "double", "ll"), ("ull", "double", "ull"),
        ("half", "int", "half_t"), ("half", "uint", "half_t"), ("half", "short", "half_t"),
        ("half", "ushort", "half_t"), ("half", "ll", "half_t"), ("half", "ull", "half_t"),
        ("int", "half", "int"), ("uint", "half", "u32"), ("short", "half", "short"),
        ("ushort", "half", "ushort"), ("ll", "half", "ll"), ("ull", "half", "ull"),
        ("float", "half", "float"),
        ("bfloat16", "int", "bf16_t"), ("bfloat16", "uint", "bf16_t"),
        ("bfloat16", "short", "bf16_t"), ("bfloat16", "ushort", "bf16_t"),
        ("bfloat16", "ll", "bf16_t"), ("bfloat16", "ull", "bf16_t"),
        ("int", "bfloat16", "int"), ("uint", "bfloat16", "u32"), ("short", "bfloat16", "short"),
        ("ushort", "bfloat16", "ushort"), ("ll", "bfloat16", "ll"), ("ull", "bfloat16", "ull"),
        ("float", "bfloat16", "float"),
    ):  # fmt: skip
        rows += _calls(kind, _rounded(f"__{x}2{y}"), "a")
    rows += _calls("half_t", "__half2char_rz __half2uchar_rz __half2float", "a")
    rows += _calls("bf16_t", "__bfloat162char_rz __bfloat162uchar_rz __bfloat162float", "a")
    rows += _calls(
        "double",
        "__double2half __double2bfloat16 __double2hiint __double2loint __double_as_longlong",
        "a",
    )
    rows += _calls("int", "__int2double_rn __int_as_float", "a") + _calls(
        "u32", "__uint2double_rn", "a"
    )
    rows += _calls("float2", "__float22half2_rn __float22bfloat162_rn", "a")
    rows += _calls(
        "float float", "__floats2half2_rn __floats2bfloat162_rn __hiloint2double", "a, b"
    )
    rows += _calls(
        "half2_t", "__half22float2 __low2float __high2float __lowhigh2highlow __low2half2", "a"
    )
    rows += _calls("bf162_t", "__bfloat1622float2 __low2float __high2float __lowhigh2highlow", "a")
    for name, kinds in (
        ("fp8", ("e4m3", "e5m2", "e8m0")),
        ("fp6", ("e2m3", "e3m2")),
        ("fp4", ("e2m1",)),
    ):
        for kind in kinds:
            x = f"__nv_{name}_{kind}"
            rows += [
                (t, f"({x})a")
                for t in ["float", "double", "half_t", "bf16_t", "int", "u32", "short", "ll"]
            ]
            rows += [(x, "(float)a"), (x, "(half_t)a"), (x, "(int)a"), (x, "(bf16_t)a")]
            for n, t in (("x2", "float2"), ("x4", "float4"), ("x2", "half2_t"), ("x2", "bf162_t")):
                v = f"__nv_{name}{n}_{kind}"
                rows += [(t, f"({v})a")]
                if t.startswith("float"):
                    rows += [(v, f"({t})a")]
    return _file("conversions", rows)


def _halves() -> Source:
    rows = []
    one = "hceil hcos hexp hexp10 hexp2 hfloor hlog hlog10 hlog2 hrcp hrint hrsqrt hsin hsqrt htanh htanh_approx htrunc __habs __hneg"  # noqa: E501
    two = "__hadd __hsub __hmul __hdiv __hadd_sat __hsub_sat __hmul_sat __hadd_rn __hmul_rn __hmax __hmin __hmax_nan __hmin_nan"  # noqa: E501
    compares = "__heq __hne __hlt __hle __hgt __hge __hequ __hneu __hltu __hleu __hgtu __hgeu"
    for x in ("half_t", "bf16_t"):
        rows += _calls(x, one + " __hisnan __hisinf", "a") + _calls(
            f"{x} {x}", f"{two} {compares}", "a, b"
        )
        rows += _calls(f"{x} {x} {x}", "__hfma __hfma_sat __hfma_relu", "a, b, c")
    ones = " ".join(re.sub(r"^h", "h2", n) if n.startswith("h") else n + "2" for n in one.split())
    twos = "__hadd2 __hsub2 __hmul2 __h2div __hadd2_sat __hsub2_sat __hmul2_sat __hadd2_rn __hmul2_rn __hmax2 __hmin2 __hmax2_nan __hmin2_nan"  # noqa: E501
    compares2 = " ".join(f"{n}2" for n in compares.split())
    masks = " ".join(f"{n}2_mask" for n in compares.split())
    every = " ".join(n.replace("__h", "__hb") + "2" for n in compares.split())
    for x in ("half2_t", "bf162_t"):
        rows += _calls(x, ones.replace("h2tanh_approx", "h2tanh_approx") + " __hisnan2", "a")
        rows += _calls(f"{x} {x}", f"{twos} {compares2} {masks} {every}", "a, b")
        rows += _calls(f"{x} {x} {x}", "__hfma2 __hfma2_sat __hfma2_relu __hcmadd", "a, b, c")
    return _file("halves", rows)


def _instructions(arch: str) -> Iterator[Source]:
    """The PTX of ptx.txt: lines "instruction", below lines "[group since]"."""
    group, since, number = "", 0, 0
    lines: list[str] = []

    def finished() -> Iterator[Source]:
        if lines and int(arch[3:]) >= since:
            yield Source(name=f"ptx_{group}.cu", text=_HEAD + "\n".join(lines) + "\n")

    for line in (HERE / "ptx.txt").read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if heading := re.fullmatch(r"\[(\w+)(?: sm_(\d+))?\]", text):
            yield from finished()
            group, since, lines, number = heading[1], int(heading[2] or 0), [], 0
        elif text:
            for instruction in _spread(text):
                lines.append(assembly(_named(group, number, instruction), instruction))
                number += 1  # noqa: SIM113
    yield from finished()


def _spread(text: str) -> Iterator[str]:
    """One text for each choice of {x|y}; a choice may be empty."""
    if choice := re.search(r"\{([^{}]*\|[^{}]*)\}", text):
        for option in choice[1].split("|"):
            yield from _spread(text[: choice.start()] + option + text[choice.end() :])
    else:
        yield text


def sources(arch: str) -> Iterator[Source]:
    """All files for an architecture such as "sm_90"."""
    yield from _math()
    yield from (_float_intrinsics(), _integer_intrinsics(), _operators(), _conversions(), _halves())
    yield from _instructions(arch)
    for path in sorted(HERE.glob("*.cu")):
        if path.name != "special.cu":
            yield Source(name=path.name, text=path.read_text(encoding="utf-8"))
