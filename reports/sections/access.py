"""Remarks on the accesses of a source line that take more traffic than their data needs."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.records.source_lines import NEGLIGIBLE, AccessTotal, Line
from reports import text


def cost(one: AccessTotal) -> str:
    """'global loads take 32 sectors each instead of 4 (uncoalesced)'"""
    found, ideal = (text.count(x / one.requests) for x in (one.units, one.ideal))
    unit = "wavefront" if one.space == "shared" else "sector"
    takes = f"{one.space} {one.action}s take {found} {unit}{'' if found == '1' else 's'} each"
    if found == ideal:
        return f"{takes}, which is ideal"
    return f"{takes} instead of {ideal}{f' ({one.waste})' if one.waste else ''}"


def remarks(line: Line) -> Iterator[str]:
    """Remarks on one line: local memory, wasted traffic, warps that split."""
    for one in line.accesses:
        if one.space == "local":
            yield (
                f"local {one.action}s: {one.requests:,} requests for values that did not fit into "
                "registers"
            )
        elif one.waste:
            yield cost(one)
    if line.splits > NEGLIGIBLE * line.branches:
        yield f"splits {text.percent(line.splits / line.branches)} of the warps that branch here"
