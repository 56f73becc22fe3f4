"""Check of a kernel on the CPU, with findings in the terms of NVIDIA's compute-sanitizer.

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.argument_types import checked, shown
from analysis.comparison.accuracy import device_of
from analysis.errors import InputError, LaunchError
from analysis.geometry import Geometry
from analysis.problem import Gemm
from reports import text
from toolkit.execution.completed_request import completed
from toolkit.execution.findings import (
    DROPPED,
    TOOLS,
    UNDEFINED_SHUFFLES,
    Finding,
    Tool,
    folded,
)
from toolkit.execution.launch_request import NO_RUNG, LaunchRequest, with_compiler
from toolkit.execution.limits import check_limits
from toolkit.execution.product_findings import ProductWording
from toolkit.execution.representatives import PERIOD, Blocks, limited, regions
from toolkit.execution.simulator import MAX_INSTRUCTIONS, Announce, prepared
from toolkit.execution.wall_time import MOST_INSTRUCTIONS, WallTime, estimated_wall_time
from toolkit.frontends.front_end import Grid
from toolkit.launch.heap import HEAP_BYTES
from toolkit.launch.host_resources import shortage
from toolkit.launch.launch import Argument, buffers_of
from toolkit.launch.progress import FinishedBlocks
from toolkit.launch.setup import Content, setup_of
from toolkit.machine_code.architectures import DEFAULT_ARCHITECTURE
from toolkit.machine_code.compile import Compiler
from toolkit.machine_code.kernel_source import Source, naming
from toolkit.machine_code.left_out import summary
from toolkit.rungs.arguments import position_of_c
from toolkit.rungs.launch import compile_for
from toolkit.rungs.matrices import chosen_seed
from toolkit.sass import checker, machine
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.checker import Raw, run_checked, with_checks
from toolkit.sass.faults import describe_unaccessed
from toolkit.sass.machine import FaultError
from toolkit.sass.module_variables import describe_unset
from toolkit.sass.printed import text_of
from toolkit.sass.texture_faults import unchecked_surfaces
from toolkit.sass.translate import Translated, addresses_of


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Findings of a check, and its extent."""

    kernel: str
    findings: tuple[Finding, ...]
    executed_blocks: int  #: number of blocks that were checked
    blocks: int  #: number of blocks of the launch
    tools: tuple[Tool, ...]  #: tools that could run
    notes: tuple[str, ...] = ()
    printed: str = ""  #: text that the kernel printed (printf), block after block
    geometry: Geometry | None = None  #: of the launch, which a front end may have chosen

    @property
    def summary(self) -> str:
        """Number of findings by tool, and the extent of the check, in one line."""
        of = (
            "the one block"
            if self.blocks == 1
            else f"{self.executed_blocks:,} of {self.blocks:,} blocks"
        )
        if not self.findings:
            return f"{self.kernel}: no errors: {', '.join(self.tools)} on {of}"
        errors = text.many(len(self.findings), "error")
        return f"{self.kernel}: {errors}: {', '.join(self._counts())} on {of}"

    def _counts(self) -> Iterator[str]:
        for tool in TOOLS:
            if count := sum(finding.tool == tool for finding in self.findings):
                yield f"{tool} {count}"


@checked
def check(
    source: Source | Any,
    kernel: str | None = None,
    *,
    grid: Grid | None = None,
    block: int | Sequence[int] | None = None,
    arguments: Sequence[Any] | Mapping[str, Argument] | None = None,
    unwritten: Sequence[int] = (),
    shape: str | int | Gemm | None = None,
    seed: int | None = None,
    dynamic_shared_bytes: int | None = None,
    launch_line: int | None = None,
    symbols: Content | None = None,
    cooperative: bool = False,
    heap_bytes: int = HEAP_BYTES,
    arch: str | None = None,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] = ("-lineinfo",),
    compiler: Compiler = "nvrtc",
    blocks: Blocks = "all",
    max_instructions: int = MAX_INSTRUCTIONS,
    advance: Callable[[int, int], None] = lambda done, of: None,
    announce: Announce | None = None,
    source_dirs: Sequence[str | Path] = (),
) -> Checked:
    """Check the memory accesses and the synchronisation of a launch, executed as by `simulate`.

    Parameters
    ----------
    source, kernel, grid, block, arguments, shape, seed, launch_line
        As of `simulate`, but no sizes are guessed.
    symbols, cooperative, heap_bytes, arch, defines, options, compiler, source_dirs
        As of `simulate`.
    unwritten
        Positions of array arguments without contents, such as outputs: reads of them before the
        first write are findings.
    blocks
        "all"; "representative": some blocks of each corner, edge and the interior of the grid; or a
        number of blocks. Accesses are compared among the executed blocks.
    advance, announce
        As of `simulate`.

    Returns
    -------
    Checked
        A fault of the kernel is a finding, not an error.

    Raises
    ------
    ToolkitError
        As `simulate` does for what is no fault of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import check
    >>> source = 'extern "C" __global__ void shift(float *x) { x[threadIdx.x + 1] = 1; }'
    >>> found = check(source, grid=1, block=32, arguments=[np.zeros(32, np.float32)])
    >>> [finding.kind for finding in found.findings]
    ['out of bounds']
    """
    check_limits(blocks, max_instructions)
    request = LaunchRequest(
        source=source,
        kernel=kernel,
        grid=grid,
        block=block,
        arguments=arguments,
        shape=shape,
        dynamic_shared_bytes=dynamic_shared_bytes,
        setup=setup_of(symbols, cooperative, heap_bytes),
        defines=defines,
        options=with_compiler(options, compiler),
        source_dirs=source_dirs,
        launch_line=launch_line,
    )
    notes: tuple[str, ...] = ()
    given: Sequence[Argument]
    if rung := request.rung(device_of(arch or DEFAULT_ARCHITECTURE)):
        geometry, given = rung.geometry, rung.arguments(chosen_seed(seed))
        unwritten = [position_of_c(rung.variant)]
    elif seed is not None:
        raise InputError(NO_RUNG)
    else:
        request, own = request.in_machine_code(arch or DEFAULT_ARCHITECTURE)
        notes = own.notes if own else notes
        unwritten = own.positions(unwritten) if own else unwritten
    with naming(source):
        if rung:
            cubin = compile_for(arch or DEFAULT_ARCHITECTURE, rung.selection, request.options)
        else:
            whole = completed(request, arch, seed, guesses=False)
            cubin, notes = whole.kernel, (*whole.notes, *notes)
            geometry, given = whole.request.launched()
        translated, bound, _ = prepared(cubin, geometry, given, setup=request.setup)
        chosen = _chosen_blocks(bound, blocks)
        names = _named(bound, given, unwritten)
        if lack := shortage(checker.memory_bytes(with_checks(translated, bound, names))):
            raise LaunchError(f"{cubin.name}: a check takes up to {lack}: take a smaller launch")
        if announce is not None and max_instructions >= MOST_INSTRUCTIONS:
            announce(_estimated(translated, bound, chosen, names))
        symbols = request.setup.symbols
        found = _check(translated, bound, chosen, names, max_instructions, advance, symbols)
    return replace(found, notes=(*notes, *found.notes))


def _estimated(
    translated: Translated, bound: BoundLaunch, blocks: Sequence[int], unwritten: Sequence[str]
) -> WallTime:
    """Estimated time of a check of some blocks, from a few of them."""

    def execute(few: Sequence[int], most: int) -> None:
        launch = with_checks(translated, bound, unwritten)
        if fault := run_checked(launch, few, max_instructions=most).fault:
            raise FaultError(fault)

    return estimated_wall_time(execute, bound, blocks, 1, waits=bound.blocks_meet)


def _check(
    translated: Translated,
    bound: BoundLaunch,
    blocks: Sequence[int],
    unwritten: Sequence[str],
    max_instructions: int,
    advance: Callable[[int, int], None],
    given: Content,
) -> Checked:
    """Check some blocks. `unwritten`: names of the buffers without contents; `given`: variables
    that were set.

    Raises LaunchError if the kernel stops for a reason that is not a finding, such as an endless
    loop.
    """
    progress = FinishedBlocks(of=len(blocks), advance=advance)
    follows = checker.follows_shared_memory(translated)
    in_cluster = checker.follows_clusters(translated)
    launch = with_checks(translated, bound, unwritten)
    raw = run_checked(launch, blocks, max_instructions=max_instructions, advance=progress.add)
    words = ProductWording(translated, bound)
    rows = [row for row in raw.findings if words.is_mistake(row)]
    shuffles = [row for row in rows if row["kind"] in UNDEFINED_SHUFFLES]
    if (
        shuffles
        and raw.fault is None
        and not checker.undefined_values_matter(launch, blocks, max_instructions=max_instructions)
    ):
        rows = [row for row in rows if row["kind"] not in UNDEFINED_SHUFFLES]
    findings = folded(map(words.finding, rows))
    if not follows:
        findings = [one for one in findings if not _is_unfollowed(one)]
    if raw.fault is not None and not _outlives_its_faults(raw):
        findings.append(words.of_fault(raw.fault))
    return Checked(
        kernel=translated.kernel.name,
        findings=tuple(sorted(findings, key=lambda finding: TOOLS.index(finding.tool))),
        executed_blocks=progress.done + (raw.fault is not None),
        blocks=bound.geometry.blocks,
        tools=tuple(tool for tool in TOOLS if follows or in_cluster or tool != "racecheck"),
        notes=(
            *translated.kernel.notes,
            *summary(translated.kernel.left_out),
            *_notes(raw, follows, in_cluster),
            *unchecked_surfaces(translated),
            *_unaccessed(launch, raw, blocks),
            *describe_unset(
                translated.kernel,
                translated.linked.instructions,
                raw.executed,
                bound.use,
                addresses_of(translated.kernel),
                given,
            ),
        ),
        printed=text_of(raw.printed),
        geometry=bound.geometry,
    )


def _is_unfollowed(finding: Finding) -> bool:
    """True for findings in shared memory that cannot be trusted if it is not followed.

    A race between blocks of a cluster can.
    """
    is_of_shared_memory = finding.memory == "shared" and finding.tool in ("racecheck", "initcheck")
    return is_of_shared_memory and len({one.block for one in finding.accesses}) <= 1


def _dropped_some(raw: Raw) -> bool:
    return bool(np.isin(raw.findings["kind"], list(DROPPED)).any())


def _outlives_its_faults(raw: Raw) -> bool:
    """True if a launch did not end after invalid accesses were left out.

    That is not a mistake of the kernel: the loop may depend on these accesses.
    """
    return raw.fault is not None and raw.fault.kind == machine.LIMIT and _dropped_some(raw)


def _notes(raw: Raw, follows: bool, in_cluster: bool) -> Iterator[str]:
    unchecked = "the instructions after it, and later blocks, were not checked"
    if _dropped_some(raw):
        yield (
            "the accesses that memcheck reports were left out, and such reads returned 0: other "
            "findings may be a consequence"
        )
    if _outlives_its_faults(raw):
        limit = f"its limit of instructions (at most {checker.AFTERLIFE:,}, counted by warps)"
        yield f"after the first of them the kernel did not end within {limit}: {unchecked}"
    elif raw.fault is not None:
        yield f"the kernel was stopped there: {unchecked}"
    if not raw.is_complete:
        yield (
            f"there are more findings than are listed (memcheck stops after "
            f"{checker.MOST_FAULTS}): fix these first"
        )
    if in_cluster:
        yield (
            "in shared memory, racecheck compared only accesses of different blocks of a cluster, "
            "and initcheck did not run"
        )
    elif not follows:
        yield (
            "racecheck and initcheck did not check shared memory: they do not follow st.bulk, and "
            "blocks of a cluster that access each other's shared memory"
        )


def _unaccessed(launch: BoundLaunch, raw: Raw, blocks: Sequence[int]) -> Iterator[str]:
    """Notes on arguments that no thread accesses, if all blocks were executed as they are."""
    is_whole = raw.fault is None and raw.is_complete and not _dropped_some(raw)
    if is_whole and len(blocks) == launch.geometry.blocks:
        yield from describe_unaccessed(launch)


def _chosen_blocks(bound: BoundLaunch, blocks: Blocks) -> Sequence[int]:
    """Linear indices of the blocks that `blocks` selects: all if blocks may wait for each other."""
    everything = bound.geometry.blocks
    if bound.blocks_meet or blocks == "all" or (isinstance(blocks, int) and blocks >= everything):
        return range(everything)
    chosen = regions(bound.geometry.grid, PERIOD)
    if isinstance(blocks, int):
        chosen = limited(chosen, blocks)
    return sorted(block for region in chosen for block in region.members)


def _named(
    bound: BoundLaunch, arguments: Sequence[Argument], unwritten: Sequence[int]
) -> list[str]:
    """Names of the buffers of the arguments at positions `unwritten`."""
    arrays = list(buffers_of(arguments))
    buffers = dict(zip(arrays, bound.buffers[len(bound.buffers) - len(arrays) :], strict=True))
    wrong = [k for k in unwritten if not isinstance(k, int) or k not in buffers]
    if wrong:
        raise InputError(
            f"unwritten = {shown(wrong[0])}: that argument is not an array: give positions among "
            f"{sorted(buffers)}"
        )
    return [buffers[k].name for k in unwritten]
