"""Time and memory of the commands of this checkout, optionally in turns with another checkout.

    python -m benchmarks.report_speed [--against CHECKOUT] [--repeats N] [--case NAME] [--json FILE]

CHECKOUT is a folder with another commit whose native libraries are built. Each checkout uses the
Python of its own `.venv`, else the one that runs this. A case is

    help              `--help`
    theory            `profile --executor theory`, all compiled before
    cold:DEVICE       `profile`, with an empty cache; cold:DEVICE:8192 of this shape, not of 4096
    warm:DEVICE       `profile` again: code, predictions, and the time of the CPU where it is kept,
                      are in the cache; counts and checks are made again, with other matrices
    simulate:KERNEL   `simulate` of a kernel of kernels/ on an H200 (`LAUNCHES`), warm and without
                      remedies; also of a rung, at 4096 or another shape: simulate:stream-k:1024
    remedies:KERNEL   the same with remedies, where the checkout has them
    compile:KERNEL    the same with an empty cache
    replay:KERNEL     the same without the kept prediction: streams are replayed again
    all:KERNEL        the same with all blocks executed

It prints the medians over the repeats of the wall time and of the CPU time (user and system, all
processes), which depends less on other work of the machine; then the largest memory of a repeat,
and the number of executed blocks. With `--against` the other checkout comes first, and its times
are divided by those of this one. `--json` writes every sample to a file.

Memory is the peak of the memory of all processes of a command, sampled every 20 ms; a page that two
of them share counts once. Without /proc it is that of the largest process. Bytecode of both
checkouts is compiled before. No GPU is used.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import NamedTuple

HERE = Path(__file__).parents[1]
KERNELS = Path(__file__).parent / "kernels"
POLL_S = 0.02

# Kernels as users write them, none of them a rung: name, grid, block, and arguments, results first.
LAUNCHES = {
    "sgemm-2048": "sgemm 16,16 256 f32[2048,2048] f32[2048,2048] f32[2048,2048] i32=2048",
    "sgemm-4096": "sgemm 32,32 256 f32[4096,4096] f32[4096,4096] f32[4096,4096] i32=4096",
    "softmax": "softmax 8192 256 f32[8192,4096] f32[8192,4096] i32=4096",
    "layernorm": "layernorm 8192 256 f32[8192,4096] f32[8192,4096] f32[4096] f32[4096] i32=4096",
    "gelu": "gelu 65536 256 f32[67108864] f32[67108864]",
    "conv2d": "conv2d 128,512 32,8 f32[4096,4096] f32[4096,4096] f32[25] i32=4096",
    "reduction": "reduction 1056 256 f32[1]=zeros f32[67108864] i32=67108864",
    "transpose": "transpose 256,256 32,8 f32[8192,8192] f32[8192,8192] i32=8192",
    "one-thread-per-element": "one_thread_per_element 256,256 16,16 "
    "f32[4096,4096] f32[4096,4096] f32[4096,4096] i32=4096",
}
CASES = (
    *("help", "theory", "cold:rtx-3090", "warm:rtx-3090", "cold:h200", "warm:h200"),
    *("cold:h200:8192", "warm:h200:8192"),
    *(f"{kind}:{name}" for kind in ("simulate", "remedies") for name in LAUNCHES),
    "compile:sgemm-2048",
    "replay:stream-k",
    *("all:vectorized:1024", "all:naive-coalesced:1024", "all:transpose"),
)
_EXECUTED = re.compile(r"all [\d,]+ blocks|[\d,]+ of [\d,]+ blocks")


class Sample(NamedTuple):
    """One command: seconds of wall time and of all cores, bytes, and what it says of blocks."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    executed: str


class Checkout:
    """A folder with the toolkit, and a cache of its own."""

    def __init__(self, root: Path, scratch: Path) -> None:
        own = root / ".venv" / "bin" / "python"
        self.root, self.scratch = root, scratch
        self.python = str(own) if own.exists() else sys.executable
        self.scratch.mkdir()
        packages = ("toolkit", "analysis", "reports", "kernels")
        subprocess.run([self.python, "-m", "compileall", "-q", *packages], cwd=root, check=False)

    def sample(self, case: str) -> Sample:
        kind, _, what = case.partition(":")
        if kind in ("cold", "compile"):
            shutil.rmtree(self.scratch / "cache", ignore_errors=True)
        if kind == "replay":
            for kept in (self.scratch / "cache").glob("prediction-*"):
                kept.unlink()
        if kind == "help":
            return self._run("--help")
        if kind in ("simulate", "remedies", "compile", "replay", "all"):
            options = ["--blocks", "all"] if kind == "all" else []
            if kind != "remedies" and (self.root / "toolkit" / "remedies").exists():
                options.append("--no-remedies")
            return self._run("simulate", *launched(what), "--device", "h200", *options)
        outputs = [
            f"--{option}={self.scratch / file}"
            for option, file in (("html", "profile.html"), ("record", "profile.json"))
        ]
        executor = "theory" if kind == "theory" else "simulate"
        device, _, shape = what.partition(":")
        outputs += ["--device", device or "h200", "--shape", shape or "4096"]
        return self._run("profile", "--executor", executor, *outputs)

    def _run(self, *words: str) -> Sample:
        environment = {**os.environ, "GEMM_LADDER_CACHE": str(self.scratch / "cache")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [self.python, "-m", "toolkit", *words]
        with (self.scratch / "printed").open("w+b") as printed:
            started = time.perf_counter()
            process = subprocess.Popen(
                command, cwd=self.root, env=environment, stdout=printed, stderr=subprocess.STDOUT
            )
            memory = Memory(process.pid)
            _, status, used = os.wait4(process.pid, 0)
            wall_s, peak_bytes = time.perf_counter() - started, memory.peak_bytes()
            printed.seek(0)
            text = printed.read().decode(errors="replace")
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{self.root}: {' '.join(words)}: {text}")
        largest = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        executed = _EXECUTED.search(" ".join(text.split())) if words[0] == "simulate" else None
        return Sample(
            wall_s=wall_s,
            cpu_s=used.ru_utime + used.ru_stime,
            peak_bytes=peak_bytes or largest,
            executed=executed[0] if executed else "",
        )


def launched(name: str) -> list[str]:
    """Arguments of `simulate` for a kernel of `LAUNCHES`, or for a rung at a shape."""
    if name not in LAUNCHES:
        rung, _, shape = name.partition(":")
        return [rung, "--shape", shape or "4096"]
    kernel, grid, block, *arguments = LAUNCHES[name].split()
    source = next(file for file in KERNELS.iterdir() if f" {kernel}(" in file.read_text())
    launch = [str(source), "--kernel", kernel, "--grid", grid, "--block", block]
    return launch + [word for argument in arguments for word in ("--arg", argument)]


class Memory:
    """Looks at the memory of a process and of all that it started, until the peak is asked for."""

    def __init__(self, process: int) -> None:
        self._process, self._peak_bytes, self._ended = process, 0, Event()
        self._thread = Thread(target=self._watch)
        self._thread.start()

    def peak_bytes(self) -> int:
        self._ended.set()
        self._thread.join()
        return self._peak_bytes

    def _watch(self) -> None:
        largest = 0
        while not self._ended.wait(POLL_S):
            processes = list(_tree(self._process))
            resident = sum(map(_resident_bytes, processes))
            if resident > largest:  # what is shared takes milliseconds to find
                largest = resident
                held = sum(map(_proportional_bytes, processes))
                self._peak_bytes = max(self._peak_bytes, held)


def _tree(process: int) -> Iterator[int]:
    """A process and all below it; alone where the system does not say."""
    yield process
    children: list[str] = []
    with suppress(OSError):  # it ended just now
        for thread in Path(f"/proc/{process}/task").iterdir():
            children += (thread / "children").read_text().split()
    for child in children:
        yield from _tree(int(child))


def _resident_bytes(process: int) -> int:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _proportional_bytes(process: int) -> int:
    """The resident bytes of a process, where a page that n processes share counts 1/n."""
    with suppress(OSError):  # it ended just now
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--case", action="append", metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    roots = [asked.against.resolve(), HERE] if asked.against else [HERE]
    samples: dict[str, list[list[Sample]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        checkouts = [Checkout(root, Path(folder) / str(n)) for n, root in enumerate(roots)]
        columns = "".join(f"{name:>{8 * len(roots)}}{'':8}" for name in ("wall s", "cores s"))
        print(f"{'medians of ' + str(asked.repeats):34}{columns}GB  blocks executed")
        for case in asked.case or CASES:
            if not case.startswith(("cold", "compile", "help")):
                for one in checkouts:  # fill the cache
                    one.sample(case)
            by_turns = [[one.sample(case) for one in checkouts] for _ in range(asked.repeats)]
            samples[case] = [list(one) for one in zip(*by_turns, strict=True)]
            print(line(case, samples[case]), flush=True)
    if asked.json:
        document = {case: [[x._asdict() for x in one] for one in samples[case]] for case in samples}
        asked.json.write_text(json.dumps(document, indent=1) + "\n")


def line(case: str, by_checkout: list[list[Sample]]) -> str:
    """The medians of a case; of two checkouts, also how much faster the second one is."""
    text = f"{case:34}"
    for field in ("wall_s", "cpu_s"):
        found = [median(getattr(x, field) for x in one) for one in by_checkout]
        ratio = f"{found[0] / found[1]:6.2f}x" if len(found) == 2 else ""
        text += "".join(f"{one:8.2f}" for one in found) + f"{ratio:8}"
    text += "".join(f"{max(x.peak_bytes for x in one) / 1e9:6.2f}" for one in by_checkout)
    return f"{text}  {by_checkout[-1][-1].executed}".rstrip()


if __name__ == "__main__":
    main()
