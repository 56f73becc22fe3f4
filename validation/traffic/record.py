"""Record what hardware counts below L1, as golden data for the model of traffic.

    python -m validation.traffic.record FILE    # needs a GPU and ncu

Nsight Compute flushes caches before each launch, of which there are several: L2's traffic differs a
little from run to run.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from analysis.records.counters import MODELLED
from toolkit.gpu.nsight_compute import ncu
from toolkit.machine_code.compile import compiler_version
from validation import recordings
from validation.counters.counting import counted, launch_cases, medians
from validation.traffic.launches import LAUNCHES

REPEATS = 5
METRICS = tuple(MODELLED)


def record(into: Path) -> None:
    device = into.with_suffix(".device")
    found = counted(
        METRICS, "validation.traffic.record", str(device), "--launch",
        launches=REPEATS * len(LAUNCHES),
    )  # fmt: skip
    of_launch = zip(LAUNCHES, medians(found, METRICS, REPEATS), strict=True)
    recording = {
        "device": device.read_text(encoding="utf-8"),
        "compiler": compiler_version(),
        "ncu": ncu.version(str(ncu.path())),
        "recorded": datetime.now(UTC).date().isoformat(),
        "repeats": REPEATS,
        "launches": [{"label": case.name} | counters for (_, case), counters in of_launch],
    }
    recordings.write(into, recording)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.launch:
        chosen.file.write_text(launch_cases(LAUNCHES, REPEATS), encoding="utf-8")
    else:
        record(chosen.file)


if __name__ == "__main__":
    main()
