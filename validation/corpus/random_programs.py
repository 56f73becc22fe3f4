"""Random programs in what C and CUDA C++ have in common, with one meaning in both.

Every operation is defined for all operands: integers wrap (they are computed without a sign),
shifts and divisors are kept in range, numbers are clamped before they become integers or do so
through an intrinsic. Nothing depends on the sign or the digits of a NaN. Loops, switches, breaks
and returns depend on data, so that the lanes of a warp come apart.

    python -m validation.corpus.random_programs 7     # the program of seed 7, on stdout
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from validation.corpus import intrinsics

BITS = {"int": 32, "unsigned": 32, "long long": 64, "unsigned long long": 64, "short": 16}
REAL = {"float": "f", "double": ""}
TYPES = (*BITS, *REAL)
NUMBERS = (0, 1, 2, 31, 255, 65_535, 123_456_789, 0x5410, 0xBB99, 0x80FF7F01, 0x3C00BC01)
EXACT_OF_ONE = ("sqrt", "fabs", "floor", "ceil", "trunc", "rint", "round")
EXACT_OF_TWO = ("fmod", "remainder", "nextafter")
DEPTH = 3  # of statements in each other, and of expressions

COMMON = """
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))
#define HIGH(x) (unsigned)((unsigned long long)(x) >> 32)
#define MIX(x) (total = total * 16777619u ^ (unsigned)(x) ^ HIGH(x))
FUNCTION long long whole(double x) { return (long long)(x > -1e9 && x < 1e9 ? x : 17.0); }
"""
ON_THE_HOST = f"""#define FUNCTION static
{COMMON}{intrinsics.on_the_host()}
static long long bits_of(double x) {{ long long b; memcpy(&b, &x, 8); return x != x ? 1 : b; }}
static float float_of(unsigned b) {{ float x; memcpy(&x, &b, 4); return x; }}
"""
ON_A_GPU = f"""#define FUNCTION __device__
{COMMON}{intrinsics.on_a_gpu()}
__device__ long long bits_of(double x) {{ return x != x ? 1 : __double_as_longlong(x); }}
__device__ float float_of(unsigned b) {{ return __uint_as_float(b); }}
"""
RUN_ON_THE_HOST = """
void run(unsigned *out, const int *in, int n) {
    for (int t = 0; t < n; t++) out[t] = program(t, in);
}
"""
RUN_ON_A_GPU = """
extern "C" __global__ void run(unsigned *out, const int *in, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n) out[t] = program(t, in);
}
"""


def on_the_host(seed: int) -> str:
    return ON_THE_HOST + program(seed) + RUN_ON_THE_HOST


def on_a_gpu(seed: int) -> str:
    return ON_A_GPU + program(seed) + RUN_ON_A_GPU


def program(seed: int) -> str:
    """`unsigned program(int t, const int *in)`: thread t of 64, each with a number."""
    writer = Writer(random=random.Random(seed))
    head = "FUNCTION unsigned program(int t, const int *in) {"
    begin = "    unsigned total = in[t]; int array[8] = {in[0], in[1], t, 3, 2, 1, 7, in[t]};"
    body = [line for _ in range(6) for line in writer.statement(DEPTH, in_loop=False)]
    end = [
        *(f"MIX({writer.as_integer(name, kind)});" for name, kind in writer.variables),
        "for (int k = 0; k < 8; k++) MIX(array[k]);",
        "return total;",
    ]
    return "\n".join([head, begin, *(f"    {line}" for line in (*body, *end)), "}"])


@dataclass
class Writer:
    """Writes statements over the variables that are in scope."""

    random: random.Random
    variables: list[tuple[str, str]] = field(default_factory=list)
    names: int = 0
    types: tuple[str, ...] = TYPES
    expressions: int = DEPTH  # how deep values are
    intrinsics: float = 0.3  # share of the values
    returns: bool = True

    # Statements.

    def statement(self, depth: int, *, in_loop: bool) -> Iterator[str]:
        writers = [self.declaration, self.assignment, self.store, self.load]
        if depth:
            writers += [self.branch, self.loop, self.switch]
        writers += [self.leave] * in_loop
        yield from self.random.choice(writers)(depth, in_loop)

    def block(self, depth: int, in_loop: bool) -> Iterator[str]:
        known = len(self.variables)
        for _ in range(self.random.randint(1, 4)):
            yield from (f"    {line}" for line in self.statement(depth, in_loop=in_loop))
        del self.variables[known:]

    def declaration(self, depth: int, in_loop: bool) -> Iterator[str]:
        kind = self.random.choice(self.types)
        value = self.value(kind)
        yield f"{kind} {self.new(kind)} = {value};"

    def assignment(self, depth: int, in_loop: bool) -> Iterator[str]:
        name, kind = self.random.choice([*self.variables, ("total", "unsigned")])
        yield f"{name} = {self.value(kind)};"

    def store(self, depth: int, in_loop: bool) -> Iterator[str]:
        yield f"array[{self.value('unsigned', 1)} & 7] = {self.value('int')};"

    def load(self, depth: int, in_loop: bool) -> Iterator[str]:
        yield f"total += (unsigned)array[{self.value('unsigned', 1)} & 7];"

    def branch(self, depth: int, in_loop: bool) -> Iterator[str]:
        yield f"if ({self.condition()}) {{"
        yield from self.block(depth - 1, in_loop)
        if self.random.random() < 0.5:
            yield "} else {"
            yield from self.block(depth - 1, in_loop)
        yield "}"

    def loop(self, depth: int, in_loop: bool) -> Iterator[str]:
        self.names += 1
        turns = self.random.choice(("t & 3", "in[t] & 7", "(int)(total & 3) + 1", "3"))
        yield f"for (int i{self.names} = 0, n = {turns}; i{self.names} < n; i{self.names}++) {{"
        yield f"    total += i{self.names};"
        yield from self.block(depth - 1, in_loop=True)
        yield "}"

    def switch(self, depth: int, in_loop: bool) -> Iterator[str]:
        yield f"switch ({self.value('unsigned')} % {self.random.choice((3, 5, 9))}u) {{"
        for case in range(self.random.randint(2, 7)):
            yield f"case {case}: {{"
            yield from self.block(depth - 1, in_loop)
            yield "} break;" if self.random.random() < 0.7 else "}"
        yield "default: total ^= 77;"
        yield "}"

    def leave(self, depth: int, in_loop: bool) -> Iterator[str]:
        how = self.random.choice(("break", "continue", "return total")[: 2 + self.returns])
        yield f"if ({self.condition()}) {how};"

    def new(self, kind: str) -> str:
        self.names += 1
        name = f"v{self.names}"
        self.variables.append((name, kind))
        return name

    # Expressions.

    def condition(self) -> str:
        kind, relation = self.random.choice(self.types), self.random.choice(("<", ">=", "==", "!="))
        compared = f"{self.value(kind, 1)} {relation} {self.value(kind, 1)}"
        other = self.random.choice(("", "", " && (t & 2)", " || (total & 4)"))
        return f"({compared}){other}"

    def value(self, kind: str, depth: int | None = None) -> str:
        depth = self.expressions if depth is None else depth
        if depth == 0 or self.random.random() < 0.2:
            return self.leaf(kind)
        if self.random.random() < 0.15:
            other = self.random.choice(self.types)
            return self.converted(self.value(other, depth - 1), other, kind)
        if self.random.random() < 0.1:
            return f"(({self.condition()}) ? {self.leaf(kind)} : {self.value(kind, depth - 1)})"
        if self.random.random() < self.intrinsics:
            return self.call(kind, depth)
        a, b = (self.value(kind, depth - 1) for _ in range(2))
        return self.sum_of_reals(kind, a, b) if kind in REAL else self.sum_of(kind, a, b)

    def sum_of(self, kind: str, a: str, b: str) -> str:
        plain = {"int": "unsigned", "short": "unsigned", "long long": "unsigned long long"}
        unsigned = plain.get(kind, kind)
        number = self.random.choice((3, 7, 10, 100, 641, 1_000_000_007, 4_294_967_311))
        number = number % 2 ** (BITS[kind] - 1) or 5
        return self.random.choice(
            (
                *(f"({kind})(({unsigned}){a} {op} ({unsigned}){b})" for op in "+-*&|^"),
                f"({kind})(({unsigned}){a} << ({b} & {BITS[kind] - 1}))",
                f"({kind})({a} >> ({b} & {BITS[kind] - 1}))",
                f"({kind})({a} / ({kind}){number}ll)",
                f"({kind})({a} % ({kind}){number}ll)",
                f"({kind})(({unsigned}){a} / (({unsigned}){b} | 1))",
                f"({kind})(({unsigned}){a} % (({unsigned}){b} | 1))",
                f"{self.random.choice(('LEAST', 'MOST'))}({a}, {b})",
                f"({kind})~{a}",
            )
        ).join("()")

    def sum_of_reals(self, kind: str, a: str, b: str) -> str:
        suffix = REAL[kind]
        return self.random.choice(
            (
                *(f"({a} {op} {b})" for op in "+-*/"),
                f"({a} / {self.random.choice((0.1, 3.0, -7.5))}{suffix})",
                *(f"{name}{suffix}({a})" for name in EXACT_OF_ONE),
                *(f"{name}{suffix}({a}, {b})" for name in EXACT_OF_TWO),
            )
        )

    def call(self, kind: str, depth: int) -> str:
        """Call of an intrinsic whose result has this kind or is converted to it."""
        known = intrinsics.INTRINSICS
        own = [i for i in known if i.result == kind] if self.random.random() < 0.5 else []
        intrinsic = self.random.choice(own or known)
        given = ", ".join(self.value(argument, depth - 1) for argument in intrinsic.arguments)
        return self.converted(f"{intrinsic.name}({given})", intrinsic.result, kind)

    def leaf(self, kind: str) -> str:
        name, found = self.random.choice([*self.variables, ("total", "unsigned"), ("t", "int")])
        if self.random.random() < 0.7:
            return self.converted(name, found, kind)
        if kind == "float" and self.random.random() < 0.3:
            return f"float_of({self.leaf('unsigned')})"
        if kind in REAL:
            return f"{self.random.choice((0.5, 1.0, -2.25, 1e3, 0.1))}{REAL[kind]}"
        return f"(({kind}){self.random.choice(NUMBERS)}u)"

    def converted(self, text: str, found: str, kind: str) -> str:
        if found in REAL and kind not in REAL:
            return f"(({kind})whole((double){text}))"
        return text if found == kind else f"(({kind}){text})"

    def as_integer(self, name: str, kind: str) -> str:
        return f"bits_of({name})" if kind in REAL else name


if __name__ == "__main__":
    print(on_a_gpu(int(sys.argv[1])))
