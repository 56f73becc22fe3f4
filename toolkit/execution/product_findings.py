"""Findings on products of warpgroups (wgmma), in words."""

from __future__ import annotations

from typing import Any

from toolkit.execution.findings import Finding, ThreadAction, Wording, place
from toolkit.sass import checker
from toolkit.sass.faults import SWIZZLED

_OF_MATRICES = {
    checker.OTHER_SWIZZLE: "swizzle mismatch",
    checker.MISALIGNED_MATRIX: "misaligned matrix",
}
_OF_REGISTERS = {
    checker.EARLY_RESULT: (
        "early read of a result",
        "it reads what wgmma at {line} may not have written yet: no wgmma.wait_group between them "
        "(wait before the first use)",
    ),
    checker.EARLY_CHANGE: (
        "early write of an operand",
        "it overwrites a register of wgmma at {line}, which may still use it: no wgmma.wait_group "
        "between them",
    ),
    checker.NO_ARRIVE: (
        "missing wgmma.fence",
        "it uses registers that other instructions wrote: no wgmma.fence between them",
    ),
}


class ProductWording(Wording):
    """Converter of all of the core's records, those of products among them."""

    def finding(self, row: Any) -> Finding:
        kind = int(row["kind"])
        if kind == checker.NO_PROXY_FENCE:
            return self._unfenced(row)
        if kind in _OF_MATRICES:
            return self._matrix(row, _OF_MATRICES[kind])
        if kind in _OF_REGISTERS:
            return self._registers(row, *_OF_REGISTERS[kind])
        return super().finding(row)

    def _pair(self, row: Any) -> tuple[ThreadAction, ThreadAction]:
        first = self._access(row["pc_before"], row["block_before"], row["thread_before"])
        return first, self._access(row["pc"], row["block"], row["thread"])

    def _unfenced(self, row: Any) -> Finding:
        """Finding for a store that the async proxy may not see."""
        first, second = self._pair(row)
        message = (
            f"missing fence on {place(*self._memory(row))}: {first.what} by thread "
            f"{first.thread}, {first.location}; {second.what} by thread {second.thread} of block "
            f"{second.block}, {second.location}: no fence.proxy.async between them (each thread "
            "that stored executes it, before the barrier)"
        )
        return self._finding_of_row(
            row, "racecheck", "missing proxy fence", message, (first, second)
        )

    def _matrix(self, row: Any, kind: str) -> Finding:
        """Finding for a descriptor that does not fit how its matrix was written."""
        first, second = self._pair(row)
        number = int(row["is_async"])
        if row["kind"] == checker.OTHER_SWIZZLE:
            how = (
                f"the descriptor has {SWIZZLED[number & 0xFFFF]} and the copy wrote with "
                f"{SWIZZLED[number >> 16]}, or the base offset is not 0: give both the same swizzle"
            )
        else:
            how = (
                f"the descriptor starts at byte {number - self._bound.shared_base:,}, whose rows "
                "are not where the pattern of its swizzle begins: align the tile to 1,024 bytes "
                "(512, 256 for swizzles of 64, 32), or set the base offset"
            )
        message = (
            f"{kind} on {place(*self._memory(row))}: {first.what} by thread {first.thread}, "
            f"{first.location}; {second.what} by thread {second.thread} of block {second.block}, "
            f"{second.location}: {how}"
        )
        return self._finding_of_row(row, "memcheck", kind, message, (first, second))

    def _registers(self, row: Any, kind: str, meaning: str) -> Finding:
        """Finding for registers that products of a warpgroup use."""
        access = self._access(row["pc"], row["block"], row["thread"], kind)
        accesses, line = [access], ""
        if row["pc_before"] != checker.NOBODY:
            first = self._access(row["pc_before"], row["block"], row["thread_before"])
            accesses, line = [first, access], first.location
        message = (
            f"register R{int(row['address'])}: {kind}: thread {access.thread} of block "
            f"{access.block}, {access.location}: {meaning.format(line=line)}"
        )
        return self._finding_of_row(row, "racecheck", kind, message, tuple(accesses))
