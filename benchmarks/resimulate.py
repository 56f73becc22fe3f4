"""The simulated part of a run on a GPU, made anew: counters, traffic and predicted times.

    python -m benchmarks.resimulate profile.json [VARIANT...] [--shape 4096 ...] [--output FILE]
    python -m benchmarks.resimulate h200        # of the run that ships: writes its model part alone
    python -m benchmarks.resimulate h200 --intervals    # of its predicted times, after new widths

What was measured and counted stays. Needs no GPU, but the nvcc of that run: the same source gives
the same machine code. Takes some minutes for a whole ladder at seven shapes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.comparison.interval import interval_of
from analysis.comparison.scorecard import scored
from analysis.devices import Device
from analysis.errors import CompileError, InputError, ToolkitError
from analysis.l2_state import DEFAULT_L2
from analysis.problem import Gemm, parse_shape
from analysis.records.profile import Listing, Profile, Record
from kernels.selection import Selection
from kernels.variant import Variant
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.gpu.nvcc import LANGUAGE_OPTIONS
from toolkit.gpu.sampling import Sampling
from toolkit.machine_code.kernel import Kernel
from toolkit.profiling.on_simulator import PYCUDA_FILE, residence, with_simulation
from toolkit.profiling.plan import RunPlan, make_plan
from toolkit.rungs.matrices import Workload
from toolkit.store.profile_json import compressed, dumps, load
from toolkit.store.recorded_runs import recorded_run, ship_model
from toolkit.store.user_files import write_atomically


def resimulated(
    run: Profile, labels: Collection[str] = (), shapes: Collection[Gemm] = ()
) -> Profile:
    """The run with the simulated part of these variants at these shapes made anew (none: of all).

    Raises InputError where its sources are not those that are here, CompileError without nvcc.
    """
    plan = plan_of(run)
    listings = {one.label: one for one in run.listings}
    records: dict[tuple[object, str], Record] = {(r.shape, r.label): r for r in run.records}
    for shape in shapes or plan.shapes:
        simulator = LadderSimulator(Workload(shape, run.seed))
        for selection in plan.at(shape, run.device).selections:
            record = records.get((shape, selection.label))
            if record is None or not (record.measured and record.rung):
                continue
            if labels and selection.label not in labels:
                continue
            print(f"{shape} {selection.label}", file=sys.stderr, flush=True)
            record, listing = _simulated(record, selection, simulator, run.device)
            records[shape, selection.label] = scored(record)
            listings[listing.label] = listing
    used = {record.simulated.listing for record in records.values() if record.simulated}
    return replace(
        run,
        records=tuple(records.values()),
        listings=tuple(one for label, one in listings.items() if label in used),
    )


def with_new_intervals(run: Profile) -> Profile:
    """The run with the intervals of its predicted times made anew, and nothing else."""
    return replace(
        run,
        records=tuple(
            replace(
                record,
                predicted=replace(
                    record.predicted, interval_s=interval_of(record.predicted, run.device)
                ),
            )
            if record.predicted
            else record
            for record in run.records
        ),
    )


def _simulated(
    record: Record, selection: Selection, simulator: LadderSimulator, device: Device
) -> tuple[Record, Listing]:
    if selection.parameters.keys() != record.parameters.keys():
        raise InputError(f"{record.label} at {record.shape} is another rung by now")
    selection = replace(selection, parameters=record.parameters)  # `best` may have others by now
    cubin = as_it_was(compiled(selection, device.sm_arch), record)
    found = simulator.simulate(cubin, selection, residence(record, device, DEFAULT_L2))
    if found.check is None or not found.check.passed:
        raise InputError(f"{record.label} at {record.shape} is simulated wrongly")
    stale = ("not simulated: ", "not predicted: ")
    notes = tuple(note for note in record.notes if not note.startswith(stale))
    return with_simulation(replace(record, notes=notes), found, selection)


def as_it_was(cubin: Kernel, record: Record) -> Kernel:
    """Machine code under the name of the compiler that a record has it from.

    Raises InputError if that is of another version, or if the code has other resources.
    """
    assert record.resources is not None
    _, release = record.resources.compiler.split()  # such as "nvcc 13.0"
    if not cubin.compiler.removeprefix("ptxas ").startswith(f"{release}."):
        raise InputError(f"the run was compiled by nvcc {release}, here is {cubin.compiler}")
    resources = replace(cubin.resources, compiler=record.resources.compiler)
    if resources != record.resources:
        raise InputError(f"{record.label} had {record.resources}, its source now has {resources}")
    return replace(cubin, resources=resources)


def plan_of(run: Profile) -> RunPlan:
    shapes = tuple(dict.fromkeys(record.shape for record in run.records))
    labels = tuple(dict.fromkeys(record.label for record in run.records))
    chosen = labels if "--variant" in run.command else None
    return make_plan(shapes, chosen, sampling=Sampling(), seed=run.seed)


def compiled(selection: Selection, architecture: str) -> Kernel:
    """A rung's machine code as PyCUDA has nvcc compile it. Raises CompileError."""
    variant = selection.variant
    assert isinstance(variant, Variant)
    macros = [f"-D{name}={value}" for name, value in variant.macros(selection.parameters).items()]
    options = ["-lineinfo", *LANGUAGE_OPTIONS, *macros]
    return by_nvcc(variant.source, PYCUDA_FILE, variant.entry, architecture, options)


def by_nvcc(
    source: str, file: str, kernel: str, architecture: str, options: Sequence[str]
) -> Kernel:
    """The machine code of an extern "C" kernel by nvcc. Raises CompileError."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / file
        path.write_text(source, encoding="utf-8")
        command = ["nvcc", "-cubin", f"-arch={architecture}", *options, path.name]
        try:
            subprocess.run(command, cwd=folder, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise CompileError(f"{file} cannot be compiled by nvcc: {error}") from None
        return Kernel.from_image(path.with_suffix(".cubin").read_bytes(), kernel)


def main() -> None:
    """Make the simulated part anew, in place of the old one or elsewhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", help="a profile.json, or the key of a device")
    parser.add_argument("variant", nargs="*", help="default: all")
    parser.add_argument("--shape", action="append", default=[], type=parse_shape)
    parser.add_argument("--intervals", action="store_true", help="make nothing anew but these")
    parser.add_argument("--output", type=Path, help="default: in its place")
    asked = parser.parse_args()
    try:
        shipped = recorded_run(asked.profile)
        before = shipped or load(asked.profile)
        if asked.intervals:
            run = with_new_intervals(before)
        else:
            run = resimulated(before, asked.variant, asked.shape)
    except ToolkitError as error:
        sys.exit(f"error: {error}")
    if shipped and not asked.output:
        print(f"wrote {ship_model(run)}")
        return
    target = asked.output or Path(asked.profile)
    compress = target.suffix == ".xz"
    write_atomically(target, compressed(run) if compress else dumps(run))
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
