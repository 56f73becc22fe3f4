"""Arguments and geometry of a launch, and the `Execution` that simulator and GPU return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import checked
from analysis.devices import Device
from analysis.errors import InputError, UnknownNameError, shortened
from analysis.geometry import Geometry
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.occupancy import Resources
from analysis.records.counters import InstructionCounts, by_line
from analysis.records.profile import FirstRequest, LineAccess
from analysis.records.source_lines import line_accesses
from analysis.records.summaries import rows_of_lines, summaries
from analysis.rounding import Check
from analysis.timing.predicted import Predicted, RankedCause
from toolkit.launch.element_types import type_text
from toolkit.launch.tensor_map import TensorMap
from toolkit.launch.texture import Surface, Texture
from toolkit.machine_code.signature import Declared
from toolkit.store.dataframe import Rows, dataframe
from toolkit.store.user_files import write_page

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from analysis.records.remedy import Remedy
    from reports.sections.launch_report import LaunchReport
    from toolkit.machine_code.kernel import Kernel

Described = TensorMap | Texture | Surface  # of an array, which becomes a buffer
Argument = NDArray[np.generic] | np.generic | Described


@dataclass(frozen=True, kw_only=True, eq=False)
class Execution:
    """Result of a launch. A field is empty or None if its data was not collected.

    A prompt shows the verdict, a notebook the first screen of the launch's page. Two are equal if
    all fields are but `simulation_s` and `call`; arrays are if they have the same type, shape and
    bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import simulate
    >>> source = 'extern "C" __global__ void one(float *x) { x[threadIdx.x * 32] = 1; }'
    >>> x = np.zeros(1024, np.float32)
    >>> execution = simulate(source, grid=1, block=32, arguments=[x], device="h200")
    >>> execution.causes[0].cause, execution.causes[0].is_avoidable
    ('launch', False)
    >>> execution.figure("time").layout.title.text
    'Parts of the time of one'
    """

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
    l2: L2State = DEFAULT_L2  #: what each of these launches, or a predicted one, finds in L2
    #: text that the kernel printed (printf), block after block; of a simulation, that of the blocks
    #: that were executed, and of their first megabyte
    printed: str = field(default="", repr=False)
    #: `__device__` variables after the launch, by their names in the source; empty without outputs
    symbols: Mapping[str, NDArray[np.generic]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()  #: deviations from the request, and suspicious results
    cubin: Kernel | None = field(default=None, repr=False)  #: the machine code that ran
    executed_blocks: int | None = None  #: number of blocks that a simulation executed
    #: wall time of their execution
    simulation_s: float | None = field(default=None, compare=False)
    #: ends of the 95% interval, or bounds, of each counter that is an estimate; all other counters
    #: are equal to those of an execution of all blocks
    estimates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    #: largest share of blocks that may differ unseen (95%)
    unseen_share: float | None = None
    uncertainty: str = ""  #: text that warns of estimates whose intervals are not narrow
    #: first request to memory of each instruction, by the number of the instruction
    requests: Mapping[int, FirstRequest] = field(default_factory=dict, repr=False)
    check: Check | None = None  #: verdict on the product of a rung, in the executed blocks
    #: arguments of `find_remedies` for this launch, None unless CUDA C++ was simulated
    call: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Execution):
            return NotImplemented
        names = [one.name for one in fields(self) if one.compare]
        return all(_are_same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]  # some fields are dictionaries

    def __repr__(self) -> str:
        """The verdict in at most three lines."""
        told = self.verdict or f"{self.report.name}: not timed"
        return f"<Execution {told}>".replace("\n", "\n  ")

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
        if not self.instructions and not self.samples_s:
            return ""
        return self.report.verdict

    @property
    def causes(self) -> tuple[RankedCause, ...]:
        """Parts of the predicted time, the largest first; empty without a time."""
        return self.predicted.causes if self.predicted else ()

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """Edits of the kernel and what each saves, found on first use, in seconds.

        Same as `toolkit.find_remedies`. Arrays among the arguments must be as they were. Raises
        InputError unless CUDA C++ was simulated and its time predicted.
        """
        from toolkit import find_remedies

        if self.call is None or self.predicted is None:
            raise InputError(
                f"{self.report.name}: remedies need CUDA C++ that was simulated with a predicted "
                "time: call simulate(source, ..., device='h200')"
            )
        found: tuple[Remedy, ...] = find_remedies(**self.call, device=self.device)
        return found

    @property
    def report(self) -> LaunchReport:
        """The report of the launch that its page shows; `dataclasses.replace` adds a command.

        Remedies are among it once `remedies` were asked for.
        """
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
            l2=self.l2,
            estimates=self.estimates,
            remedies=vars(self).get("remedies", ()),
            is_rung=self.check is not None,
        )

    @checked
    def figure(self, name: str) -> go.Figure:
        """A figure of the launch's page as a Plotly figure.

        Parameters
        ----------
        name
            "time", "units", "roofline", "memory", "lines" or "occupancy".

        Returns
        -------
        plotly.graph_objects.Figure
            Without traces, but with the reason, where the launch has no such data.

        Raises
        ------
        UnknownNameError
            For another name.
        """
        from reports.figures.launch import FIGURES

        if name not in FIGURES:
            raise UnknownNameError("figure", name, FIGURES)
        return FIGURES[name](self.report).plotly()

    def to_dataframe(
        self, of: Literal["lines", "counters", "instructions", "causes"] = "lines"
    ) -> pd.DataFrame:
        """A table of the launch for pandas, which `pip install 'gemm-ladder[pandas]'` installs.

        Parameters
        ----------
        of
            "lines": a row per source line, with its cost in seconds and a column per counter.
            "counters": a row per counter and derived metric, with value, unit and label.
            "instructions": a row per machine instruction.
            "causes": a row per part of the predicted time, in seconds.

        Raises
        ------
        UnknownNameError
            For another table.
        UnavailableError
            Without pandas.
        """
        tables: dict[str, Rows] = {
            "lines": lambda: rows_of_lines(self.instructions, self.predicted),
            "counters": lambda: summaries(self.counters),
            "instructions": lambda: map(asdict, self.instructions),
            "causes": lambda: map(asdict, self.causes),
        }
        return dataframe(tables, of)

    @checked
    def save(self, path: str | Path) -> None:
        """Write the launch's page, which needs no network, to a path that ends in .html.

        Raises InputError for another path, or one that cannot be written.
        """
        write_page(path, self.html)

    @checked
    def html(self, remedies: Sequence[Remedy] = ()) -> str:
        """One page on the launch that needs no network: its time, the cause, lines, remedies.

        Times that were measured elsewhere stand beside the prediction if they are its `samples_s`:
        `dataclasses.replace(execution, samples_s=measured.samples_s).html()`.
        """
        from reports.pages.kernel import page

        return page(replace(self.report, remedies=tuple(remedies) or self.report.remedies))

    def _repr_html_(self) -> str:
        """The first screen of the page, for a notebook."""
        from reports.pages.kernel import notebook_frame

        return notebook_frame(self.report)


def _are_same(one: Any, other: Any) -> bool:
    """True for equal values, and for tuples, dictionaries and arrays of equal ones."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        has_form = one.dtype == other.dtype and one.shape == other.shape
        return has_form and one.tobytes() == other.tobytes()
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_are_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_are_same(one[key], other[key]) for key in one)
    return bool(one == other)


def buffers_of(arguments: Sequence[Argument]) -> dict[int, NDArray[np.generic]]:
    """The arrays that become device buffers, by the position of the argument that brings each.

    These are the arrays among the arguments, each one of its own, and those of tensor maps,
    textures and surfaces that are none of them, each once.
    """
    arrays = {k: a for k, a in enumerate(arguments) if isinstance(a, np.ndarray)}
    for k, argument in enumerate(arguments):
        if isinstance(argument, Described) and not any(
            argument.array is x for x in arrays.values()
        ):
            arrays[k] = argument.array
    return dict(sorted(arrays.items()))


def buffer_of(described: Described, arrays: Mapping[int, NDArray[np.generic]]) -> int:
    """Index of the described array among `buffers_of`; the first one of two equal entries."""
    return next(k for k, array in arrays.items() if array is described.array)


def buffer_labels(
    arguments: Sequence[Argument], declared: Sequence[Declared] | None
) -> dict[int, str]:
    """Labels of the buffers that the author of a kernel knows, by position of the argument."""
    labels = {}
    for k, array in buffers_of(arguments).items():
        known = declared[k] if declared and k < len(declared) else None
        name, own = (known.name, known.argument) if known else (None, None)
        shape = ",".join(map(str, array.shape))
        of_type = type_text(array.dtype)
        labels[k] = (
            f"argument {k if own is None else own}{f' `{name}`' if name else ''}, "
            f"{of_type}[{shape}]"
        )
    return labels


def check_numpy(kernel: str, arguments: Sequence[Argument]) -> None:
    """Raise InputError for an argument whose type and size are not its own."""
    for position, argument in enumerate(arguments):
        if not isinstance(argument, np.ndarray | np.generic | Described):
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
