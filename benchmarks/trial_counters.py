"""Adds counters of Nsight Compute for the launches on trial to the file that has their times.

    python -m benchmarks.reference_times --only trial --output trial.json
    python -m benchmarks.trial_counters trial.json --into trial_h200.json.xz

Both need a GPU; this one also needs ncu.
Caches are flushed before each launch, clocks are left as they are. Traffic is counted in one pass,
and several times: medians, with the lowest and highest count beside them.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.records.metrics import WARP_INSTRUCTIONS
from benchmarks.traffic_tables import COUNTERS
from toolkit.gpu.nsight_compute import ncu
from toolkit.store.user_files import write_atomically
from validation import recordings
from validation.counters.counting import counted, launch_cases, medians
from validation.timing.trial_launches import TRIALS

TIMES = 3  # that traffic is counted
MODULE = "benchmarks.trial_counters"
LAUNCHES = [(trial, case) for trial in TRIALS for case in trial.cases]
BRIEF = (WARP_INSTRUCTIONS, *COUNTERS.values())


def recorded() -> Iterator[dict[str, Any]]:
    of = ncu.TRAFFIC, ncu.INSTRUCTIONS
    several, once = (
        counted(metrics, MODULE, "--launch", str(times), launches=times * len(LAUNCHES))
        for metrics, times in zip(of, (TIMES, 1), strict=True)
    )
    traffic = medians(several, ncu.TRAFFIC, TIMES)
    for (_, case), (_, exact), found in zip(LAUNCHES, once, traffic, strict=True):
        yield {"label": case.name} | found | {"counters": exact | found["counters"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--into", type=Path, help="compressed")
    parser.add_argument("--launch", type=int, metavar="TIMES", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.launch:
        launch_cases(LAUNCHES, chosen.launch)
        return
    document = json.loads(chosen.file.read_text(encoding="utf-8"))
    document["ncu"] = ncu.version(str(ncu.path()))
    document["counted"] = list(recorded())
    write_atomically(chosen.into, lzma.compress(recordings.text_of(document).encode()))
    for one in document["counted"]:
        print(f"{one['label']:40}", *(f"{one['counters'][name]:>12}" for name in BRIEF))


if __name__ == "__main__":
    main()
