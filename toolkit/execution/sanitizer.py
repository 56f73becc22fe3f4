"""Mistakes of a kernel, found on the CPU and reported in the terms of NVIDIA's compute-sanitizer.

>>> import numpy as np
>>> from toolkit import check
>>> source = '''
... extern "C" __global__ void reverse(float *x) {
...     __shared__ float copy[64];
...     copy[threadIdx.x] = x[threadIdx.x];
...     x[threadIdx.x] = copy[63 - threadIdx.x];
... }'''
>>> x = np.zeros(64, dtype=np.float32)
>>> found = check(source, "reverse", grid=(1,), block=(64,), arguments=[x], arch="sm_80")
>>> [(x.tool, x.kind) for x in found.findings][:2]
[('racecheck', 'WAR'), ('racecheck', 'RAW')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from analysis.errors import InputError, LaunchError
from analysis.problem import Gemm
from toolkit.execution.block_plan import Blocks, plans
from toolkit.execution.simulate import (
    MAX_INSTRUCTIONS,
    NO_RUNG,
    prepared,
)
from toolkit.launch.checks import DEFAULT_ARCHITECTURE, device_of
from toolkit.launch.host_resources import available_bytes
from toolkit.launch.launch import Argument, buffers_of, launch_geometry
from toolkit.machine_code.instruction import SourceLine
from toolkit.machine_code.kernel_source import Source, compile_kernel, naming
from toolkit.rungs.arguments import position_of_c
from toolkit.rungs.launch import compile_for, is_name, rung_launch
from toolkit.rungs.matrices import chosen_seed
from toolkit.sass import check as watch
from toolkit.sass import machine
from toolkit.sass.check import Raw, run_watched, watched
from toolkit.sass.core.binding import LANES
from toolkit.sass.faults import coordinates, describe
from toolkit.sass.machine import Bound, Fault
from toolkit.sass.space import Buffer
from toolkit.sass.translate import Translated

Tool = Literal["memcheck", "racecheck", "synccheck", "initcheck"]
TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck", "synccheck", "initcheck")

_HAZARDS = {
    watch.READ_AFTER_WRITE: ("RAW", "read-after-write"),
    watch.WRITE_AFTER_READ: ("WAR", "write-after-read"),
    watch.WRITE_AFTER_WRITE: ("WAW", "write-after-write"),
}
_BARRIERS = {
    watch.DIVERGENT_WARP: (
        "divergent thread(s) in warp",
        "a barrier of the block that threads of the same warp do not reach",
    ),
    watch.ABSENT_LANE: (
        "divergent thread(s) in warp",
        "a warp operation that a thread named by its mask does not execute",
    ),
    watch.INVALID_MASK: (
        "invalid arguments",
        "a thread takes part in a warp operation whose mask does not name it",
    ),
    watch.MISMATCHED_MASK: (
        "invalid arguments",
        "threads of a warp synchronise with each other, and name different masks",
    ),
}
_FAULTS: dict[int, tuple[Tool, str]] = {
    machine.OUT_OF_BOUNDS: ("memcheck", "out of bounds"),
    machine.MISALIGNED: ("memcheck", "misaligned"),
    machine.WRITE_TO_CONSTANT: ("memcheck", "write to read-only memory"),
    machine.TRAP: ("memcheck", "trap"),
    machine.NO_TENSOR_MAP: ("memcheck", "no tensor map"),
    machine.ARRIVALS: ("synccheck", "invalid arrivals"),
    machine.DEADLOCK: ("synccheck", "deadlock"),
}
_DROPPED = {
    watch.OUT_OF_BOUNDS: machine.OUT_OF_BOUNDS,
    watch.MISALIGNED: machine.MISALIGNED,
    watch.WRITE_TO_CONSTANT: machine.WRITE_TO_CONSTANT,
}
_WITHIN_WARP = "no __syncwarp() lies between"
_BULK_REMEDIES = {
    watch.READ_AFTER_WRITE: "no wait for the copy's mbarrier lies between",
    watch.WRITE_AFTER_READ: (
        "no arrival at an mbarrier after the read, which the writer waits for, lies between"
    ),
    watch.WRITE_AFTER_WRITE: "nothing that the later one waits for lies between",
}
_MEMORY = (*machine.SPACES, None)  # as core.h numbers the spaces; the last is none


@dataclass(frozen=True, kw_only=True)
class Access:
    """Action of a thread, and its source line; `line` is None without -lineinfo.

    `callers`: the lines that call the inlined functions around it, the innermost first.
    """

    what: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    file: str | None
    line: int | None
    instruction: str
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
    """One mistake: its name in `tool`, the accesses, the address, and the number of occurrences.

    A hazard has two `accesses`, in program order if both warps run the code, else in the order of
    the simulation: the order on hardware is undefined. `address`: byte offset in the block's shared
    memory, or in the `buffer`; None if no memory is involved. Findings of the same lines are one,
    which occurred `times` times; its threads are those of the first hazard between two warps, if
    any.
    """

    tool: Tool
    kind: str
    message: str
    memory: str | None
    buffer: str | None
    address: int | None
    width_bytes: int
    accesses: tuple[Access, ...]
    times: int

    @property
    def within_warp(self) -> bool:
        """True if both threads are of one warp, so that a warp barrier is sufficient."""
        return self.message.endswith(_WITHIN_WARP)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Findings of a check, and the number of blocks checked. `tools`: tools that could run."""

    kernel: str
    findings: tuple[Finding, ...]
    executed_blocks: int
    blocks: int
    tools: tuple[Tool, ...]
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Summary in one line."""
        of = (
            "the one block"
            if self.blocks == 1
            else f"{self.executed_blocks:,} of {self.blocks:,} blocks"
        )
        if not self.findings:
            return f"{self.kernel}: no errors: {', '.join(self.tools)} on {of}"
        errors = f"{len(self.findings)} error{'s' * (len(self.findings) != 1)}"
        return f"{self.kernel}: {errors}: {', '.join(self._counts())} on {of}"

    def _counts(self) -> Iterator[str]:
        for tool in TOOLS:
            if count := sum(finding.tool == tool for finding in self.findings):
                yield f"{tool} {count}"


def check(
    source: Source,
    kernel: str | None = None,
    *,
    grid: int | Sequence[int] | None = None,
    block: int | Sequence[int] | None = None,
    arguments: Sequence[Argument] | None = None,
    unwritten: Sequence[int] = (),
    shape: str | int | Gemm | None = None,
    seed: int | None = None,
    dynamic_shared_bytes: int = 0,
    arch: str = DEFAULT_ARCHITECTURE,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] = ("-lineinfo",),
    blocks: Blocks = "all",
    max_instructions: int = MAX_INSTRUCTIONS,
    advance: Callable[[int, int], None] = lambda done, of: None,
) -> Checked:
    """Findings in a launch, executed as by `simulate`, about its memory and its synchronisation.

    `unwritten`: positions of array arguments without contents, such as outputs: initcheck reports
    reads before the first write. A rung by its name takes `shape` and `seed` instead, and `blocks`
    selects blocks, as in `simulate`; accesses are compared among the executed blocks. A fault of
    the kernel is a finding. Raises as `simulate` does for everything else.
    """
    if isinstance(source, str) and is_name(source):
        brought = (kernel, grid, block, arguments, dynamic_shared_bytes, defines)
        launch = rung_launch(source, shape, device_of(arch), brought)
        source, kernel = compile_for(arch, launch.selection, options), None
        geometry, arguments = launch.geometry, launch.arguments(chosen_seed(seed))
        unwritten = [position_of_c(launch.variant)]
    elif grid is None or block is None or arguments is None or (shape, seed) != (None, None):
        raise InputError(NO_RUNG)
    else:
        geometry = launch_geometry(grid, block, dynamic_shared_bytes)
    with naming(source):
        cubin = compile_kernel(source, kernel, target=arch, defines=defines, options=options)
        translated, bound, _ = prepared(cubin, geometry, arguments)
        chosen = _chosen_blocks(bound, blocks)
        names = _named(bound, arguments, unwritten)
        return _check(translated, bound, chosen, names, max_instructions, advance)


def _check(
    translated: Translated,
    bound: Bound,
    blocks: Sequence[int],
    unwritten: Sequence[str],
    max_instructions: int,
    advance: Callable[[int, int], None],
) -> Checked:
    """Findings in some blocks. `unwritten`: names of buffers.

    Raises LaunchError if the kernel stops for a reason that is no finding, such as an endless loop.
    """
    done = 0

    def count(finished: int) -> None:
        nonlocal done
        done += finished
        advance(done, len(blocks))

    follows = watch.follows_shared_memory(translated)
    launch = watched(translated, bound, unwritten)
    _check_memory(launch, translated.kernel.name)
    raw = run_watched(launch, blocks, max_instructions=max_instructions, advance=count)
    words = _Words(translated, bound)
    findings = folded(words.finding(row) for row in raw.findings if words.is_mistake(row))
    if not follows:
        unseen = ("racecheck", "initcheck")
        findings = [x for x in findings if x.tool not in unseen or x.memory != "shared"]
    if raw.fault is not None and not _outlives_its_faults(raw):
        findings.append(words.of_fault(raw.fault))
    return Checked(
        kernel=translated.kernel.name,
        findings=tuple(sorted(findings, key=lambda finding: TOOLS.index(finding.tool))),
        executed_blocks=done + (raw.fault is not None),
        blocks=bound.geometry.blocks,
        tools=tuple(tool for tool in TOOLS if follows or tool != "racecheck"),
        notes=tuple(_notes(raw, follows)),
    )


def _dropped_some(raw: Raw) -> bool:
    return bool(np.isin(raw.findings["kind"], list(_DROPPED)).any())


def _outlives_its_faults(raw: Raw) -> bool:
    """True if a launch did not end because accesses were dropped: no mistake of the kernel."""
    return raw.fault is not None and raw.fault.kind == machine.LIMIT and _dropped_some(raw)


def _check_memory(launch: Bound, kernel: str) -> None:
    """Raise LaunchError if the shadow memory of the buffers may not fit into memory."""
    needed, available = watch.shadow_bytes(launch), available_bytes()
    if available is not None and needed > available:
        raise LaunchError(
            f"{kernel}: to check it takes up to {needed / 1e9:.1f} GB beside its buffers, "
            f"{available / 1e9:.1f} GB are free: take a smaller launch"
        )


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """Findings, with those of the same lines combined into one."""
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


def _notes(raw: Raw, follows: bool) -> Iterator[str]:
    unchecked = "what it does afterwards, and in later blocks, was not checked"
    if _dropped_some(raw):
        yield (
            "accesses that memcheck names were left out, reads among them gave 0: what else is "
            "found may follow from that"
        )
    if _outlives_its_faults(raw):
        limit = f"its limit of instructions (at most {watch.AFTERLIFE:,}, counted by warps)"
        yield f"after the first of them the kernel did not end within {limit}: {unchecked}"
    elif raw.fault is not None:
        yield f"the kernel was stopped there: {unchecked}"
    if not raw.is_complete:
        yield (
            f"there are more kinds of findings than are listed (memcheck stops after "
            f"{watch.MOST_FAULTS}): mend these first"
        )
    if not follows:
        yield (
            "racecheck and initcheck did not look at shared memory: blocks of a cluster access "
            "each other's, which is not followed"
        )


def _chosen_blocks(bound: Bound, blocks: Blocks) -> Sequence[int]:
    """Linear indices of the blocks that `blocks` selects; all if blocks may wait for each other."""
    if bound.blocks_meet:
        blocks = "all"
    plan = next(plans(bound.geometry.grid, blocks))
    return sorted(block for members in plan.members for block in members)


def _named(bound: Bound, arguments: Sequence[Argument], unwritten: Sequence[int]) -> list[str]:
    """Names of the buffers of the arguments at positions `unwritten`."""
    arrays = list(buffers_of(arguments))
    buffers = dict(zip(arrays, bound.buffers[len(bound.buffers) - len(arrays) :], strict=True))
    wrong = [k for k in unwritten if k not in buffers]
    if wrong:
        raise InputError(
            f"unwritten = {wrong[0]}: that argument is no array: give positions among "
            f"{sorted(buffers)}"
        )
    return [buffers[k].name for k in unwritten]


def _callers(source: SourceLine | None) -> Iterator[tuple[str, int]]:
    while source is not None and (source := source.caller) is not None:
        yield source.file, source.line


@dataclass(frozen=True, kw_only=True)
class _Where:
    """Location in global memory: a buffer and a byte offset."""

    buffer: Buffer
    offset: int


class _Words:
    """Converts findings of the core into `Finding`s with messages."""

    def __init__(self, translated: Translated, bound: Bound) -> None:
        self._translated, self._bound = translated, bound

    def is_mistake(self, row: Any) -> bool:
        """False for a lane that exited before it could reach a warp operation.

        A warp barrier waits only for lanes that have not exited. A lane whose EXIT can be reached
        from the operation went past it.
        """
        if int(row["kind"]) != watch.ABSENT_LANE:
            return True
        code, pc = self._translated.kernel.instructions, int(row["pc"])
        is_collective = pc + 1 < len(code) and code[pc + 1].opcode in watch.COLLECTIVES
        left = int(row["pc_before"])
        return is_collective and (left == watch.NOBODY or watch.reaches(code, pc, left))

    def finding(self, row: Any) -> Finding:
        kind = int(row["kind"])
        if kind in _HAZARDS:
            return self._hazard(row, *_HAZARDS[kind])
        if kind == watch.UNWRITTEN:
            return self._unwritten(row)
        if kind in _DROPPED:
            return self._dropped(row)
        return self._barrier(row, *_BARRIERS[kind])

    def of_fault(self, fault: Fault) -> Finding:
        """Finding for the fault that stopped a kernel. Raises LaunchError if no tool covers it."""
        message = describe(fault, self._translated, self._bound)
        if fault.kind not in _FAULTS:
            raise LaunchError(message)
        tool, kind = _FAULTS[fault.kind]
        in_memory = fault.kind in _DROPPED.values()
        thread = fault.warp * LANES + fault.lane
        what = ("write" if fault.is_store else "read") if in_memory else "wait"
        return Finding(
            tool=tool,
            kind=kind,
            message=message,
            memory=_MEMORY[fault.space] if in_memory else None,
            buffer=None,
            address=fault.address if in_memory else None,
            width_bytes=fault.width_bytes,
            accesses=(self._access(what, fault.instruction, fault.block, thread),),
            times=1,
        )

    def _dropped(self, row: Any) -> Finding:
        """Finding for an invalid access."""
        warp, lane = divmod(int(row["thread"]), LANES)
        fault = Fault(
            kind=_DROPPED[int(row["kind"])],
            instruction=int(row["pc"]),
            space=int(row["space"]),
            width_bytes=int(row["width"]),
            address=int(row["address"]),
            block=int(row["block"]),
            warp=warp,
            lane=lane,
            is_store=bool(row["is_store"]),
        )
        return replace(self.of_fault(fault), times=int(row["times"]))

    def _hazard(self, row: Any, short: str, long: str) -> Finding:
        kind = int(row["kind"])
        first = self._access(
            self._what(row["pc_before"]),
            row["pc_before"],
            row["block_before"],
            row["thread_before"],
        )
        second = self._access(self._what(row["pc"]), row["pc"], row["block"], row["thread"])
        is_async = row["is_async"] in (watch.IS_ASYNC, watch.IS_BULK)
        # in a[i] += 1, neither the read nor the write of the other thread comes first
        if row["is_async"] == watch.READ_IS_FIRST and first.location != second.location:
            first, second = second, first
            short, long = _HAZARDS[watch.WRITE_AFTER_READ]
        memory, buffer, address = self._memory(row)
        in_global = memory == "global"
        remedy = (
            _BULK_REMEDIES[kind]
            if row["is_async"] == watch.IS_BULK
            else "a copy that its thread did not wait for (cp.async.wait)"
            if is_async
            else "no fence and atomic operation orders the blocks"
            if in_global
            else _WITHIN_WARP
            if int(row["thread"]) // LANES == int(row["thread_before"]) // LANES
            else "no __syncthreads() lies between"
        )
        first_block = f" of block {first.block}" if in_global else ""
        second_block = f" of block {second.block}"
        message = (
            f"{long} hazard on {self._at(memory, buffer, address)}: {first.what} by thread "
            f"{first.thread}{first_block}, {first.location}; {second.what} by thread "
            f"{second.thread}{second_block}, {second.location}: {remedy}"
        )
        return self._made(row, "racecheck", short, message, (first, second))

    def _unwritten(self, row: Any) -> Finding:
        access = self._access(self._what(row["pc"]), row["pc"], row["block"], row["thread"])
        message = (
            f"uninitialized read of {self._at(*self._memory(row))}, which nobody has written: "
            f"thread {access.thread} of block {access.block}, {access.location}"
        )
        return self._made(row, "initcheck", "uninitialized read", message, (access,))

    def _barrier(self, row: Any, kind: str, meaning: str) -> Finding:
        access = self._access("wait", row["pc"], row["block"], row["thread"])
        accesses = [access]
        missing = ""
        if row["thread_before"] != watch.NOBODY:
            absent = self._thread(int(row["thread_before"]))
            missing = f" and thread {absent} does not"
        elif row["address"]:
            missing = f" with mask {int(row['address']):#010x}"
        message = (
            f"barrier error: {kind}: {meaning}: thread {access.thread} of block {access.block} "
            f"is at {access.location}{missing}"
        )
        return self._made(row, "synccheck", kind, message, tuple(accesses))

    def _made(
        self, row: Any, tool: Tool, kind: str, message: str, accesses: tuple[Access, ...]
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
            where = self._located(int(row["address"]))
            return memory, where.buffer.name, where.offset
        return None, None, None

    def _located(self, address: int) -> _Where:
        buffer = next(x for x in self._bound.buffers if x.address <= address < x.address + x.bytes)
        return _Where(buffer=buffer, offset=address - buffer.address)

    @staticmethod
    def _at(memory: str | None, buffer: str | None, address: int | None) -> str:
        return f"{memory} memory at byte {address:,}" + (f" of {buffer}" if buffer else "")

    def _what(self, pc: int) -> str:
        opcode = self._translated.kernel.instructions[int(pc)].opcode
        if opcode == "LDGSTS":
            return "asynchronous copy"
        if opcode.startswith(("UTMA", "UBLK")):
            return "bulk copy"
        if opcode == "SYNCS":
            return self._what_of_mbarrier(pc)
        if opcode.startswith(("ATOM", "RED")):
            return "atomic"
        return "write" if opcode.startswith("ST") else "read"

    def _what_of_mbarrier(self, pc: int) -> str:
        modifiers = self._translated.kernel.instructions[int(pc)].modifiers
        if "EXCH" in modifiers:
            return "initialization of an mbarrier"
        return "wait for an mbarrier" if "PHASECHK" in modifiers else "arrival at an mbarrier"

    def _access(self, what: str, pc: int, block: int, thread: int) -> Access:
        instruction = self._translated.kernel.instructions[int(pc)]
        source = instruction.source
        return Access(
            what=what,
            block=self._block(int(block)),
            thread=self._thread(int(thread)),
            file=source.file if source else None,
            line=source.line if source else None,
            instruction=f"{instruction.text.strip()} at {instruction.address:#06x}",
            callers=tuple(_callers(source)),
        )

    def _thread(self, linear: int) -> tuple[int, int, int]:
        return coordinates(linear, self._bound.geometry.block)

    def _block(self, linear: int) -> tuple[int, int, int]:
        return coordinates(linear, self._bound.geometry.grid)
