"""The call that silicon and simulator both answer: a launch in, an execution out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.devices import Device
from analysis.errors import InputError, shortened
from analysis.geometry import Geometry
from analysis.occupancy import Resources
from analysis.records.counters import InstructionCounts, by_line
from analysis.records.profile import FirstRequest, LineAccess
from analysis.records.source_lines import line_accesses
from analysis.rounding import Check
from analysis.timing.predicted import Predicted
from toolkit.launch.tensor_map import TensorMap
from toolkit.machine_code.signature import Declared

if TYPE_CHECKING:
    from analysis.records.remedy import Remedy
    from reports.sections.launch_report import LaunchReport
    from toolkit.machine_code.kernel import Kernel

Argument = NDArray[np.generic] | np.generic | TensorMap


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One kernel launch: the code to compile, the geometry and the arguments.

    Raises InputError for an argument that is not an array, a NumPy scalar or a tensor map.
    """

    source: str | bytes  #: CUDA C++ text, or machine code; empty for cuBLAS
    name: str  #: file name of the source in messages
    kernel: str
    geometry: Geometry
    #: arrays are device buffers; NumPy scalars and tensor maps are passed by value
    arguments: Sequence[Argument]
    defines: Mapping[str, object] = field(default_factory=dict)
    options: Sequence[str] = ("-lineinfo",)
    inputs: Sequence[int] = ()  #: positions of arrays that the kernel must not write to
    unwritten: Sequence[int] = ()  #: positions of arrays without contents, such as outputs
    declared: Sequence[Declared] | None = None  #: parameters as the source declares them

    def __post_init__(self) -> None:
        check_numpy(self.kernel, self.arguments)


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Result of a launch. A field is empty or None if its data was not collected."""

    #: arrays of `buffers_of` the arguments, in their order, as the launch left them
    outputs: tuple[NDArray[np.generic], ...]
    resources: Resources
    geometry: Geometry | None = None  #: of the launch, None if it is not known
    #: raw integers under Nsight Compute's names
    counters: Mapping[str, int] = field(default_factory=dict)
    #: the same counts for each machine instruction, in order of address
    instructions: tuple[InstructionCounts, ...] = ()
    basis: str | None = None  #: origin of the counters, in words
    traffic_basis: str | None = None  #: the same for the modelled counters of L2 and DRAM
    predicted: Predicted | None = None  #: predicted time on `device`
    prediction_basis: str | None = None  #: basis of this time, or the reason why there is none
    device: Device | None = None  #: device of the modelled traffic and the predicted time
    samples_s: tuple[float, ...] = ()  #: times of repeated launches
    notes: tuple[str, ...] = ()  #: deviations from the request, and suspicious results
    cubin: Kernel | None = field(default=None, repr=False)  #: the machine code that ran
    executed_blocks: int | None = None  #: number of blocks that a simulation executed
    simulation_s: float | None = None  #: wall time of their execution
    #: ends of the 95% interval of each counter that is an estimate; all other counters are equal to
    #: those of an execution of all blocks
    estimates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    #: largest share of blocks that may differ unseen (95%)
    unseen_share: float | None = None
    uncertainty: str = ""  #: text that warns of estimates whose intervals are not narrow
    #: first request to memory of each instruction, by the number of the instruction
    requests: Mapping[int, FirstRequest] = field(default_factory=dict, repr=False)
    check: Check | None = None  #: verdict on the product of a rung, in the executed blocks

    @property
    def lines(self) -> dict[tuple[str, int], dict[str, int]]:
        """The counters of each source line, by (file, line)."""
        return by_line(self.instructions)

    @property
    def memory(self) -> tuple[LineAccess, ...]:
        """Accesses to memory by source line, each with its first request, lane by lane.

        Copies of one access that the compiler unrolled are joined.
        """
        return line_accesses(self.instructions, self.requests)

    @property
    def verdict(self) -> str:
        """First lines of `simulate` and `run`: the time, its cause, and the source line.

        Three lines; empty if the launch was neither timed nor were its instructions counted.
        """
        from analysis.hardware.sm_constants import constants_of

        if self.cubin is None or not (self.instructions or self.samples_s):
            return ""
        found = self.report.answer
        doubts = [f"{self.uncertainty}."] if self.uncertainty else []
        if self.predicted and self.device and (source := constants_of(self.device).taken_from):
            arch = self.device.sm_arch
            doubts.append(f"Most constants are those of {source}, not of {arch}.")
        first = " ".join((found.time_sentence, *doubts))
        return "\n".join((first, found.cause_sentence, found.line_sentence))

    @property
    def report(self) -> LaunchReport:
        """What a page of the launch shows; `dataclasses.replace` adds remedies or a command."""
        from reports.sections.launch_report import LaunchReport

        cubin = self.cubin
        return LaunchReport(
            name=cubin.name if cubin else "kernel",
            resources=self.resources,
            file=cubin.file if cubin else None,
            source=cubin.source if cubin else None,
            geometry=self.geometry,
            device=self.device,
            predicted=self.predicted,
            prediction_basis=self.prediction_basis,
            samples_s=self.samples_s,
            instructions=self.instructions,
            counters=self.counters,
            memory=self.memory,
            basis=self.basis,
            traffic_basis=self.traffic_basis,
            notes=self.notes,
            uncertainty=self.uncertainty,
            estimates=self.estimates,
            is_rung=self.check is not None,
        )

    def html(self, remedies: Sequence[Remedy] = ()) -> str:
        """One page on the launch that needs no network: its time, the cause, lines, remedies.

        Times that were measured elsewhere stand beside the prediction if they are its `samples_s`:
        `dataclasses.replace(execution, samples_s=measured.samples_s).html()`.
        """
        from reports.pages.kernel import page

        return page(replace(self.report, remedies=tuple(remedies)))

    def _repr_html_(self) -> str:
        """The first screen of the page, for a notebook."""
        from reports.pages.kernel import notebook_frame

        return notebook_frame(self.report)


def buffers_of(arguments: Sequence[Argument]) -> dict[int, NDArray[np.generic]]:
    """The arrays that become device buffers, by the position of the argument that brings each.

    These are the arrays among the arguments, each one of its own, and those of tensor maps that are
    none of them.
    """
    arrays = {k: a for k, a in enumerate(arguments) if isinstance(a, np.ndarray)}
    for k, argument in enumerate(arguments):
        if isinstance(argument, TensorMap) and not any(
            argument.array is x for x in arrays.values()
        ):
            arrays[k] = argument.array
    return dict(sorted(arrays.items()))


def buffer_of(tensor_map: TensorMap, arrays: Mapping[int, NDArray[np.generic]]) -> int:
    """Index of a tensor map's array among `buffers_of`; the first one of two equal entries."""
    return next(k for k, array in arrays.items() if array is tensor_map.array)


def buffer_labels(
    arguments: Sequence[Argument], declared: Sequence[Declared] | None
) -> dict[int, str]:
    """Labels of the buffers that the author of a kernel knows, by position of the argument."""
    labels = {}
    for k, array in buffers_of(arguments).items():
        name = declared[k].name if declared and k < len(declared) else None
        shape = ",".join(map(str, array.shape))
        dtype = "struct" if array.dtype.kind == "V" else array.dtype.name
        labels[k] = f"argument {k}{f' `{name}`' if name else ''}, {dtype}[{shape}]"
    return labels


def check_numpy(kernel: str, arguments: Sequence[Argument]) -> None:
    """Raise InputError for an argument whose type and size are not its own."""
    for position, argument in enumerate(arguments):
        if not isinstance(argument, (np.ndarray, np.generic, TensorMap)):
            raise InputError(
                f"argument {position} of {kernel} is {shortened(repr(argument))}: give a NumPy "
                "array or, for a value, a NumPy scalar such as numpy.int32(4096)"
            )


def three(extent: int | Sequence[int], what: str) -> tuple[int, int, int]:
    """(x, y, z) of a grid or block given as one to three sizes. Raises InputError for others."""
    try:
        sizes = tuple(map(index, extent if isinstance(extent, Sequence) else (extent,)))
    except TypeError:
        sizes = ()
    if not 1 <= len(sizes) <= 3 or not all(1 <= size < 2**64 for size in sizes):
        raise InputError(
            f"{what} = {shortened(repr(extent))}: give one to three whole sizes of at least 1"
        )
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def launch_geometry(
    grid: int | Sequence[int], block: int | Sequence[int], dynamic_shared_bytes: int
) -> Geometry:
    """Grid and block given as one to three sizes each. Raises InputError for others."""
    return Geometry(
        grid=three(grid, "grid"),
        block=three(block, "block"),
        dynamic_shared_bytes=dynamic_shared_bytes,
    )
