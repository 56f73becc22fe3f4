"""Findings of a check: the mistakes that the core recorded, in the terms of compute-sanitizer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from analysis.errors import LaunchError
from toolkit.machine_code.instruction import Instruction
from toolkit.sass import checker, machine
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.control_flow import ControlFlow
from toolkit.sass.core.binding import LANES, Fault
from toolkit.sass.faults import coordinates, describe
from toolkit.sass.translate import Translated

Tool = Literal["memcheck", "racecheck", "synccheck", "initcheck"]
TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck", "synccheck", "initcheck")

_HAZARDS = {
    checker.READ_AFTER_WRITE: ("RAW", "read-after-write"),
    checker.WRITE_AFTER_READ: ("WAR", "write-after-read"),
    checker.WRITE_AFTER_WRITE: ("WAW", "write-after-write"),
}
_BARRIERS = {
    checker.DIVERGENT_WARP: (
        "divergent thread(s) in warp",
        "a barrier of the block that threads of the same warp do not reach",
    ),
    checker.ABSENT_LANE: (
        "divergent thread(s) in warp",
        "a warp operation that a thread named by its mask does not execute",
    ),
    checker.INVALID_MASK: (
        "invalid arguments",
        "a thread takes part in a warp operation whose mask does not name it",
    ),
    checker.MISMATCHED_MASK: (
        "invalid arguments",
        "threads of a warp synchronise with each other, and name different masks",
    ),
}
UNDEFINED_SHUFFLES = {
    checker.UNNAMED_SOURCE: "which its mask {mask:#010x} does not name",
    checker.ABSENT_SOURCE: "which does not execute it",
}
_OF_CLUSTERS = {
    checker.EARLY_ACCESS: (
        "access before cluster barrier",
        "may not have started: no cluster barrier before",
    ),
    checker.LEFT_BLOCK: (
        "access after block exit",
        "may have left the kernel",
    ),
}
_FAULTS: dict[int, tuple[Tool, str]] = {
    machine.OUT_OF_BOUNDS: ("memcheck", "out of bounds"),
    machine.MISALIGNED: ("memcheck", "misaligned"),
    machine.WRITE_TO_CONSTANT: ("memcheck", "write to read-only memory"),
    machine.TRAP: ("memcheck", "trap"),
    machine.BAD_FREE: ("memcheck", "invalid free"),
    machine.NO_TENSOR_MAP: ("memcheck", "no tensor map"),
    machine.NO_TEXTURE: ("memcheck", "no such texture"),
    machine.SURFACE_BOUNDS: ("memcheck", "out of bounds"),
    machine.SURFACE_MISALIGNED: ("memcheck", "misaligned"),
    machine.ARRIVALS: ("synccheck", "invalid arrivals"),
    machine.PARTIAL_WARP: ("synccheck", "divergent thread(s) in warp"),
    machine.DEADLOCK: ("synccheck", "deadlock"),
    machine.DESCRIPTOR: ("memcheck", "out of bounds"),
    machine.PARTIAL_GROUP: ("synccheck", "divergent thread(s) in warp"),
}
DROPPED = {
    checker.OUT_OF_BOUNDS: machine.OUT_OF_BOUNDS,
    checker.MISALIGNED: machine.MISALIGNED,
    checker.WRITE_TO_CONSTANT: machine.WRITE_TO_CONSTANT,
}
_WITHIN_WARP = "no __syncwarp() between them"
_BULK_REMEDIES = {
    checker.READ_AFTER_WRITE: "no wait for the copy's mbarrier between them",
    checker.WRITE_AFTER_READ: (
        "the writer does not wait for an arrival at an mbarrier after the read"
    ),
    checker.WRITE_AFTER_WRITE: "the later write does not wait for the earlier one",
}
_PRODUCT_REMEDIES = {
    checker.WRITE_AFTER_READ: (
        "the writer does not come after a wgmma.wait_group for the group of that read"
    ),
}
_ASYNC_REMEDIES = {checker.IS_BULK: _BULK_REMEDIES, checker.IS_PRODUCT: _PRODUCT_REMEDIES}
_ACTIONS = {
    "LDGSTS": "asynchronous copy",
    **dict.fromkeys(("HGMMA", "QGMMA", "IGMMA", "BGMMA"), "read by wgmma"),
}
_MEMORY = (*machine.SPACES, None)  # as core.h numbers the spaces; the last is none


@dataclass(frozen=True, kw_only=True)
class ThreadAction:
    """Action of a thread, such as a read, and its source line."""

    what: str  #: the action: "read", "write", "atomic", "wait" ...
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    file: str | None  #: None without -lineinfo
    line: int | None  #: None without -lineinfo
    instruction: str
    #: (file, line) of the calls of the inlined functions around it, the innermost first
    callers: tuple[tuple[str, int], ...] = ()

    @property
    def location(self) -> str:
        if self.line is None:
            return f"{self.instruction} (compile with -lineinfo for the source line)"
        return f"{self.file}, line {self.line}" + "".join(
            f" (called from line {line}{'' if file == self.file else f' of {file}'})"
            for file, line in self.callers
        )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One mistake, and the number of its occurrences.

    Occurrences at the same source lines are one finding. Its threads are those of the first hazard
    between two warps, or else of the first occurrence.
    """

    tool: Tool
    kind: str  #: name of the mistake in `tool`
    message: str
    memory: str | None  #: "shared" or "global"; None if no memory is involved
    buffer: str | None  #: name of the buffer in global memory
    address: int | None  #: byte offset in the block's shared memory, or in the buffer
    width_bytes: int
    #: a hazard has two, in program order if both warps run the same code, else in the order of the
    #: simulation: their order on hardware is undefined
    accesses: tuple[ThreadAction, ...]
    times: int  #: number of occurrences

    @property
    def within_warp(self) -> bool:
        """True if both threads are of one warp, so that a warp barrier is sufficient."""
        return self.message.endswith(_WITHIN_WARP)


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """Findings, in which those of the same source lines are combined into one."""
    kept: dict[object, Finding] = {}
    for finding in findings:
        lines = [(x.file, x.line, x.line is None and x.instruction) for x in finding.accesses]
        key = finding.tool, finding.kind, finding.memory, *lines
        other = kept.get(key)
        if other is not None:
            first = finding if other.within_warp else other
            kept[key] = replace(first, times=other.times + finding.times)
        else:
            kept[key] = finding
    return list(kept.values())


class Wording:
    """Converter of the core's records to values of `Finding`, with messages."""

    def __init__(self, translated: Translated, bound: BoundLaunch) -> None:
        self._translated, self._bound = translated, bound
        self._control = ControlFlow(translated.kernel.instructions)

    def is_mistake(self, row: Any) -> bool:
        """False if the absent lane exited before it could reach a barrier or a warp operation.

        Both wait only for lanes that have not exited. A lane that continued past the operation is a
        mistake. A lane that waits at another barrier instruction is no mistake if `barrier.sync` is
        not `.aligned`, as in cooperative groups: the compiler lists such barriers as warp
        operations.
        """
        kind, pc, left = int(row["kind"]), int(row["pc"]), int(row["pc_before"])
        if kind not in (checker.ABSENT_LANE, checker.DIVERGENT_WARP):
            return True
        code = self._translated.kernel.instructions
        if kind == checker.ABSENT_LANE and not (
            pc + 1 < len(code) and code[pc + 1].opcode in checker.COLLECTIVES
        ):
            return False
        if left == checker.NOBODY and kind == checker.DIVERGENT_WARP:
            return code[pc].address not in self._translated.kernel.warp_operations
        return left == checker.NOBODY or self._control.always_bypasses(pc, left)

    def finding(self, row: Any) -> Finding:
        kind = int(row["kind"])
        if kind in _HAZARDS:
            return self._hazard(row, *_HAZARDS[kind])
        if kind == checker.UNWRITTEN:
            return self._unwritten(row)
        if kind in DROPPED:
            return self._dropped(row)
        if kind in UNDEFINED_SHUFFLES:
            return self._shuffle(row)
        if kind in _OF_CLUSTERS:
            return self._unfinished(row, *_OF_CLUSTERS[kind])
        return self._barrier(row, *_BARRIERS[kind])

    def of_fault(self, fault: Fault) -> Finding:
        """Finding for the fault that stopped a kernel. Raises LaunchError if no tool reports it."""
        message = describe(fault, self._translated, self._bound)
        if fault.kind not in _FAULTS:
            raise LaunchError(message)
        tool, kind = _FAULTS[fault.kind]
        in_memory = fault.kind in DROPPED.values()
        thread = fault.warp * LANES + fault.lane
        what = "free" if fault.kind == machine.BAD_FREE else "wait"
        if in_memory:
            what = "write" if fault.is_store else "read"
        return Finding(
            tool=tool,
            kind=kind,
            message=message,
            memory=_MEMORY[fault.space] if in_memory else None,
            buffer=None,
            address=fault.address if in_memory else None,
            width_bytes=fault.width_bytes,
            accesses=(self._access(fault.instruction, fault.block, thread, what),),
            times=1,
        )

    def _dropped(self, row: Any) -> Finding:
        """Finding for an invalid access, which the core left out."""
        warp, lane = divmod(int(row["thread"]), LANES)
        fault = Fault(
            kind=DROPPED[int(row["kind"])],
            instruction=int(row["pc"]),
            space=int(row["space"]),
            width_bytes=int(row["width"]),
            address=int(row["address"]),
            block=int(row["block"]),
            warp=warp,
            lane=lane,
            is_store=bool(row["is_store"]),
            words=_block_of_malloc(row),
        )
        return replace(self.of_fault(fault), times=int(row["times"]))

    def _hazard(self, row: Any, short: str, long: str) -> Finding:
        first = self._access(row["pc_before"], row["block_before"], row["thread_before"])
        second = self._access(row["pc"], row["block"], row["thread"])
        # in a[i] += 1, neither the read nor the write of the other thread comes first
        if row["is_async"] == checker.READ_IS_FIRST and first.location != second.location:
            first, second = second, first
            short, long = _HAZARDS[checker.WRITE_AFTER_READ]
        memory, buffer, address = self._memory(row)
        in_global = memory == "global"
        in_cluster = bool(row["owner"])
        first_block = f" of block {first.block}" if in_global or in_cluster else ""
        owner = f" of block {self._owner(row)}" if in_cluster else ""
        second_block = f" of block {second.block}"
        message = (
            f"{long} hazard on {place(memory, buffer, address)}{owner}: {first.what} by thread "
            f"{first.thread}{first_block}, {first.location}; {second.what} by thread "
            f"{second.thread}{second_block}, {second.location}: {_missing_order(row, memory)}"
        )
        return self._finding_of_row(row, "racecheck", short, message, (first, second))

    def _unwritten(self, row: Any) -> Finding:
        access = self._access(row["pc"], row["block"], row["thread"])
        message = (
            f"uninitialized read of {place(*self._memory(row))}, which no thread has written: "
            f"thread {access.thread} of block {access.block}, {access.location}"
        )
        return self._finding_of_row(row, "initcheck", "uninitialized read", message, (access,))

    def _barrier(self, row: Any, kind: str, meaning: str) -> Finding:
        access = self._access(row["pc"], row["block"], row["thread"], "wait")
        missing = ""
        if row["thread_before"] != checker.NOBODY:
            absent = self._thread(int(row["thread_before"]))
            missing = f" and thread {absent} does not"
        elif row["address"]:
            missing = f" with mask {int(row['address']):#010x}"
        message = (
            f"barrier error: {kind}: {meaning}: thread {access.thread} of block {access.block} "
            f"is at {access.location}{missing}"
        )
        return self._finding_of_row(row, "synccheck", kind, message, (access,))

    def _shuffle(self, row: Any) -> Finding:
        access = self._access(row["pc"], row["block"], row["thread"], "shuffle")
        lane, source = int(row["thread"]) % LANES, int(row["thread_before"]) % LANES
        why = UNDEFINED_SHUFFLES[int(row["kind"])].format(mask=int(row["address"]))
        if row["kind"] == checker.ABSENT_SOURCE and row["pc_before"] != checker.NOBODY:
            why = "which has left the kernel"
        message = (
            f"shuffle error: undefined value: lane {lane} (thread {access.thread} of block "
            f"{access.block}) reads lane {source}, {why}, at {access.location}"
        )
        return self._finding_of_row(row, "synccheck", "undefined value", message, (access,))

    def _unfinished(self, row: Any, kind: str, why: str) -> Finding:
        """Finding for an access to shared memory of a block that may not have started, or may have
        exited."""
        first = self._access(row["pc"], row["block"], row["thread"])
        accesses = [first]
        if row["thread_before"] != checker.NOBODY:
            end = self._access(row["pc_before"], row["block_before"], row["thread_before"], "exit")
            accesses.append(end)
            why += f" at {end.location}: no cluster barrier between them"
        memory, _, address = self._memory(row)
        message = (
            f"cluster error: {kind}: {first.what} of {place(memory, None, address)} of block "
            f"{self._owner(row)} by thread {first.thread} of block {first.block}, "
            f"{first.location}: that block {why}"
        )
        return self._finding_of_row(row, "synccheck", kind, message, tuple(accesses))

    def _owner(self, row: Any) -> tuple[int, int, int]:
        """Index of the block whose shared memory was accessed."""
        return coordinates(int(row["owner"]) - 1, self._bound.geometry.grid)

    def _finding_of_row(
        self, row: Any, tool: Tool, kind: str, message: str, accesses: tuple[ThreadAction, ...]
    ) -> Finding:
        memory, buffer, address = self._memory(row)
        return Finding(
            tool=tool,
            kind=kind,
            message=message,
            memory=memory,
            buffer=buffer,
            address=address,
            width_bytes=int(row["width"]),
            accesses=accesses,
            times=int(row["times"]),
        )

    def _memory(self, row: Any) -> tuple[str | None, str | None, int | None]:
        memory = _MEMORY[int(row["space"])]
        if memory == "shared":
            return memory, None, int(row["address"]) - self._bound.shared_base
        if memory == "global":
            address = int(row["address"])
            where = next(x for x in self._bound.buffers if 0 <= address - x.address < x.bytes)
            return memory, where.name, address - where.address
        return None, None, None

    def _access(self, pc: int, block: int, thread: int, what: str | None = None) -> ThreadAction:
        instruction = self._translated.kernel.instructions[int(pc)]
        source = instruction.source
        return ThreadAction(
            what=what or _action(instruction),
            block=coordinates(int(block), self._bound.geometry.grid),
            thread=self._thread(int(thread)),
            file=source.file if source else None,
            line=source.line if source else None,
            instruction=instruction.located,
            callers=source.callers if source else (),
        )

    def _thread(self, linear: int) -> tuple[int, int, int]:
        return coordinates(linear, self._bound.geometry.block)


def _block_of_malloc(row: Any) -> tuple[int, int]:
    """Address and bytes of the live block before an address of the heap; zeros without one."""
    size = int(row["thread_before"])
    return (0, 0) if size == checker.NOBODY else (int(row["block_before"]), size)


def _missing_order(row: Any, memory: str | None) -> str:
    """Reason why the two accesses of a hazard are not ordered."""
    remedies = _ASYNC_REMEDIES.get(int(row["is_async"]), {})
    if remedy := remedies.get(int(row["kind"])):
        return remedy
    if row["is_async"] == checker.IS_ASYNC:
        return "a copy that its thread did not wait for (cp.async.wait)"
    if memory == "global":
        return "no fence with an atomic operation orders the blocks"
    if row["owner"]:
        return "no cluster barrier between them"
    if int(row["thread"]) // LANES == int(row["thread_before"]) // LANES:
        return _WITHIN_WARP
    return "no __syncthreads() between them"


def place(memory: str | None, buffer: str | None, address: int | None) -> str:
    return f"{memory} memory at byte {address:,}" + (f" of {buffer}" if buffer else "")


def _action(instruction: Instruction) -> str:
    """Name of the action of an instruction on memory."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _ACTIONS:
        return _ACTIONS[opcode]
    if opcode.startswith(("UTMA", "UBLK")):
        return "bulk copy"
    if opcode == "SYNCS":
        if "EXCH" in modifiers:
            return "initialization of an mbarrier"
        return "wait for an mbarrier" if "PHASECHK" in modifiers else "arrival at an mbarrier"
    if opcode.startswith(("ATOM", "RED")):
        return "atomic"
    return "write" if opcode.startswith("ST") else "read"
