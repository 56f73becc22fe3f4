"""Host time of `toolkit.matmul`: a first call, one in a later process, and later ones. Needs a GPU.

    python -m benchmarks.matmul_calls [--size 64 512 ...]

Each size has two processes of its own. The first one begins with an empty cache, and the second one
has what the first one kept. The time of their first calls ends when the product is there, and holds
the imports of the toolkit. PyTorch was imported before, and made a product of its own. Later calls
are of the second process, one at a time on an idle GPU, in turns with torch.matmul. The medians of
their host times are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

SIZES = (64, 512, 511, 4096)
CALLS = 200


def measure(size: int) -> dict[str, float]:
    """Seconds of the calls of this process."""
    import torch

    a, b = torch.randn(size, size, device="cuda"), torch.randn(size, size, device="cuda")
    out = torch.empty(size, size, device="cuda")
    torch.matmul(a, b, out=out)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    from toolkit import matmul

    product = matmul(a, b)
    torch.cuda.synchronize()
    first = time.perf_counter() - begin
    assert torch.allclose(product, out, rtol=1e-3, atol=1e-3 * size**0.5)
    calls: dict[str, Callable[[], Any]] = {
        "later": lambda: matmul(a, b),
        "later, out": lambda: matmul(a, b, out),
        "torch": lambda: torch.matmul(a, b),
        "torch, out": lambda: torch.matmul(a, b, out=out),
    }
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(CALLS):
        for name, call in calls.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            found = call()
            samples[name].append(time.perf_counter() - begin)
            del found
    return {"first": first} | {name: median(times) for name, times in samples.items()}


def in_a_process(size: int, cache: str) -> dict[str, float]:
    """`measure` in a new process with a folder for the cache."""
    command = [sys.executable, "-m", "benchmarks.matmul_calls", "--one", str(size)]
    environment = os.environ | {"GEMM_LADDER_CACHE": cache}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    times: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return times


def main() -> None:
    """Print a table with a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one)))
        return
    print("size   first call   in a later process   later calls (out given)   torch.matmul (out)")
    for size in asked.size:
        with tempfile.TemporaryDirectory() as cache:
            first, later = in_a_process(size, cache), in_a_process(size, cache)
        print(
            f"{size:4}   {first['first']:8.2f} s   {1e3 * later['first']:15.1f} ms   "
            f"{1e6 * later['later']:6.1f} us ({1e6 * later['later, out']:.1f})   "
            f"{1e6 * later['torch']:14.1f} us ({1e6 * later['torch, out']:.1f})"
        )


if __name__ == "__main__":
    main()
