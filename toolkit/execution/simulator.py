"""The executor without a GPU: it executes a compiled kernel for one architecture."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.devices import Device
from analysis.errors import InputError, LaunchError
from analysis.geometry import Geometry
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.records.counters import totals
from analysis.timing.predicted import Explanation
from toolkit.execution.accesses import MOST_ACCESSES, MOST_ACCESSES_OF_WAITING
from toolkit.execution.block_counts import (
    BlockSelection,
    RecordedCounts,
    counted_blocks,
)
from toolkit.execution.launch_time import (
    counted_execution,
    modelled_execution,
    unmodelled_execution,
)
from toolkit.execution.limits import check_blocks, check_buffers, check_limits, check_room, selected
from toolkit.execution.representatives import Blocks
from toolkit.execution.residency import check_cooperative, most_resident, residence_of
from toolkit.execution.tickets import with_tickets, works_alone
from toolkit.execution.wall_time import (
    MOST_INSTRUCTIONS,
    SOON,
    Execute,
    WallTime,
    announcing,
    estimated_wall_time,
)
from toolkit.launch.checks import (
    check_arguments,
    check_fits,
    check_geometry,
    check_shared,
)
from toolkit.launch.host_resources import available_cores
from toolkit.launch.launch import (
    Argument,
    Execution,
    buffer_labels,
    buffers_of,
)
from toolkit.launch.progress import FinishedBlocks
from toolkit.launch.setup import PLAIN, LaunchSetup
from toolkit.machine_code.architectures import architecture_of, check_runs_on
from toolkit.machine_code.elf import reading
from toolkit.machine_code.instruction import INSTRUCTION_BYTES
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.variable_names import variable_name
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.core.binding import Fault
from toolkit.sass.faults import describe, describe_passed, describe_unaccessed, describe_unwritten
from toolkit.sass.machine import (
    DEADLOCK,
    LIMIT,
    OUT_OF_BOUNDS,
    SPACES,
    FaultError,
    Run,
    run_blocks,
)
from toolkit.sass.module_variables import describe_unset, outputs_of
from toolkit.sass.polls import may_wait, repeats_exchanges
from toolkit.sass.printed import joined_records, text_of
from toolkit.sass.regions import Flow, Regions
from toolkit.sass.schedule_facts import schedule_facts
from toolkit.sass.space import Buffer
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.system_calls import describe_system_calls
from toolkit.sass.texture_faults import describe_textures
from toolkit.sass.translate import Translated, addresses_of, bind, translate
from toolkit.sass.unread_values import without_unread_sums
from toolkit.sass.waits import polls_by_atomics

# An hour of two cores: a launch that runs longer is assumed to hang.
MAX_INSTRUCTIONS = 10**12
# Warp instructions of blocks that are executed alone although they repeat exchanges: ten seconds of
# a core. What takes more may wait for another block.
MOST_ALONE = 1 << 28

LIMIT_S = 10.0  # all blocks are executed, rather than counters estimated, within this time

Advance = Callable[[int, int], None]
Announce = Callable[[WallTime], None]
WhenCounted = Callable[[Execution], None]


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """Executor without a GPU, for one architecture. Its fields are arguments of `simulate`.

    `explanation`: what predictions say that the time is spent on. `sums_decide`: False if the
    caller knows that no branch or address depends on sums of products, although they go through
    memory that the kernel reads. They are not computed then, if outputs are not asked for.
    `code_stays`: False if the launch follows one of another kernel, for predicted times.
    `allow_out_of_bounds`: go on where accesses are beyond all arrays, if outputs are not asked for.
    """

    arch: str | None = None
    blocks: Blocks = "all"
    max_instructions: int = MAX_INSTRUCTIONS
    workers: int | None = None
    advance: Advance | None = None
    announce: Announce | None = None
    when_counted: WhenCounted | None = None
    device: Device | None = None
    outputs: bool = True
    seed: int | None = None
    limit_s: float = LIMIT_S
    explanation: Explanation = Explanation.COSTS
    sums_decide: bool = True
    setup: LaunchSetup = PLAIN
    l2: L2State = DEFAULT_L2
    code_stays: bool = True
    allow_out_of_bounds: bool = False

    def __post_init__(self) -> None:
        check_limits(self.blocks, self.max_instructions, self.workers)

    @property
    def target(self) -> str:
        """Architecture that sources are compiled for."""
        return architecture_of(self.arch, self.device)

    def run(self, cubin: Kernel, geometry: Geometry, arguments: Sequence[Argument]) -> Execution:
        """Execute a compiled kernel, as `simulate` does."""
        if self.blocks != (blocks := selected(self.blocks, geometry.grid)):
            return replace(self, blocks=blocks).run(cubin, geometry, arguments)
        check_runs_on(cubin.limits_of, self.device)
        translated, bound, outputs = prepared(
            cubin, geometry, arguments, device=self.device, setup=self.setup
        )
        bound = replace(bound, notes_requests=True)
        if not self.outputs:
            flow = Flow(translated.linked.instructions, bound.lowered)
            bound = replace(bound, lowered=without_unread_sums(flow, may_decide=self.sums_decide))
        if self.outputs:
            check_buffers(cubin.name, bound)
        if self.blocks == "representative" or (self.blocks == "all" and self.device):
            check_blocks(cubin.name, geometry.blocks)
            waits = schedule_facts(cubin).waits
            most = MOST_ACCESSES_OF_WAITING if waits else MOST_ACCESSES
            bound = replace(bound, most_accesses=most, notes_work=True)
        selection = self._selection(translated, bound, arguments)
        started = time.perf_counter()
        try:
            counted, passed = self._counted(cubin, bound, selection)
        except FaultError as error:
            failed = LaunchError(describe(error.fault, translated, bound))
            failed.printed = error.printed
            raise failed from None
        simulation_s = time.perf_counter() - started
        printed = joined_records([run.printed for run in counted.runs])
        if self.outputs:
            for buffer in bound.buffers:
                buffer.complete()
        execution = counted_execution(
            translated,
            counted,
            geometry,
            simulation_s=simulation_s,
            outputs=outputs if self.outputs else (),
            notes=(
                *cubin.notes,
                *counted.unchecked(geometry.blocks),
                *describe_unwritten(counted.runs, translated, bound),
                *describe_system_calls(printed, translated, counted.blocks, geometry.blocks),
                *describe_textures(translated, counted.counts),
                *self._unset(translated, bound, counted),
                *(describe_unaccessed(bound) if counted.blocks == geometry.blocks else ()),
            ),
        )
        execution = replace(
            execution,
            device=self.device,
            uncertainty=". ".join(
                filter(None, [*describe_passed(passed, translated, bound), execution.uncertainty])
            ),
            printed=text_of(printed),
            symbols=self._symbols(cubin, bound) if self.outputs else {},
        )
        if self.when_counted is not None:
            self.when_counted(execution)
        if self.device is None:
            return execution
        try:
            residence = residence_of(self.device, cubin, geometry, self.l2)
            residence = replace(residence, code_stays=self.code_stays)
        except InputError as error:
            return unmodelled_execution(execution, str(error))
        return modelled_execution(
            execution,
            translated,
            geometry,
            counted,
            residence,
            explanation=self.explanation,
        )

    def _counted(
        self, cubin: Kernel, bound: BoundLaunch, selection: BlockSelection
    ) -> tuple[RecordedCounts, dict[str, Fault]]:
        """Counts of a launch, and where it went on after a fault, if its outputs are not wanted.

        The faults are by the field of the bound launch that lets it go on.
        """
        again, passed = selection.again, dict[str, Fault]()
        while True:
            try:
                return self._counted_once(cubin, bound, selection), passed
            except FaultError as error:
                field = self._goes_on(cubin, error.fault)
                if field is None or field in passed:
                    raise
                passed[field] = error.fault
            changes: dict[str, Any] = dict.fromkeys(passed, True)
            bound.restore()
            bound = replace(bound, **changes)
            selection = replace(selection, again=_changed(again, changes))

    def _goes_on(self, cubin: Kernel, fault: Fault) -> str | None:
        """Field of a bound launch that lets it go on after a fault, None for a real error.

        Loops that poll in vain end. Accesses beyond all arrays are allowed if that is asked for.
        """
        if self.outputs:
            return None
        if fault.kind == DEADLOCK:
            polls = schedule_facts(cubin).waits or polls_by_atomics(cubin.instructions)
            return "gives_up" if polls else None
        is_beyond = fault.kind == OUT_OF_BOUNDS and SPACES[fault.space] == "global"
        return "leaves_bounds" if self.allow_out_of_bounds and is_beyond else None

    def _counted_once(
        self, cubin: Kernel, bound: BoundLaunch, selection: BlockSelection
    ) -> RecordedCounts:
        return counted_blocks(
            bound,
            selection,
            partial(self._followed, bound),
            self._few_followed(bound),
            partial(self._soon, cubin.name, bound),
            partial(self._before_all, cubin.name, bound, selection.trial),
        )

    def _soon(self, kernel: str, bound: BoundLaunch) -> list[Run] | None:
        """Run of all blocks, None if a worker executes more than SOON warp instructions."""
        check_buffers(kernel, bound)
        most = min(SOON, self.max_instructions)
        try:
            return self._run(bound, [range(bound.geometry.blocks)], most)
        except FaultError as error:
            if error.fault.kind != LIMIT or most == self.max_instructions:
                raise
        bound.restore()
        return None

    def _symbols(self, cubin: Kernel, bound: BoundLaunch) -> dict[str, NDArray[np.generic]]:
        """Content of the `__device__` variables after the launch."""
        data = {buffer.address: buffer.data for buffer in bound.buffers}
        content = {name: data[address] for name, address in addresses_of(cubin).items()}
        return outputs_of(cubin, content, self.setup.symbols)

    def _unset(
        self, translated: Translated, bound: BoundLaunch, counted: RecordedCounts
    ) -> Iterator[str]:
        return describe_unset(
            translated.kernel,
            translated.linked.instructions,
            counted.counts["executed"],
            bound.use,
            addresses_of(translated.kernel),
            self.setup.symbols,
        )

    def _selection(
        self, translated: Translated, bound: BoundLaunch, arguments: Sequence[Argument]
    ) -> BlockSelection:
        """Selection of the blocks of a bound launch."""
        cubin, geometry = translated.kernel, bound.geometry
        waits = schedule_facts(cubin).waits

        def again() -> BoundLaunch:
            fresh = bind(translated, geometry, arguments, setup=self.setup)[0]
            return replace(fresh, most_resident=bound.most_resident, lowered=bound.lowered)

        def alone(bound: BoundLaunch) -> tuple[BoundLaunch, Execute] | None:
            if bound.heap_bytes or may_wait(flow):
                return None

            repeats = repeats_exchanges(flow)  # a block alone may wait for ever
            bounded = replace(self, max_instructions=MOST_ALONE) if repeats else self

            def run(launch: BoundLaunch, block: int) -> Run:
                return bounded._run(launch, [range(block, block + 1)])[0]

            apart = replace(bound, blocks_meet=False)
            if repeats and not works_alone(apart, run):
                return None
            single = with_tickets(apart, translated.linked.instructions, run)
            return (single, bounded._few_followed(single)) if single else None

        flow = Flow(translated.linked.instructions, translated.lowered)
        return BlockSelection(
            blocks=self.blocks,
            waits=waits,
            seed=_seed_of(cubin, geometry, arguments, self.seed),
            limit_s=self.limit_s,
            trial=cache(partial(self._trial, bound, waits)),
            again=again,
            flow=flow,
            alone=alone,
            metrics=lambda counts, rows: totals(instruction_counts(translated, counts, rows)),
            functions={name: at // INSTRUCTION_BYTES for name, at in cubin.functions.items()},
        )

    def _few_followed(self, bound: BoundLaunch) -> Execute:
        """Function that executes single blocks, and announces if they take long."""
        followed = partial(self._followed, bound)
        are_independent = not bound.blocks_meet and bound.cluster_blocks == 1
        if not (self.announce and are_independent and self.max_instructions >= MOST_INSTRUCTIONS):
            return followed
        return announcing(
            followed,
            bound,
            self.announce,
            self.workers or available_cores(),
            at_once=self.blocks != "representative",
        )

    def _before_all(self, kernel: str, bound: BoundLaunch, trial: Callable[[], WallTime]) -> None:
        """Check that copies of all buffers fit, and announce the estimated time of all blocks."""
        check_buffers(kernel, bound)
        if self.announce is not None and self.max_instructions >= MOST_INSTRUCTIONS:
            self.announce(trial())

    def _trial(self, bound: BoundLaunch, waits: bool) -> WallTime:
        """Estimated time of all blocks, from a few of them."""
        return estimated_wall_time(
            lambda few, most: run_blocks(
                bound,
                [range(few[0], few[-1] + 1)],
                max_instructions=most,
                workers=self.workers,
            ),
            bound,
            range(bound.geometry.blocks),
            self.workers or available_cores(),
            waits=waits or bound.blocks_meet,
        )

    def _followed(
        self,
        bound: BoundLaunch,
        blocks: Sequence[range],
        regions: Regions | None,
        most_instructions: int | None = None,
    ) -> list[Run]:
        return self._run(replace(bound, regions=regions), blocks, most_instructions)

    def _run(
        self, bound: BoundLaunch, blocks: Sequence[range], most_instructions: int | None = None
    ) -> list[Run]:
        progress = FinishedBlocks(of=sum(map(len, blocks)), advance=self.advance)
        most = self.max_instructions
        if most_instructions:
            most = min(most, most_instructions)
        return run_blocks(
            bound,
            blocks,
            max_instructions=most,
            workers=self.workers,
            advance=progress.add,
        )


def _changed(
    again: Callable[[], BoundLaunch], changes: Mapping[str, Any]
) -> Callable[[], BoundLaunch]:
    """Function that binds a launch anew, with changed fields."""
    return lambda: replace(again(), **changes)


def _seed_of(
    cubin: Kernel, geometry: Geometry, arguments: Sequence[Argument], seed: int | None
) -> bytes:
    """Seed of the random blocks of a launch: the code, the geometry, scalars and `seed`."""
    values = [a.tobytes() for a in arguments if isinstance(a, np.generic)]
    return repr((sha256(cubin.code).hexdigest(), geometry, values, seed)).encode()


def prepared(
    cubin: Kernel,
    geometry: Geometry,
    arguments: Sequence[Argument],
    *,
    device: Device | None = None,
    setup: LaunchSetup = PLAIN,
) -> tuple[Translated, BoundLaunch, tuple[NDArray[np.generic], ...]]:
    """Translated kernel, checked launch that is ready to run, and its output arrays.

    Outputs do not yet hold the data that blocks leave unchanged. Raises as `simulate` does, except
    for mistakes of the kernel.
    """
    arch = cubin.limits_of
    check_geometry(cubin.name, geometry)
    check_shared(
        cubin.name,
        cubin.resources.static_shared_bytes,
        geometry.dynamic_shared_bytes,
        arch,
    )
    what = f"the machine code of {cubin.name}"
    check_arguments(cubin.name, arguments, cubin.parameters, cubin.declared)
    check_room(cubin, geometry)
    with reading(what):
        translated = translate(cubin)
    check_fits(
        cubin.name,
        geometry,
        cubin.resources,
        max_threads=cubin.max_threads,
        required_block=cubin.required_block,
        cluster=cubin.cluster,
        arch=arch,
    )
    with reading(what):
        bound, outputs = bind(translated, geometry, arguments, setup=setup)
    labels, arrays = buffer_labels(arguments, cubin.declared), buffers_of(arguments)
    named = {
        symbol: (f"variable `{variable_name(symbol)}`", 1) for symbol in translated.linked.variables
    }
    named |= {f"argument {k}": (labels[k], array.itemsize) for k, array in arrays.items()}
    bound = replace(
        bound,
        buffers=[_labelled(b, *named.get(b.name, (b.name, 1))) for b in bound.buffers],
        most_resident=most_resident(device, cubin, bound),
    )
    if setup.cooperative:
        check_cooperative(device, cubin, bound)
    return translated, bound, outputs


def _labelled(buffer: Buffer, name: str, element_bytes: int) -> Buffer:
    return replace(buffer, name=name, element_bytes=element_bytes)
