"""Feed mutated input to everything that takes input from anywhere.

    python -m tests.fuzz.fuzz                           # every target, as often as COUNTS says
    python -m tests.fuzz.fuzz cubins --count 10000
    python -m tests.fuzz.fuzz cubins --first 4711 --count 1      # repeats one case

Targets run in processes of their own, so that a crash or a hang counts as a failed case too. The
cases of a target depend on --seed and their numbers alone. Failed cases are printed with their
numbers and tracebacks; the exit code is then 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Timer

SEED = 1
LIMIT_S = 120  # of one case, many times what any takes
STARTUP_S = 300  # of a process: a target may make its documents first
MOST_FAILURES = 20  # of a process: what fails more often fails for one reason
MOST_BYTES = 400
MOST_LINES = 6  # of a traceback

COUNTS = {
    "cubins": 10_000,
    "stored_text": 20_000,
    "profiles": 10_000,
    "launches": 10_000,
    "report": 100,
    "disassembly": 8_000,
    "operands": 36_000,
    "machine_code": 8_000,
    "launch": 18_000,
    "command_line": 2_000,
}


def main():
    """Run the cases; 1 where one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(COUNTS)}")
    parser.add_argument("--count", type=int, help="cases of each target")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.targets) - set(COUNTS):
        parser.error(f"no target {', '.join(unknown)}: give some of {', '.join(COUNTS)}")
    if options.here:
        return run_here(options.targets[0], options.seed, options.first, options.count)
    failed = 0
    for name in options.targets or COUNTS:
        count = options.count or COUNTS[name]
        started = time.monotonic()
        failures = run_apart(name, options.seed, options.first, count, options.processes)
        took = time.monotonic() - started
        print(f"{name}: {count:,} cases in {took:.0f} s, {len(failures)} failed", flush=True)
        for failure in failures:
            print(failure, flush=True)
        failed += len(failures)
    return int(failed > 0)


def case(name, number, seed=SEED):
    """The bytes of one case: drawn at random, or one of the target's seeds with changes."""
    from tests.fuzz import targets

    random = Random(f"{seed} {name} {number}")
    known = targets.seeds(name)
    if random.random() < 0.5 or not known:
        return random.randbytes(random.randint(1, MOST_BYTES))
    data = bytearray(random.choice(known))
    for _ in range(random.randint(1, 6)):
        at = random.randint(0, len(data))
        cut = random.choice((0, 1, 1, 2, 8))
        data[at : at + cut] = random.randbytes(random.choice((0, 1, 1, 2, 8)))
    return bytes(data)


def run_apart(name, seed, first, count, processes):
    """Run the cases in processes; what is to be said of those that failed."""
    share = -(-count // processes)
    starts = range(first, first + count, share)
    with ThreadPoolExecutor(processes) as pool:
        found = pool.map(
            lambda start: _run_share(name, seed, start, min(start + share, first + count)), starts
        )
        return [failure for failures in found for failure in failures]


def _run_share(name, seed, first, end):
    """Run cases in one process at a time: a new one goes on behind a case that ended it."""
    failures = []
    while first < end and len(failures) < MOST_FAILURES:
        last, said, ended = _run_process(name, seed, first, end)
        failures += said
        if ended is None:
            break
        failures.append(f"case {last} of {name}: {ended}")
        first = last + 1
    return failures


def _run_process(name, seed, first, end):
    """The last case that a process began, what it said of failures, and how it ended too early."""
    command = [sys.executable, __file__, name, "--here", "--seed", str(seed)]
    command += ["--first", str(first), "--count", str(end - first)]
    last, failures, is_late = first, [], False
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            # what is damaged is not kept, nor what `tune` finds
            env=os.environ | {"GEMM_LADDER_CACHE": folder, "GEMM_LADDER_DATA": folder},
        ) as child,
    ):

        def stop():
            nonlocal is_late
            is_late = True
            child.kill()

        timer = _started(STARTUP_S, stop)
        assert child.stdout is not None
        for line in child.stdout:
            timer.cancel()
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "case":
                last = int(rest)
            elif word == "failed":
                failures.append(f"case {last} of {name}: {json.loads(rest)}")
            timer = _started(LIMIT_S, stop)
        timer.cancel()
        code = child.wait()
        if is_late:
            return last, failures, f"it took more than {LIMIT_S} s"
        if code:
            errors.seek(0)
            return last, failures, f"the process ended with {code}\n{errors.read()[-4000:]}"
    return last, failures, None


def _started(limit_s, then):
    timer = Timer(limit_s, then)
    timer.start()
    return timer


def run_here(name, seed, first, count):
    """Run cases in this process, and tell of each."""
    from tests.fuzz import targets

    target = targets.TARGETS[name]
    failures = 0
    for number in range(first, first + count):
        _tell("case", str(number))
        try:
            target(case(name, number, seed))
        except Exception:
            _tell("failed", json.dumps(_shortened(traceback.format_exc())))
            failures += 1
            if failures == MOST_FAILURES:
                break
    return 0


def _shortened(trace):
    """The error, then the last calls."""
    lines = trace.strip().splitlines()
    return "\n".join([lines[-1], *lines[-1 - MOST_LINES : -1]])


def _tell(*words):
    print(*words, file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    sys.exit(main())
