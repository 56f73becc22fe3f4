"""Execution of a kernel's machine code on the CPU: its outputs, and the counters of hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysis.argument_types import checked
from analysis.comparison.accuracy import device_of
from analysis.devices import Device, find_device
from analysis.errors import InputError, ShapeError
from analysis.geometry import WARP_SIZE
from analysis.l2_state import DEFAULT_L2, l2_state
from analysis.problem import Gemm
from analysis.timing.predicted import Explanation
from toolkit.execution.completed_request import completed
from toolkit.execution.launch_request import LaunchRequest, with_compiler
from toolkit.execution.random_contents import with_random_contents
from toolkit.execution.representatives import Blocks
from toolkit.execution.residency import residence_of
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.execution.simulator import (
    LIMIT_S,
    MAX_INSTRUCTIONS,
    Advance,
    Announce,
    Simulator,
    WhenCounted,
)
from toolkit.frontends.front_end import Grid
from toolkit.launch.heap import HEAP_BYTES
from toolkit.launch.host_resources import available_cores
from toolkit.launch.launch import Argument, Execution
from toolkit.launch.setup import Content, setup_of
from toolkit.machine_code.architectures import architecture_of, check_runs_on
from toolkit.machine_code.compile import Compiler, supported_architectures
from toolkit.machine_code.disassemble import disassembler
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import Source, naming
from toolkit.rungs.launch import RungLaunch, compile_for
from toolkit.rungs.matrices import Workload, check_seed, chosen_seed
from toolkit.sass.core import binding as core
from toolkit.store.constants_file import predicting_with


def check_simulator() -> None:
    """Raise UnavailableError if the native core, NVRTC or nvdisasm is missing."""
    core.library()
    supported_architectures()
    disassembler()


@checked
def simulate(
    source: Source | Any,
    kernel: str | None = None,
    *,
    grid: Grid | None = None,
    block: int | Sequence[int] | None = None,
    arguments: Sequence[Any] | Mapping[str, Argument] | None = None,
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
    blocks: Blocks | None = None,
    max_instructions: int = MAX_INSTRUCTIONS,
    workers: int | None = None,
    advance: Advance | None = None,
    announce: Announce | None = None,
    when_counted: WhenCounted | None = None,
    device: Device | str | None = None,
    constants: str | Path | None = None,
    clock: float | None = None,
    l2: str = DEFAULT_L2,
    predict: bool = True,
    outputs: bool = True,
    allow_out_of_bounds: bool = False,
    limit_s: float = LIMIT_S,
    inner_lines: bool = False,
    source_dirs: Sequence[str | Path] = (),
) -> Execution:
    """Execute one launch of any kernel on the CPU: outputs, exact counters, and a predicted time.

    Parameters
    ----------
    source
        A path, CUDA C++ text, or what was compiled elsewhere, which has its own `defines` and
        `options`: a `Kernel`, or a path to, or the bytes of, a cubin, a fatbin, PTX, or a program,
        object file or library that holds them. Or the name of a rung, such as "stream-k:band=4",
        which takes `shape` and `seed` and defines grid, block and arguments; a few blocks represent
        all, and there are no outputs unless `blocks` is given.
        Or a kernel of a front end, which is compiled without a GPU and whose hidden parameters are
        filled in: a `@triton.jit` function, a `@cuda.jit` function of Numba, CuPy's RawKernel,
        RawModule or ElementwiseKernel, a compiled function of the CuTe DSL, or `CudaText`, the text
        of a SourceModule of PyCUDA.
    kernel
        An `extern "C"` name, a C++ name expression such as "gemm<128, 64>", or the number in the
        list of kernels, such as "2". It may be omitted if the source has only one kernel.
    grid, block, dynamic_shared_bytes
        One to three sizes each, and bytes. What is omitted is taken from the launch in host code
        of a source, if its values are constants. The grid of a Triton kernel may be a function of
        its arguments by name; its block follows from `num_warps`, one of the `defines`, as other
        constexprs and options of Triton.
    launch_line
        Line of the launch in host code to take; by default the first whose values are known.
    arguments
        All arguments in a list, or some by the names of the parameters in a dict. Host code says
        the others; arrays whose sizes it does not say get those that addresses and guards imply,
        as `notes` list. Arrays are separate device buffers, which are not changed and must not
        change meanwhile. NumPy scalars are passed by value, structs as `numpy.void`, and so are
        tensor maps (`toolkit.TensorMap`), textures and surfaces (`toolkit.Texture`,
        `toolkit.Surface`), whose arrays are buffers too. Front ends also take numbers of Python
        and tensors on the CPU; Triton's fill, in order, the parameters that `defines` leaves open.
    symbols
        Content of `__constant__` and `__device__` variables by their names in the source, such as
        {"filter": array}: as cudaMemcpyToSymbol sets it. Others keep their initial values.
    cooperative
        If true, the launch is cooperative, as grid.sync() of cooperative groups needs it: all
        blocks are resident at the same time.
    heap_bytes
        Size of the heap of malloc and new in kernels (cudaLimitMallocHeapSize).
    shape, seed
        Of the product of a rung, and of its random matrices. `seed` also determines random blocks.
    compiler
        "nvrtc", or "nvcc", which compiles the source as it is and needs a compiler of the host.
        NVRTC is given the kernel and what it uses: `cubin.left_out` of the result lists the host
        code that was not compiled, and a note of the result counts it.
    arch
        Architecture to compile for, such as "sm_86"; by default that of the device. It also
        chooses among the machine code and PTX of a file; a cubin has its own.
    device
        A record of a device, or its key, for traffic and time. By default the device that the
        command takes: the best validated one of `arch`, without `arch` an H200. None is used if no
        device of `arch` is known, as `prediction_basis` then says.
    constants
        A file that `python -m toolkit.microbenchmarks` wrote on such a GPU: its measured values
        replace constants of the timing model, as `predicted.constants` states.
    clock
        SM clock in MHz to predict with, in place of the one that the device holds under this load.
    l2
        What the launch finds in L2: "dirty", other data that a launch before wrote, which is the
        default because it is what a stream of launches leaves; "clean", other data that were only
        read; or "warm", what the same launch left.
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
    allow_out_of_bounds
        If true, and without outputs, a launch goes on where accesses are beyond all arrays: reads
        give zeros, and writes are lost. `uncertainty` of the result says so, and where it happened
        first. By default such an access is an error.
    inner_lines
        An inlined function counts for the source line that calls it, in the kernel or in a function
        that was not inlined. If true, it counts for its own lines.
    source_dirs
        Folders in which the source files that the line table of machine code names are looked for.
    max_instructions, workers
        Limit of warp instructions of each worker, which stops an endless loop, and the number of
        workers (default: one per core).
    advance, announce, when_counted
        Called as `advance(done, of)` when blocks finish; with the estimated time
        (`toolkit.execution.wall_time.WallTime`) before many blocks are executed, of which a few are
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
        if clock is not None:
            raise InputError("a clock is for a predicted time: leave out predict=False")
        arch, chosen = architecture_of(arch, chosen) if arch or chosen else None, None
    check_seed(seed)
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
        allow_out_of_bounds=allow_out_of_bounds,
        seed=seed,
        limit_s=limit_s,
        setup=setup_of(symbols, cooperative, heap_bytes),
        l2=l2_state(l2),
    )
    request = LaunchRequest(
        source=source,
        kernel=kernel,
        grid=grid,
        block=block,
        arguments=arguments,
        shape=shape,
        dynamic_shared_bytes=dynamic_shared_bytes,
        setup=simulator.setup,
        defines=defines,
        options=with_compiler(options, compiler),
        source_dirs=source_dirs,
        launch_line=launch_line,
    )
    time = _TimeRequest(is_wanted=predict, constants=constants, clock=clock)
    if predict and request.is_rung:
        simulator = time.on_a_device(simulator, simulator.target)
    if rung := request.rung(simulator.device):
        target = simulator.arch or simulator.device or simulator.target
        cubin = compile_for(target, rung.selection, request.options)
        cubin = cubin.with_inner_lines if inner_lines else cubin
        by_plan = blocks is None
        found = _simulated_rung(rung, cubin, chosen_seed(seed), simulator, by_plan=by_plan)
        return found if simulator.device else time.absent(found, simulator.target)
    return _simulated_kernel(request, simulator, seed, time, inner_lines=inner_lines)


@dataclass(frozen=True, kw_only=True)
class _TimeRequest:
    """Request of a predicted time: with constants of a file and at a clock, if they are given."""

    is_wanted: bool
    constants: str | Path | None
    clock: float | None

    def on_a_device(self, simulator: Simulator, arch: str) -> Simulator:
        """Simulator of its device or, without one, of a device of `arch` if one is known."""
        device = simulator.device or device_of(arch)
        for given, what in ((self.constants, "constants are"), (self.clock, "a clock is")):
            if given is not None and device is None:
                raise InputError(
                    f"{what} for a predicted time, and no device of {arch} is known: name one"
                )
        if device is not None:
            device = predicting_with(device, self.constants, self.clock)
        return replace(simulator, device=device)

    def absent(self, execution: Execution, arch: str) -> Execution:
        """Copy of an execution without a time, with the reason."""
        why = f"not predicted: no device of {arch} is known" if self.is_wanted else "not predicted"
        return replace(execution, prediction_basis=why)


def _simulated_kernel(
    request: LaunchRequest,
    simulator: Simulator,
    seed: int | None,
    time: _TimeRequest,
    *,
    inner_lines: bool,
) -> Execution:
    """Execute a kernel that is not a rung: complete the launch, compile it, run it."""
    source = request.source
    request, prepared = request.in_machine_code(simulator.target)
    with naming(source):
        is_asked = simulator.arch is not None or simulator.device is not None
        target = simulator.target if is_asked else None
        whole = completed(request, target, seed, guesses=True)
        request, launched = whole.request, whole.request.launched()
        compiled = whole.kernel.with_inner_lines if inner_lines else whole.kernel
        if time.is_wanted:
            simulator = time.on_a_device(simulator, compiled.limits_of)
        found = with_random_contents(simulator.run(compiled, *launched), whole.random_arguments)
    found = replace(
        found,
        notes=(*whole.notes, *found.notes),
        uncertainty=". ".join(filter(None, [*whole.doubts, found.uncertainty])),
    )
    if prepared is not None:
        notes = (*found.notes, *prepared.notes)
        found = replace(found, outputs=prepared.outputs(found.outputs), notes=notes)
    if simulator.device is None:
        return time.absent(found, compiled.limits_of)
    call = request.repeated(seed, simulator.target) | {
        "l2": simulator.l2,
        "inner_lines": inner_lines,
        "allow_out_of_bounds": simulator.allow_out_of_bounds,
    }
    is_source = isinstance(source, str | Path) and not compiled.is_foreign
    return replace(found, call=call) if is_source else found


def _simulated_rung(
    launch: RungLaunch, cubin: Kernel, seed: int, simulator: Simulator, *, by_plan: bool
) -> Execution:
    """Execute a rung: the blocks of its plan, or the blocks that `simulator` selects."""
    device = simulator.device
    if not by_plan:
        _check_time(launch, simulator)
        return simulator.run(cubin, launch.geometry, launch.arguments(seed))
    check_runs_on(cubin.limits_of, device)
    residence = residence_of(device, cubin, launch.geometry, simulator.l2) if device else None
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
