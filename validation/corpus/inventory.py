"""List every SASS opcode and operand form that the corpus and the ladder compile to.

    python -m validation.corpus.inventory                  # the list, on stdout
    python -m validation.corpus.inventory --into FOLDER    # also the cubins and their disassembly

The ladder is taken with its default parameters. For each opcode with its modifiers: the
architectures that use it, and per operand form the first few operands that were met, with their
architectures where these are fewer. A form is the operands with register numbers and values taken
out. Needs NVRTC and nvdisasm, no GPU.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels import LADDER, Variant
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.disassemble import disassemble
from toolkit.machine_code.kernel import kernel_symbols

CORPUS = Path(__file__).parent
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
EXAMPLES_PER_FORM = 3
# `// sm_80 and later` in the first line of a file
MINIMUM = re.compile(r"sm_(\d+) and later")
KERNEL = re.compile(r'^extern "C" __global__ .*?\b(\w+)\((?!\d)', re.MULTILINE)

NUMBER = re.compile(
    r"[-+]?(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?|INF|[QS]NAN) ?", re.IGNORECASE
)
FORM = (
    (re.compile(r"\b(U?[RP]|B)\d+\b"), r"\1"),
    (re.compile(r"\b(cx?)\[0x(\d)\]\[0x[0-9a-f]+\]"), r"\1[\2][k]"),
    (re.compile(r"\+?-?0x[0-9a-f]+\]"), "+i]"),
    (re.compile(r"\[\+i\]"), "[i]"),
    (re.compile(r"\$\w+(?:\$\w+)*"), "$name"),
)


@dataclass
class Form:
    """One shape of operands."""

    architectures: set[str] = field(default_factory=set)
    examples: list[str] = field(default_factory=list)


@dataclass
class Usage:
    """Where one full opcode occurs."""

    count: int = 0
    forms: dict[str, Form] = field(default_factory=lambda: defaultdict(Form))

    @property
    def architectures(self) -> set[str]:
        return set().union(*(form.architectures for form in self.forms.values()))


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file to compile: `kernel` is one of those in it."""

    label: str
    name: str
    text: str
    kernel: str
    defines: dict[str, int] = field(default_factory=dict)
    minimum_capability: int = 0

    @property
    def is_corpus(self) -> bool:
        """Whether it is a file beside this one, and no rung."""
        return (CORPUS / self.name).exists()

    def architectures(self) -> list[str]:
        return [arch for arch in ARCHITECTURES if int(arch[3:]) >= self.minimum_capability]

    def image(self, arch: str) -> bytes:
        return compile_cubin(
            self.text, name=self.name, kernel=self.kernel, arch=arch, defines=self.defines
        ).image


def near_defaults(variant: Variant) -> Iterator[dict[str, int]]:
    """The sets of parameters that differ from the defaults in one, at most, and the smallest.

    All sets of a rung with fewer than three parameters.
    """
    are_few = len(variant.parameters) < 3
    for number, chosen in enumerate(variant.parameter_sets()):
        others = sum(chosen[name] != default for name, default in variant.defaults.items())
        if are_few or number == 0 or others < 2:
            yield chosen


def chosen_parameters(variant: Variant) -> dict[str, int]:
    """One of `near_defaults`, always the same: tests share what they compile."""
    sets = list(near_defaults(variant))
    others = [chosen for chosen in sets if chosen != variant.defaults]
    return random.Random(0).choice(others or sets)


def sources() -> Iterator[Source]:
    """The corpus, and the ladder with its defaults."""
    for path in sorted(CORPUS.glob("*.cu")):
        text = path.read_text(encoding="utf-8")
        minimum, kernel = MINIMUM.search(text.splitlines()[0]), KERNEL.search(text)
        assert kernel, f"{path.name}: no extern kernel found"
        yield Source(
            label=path.stem,
            name=path.name,
            text=text,
            kernel=kernel[1],
            minimum_capability=int(minimum[1]) if minimum else 0,
        )
    for variant in LADDER:
        yield Source(
            label=variant.name,
            name=variant.file,
            text=variant.source,
            kernel=variant.entry,
            defines=variant.macros(variant.defaults),
            minimum_capability=variant.since,
        )


def form(operands: str) -> str:
    """`R2,-R5,0x4,c[0x0][0x160]` -> `R,-R,i,c[0][k]`."""
    for pattern, replacement in FORM:
        operands = pattern.sub(replacement, operands)
    return ",".join("i" if NUMBER.fullmatch(x) else x for x in operands.split(","))


def note(found: dict[str, Usage], instruction: dict[str, str], arch: str) -> None:
    operands = instruction.get("operands", "").replace(".reuse", "")
    usage = found[instruction["opcode"]]
    usage.count += 1
    met = usage.forms[form(operands)]
    met.architectures.add(arch)
    if operands not in met.examples and len(met.examples) < EXAMPLES_PER_FORM:
        met.examples.append(operands)


def report(found: dict[str, Usage]) -> Iterator[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for opcode in sorted(found):
        groups[opcode.split(".")[0]].append(opcode)
    yield f"# {len(found)} opcodes with modifiers, {len(groups)} without"
    for base, opcodes in groups.items():
        yield f"\n== {base}"
        for opcode in opcodes:
            usage = found[opcode]
            yield f"{opcode}   {where(usage.architectures)} x{usage.count}"
            for shape, met in sorted(usage.forms.items()):
                fewer = met.architectures < usage.architectures
                only = f"   {where(met.architectures)}" if fewer else ""
                yield f"    {shape:40} {'   |   '.join(met.examples)}{only}"


def where(architectures: set[str]) -> str:
    if architectures == set(ARCHITECTURES):
        return "[all]"
    return f"[{' '.join(sorted((x[3:] for x in architectures), key=int))}]"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--into", type=Path, help="folder for cubins and their disassembly")
    into = parser.parse_args(arguments).into
    found: dict[str, Usage] = defaultdict(Usage)
    with ThreadPoolExecutor() as pool:
        tasks = [(source, arch) for source in sources() for arch in source.architectures()]
        for (source, arch), (image, document) in zip(tasks, pool.map(compiled, tasks), strict=True):
            for function in document[1]:
                for instruction in function["sass-instructions"]:
                    note(found, instruction, arch)
            if into:
                keep(into / arch, source.label, image, document)
    print("\n".join(report(found)))


def compiled(task: tuple[Source, str]) -> tuple[bytes, list[Any]]:
    source, arch = task
    image = source.image(arch)
    return image, json.loads(disassemble(image))


def keep(folder: Path, label: str, image: bytes, document: list[Any]) -> None:
    """One cubin per file, and under each kernel's name that cubin and its own disassembly."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [label] if len(kernel_symbols(image)) == 1 else kernel_symbols(image)
    for name, function in zip(names, document[1], strict=False):
        path = folder / (name if len(names) == 1 else function["function-name"])
        path.with_suffix(".cubin").write_bytes(image)
        path.with_suffix(".json").write_text(json.dumps([document[0], [function]]))


if __name__ == "__main__":
    main(sys.argv[1:])
