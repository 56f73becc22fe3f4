"""What a launch costs, and how blocks follow each other on an SM."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import Geometry
from toolkit.microbenchmarks.bench import HOLD_SOURCE, Bench
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Benchmark, Measured, each, values

SOURCE = text("launch.cu")
PROBES: tuple[Probe, ...] = ()
GRIDS = (1, 16, 132, 264, 1024, 4096, 16384, 65536, 131072)
THREADS = (32, 256, 1024)
SIZES = ((1, 32), (132, 256), (1024, 256))  # blocks and threads of launches in a row
HOLD_NS = 400_000  # until all launches are queued
IN_A_ROW = 20
SM, BEGIN, END = 0, 1, 2  # columns of what blocks note


def _empty(bench: Bench, threads: int) -> Measured:
    """Of one block; the detail has all grids."""
    kernel = bench.kernel(SOURCE, "nothing")
    seconds = {}
    for blocks in GRIDS:
        geometry = Geometry.of(blocks, threads)
        seconds[blocks] = bench.seconds(kernel.prepared(geometry, [np.int32(0)]), repeats=15)
    return seconds[1].with_detail(seconds_by_blocks=values(seconds))


def _block_rate(bench: Bench, threads: int) -> Measured:
    """Seconds for each block more of a large grid of empty blocks."""
    kernel = bench.kernel(SOURCE, "nothing")
    few, many = 16384, 131072
    times = [
        bench.seconds(
            kernel.prepared(Geometry.of(n, threads), [np.int32(0)]),
            repeats=15,
        )
        for n in (few, many)
    ]
    return Measured.of([(times[1].value - times[0].value) / (many - few)])


def _events(bench: Bench) -> Measured:
    return bench.seconds(lambda: None, repeats=31)


def _in_a_row(bench: Bench, of: tuple[int, int]) -> Measured:
    """From one launch to the next in a stream, when all are queued."""
    gpu = bench.gpu
    spin = bench.kernel(HOLD_SOURCE, "spin")
    out = gpu.allocate(16)
    hold = spin.prepared(Geometry.of(1, 1), [out, np.int64(HOLD_NS)])
    once = bench.kernel(SOURCE, "nothing").prepared(Geometry.of(*of), [np.int32(0)])

    def several(count: int) -> float:
        def launch() -> None:
            hold()
            for _ in range(count):
                once()

        return float(np.median([gpu.timer.time(launch, flush_l2=False) for _ in range(7)]))

    return Measured.of([(several(IN_A_ROW) - several(1)) / (IN_A_ROW - 1)])


def _graph(bench: Bench, of: tuple[int, int]) -> Measured:
    """From one node of a graph to the next, in a row."""
    from pycuda import driver

    stream = driver.Stream()
    bench.kernel(SOURCE, "nothing")
    module = driver.module_from_buffer(bench.compiled(SOURCE, "nothing")[0])
    function = module.get_function("nothing")
    function.prepare("i")
    times = []
    for count in (1, IN_A_ROW):
        stream.begin_capture()
        try:
            for _ in range(count):
                function.prepared_async_call((of[0], 1), (of[1], 1, 1), stream, 0)
        finally:
            graph = stream.end_capture()
        ready = graph.instantiate()
        start, stop = driver.Event(), driver.Event()
        samples = []
        for _ in range(15):
            start.record(stream)
            ready.launch(stream)
            stop.record(stream)
            stop.synchronize()
            samples.append(stop.time_since(start) / 1e3)
        times.append(float(np.median(samples)))
    return Measured.of([(times[1] - times[0]) / (IN_A_ROW - 1)], one_s=times[0])


def _noted(
    bench: Bench, blocks: int, threads: int, cycles: int, dynamic: int = 0
) -> NDArray[np.int64]:
    """What blocks noted, a row each."""
    out = bench.gpu.allocate(40 * blocks)
    kernel = bench.kernel(SOURCE, "blocks_on_sms")
    geometry = Geometry.of(blocks, threads, dynamic)
    launch = kernel.prepared(geometry, [out, np.int32(cycles)])
    for _ in range(2):
        noted = bench.noted("blocks_on_sms", launch, out, (blocks, 5))
    return noted


def _by_sm(noted: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The rows of each SM, in the order in which its blocks began."""
    rows = noted[np.lexsort((noted[:, BEGIN], noted[:, SM]))]
    return np.split(rows, np.flatnonzero(np.diff(rows[:, SM])) + 1)


def _gap(bench: Bench, threads: int) -> Measured:
    """Cycles from a block's last clock to the first clock of its successor; one block per SM."""
    dynamic = bench.device.shared_bytes_per_block_optin - 1024
    sms = bench.device.sm_count
    noted = _noted(bench, 12 * sms, threads, 5000, dynamic)
    gaps: list[int] = []
    overlaps = 0
    for own in _by_sm(noted):
        between = own[1:, BEGIN] - own[:-1, END]
        overlaps += int(np.count_nonzero(between < 0))
        gaps += between[between >= 0].tolist()
    return Measured.of(
        gaps, overlaps=overlaps, deciles=np.percentile(gaps, range(0, 101, 10)).tolist()
    )


def _starts(bench: Bench, threads: int) -> Measured:
    """Cycles between the starts of the first blocks on an SM, when all fit at once."""
    per_sm = min(bench.device.max_threads_per_sm // threads, bench.device.max_blocks_per_sm)
    noted = _noted(bench, per_sm * bench.device.sm_count, threads, 60000)
    between: list[int] = []
    spread = []
    for own in _by_sm(noted):
        between += np.diff(own[:, BEGIN]).tolist()
        spread.append(int(own[-1, BEGIN] - own[0, BEGIN]))
    first = noted[:, 3]
    return Measured.of(
        between or [0],
        deciles=np.percentile(between or [0], range(0, 101, 10)).tolist(),
        first_to_last_on_an_sm=float(np.median(spread)),
        first_to_last_on_the_device_s=float(first.max() - first.min()) * 1e-9,
        blocks_per_sm=per_sm,
    )


def _turnover(bench: Bench, threads: int) -> Measured:
    """Cycles per block and SM of a long grid of blocks that last 2,000 cycles, above those."""
    per_sm = min(bench.device.max_threads_per_sm // threads, bench.device.max_blocks_per_sm)
    rounds = 16
    noted = _noted(bench, rounds * per_sm * bench.device.sm_count, threads, 2000)
    per_block = []
    for own in _by_sm(noted):
        busy = int(own[:, END].max() - own[0, BEGIN])
        per_block.append(busy * per_sm / len(own) - 2000)
    return Measured.of(per_block, blocks_per_sm=per_sm)


def _of_threads(
    name: str, unit: str, how: str, measure: Callable[..., Measured]
) -> Iterator[Benchmark]:
    return each(name, unit, how, measure, threads=THREADS)


BENCHMARKS = (
    *each("event_pair_s", "seconds", "two events with nothing between", _events),
    *_of_threads(
        "empty_kernel_{threads}_threads_s",
        "seconds",
        "one launch of one block between two events (more blocks: detail)",
        _empty,
    ),
    *_of_threads(
        "empty_block_{threads}_threads_s",
        "seconds per block",
        "131,072 empty blocks less 16,384",
        _block_rate,
    ),
    *_of_threads(
        "block_gap_{threads}_threads_cycles",
        "cycles",
        "from a block's end to the next one's start, one per SM (low, high: all pairs)",
        _gap,
    ),
    *_of_threads(
        "block_starts_{threads}_threads_cycles",
        "cycles",
        "between starts on one SM in the first wave (low, high: all pairs)",
        _starts,
    ),
    *_of_threads(
        "block_turnover_{threads}_threads_cycles",
        "cycles per block and slot",
        "a full SM of blocks of 2,000 cycles, 16 waves, above those (low, high: SMs)",
        _turnover,
    ),
    *each(
        "launch_in_a_row_{of[0]}_blocks_s",
        "seconds per launch",
        f"{IN_A_ROW} queued launches less 1, {{of[1]}} threads",
        _in_a_row,
        of=SIZES,
    ),
    *each(  # last: a capture that fails can spoil what follows
        "launch_in_graph_{of[0]}_blocks_s",
        "seconds per launch",
        f"{IN_A_ROW} nodes of a graph less 1, {{of[1]}} threads",
        _graph,
        of=SIZES,
    ),
)
