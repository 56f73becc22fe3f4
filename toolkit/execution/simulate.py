"""Execution of a kernel's machine code on the CPU: its outputs, and the counters of hardware.

>>> import numpy as np
>>> from toolkit import simulate
>>> source = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
>>> x = np.arange(32, dtype=np.float32)
>>> execution = simulate(source, "twice", grid=(1,), block=(32,), arguments=[x], arch="sm_80")
>>> execution.outputs[0][:4]
array([0., 2., 4., 6.], dtype=float32)
>>> execution.counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
4
>>> print(execution.verdict)
twice: no predicted time without a device, such as device='h200'.
What limits it is unknown without a predicted time.
Line 1 has most warp instructions: 100.0 %.
"""

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
    outputs: bool = True,
    limit_s: float = LIMIT_S,
    inner_lines: bool = False,
) -> Execution:
    """Execute one launch of any kernel on the CPU: outputs, resources and exact counters.

    `source` is a path, CUDA C++ text, or machine code that was compiled elsewhere: a `Kernel`, its
    bytes, or a path to a .cubin. Machine code has its own `arch`, `defines` and `options`. `kernel`
    is an `extern "C"` name or a C++ name expression such as "gemm<128, 64>". It may be omitted if
    the source has only one kernel. Arrays among `arguments` are separate device buffers. They are
    not changed: `outputs` are copies. NumPy scalars are passed by value, structs as `numpy.void`,
    and so are tensor maps (`toolkit.TensorMap`), whose arrays are buffers too. Arrays must not
    change while blocks are executed.

    `source` may also be the name of a rung, such as "stream-k" or "stream-k:band=4", with the
    `shape` of its product and the `seed` of its random matrices. The rung defines grid, block and
    arguments. The result is that of `profile`: a few blocks are executed, which represent all
    blocks as `basis` states, and `outputs` are empty. With `blocks`, a rung is executed like any
    other kernel.

    `blocks` selects the blocks to execute:

    - "all": the default for kernels other than rungs.
    - "representative": a few blocks, whose values are followed, represent the blocks that provably
      have the same counts. Counts that depend on data are estimated from random blocks, which
      `seed` determines. If the estimates are not narrow and all blocks take at most `limit_s`
      seconds, all blocks are executed (`toolkit.execution.observation`).
    - a number of blocks, most of them drawn at random.

    `basis` of the result states how the counters were obtained, and `estimates` has intervals. If
    some blocks are not executed, `outputs` hold only the results of the executed blocks. If
    `outputs` is false, the result has none; only pages that blocks write are copied, which needs
    less memory.

    `device` is a record of a device, or its key. It adds the modelled traffic of L2 and DRAM on the
    device (the counters of `counters.MODELLED`) and the time, `predicted`. `traffic_basis` and
    `prediction_basis` state how they were obtained, or why there are none. Without a device, no
    time is predicted and less memory is needed; the command uses a default device. Code is compiled
    for `arch` ("sm_86"), or else for the device, or else for sm_90. `constants` is a file that
    `python -m toolkit.microbenchmarks` wrote on such a GPU: its measured values replace constants
    of the timing model, as `predicted.constants` states.

    An inlined function counts for the source line that calls it, in the kernel or in a function
    that was not inlined. With `inner_lines` it counts for its own lines.

    `max_instructions` is the limit of warp instructions of each of the `workers` (default: one per
    core), which stops an endless loop. `advance(done, of)` is called when blocks finish.
    `when_counted` is called with the counters, before traffic and time are modelled; for a rung,
    only with `blocks`. `announce` is called with the estimated time
    (`toolkit.execution.estimate.Estimate`) before blocks are executed; a few blocks are executed
    first to estimate it. It is called for representative blocks only if they take long, and not
    called if `max_instructions` is below 2 * 10^8, or for a rung without `blocks`.

    Raises InputError (also if the code does not run on the device), CompileError,
    UnsupportedError, UnavailableError, and LaunchError for mistakes of the kernel.
    """
    chosen = find_device(device) if isinstance(device, str) else device
    if constants is not None:
        if chosen is None:
            raise InputError("constants are for a predicted time: give a device, such as 'h200'")
        chosen = with_constants(chosen, constants)
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
    if rung := request.rung(simulator.device):
        cubin = compile_for(simulator.arch or chosen or simulator.target, rung.selection, options)
        cubin = cubin.with_inner_lines if inner_lines else cubin
        return _simulated_rung(rung, cubin, chosen_seed(seed), simulator, by_plan=blocks is None)
    launched = request.launched()
    with naming(source):
        cubin = request.compiled(simulator.target)
        return simulator.run(cubin.with_inner_lines if inner_lines else cubin, *launched)


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
