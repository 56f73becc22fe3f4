"""A probe: a kernel whose timed loop holds one instruction, or a few, many times over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template

LETTERS = {"f": "float", "r": "unsigned", "d": "double", "l": "unsigned long long"}
_BITS = {
    "f": "__float_as_uint({})",
    "r": "{}",
    "d": "unsigned(__double_as_longlong({}))",
    "l": "unsigned({})",
}


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A timed loop. `opcode` is a pattern of the SASS that each round must hold `count` times.

    `setup` and `keep` are what stands before and after the loop; `patch` rewrites the compiled
    instructions (a function of their 128-bit words, in order). `suffix` "a": it needs what one
    architecture alone has (sm_90a). `threads`: at most so many in a block.
    """

    name: str
    body: str
    opcode: str
    count: int
    setup: str = ""
    keep: str = ""
    patch: Callable[[list[int]], list[int]] | None = None
    suffix: str = ""
    threads: int = 1024

    @property
    def source(self) -> str:
        """The CUDA C++ text of its kernel."""
        return Template(text("timed_loop.cu")).substitute(
            name=self.name,
            threads=self.threads,
            setup=self.setup,
            body=self.body,
            keep=self.keep,
        )


@dataclass(frozen=True, kw_only=True)
class Op:
    """An instruction in PTX: `{x}` is read and written, `{a}` and `{b}` never change.

    `letter` is the constraint of inline assembly ("f", "r", "d", "l").
    """

    ptx: str
    opcode: str
    letter: str = "r"


MULTIPLY_ADD = Op(ptx="fma.rn.f32 {x}, {x}, {x}, {x};", opcode="FFMA", letter="f")


def text(name: str) -> str:
    """A file beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def vector(width: int, first: int = 0) -> str:
    """The operands of a memory access of `width` bytes per lane, from number `first` on.

    >>> vector(4), vector(8, 1)
    ('%0', '{%1, %2}')
    """
    names = ", ".join(f"%{k}" for k in range(first, first + width // 4))
    return names if width == 4 else f"{{{names}}}"


def interleaved(name: str, ops: Sequence[Op], *, chains: int, count: int) -> Probe:
    """A probe of `count` instructions per round that take turns, each op with its own chains."""
    operands: list[tuple[str, str]] = []  # (constraint, C++ variable), written ones first
    for k, op in enumerate(ops):
        operands += [("+" + op.letter, f"x{k}_{j}") for j in range(chains)]
    written = len(operands)
    for k, op in enumerate(ops):
        operands += [(op.letter, f"a{k}"), (op.letter, f"b{k}")]
    number = {variable: f"%{i}" for i, (_, variable) in enumerate(operands)}

    def line(position: int) -> str:
        turn, k = divmod(position, len(ops))
        x = number[f"x{k}_{turn % chains}"]
        return ops[k].ptx.format(x=x, a=number[f"a{k}"], b=number[f"b{k}"])

    outputs = ", ".join(f'"{c}"({v})' for c, v in operands[:written])
    inputs = ", ".join(f'"{c}"({v})' for c, v in operands[written:])
    assembly = "\n".join(map(line, range(count)))
    return Probe(
        name=name,
        setup=" ".join(_declared(k, op, chains) for k, op in enumerate(ops)),
        body=f'asm volatile(R"({{\n{assembly}\n}})" : {outputs} : {inputs} : "memory");',
        keep=" ".join(
            f"kept ^= {_BITS[op.letter].format(f'x{k}_{j}')};"
            for k, op in enumerate(ops)
            for j in range(chains)
        ),
        opcode="|".join(dict.fromkeys(op.opcode for op in ops)),
        count=count,
    )


def _declared(k: int, op: Op, chains: int) -> str:
    """The variables of an op, from memory: the compiler knows nothing of their values."""
    kind = LETTERS[op.letter]
    names = [f"x{k}_{j}" for j in range(chains)] + [f"a{k}", f"b{k}"]
    values = (f"{name} = ({kind})offsets[lane + {i}]" for i, name in enumerate(names))
    return f"{kind} {', '.join(values)};"
