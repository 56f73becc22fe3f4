"""Execute a kernel's machine code on the CPU: its real outputs, and the counters of hardware.

>>> import numpy as np
>>> from toolkit import simulate
>>> source = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
>>> x = np.arange(32, dtype=np.float32)
>>> execution = simulate(source, "twice", grid=(1,), block=(32,), arguments=[x], arch="sm_80")
>>> execution.outputs[0][:4]
array([0., 2., 4., 6.], dtype=float32)
>>> execution.counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
4
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.counters import InstructionCounts, totals
from analysis.devices import DEVICES, nearest_compilable
from analysis.errors import InputError, LaunchError
from analysis.geometry import Geometry
from toolkit.compile import Cubin, compile_cubin, supported_architectures
from toolkit.executor import Argument, Execution, Launch, read_source, three
from toolkit.host import available_bytes
from toolkit.sass.faults import describe, describe_unwritten
from toolkit.sass.machine import Bound, FaultError, Run, run_blocks
from toolkit.sass.representatives import agree, extrapolated, places
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.translate import Translated, bind, translate

Blocks = Literal["all", "representative"] | int

MAX_THREADS_PER_BLOCK = 1024
# An hour of two cores: what runs longer hangs, as far as anyone will wait.
MAX_INSTRUCTIONS = 10**12

Advance = Callable[[int, int], None]


def simulate(
    source: str | Path | Cubin,
    kernel: str | None = None,
    *,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[Argument],
    dynamic_shared_bytes: int = 0,
    arch: str = "sm_90",
    defines: Mapping[str, int] | None = None,
    options: Sequence[str] = ("-lineinfo",),
    blocks: Blocks = "all",
    max_instructions: int = MAX_INSTRUCTIONS,
    workers: int | None = None,
    advance: Advance | None = None,
) -> Execution:
    """Execute one launch of any kernel on the CPU: outputs, resources and exact counters.

    `source` is a path, CUDA C++ text, or a `Cubin` that was compiled elsewhere (then `kernel`,
    `arch`, `defines` and `options` are its own). `kernel` is an `extern "C"` name or a C++ name
    expression such as "gemm<128, 64>". Arrays among `arguments` are device buffers and stay as
    they are: `outputs` are copies; NumPy scalars are passed by value, structs as `numpy.void`.

    `blocks` says what is executed: "all"; "representative": some of each place in the grid, and
    all where those differ; or a number of blocks, spread over the grid. `basis` of the result
    says what that means for the counters; with fewer than all blocks, `outputs` hold what the
    executed ones wrote.

    `max_instructions` stops an endless loop. `advance(done, of)` hears of finished blocks.
    Raises InputError, CompileError, UnsupportedError for machine code that is not known, and
    LaunchError for what the kernel does wrong.
    """
    geometry = Geometry(
        grid=three(grid, "grid"),
        block=three(block, "block"),
        dynamic_shared_bytes=dynamic_shared_bytes,
    )
    note = None
    if isinstance(source, Cubin):
        cubin = source
    else:
        text, name = read_source(source)
        if kernel is None:
            raise InputError(f"{name}: which kernel of it? give its name")
        architecture, note = known_architecture(arch)
        cubin = compile_cubin(
            text, name=name, kernel=kernel, arch=architecture, defines=defines, options=options
        )
    execution = Simulator(
        blocks=blocks, max_instructions=max_instructions, workers=workers, advance=advance
    ).run(cubin, geometry, arguments)
    if note is None:
        return execution
    return replace(execution, resources=replace(execution.resources, note=note))


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """An executor without a GPU, for one architecture."""

    arch: str = "sm_90"
    blocks: Blocks = "all"
    max_instructions: int = MAX_INSTRUCTIONS
    workers: int | None = None
    advance: Advance | None = None

    def execute(self, launch: Launch) -> Execution:
        """Run `launch`; as `simulate`."""
        architecture, note = known_architecture(self.arch)
        cubin = compile_cubin(
            launch.source,
            name=launch.name,
            kernel=launch.kernel,
            arch=architecture,
            defines=launch.defines,
            options=launch.options,
        )
        execution = self.run(cubin, launch.geometry, launch.arguments)
        return replace(execution, resources=replace(execution.resources, note=note))

    def run(self, cubin: Cubin, geometry: Geometry, arguments: Sequence[Argument]) -> Execution:
        """Execute a compiled kernel."""
        translated = translate(cubin)
        check_geometry(translated, geometry)
        check_memory(cubin.kernel, arguments)
        bound, outputs = bind(translated, geometry, arguments)
        try:
            counts, basis, runs = self._count(bound)
        except FaultError as error:
            raise LaunchError(describe(error.fault, translated, bound)) from None
        instructions = instruction_counts(translated, counts)
        return Execution(
            outputs=outputs,
            resources=cubin.resources,
            counters=totals(instructions),
            instructions=instructions,
            basis=basis,
            notes=tuple(describe_unwritten(runs, translated, bound)),
        )

    def _count(self, bound: Bound) -> tuple[NDArray[Any], str, list[Run]]:
        everything = bound.geometry.blocks
        if self.blocks == "all":
            run = self._run(bound, [range(everything)])
            return run[0].counts, _all_executed(everything), run
        return self._count_some(bound)

    def _count_some(self, bound: Bound) -> tuple[NDArray[Any], str, list[Run]]:
        everything = bound.geometry.blocks
        chosen = places(bound.geometry.grid)
        if isinstance(self.blocks, int):
            chosen = [replace(place, members=members) for place, members in _limited(chosen, self.blocks)]
        wanted = sum(len(place.members) for place in chosen)
        if wanted >= everything:
            run = self._run(bound, [range(everything)])
            return run[0].counts, _all_executed(everything), run
        runs = self._run(
            bound, [range(member, member + 1) for place in chosen for member in place.members]
        )
        left = iter(runs)
        of_places = [(place, [next(left).counts for _ in place.members]) for place in chosen]
        alike = all(agree(counts) for _, counts in of_places)
        executed = f"{wanted:,} of {everything:,} blocks executed"
        if not alike and self.blocks == "representative":
            run = self._run(bound, [range(everything)])
            reason = "blocks of one place in the grid (corner, edge, interior) differ"
            return run[0].counts, f"{_all_executed(everything)}: {reason}", run
        if alike:
            why = "; the rest counted like those of its place in the grid, which agreed"
        else:
            why = "; the rest estimated from their mean, place by place in the grid"
        return extrapolated(of_places), executed + why, runs

    def _run(self, bound: Bound, blocks: Sequence[range]) -> list[Run]:
        of, done = sum(map(len, blocks)), 0

        def advance(finished: int) -> None:
            nonlocal done
            done += finished
            if self.advance is not None:
                self.advance(done, of)

        return run_blocks(
            bound,
            blocks,
            max_instructions=self.max_instructions,
            workers=self.workers,
            advance=advance,
        )


def known_architecture(arch: str) -> tuple[str, str | None]:
    """`arch`, or the nearest one that the compiler knows where it is too old, with a note.

    Names that are no architecture pass unchanged: the compiler's check refuses them.
    """
    match = re.fullmatch(r"sm_(\d+)", arch, re.ASCII)
    if match is None or int(match[1]) < 10:
        return arch, None
    number, supported = int(match[1]), supported_architectures()
    if number in supported or number > min(supported):
        return arch, None
    return nearest_compilable((number // 10, number % 10), supported)


def check_geometry(translated: Translated, geometry: Geometry) -> None:
    """Raise InputError for a launch that no device of the architecture would take."""
    kernel = translated.cubin.kernel
    threads = geometry.threads_per_block
    if threads > MAX_THREADS_PER_BLOCK:
        raise InputError(
            f"{kernel}: a block of {_times(geometry.block)} = {threads:,} threads; "
            f"the most is {MAX_THREADS_PER_BLOCK:,}"
        )
    if geometry.block[2] > 64:
        raise InputError(f"{kernel}: a block of {_times(geometry.block)} threads; z ends at 64")
    if geometry.grid[0] > 2**31 - 1 or max(geometry.grid[1:]) > 65535:
        raise InputError(
            f"{kernel}: a grid of {_times(geometry.grid)} blocks; x ends at 2,147,483,647, "
            "y and z at 65,535"
        )
    static = translated.cubin.resources.static_shared_bytes
    wanted, most = static + geometry.dynamic_shared_bytes, most_shared_bytes(translated.architecture)
    if most is not None and wanted > most:
        raise InputError(
            f"{kernel}: {wanted:,} bytes of shared memory per block ({static:,} static, "
            f"{geometry.dynamic_shared_bytes:,} dynamic); sm_{translated.architecture} has "
            f"{most:,}: use less"
        )


def most_shared_bytes(architecture: int) -> int | None:
    """The most shared memory a block can opt in to, None where no device is known."""
    return next(
        (
            device.shared_bytes_per_block_optin
            for device in DEVICES.values()
            if device.sm_arch == f"sm_{architecture}"
        ),
        None,
    )


def check_memory(kernel: str, arguments: Sequence[Argument]) -> None:
    """Raise InputError where copies of the buffers would not fit into memory."""
    needed = sum(a.nbytes for a in arguments if isinstance(a, np.ndarray))
    available = available_bytes()
    if available is not None and needed > available:
        raise InputError(
            f"{kernel}: its buffers take {needed / 1e9:.1f} GB more, {available / 1e9:.1f} GB are "
            "free: pass smaller arrays"
        )


def _all_executed(blocks: int) -> str:
    return "the one block executed" if blocks == 1 else f"all {blocks:,} blocks executed"


def _limited(chosen: list[Any], most: int) -> list[tuple[Any, tuple[int, ...]]]:
    """At most about `most` members in all, at least one of each place, by turns."""
    taken = [1] * len(chosen)
    left = most - len(chosen)
    while left > 0:
        before = left
        for k, place in enumerate(chosen):
            if left > 0 and taken[k] < len(place.members):
                taken[k] += 1
                left -= 1
        if left == before:
            break
    return [(place, place.members[:count]) for place, count in zip(chosen, taken, strict=True)]


def _times(extents: Sequence[int]) -> str:
    return "×".join(map(str, extents))
