"""Text about one request of a warp: its name, its addresses, and reasons for excess traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis.access import BANKS, WORD_BYTES
from analysis.coalescing import SECTOR_BYTES
from analysis.problem import FLOAT_BYTES
from analysis.records.profile import FirstRequest, LineAccess, Profile, Record
from analysis.records.source_lines import NEGLIGIBLE, AccessTotal, Line, accesses
from analysis.traffic.requests import pieces, strides
from reports import ladder, text

ACTIONS = {"load": "load from", "store": "store to", "copy": "copy from"}
MOST_STRIDES = 3  # more are no pattern that a reader sees
MINUS = "−"
WASTE = 1.01  # times the ideal: what a guard or an edge adds is no pattern


def source_lines(profile: Profile, record: Record) -> Mapping[int, int]:
    """The source line of each instruction of a variant, by its place in the listing."""
    listing = ladder.listing_of(profile, record)
    return dict(enumerate(listing.lines)) if listing else {}


def name(one: LineAccess, request: FirstRequest, lines: Mapping[int, int]) -> str:
    """'line 41: load from A, 4 B per lane'."""
    line = lines.get(one.place)
    where = f"line {line}: " if line else ""
    action = ACTIONS.get(one.action, f"{one.action} on")
    memory = "shared memory" if one.space == "shared" else request.buffer
    return f"{where}{action} {memory}, {one.bytes_per_lane} B per lane"


def where(one: LineAccess, request: FirstRequest, lane: int) -> str:
    """Location that a lane accesses: 'A[0][5], byte 20'."""
    offset = request.lanes[lane]
    if offset is None:
        return "takes no part"
    if request.row_floats is None:
        word = offset // WORD_BYTES
        return f"byte {offset:,}: word {word:,}, bank {word % BANKS}"
    row, column = divmod(offset // FLOAT_BYTES, request.row_floats)
    last = column + one.bytes_per_lane // FLOAT_BYTES - 1
    columns = f"{column}" if last <= column else f"{column}..{last}"
    return f"{request.buffer}[{row}][{columns}], byte {offset:,}"


def sentence(one: LineAccess, request: FirstRequest) -> str:
    """Sentence on the sectors or bank conflicts of the request."""
    active = sum(lane is not None for lane in request.lanes)
    asked = f"{active} lanes × {one.bytes_per_lane} B"
    found = pieces(request.lanes, one.bytes_per_lane, one.space)
    if one.space != "shared":
        wanted = sum(piece.used_bytes for piece in found)
        ideal = -(-wanted // SECTOR_BYTES)
        return (
            f"{asked}, {wanted} different bytes, in {text.many(len(found), 'sector')} of 32 B; "
            f"{'that is the minimum' if len(found) == ideal else f'{ideal} could hold them'}. "
            f"{_pattern(request)}"
        )
    most = max(piece.words for piece in found)
    conflict = f"a conflict of {most} words in one bank" if most > 1 else "no bank conflict"
    wavefronts = text.count(one.wavefronts / one.requests)
    return f"{asked}: {conflict}; {wavefronts} wavefronts per request. {_pattern(request)}"


def _pattern(request: FirstRequest) -> str:
    """Sentence on the distances between the addresses of neighbouring lanes."""
    distances = strides(request.lanes)
    if distances == {0}:
        return "All lanes access the same place: a broadcast."
    if not distances or len(distances) > MOST_STRIDES:
        return ""
    found = text.listing([_distance(step, request) for step in sorted(distances)])
    return f"Neighbouring lanes are {found} apart."


def _distance(step: int, request: FirstRequest) -> str:
    """Rows where it is whole rows; the bytes of other distances may depend on K."""
    row_bytes = FLOAT_BYTES * request.row_floats if request.row_floats else 0
    if row_bytes and step and step % row_bytes == 0:
        return f"{text.many(step // row_bytes, 'row')} of {request.buffer}"
    of_k = f" (at K = {request.k})" if request.buffer == "A" and abs(step) > row_bytes / 2 else ""
    return f"{text.count(step).replace('-', MINUS)} B{of_k}"


def reason(one: LineAccess, request: FirstRequest | None) -> str:
    """Sentence on why an access costs more than its data needs; empty if it does not.

    It costs more if there are more sectors of global memory than hold the data, or more wavefronts
    of shared memory than without bank conflicts.
    """
    pattern = f" {_pattern(request)}" if request and _pattern(request) else ""
    for summed in accesses([one]):  # none if it made no request
        if summed.space in ("global", "shared") and summed.units > WASTE * summed.ideal:
            said = cost(summed)
            return f"{said[0].upper()}{said[1:]}.{pattern}"
    return ""


def cost(one: AccessTotal) -> str:
    """'global loads take 32 sectors each instead of 4 (uncoalesced)'"""
    found, ideal = (text.count(x / one.requests) for x in (one.units, one.ideal))
    unit = "wavefronts" if one.space == "shared" else "sectors"
    takes = f"{one.space} {one.action}s take {found} {unit} each"
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
