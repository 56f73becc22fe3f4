"""The traffic of a run on a GPU, counted anew on a GPU of its kind: L2 and DRAM, in one pass.

    python -m benchmarks.recount h100-sxm --output FILE               # the shipped run; needs ncu
    python -m benchmarks.recount FILE --with FILE FILE --output FILE  # needs no GPU

What was measured and simulated stays, and so do all counters but those of traffic, and whatever
has other parameters by now. The machine code is that of the run: needs its nvcc, which gives the
same for the same source. Medians of several launches; takes some minutes for a whole ladder at
seven shapes. GPUs of one kind differ: `--with` takes medians over several that counted the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from analysis.comparison.scorecard import TRAFFIC_COUNTED, scored
from analysis.errors import CountersError, InputError, ToolkitError
from analysis.problem import Gemm
from analysis.records.profile import Counted, Profile, Record
from benchmarks.resimulate import as_it_was, compiled, plan_of
from kernels.selection import Selection
from toolkit.gpu.context import Gpu
from toolkit.gpu.nsight_compute import ncu
from toolkit.gpu.nsight_compute.attribution import CountableLaunch
from toolkit.gpu.nsight_compute.collect import Counting, middle
from toolkit.gpu.nsight_compute.replay_process import marker_source
from toolkit.launch.progress import Progress
from toolkit.machine_code.kernel import Kernel
from toolkit.store.profile_json import compressed, dumps, load
from toolkit.store.recorded_runs import recorded_run
from toolkit.store.user_files import write_atomically

TIMES = 5  # that each launch is counted
SEVERAL = "counts on GPUs of this kind"


class Told(Progress):
    """Problems, on stderr."""

    def notice(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def recounted(run: Profile, times: int) -> Profile:
    """The run with the traffic of its launches counted anew, so many times each.

    Raises InputError where this is another GPU, or its sources are not those that are here,
    CountersError where not all of them can be counted, CompileError without nvcc, UnavailableError
    without a GPU.
    """
    with Gpu() as gpu:
        if gpu.device.key != run.device.key:
            raise InputError(f"the run is of {run.device.name}, here is {gpu.device.name}")
    cubins = _compiled(run)
    records = {(record.shape, record.label): record for record in run.records}
    when = f"on {datetime.now(UTC).date().isoformat()}"
    when += f", the median of {times} launches" if times > 1 else ""
    with Counting(Told(), runs=[ncu.TRAFFIC]) as counting:
        for shape in dict.fromkeys(record.shape for record in run.records):
            launches = _launches(run, shape, cubins)
            found = [_counted(counting, run, launches, cubins) for _ in range(times) if launches]
            for label in (launch.label for launch in launches):
                counted = middle([one.get(label, counting.problem) for one in found])
                if (
                    not isinstance(counted, Counted)
                    or counted.missing
                    or not all(isinstance(one.get(label), Counted) for one in found)
                ):
                    raise CountersError(f"{label} at {shape} was not counted: {counted}")
                records[shape, label] = _with_traffic(records[shape, label], counted, when)
            print(shape, file=sys.stderr, flush=True)
    return replace(run, records=tuple(records.values()))


def merged(run: Profile, others: Sequence[Profile]) -> Profile:
    """The run with medians of its traffic and that of others, counted on GPUs of its kind.

    Raises InputError where they are an even number, which may have no median that was counted, or
    where one is of another device or other matrices, or did not count a launch as the run did.
    """
    if len(others) % 2:
        raise InputError(f"{len(others) + 1} runs: take an odd number, so that one is the median")
    for other in others:
        if other.device.key != run.device.key:
            raise InputError(f"one run is of {run.device.name}, another of {other.device.name}")
        if other.seed != run.seed:
            raise InputError(f"one run has matrices of seed {run.seed}, another {other.seed}")
    theirs = [{(record.shape, record.label): record for record in one.records} for one in others]
    records = []
    for record in run.records:
        if _how_counted(record) is None:
            records.append(record)
            continue
        alike = [record, *(_counted_alike(record, one) for one in theirs)]
        found = middle([one.counted for one in alike])
        assert isinstance(found, Counted)
        traffic = {name: value for name, value in found.counters.items() if name in ncu.TRAFFIC}
        each = [str(_how_counted(one)) for one in alike]
        days = ", ".join(dict.fromkeys(how.partition(",")[0] for how in each))
        when = f"{days}, the median of {len(alike)} {SEVERAL} ({'; '.join(each)})"
        records.append(_with_traffic(record, replace(found, counters=traffic), when))
    return replace(run, records=tuple(records))


def _counted_alike(record: Record, run: Mapping[tuple[Gemm, str], Record]) -> Record:
    """The same launch in a run by shape and label."""
    what = f"{record.label} at {record.shape}"
    other = run.get((record.shape, record.label))
    if other is None or other.counted is None or _how_counted(other) is None:
        raise InputError(f"{what}: its traffic was not counted anew in every run")
    assert record.counted is not None
    kernels = [[kernel.name for kernel in one.kernels] for one in (record.counted, other.counted)]
    if other.parameters != record.parameters or kernels[0] != kernels[1]:
        raise InputError(f"{what} has other parameters or launches another kernel in one run")
    lacks = [
        n for n in ncu.TRAFFIC if (n in record.counted.counters) > (n in other.counted.counters)
    ]
    if lacks:
        raise InputError(f"{what}: one run did not count {lacks[0]}")
    if any(SEVERAL in str(_how_counted(one)) for one in (record, other)):
        raise InputError(f"{what}: one run has a median of several already: give those it is of")
    return other


def _how_counted(record: Record) -> str | None:
    """When, and how often, a record's traffic was counted anew, if it was."""
    notes = (note for note in record.notes if note.startswith(TRAFFIC_COUNTED))
    note = next(notes, None)
    return None if note is None or record.counted is None else note.removeprefix(TRAFFIC_COUNTED)


def _compiled(run: Profile) -> dict[tuple[Gemm, str], Kernel]:
    """The machine code of each rung that was counted."""
    plan = plan_of(run)
    selections = {
        (shape, selection.label): selection
        for shape in dict.fromkeys(record.shape for record in run.records)
        for selection in plan.at(shape, run.device).selections
    }
    rungs = [
        record
        for record in run.records
        if record.counted
        and record.rung is not None
        and selections[record.shape, record.label].parameters == record.parameters
    ]
    codes = {_code(selections[r.shape, r.label]): selections[r.shape, r.label] for r in rungs}
    with ThreadPoolExecutor() as pool:
        made = pool.map(lambda one: compiled(one, run.device.sm_arch), codes.values())
        cubins = dict(zip(codes, made, strict=True))
    return {
        (r.shape, r.label): as_it_was(cubins[_code(selections[r.shape, r.label])], r) for r in rungs
    }


def _code(selection: Selection) -> tuple[object, ...]:
    """What the machine code of a rung follows from."""
    return (selection.variant.name, *selection.parameters.items())


def _launches(
    run: Profile, shape: Gemm, cubins: Mapping[tuple[Gemm, str], Kernel]
) -> list[CountableLaunch]:
    """What was counted at a shape, of which there is machine code: cuBLAS brings its own."""
    entries = {label: cubin.symbol for (at, label), cubin in cubins.items() if at == shape}
    return [
        CountableLaunch(record, entries.get(record.label))
        for record in run.records
        if record.shape == shape
        and record.counted
        and (record.rung is None or record.label in entries)
    ]


def _counted(
    counting: Counting,
    run: Profile,
    launches: Sequence[CountableLaunch],
    cubins: Mapping[tuple[Gemm, str], Kernel],
) -> Mapping[str, Counted | str]:
    shape = launches[0].record.shape
    with Gpu() as gpu:
        source = marker_source(launches)
        markers = gpu.load(source, launches[0].marker, name="markers.cu").cubin.image
    return counting.count(
        launches,
        seed=run.seed,
        images={label: cubin.image for (at, label), cubin in cubins.items() if at == shape},
        markers=markers,
        expected_s={
            r.label: r.measured.median_s for r in run.records if r.shape == shape and r.measured
        },
    )


def _with_traffic(record: Record, found: Counted, when: str) -> Record:
    before = record.counted
    assert before is not None
    if [kernel.name for kernel in found.kernels] != [kernel.name for kernel in before.kernels]:
        raise CountersError(f"{record.label} at {record.shape} launches another kernel by now")
    counted = replace(
        before,
        counters=before.counters | found.counters,
        missing=tuple(name for name in before.missing if name not in found.counters),
    )
    notes = tuple(n for n in record.notes if not n.startswith(TRAFFIC_COUNTED))
    note = f"{TRAFFIC_COUNTED}{when}"
    return scored(replace(record, counted=counted, notes=(*notes, note)))


def main() -> None:
    """Write the run with its traffic counted anew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", help="a profile.json, or the key of a device")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--times", type=int, help=f"launches of each rung, default: {TIMES}")
    parser.add_argument(
        "--with", dest="others", nargs="+", type=Path, default=[], help="runs counted elsewhere"
    )
    asked = parser.parse_args()
    if asked.times is not None and asked.times < 1:
        parser.error(f"--times {asked.times}: at least 1")
    if asked.times is not None and asked.others:
        parser.error("--times says how often to count: with --with nothing is counted")
    try:
        run = recorded_run(asked.profile) or load(asked.profile)
        if asked.others:
            run = merged(run, [load(other) for other in asked.others])
        else:
            run = recounted(run, asked.times or TIMES)
    except ToolkitError as error:
        sys.exit(f"error: {error}")
    compress = asked.output.suffix == ".xz"
    write_atomically(asked.output, compressed(run) if compress else dumps(run))
    print(f"wrote {asked.output}")


if __name__ == "__main__":
    main()
