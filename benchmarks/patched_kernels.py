"""Times of the ladder with one class of instructions patched away, measured and predicted.

    python -m benchmarks.patched_kernels measure FILE.json     # needs a GPU, 90 seconds at most
    python -m benchmarks.patched_kernels predict FILE.json     # needs none, some minutes
    python -m benchmarks.patched_kernels table FILE.json       # both, and their ratio, as Markdown

Each rung's machine code is launched as it is, with NOPs for its barriers, its global or shared
loads or stores, or its multiply-adds, and without operand reuse; with as many warps per scheduler
as dynamic shared memory, which nobody uses, lets be resident. Products are wrong, so that nothing
is checked. docs/experiments.md says how to read the result.

`measure` keeps the machine code in the file, and `predict` takes it from there: both are of the
very same instructions. Launches are made by a process of its own, which is replaced where one of
them ends it; the file is written anew around every launch.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from analysis.cycles import SCHEDULERS
from analysis.devices import Device, find_device
from analysis.errors import InputError, ToolkitError, UnavailableError, first_line
from analysis.geometry import WARP_SIZE, Geometry
from analysis.occupancy import occupancy
from analysis.problem import Gemm, parse_shape
from analysis.timing import Work, predict
from benchmarks.gpu_operands import GpuOperands
from benchmarks.patches import OPERATIONS, all_without_reuse, without
from kernels import LADDER
from kernels.registry import Selection, Variant, parse_selection
from reports import text
from toolkit.block_plan import period, timed_k
from toolkit.cubin import Kernel
from toolkit.environment import GpuMonitor, environment
from toolkit.gpu import Gpu, LoadedKernel
from toolkit.microbenchmarks.bench import Bench
from toolkit.patching import Patch, changed, rewritten, words
from toolkit.prediction import blocks_of_an_sm, streams_of
from toolkit.rung_execution import bind_in_place
from toolkit.rung_launch import RungLaunch, compile_for
from toolkit.sass.machine_code import machine_code
from toolkit.sass.translate import translate
from toolkit.store import write_atomically
from toolkit.workload import Workload

UNPATCHED = "none"
ARITHMETIC = "multiply-adds"
PATCHES: dict[str, Patch] = {
    UNPATCHED: lambda code: code,
    **{f"no {name}": without(operations) for name, operations in OPERATIONS.items()},
    "no reuse": all_without_reuse,
    "arithmetic alone": without(
        frozenset().union(*(codes for name, codes in OPERATIONS.items() if name != ARITHMETIC))
    ),
    "issue slots alone": without(frozenset().union(*OPERATIONS.values())),
}
RUNGS = tuple(variant.name for variant in LADDER)
SHAPES = ("2048", "4096x4096x256")
WARPS_PER_SCHEDULER = (1, 2, 4, 8)  # where blocks allow, and as many as fit

SEED = 0
SAMPLES, FEWEST, SAMPLES_S = 9, 3, 0.3
WARM_UP_S = 0.1
LIMIT_S = 75.0  # what is left then is recorded as not timed
START_S, SAMPLING_S = 40.0, 10.0  # without a word, after which the process that launches is ended
GONE = "the process that launched it ended, or did not come back"

Document = dict[str, Any]
Cell = dict[str, Any]


# What is to be done.


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One launch: which code, on what, and how many of its blocks an SM holds at a time."""

    rung: str
    patch: str
    patched_instructions: int
    shape: str
    warps_per_scheduler: int
    blocks_per_sm: int
    dynamic_shared_bytes: int

    @property
    def label(self) -> str:
        return (
            f"{self.rung}, {self.patch}, {self.shape}, {self.warps_per_scheduler} warps a scheduler"
        )

    @property
    def executed(self) -> Gemm:
        return _variant(self.selection).executed(parse_shape(self.shape))

    @property
    def selection(self) -> Selection:
        return parse_selection(self.rung)

    @property
    def geometry(self) -> Geometry:
        plain = _geometry(self.selection, self.executed)
        return replace(plain, dynamic_shared_bytes=self.dynamic_shared_bytes)


def _variant(selection: Selection) -> Variant:
    variant = selection.variant
    if not isinstance(variant, Variant):
        raise InputError(f"{variant.name} is a reference: choose rungs of the ladder")
    return variant


def _geometry(selection: Selection, executed: Gemm) -> Geometry:
    return _variant(selection).geometry(selection.parameters, executed)


def plan(device: Device, rungs: Sequence[str], shapes: Sequence[str]) -> Document:
    """The kernels for a device, and all experiments with them, not done yet."""
    selections = {rung: parse_selection(rung) for rung in rungs}
    cubins = {
        rung: compile_for(device, selection)
        for rung, selection in selections.items()
        if any(_takes(_variant(selection), parse_shape(shape)) for shape in shapes)
    }
    return {
        "schema_version": 1,
        "device": device.key,
        "architecture": device.sm_arch,
        "kernels": {rung: _packed(cubin) for rung, cubin in cubins.items()},
        "experiments": [
            asdict(experiment)
            for shape in shapes
            for rung, cubin in cubins.items()
            if _takes(_variant(selections[rung]), parse_shape(shape))
            for experiment in _experiments(rung, cubin, shape, device)
        ],
    }


def _takes(variant: Variant, problem: Gemm) -> bool:
    return not variant.max_extent or max(problem.m, problem.n) <= variant.max_extent


def _experiments(rung: str, cubin: Kernel, shape: str, device: Device) -> Iterator[Experiment]:
    geometry = _geometry(parse_selection(rung), parse_shape(shape))
    warps = geometry.threads_per_block // WARP_SIZE
    for blocks, dynamic in residences(cubin, geometry, device).items():
        for patch, patched_instructions in numbers_patched(cubin).items():
            if patched_instructions or patch == UNPATCHED:
                yield Experiment(
                    rung=rung,
                    patch=patch,
                    patched_instructions=patched_instructions,
                    shape=shape,
                    warps_per_scheduler=blocks * warps // SCHEDULERS,
                    blocks_per_sm=blocks,
                    dynamic_shared_bytes=dynamic,
                )


def residences(cubin: Kernel, geometry: Geometry, device: Device) -> dict[int, int]:
    """Numbers of blocks per SM, and the least dynamic shared bytes that let no more be resident.

    They are never fewer than the launch itself takes.
    """

    def resident(dynamic: int) -> int:
        return occupancy(
            device,
            threads_per_block=geometry.threads_per_block,
            registers_per_thread=cubin.resources.registers_per_thread,
            shared_bytes_per_block=cubin.resources.static_shared_bytes + dynamic,
        ).blocks_per_sm

    own, warps = geometry.dynamic_shared_bytes, geometry.threads_per_block // WARP_SIZE
    wanted = {n * SCHEDULERS // warps for n in WARPS_PER_SCHEDULER if n * SCHEDULERS % warps == 0}
    unit = device.shared_allocation_unit
    room = device.shared_bytes_per_block_optin - cubin.resources.static_shared_bytes
    found: dict[int, int] = {}
    for dynamic in range(own, room + 1, unit):
        found.setdefault(resident(dynamic), dynamic)
    return {n: found[n] for n in sorted(wanted | {resident(own)}) if n in found}


@cache
def numbers_patched(cubin: Kernel) -> dict[str, int]:
    """How many instructions each patch changes."""
    code = words(cubin.image, cubin.symbol)
    return {name: len(changed(code, patch(list(code)))) for name, patch in PATCHES.items()}


@cache
def patched(cubin: Kernel, patch: str) -> Kernel:
    return cubin.with_image(rewritten(cubin.image, {cubin.symbol: PATCHES[patch]}))


# The file.


def _packed(cubin: Kernel) -> Cell:
    return {
        "compiler": cubin.compiler,
        "cubin_sha256": sha256(cubin.image).hexdigest(),
        "cubin_zlib_base64": b64encode(zlib.compress(cubin.image, 9)).decode(),
    }


def _cubins(document: Document) -> dict[str, Kernel]:
    return {
        name: Kernel.from_image(zlib.decompress(b64decode(packed["cubin_zlib_base64"])))
        for name, packed in document["kernels"].items()
    }


def _read(path: Path) -> Document:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {first_line(error)}") from None
    assert isinstance(document, dict)
    return document


def _write(path: Path, document: Document) -> None:
    write_atomically(path, json.dumps(document, indent=1, allow_nan=False))


def _experiment(cell: Cell) -> Experiment:
    names = Experiment.__dataclass_fields__
    return Experiment(**{name: cell[name] for name in names})


# On a GPU.


def measure(path: Path, rungs: Sequence[str], shapes: Sequence[str], limit_s: float) -> None:
    """Launch everything, in processes that may die; the next one goes on after what ended them."""
    path.unlink(missing_ok=True)
    until, done = time.time() + limit_s, -1
    wanted = [f"--rung={rung}" for rung in rungs] + [f"--shape={shape}" for shape in shapes]
    command = [sys.executable, __file__, "launch", str(path), f"--until={until:.0f}", *wanted]
    while time.time() < until and (now := _launched(path)) > done:
        done = now
        if _watched(subprocess.Popen(command), path, until) == 0:
            break
    if not path.exists():
        raise UnavailableError("nothing was launched: the reason stands above")
    document = _read(path)
    for cell in document["experiments"]:
        cell.setdefault("measured", {"error": "not timed: the time is over"})
    _write(path, document)
    _summary(document, "measured", path)


def _launched(path: Path) -> int:
    """How many experiments a file has results of."""
    return sum("measured" in c for c in _read(path)["experiments"]) if path.exists() else 0


def _watched(process: subprocess.Popen[bytes], path: Path, until: float) -> int:
    """The status with which a process ends, which is ended where the file does not change."""
    started = time.time()
    while process.poll() is None:
        time.sleep(0.1)
        written = path.stat().st_mtime if path.exists() else 0.0
        deadline = max(started + START_S, written + SAMPLING_S)
        if time.time() > min(deadline, until + SAMPLING_S):
            process.kill()
            process.wait()
    return process.returncode


def launch(path: Path, rungs: Sequence[str], shapes: Sequence[str], until: float) -> None:
    """Launch what has not been launched yet; ends the process where a launch broke the context."""
    with Gpu() as gpu:
        if not path.exists():
            _write(path, _about(gpu) | plan(gpu.device, rungs, shapes))
        document = _read(path)
        session = _Session(gpu, _cubins(document))
        document.setdefault("measured_sm_clock_hz_before", session.clock_hz())
        for cell in document["experiments"]:
            if "measured" in cell:
                continue
            if time.time() > until:
                break
            cell["measured"] = {"error": GONE}
            _write(path, document)
            cell["measured"] = session.measured(_experiment(cell))
            if not gpu.alive:
                _write(path, document)
                sys.exit(3)
        document["measured_sm_clock_hz_after"] = session.clock_hz()
        _write(path, document)


def _about(gpu: Gpu) -> Document:
    return {
        "recorded_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": asdict(environment(GpuMonitor(gpu.pci_bus_id))),
    }


class _Session:
    """A GPU with the kernels and matrices of the experiments."""

    def __init__(self, gpu: Gpu, cubins: dict[str, Kernel]) -> None:
        self.gpu, self.cubins = gpu, cubins
        self.monitor = GpuMonitor(gpu.pci_bus_id)
        self._bench = Bench(gpu)
        self._operands: dict[str, GpuOperands] = {}
        self._is_warm = False

    def clock_hz(self) -> float | str:
        """The SM clock that is held while one SM is busy, by the device's own timers."""
        try:
            return self._bench.clock_hz()
        except Exception as error:  # NVML's clocks stand beside every time
            return first_line(error)

    def measured(self, experiment: Experiment) -> Cell:
        try:
            return self._measured(experiment)
        except Exception as error:  # the others go on
            return {"error": f"{type(error).__name__}: {first_line(error)}"}

    def _measured(self, experiment: Experiment) -> Cell:
        cubin = patched(self.cubins[experiment.rung], experiment.patch)
        kernel = self.gpu.load_image(cubin.image, cubin.symbol)
        carve_out = self._carve_out(kernel, experiment, cubin.resources.static_shared_bytes)
        once = kernel.prepared(experiment.geometry, self._arguments(experiment))
        self._warm_up(once)
        before = self.monitor.state()
        samples = self._samples(once)
        after = self.monitor.state()
        return {
            "median_s": median(samples),
            "samples_s": samples,
            "carve_out_percent": carve_out,
            "sm_clock_hz_before": before.sm_clock_hz,
            "sm_clock_hz_after": after.sm_clock_hz,
            "throttle_reasons": list(after.throttle_reasons),
            "cubin_sha256": sha256(cubin.image).hexdigest(),
        }

    def _arguments(self, experiment: Experiment) -> list[Any]:
        shape = experiment.shape
        if shape not in self._operands:
            self._operands.clear()
            self._operands[shape] = GpuOperands(self.gpu, Workload(parse_shape(shape), SEED))
        selection = experiment.selection
        return self._operands[shape].arguments(
            _variant(selection), selection.parameters, experiment.executed
        )

    def _carve_out(self, kernel: LoadedKernel, experiment: Experiment, static: int) -> int | None:
        """Ask for no more shared memory, and so no less L1, than the resident blocks need."""
        if not experiment.dynamic_shared_bytes:
            return None
        device = self.gpu.device
        of_block = static + experiment.dynamic_shared_bytes + device.reserved_shared_bytes_per_block
        percent = min(
            100, -(-100 * experiment.blocks_per_sm * of_block // device.shared_bytes_per_sm)
        )
        try:
            names = self.gpu._driver.function_attribute
            kernel._function.set_attribute(names.PREFERRED_SHARED_MEMORY_CARVEOUT, percent)
        except Exception:  # a wish that PyCUDA may not know; the file says that it was not made
            return None
        return percent

    def _warm_up(self, once: Callable[[], None]) -> None:
        started = time.monotonic()
        while not self._is_warm and time.monotonic() - started < WARM_UP_S:
            self.gpu.time(once, flush_l2=False)
        self._is_warm = True

    def _samples(self, once: Callable[[], None]) -> list[float]:
        samples: list[float] = []
        started = time.monotonic()
        while len(samples) < FEWEST or (
            len(samples) < SAMPLES and time.monotonic() - started < SAMPLES_S
        ):
            samples.append(self.gpu.time(once, flush_l2=False))
        return samples


# On the model.


def predict_all(
    path: Path, device: Device | None, rungs: Sequence[str], shapes: Sequence[str]
) -> None:
    """The model's time of every experiment of the file; of a new one for `device` without it."""
    if not path.exists():
        if device is None:
            raise InputError(f"there is no {path}: measure first, or name a --device")
        _write(path, plan(device, rungs, shapes))
    document = _read(path)
    on, cubins = find_device(document["device"]), _cubins(document)
    for cell in document["experiments"]:
        experiment = _experiment(cell)
        started = time.monotonic()
        cell["predicted"] = predicted(experiment, cubins[experiment.rung], on)
        _write(path, document)
        print(f"{experiment.label}: {time.monotonic() - started:.1f} s", flush=True)
    _summary(document, "predicted", path)


def predicted(experiment: Experiment, cubin: Kernel, device: Device) -> Cell:
    """The time that the model gives, with its limiter, or why there is none."""
    try:
        found = predict(work(experiment, patched(cubin, experiment.patch), device), device)
    except (ToolkitError, ValueError, MemoryError) as error:
        return {"error": f"{type(error).__name__}: {first_line(error)}"}
    return {
        "time_s": found.time_s,
        "cycles": found.cycles,
        "clock_hz": found.clock_hz,
        "launch_s": found.launch_s,
        "limiter": found.limiter,
        "constants": found.constants,
    }


def work(experiment: Experiment, cubin: Kernel, device: Device) -> Work:
    """The launch with L2 warm: whatever misses L1 is in L2."""
    translated = translate(cubin)
    selection, shape, geometry = experiment.selection, experiment.executed, experiment.geometry
    variant = _variant(selection)
    blocks = blocks_of_an_sm(geometry.blocks, device.sm_count)

    def streams(k: int) -> Any:
        a, b, c = (
            np.zeros(extents, np.float32)
            for extents in ((shape.m, k), (k, shape.n), (shape.m, shape.n))
        )
        launch = RungLaunch(
            variant=variant,
            parameters=selection.parameters,
            problem=replace(shape, k=k),
        )
        bound = bind_in_place(translated, launch, a, b, c)
        return streams_of(bound, blocks)

    step = period(variant.tiling(selection.parameters))
    return Work(
        code=machine_code(translated.kernel),
        samples={k: streams(k) for k in timed_k(shape.k, step, geometry)},
        k=shape.k,
        blocks=geometry.blocks,
        blocks_per_sm=experiment.blocks_per_sm,
        shared_bytes_per_block=cubin.resources.static_shared_bytes
        + experiment.dynamic_shared_bytes,
        flop=shape.flop,
        l2_read_bytes=0,
        l2_write_bytes=0,
        dram_read_bytes=0,
        dram_write_bytes=0,
    )


# Both.


def tables(document: Document) -> str:
    """Every experiment in a table per shape, and the errors by patch and by rung."""
    cells = [_compared(cell) for cell in document["experiments"]]
    shapes = list(dict.fromkeys(cell["shape"] for cell in cells))
    parts = [_conditions(document)]
    parts += [_of_shape(shape, [c for c in cells if c["shape"] == shape]) for shape in shapes]
    parts += [_errors(cells, key) for key in ("patch", "rung", "warps_per_scheduler")]
    return "\n\n".join(parts)


def _compared(cell: Cell) -> Cell:
    """A cell with both times in seconds, None for what is missing."""
    return {
        **cell,
        "measured_s": cell.get("measured", {}).get("median_s"),
        "predicted_s": cell.get("predicted", {}).get("time_s"),
    }


def _conditions(document: Document) -> str:
    clocks = [document.get(f"measured_sm_clock_hz_{when}") for when in ("before", "after")]
    shown = [f"{clock / 1e6:,.0f}" for clock in clocks if isinstance(clock, float)]
    compilers = sorted({kernel["compiler"] for kernel in document["kernels"].values()})
    measured = f", SM clock {' and '.join(shown)} MHz before and after" if shown else ""
    recorded = f", {document['recorded_utc']}" if "recorded_utc" in document else ""
    return f"{document['device']}, {', '.join(compilers)}{recorded}{measured}."


def _of_shape(shape: str, cells: Sequence[Cell]) -> str:
    whole = {
        (cell["rung"], cell["warps_per_scheduler"]): cell
        for cell in cells
        if cell["patch"] == UNPATCHED
    }
    heads = ("rung", "warps", "patch", "places", "measured", "predicted", "ratio")
    rows = [(*heads, "measured / unpatched", "predicted / unpatched", "limiter")]
    for cell in cells:
        base = whole[cell["rung"], cell["warps_per_scheduler"]]
        rows.append(
            (
                cell["rung"],
                str(cell["warps_per_scheduler"]),
                cell["patch"],
                str(cell["patched_instructions"] or "–"),
                *(_time(cell[f"{kind}_s"]) for kind in ("measured", "predicted")),
                _ratio(cell["predicted_s"], cell["measured_s"]),
                *(_ratio(cell[f"{x}_s"], base[f"{x}_s"]) for x in ("measured", "predicted")),
                cell.get("predicted", {}).get("limiter", "–"),
            )
        )
    failed = [
        f"- {_experiment(cell).label}: {kind}: {cell[kind]['error']}"
        for cell in cells
        for kind in ("measured", "predicted")
        if "error" in cell.get(kind, {})
    ]
    return "\n\n".join(filter(None, (f"**{shape}**", _markdown(rows), "\n".join(failed))))


def _errors(cells: Sequence[Cell], key: str) -> str:
    """The mean of predicted over measured, and of its distance from 1, by one property."""
    rows = [(key.replace("_", " "), "experiments", "mean ratio", "mean error", "worst")]
    for value in dict.fromkeys(cell[key] for cell in cells):
        ratios = [
            cell["predicted_s"] / cell["measured_s"]
            for cell in cells
            if cell[key] == value and cell["predicted_s"] and cell["measured_s"]
        ]
        if ratios:
            errors = [abs(ratio - 1) for ratio in ratios]
            worst = max(ratios, key=lambda ratio: abs(ratio - 1))
            rows.append(
                (
                    str(value),
                    str(len(ratios)),
                    f"{fmean(ratios):.2f}",
                    text.percent(fmean(errors)),
                    f"{worst:.2f}",
                )
            )
    return _markdown(rows) if len(rows) > 1 else f"No experiment has both times (by {rows[0][0]})."


def _markdown(rows: Iterable[Sequence[str]]) -> str:
    head, *others = rows
    lines = [head, ["---"] * len(head), *others]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else text.seconds(seconds)


def _ratio(value: float | None, base: float | None) -> str:
    return f"{value / base:.2f}" if value and base else "–"


def _summary(document: Document, kind: str, path: Path) -> None:
    cells = document["experiments"]
    failed = [cell for cell in cells if "error" in cell.get(kind, {})]
    for cell in failed:
        print("failed:", _experiment(cell).label, cell[kind]["error"])
    print(f"{len(cells)} experiments, {len(failed)} without a {kind} time: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    of_measure = commands.add_parser("measure", help="time all experiments on this GPU")
    of_predict = commands.add_parser("predict", help="add the model's times to a file")
    of_table = commands.add_parser("table", help="print both as Markdown")
    of_launch = commands.add_parser("launch")  # the process that `measure` watches
    of_measure.add_argument("--limit-s", type=float, default=LIMIT_S)
    of_predict.add_argument("--device", help="of the database, where nothing was measured")
    of_launch.add_argument("--until", type=float, required=True)
    for command in (of_measure, of_predict, of_table, of_launch):
        command.add_argument("file", type=Path)
    for command in (of_measure, of_predict, of_launch):
        command.add_argument("--rung", action="append", help="of a new file: tiled:tile=8, ...")
        command.add_argument("--shape", action="append", help="of a new file: 2048x64x4096, ...")
    chosen = parser.parse_args()
    try:
        if chosen.command == "table":
            print(tables(_read(chosen.file)))
            return
        wanted = chosen.rung or RUNGS, chosen.shape or SHAPES
        if chosen.command == "measure":
            measure(chosen.file, *wanted, chosen.limit_s)
        elif chosen.command == "launch":
            launch(chosen.file, *wanted, chosen.until)
        else:
            device = find_device(chosen.device) if chosen.device else None
            predict_all(chosen.file, device, *wanted)
    except ToolkitError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
