"""Table of the flaws: the cause that is named, and the time that mending them saves.

python -m validation.flaws [--device KEY] [--kernel NAME]    predicted, beside what was measured
python -m validation.flaws --measure FILE                    on a GPU: writes the measured times
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from statistics import median

from analysis.timing.predicted import Effect, Predicted
from validation import recordings
from validation.flaws.cases import FLAWS, SOURCE

RECORDED = Path(__file__).parent / "recorded"
SAMPLES = 20
NOT_AVOIDABLE = (Effect.LAUNCH, Effect.REMAINDER)


def named_causes(predicted: Predicted) -> list[Effect]:
    """The largest part of a time, and the largest that can be avoided: those that are named."""
    parts = [one for one in predicted.costs if one.effect not in NOT_AVOIDABLE]
    first = max(parts, key=lambda one: one.time_s)
    avoidable = [one for one in parts if not one.is_roof]
    return [first.effect, *(one.effect for one in sorted(avoidable, key=lambda x: -x.time_s)[:1])]


def measure(file: Path) -> None:
    from toolkit import run

    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    gpu = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    times = {}
    for flaw in FLAWS:
        pair = []
        for is_fixed in (False, True):
            found = run(SOURCE, **flaw.launch(is_fixed=is_fixed), samples=SAMPLES)
            pair.append(1e6 * median(found.samples_s))
        times[flaw.kernel] = pair
        print(f"{flaw.kernel:18} {pair[0]:9.2f} {pair[1]:9.2f} µs", flush=True)
    recordings.write(file, {"gpu": gpu, "times_us": times})


def compare(device: str, kernel: str | None) -> None:
    path = RECORDED / f"{device}.json"
    measured = json.loads(path.read_text())["times_us"] if path.exists() else {}
    right = close = 0
    chosen = [flaw for flaw in FLAWS if kernel in (None, flaw.kernel)]
    for flaw in chosen:
        before, after = (flaw.predicted(device, is_fixed=fixed) for fixed in (False, True))
        named = named_causes(before)
        is_right = bool(flaw.causes & set(named))
        cause = next((one for one in named if one in flaw.causes), named[0])
        right += is_right
        saved = 1e6 * (before.time_s - after.time_s)
        line = f"{flaw.kernel:18} {'' if is_right else 'NOT '}{cause:36}"
        line += f" {1e6 * before.time_s:9.2f} {1e6 * after.time_s:9.2f}"
        if flaw.kernel in measured:
            own = measured[flaw.kernel][0] - measured[flaw.kernel][1]
            is_close = abs(saved - own) <= 0.3 * own
            close += is_close
            line += f"  measured {measured[flaw.kernel][0]:9.2f} {measured[flaw.kernel][1]:9.2f}"
            line += f"  saves {saved:9.2f} / {own:9.2f}{'' if is_close else '  *'}"
        print(line, flush=True)
    print(f"causes right: {right} of {len(chosen)}; savings within 30%: {close} of {len(measured)}")


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--device", default="h200")
parser.add_argument("--kernel")
parser.add_argument("--measure", type=Path)
given = parser.parse_args()
if given.measure:
    measure(given.measure)
else:
    compare(given.device, given.kernel)
