"""Execution of a kernel's machine code on the CPU: its outputs, and the counters of hardware."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import checked
from analysis.comparison.accuracy import device_of
from analysis.devices import Device, find_device
from analysis.errors import InputError, LaunchError, ShapeError
from analysis.geometry import WARP_SIZE, Geometry
from analysis.problem import Gemm
from analysis.records.counters import totals
from analysis.timing.predicted import Explanation
from toolkit.execution.accesses import MOST_ACCESSES
from toolkit.execution.block_counts import BlockSelection, Execute, counted_blocks
from toolkit.execution.block_plan import Blocks
from toolkit.execution.estimate import MOST_INSTRUCTIONS, Estimate, announcing, estimated
from toolkit.execution.launch_request import LaunchRequest
from toolkit.execution.limits import check_blocks, check_buffers, check_limits, check_room, selected
from toolkit.execution.residency import most_resident, residence_of
from toolkit.execution.result import (
    counted_execution,
    modelled_execution,
    unmodelled_execution,
)
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.launch.checks import (
    check_arguments,
    check_fits,
    check_geometry,
    check_shared,
)
from toolkit.launch.launch import (
    Argument,
    Execution,
    buffer_labels,
)
from toolkit.launch.progress import FinishedBlocks
from toolkit.machine_code.architectures import architecture_of, check_runs_on
from toolkit.machine_code.compile import supported_architectures
from toolkit.machine_code.disassemble import disassembler
from toolkit.machine_code.elf import reading
from toolkit.machine_code.instruction import INSTRUCTION_BYTES
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import Source, naming
from toolkit.rungs.launch import RungLaunch, compile_for
from toolkit.rungs.matrices import Workload, chosen_seed
from toolkit.sass.core import binding as core
from toolkit.sass.faults import describe, describe_printing, describe_unwritten
from toolkit.sass.machine import BoundLaunch, FaultError, Run, available_cores, run_blocks
from toolkit.sass.regions import Flow, Regions
from toolkit.sass.schedule_facts import schedule_facts
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.translate import Translated, bind, translate
from toolkit.store.constants_file import with_constants

# An hour of two cores: a launch that runs longer is assumed to hang.
MAX_INSTRUCTIONS = 10**12

LIMIT_S = 10.0  # all blocks are executed, rather than counters estimated, within this time

Advance = Callable[[int, int], None]
Announce = Callable[[Estimate], None]
WhenCounted = Callable[[Execution], None]


def check_simulator() -> None:
    """Raise UnavailableError if the native core, NVRTC or nvdisasm is missing."""
    core.library()
    supported_architectures()
    disassembler()


@checked
def simulate(
    source: Source,
    kernel: str | None = None,
    *,
    grid: int | Sequence[int] | None = None,
    block: int | Sequence[int] | None = None,
    arguments: Sequence[Argument] | None = None,
    shape: str | int | Gemm | None = None,
    seed: int | None = None,
    dynamic_shared_bytes: int = 0,
    arch: str | None = None,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] = ("-lineinfo",),
    blocks: Blocks | None = None,
    max_instructions: int = MAX_INSTRUCTIONS,
    workers: int | None = None,
    advance: Advance | None = None,
    announce: Announce | None = None,
    when_counted: WhenCounted | None = None,
    device: Device | str | None = None,
    constants: str | Path | None = None,
    predict: bool = True,
    outputs: bool = True,
    limit_s: float = LIMIT_S,
    inner_lines: bool = False,
) -> Execution:
    """Execute one launch of any kernel on the CPU: outputs, exact counters, and a predicted time.

    Parameters
    ----------
    source
        A path, CUDA C++ text, or machine code that was compiled elsewhere: a `Kernel`, its bytes,
        or a path to a .cubin, which has its own `arch`, `defines` and `options`. Or the name of a
        rung, such as "stream-k:band=4", which takes `shape` and `seed` and defines grid, block and
        arguments; a few blocks represent all, and there are no outputs unless `blocks` is given.
    kernel
        An `extern "C"` name or a C++ name expression such as "gemm<128, 64>". It may be omitted if
        the source has only one kernel.
    grid, block
        One to three sizes each.
    arguments
        Arrays are separate device buffers, which are not changed and must not change meanwhile.
        NumPy scalars are passed by value, structs as `numpy.void`, and so are tensor maps
        (`toolkit.TensorMap`), whose arrays are buffers too.
    shape, seed
        Of the product of a rung, and of its random matrices. `seed` also determines random blocks.
    arch
        Architecture to compile for, such as "sm_86"; by default that of the device.
    device
        A record of a device, or its key, for traffic and time. By default the device that the
        command takes: the best validated one of `arch`, without `arch` an H200. None is used if no
        device of `arch` is known, as `prediction_basis` then says.
    constants
        A file that `python -m toolkit.microbenchmarks` wrote on such a GPU: its measured values
        replace constants of the timing model, as `predicted.constants` states.
    predict
        If false, neither traffic below L1 nor a time is modelled, which takes less time and memory.
    blocks
        "all", the default except for rungs. "representative": a few blocks, whose values are
        followed, represent the blocks that provably have the same counts; counts that depend on
        data are estimated from random blocks. If these estimates are not narrow and all blocks take
        at most `limit_s` seconds, all are executed (`toolkit.execution.observation`). Or a number
        of blocks, most of them drawn at random. `outputs` hold only what executed blocks wrote.
    outputs
        If false, the result has none; only pages that blocks write are copied, which needs less
        memory.
    inner_lines
        An inlined function counts for the source line that calls it, in the kernel or in a function
        that was not inlined. If true, it counts for its own lines.
    max_instructions, workers
        Limit of warp instructions of each worker, which stops an endless loop, and the number of
        workers (default: one per core).
    advance, announce, when_counted
        Called as `advance(done, of)` when blocks finish; with the estimated time
        (`toolkit.execution.estimate.Estimate`) before many blocks are executed, of which a few are
        executed to estimate it; and with the counters before traffic and time are modelled.

    Returns
    -------
    Execution
        `basis`, `traffic_basis` and `prediction_basis` state how its numbers were obtained, and
        `estimates` has the intervals of counters that are not exact.

    Raises
    ------
    InputError
        For arguments that cannot be used, or code that does not run on the device.
    CompileError, UnsupportedError, UnavailableError
        For code that does not compile, or that this machine cannot execute.
    LaunchError
        For mistakes of the kernel, with the source line.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import simulate
    >>> source = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
    >>> x = np.arange(32, dtype=np.float32)
    >>> execution = simulate(source, grid=1, block=32, arguments=[x], arch="sm_80")
    >>> execution.outputs[0][:4]
    array([0., 2., 4., 6.], dtype=float32)
    >>> execution.counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
    4
    >>> execution.device.key
    'a100-40gb'
    """
    chosen = find_device(device) if isinstance(device, str) else device
    if not predict:
        if constants is not None:
            raise InputError("constants are for a predicted time: leave out predict=False")
        arch, chosen = architecture_of(arch, chosen) if arch or chosen else None, None
    simulator = Simulator(
        arch=arch,
        blocks="all" if blocks is None else blocks,
        max_instructions=max_instructions,
        workers=workers,
        advance=advance,
        announce=announce,
        when_counted=when_counted,
        device=chosen,
        outputs=outputs,
        seed=seed,
        limit_s=limit_s,
    )
    request = LaunchRequest(
        source=source,
        kernel=kernel,
        grid=grid,
        block=block,
        arguments=arguments,
        shape=shape,
        dynamic_shared_bytes=dynamic_shared_bytes,
        defines=defines,
        options=options,
    )
    if predict and request.is_rung:
        simulator = _on_a_device(simulator, simulator.target, constants)
    if rung := request.rung(simulator.device):
        cubin = compile_for(
            simulator.arch or simulator.device or simulator.target, rung.selection, options
        )
        cubin = cubin.with_inner_lines if inner_lines else cubin
        by_plan = blocks is None
        found = _simulated_rung(rung, cubin, chosen_seed(seed), simulator, by_plan=by_plan)
        return found if simulator.device else _without_time(found, predict, simulator.target)
    launched = request.launched()
    with naming(source):
        compiled = request.compiled(simulator.target)
        compiled = compiled.with_inner_lines if inner_lines else compiled
        if predict:
            simulator = _on_a_device(simulator, compiled.limits_of, constants)
        found = simulator.run(compiled, *launched)
    if simulator.device is None:
        return _without_time(found, predict, compiled.limits_of)
    is_source = isinstance(source, str | Path) and compiled.source is not None
    return replace(found, call=request.repeated(seed, simulator.target)) if is_source else found


def _without_time(execution: Execution, is_asked_for: bool, arch: str) -> Execution:
    why = f"not predicted: no device of {arch} is known" if is_asked_for else "not predicted"
    return replace(execution, prediction_basis=why)


def _on_a_device(simulator: Simulator, arch: str, constants: str | Path | None) -> Simulator:
    """Simulator of its device or, without one, of a device of `arch` if one is known."""
    device = simulator.device or device_of(arch)
    if constants is not None:
        if device is None:
            raise InputError(
                f"constants are for a predicted time, and no device of {arch} is known: name one"
            )
        device = with_constants(device, constants)
    return replace(simulator, device=device)


def _simulated_rung(
    launch: RungLaunch, cubin: Kernel, seed: int, simulator: Simulator, *, by_plan: bool
) -> Execution:
    """Execute a rung: the blocks of its plan, or the blocks that `simulator` selects."""
    device = simulator.device
    if not by_plan:
        _check_time(launch, simulator)
        return simulator.run(cubin, launch.geometry, launch.arguments(seed))
    check_runs_on(cubin.limits_of, device)
    residence = residence_of(device, cubin, launch.geometry) if device else None
    ladder = LadderSimulator(Workload(launch.problem, seed), simulator.max_instructions)
    ladder.workers, ladder.advance = simulator.workers, simulator.advance or ladder.advance
    return ladder.simulate(cubin, launch.selection, residence, explanation=Explanation.COSTS)


def _check_time(launch: RungLaunch, simulator: Simulator) -> None:
    """Raise ShapeError if all blocks of a rung would exceed the limit of instructions."""
    needed = launch.cost * launch.geometry.blocks
    limit = simulator.max_instructions * (simulator.workers or available_cores()) * WARP_SIZE
    if simulator.blocks == "all" and needed > limit:
        raise ShapeError(
            f"all {launch.geometry.blocks:,} blocks of {launch.label} at {launch.problem} take "
            f"about {needed:.1e} thread instructions, and the limit is {limit:.1e}: omit `blocks`, "
            "or take a smaller shape"
        )


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """Executor without a GPU, for one architecture. Its fields are arguments of `simulate`.

    `explanation`: what predictions say that the time is spent on.
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
        translated, bound, outputs = prepared(cubin, geometry, arguments, device=self.device)
        bound = replace(bound, notes_requests=True)
        if self.outputs:
            check_buffers(cubin.name, bound)
        if self.blocks == "representative" or (self.blocks == "all" and self.device):
            check_blocks(cubin.name, geometry.blocks)
            bound = replace(bound, most_accesses=MOST_ACCESSES, notes_work=True)
        selection = self._selection(translated, bound, arguments)
        started = time.perf_counter()
        try:
            counted = counted_blocks(
                bound,
                selection,
                partial(self._followed, bound),
                self._few_followed(bound),
                partial(self._before_all, cubin.name, bound, selection.trial),
            )
        except FaultError as error:
            raise LaunchError(describe(error.fault, translated, bound)) from None
        simulation_s = time.perf_counter() - started
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
                *counted.unchecked(geometry.blocks),
                *describe_unwritten(counted.runs, translated, bound),
                *describe_printing(translated, counted.counts),
            ),
        )
        execution = replace(execution, device=self.device)
        if self.when_counted is not None:
            self.when_counted(execution)
        if self.device is None:
            return execution
        try:
            residence = residence_of(self.device, cubin, geometry)
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

    def _selection(
        self, translated: Translated, bound: BoundLaunch, arguments: Sequence[Argument]
    ) -> BlockSelection:
        """Selection of the blocks of a bound launch."""
        cubin, geometry = translated.kernel, bound.geometry
        waits = schedule_facts(cubin).waits

        def again() -> BoundLaunch:
            fresh = bind(translated, geometry, arguments)[0]
            return replace(fresh, most_resident=bound.most_resident)

        return BlockSelection(
            blocks=self.blocks,
            waits=waits,
            seed=_seed_of(cubin, geometry, arguments, self.seed),
            limit_s=self.limit_s,
            trial=cache(partial(self._trial, bound, waits)),
            again=again,
            flow=Flow(translated.linked.instructions, translated.lowered),
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

    def _before_all(self, kernel: str, bound: BoundLaunch, trial: Callable[[], Estimate]) -> None:
        """Check that copies of all buffers fit, and announce the estimated time of all blocks."""
        check_buffers(kernel, bound)
        if self.announce is not None and self.max_instructions >= MOST_INSTRUCTIONS:
            self.announce(trial())

    def _trial(self, bound: BoundLaunch, waits: bool) -> Estimate:
        """Estimated time of all blocks, from a few of them."""
        return estimated(
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
        return run_blocks(
            bound,
            blocks,
            max_instructions=most_instructions or self.max_instructions,
            workers=self.workers,
            advance=progress.add,
        )


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
        bound, outputs = bind(translated, geometry, arguments)
    labels = buffer_labels(arguments, cubin.declared).items()
    named = {name: f"variable `{name}`" for name in translated.linked.variables}
    named |= {f"argument {position}": label for position, label in labels}
    bound = replace(
        bound,
        buffers=[replace(b, name=named.get(b.name, b.name)) for b in bound.buffers],
        most_resident=most_resident(device, cubin, bound),
    )
    return translated, bound, outputs
