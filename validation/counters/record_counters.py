"""Record what hardware counts for given machine code, as golden data for the simulator.

    python -m validation.counters.record_counters FILE
    python -m validation.counters.record_counters FILE --only 'bulk|clusters' --metrics ...   # some

Compiles the ladder and the counted cases of the corpus with NVRTC, launches them under Nsight
Compute, checks their outputs and writes counters with their provenance. Needs a GPU and ncu.
Per-instruction counts of a few launches come beside them. Inputs follow from the seeds.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from analysis.geometry import Geometry
from analysis.problem import Gemm
from analysis.records.counters import COUNTERS
from kernels import LADDER, Variant, parse_selection
from toolkit.gpu.context import Gpu
from toolkit.gpu.nsight_compute import ncu
from toolkit.launch.launch import Argument, buffers_of
from toolkit.launch.tensor_map import TensorMap
from toolkit.machine_code.compile import compile_cubin, compiler_version
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.arguments import position_of_c, rung_arguments
from validation import recordings
from validation.corpus.case import Array, Case
from validation.corpus.cases import COUNTED, RACING, find
from validation.corpus.inventory import near_defaults
from validation.counters.counting import counted, launch

ARCHITECTURE = "sm_90"
OPTIONS = ("-lineinfo",)
FIRST_SEED = 20_000

SHAPES = ((512, 512, 512), (1024, 1024, 1024), (1000, 333, 65), (127, 129, 31), (2048, 64, 4096))
SHAPES_OF_ALL_PARAMETERS = ((127, 129, 31), (256, 256, 256))
SHAPES_OF_ONE_BLOCK = ((32, 32, 512), (31, 29, 65))
WITH_LINES = ("collatz_20000", "stencil_clamped_500x333", "tiled 512x512x512")

METRICS = tuple(COUNTERS)
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

GROUPS = ("ladder", "corpus", "ladder, other parameters")  # in this order
MODULE = "validation.counters.record_counters"

Entry = dict[str, Any]


def entries(only: str = "") -> list[Entry]:
    """The launches, each with its seed."""
    found = [*ladder_launches(), *corpus_launches()]
    found = [entry for entry in found if re.search(only, entry["file"])]
    found.sort(key=lambda entry: GROUPS.index(entry["group"]))
    return [entry | {"seed": FIRST_SEED + k} for k, entry in enumerate(found)]


def ladder_launches() -> Iterator[Entry]:
    for variant in LADDER:
        of_defaults = SHAPES_OF_ONE_BLOCK if variant.max_extent else SHAPES
        of_all = () if variant.max_extent else SHAPES_OF_ALL_PARAMETERS
        for parameters in near_defaults(variant):
            is_default = parameters == variant.defaults
            for m, n, k in dict.fromkeys((*(of_defaults if is_default else ()), *of_all)):
                shape = variant.executed(Gemm(m=m, n=n, k=k))
                geometry = variant.geometry(parameters, shape)
                label, defines = variant.label(parameters), variant.macros(parameters)
                yield {
                    "group": "ladder" if is_default else "ladder, other parameters",
                    "label": f"{label} {m}x{n}x{k}",
                    "selection": label,
                    "gemm": [shape.m, shape.n, shape.k],
                    **_code(variant.file, variant.source, variant.entry, defines),
                    **vars(geometry),
                }


def corpus_launches() -> Iterator[Entry]:
    for case in COUNTED:
        yield {
            "group": "corpus",
            "label": case.name,
            "case": case.name,
            "racing": case.kernel in RACING,
            **_code(case.file, case.source, case.kernel, {}),
            **vars(case.geometry),
        }


def _code(file: str, source: str, kernel: str, defines: Mapping[str, int]) -> Entry:
    return {"file": file, "source": source, "kernel": kernel, "defines": dict(defines)}


def compiled(entry: Entry) -> Kernel:
    return compile_cubin(
        entry["source"],
        name=entry["file"],
        kernel=entry["kernel"],
        arch=ARCHITECTURE,
        defines=entry["defines"],
        options=OPTIONS,
    )


# What a launch gets, and what it must give.


class Product:
    """A rung's arguments and its check, as those of a corpus case."""

    def __init__(self, selection: str, shape: Gemm) -> None:
        chosen = parse_selection(selection)
        assert isinstance(chosen.variant, Variant)
        self._variant, self._parameters, self._shape = chosen.variant, chosen.parameters, shape

    def make(self, rng: np.random.Generator) -> list[Argument]:
        m, n, k = self._shape.m, self._shape.n, self._shape.k
        a, b = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        c = np.full((m, n), np.nan, np.float32)  # beta is 0: it is not read
        return rung_arguments(self._variant, self._parameters, self._shape, (a, b, c))

    def check(self, outputs: Sequence[Array], arguments: Sequence[Argument]) -> None:
        arrays = buffers_of(arguments)
        c = outputs[list(arrays).index(position_of_c(self._variant))]
        a, b = (self._matrix(name, arguments).astype(np.float64) for name in "AB")
        bound = (self._shape.k + 2) * 2.0**-23 * (abs(a) @ abs(b))
        if not (abs(c - a @ b) <= bound).all():
            raise AssertionError("the product is wrong")

    def _matrix(self, name: str, arguments: Sequence[Argument]) -> Array:
        names = self._variant.arguments
        given = arguments[names.index(name if name in names else f"tiles of {name}")]
        matrix = given.array if isinstance(given, TensorMap) else given
        assert isinstance(matrix, np.ndarray)
        return matrix


def recipe(entry: Mapping[str, Any]) -> Product | Case:
    if "case" in entry:
        return find(entry["case"])
    m, n, k = entry["gemm"]
    return Product(entry["selection"], Gemm(m=m, n=n, k=k))


def launch_all(only: str, labels: Sequence[str], into: Path) -> None:
    """Launch them, or those of some labels; write of each "right", or what is wrong."""
    checks = {}
    with Gpu() as gpu:
        for entry in entries(only):
            if labels and entry["label"] not in labels:
                continue
            of = recipe(entry)
            arguments = of.make(np.random.default_rng(entry["seed"]))
            geometry = Geometry(
                grid=entry["grid"],
                block=entry["block"],
                dynamic_shared_bytes=entry["dynamic_shared_bytes"],
            )
            outputs = launch(gpu, compiled(entry), geometry, arguments)
            try:
                of.check(outputs, arguments)
                checks[entry["label"]] = "right"
            except AssertionError as error:
                checks[entry["label"]] = str(error)
        facts = {"device": gpu.device.name, "checks": checks}
    into.write_text(json.dumps(facts), encoding="utf-8")


def record(into: Path, only: str, metrics: Sequence[str]) -> None:
    found = entries(only)
    checked = into.with_suffix(".checks")
    counts = counted(metrics, MODULE, str(checked), "--launch", "--only", only, launches=len(found))
    facts = json.loads(checked.read_text(encoding="utf-8"))
    launches = []
    for entry, (name, counters) in zip(found, counts, strict=True):
        kernel, source = compiled(entry), entry.pop("source")
        assert name.startswith(kernel.symbol), f"{name} where {kernel.symbol} was launched"
        launches.append(
            entry
            | {
                "source_sha256": sha256(source.encode()).hexdigest(),
                "code_sha256": sha256(kernel.code).hexdigest(),
                "symbol": kernel.symbol,
                "check": facts["checks"][entry["label"]],
                "counters": {metric: value for metric, value in counters.items() if value},
            }
        )
    recording = {
        "architecture": ARCHITECTURE,
        "compiler": compiler_version(),
        "options": OPTIONS,
        "recorded": datetime.now(UTC).date().isoformat(),
        "ncu": ncu.version(str(ncu.path())),
        "device": facts["device"],
        "counted": sorted(metrics),
        "launches": launches,
    }
    recordings.write(into, recording)
    wrong = [f"{one['label']}: {one['check']}" for one in launches if one["check"] != "right"]
    print(f"{len(launches)} launches recorded", *wrong, sep="\n")


def record_instructions(into: Path, checked: Path) -> None:
    """Per launch, the rows of ncu's source page."""
    program = [str(ncu.path())]
    with tempfile.TemporaryDirectory() as folder:
        report = str(Path(folder) / "counts.ncu-rep")
        keep = [*ncu.counting_options(METRICS_OF_INSTRUCTIONS), "--section", "SourceCounters"]
        own = [sys.executable, "-m", MODULE, str(checked), "--launch", "--labels", *WITH_LINES]
        subprocess.run([*program, *keep, "--export", report, *own], check=True)
        show = ["--import", report, "--page", "source", "--csv", "--print-source", "sass"]
        done = subprocess.run([*program, *show], capture_output=True, text=True, check=True)
    order = [entry["label"] for entry in entries() if entry["label"] in WITH_LINES]
    recordings.write(into, dict(zip(order, source_tables(done.stdout), strict=True)))


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="of the names of files")
    parser.add_argument("--metrics", nargs="+", default=METRICS)
    parser.add_argument("--labels", nargs="+", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.launch:
        launch_all(chosen.only, chosen.labels, chosen.file)
        return
    record(chosen.file, chosen.only, chosen.metrics)
    if not chosen.only:
        instructions = chosen.file.with_name(f"{chosen.file.stem}_instructions.json")
        record_instructions(instructions, chosen.file.with_suffix(".checks"))


if __name__ == "__main__":
    main()
