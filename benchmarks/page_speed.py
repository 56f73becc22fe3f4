"""Time to write a page, and time until a browser has drawn its first screen.

    python -m benchmarks.page_speed [NAME ...] [--repeats N] [--device NAME] [--json FILE]

NAME is a kernel of benchmarks/report_speed.py or `ladder`; all of them unless some are named. A
kernel is executed and its remedies are found first; `ladder` is a profile of all rungs at 4096.
Both take up to minutes with an empty cache, and are no part of the times.

written  a page is made and saved, in a process that has made none before: templates are compiled
cpu      the same in seconds of CPU time, which depends less on other work of the machine
drawn    Chromium, headless, 1440 x 900: from the start of the navigation to the frame that has the
         first figure, the costliest line and the first remedy, as far as the page has them; of the
         ladder: the first figure and the pane
chart    of the ladder: to the frame that has the chart of Plotly in place of the still drawing

Times are medians over the repeats, in seconds of wall time. Other work of the machine makes them
longer: its load is printed beside them. Needs Playwright and the system's Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from compileall import compile_dir
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.gallery import browser
from benchmarks.report_speed import HERE, KERNELS, LAUNCHES

LADDER, SHAPE = "ladder", "4096"
WINDOW = {"width": 1440, "height": 900}
FIRST_SCREEN = (".stk svg", ".src .hot", ".rem li:first-child", ".still svg, .rows .plot", "#pane")
CHART = (".rows .plot[data-drawn]",)
MOST_WAITED_S = 30.0
# Sets window.shownAt[n], ms, after the first frame in which all selectors of a list are visible.
# Of FIRST_SCREEN those that the page has none of once it is loaded are left out.
WATCH = """((lists) => {
  window.shownAt = [];
  const isSeen = (s) => [...document.querySelectorAll(s)].some((e) => e.getClientRects().length);
  const isMissing = (s) => document.readyState === "complete" && !document.querySelector(s);
  lists.forEach((list, n) => {
    const look = () => {
      if (list.every((s) => isSeen(s) || (n === 0 && isMissing(s))))
        setTimeout(() => { window.shownAt[n] = performance.now(); });
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
})"""


class Times(NamedTuple):
    """Samples of one page, in seconds, its size, and the load of the machine meanwhile."""

    written_s: list[float]
    cpu_s: list[float]
    drawn_s: list[float]
    chart_s: list[float]
    size_bytes: int
    load: float


def kernel_page(name: str, device: str) -> Callable[[], str]:
    """The page of a kernel, with its remedies."""
    from toolkit import find_remedies, simulate
    from toolkit.cli.argument_syntax import make_arguments, parse_arguments

    kernel, grid, block, *arguments = LAUNCHES[name].split()
    source = next(file for file in KERNELS.iterdir() if f" {kernel}(" in file.read_text())
    launch: dict[str, Any] = {
        "grid": tuple(map(int, grid.split(","))),
        "block": tuple(map(int, block.split(","))),
        "arguments": make_arguments(parse_arguments(arguments), seed=1),
        "device": device,
    }
    remedies = find_remedies(source, kernel, **launch)
    executed = simulate(source, kernel, outputs=False, **launch)
    return lambda: executed.html(remedies)


def ladder_page(device: str) -> Callable[[], str]:
    """The page of all rungs, beside the run that ships with the package."""
    from toolkit import profile
    from toolkit.store.recorded_runs import run_beside

    made = profile(shapes=[SHAPE], device=device, executor="simulate", seed=1)

    def html() -> str:
        from reports import render

        return render(made, recorded=run_beside(made))

    return html


def seconds_to_write(html: Callable[[], str], file: Path) -> tuple[float, float]:
    """Wall and CPU time to make and save the page in a child process, forked from this one."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def write() -> None:
        started, used = time.perf_counter(), time.process_time()
        file.write_text(html(), encoding="utf-8")
        sender.send((time.perf_counter() - started, time.process_time() - used))

    child = context.Process(target=write)
    child.start()
    child.join()
    if child.exitcode or not receiver.poll():
        raise SystemExit(f"the page was not written: exit code {child.exitcode}")
    wall_s, cpu_s = receiver.recv()
    return wall_s, cpu_s


def seconds_to_draw(window: Any, file: Path, *, has_chart: bool) -> list[float]:
    """Times of the first screen and, of the ladder, of its chart."""
    lists = [FIRST_SCREEN, CHART] if has_chart else [FIRST_SCREEN]
    page = window.context.browser.new_page()
    page.set_viewport_size(WINDOW)
    page.add_init_script(f"{WATCH}({json.dumps(lists)})")
    page.goto(file.as_uri())
    end = time.monotonic() + MOST_WAITED_S
    while len(found := [one for one in page.evaluate("shownAt") if one]) < len(lists):
        if time.monotonic() > end:
            raise SystemExit(f"{file.name} is not drawn after {MOST_WAITED_S:.0f} s")
        page.wait_for_timeout(50)
    page.close()
    return [one / 1000 for one in found]


def timed(name: str, device: str, repeats: int, window: Any, folder: Path) -> Times:
    html = ladder_page(device) if name == LADDER else kernel_page(name, device)
    file = folder / f"{name}.html"
    written = [seconds_to_write(html, file) for _ in range(repeats)]
    drawn = [seconds_to_draw(window, file, has_chart=name == LADDER) for _ in range(repeats)]
    return Times(
        written_s=[wall_s for wall_s, _ in written],
        cpu_s=[cpu_s for _, cpu_s in written],
        drawn_s=[one[0] for one in drawn],
        chart_s=[one[1] for one in drawn if len(one) == 2],
        size_bytes=file.stat().st_size,
        load=os.getloadavg()[0],
    )


def line(name: str, times: Times) -> str:
    chart = f"{median(times.chart_s):9.3f}" if times.chart_s else f"{'':9}"
    return (
        f"{name:26}{median(times.written_s):9.3f}{median(times.cpu_s):9.3f}{median(times.drawn_s):9.3f}{chart}"
        f"{times.size_bytes / 1e3:8.0f}{times.load:7.1f}"
    )


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args(words)
    known = [*LAUNCHES, LADDER]
    if unknown := set(asked.names) - {*known}:
        parser.error(f"no such page: {', '.join(sorted(unknown))} (known: {', '.join(known)})")
    found: dict[str, Times] = {}
    print(
        f"{f'medians of {asked.repeats}, s':26}  written      cpu    drawn    chart      kB   load"
    )
    compile_dir(HERE / "reports", quiet=1)  # as an installed package is
    with tempfile.TemporaryDirectory() as folder, browser() as window:
        for name in asked.names or known:
            found[name] = timed(name, asked.device, asked.repeats, window, Path(folder))
            print(line(name, found[name]), flush=True)
    if asked.json:
        document = {name: times._asdict() for name, times in found.items()}
        asked.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
