"""Processor time of a choice of a path, for the products of the law as if never seen. No GPU.

    python -m benchmarks.choice_times [--device h200] [--rounds 9]

Each product is made anew before it is timed, so that nothing of it is kept; what is known of the
device is. The least of some rounds counts, as other work on a host only adds to it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from analysis.devices import Device, find_device
from kernels.path_times import candidates
from kernels.product import Product
from validation.products.law import products


def choice_times_s(device: Device, cases: Sequence[Product], rounds: int) -> list[float]:
    """The least processor time of `rounds` choices of each product."""
    least = [float("inf")] * len(cases)
    for _ in range(rounds):
        for n, product in enumerate([replace(case) for case in cases]):
            start = time.thread_time_ns()
            min(candidates(device, product, is_pruned=True), key=lambda one: one[0])
            least[n] = min(least[n], 1e-9 * (time.thread_time_ns() - start))
    return least


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="h200")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    cases = [case.product for case in products()]
    times = sorted(choice_times_s(find_device(given.device), cases, given.rounds))
    print(
        f"{len(times)} products: median {1e6 * median(times):.1f} µs, mean "
        f"{1e6 * sum(times) / len(times):.1f} µs, the longest {1e6 * times[-1]:.1f} µs"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
