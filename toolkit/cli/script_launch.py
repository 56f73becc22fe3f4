"""The kernel of a Python file and its arguments, as the options of a command ask for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.cli.argument_syntax import BufferArgument, parse_arguments
from toolkit.frontends.scripts import ScriptKernel
from toolkit.launch.launch import Argument
from toolkit.machine_code.signature import Declared

_INTEGER = re.compile(r"[-+]?(\d+|0[xX][0-9a-fA-F]+)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class ScriptLaunch:
    """The kernel, and the options that its front end may choose itself: None if it should.

    `numbers` are the positions of arguments that were given as bare numbers, of which the front end
    chooses the type.
    """

    kernel: ScriptKernel
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    numbers: frozenset[int]

    @property
    def named(self) -> str:
        return f"{self.kernel.path.name}:{self.kernel.name}"

    def launch(self, made: Sequence[Argument], defines: Mapping[str, str]) -> dict[str, Any]:
        """Arguments of `simulate` and `check` that are not those of other sources."""
        return {
            "source": self.kernel.compiled,
            "grid": self.grid,
            "block": self.block,
            "arguments": [
                value.item() if k in self.numbers and isinstance(value, np.generic) else value
                for k, value in enumerate(made)
            ],
            "defines": defines,
        }


def script_arguments(
    texts: Sequence[str], kernel: ScriptKernel, declared: Sequence[Declared] | None
) -> tuple[list[BufferArgument | np.generic], frozenset[int]]:
    """Description of each argument, and the positions of those whose type the front end chooses.

    `declared` are the parameters of CUDA C++ text, which gives bare numbers their types itself.
    """
    if kernel.text is not None:
        return parse_arguments(texts, declared), frozenset()
    typed = list(map(_typed, texts))
    numbers = (k for k, (text, given) in enumerate(zip(typed, texts, strict=True)) if text != given)
    return parse_arguments(typed), frozenset(numbers)


def _typed(text: str) -> str:
    """A bare number with the widest type of its kind; others as they are."""
    if _INTEGER.fullmatch(text):
        return f"i64={text}"
    return f"f64={text}" if _FLOAT.fullmatch(text) else text
