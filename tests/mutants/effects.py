"""Mutants of printed.json that change a printed number by more than 1%.

    python -m tests.mutants.effects         # all
    python -m tests.mutants.effects 3 17    # two of them

Times, their steps and bounds, limiters, counters and their intervals of `launches()`: rungs by
name and as any other kernel, other kernels, four devices. A launch that raises an error, or does
not end, has changed. For each mutant the first launch with such a change is printed, and the number
that changes most.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from itertools import count
from pathlib import Path

from tests.mutants.edits import apply, stored
from tests.mutants.printed import DRAWN
from tests.mutants.run import built, fresh
from tests.one_path import DEVICE, OTHERS, RUNGS, SEED
from toolkit import simulate
from validation.timing.declared import OPTIONS, rng
from validation.timing.timed_launches import LAUNCHES as TIMED

CHANGED = 0.01  # relative, of a number; steps and bounds of a time relative to the time
LIMIT_S = 300.0  # all launches take a minute
SLOW = "split-k:splits=4"  # takes 20 seconds at 1024; it is simulated at 512
NUMBERS = "numbers.json"  # of the product without a mutant, in the folder of the work


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("numbers", nargs="*", type=int, help="of mutants; all if left out")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "effects")
    parser.add_argument("--of-tree", type=Path, help="compare with a file, or write it")
    options = parser.parse_args()
    if options.of_tree:
        return of_tree(options.of_tree)
    work, mutants = options.work.resolve(), stored(DRAWN)
    work.mkdir(exist_ok=True)
    (work / NUMBERS).unlink(missing_ok=True)
    print("without a mutant:", effect(work, fresh(work)))
    for number in options.numbers or range(len(mutants)):
        tree = fresh(work)
        apply(tree, mutants[number])
        is_built = mutants[number].language == "python" or built(tree)
        print(number, mutants[number], effect(work, tree) if is_built else "not built", flush=True)
    return 0


def effect(work, tree):
    environment = os.environ | {"PYTHONPATH": str(tree), "GEMM_LADDER_CACHE": str(work / "cache")}
    command = [sys.executable, "-m", "tests.mutants.effects", "--of-tree", str(work / NUMBERS)]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "does not end"
    said = (done.stdout or done.stderr[-200:]).decode().strip().split("\n")[-1]
    return said if done.returncode in (0, 1) else f"exit code {done.returncode}: {said}"


def of_tree(path):
    """Compare the tree that was imported with numbers in a file, or write them if there is none."""
    expected = json.loads(path.read_text()) if path.exists() else {}
    found = {}
    for name, simulated in launches().items():
        found[name] = numbers(simulated)
        if expected and (change := largest(expected[name], found[name])):
            print(f"changed: {name}: {change}")
            return 1
    if not expected:
        path.write_text(json.dumps(found))
    print("not changed")
    return 0


def launches():
    """Name of each launch -> what simulates it. Those that take the least time come first."""

    def rung(name, shape, **changes):
        return lambda: simulate(name, shape=shape, seed=SEED, **{"device": DEVICE} | changes)

    def kernel(case, **changes):
        return lambda: simulate(
            case.source,
            case.kernel,
            grid=case.grid,
            block=case.block,
            dynamic_shared_bytes=case.dynamic_shared_bytes,
            arguments=case.make(rng()),
            options=OPTIONS,
            device=DEVICE,
            **changes,
        )

    found = {one.name: kernel(one.case) for one in OTHERS}
    found |= {
        f"{name} {shape}": rung(name, shape)
        for name, shape in (
            *((one.rung, one.shape) for one in RUNGS if one.rung != SLOW),
            (SLOW, "512"),
            ("split-k", "1024x1024x2304"),
            ("vectorized", "4096"),
            ("coarsened-1d", "512x512x8192"),
            ("bulk-copy", "8192"),
            ("stream-k", "4096"),
        )
    }
    for device in ("rtx-4090", "v100", "a100-40gb"):
        found[f"vectorized 1024 {device}"] = rung("vectorized", "1024", device=device)
    for name, shape, blocks in (
        ("vectorized", "512", "all"),
        ("split-k", "512", "all"),
        ("stream-k", "512", "representative"),
        ("vectorized", "2048", "representative"),
    ):
        found[f"{name} {shape} {blocks}"] = rung(name, shape, blocks=blocks)
    for name in ("stencil", "softmax", "transpose_padded", "row_sums", "scan_blocks", "collatz"):
        case = next(one for one in TIMED if one.kernel == name)
        found[f"{case.name} representative"] = kernel(case, blocks="representative", limit_s=0.0)
    drawn = next(one for one in TIMED if one.kernel == "collatz")
    found[f"{drawn.name} 99 blocks"] = kernel(drawn, blocks=99)
    return found


def numbers(simulated):
    """Every printed number and word of a launch, by name."""
    try:
        execution = simulated()
    except Exception as error:
        return {"error": repr(error)[:100]}
    found = {"counters": execution.counters, "estimates": execution.estimates}
    if execution.predicted:
        found["time"] = asdict(execution.predicted)
    return dict(leaves(json.loads(json.dumps(found)), ""))


def leaves(value, name):
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else zip(count(), value, strict=False)
        for key, one in items:
            yield from leaves(one, f"{name}/{key}")
    elif not name.endswith(("/detail", "/basis")):
        yield name.removeprefix("/"), value


def largest(expected, found):
    """The number that changes most, if any changes by more than CHANGED."""
    if "error" in found:
        return found["error"]
    changes = []
    for name in expected.keys() | found.keys():
        before, after = expected.get(name, 0), found.get(name, 0)
        if isinstance(before, str) or isinstance(after, str):
            change = float(before != after)
        else:
            parts = ("time/bounds", "time/gap")
            whole = expected["time/time_s"] if name.startswith(parts) else 0
            change = abs(after - before) / max(abs(before), abs(after), whole, 1e-99)
        changes.append((change, name, before, after))
    change, name, before, after = max(changes, key=lambda one: (one[0], one[1]))
    return f"{name}: {before} -> {after}" if not (change <= CHANGED) else ""


if __name__ == "__main__":
    sys.exit(main())
