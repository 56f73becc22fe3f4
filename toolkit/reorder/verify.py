"""What has to hold before a reordered kernel is handed out."""

from __future__ import annotations

from analysis.errors import ToolkitError, UnsupportedError
from toolkit.reorder.blocks import blocks
from toolkit.reorder.flow import Code
from toolkit.reorder.hazards import kept_wrongly, soonest, too_soon, unready
from toolkit.reorder.liveness import live_after
from toolkit.reorder.proof import check_same


def check_understood(code: Code) -> None:
    """Raise UnsupportedError where the compiler's own code does not pass what is checked."""
    found = [*unready(code, blocks(code.instructions)), *kept_wrongly(code)]
    if found:
        raise UnsupportedError(
            f"{found[0]}, as far as is known here of scoreboards: this kernel cannot be reordered"
        )


def check(before: Code, after: Code) -> None:
    """Raise ToolkitError where a reordered code, as it is disassembled, could do anything else.

    Its values must be made of the same, no register be touched before it is ready, and no operand
    be kept that is replaced.
    """
    of_kernel = blocks(before.instructions)
    check_same(
        before.instructions,
        after.instructions,
        (before.words, after.words),
        of_kernel,
        live_after(before, of_kernel),
    )
    found = [
        *unready(after, of_kernel),
        *too_soon(soonest(before, of_kernel), soonest(after, of_kernel)),
        *kept_wrongly(after),
    ]
    if found:
        raise ToolkitError(
            f"the reordered code is wrong: {found[0]}: nothing is changed; please report the kernel"
        )
