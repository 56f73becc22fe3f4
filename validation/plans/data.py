"""Ingredients by which what a thread does follows from data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import WARP_SIZE
from validation.plans.writer import LEAST_SHARE, Writer

IN_A_SECTOR = 8  # integers
FREQUENT, RARE = (0.5, 0.2, 0.9), (0.001, 0.0001, 0.99)


def threshold(w: Writer) -> Iterator[str]:
    """A branch of the threads with large values."""
    share = _share(w)
    values = _random(w)
    _note_any(w, values < share)
    yield f"if ({w.array(values)}[i] < {share}f) {{ {' '.join(w.arithmetic())} }}"


def not_a_number(w: Writer) -> Iterator[str]:
    share = _share(w)
    values = _random(w)
    is_nan = w.numbers.random(len(values)) < share
    values[is_nan] = np.nan
    _note_any(w, is_nan)
    a, x = w.array(values), w.fresh("x")
    test = w.random.choice((f"{x} != {x}", f"!({x} <= 2)", f"{x} < 2"))
    yield f"const float {x} = {a}[i]; if ({test}) {{ {' '.join(w.arithmetic())} }}"


def gather(w: Writer) -> Iterator[str]:
    """Elements at random places, near or far."""
    size = w.random.choice((512, 1 << 14, 1 << 18))
    places, a = w.integers(size), w.floats(size)
    yield f"v += {a}[{places}[i]];"


def partly_gathered(w: Writer) -> Iterator[str]:
    """Elements in order in most blocks, and at random places in the others."""
    size = int(w.elements.max()) + 1
    places = np.arange(size, dtype=np.int32)
    is_random = w.numbers.random(w.blocks) < (0.3 if w.is_even else 0.02)
    mixed = w.elements[is_random]
    places[mixed] = w.numbers.integers(0, size, mixed.shape)
    w.note(is_random.astype(np.int64))
    yield f"v += {w.floats()}[{w.array(places)}[i]];"


def scatter(w: Writer) -> Iterator[str]:
    """Each thread writes to a place of its own."""
    size = int(w.elements.max()) + 1
    places = w.numbers.permutation(size).astype(np.int32)
    yield f"{w.zeros(size)}[{w.array(places)}[i]] = v;"


def histogram(w: Writer) -> Iterator[str]:
    """Tallies in shared memory, by data."""
    bins, j, shared = w.random.choice((8, 64, 256)), w.fresh("j"), w.fresh("tally")
    values = _places(w, bins)
    _note_distinct(w, values, bins)
    places, o = w.array(values), w.zeros(bins, "int32")
    each = f"for (int {j} = tid; {j} < {bins}; {j} += {w.threads})"
    yield f"__shared__ int {shared}[{bins}];"
    yield f"{each} {shared}[{j}] = 0;"
    yield f"__syncthreads(); atomicAdd(&{shared}[{places}[i]], 1); __syncthreads();"
    yield f"{each} atomicAdd(&{o}[{j}], {shared}[{j}]);"


def shared_places(w: Writer) -> Iterator[str]:
    """Loads from shared memory at places from data: bank conflicts differ."""
    shared, places, stride = w.fresh("shared"), w.integers(w.threads), w.random.choice((1, 8, 32))
    size = min(w.threads * stride, 4096)
    yield f"__shared__ float {shared}[{size}];"
    yield f"__syncthreads(); {shared}[tid] = v; __syncthreads();"
    if stride == 1:
        yield f"v += {shared}[{places}[i]];"
    else:
        j = w.fresh("j")
        yield f"for (int {j} = tid; {j} < {size}; {j} += {w.threads}) {shared}[{j}] = {j};"
        yield f"__syncthreads(); v += {shared}[{places}[i] * {stride} % {size}];"


def global_atomics(w: Writer) -> Iterator[str]:
    bins = w.random.choice((1, 32, 5000))
    values = _places(w, bins)
    _note_distinct(w, values // IN_A_SECTOR, -(-bins // IN_A_SECTOR))
    places, o = w.array(values), w.zeros(bins, "int32")
    how = w.random.choice(("atomicAdd", "atomicMax", "atomicXor"))
    yield f"{how}(&{o}[{places}[i]], tid + 1);"


def division(w: Writer) -> Iterator[str]:
    """The slow path of a division is taken for very small and very large divisors."""
    share = _share(w)
    values = _random(w) + np.float32(0.5)
    is_extreme = w.numbers.random(len(values)) < share
    values[is_extreme] = w.random.choice((1e-39, 3e38, 0.0))
    _note_any(w, is_extreme)
    yield f"v += 1.5f / {w.array(values)}[i];"


def functions(w: Writer) -> Iterator[str]:
    """Square roots and sines with a slow path."""
    share, name = _share(w), w.random.choice(("sqrtf", "sinf", "cosf", "rsqrtf", "logf"))
    values = _random(w) + np.float32(0.1)
    is_extreme = w.numbers.random(len(values)) < share
    values[is_extreme] = 1e-39 if name in ("sqrtf", "rsqrtf", "logf") else 1e7
    _note_any(w, is_extreme)
    yield f"v += {name}({w.array(values)}[i]);"


def integer_division(w: Writer) -> Iterator[str]:
    """Guards in the division of integers follow from its operands."""
    places, one = w.integers(1 << 20), w.random.choice(("bid", "i", "k", ""))
    w.is_known = w.is_known and not one
    w.parameters.append(f"int {(name := w.fresh('divisor'))}")
    w.arguments.append(np.int32(w.random.choice((3, 7, 100, 1000))))
    yield f"k += {one or f'{places}[i]'} {w.random.choice('/%')} {name};"


def vote(w: Writer) -> Iterator[str]:
    """Branch of a whole warp that depends on the data of its threads."""
    share = w.random.choice((0.02, 0.5, 0.95))
    values, test = _random(w), w.random.choice(("any", "all", "ballot"))
    by_warp = _of_warps(w, values < share)
    decides = {"any": by_warp.any(axis=2), "all": by_warp.all(axis=2)}
    _note_rare(w, decides.get(test, by_warp[:, :, :2].any(axis=2)).sum(axis=1))
    yield f"if (__{test}_sync(__activemask(), {w.array(values)}[i] < {share}f)"
    yield f"{' & 3' if test == 'ballot' else ''}) {{ {' '.join(w.arithmetic())} }}"


def relu(w: Writer) -> Iterator[str]:
    """Guarded arithmetic without a branch."""
    values = _random(w) - np.float32(_share(w))
    _note_any(w, values > 0)
    a, x = w.array(values), w.fresh("x")
    yield f"const float {x} = {a}[i]; if ({x} > 0) v += {x}; else k += 1;"


def data_trips(w: Writer) -> Iterator[str]:
    most, j = w.random.choice((2, 8, 20)), w.fresh("j")
    values = _places(w, most)
    _note_rare(w, _of_warps(w, values).max(axis=2).sum(axis=1))
    yield f"for (int {j} = {w.array(values)}[i]; {j} > 0; --{j}) v = v * 0.5f + {j};"


def heavy_trips(w: Writer) -> Iterator[str]:
    """Trips of a loop with a long tail."""
    trips = (w.numbers.pareto(1.1, int(w.elements.max()) + 1) * 2).clip(max=500)
    w.is_known = False
    j = w.fresh("j")
    a = w.array(trips.astype(np.int32))
    index = w.random.choice(("i", f"bid * {w.threads}"))
    yield f"for (int {j} = {a}[{index}]; {j} > 0; --{j}) v = v * 0.5f + {j};"


def function_pointer(w: Writer) -> Iterator[str]:
    one, other, kind = (w.fresh_outside(x) for x in ("one", "other", "Kind"))
    step = w.fresh("step")
    head = "__device__ __noinline__ float"
    w.outside += [
        f"{head} {one}(float v) {{ return v * 0.5f + 1; }}",
        f"{head} {other}(float v) {{ for (int j = 0; j < 3; ++j) v = v * v - j; return v; }}",
        f"typedef float (*{kind})(float);",
    ]
    values = _random(w)
    share = _share(w)
    _note_any(w, values < share)
    yield f"const {kind} {step} = {w.array(values)}[i] < {share}f ? {one} : {other};"
    yield f"v = {step}(v);"


def machine(w: Writer) -> Iterator[str]:
    """The clock, and the number of an SM."""
    name = w.fresh("sm")
    yield f'unsigned {name}; asm volatile("mov.u32 %0, %%smid;" : "=r"({name}));'
    yield f"v += (float)(clock64() & 1) + {name};"


def local_places(w: Writer) -> Iterator[str]:
    """Local memory at places from data."""
    name, places = w.fresh("local"), w.integers(8)
    yield f"float {name}[8] = {{v, 1, 2, v, 4, 5, v, 7}};"
    yield f"{name}[{places}[i]] = 3; v += {name}[tid & 7];"


def _share(w: Writer) -> float:
    return w.random.choice(FREQUENT if w.is_even else (*FREQUENT, *RARE))


def _random(w: Writer) -> NDArray[np.float32]:
    """A random number for each thread."""
    return w.numbers.random(int(w.elements.max()) + 1, np.float32)


def _places(w: Writer, below: int) -> NDArray[np.int32]:
    return w.numbers.integers(0, below, int(w.elements.max()) + 1, np.int32)


def _note_any(w: Writer, is_true: NDArray[Any]) -> None:
    """A warp skips a branch that none of its threads takes, and does not split if all take it."""
    found = _of_warps(w, is_true)
    _note_rare(w, found.any(axis=2).sum(axis=1))
    _note_rare(w, found.all(axis=2).sum(axis=1))


def _note_distinct(w: Writer, places: NDArray[Any], most: int) -> None:
    """Accesses depend on how many places a warp takes."""
    found = _of_warps(w, places)
    if most <= WARP_SIZE:
        taken = [(found == place).any(axis=2).sum(axis=1) for place in range(most)]
        _note_rare(w, np.sum(taken, axis=0))


def _note_rare(w: Writer, counts: NDArray[Any]) -> None:
    """Blocks that count otherwise than most are of another kind, if they are rare."""
    found, populations = np.unique(counts, return_counts=True)
    is_other = (counts != found[populations.argmax()]).astype(np.int64)
    if is_other.mean() < LEAST_SHARE:
        w.note(is_other)


def _of_warps(w: Writer, values: NDArray[Any]) -> NDArray[Any]:
    """Values of threads by block, warp and lane; the last thread fills an incomplete warp."""
    found = values[w.elements]
    lack = -w.threads % WARP_SIZE
    return np.pad(found, ((0, 0), (0, lack)), mode="edge").reshape(w.blocks, -1, WARP_SIZE)


STATEMENTS = {
    "threshold": threshold,
    "NaN": not_a_number,
    "gather": gather,
    "gather in some blocks": partly_gathered,
    "scatter": scatter,
    "histogram": histogram,
    "places in shared memory": shared_places,
    "global atomics": global_atomics,
    "slow division": division,
    "slow functions": functions,
    "integer division": integer_division,
    "vote": vote,
    "guarded arithmetic": relu,
    "data trips": data_trips,
    "heavy trips": heavy_trips,
    "function pointer": function_pointer,
    "machine": machine,
    "local places": local_places,
}
