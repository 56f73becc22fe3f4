"""Constants of an SM for the timing model, per architecture; every number has a source.

Latencies and clocks are cycles of the SM. An instruction occupies its unit for 32 clocks divided by
the number of the unit's lanes per scheduler. The numbers are in the files of the folder machines,
one per architecture (docs/machines.md). If nobody has measured a number on an architecture, its
value is copied from another one, and its kind says so. `python -m toolkit.microbenchmarks` measures
these constants on your GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from analysis.devices import Device, OwnConstants
from analysis.hardware.machine_file import MachineEntry, parsed
from analysis.sm import Numbers, Unit

FOLDER = Path(__file__).with_name("machines")
SUFFIX = ".toml"
ABOUT_THE_RECORD = ("architecture", "taken_from", "is_fitted", "own", "entries")
#: Units whose instructions release a scoreboard after a latency of their own.
WITH_LATENCY = (Unit.XU, Unit.FP64, Unit.UNIFORM, Unit.CONTROL, Unit.TENSOR_DOUBLE)


@dataclass(frozen=True, kw_only=True)
class SmConstants(Numbers):
    """Constants of one architecture, in addition to those that `analysis.sm.Numbers` describes.

    The C code in analysis/sm reads the fields of `Numbers`, analysis/timing the others.
    """

    architecture: str
    units: dict[Unit, int]  #: clocks for which one warp instruction occupies each unit
    #: clocks until an instruction of XU, FP64, uniform or control units releases its scoreboard;
    #: of an FP64 product, in addition to the clocks of its unit
    latencies: dict[Unit, int]
    fetch_clocks_of_several: int  #: `fetch_clocks` if schedulers have more than one warp
    code_bytes: int  #: size of the instruction cache
    cached_code_bytes: int  #: size of the cache behind it; larger code comes from L2
    far_fetch_clocks: int  #: `fetch_clocks` of code that comes from L2
    #: clocks from the stores of a block's partial sums until other blocks see its flag
    flag_latency: int
    constant_line_clocks_alone: float  #: `constant_line_clocks` if the other SMs are idle
    #: L2 read bandwidth of each SM if all of them read lines that others read at the same time
    merged_l2_bytes_per_clock: float
    most_l2_bytes_per_clock: float  #: L2 read bandwidth of one SM if the others are idle
    most_write_bytes_per_clock: float  #: L2 write bandwidth of one SM if the others are idle
    #: bytes that DRAM could transfer while it transfers two sectors of a line alone
    dram_pair_bytes: float
    dram_efficiency: float  #: fraction of the nominal DRAM bandwidth that kernels reach
    fill_share: float  #: bytes that L2 stores, at the rate of stores, per byte that DRAM sends
    #: time from the first request of a launch until DRAM serves it, if L2 is dirty
    dirty_start_s: float
    l1_bytes: int  #: size of L1, which includes shared memory
    l2_slice_bytes: int  #: consecutive bytes that share a slice of L2
    atomic_part_s: float  #: time of a slice for an atomic operation on a part of a sector
    atomic_whole_s: float  #: the same on a whole sector
    atomic_sum_s: float  #: the same for each float that is added
    store_s: float  #: time of a slice for the stores of a warp to a sector
    store_line_s: float  #: the same for those to the four sectors of a line
    atomic_window: int  #: requests by which warps that walk the same lines run ahead
    next_block_s: float  #: time of the device between the starts of two blocks in a long grid
    launch_s: float  #: time that CUDA events measure around an empty launch
    #: architecture whose values are taken over, None if there is none
    taken_from: str | None = None
    is_fitted: bool = False  #: some numbers were fitted on a GPU of this architecture
    own: OwnConstants | None = None  #: those constants that were measured on the user's GPU
    #: unit, kind, source and evidence of each number, by a name such as "l1_latency", "units.FMA"
    entries: Mapping[str, MachineEntry] = field(default_factory=dict)


def _wanted() -> dict[str, type]:
    """Names of all numbers, in their order, with their types."""
    types, found = get_type_hints(SmConstants), dict[str, type]()
    tables = {"units": tuple(Unit), "latencies": WITH_LATENCY}
    for one in fields(SmConstants):
        if one.name in tables:
            found |= {f"{one.name}.{unit.name}": int for unit in tables[one.name]}
        elif one.name not in ABOUT_THE_RECORD:
            found[one.name] = types[one.name]
    return found


NAMES: Mapping[str, type] = _wanted()


def read_machine(text: str, file: str) -> SmConstants:
    """Constants of the machine file `file` ("sm_90.toml") with the content `text`.

    Raises InputError for a file that cannot be used, in one line with file, key and value.
    """
    entries = parsed(text, file, NAMES)
    taken = [entry.source for entry in entries.values() if entry.kind == "taken over"]
    return SmConstants(
        **fields_of({name: entry.value for name, entry in entries.items()}),
        architecture=file.removesuffix(SUFFIX),
        taken_from=taken[0] if taken else None,
        is_fitted=any(entry.kind == "fitted" for entry in entries.values()),
        entries=entries,
    )


def fields_of(values: Mapping[str, float]) -> dict[str, Any]:
    """Fields of `SmConstants` from values by name; those of units become one field by unit."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        table, _, unit = name.partition(".")
        if unit:
            found.setdefault(table, {})[Unit[unit]] = value
        else:
            found[name] = value
    return found


class _Machines(Mapping[str, SmConstants]):
    """The machine files that ship, by architecture; a file is read when it is first needed."""

    def __getitem__(self, architecture: str) -> SmConstants:
        if architecture not in _architectures():
            raise KeyError(architecture)
        return _of_file(architecture)

    def __iter__(self) -> Iterator[str]:
        return iter(_architectures())

    def __len__(self) -> int:
        return len(_architectures())


@cache
def _architectures() -> tuple[str, ...]:
    return tuple(sorted((path.stem for path in FOLDER.glob(f"*{SUFFIX}")), key=_number_of))


@cache
def _of_file(architecture: str) -> SmConstants:
    path = FOLDER / f"{architecture}{SUFFIX}"
    return read_machine(path.read_text(encoding="utf-8"), path.name)


def _number_of(architecture: str) -> int:
    return int(architecture.removeprefix("sm_"))


CONSTANTS: Mapping[str, SmConstants] = _Machines()


def constants_for(architecture: str) -> SmConstants:
    """Constants of "sm_86", or those of the nearest architecture, which then says so."""
    if architecture in CONSTANTS:
        return CONSTANTS[architecture]
    number = _number_of(architecture)
    nearest = min(CONSTANTS, key=lambda known: abs(_number_of(known) - number))
    return replace(
        CONSTANTS[nearest], architecture=architecture, taken_from=nearest, is_fitted=False
    )


def constants_of(device: Device) -> SmConstants:
    """Constants for a device: its own ones, and for the others those of its architecture."""
    usual, own = constants_for(device.sm_arch), device.constants
    if own is None:
        return usual
    source = f"{own.gpu} ({own.file})"
    entries = {
        name: MachineEntry(
            value=NAMES[name](value), unit=known.unit, kind="measured", source=source
        )
        if (value := own.values.get(name)) is not None
        else known
        for name, known in usual.entries.items()
    }
    values = fields_of({name: entry.value for name, entry in entries.items()})
    return replace(usual, **values, own=own, entries=entries)
