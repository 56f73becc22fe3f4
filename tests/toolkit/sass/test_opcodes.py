"""The written list of opcodes is the registry's."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.sass.isa import REGISTRY
from toolkit.sass.opcodes import ARCHITECTURES, opcode_list

ROOT = Path(__file__).parents[3]


def test_the_written_list_is_the_registry() -> None:
    written = (ROOT / "docs" / "opcodes.md").read_text(encoding="utf-8")
    assert written == opcode_list(), "run: python -m toolkit.sass.opcodes > docs/opcodes.md"


@pytest.mark.parametrize("opcode", ["FFMA", "LDG", "STS", "IMAD", "BRA", "SHFL", "MUFU", "DFMA"])
def test_what_every_kernel_needs_is_known_on_every_architecture(opcode: str) -> None:
    meaning = REGISTRY[opcode]
    assert meaning.since <= min(ARCHITECTURES)
    assert meaning.until >= max(ARCHITECTURES)


def test_copies_and_matrices_come_with_their_architecture() -> None:
    assert REGISTRY["LDGSTS"].since == 80
