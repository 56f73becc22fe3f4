"""Intrinsics of CUDA and instructions of PTX, each with its meaning in C for the host's compiler.

The meanings are written from the CUDA Math API (integer, SIMD, casting, rounded arithmetic) and
the PTX ISA, not from the code that a compiler emits for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

HEAD = re.compile(r"(?P<result>.+) (?P<name>\w+)\((?P<arguments>.*)\)")
ASSEMBLY = {"int": "r", "unsigned": "r", "float": "f", "double": "d"}  # constraints of inline PTX
REAL_BITS = {"float": 32, "double": 64}
ROUNDINGS = {"rn": "TONEAREST", "rz": "TOWARDZERO", "ru": "UPWARD", "rd": "DOWNWARD"}


@dataclass(frozen=True, kw_only=True)
class Intrinsic:
    """A function, such as "int __ffs(int a)": its body on the host, and on a GPU if it has one.

    The names of arguments are of one letter.
    """

    head: str
    host: str
    gpu: str = ""

    @property
    def result(self) -> str:
        return self.part("result")

    @property
    def name(self) -> str:
        return self.part("name")

    @property
    def arguments(self) -> list[str]:
        """Their types."""
        return [argument[:-2] for argument in self.part("arguments").split(", ")]

    def part(self, name: str) -> str:
        parts = HEAD.fullmatch(self.head)
        assert parts, self.head
        return parts[name]


def on_the_host() -> str:
    return HELPERS + "\n".join(f"static {i.head} {{ {i.host} }}" for i in INTRINSICS)


def on_a_gpu() -> str:
    return HIDDEN + "\n".join(f"__device__ {i.head} {{ {i.gpu} }}" for i in INTRINSICS if i.gpu)


# What NVRTC 13.0.88 gets wrong, so that its machine code computes something else on any processor:
# - the upper half of __vsubus2, max(a - b, 0) << 16, is taken for a number without a sign bit:
#   for __vabsdiffu2(__vsubus2(a, b), c) on sm_89 the PTX masks bit 31 away;
# - on sm_90 and later, where only the lower half of a sum such as __vadd2 or __vnegss2 is used,
#   VIADD.16x2 has 0x0 for a constant: (short)__vadd2(a, 0x12345678), or the one of ~a + 1.
# Turned by a number of bits that is known at run time (none), every bit is used, and unknown.
HIDDEN = """
__device__ volatile unsigned nothing;
__device__ unsigned hidden(unsigned x) { return __funnelshift_l(x, x, nothing); }
#define __vsubus2(a, b) hidden(__vsubus2(a, b))
#define __vadd2(a, b) hidden(__vadd2(a, b))
#define __vsub2(a, b) hidden(__vsub2(a, b))
#define __vneg2(a) hidden(__vneg2(a))
#define __vnegss2(a) hidden(__vnegss2(a))
"""

HELPERS = """
#include <fenv.h>
#include <math.h>
#include <string.h>

static unsigned rotated(unsigned high, unsigned low, unsigned n) {
    return n == 0 ? high : n == 32 ? low : high << n | low >> (32 - n);
}
static long long within(long long x, long long low, long long high) {
    return x < low ? low : x > high ? high : x;
}
static double within_one(double x) { return x > 1 ? 1 : x > 0 ? x : 0; }

/* The half nearest to x in the present rounding mode; NaN as the hardware writes it. */
static unsigned to_half(double x) {
    const unsigned sign = signbit(x) ? 0x8000 : 0;
    if (x != x) return 0x7fff;
    if (x == 0 || isinf(x)) return sign | (x == 0 ? 0 : 0x7c00);
    int e;
    frexp(x, &e);
    const int place = e - 11 < -24 ? -24 : e - 11; /* of the last digit */
    const unsigned digits = (unsigned)fabs(nearbyint(ldexp(x, -place)));
    const unsigned bits = ((unsigned)(place + 24) << 10) + digits;
    if (bits < 0x7c00) return sign | bits;
    const int mode = fegetround();
    const int away = mode == FE_TONEAREST || mode == (sign ? FE_DOWNWARD : FE_UPWARD);
    return sign | (away ? 0x7c00 : 0x7bff);
}

static double of_half(unsigned h) {
    const int exponent = h >> 10 & 31, digits = h & 1023;
    const double size = exponent == 31 ? (digits ? NAN : INFINITY)
                      : ldexp(digits + (exponent ? 1024 : 0), (exponent ? exponent : 1) - 25);
    return h & 0x8000 ? -size : size;
}

/* x + y with its last bit odd where it is not exact: what is rounded again is rounded once. */
static double sum_to_odd(double x, double y) {
    const double sum = x + y, z = sum - x, error = (x - (sum - z)) + (y - z);
    long long bits;
    memcpy(&bits, &sum, 8);
    if (!isfinite(sum) || error == 0 || bits & 1) return sum;
    return nextafter(sum, error > 0 ? INFINITY : -INFINITY);
}
"""


def bits() -> Iterator[Intrinsic]:
    for kind, suffix, signed, width in (
        ("unsigned", "", "int", 32),
        ("unsigned long long", "ll", "long long", 64),
    ):
        yield Intrinsic(
            head=f"int __popc{suffix}({kind} a)",
            host=f"return __builtin_popcount{suffix}(a);",
        )
        yield Intrinsic(
            head=f"int __clz{suffix}({signed} a)",
            host=f"return a ? __builtin_clz{suffix}(a) : {width};",
        )
        yield Intrinsic(
            head=f"int __ffs{suffix}({signed} a)", host=f"return __builtin_ffs{suffix}(a);"
        )
        yield Intrinsic(
            head=f"{kind} __brev{suffix}({kind} a)",
            host=f"{kind} r = 0; for (int k = 0; k < {width}; k++)"
            f" r |= (a >> k & 1) << ({width - 1} - k); return r;",
        )
    yield Intrinsic(
        head="unsigned __byte_perm(unsigned a, unsigned b, unsigned s)",
        host="unsigned long long w = (unsigned long long)b << 32 | a; unsigned r = 0;"
        " for (int k = 0; k < 4; k++)"
        " r |= (unsigned)(w >> 8 * (s >> 4 * k & 7) & 255) << 8 * k; return r;",
    )
    for name, value in (
        ("l", "rotated(h, l, s & 31)"),
        ("lc", "rotated(h, l, s > 32 ? 32 : s)"),
        ("r", "rotated(h, l, 32 - (s & 31))"),
        ("rc", "rotated(h, l, s > 32 ? 0 : 32 - s)"),
    ):
        yield Intrinsic(
            head=f"unsigned __funnelshift_{name}(unsigned l, unsigned h, unsigned s)",
            host=f"return {value};",
        )


def fields() -> Iterator[Intrinsic]:
    """Bit fields, from the loops of the PTX ISA; prmt with the signs of bytes."""
    # ptxas 13.0.88 folds bfe.s32 from a constant place beyond the word to ones, whatever the sign
    place = "p &= 31, n &= 63;"
    last = "(p + n - 1 < 31 ? p + n - 1 : 31)"
    for kind, letter, sign in (("int", "s", f"n ? a >> {last} & 1 : 0"), ("unsigned", "u", "0")):
        yield ptx(
            f"bfe.{letter}32",
            f"{kind} field_{letter}({kind} a, unsigned p, unsigned n)",
            f"unsigned r = 0, sign = {sign};"
            " for (unsigned k = 0; k < 32; k++)"
            " r |= (k < n && p + k <= 31 ? a >> (p + k) & 1 : sign) << k; return r;",
            first=place,
        )
    yield ptx(
        "bfi.b32",
        "unsigned field_into(unsigned a, unsigned b, unsigned p, unsigned n)",
        "for (unsigned k = 0; k < n && p + k <= 31; k++)"
        " b = (b & ~(1u << (p + k))) | (a >> k & 1) << (p + k); return b;",
        first=place,
    )
    yield ptx(
        "prmt.b32",
        "unsigned bytes_and_signs(unsigned a, unsigned b, unsigned s)",
        "unsigned r = 0; for (int k = 0; k < 4; k++) { const unsigned n = s >> 4 * k & 15;"
        " const unsigned byte = (n & 4 ? b : a) >> 8 * (n & 3) & 255;"
        " r |= (n & 8 ? (byte >> 7) * 255 : byte) << 8 * k; } return r;",
    )


def products() -> Iterator[Intrinsic]:
    for u, kind, wide, widest in (
        ("", "int", "long long", "__int128"),
        ("u", "unsigned", "unsigned long long", "unsigned __int128"),
    ):
        two, three = f"{kind} a, {kind} b", f"{kind} a, {kind} b, unsigned c"
        sign = kind if u else "signed"
        yield Intrinsic(head=f"{kind} __{u}mulhi({two})", host=f"return ({wide})a * b >> 32;")
        yield Intrinsic(
            head=f"{wide} __{u}mul64hi({wide} a, {wide} b)", host=f"return ({widest})a * b >> 64;"
        )
        low = f"({wide})(({kind})((unsigned)%s << 8) >> 8)"
        # not __mul24: its square is taken for a number without a sign, and is cut to 32 bits
        yield ptx(
            f"mul24.lo.{'u' if u else 's'}32",
            f"{kind} {u}mul24_low({two})",
            f"return {low % 'a'} * ({low % 'b'});",
        )
        yield Intrinsic(
            head=f"unsigned __{u}sad({three})",
            host="return (a < b ? (unsigned)b - a : (unsigned)a - b) + c;",
        )
        yield Intrinsic(head=f"{kind} __{u}hadd({two})", host=f"return (({wide})a + b) >> 1;")
        yield Intrinsic(head=f"{kind} __{u}rhadd({two})", host=f"return (({wide})a + b + 1) >> 1;")
        total = f"{kind} %s({kind} a, {kind} b, {kind} c)"
        byte = f"(int)({sign} char)"
        yield Intrinsic(
            head=total % f"dp4a_{sign}",
            host=f"for (int k = 0; k < 32; k += 8) c += {byte}(a >> k) * {byte}(b >> k); return c;",
            gpu="return __dp4a(a, b, c);",
        )
        for half, first in (("lo", 0), ("hi", 16)):
            yield Intrinsic(
                head=total % f"dp2a_{half}_{sign}",
                host=f"for (int k = 0; k < 2; k++) c += (int)({sign} short)(a >> 16 * k)"
                f" * {byte}(b >> ({first} + 8 * k)); return c;",
                gpu=f"return __dp2a_{half}(a, b, c);",
            )


def saturating() -> Iterator[Intrinsic]:
    for name, arguments, value in (
        ("add", "int a, int b", "(long long)a + b"),
        ("sub", "int a, int b", "(long long)a - b"),
        ("mad.hi", "int a, int b, int c", "((long long)a * b >> 32) + c"),
    ):
        yield ptx(
            f"{name}.sat.s32",
            f"int {name.replace('.', '_')}_saturated({arguments})",
            f"return within({value}, -2147483648ll, 2147483647);",
        )


# Of each part of a word: x and y, z on its own, limited to the range where S is in it.
ONE, TWO = "unsigned a", "unsigned a, unsigned b"
PARTS = {
    # name: arguments, whether parts have a sign, value, whether it is limited
    "abs{n}": (ONE, True, "x < 0 ? -x : x", False),
    "absss{n}": (ONE, True, "x < 0 ? -x : x", True),
    "neg{n}": (ONE, True, "-x", False),
    "negss{n}": (ONE, True, "-x", True),
    "add{n}": (TWO, False, "x + y", False),
    "addss{n}": (TWO, True, "x + y", True),
    "addus{n}": (TWO, False, "x + y", True),
    "sub{n}": (TWO, False, "x - y", False),
    "subss{n}": (TWO, True, "x - y", True),
    "subus{n}": (TWO, False, "x - y", True),
    "avgs{n}": (TWO, True, "(x + y + (x + y >= 0)) >> 1", False),
    "avgu{n}": (TWO, False, "(x + y + 1) >> 1", False),
    "haddu{n}": (TWO, False, "(x + y) >> 1", False),
    "absdiffs{n}": (TWO, True, "x < y ? y - x : x - y", False),
    "absdiffu{n}": (TWO, False, "x < y ? y - x : x - y", False),
    "maxs{n}": (TWO, True, "x > y ? x : y", False),
    "maxu{n}": (TWO, False, "x > y ? x : y", False),
    "mins{n}": (TWO, True, "x < y ? x : y", False),
    "minu{n}": (TWO, False, "x < y ? x : y", False),
}
RELATIONS = {"eq": "==", "ne": "!=", "ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


def of_parts(parts: int) -> Iterator[Intrinsic]:
    """The SIMD intrinsics on words of two or four parts."""
    for name, (arguments, signed, value, limited) in PARTS.items():
        yield of_each_part(
            f"unsigned __v{name.format(n=parts)}({arguments})", parts, signed, value, limited
        )
    for name, relation in RELATIONS.items():
        for letter in ("",) if name in ("eq", "ne") else ("s", "u"):
            for kind, truth in (("cmp", "-1"), ("set", "1")):
                yield of_each_part(
                    f"unsigned __v{kind}{name}{letter}{parts}({TWO})",
                    parts,
                    letter == "s",
                    f"x {relation} y ? {truth} : 0",
                )
    for letter in "su":
        yield of_each_part(
            f"unsigned __vsad{letter}{parts}({TWO})",
            parts,
            letter == "s",
            "x < y ? y - x : x - y",
            result="r += z",
        )


def of_each_part(
    head: str, parts: int, signed: bool, value: str, limited: bool = False, result: str = ""
) -> Intrinsic:
    width = 32 // parts
    kind = f"{'signed' if signed else 'unsigned'} {'short' if parts == 2 else 'char'}"
    least, most = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    second = f", y = ({kind})(b >> k)" if " b)" in head else ""
    result = result or f"r |= ((unsigned)z & {(1 << width) - 1}) << k"
    z = f"within({value}, {least}, {most})" if limited else value
    return Intrinsic(
        head=head,
        host=f"unsigned r = 0; for (int k = 0; k < 32; k += {width}) {{"
        f" const int x = ({kind})(a >> k){second}, z = {z}; {result}; }} return r;",
    )


def fused() -> Iterator[Intrinsic]:
    """The DPX intrinsics: the larger or smaller of a sum and a number, or of three numbers."""
    for suffix, kind, parts in (
        ("s32", "int", 1),
        ("u32", "unsigned", 1),
        ("s16x2", "short", 2),
        ("u16x2", "unsigned short", 2),
    ):
        word = "unsigned" if parts == 2 else kind
        three = f"({word} a, {word} b, {word} c)"
        # before sm_90 the sum is one of C++, which has no meaning where it overflows
        halved = "a >>= 1; b >>= 1;" if kind == "int" else ""
        for name, relation in (("max", ">"), ("min", "<")):
            for relu in ("", "_relu") if suffix[0] == "s" else ("",):
                for call, first, value in (
                    (f"viadd{name}", halved, f"({kind})(x + y)"),
                    (f"vi{name}3", "", f"x {relation} y ? x : y"),
                ):
                    yield Intrinsic(
                        head=f"{word} {call}_{suffix}{relu}{three}",
                        host=f"{first} unsigned r = 0;"
                        f" for (int k = 0; k < 32; k += {32 // parts}) {{"
                        f" const {kind} x = a >> k, y = b >> k, z = c >> k, f = {value},"
                        f" m = f {relation} z ? f : z, v = {'m < 0 ? 0 : m' if relu else 'm'};"
                        f" r |= ((unsigned)v & {(1 << 32 // parts) - 1}u) << k; }} return r;",
                        gpu=f"{first} return __{call}_{suffix}{relu}(a, b, c);",
                    )


def arithmetic() -> Iterator[Intrinsic]:
    """Sums, products, quotients and roots in the four roundings."""
    for letter, kind, suffix in (("f", "float", "f"), ("d", "double", "")):
        a, b, c = (f"{kind} {name}" for name in "abc")
        for rounding in ROUNDINGS:
            for name, arguments, value in (
                ("add", f"{a}, {b}", "a + b"),
                ("sub", f"{a}, {b}", "a - b"),
                ("mul", f"{a}, {b}", "a * b"),
                ("div", f"{a}, {b}", "a / b"),
                ("rcp", a, "1 / a"),
                ("sqrt", a, f"sqrt{suffix}(a)"),
                ("fma", f"{a}, {b}, {c}", f"fma{suffix}(a, b, c)"),
            ):
                call = "__fmaf" if (name, letter) == ("fma", "f") else f"__{letter}{name}"
                call = "__fma" if (name, letter) == ("fma", "d") else call
                yield rounded(f"{kind} {call}_{rounding}({arguments})", rounding, value)
        for name, relation, negative in (("min", "<", "a"), ("max", ">", "b")):
            # of zeros the one with a sign is smaller, of a number and NaN the number is the result
            yield Intrinsic(
                head=f"{kind} {name}_of_{kind}s({a}, {b})",
                host=f"if (a == b) return signbit({negative}) ? a : b;"
                f" return b != b || a {relation} b ? a : b;",
                gpu=f"return f{name}{suffix}(a, b);",
            )
    yield Intrinsic(head="float __saturatef(float a)", host="return within_one(a);")


def conversions() -> Iterator[Intrinsic]:
    whole = {"rn": "nearbyint", "rz": "trunc", "ru": "ceil", "rd": "floor"}
    for name, kind, width, least, most in (
        ("int", "int", 32, -(2.0**31), 2.0**31),
        ("uint", "unsigned", 32, 0.0, 2.0**32),
        ("ll", "long long", 64, -(2.0**63), 2.0**63),
        ("ull", "unsigned long long", 64, 0.0, 2.0**64),
    ):
        for real, (rounding, function) in product(("float", "double"), whole.items()):
            # PTX ISA, cvt: NaN becomes zero, or the uppermost bit where 64 bits take part
            nan = f"({kind})1 << {width - 1}" if "64" in f"{width} {REAL_BITS[real]}" else "0"
            upper = f"(({kind})({least!r}) - 1)"  # wraps
            yield Intrinsic(
                head=f"{kind} __{real}2{name}_{rounding}({real} a)",
                host=f"const double x = {function}(a); return x != x ? {nan}"
                f" : x <= {least!r} ? ({kind}){least!r} : x >= {most!r} ? {upper} : ({kind})x;",
            )
            if width >= REAL_BITS[real]:  # the others are exact, and have no rounding
                yield rounded(f"{real} __{name}2{real}_{rounding}({kind} a)", rounding, "a")
    for rounding in ROUNDINGS:
        yield rounded(f"float __double2float_{rounding}(double a)", rounding, "a")


def rounded(head: str, rounding: str, value: str) -> Intrinsic:
    """Volatile copies keep the operation between the changes of mode."""
    kinds = Intrinsic(head=head, host="")
    names = [argument[-1] for argument in kinds.part("arguments").split(", ")]
    copies = " ".join(
        f"volatile {kind} v{name} = {name};"
        for kind, name in zip(kinds.arguments, names, strict=True)
    )
    value = re.sub(r"\b([abc])\b", r"v\1", value)
    return Intrinsic(
        head=head,
        host=f"{copies} fesetround(FE_{ROUNDINGS[rounding]});"
        f" volatile {kinds.result} r = {value}; fesetround(FE_TONEAREST); return r;",
    )


def halves() -> Iterator[Intrinsic]:
    """Numbers of 16 bits: conversions, and arithmetic on pairs."""
    for rounding in ("rn", "rz"):
        # in both places: of a half alone ptxas 13.0.88 may leave the upper 16 bits undefined
        yield Intrinsic(
            head=f"unsigned half_{rounding}(float a)",
            host=f"fesetround(FE_{ROUNDINGS[rounding]}); const unsigned h = to_half(a);"
            " fesetround(FE_TONEAREST); return h << 16 | h;",
            gpu=f'unsigned d; asm("{{.reg .b16 h; cvt.{rounding}.f16.f32 h, %1;'
            ' mov.b32 %0, {h, h};}" : "=r"(d) : "f"(a)); return d;',
        )
    yield Intrinsic(
        head="float of_half_as_float(unsigned a)",
        host="return of_half(a);",
        gpu='float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)a)); return f;',
    )
    for name, arguments, value in (
        ("add.rn", "ab", "x + y"),
        ("sub.rn", "ab", "x - y"),
        ("mul.rn", "ab", "x * y"),
        ("add.rn.sat", "ab", "within_one(x + y)"),
        ("mul.rn.sat", "ab", "within_one(x * y)"),
        ("fma.rn", "abc", "sum_to_odd(x * y, z)"),
        ("fma.rn.sat", "abc", "within_one(sum_to_odd(x * y, z))"),
    ):
        numbers = ", ".join(
            f"{to} = of_half({a} >> k)" for to, a in zip("xyz", arguments, strict=False)
        )
        yield ptx(
            f"{name}.f16x2",
            f"unsigned halves_{name.replace('.', '_')}"
            f"({', '.join(f'unsigned {a}' for a in arguments)})",
            f"unsigned r = 0; for (int k = 0; k < 32; k += 16) {{ const double {numbers};"
            f" r |= to_half({value}) << k; }} return r;",
        )


def ptx(instruction: str, head: str, host: str, *, first: str = "") -> Intrinsic:
    """One instruction of PTX, after what is done `first` on both sides."""
    it = Intrinsic(head=head, host=first + host)
    places = ", ".join(f"%{k}" for k in range(len(it.arguments) + 1))
    operands = ", ".join(
        f'"{ASSEMBLY[argument[:-2]]}"({argument[-1]})'
        for argument in it.part("arguments").split(", ")
    )
    asm = f'asm("{instruction} {places};" : "={ASSEMBLY[it.result]}"(d) : {operands});'
    return Intrinsic(head=head, host=first + host, gpu=f"{first} {it.result} d; {asm} return d;")


INTRINSICS = (
    *bits(),
    *fields(),
    *products(),
    *saturating(),
    *of_parts(2),
    *of_parts(4),
    *fused(),
    *arithmetic(),
    *conversions(),
    *halves(),
)
