"""One launch on a GPU, of a rung, of cuBLAS or of any other kernel: executed, checked and timed.

It has a CUDA context and buffers of its own, between guard bands, and lives in a process of its own
under limits of time (`InAChild`): what it breaks, it breaks alone
(docs/decisions/0021-rungs-in-children.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import checked
from analysis.errors import InputError, LaunchError
from analysis.l2_state import DEFAULT_L2, L2State, l2_state
from toolkit.gpu.context import POISON, Gpu, LoadedKernel, gpu_here
from toolkit.gpu.cublas import cublas_product
from toolkit.gpu.driver import encoded
from toolkit.gpu.gpu_launch import GpuLaunch
from toolkit.gpu.nvcc import FILE
from toolkit.gpu.printed import printed_text
from toolkit.gpu.sampling import Sampling, samples_of
from toolkit.gpu.textures import TextureObjects
from toolkit.gpu.variables import Variables, set_heap
from toolkit.gpu.worker_process import Isolated
from toolkit.launch.element_types import raw_bytes
from toolkit.launch.heap import HEAP_BYTES
from toolkit.launch.launch import (
    Argument,
    Execution,
    buffer_labels,
    buffer_of,
    buffers_of,
    launch_geometry,
)
from toolkit.launch.setup import PLAIN, Content, setup_of
from toolkit.launch.tensor_map import TensorMap
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_names import plain_name
from toolkit.machine_code.kernel_source import (
    Source,
    compile_kernel,
    is_machine_code,
    is_of_many,
    naming,
    read_source,
)
from toolkit.machine_code.left_out import summary
from toolkit.machine_code.signature import signature

GUARD_WORD = 0x7FC0A11E  # a NaN with a payload: read as a float it shows in every result
GUARD_WORDS = 1 << 16  # a row of the widest matrix that anyone multiplies: 256 KiB
RUN_S = 120.0  # to open the GPU, compile, copy, launch and take samples


@dataclass(frozen=True, kw_only=True)
class Task:
    """A launch, made where it is launched, and how long that may take.

    `limit_s` is for all until the first results are there, `launch_limit_s` for one launch more.
    """

    launch: Callable[[], GpuLaunch]
    limit_s: float
    launch_limit_s: float
    buffer_bytes: int = 0  # on the GPU, guard bands left aside
    shows_output: bool = False  # what it prints is seen
    #: Product of a launch without a kernel, such as cuBLAS's.
    library: Callable[[Sequence[Any]], AbstractContextManager[Callable[[], None]]] = cublas_product


class OnGpu:
    """A launch on the GPU that is here, with a context of its own unless `gpu` is open already.

    A context manager. All methods raise ToolkitError with one line for what failed.
    """

    def __init__(self, task: Task, gpu: Gpu | None = None) -> None:
        self._task, self._open = task, gpu
        self._held = ExitStack()
        self._variables: Variables | None = None

    def __enter__(self) -> OnGpu:
        with ExitStack() as held:
            self.gpu = self._open or held.enter_context(Gpu())
            self._guarded = Guarded(self.gpu)
            launch = self._task.launch()
            self._name, self._unwritten = plain_name(launch.kernel), launch.unwritten
            self._geometry = launch.geometry
            set_heap(self.gpu, launch.setup.heap_bytes)
            self._kernel = _loaded(self.gpu, launch)
            self.once = self._prepared(launch, held)
            self.gpu.timer.fill_l2()  # there is room for what that takes, or it fails here
            self._held = held.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self.dismiss()
        self._held.close()

    def dismiss(self) -> None:
        """Free the buffers: no further request follows."""
        self._guarded.release()

    def _prepared(self, launch: GpuLaunch, held: ExitStack) -> Callable[[], None]:
        declared = launch.declared
        if declared is None and isinstance(launch.source, str):
            declared = signature(launch.source, launch.kernel)
        labels = buffer_labels(launch.arguments, declared)
        arrays = buffers_of(launch.arguments)
        self._addresses = {
            position: self._guarded.buffer(
                labels[position],
                array.nbytes,
                None if position in launch.unwritten else array,
                is_input=position in launch.inputs,
            )
            for position, array in arrays.items()
        }
        # their shapes alone: the host's memory is for others
        self._shapes = {
            position: np.broadcast_to(np.empty((), array.dtype), array.shape)
            for position, array in arrays.items()
        }
        self._textures = TextureObjects(launch.arguments, arrays, self._addresses)
        held.callback(self._textures.close)
        arguments = placed(launch.arguments, self._addresses, self._textures.handles)
        if self._kernel is not None:
            if launch.setup != PLAIN:
                self._variables = Variables(self._kernel, launch)
            return self._kernel.prepared(launch.geometry, arguments, setup=launch.setup)
        return held.enter_context(self._task.library(arguments))

    def cubin(self) -> Kernel | None:
        """The machine code that is launched; None for a library."""
        return None if self._kernel is None else self._kernel.cubin

    def poison(self) -> None:
        """Fill the arrays that hold nothing with NaN."""
        for position in self._unwritten:
            words = self._shapes[position].nbytes // 4
            self.gpu.fill(self._addresses[position], POISON, words)

    def result(self, position: int, launches: int) -> NDArray[Any]:
        """An array among the arguments after some launches, each on NaN where it is unwritten."""
        self._run(launches)
        return self._downloaded(position)

    def elements_with(
        self, make: Callable[[], GpuLaunch], position: int, places: tuple[NDArray[Any], ...]
    ) -> NDArray[Any]:
        """Rows and columns of an array after one launch on the inputs of another launch.

        The other launch differs in the contents of its inputs alone. They stay.
        """
        other = make()
        arrays = buffers_of(other.arguments)
        for one in other.inputs:
            self._guarded.renew(self._addresses[one], arrays[one])
        found: NDArray[Any] = self.result(position, 1)[np.ix_(*places)]
        return found

    def execution(self, samples: int | Sampling = 0, l2: L2State = DEFAULT_L2) -> Execution:
        """All arrays after one launch, and times of more on the same buffers."""
        with printed_text() as printed:
            self._run(1)
        kernel = self.cubin()
        assert kernel is not None
        outputs = tuple(map(self._downloaded, self._shapes))
        symbols = self._variables.outputs() if self._variables else {}
        with printed_text():  # what it prints once more is dropped
            samples_s = self._samples(samples, l2)
        execution = Execution(
            outputs=outputs,
            symbols=symbols,
            printed="".join(printed),
            resources=kernel.resources,
            geometry=self._geometry,
            device=self.gpu.device,
            samples_s=samples_s,
            l2=l2,
            cubin=kernel,
        )
        self.raise_damage()
        return execution

    def _samples(self, samples: int | Sampling, l2: L2State) -> tuple[float, ...]:
        timer = partial(self.sample, l2)
        if isinstance(samples, Sampling):
            return samples_of(timer, samples)
        return tuple(timer() for _ in range(samples))

    def _run(self, launches: int) -> None:
        with self.gpu.launch_errors(self._name):
            for _ in range(launches):
                self.poison()
                self.once()
                self.gpu.synchronize()
        self.raise_damage()

    def _downloaded(self, position: int) -> NDArray[Any]:
        self._textures.copy_back(position)
        found = np.empty_like(self._shapes[position], order="C")
        self.gpu.download(self._addresses[position], into=found)
        return found

    def sample(self, l2: L2State) -> float:
        """Seconds of one launch that finds L2 in this state."""
        return self.gpu.timer.time(self.once, l2=l2)

    def raise_damage(self) -> None:
        """Raise LaunchError if a guard band or an input was overwritten."""
        damage = self._guarded.damage()
        if damage is not None:
            raise LaunchError(damage)


def _loaded(gpu: Gpu, launch: GpuLaunch) -> LoadedKernel | None:
    """The kernel of a launch; None for a library."""
    if not launch.source:
        return None
    if isinstance(launch.source, bytes):
        return gpu.load_image(launch.source, launch.kernel)
    return gpu.load(
        launch.source,
        launch.kernel,
        name=launch.name,
        defines=launch.defines,
        options=launch.options,
    )


def placed(
    arguments: Sequence[Argument],
    addresses: Mapping[int, Any],
    handles: Mapping[int, np.uint64],
) -> list[Any]:
    """The arguments of a kernel, with arrays replaced by their addresses on the GPU.

    Textures and surfaces are replaced by their handles.
    """
    arrays = buffers_of(arguments)
    return [
        encoded(argument.tiling, int(addresses[buffer_of(argument, arrays)]) + argument.offset)
        if isinstance(argument, TensorMap)
        else handles.get(position, addresses.get(position, argument))
        for position, argument in enumerate(arguments)
    ]


class Guarded:
    """Buffers between guard bands, and inputs that must stay as they are."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._held: list[Any] = []
        self._buffers: list[tuple[str, int, int, int | None]] = []

    def buffer(
        self, name: str, size_bytes: int, content: NDArray[Any] | None, *, is_input: bool
    ) -> int:
        """The address of a buffer, filled with `content` or with NaN."""
        words = 2 * GUARD_WORDS + -(-size_bytes // 4)
        whole = self._gpu.allocate(4 * words)
        self._gpu.fill(whole, GUARD_WORD, words)
        address = int(whole) + 4 * GUARD_WORDS
        checksum = None
        if content is not None:
            content = np.ascontiguousarray(content)
            self._gpu.write(address, content)
            checksum = crc32(raw_bytes(content).data) if is_input else None
        self._held.append(whole)
        self._buffers.append((name, address, size_bytes, checksum))
        return address

    def renew(self, address: int, content: NDArray[Any]) -> None:
        """Give an input another content, of the same size."""
        content = np.ascontiguousarray(content)
        self._gpu.write(address, content)
        checksum = crc32(raw_bytes(content).data)
        self._buffers = [
            (*one[:3], checksum) if one[1] == address else one for one in self._buffers
        ]

    def release(self) -> None:
        """Free the buffers."""
        self._held.clear()

    def damage(self) -> str | None:
        """The first guard band or input that was overwritten, as text; None if all are intact."""
        for name, address, size_bytes, checksum in self._buffers:
            end = address + -(-size_bytes // 4) * 4
            for where, start, first in (
                ("in front of", address - 4 * GUARD_WORDS, -4 * GUARD_WORDS),
                ("behind", end, 0),
            ):
                band = np.empty(GUARD_WORDS, dtype=np.uint32)
                self._gpu.download(start, into=band)
                wrong = np.flatnonzero(band != GUARD_WORD)
                if wrong.size:
                    offset = abs(first + 4 * int(wrong[-1 if first else 0]))
                    return (
                        f"wrote out of bounds: {wrong.size:,} words {where} {name} were "
                        f"overwritten, the nearest {offset:,} bytes away: "
                        "`python -m toolkit check` names the line"
                    )
            if checksum is not None and checksum != self._checksum(address, size_bytes):
                return f"wrote to {name}, which is an input"
        return None

    def _checksum(self, address: int, size_bytes: int) -> int:
        content = np.empty(size_bytes, np.uint8)
        self._gpu.download(address, into=content)
        return crc32(content.data)


class InAChild(Isolated):
    """`OnGpu` in a process of its own, under limits of time.

    Raises ToolkitError with one line for whatever went wrong, the end of that process included.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(OnGpu, task, shows_output=task.shows_output)
        self._ask = partial(self.ask, limit_s=task.limit_s)
        self._launch_limit_s = task.launch_limit_s

    def __enter__(self) -> InAChild:
        return self

    def cubin(self) -> Kernel | None:
        found: Kernel | None = self._ask("cubin")
        return found

    def result(self, position: int, launches: int) -> NDArray[Any]:
        found: NDArray[Any] = self._ask("result", position, launches)
        return found

    def elements_with(
        self, make: Callable[[], GpuLaunch], position: int, places: tuple[NDArray[Any], ...]
    ) -> NDArray[Any]:
        found: NDArray[Any] = self._ask("elements_with", make, position, places)
        return found

    def execution(self, samples: int | Sampling = 0, l2: L2State = DEFAULT_L2) -> Execution:
        found: Execution = self._ask("execution", samples, l2)
        return found

    def sample(self, l2: L2State) -> float:
        return float(self.ask("sample", l2, limit_s=self._launch_limit_s))

    def raise_damage(self) -> None:
        self._ask("raise_damage")


def task_of(launch: GpuLaunch, limit_s: float = RUN_S) -> Task:
    """The task of a launch as it is."""
    return Task(
        launch=partial(_as_it_is, launch),
        limit_s=limit_s,
        launch_limit_s=limit_s,
        shows_output=True,
    )


def _as_it_is(launch: GpuLaunch) -> GpuLaunch:
    return launch


@checked
def run(
    source: Source,
    kernel: str | None = None,
    *,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[Argument],
    dynamic_shared_bytes: int = 0,
    symbols: Content | None = None,
    cooperative: bool = False,
    heap_bytes: int = HEAP_BYTES,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] = ("-lineinfo",),
    samples: int | Sampling = 0,
    l2: str = DEFAULT_L2,
    limit_s: float = RUN_S,
) -> Execution:
    """Launch any kernel on the GPU and return its outputs, resources and, if asked, times.

    Parameters
    ----------
    source
        A path or CUDA C++ text, which nvcc compiles, or machine code: a `Kernel`, such as the
        `cubin` of an `Execution`, or the bytes of or a path to a cubin, a fatbin, PTX, or an
        executable, object file or library that holds them.
    kernel
        An `extern "C"` name. It may be omitted for machine code with a single kernel.
    grid, block
        One to three sizes each.
    arguments
        Arrays are device buffers; NumPy scalars, tensor maps, textures and surfaces are passed by
        value.
    symbols, cooperative, heap_bytes
        As of `simulate`. Variables keep what a launch leaves in them for the next one.
    samples
        Number of further launches that are timed on the same buffers, after launches that raise the
        clock; or a `Sampling`, which ends them.
    l2
        What each of them finds in L2: "dirty", 256 MiB of other data that were written before, as
        `simulate` assumes too; "clean", as much that was read; or "warm", what the same launch
        left.
    limit_s
        All of that happens in a process of its own, which is ended after so many seconds.

    Returns
    -------
    Execution
        Its `outputs` and `printed` are of the first launch, `symbols` too if any setting was given,
        its `samples_s` the times, and its
        `device` is the GPU.

    Raises
    ------
    InputError, CompileError, UnavailableError
        For arguments or code that cannot be used, or without a GPU.
    LaunchError
        Also for a kernel that writes beside its buffers.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import run
    >>> source = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
    >>> x = np.ones(32, np.float32)
    >>> run(source, "twice", grid=1, block=32, arguments=[x], samples=10)  # doctest: +SKIP
    <Execution twice: 2.10 µs (2.08 to 2.12) measured on NVIDIA H100 SXM5 80 GB.
      What limits it is unknown without a predicted time.
      Its source lines were not counted.>
    """
    notes: tuple[str, ...] = ()
    if isinstance(source, str | Path) and not is_machine_code(source):
        text, name = read_source(source)
        if kernel is None:
            raise InputError(f"{name}: nvcc compiles all of it: name the kernel")
        code: str | bytes = text
        facts: dict[str, Any] = {
            "left_out": (),
            "file": FILE,
            "source": text,
            "declared": signature(text, kernel),
        }
    else:
        with naming(source):
            here = gpu_here().device if is_of_many(source) else None
            found = compile_kernel(source, kernel, target=here)
        notes = found.notes
        code, name, kernel = found.image, found.file or found.name, found.symbol
        facts = {
            field: getattr(found, field)
            for field in ("name", "target", "file", "source", "declared", "compiler", "left_out")
        }
    launch = GpuLaunch(
        source=code,
        name=name,
        kernel=kernel,
        geometry=launch_geometry(grid, block, dynamic_shared_bytes),
        arguments=arguments,
        defines=defines or {},
        options=options,
        declared=facts["declared"],
        setup=setup_of(symbols, cooperative, heap_bytes),
        text=facts["source"] or "",
    )
    state = l2_state(l2)
    with InAChild(task_of(launch, limit_s)) as child:
        execution = child.execution(samples, state)
    assert execution.cubin is not None
    if compiler := facts.pop("compiler", None):  # the driver does not know it
        facts["resources"] = replace(execution.resources, compiler=compiler)
    cubin = replace(execution.cubin, **facts)
    return replace(
        execution,
        cubin=cubin,
        resources=cubin.resources,
        notes=(*notes, *summary(cubin.left_out), *execution.notes),
    )
