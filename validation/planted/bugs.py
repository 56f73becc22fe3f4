"""Small kernels, each with one mistake, and what must be said of it.

The head of each file says how it is launched (as `check` takes it), what is expected, and what
compute-sanitizer can see of it. Lines that end in `// <-` are those that a finding names. `Needs`
is the first architecture that has what the kernel uses.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernels.ladder import LADDER
from kernels.variant import Variant
from tests.together import Part, compiled_together
from toolkit.cli.argument_syntax import make_arguments
from toolkit.cli.call import Call
from toolkit.cli.options import LaunchOptions
from toolkit.cli.parsed_call import parse_call
from toolkit.machine_code.kernel import Kernel

FOLDER = Path(__file__).parent
SEED = 1
MARK = "// <-"
NOTHING = "nothing"
BARRIER = re.compile(r"__syncthreads\(\);")
_OPTIONS = {"-g": "grid", "-b": "block", "--shared": "shared"}


@cache
def compiled(arch: str) -> dict[str, Kernel]:
    """Kernels of the bugs that run on an architecture, by name, compiled as one source."""
    chosen = [x for x in bugs() if x.runs_on(arch)]
    parts = [Part(name=x.path.name, text=x.text, kernel="planted") for x in chosen]
    return dict(zip([x.name for x in chosen], compiled_together(parts, arch), strict=True))


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A kernel with its launch; `tool` and `kind` are None where nothing is wrong."""

    path: Path
    launch: str
    tool: str | None
    kind: str | None
    nvidia: str  # the tool of compute-sanitizer that sees it, "none" or "not recorded"
    needs: str  # the first architecture

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def runs_on(self, arch: str) -> bool:
        return int(arch.removeprefix("sm_")) >= int(self.needs.removeprefix("sm_"))

    @property
    def is_recorded(self) -> bool:
        """True if compute-sanitizer has checked it."""
        return self.nvidia != "not recorded"

    @property
    def lines(self) -> frozenset[int]:
        """Numbers of the marked lines."""
        texts = self.text.splitlines()
        return frozenset(n for n, text in enumerate(texts, 1) if text.endswith(MARK))

    def call(self, arch: str) -> Call:
        """The launch, parsed."""
        words = shlex.split(self.launch)
        options = {"grid": "1", "block": "32", "shared": "0"}
        arguments = []
        for option, value in zip(words[::2], words[1::2], strict=True):
            if option == "-a":
                arguments.append(value)
            else:
                options[_OPTIONS[option]] = value
        return parse_call(
            LaunchOptions(
                source=str(self.path),
                grid=options["grid"],
                block=options["block"],
                shared=int(options["shared"]),
                arguments=arguments,
                arch=arch,
                blocks="all",
                max_instructions=10**7,
                seed=SEED,
            )
        )


def bugs() -> list[Bug]:
    """All of them, by name."""
    return [_read(path) for path in sorted(FOLDER.glob("*.cu"))]


def _read(path: Path) -> Bug:
    head = dict(re.findall(r"^// (\w+) +(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
    expected = head["Expected"]
    tool, _, kind = expected.partition(" ")
    return Bug(
        path=path,
        launch=head["Launch"],
        tool=None if expected == NOTHING else tool,
        kind=None if expected == NOTHING else kind,
        nvidia=head["NVIDIA"],
        needs=head.get("Needs", "sm_75"),
    )


def rung_part(variant: Variant, source: str, parameters: Mapping[str, int] | None = None) -> Part:
    """A rung as it is in `source`, with these parameters or its defaults."""
    return Part(
        name=variant.file,
        text=source,
        kernel=variant.entry,
        defines=variant.macros(parameters or variant.defaults),
    )


def without_barriers() -> list[tuple[str, Variant, str]]:
    """(name, rung, source) of every rung with one of its barriers deleted.

    Those of the rungs of bulk copies, and waits, are among `deletions.deletions`.
    """
    found = []
    for variant in (rung for rung in LADDER if rung.bulk_tiles is None):
        for barrier in BARRIER.finditer(variant.source):
            line = 1 + variant.source.count("\n", 0, barrier.start())
            source = variant.source[: barrier.start()] + ";" + variant.source[barrier.end() :]
            found.append((f"{variant.name} without the barrier of line {line}", variant, source))
    return found


__all__ = [
    "Bug",
    "bugs",
    "compiled",
    "make_arguments",
    "rung_part",
    "without_barriers",
]
