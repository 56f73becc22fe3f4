"""Sources that compile to SASS for tests: the files of the corpus and the rungs of the ladder."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kernels import LADDER, Variant
from toolkit.machine_code.compile import compile_cubin

CORPUS = Path(__file__).parent
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
# `// sm_80 and later` in the first line of a file
MINIMUM = re.compile(r"sm_(\d+) and later")
KERNEL = re.compile(r'^extern "C" __global__ .*?\b(\w+)\((?!\d)', re.MULTILINE)


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
        """True if it is a file of the corpus, not a rung."""
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
