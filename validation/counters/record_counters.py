"""Record what hardware counts for given machine code, as golden data for the simulator.

    python -m validation.counters.record_counters prepare FOLDER              # no GPU
    python -m validation.counters.record_counters prepare FOLDER --only 'bulk|clusters'    # some
    python -m validation.counters.record_counters record FOLDER --into FILE   # GPU

`prepare` compiles the ladder and the counted cases of the corpus with NVRTC and writes cubins and
a manifest; `record` launches those very cubins under Nsight Compute, checks their outputs and
writes counters with their provenance; `--also tma` adds all metrics that have that in their name.
The second half needs neither a compiler nor a network, and of Python packages only NumPy and
PyCUDA. Per-instruction counts of a few launches come as an extra, where ncu gives them. Inputs
follow from the seeds in the manifest.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from analysis.geometry import Geometry
from toolkit.gpu.driver import encoded, prepared_launch
from toolkit.launch.launch import buffer_of, buffers_of
from toolkit.launch.tensor_map import TensorMap
from validation import recordings
from validation.corpus.case import Case
from validation.corpus.cases import COUNTED, RACING, find

ARCHITECTURE, CHIP = "sm_90", "gh100"
OPTIONS = ("-lineinfo",)
FIRST_SEED = 20_000

SHAPES = ((512, 512, 512), (1024, 1024, 1024), (1000, 333, 65), (127, 129, 31), (2048, 64, 4096))
SHAPES_OF_ALL_PARAMETERS = ((127, 129, 31), (256, 256, 256))
SHAPES_OF_ONE_BLOCK = ((32, 32, 512), (31, 29, 65))
WITH_LINES = ("collatz_20000", "stencil_clamped_500x333", "tiled 512x512x512")

LOADS_AND_STORES = ("ld", "st")
METRICS = tuple(
    f"{name}.sum"
    for name in (
        "smsp__inst_executed",
        "smsp__thread_inst_executed",
        "smsp__thread_inst_executed_pred_on",
        *(
            f"smsp__sass_thread_inst_executed_op_{kind}_pred_on"
            for kind in (
                "ffma", "fadd", "fmul", "dfma", "dadd", "dmul", "hfma", "hadd", "hmul", "fp16",
                "fp32", "fp64", "integer", "control", "conversion", "memory", "bit", "misc",
                "inter_thread_communication", "uniform",
            )
        ),
        *(
            f"smsp__sass_inst_executed_op_{space}_{operation}"
            for space in ("shared", "global", "local")
            for operation in LOADS_AND_STORES
        ),
        "smsp__sass_inst_executed_op_ldgsts",
        "smsp__sass_inst_executed_op_shared_atom",
        "smsp__sass_inst_executed_op_global_atom",
        "smsp__sass_inst_executed_op_global_red",
        "smsp__inst_executed_op_shared_atom",
        "smsp__inst_executed_op_shared_atom_cas",
        "smsp__inst_executed_op_global_atom",
        "smsp__inst_executed_op_global_red",
        "smsp__inst_executed_op_ldgsts",
        "smsp__inst_executed_op_branch",
        "smsp__sass_branch_targets",
        "smsp__sass_branch_targets_threads_divergent",
        "smsp__sass_branch_targets_threads_uniform",
        *(
            f"l1tex__t_{unit}_pipe_lsu_mem_{access}"
            for unit in ("requests", "sectors")
            for access in (
                "global_op_ld", "global_op_st", "local_op_ld", "local_op_st",
                "global_op_red", "global_op_atom", "global_op_ldgsts",
            )
        ),
        *(
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared{access}"
            for access in ("", "_op_ld", "_op_st", "_op_atom", "_op_ldgsts")
        ),
        *(
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared{access}"
            for access in ("", "_op_ld", "_op_st", "_op_atom", "_op_ldgsts")
        ),
    )
)  # fmt: skip
METRICS_OF_INSTRUCTIONS = (
    "inst_executed",
    "thread_inst_executed",
    "thread_inst_executed_true",
    "memory_l1_tag_requests_global",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "smsp__branch_targets_threads_divergent",
)

TIME_LIMIT_S = 450  # of all runs of ncu together: what was not reached is a failure that is told
GROUPS = ("ladder", "corpus", "ladder, other parameters")  # a run of ncu each, in this order
CUBIN_FOLDER = "cubins"
MANIFEST = "manifest.json"

Entry = dict[str, Any]


# Without a GPU: cubins and their manifest.


def prepare(folder: Path, only: str = "") -> None:
    from toolkit.machine_code.compile import compiler_version

    folder = folder.absolute()
    (folder / CUBIN_FOLDER).mkdir(parents=True, exist_ok=True)
    # -lineinfo writes the current directory into the code, and the cache may hold another's
    with TemporaryDirectory() as cache, chdir(Path(folder.anchor)):
        os.environ["GEMM_LADDER_CACHE"] = cache
        launches = [*ladder_launches(folder), *corpus_launches(folder)]
        launches = [entry for entry in launches if re.search(only, entry["file"])]
        launches.sort(key=lambda entry: GROUPS.index(entry["group"]))
    for index, entry in enumerate(launches):
        entry["seed"] = FIRST_SEED + index
    manifest = {
        "architecture": ARCHITECTURE,
        "compiler": compiler_version(),
        "options": OPTIONS,
        "prepared": datetime.now(UTC).date().isoformat(),
        "launches": launches,
    }
    recordings.write(folder / MANIFEST, manifest)
    print(f"{folder}: {len(launches)} launches")


def ladder_launches(folder: Path) -> Iterator[Entry]:
    from analysis.problem import Gemm
    from kernels import LADDER

    for variant in LADDER:
        of_defaults = SHAPES_OF_ONE_BLOCK if variant.max_extent else SHAPES
        of_all = () if variant.max_extent else SHAPES_OF_ALL_PARAMETERS
        for parameters in variant.parameter_sets():
            is_default = parameters == variant.defaults
            for m, n, k in dict.fromkeys((*(of_defaults if is_default else ()), *of_all)):
                shape = variant.executed(Gemm(m=m, n=n, k=k))
                geometry = variant.geometry(parameters, shape)
                label = variant.label(parameters)
                yield {
                    "group": "ladder" if is_default else "ladder, other parameters",
                    "label": f"{label} {m}x{n}x{k}",
                    "selection": label,
                    "gemm": [shape.m, shape.n, shape.k],
                    "defines": variant.macros(parameters),
                    **code(
                        folder,
                        re.sub(r"[:=,]", "-", label),
                        variant.file,
                        variant.source,
                        variant.entry,
                        variant.macros(parameters),
                    ),
                    "grid": geometry.grid,
                    "block": geometry.block,
                    "dynamic_shared_bytes": geometry.dynamic_shared_bytes,
                }


def corpus_launches(folder: Path) -> Iterator[Entry]:
    for case in COUNTED:
        yield {
            "group": "corpus",
            "label": case.name,
            "case": case.name,
            "racing": case.kernel in RACING,
            "defines": {},
            **code(folder, Path(case.file).stem, case.file, case.source, case.kernel, {}),
            "grid": case.grid,
            "block": case.block,
            "dynamic_shared_bytes": case.dynamic_shared_bytes,
        }


def code(
    folder: Path, stem: str, file: str, source: str, kernel: str, defines: dict[str, int]
) -> Entry:
    """Compile, keep the cubin in the folder, and say where it is and what it is of.

    `kernel` is the one that is launched; `code_sha256` is of its instructions alone.
    """
    from toolkit.machine_code.compile import compile_cubin

    cubin = compile_cubin(
        source, name=file, kernel=kernel, arch=ARCHITECTURE, defines=defines, options=OPTIONS
    )
    path = Path(CUBIN_FOLDER) / f"{stem}.cubin"
    (folder / path).write_bytes(cubin.image)
    return {
        "file": file,
        "source_sha256": sha256(source.encode()).hexdigest(),
        "cubin": str(path),
        "cubin_sha256": sha256(cubin.image).hexdigest(),
        "code_sha256": sha256(cubin.code).hexdigest(),
        "symbol": cubin.symbol,
    }


# What a launch gets, and what it must give.


class Gemm:
    """A rung's arguments and its check, as those of a corpus case."""

    def __init__(self, m: int, n: int, k: int) -> None:
        self.extents = m, n, k

    def make(self, rng: np.random.Generator) -> list[Any]:
        m, n, k = self.extents
        a, b = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        c = np.full((m, n), np.nan, np.float32)  # beta is 0: it is not read
        return [a, b, c, *map(np.int32, self.extents), np.float32(1), np.float32(0)]

    def check(self, outputs: Sequence[np.ndarray], arguments: list[Any]) -> None:
        a, b = (x.astype(np.float64) for x in arguments[:2])
        bound = (self.extents[2] + 2) * 2.0**-23 * (abs(a) @ abs(b))
        if not (abs(outputs[2] - a @ b) <= bound).all():
            raise AssertionError("the product is wrong")


def recipe(entry: Entry) -> Gemm | Case:
    return Gemm(*entry["gemm"]) if "gemm" in entry else find(entry["case"])


def packing(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """The struct format of the arguments (integers are addresses), padded as the ABI has it."""
    form, values, offset = "", [], 0
    for argument in arguments:
        if isinstance(argument, int):
            letters, size, alignment, value = "P", 8, 8, argument
        else:
            size, alignment = argument.dtype.itemsize, argument.dtype.alignment
            structure = isinstance(argument, np.void)
            letters = f"{size}s" if structure else argument.dtype.char
            value = argument.tobytes() if structure else argument
        padding = -offset % alignment
        form += (f"{padding}x" if padding else "") + letters
        values.append(value)
        offset += padding + size
    return form, values


# With a GPU.


def launch(folder: Path, labels: set[str], into: Path) -> None:
    """Launch those of the manifest, in its order; write facts of the GPU and each check."""
    import pycuda.driver as cuda

    cuda.init()
    device = cuda.Device(0)
    context = device.make_context()
    try:
        report = {
            "device": device.name(),
            "compute_capability": ".".join(map(str, device.compute_capability())),
            "sm_count": device.get_attribute(cuda.device_attribute.MULTIPROCESSOR_COUNT),
            "driver_api": cuda.get_driver_version(),
            "checks": {
                entry["label"]: launch_one(cuda, folder, entry)
                for entry in manifest_of(folder)["launches"]
                if entry["label"] in labels
            },
        }
    finally:
        context.pop()
        context.detach()
    into.write_text(json.dumps(report), encoding="utf-8")


def launch_one(cuda: Any, folder: Path, entry: Entry) -> str:
    """Launch once; "right", or what is wrong with the outputs."""
    image = (folder / entry["cubin"]).read_bytes()
    assert sha256(image).hexdigest() == entry["cubin_sha256"], f"{entry['cubin']} is another"
    of = recipe(entry)
    arguments = of.make(np.random.default_rng(entry["seed"]))
    if any(isinstance(argument, TensorMap) for argument in arguments):
        outputs = launch_with_maps(cuda, image, entry, arguments)
        return verdict(of, outputs, arguments)
    function = cuda.module_from_buffer(image).get_function(entry["symbol"])
    buffers = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            buffers.append(cuda.mem_alloc(max(argument.nbytes, 1)))
            cuda.memcpy_htod(buffers[-1], np.ascontiguousarray(argument))
    addresses = iter(buffers)
    form, values = packing(
        [int(next(addresses)) if isinstance(x, np.ndarray) else x for x in arguments]
    )
    function.prepare(form)
    dynamic = entry["dynamic_shared_bytes"]
    if dynamic > 48 * 1024:
        limit = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        function.set_attribute(limit, dynamic)
    grid, block = tuple(entry["grid"]), tuple(entry["block"])
    function.prepared_call(grid, block, *values, shared_size=dynamic)
    cuda.Context.synchronize()
    outputs = [np.empty_like(x, order="C") for x in arguments if isinstance(x, np.ndarray)]
    for output, buffer in zip(outputs, buffers, strict=True):
        cuda.memcpy_dtoh(output, buffer)
    return verdict(of, outputs, arguments)


def verdict(of: Gemm | Case, outputs: Sequence[np.ndarray], arguments: list[Any]) -> str:
    try:
        of.check(outputs, arguments)
    except AssertionError as error:
        return str(error)
    return "right"


def launch_with_maps(
    cuda: Any, image: bytes, entry: Entry, arguments: list[Any]
) -> list[np.ndarray]:
    """Launch a kernel that takes tensor maps; the arrays after it."""
    arrays = buffers_of(arguments)
    buffers = {k: cuda.mem_alloc(max(array.nbytes, 1)) for k, array in arrays.items()}
    for k, array in arrays.items():
        cuda.memcpy_htod(buffers[k], np.ascontiguousarray(array))

    def content(k: int, argument: Any) -> bytes:
        if isinstance(argument, TensorMap):
            address = int(buffers[buffer_of(argument, arrays)]) + argument.offset
            return encoded(argument.tiling, address).content
        return int(buffers[k]).to_bytes(8, "little") if k in buffers else argument.tobytes()

    geometry = Geometry(
        grid=tuple(entry["grid"]),
        block=tuple(entry["block"]),
        dynamic_shared_bytes=entry["dynamic_shared_bytes"],
    )
    contents = [content(k, argument) for k, argument in enumerate(arguments)]
    prepared_launch(image, entry["symbol"], geometry, contents)()
    cuda.Context.synchronize()
    outputs = [np.empty_like(array, order="C") for array in arrays.values()]
    for output, buffer in zip(outputs, buffers.values(), strict=True):
        cuda.memcpy_dtoh(output, buffer)
    return outputs


def manifest_of(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = recordings.read(folder / MANIFEST)
    return read


def record(folder: Path, into: Path, also: Sequence[str] = ()) -> None:
    """One run of ncu per group; FILE is written after each, so that a late failure costs little."""
    manifest = manifest_of(folder)
    launches = manifest.pop("launches")
    recording: dict[str, Any] = {
        **manifest,
        "recorded": datetime.now(UTC).date().isoformat(),
        "ncu": version_in(output_of(["ncu", "--version"])),
        "driver": output_of(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        ).strip(),
        "unknown_metrics": [],
        "failures": [],
        "launches": [],
    }
    if also:
        found = sorted(name for name in listed_metrics() if any(part in name for part in also))
        recording["also"] = [f"{name}.sum" for name in found]
    recorder = Recorder(folder, recording)
    for group in GROUPS:
        entries = [entry for entry in launches if entry["group"] == group]
        recorder.count(entries)
        recordings.write(into, recording)
        say(f"{group}: {len(entries)} launches, {recorder.elapsed_s:.0f} s so far")
    recorder.count_instructions(into.with_suffix(".ncu-rep"))
    recordings.write(into, recording)
    say(f"{len(recording['launches'])} launches recorded in {recorder.elapsed_s:.0f} s")
    say(f"metrics that are not there: {recording['unknown_metrics']}")
    for entry in recording["launches"]:
        if entry["check"] != "right":
            say(f"WRONG: {entry['label']}: {entry['check']}")
    for failure in recording["failures"]:
        say(f"FAILED: {failure}")


class Recorder:
    """Runs of ncu into one recording, within the time limit."""

    def __init__(self, folder: Path, recording: dict[str, Any]) -> None:
        self.folder, self.recording = folder, recording
        self.checks = folder / "checks.json"
        self.started = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started

    @property
    def metrics(self) -> list[str]:
        wanted = (*METRICS, *self.recording.get("also", ()))
        return [metric for metric in wanted if metric not in self.recording["unknown_metrics"]]

    def count(self, entries: list[Entry]) -> None:
        """Counters of each entry; where one breaks the run, each half anew."""
        try:
            self._count(entries)
        except RuntimeError as error:
            if len(entries) == 1 or self.elapsed_s > TIME_LIMIT_S:
                labels = [entry["label"] for entry in entries]
                self.recording["failures"].append(f"{', '.join(labels)}: {error}")
                return
            self.count(entries[: len(entries) // 2])
            self.count(entries[len(entries) // 2 :])

    def _count(self, entries: list[Entry]) -> None:
        done = self._known_metrics_under_ncu(entries)
        counted = counters_of(done.stdout)
        if len(counted) != len(entries):
            raise RuntimeError(f"{len(counted)} of {len(entries)} launches: {last_lines(done)}")
        facts = json.loads(self.checks.read_text(encoding="utf-8"))
        checks = facts.pop("checks")
        self.recording.update(facts)
        for entry, (kernel, counters) in zip(entries, counted, strict=True):
            if not kernel.startswith(entry["symbol"]):
                raise RuntimeError(f"{kernel} where {entry['symbol']} was launched")
            found = {"check": checks[entry["label"]], "counters": counters}
            self.recording["launches"].append(entry | found)

    def _known_metrics_under_ncu(self, entries: list[Entry]) -> subprocess.CompletedProcess[str]:
        """A run that succeeded, after those that failed for metrics that ncu does not know."""
        labels = [entry["label"] for entry in entries]
        while True:
            tried = self.metrics
            options = ["--csv", "--print-units", "base", "--metrics", ",".join(tried)]
            done = self._under_ncu(options, labels)
            if done.returncode == 0:
                return done
            unknown = unknown_in(done.stdout + done.stderr, tried)
            if not unknown:  # ncu complains of something else, or of the first one only
                unlisted = [m for m in tried if m.rpartition(".")[0] not in listed_metrics()]
                unknown = [] if len(unlisted) == len(tried) else unlisted
            if not unknown:
                raise RuntimeError(last_lines(done))
            self.recording["unknown_metrics"] += unknown

    def count_instructions(self, report: Path) -> None:
        """Per launch, the rows of ncu's source page; an extra, whose report is kept for later."""
        own = ["--metrics", ",".join(METRICS_OF_INSTRUCTIONS)]
        keep = ["--section", "SourceCounters", "--force-overwrite", "--export", str(report)]
        show = ["--import", str(report), "--page", "source", "--csv", "--print-source", "sass"]
        try:
            for options in ([*keep, *own], keep):
                done = self._under_ncu(options, list(WITH_LINES))
                if done.returncode == 0:
                    break
            tables = source_tables(output_of(["ncu", *show, "--print-units", "base"]))
            launches = manifest_of(self.folder)["launches"]
            order = [entry["label"] for entry in launches if entry["label"] in WITH_LINES]
            if len(tables) != len(order):
                raise RuntimeError(
                    f"{len(tables)} tables, {len(order)} launches: {last_lines(done)}"
                )
            self.recording["instructions"] = dict(zip(order, tables, strict=True))
        except Exception as error:  # not worth the rest
            self.recording["failures"].append(f"per instruction: {error}")

    def _under_ncu(self, options: list[str], labels: list[str]) -> subprocess.CompletedProcess[str]:
        chosen = self.folder / "chosen.json"
        chosen.write_text(json.dumps(labels), encoding="utf-8")
        own = [sys.executable, "-m", "validation.counters.record_counters", "launch"]
        own += [str(path) for path in (self.folder, chosen, self.checks)]
        left_s = TIME_LIMIT_S - self.elapsed_s
        if left_s <= 0:
            raise RuntimeError(f"not tried: {TIME_LIMIT_S} s are over")
        try:
            return subprocess.run(
                ["ncu", "--clock-control", "none", *options, *own],
                capture_output=True,
                text=True,
                check=False,
                timeout=left_s,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"stopped: {TIME_LIMIT_S} s are over") from None


def counters_of(text: str) -> list[tuple[str, dict[str, int]]]:
    """(kernel, counters) of each launch of ncu's CSV, in order; what was not counted is absent."""
    rows = csv.DictReader(line for line in text.splitlines() if line.startswith('"'))
    found: dict[str, tuple[str, dict[str, int]]] = {}
    for row in rows:
        _, counters = found.setdefault(row["ID"], (row["Kernel Name"], {}))
        value = row["Metric Value"].replace(",", "")
        if re.fullmatch(r"\d+(\.0*)?", value):
            counters[row["Metric Name"]] = int(float(value))
    return list(found.values())


@cache
def listed_metrics() -> set[str]:
    """The names that ncu lists for the chip, without suffixes."""
    lines = output_of(["ncu", "--query-metrics", "--chip", CHIP]).splitlines()
    return {line.split()[0] for line in lines if line.strip()}


def unknown_in(text: str, metrics: list[str]) -> list[str]:
    """The metrics that ncu names in a complaint; none where it only repeats what it was asked."""
    complaints = [line for line in text.splitlines() if "==" in line and "metric" in line.lower()]
    words = set(re.findall(r"[\w.]+", " ".join(complaints)))
    named = [m for m in metrics if m in words or m.rpartition(".")[0] in words]
    return [] if len(named) == len(metrics) else named


def source_tables(text: str) -> list[list[dict[str, str]]]:
    """The tables of a source page: each begins with its header, the line with "Source" in it."""
    tables: list[list[dict[str, str]]] = []
    header: list[str] = []
    for row in csv.reader(text.splitlines()):
        if "Source" in row:
            header = row
            tables.append([])
        elif header and len(row) == len(header):
            tables[-1].append(dict(zip(header, row, strict=True)))
    return tables


def output_of(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def version_in(text: str) -> str:
    """The version in what `ncu --version` prints."""
    match = re.search(r"Version (\S+)", text)
    return match[1] if match else text.strip()


def last_lines(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith('"')]
    return f"ncu ended with {done.returncode}: {' | '.join(lines[-12:])}"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("prepare", "record", "launch"):
        commands.add_parser(name).add_argument("folder", type=Path)
    commands.choices["prepare"].add_argument("--only", default="", metavar="TEXT")
    commands.choices["record"].add_argument("--into", type=Path, required=True)
    commands.choices["record"].add_argument("--also", action="append", default=[], metavar="TEXT")
    commands.choices["launch"].add_argument("labels", type=Path, help="JSON list")
    commands.choices["launch"].add_argument("into", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.command == "prepare":
        prepare(chosen.folder, chosen.only)
    elif chosen.command == "record":
        record(chosen.folder, chosen.into, chosen.also)
    else:
        labels = set(json.loads(chosen.labels.read_text(encoding="utf-8")))
        launch(chosen.folder, labels, chosen.into)


if __name__ == "__main__":
    main(sys.argv[1:])
