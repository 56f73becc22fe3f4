"""Rungs with what orders their accesses deleted, piece by piece, and the two lines of the race.

compute-sanitizer's verdict is recorded for the barriers of the rungs without bulk copies alone
(`bugs.without_barriers`); of these nobody has asked it yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from analysis.problem import Gemm
from kernels.ladder import LADDER
from kernels.variant import Variant

# What the two accesses of a race look like in the source; a statement may run over several lines.
BULK_COPY = "cp.async.bulk.tensor.2d"
READ_TILE = "ld.shared.v4.f32"
COPY = ("cp.async.cg.shared.global", "cp.async.ca.shared.global")
READ_COPIED = ("tiles.a[k]", "tiles.b[k", "from.a[k]", "from.b[k]", "ldmatrix.sync")
BEGIN = "mbarrier.init"
ROW_COPIED = "] = value[n];"
SUMS_LEFT = ("__stcg(", "= sum[i][j];")
SUMS_TAKEN = ("__ldcg(", "sum[i][j] += sums")
PART_LEFT, PART_TAKEN = "part(slice, n) =", "part(s, first)"

FULL = r"wait\(full[^;]*\);"
EMPTY = r"if \((?:phase|turn) > 0\) wait\(empty[^;]*\);"
EVERY_LANE_HAS_READ = r"__syncwarp\(\);"
COPIES_ARE_THERE = r'asm volatile\("cp\.async\.wait_group[^\n]*;'
OTHERS_HAVE_LEFT = r'do asm volatile\("ld\.acquire[^;]*;[^;]*"l"\(fl[^;]*;'
ARRIVE = "if (t % 32 == 0) arrive(drained);"
LAST_READS = re.compile(r"compute\(next[^;]*;")


@dataclass(frozen=True, kw_only=True)
class Race:
    """A deletion by a pattern; the race, and what its two accesses look like; None: any."""

    pattern: str
    kind: str
    before: str | tuple[str, ...]
    after: str | tuple[str, ...] | None
    instead: str = ";"


WAITS = (
    Race(pattern=FULL, kind="RAW", before=BULK_COPY, after=READ_TILE),
    Race(pattern=EMPTY, kind="WAR", before=READ_TILE, after=BULK_COPY),
    Race(pattern=EVERY_LANE_HAS_READ, kind="WAR", before=READ_TILE, after=BULK_COPY),
)
OF_COPIES = Race(pattern=COPIES_ARE_THERE, kind="RAW", before=COPY, after=READ_COPIED)
OF_BLOCKS = Race(
    pattern=OTHERS_HAVE_LEFT, kind="RAW", before=SUMS_LEFT, after=SUMS_TAKEN, instead="done = 1;"
)


def barrier(
    comment: str, kind: str, before: str | tuple[str, ...], after: str | tuple[str, ...] | None
) -> Race:
    """The deletion of the barriers of the whole block that stand before or behind some text."""
    return Race(pattern=comment, kind=kind, before=before, after=after)


BARRIERS_ARE_THERE = barrier(r"__syncthreads\(\);  // the barriers are there", "RAW", BEGIN, None)
RING_IS_DRAINED = barrier(
    r"(?<=The ring is drained\.\n    )__syncthreads\(\);", "WAR", READ_TILE, PART_LEFT
)
PARTS_ARE_LEFT = barrier(
    r"__syncthreads\(\);(?=\n\n    // From here on)", "RAW", PART_LEFT, PART_TAKEN
)
SUMS_ARE_LEFT = barrier(
    r"(?<=__threadfence\(\);\n)\s*__syncthreads\(\);(?!\n *if \(t == 0\) atomicAdd)",
    "RAW",
    SUMS_LEFT,
    SUMS_TAKEN,
)
SUMS_ARE_THERE = barrier(
    r"(?<=// for the next launch\n)\s*\}\s*__syncthreads\(\);", "RAW", SUMS_LEFT, SUMS_TAKEN
)
PARTS_OF_BLOCKS = tuple(
    barrier(rf"__syncthreads\(\);(?=  // {what})", "RAW", SUMS_LEFT, SUMS_TAKEN)
    for what in (
        "the block's sums are left",
        "those of its group are there",
        "its part of their sum is left",
        "the parts of all groups are there",
    )
)
COPIES_ARE_MADE = Race(
    pattern=r'do asm volatile\("ld\.acquire[^;]*;[^;]*"l"\(counts\)[^;]*;',
    kind="RAW",
    before=ROW_COPIED,
    after=BULK_COPY,
    instead="copied = WORKERS;",
)
COPIES_ARE_COUNTED = barrier(
    r"__syncthreads\(\);(?=\n        if \(t == 0\) atomicAdd)", "RAW", ROW_COPIED, BULK_COPY
)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A rung where phases outnumber the stages of its ring, or blocks add each other's sums."""

    rung: str
    shape: Gemm
    races: tuple[Race, ...]
    parameters: Mapping[str, int] = field(default_factory=dict)
    moves_arrival: bool = False


RING = Gemm(m=100, n=128, k=164)  # 6 phases of 32
LAUNCHES = (
    *(
        Launch(rung=rung, shape=Gemm(m=100, n=100, k=64), races=(OF_COPIES,))
        for rung in ("async-copy", "wide-thread-tile", "tf32-parts")
    ),
    *(
        Launch(rung=rung, shape=RING, races=(*WAITS, BARRIERS_ARE_THERE), moves_arrival=True)
        for rung in ("bulk-copy", "fenced", "rasterised")
    ),
    *(
        Launch(  # 2 tiles of 11 phases, dealt out to 3 workers
            rung=rung,
            shape=Gemm(m=100, n=256, k=324),
            parameters={"workers": 3},
            races=(*WAITS, BARRIERS_ARE_THERE, SUMS_ARE_LEFT, SUMS_ARE_THERE, OF_BLOCKS),
            moves_arrival=True,
        )
        for rung in ("stream-k", "tall-thread-tile", "realigned")
    ),
    Launch(
        rung="realigned",
        shape=Gemm(m=100, n=255, k=323),
        races=(COPIES_ARE_MADE, COPIES_ARE_COUNTED),
    ),
    Launch(  # 6 phases of 64
        rung="split-k",
        shape=Gemm(m=64, n=128, k=324),
        races=(*WAITS, BARRIERS_ARE_THERE, RING_IS_DRAINED, PARTS_ARE_LEFT),
        moves_arrival=True,
    ),
    Launch(  # two groups of blocks, of which most have no phase
        rung="split-k",
        shape=Gemm(m=64, n=128, k=324),
        parameters={"splits": 32},
        races=(*PARTS_OF_BLOCKS, OF_BLOCKS),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """A source that lacks something, how it is launched, and where the race is."""

    name: str
    variant: Variant
    launch: Launch
    source: str
    kind: str
    before: frozenset[int]
    after: frozenset[int] | None

    @property
    def parameters(self) -> dict[str, int]:
        return self.variant.defaults | dict(self.launch.parameters)


def deletions() -> list[Deletion]:
    """All of them. A pattern that finds nothing in its rung is a mistake here."""
    return [deletion for launch in LAUNCHES for deletion in _of(launch)]


def _of(launch: Launch) -> Iterator[Deletion]:
    variant = next(rung for rung in LADDER if rung.name == launch.rung)
    text = variant.source
    for race in launch.races:
        found = list(re.finditer(race.pattern, text))
        assert found, (launch.rung, race.pattern)
        for match in found:
            source = text[: match.start()] + _blanked(match, race.instead) + text[match.end() :]
            line = 1 + text.count("\n", 0, match.end())
            name = f"{launch.rung} without line {line}: {match.group().strip()[:30]}"
            yield _deletion(name, variant, launch, source, race)
    if launch.moves_arrival:
        name = f"{launch.rung} arrives before its last reads"
        moved = Race(pattern="", kind="WAR", before=READ_TILE, after=BULK_COPY)
        yield _deletion(name, variant, launch, _arrives_early(text), moved)


def _blanked(match: re.Match[str], instead: str) -> str:
    """Text in place of a match: as many lines, and the braces that it closes."""
    return "\n" * match.group().count("\n") + "}" * match.group().count("}") + instead


def _arrives_early(text: str) -> str:
    """All lanes synchronise and the first arrives, and only then the last of the stage is read."""
    early = text.replace("__syncwarp();", "", 1).replace(ARRIVE, "", 1)
    assert early.count(ARRIVE) == 0
    found = list(LAST_READS.finditer(early))
    assert len(found) == 1
    at = found[0].start()
    return f"{early[:at]}__syncwarp(); {ARRIVE} {early[at:]}"


def _deletion(name: str, variant: Variant, launch: Launch, source: str, race: Race) -> Deletion:
    after = None if race.after is None else lines_of(source, race.after)
    before = lines_of(source, race.before)
    return Deletion(
        name=name,
        variant=variant,
        launch=launch,
        source=source,
        kind=race.kind,
        before=before,
        after=after,
    )


def lines_of(source: str, texts: str | tuple[str, ...]) -> frozenset[int]:
    """The lines of the statements that hold one of some texts."""
    found = set()
    for text in (texts,) if isinstance(texts, str) else texts:
        for match in re.finditer(re.escape(text), source):
            end = re.compile(r"\);|;$", re.MULTILINE).search(source, match.end())
            assert end is not None
            first = 1 + source.count("\n", 0, match.start())
            found |= set(range(first, 2 + source.count("\n", 0, end.start())))
    return frozenset(found)
