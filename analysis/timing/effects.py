"""Effects that cost time in the model of an SM, and how each of them is removed from a launch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.access import WORD_BYTES
from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.geometry import WARP_SIZE
from analysis.sm import Kind, Machine, Streams, Unit
from analysis.timing.modelled_sm import ModelledSm, l2_bytes_per_clock
from analysis.timing.predicted import Effect
from analysis.timing.work import CountedInstruction

CONSTANT_KINDS = (Kind.CONSTANT, Kind.UNIFORM_CONSTANT)
REMOVED = 2  # clocks of a removed latency; not 0, so that each event still occurs
SKIPPED_ALL = 32  # of 32 executions
SECTORS_OF_LINE = LINE_BYTES // SECTOR_BYTES
FULL_LINE = (1 << SECTORS_OF_LINE) - 1
LEAST_DIVERGENCE = 0.02  # of lanes that are inactive
GLOBAL = ("global", "generic")
LOADS, STORES, ATOMICS = ("load", "copy"), ("store",), ("atomic", "reduction")
TENSOR = (Unit.TENSOR, Unit.TENSOR_SHORT, Unit.TENSOR_DOUBLE)
PRODUCTS_AT_ONCE = {
    "product_latency": 0,
    "product_latency_of_registers": 0,
    "product_release": 0,
    "group_fence_clocks": 0,
}
WAITS_FOR_DRAM = {
    "dram_latency": REMOVED,
    "dram_scatter": 0.0,
    "dram_spread": 0.0,
    "dram_start": 0.0,
}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A launch as the model runs it, with some effects removed.

    `changes`: fields of the machine that are replaced. `code`: machine code with the clocks of the
    SM. `is_coupled`: requests wait for DRAM because other SMs request the same lines. `is_spread`:
    the work of the blocks is spread evenly over all SMs. `atomics_share`, `stores_share`: of the
    time that L2 needs for atomic operations, and for stores that meet at lines.
    `waits_for_blocks`: the launch takes the time that its blocks wait for each other.
    """

    sm: ModelledSm
    code: NDArray[Any]
    changes: Mapping[str, Any] = field(default_factory=dict)
    is_coupled: bool = True
    is_spread: bool = False
    atomics_share: float = 1.0
    stores_share: float = 1.0
    waits_for_blocks: bool = True

    def with_machine(self, **changes: Any) -> Scene:
        return replace(self, changes={**self.changes, **changes})

    def with_code(self, name: str, values: NDArray[Any]) -> Scene:
        code = self.code.copy()
        code[name] = values
        return replace(self, code=code)

    @cached_property
    def machine(self) -> Machine:
        return replace(self.sm.machine, **self.changes)

    @property
    def below_l1_s(self) -> tuple[float, float]:
        """Lower bounds on the time from L2 and DRAM bandwidth."""
        l2, dram = self.sm.below_l1_s
        if self.is_spread:
            of_all = l2_bytes_per_clock(self.sm) * self.sm.device.sm_count
            l2 *= self.sm.l2_rate / (of_all * self.sm.clock_hz)
        return l2, dram

    @property
    def streams(self) -> tuple[Streams, ...]:
        return self.sm.work.sample.replayed

    @property
    def replayed_by(self) -> Hashable:
        """All that the replay of the scene depends on; the sample by its identity."""
        return id(self.sm.work.sample), self.machine, self.code.tobytes()

    @property
    def instructions(self) -> Sequence[CountedInstruction]:
        """Counts of each instruction of the code; empty if they are not known."""
        return self.sm.work.instructions

    def of_each(self, value: Callable[[CountedInstruction], float]) -> NDArray[np.float64]:
        """A value for each instruction of the code, 1 if counts are not known."""
        if not self.instructions:
            return np.ones(len(self.code))
        return np.array([value(one) for one in self.instructions], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Removable:
    """An effect that can be removed.

    `is_present`: False if nothing would change. `reasons`: the reasons (`analysis.sm.LOST`) for
    which schedulers issue nothing because of it, empty if there are others. `moves_roof`: less work
    is left without it. `most_clocks`: the most that removing it saves, if that is known.
    """

    effect: Effect
    is_present: Callable[[Scene], bool]
    removed: Callable[[Scene], Scene]
    reasons: tuple[str, ...] = ()
    moves_roof: bool = False
    most_clocks: Callable[[Scene], float] | None = None


def _without_conflicts(scene: Scene) -> Scene:
    return scene.with_machine(free_conflicts=1)


def _has_conflicts(scene: Scene) -> bool:
    free = scene.code["free_clocks"]
    return any(
        bool(((free[s.steps["pc"]] > 0) & (s.steps["clocks"] > free[s.steps["pc"]])).any())
        for s in scene.streams
    )


def _sector_shares(scene: Scene) -> NDArray[np.float64]:
    """For each instruction, the fewest sectors of its accesses to global memory per sector."""
    return scene.of_each(
        lambda one: (
            one.ideal / one.sectors if one.space in GLOBAL and one.sectors > one.ideal > 0 else 1.0
        )
    )


def _is_uncoalesced(scene: Scene) -> bool:
    return bool((_sector_shares(scene) < 1).any())


def _coalesced(scene: Scene) -> Scene:
    """Each access has the fewest sectors that could carry its bytes.

    L2 and DRAM serve no more than that; what caches kept from being read is not read either.
    """
    shares, work = _sector_shares(scene), scene.sm.work
    bytes_of = {
        actions: SECTOR_BYTES
        * sum(
            one.ideal for one in scene.instructions if one.space in GLOBAL and one.action in actions
        )
        for actions in (LOADS, STORES)
    }
    reads = min(work.l2_read_bytes, bytes_of[LOADS])
    writes = min(work.l2_write_bytes, bytes_of[STORES])
    share = writes / work.l2_write_bytes if work.l2_write_bytes else 1.0
    changed = replace(
        work,
        sample=work.sample.changed(lambda streams: _with_few_sectors(streams, shares)),
        l2_read_bytes=reads,
        l2_write_bytes=writes,
        dram_read_bytes=min(work.dram_read_bytes, reads),
        dram_write_bytes=work.dram_write_bytes * share,
        dram_lone_pairs=0.0,
        dram_lone_writes=0.0,
        dram_fill_bytes=0.0,
    )
    return replace(scene, sm=replace(scene.sm, work=changed))


def _with_few_sectors(streams: Streams, shares: NDArray[np.float64]) -> Streams:
    """Copy in which requests have the given share of their sectors, in as few lines.

    Which of its lines a request keeps rotates from request to request, so that all are requested.
    """
    steps = streams.steps.copy()
    rows = np.flatnonzero((shares[steps["pc"]] < 1) & (steps["lines"] > 0))
    share, lines = shares[steps["pc"][rows]], steps["lines"][rows].astype(np.int64)
    of_line = np.cumsum(steps["lines"], dtype=np.int64)
    first = of_line[rows] - lines
    until = np.append(0, np.cumsum(_sectors(streams.lines)))
    wanted = np.maximum(1, np.rint((until[first + lines] - until[first]) * share)).astype(np.int64)
    kept = np.minimum(lines, -(-wanted // SECTORS_OF_LINE))
    # of each line of these requests: its request, and its place among the lines that are kept
    request = np.repeat(np.arange(len(rows)), lines)
    at = np.arange(len(request)) - np.repeat(np.cumsum(lines) - lines, lines)
    apart = (lines // kept)[request]
    turned = (at - np.arange(len(rows))[request]) % lines[request]
    place = np.where(turned % apart == 0, turned // apart, lines[request])
    where = first[request] + at
    keep = np.ones(len(streams.lines), dtype=bool)
    keep[where] = place < kept[request]
    left = np.clip(wanted[request] - SECTORS_OF_LINE * place, 0, SECTORS_OF_LINE)
    values = streams.lines.copy()
    masks = ((1 << left) - 1).astype(np.uint64)
    values[where] = values[where] & ~np.uint64(FULL_LINE) | masks
    steps["lines"][rows] = kept
    clocks = steps["clocks"][rows]
    steps["clocks"][rows] = np.minimum(clocks, np.maximum(1, np.rint(clocks * share)))
    gone = np.append(0, np.cumsum(~keep)).astype(np.uint64)
    first_line = streams.first_line - gone[streams.first_line.astype(np.int64)]
    return replace(streams, steps=steps, lines=values[keep], first_line=first_line)


def _sectors(lines: NDArray[np.uint64]) -> NDArray[np.int64]:
    mask = (lines & np.uint64(FULL_LINE)).astype(np.int64)
    found: NDArray[np.int64] = sum((mask >> bit & 1 for bit in range(1, 4)), mask & 1)
    return found


def _local(scene: Scene) -> NDArray[np.float64]:
    """For each instruction, 1 if it accesses local memory, else 0."""
    if not scene.instructions:
        return np.zeros(len(scene.code))
    return scene.of_each(lambda one: one.space == "local" and one.requests > 0)


def _share_of_lanes(one: CountedInstruction) -> float:
    """Active lanes per warp instruction, as a share of the warp.

    A request takes a wavefront whether a branch or a guard leaves lanes out: lanes with a false
    guard are inactive in requests to memory, but not where no lane of a warp takes part. An access
    to local memory makes a request for each of its words.
    """
    if not one.executed:
        return 1.0
    if one.space is not None:
        words = max(1, one.bytes_per_lane // WORD_BYTES) if one.space == "local" else 1
        return 1 - (one.requests / words - one.predicated / WARP_SIZE) / one.executed
    return one.threads / one.executed / WARP_SIZE


def is_of_one_thread(one: CountedInstruction) -> bool:
    """True if a single thread of each warp executes an instruction, such as an elected one."""
    return 0 < one.threads <= one.executed


def _of_one_thread(scene: Scene) -> NDArray[np.float64]:
    """For each instruction, 1 if a single thread executes it, unless it accesses global memory.

    Those are left out altogether: most are executed once, of which no share can be left out. What
    accesses to global memory wait for, such as flags of other blocks, are effects of their own.
    """
    if not scene.instructions:
        return np.zeros(len(scene.code))
    return scene.of_each(lambda one: is_of_one_thread(one) and one.space not in GLOBAL)


def _divergent(scene: Scene) -> NDArray[np.float64]:
    """For each instruction of several threads, the share of its executions beyond full warps."""
    return 1 - scene.of_each(lambda one: 1.0 if is_of_one_thread(one) else _share_of_lanes(one))


_KEPT_KINDS = (
    Kind.BARRIER,
    Kind.BRANCH,
    Kind.EXIT,
    Kind.COPY_GROUP,
    Kind.WAIT_GROUP,
    Kind.MBARRIER_BEGIN,
    Kind.MBARRIER_ARRIVE,
    Kind.MBARRIER_WAIT,
    Kind.BULK_LOAD,
    Kind.BULK_STORE,
    Kind.BULK_GROUP,
)


def can_skip(code: NDArray[Any]) -> NDArray[np.bool_]:
    """True for instructions that can be left out: those that no other warp or block waits for."""
    found: NDArray[np.bool_] = ~np.isin(code["kind"], _KEPT_KINDS)
    return found


def skipping(scene: Scene, share: NDArray[Any]) -> Scene:
    """Scene that leaves out a share of the executions of each instruction."""
    skipped = np.rint(SKIPPED_ALL * share).astype(np.uint8)
    skipped = np.maximum(scene.code["skipped"], skipped)
    return scene.with_code("skipped", np.where(can_skip(scene.code), skipped, 0))


def _without_barriers(scene: Scene) -> Scene:
    kind = scene.code["kind"]
    return scene.with_code("kind", np.where(kind == Kind.BARRIER, Kind.PLAIN, kind))


def _without_dependences(scene: Scene) -> Scene:
    found = scene.with_code("stall", np.minimum(scene.code["stall"], 1))
    return found.with_code("latency", np.minimum(found.code["latency"], 1)).with_machine(
        branch_clocks=0, register_latency=0
    )


def _uses_tensor_cores(scene: Scene) -> bool:
    return bool(np.isin(scene.code["unit"], TENSOR).any())


def _has(*kinds: Kind) -> Callable[[Scene], bool]:
    return lambda scene: bool(np.isin(scene.code["kind"], kinds).any())


def _always(scene: Scene) -> bool:
    del scene
    return True


def _clocks_of_starts(scene: Scene) -> float:
    """Clocks of an SM for starting its blocks one after the other, if nothing else goes on."""
    sm, machine = scene.sm, scene.machine
    rounds = -(-sm.blocks // sm.resident)
    of_rounds = machine.first_start + rounds * machine.block_start
    return of_rounds + sm.blocks * machine.block_interval


def _accesses_l2(scene: Scene) -> bool:
    return scene.sm.work.l2_read_bytes > 0


def _accesses_shared(scene: Scene) -> bool:
    return bool(
        np.isin(
            scene.code["kind"], (Kind.SHARED_LOAD, Kind.SHARED_STORE, Kind.MATRIX_LOAD, Kind.ATOMIC)
        ).any()
    )


REMOVABLE = (
    Removable(
        effect=Effect.IDLE_SMS,
        is_present=lambda scene: scene.sm.work.relative_work(scene.sm.device) > 1,
        removed=lambda scene: replace(scene, is_spread=True),
        moves_roof=True,
    ),
    Removable(
        effect=Effect.CONFLICTS,
        is_present=_has_conflicts,
        removed=_without_conflicts,
        moves_roof=True,
    ),
    Removable(
        effect=Effect.UNCOALESCED, is_present=_is_uncoalesced, removed=_coalesced, moves_roof=True
    ),
    Removable(
        effect=Effect.LOCAL_MEMORY,
        is_present=lambda scene: bool(_local(scene).any()),
        removed=lambda scene: skipping(scene, _local(scene)),
        moves_roof=True,
    ),
    Removable(
        effect=Effect.ATOMICS,
        is_present=lambda scene: scene.sm.work.atomics is not None,
        removed=lambda scene: replace(
            scene.with_machine(atomic_latency=REMOVED), atomics_share=0.0
        ),
        moves_roof=True,
    ),
    Removable(
        effect=Effect.STORES,
        is_present=lambda scene: scene.sm.work.stores is not None,
        removed=lambda scene: replace(scene, stores_share=0.0),
        moves_roof=True,
    ),
    Removable(
        effect=Effect.OTHER_BLOCKS,
        is_present=lambda scene: scene.sm.work.clocks_of_waits > 0 or scene.machine.flag_clocks > 0,
        removed=lambda scene: replace(scene.with_machine(flag_clocks=0), waits_for_blocks=False),
        moves_roof=True,
    ),
    Removable(
        effect=Effect.CONSTANTS,
        is_present=lambda scene: bool(np.isin(scene.code["kind"], CONSTANT_KINDS).any()),
        removed=lambda scene: skipping(scene, scene.code["kind"] == Kind.CONSTANT).with_machine(
            constant_miss_latency=0
        ),
        moves_roof=True,
    ),
    Removable(
        effect=Effect.ONE_THREAD,
        is_present=lambda scene: bool(_of_one_thread(scene).any()),
        removed=lambda scene: skipping(scene, _of_one_thread(scene)),
        moves_roof=True,
    ),
    Removable(
        effect=Effect.DIVERGENCE,
        is_present=lambda scene: bool((_divergent(scene) > LEAST_DIVERGENCE).any()),
        removed=lambda scene: skipping(scene, _divergent(scene)),
        moves_roof=True,
    ),
    Removable(
        effect=Effect.BARRIERS,
        is_present=lambda scene: bool((scene.code["kind"] == Kind.BARRIER).any()),
        removed=_without_barriers,
        reasons=("barrier",),
    ),
    Removable(
        effect=Effect.COPIES,
        is_present=lambda scene: (
            _uses_tensor_cores(scene) and _has(Kind.COPY, Kind.BULK_LOAD)(scene)
        ),
        removed=lambda scene: scene.with_machine(free_copies=1),
        reasons=("global latency", "barrier"),
    ),
    Removable(
        effect=Effect.PRODUCTS,
        is_present=_has(Kind.PRODUCT),
        removed=lambda scene: scene.with_machine(**PRODUCTS_AT_ONCE),
        reasons=("products of warpgroups", "barrier"),
    ),
    Removable(
        effect=Effect.DRAM_LATENCY,
        is_present=_accesses_l2,
        removed=lambda scene: replace(scene.with_machine(**WAITS_FOR_DRAM), is_coupled=False),
        reasons=("global latency", "barrier"),
    ),
    Removable(
        effect=Effect.L2_LATENCY,
        is_present=_accesses_l2,
        removed=lambda scene: scene.with_machine(l2_latency=REMOVED),
        reasons=("global latency", "barrier"),
    ),
    Removable(
        effect=Effect.L1_LATENCY,
        is_present=_accesses_l2,
        removed=lambda scene: scene.with_machine(l1_latency=REMOVED),
        reasons=("global latency", "barrier"),
    ),
    Removable(
        effect=Effect.SHARED_LATENCY,
        is_present=_accesses_shared,
        removed=lambda scene: scene.with_machine(
            shared_latency=REMOVED, shared_atomic_latency=REMOVED
        ),
        reasons=("shared latency", "barrier"),
    ),
    Removable(
        effect=Effect.DEPENDENCES,
        is_present=_always,
        removed=_without_dependences,
        reasons=("fixed latency", "arithmetic latency", "barrier"),
    ),
    Removable(
        effect=Effect.REGISTER_BANKS,
        is_present=_always,
        removed=lambda scene: scene.with_machine(bank_count=0, operand_clocks=0),
        reasons=("register banks",),
    ),
    Removable(
        effect=Effect.FETCH,
        is_present=_always,
        removed=lambda scene: scene.with_machine(
            fetch_latency=0, fetch_clocks=0, first_fetch_clocks=0, code_lines=0
        ),
        reasons=("instruction fetch",),
    ),
    Removable(
        effect=Effect.BLOCK_START,
        is_present=_always,
        removed=lambda scene: scene.with_machine(
            block_start=0, block_interval=0, first_start=0, end_clocks=0
        ),
        most_clocks=_clocks_of_starts,
    ),
)
