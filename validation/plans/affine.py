"""Ingredients whose branches and addresses follow affine arithmetic and comparisons of indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from validation.plans.index import Index
from validation.plans.writer import C_TYPES, Writer

ORDERS = ("<", ">", "<=", ">=")
FLOAT = 4  # bytes
MOST_FLOATS = 1 << 20  # of an array with rows of blocks


def equal(w: Writer) -> Index:
    one = w.atom()
    at = int(w.random.choice([one.values[0], one.values[-1], w.random.choice(one.values)]))
    return one.compared(w.random.choice(("==", "==", "!=")), at, w.scalar(at))


def below(w: Writer) -> Index:
    one = w.atom()
    at = w.threshold(one)
    return one.compared(w.random.choice(ORDERS), at, w.scalar(at))


def between(w: Writer) -> Index:
    one = w.atom()
    low, high = sorted((w.threshold(one), w.threshold(one)))
    return one.compared(">=", low, w.scalar(low)) & one.compared("<=", high, w.scalar(high))


def corner(w: Writer) -> Index:
    found = Index("1", np.ones(w.blocks, np.int64))
    for one in w.axes:
        found = found & one.compared("==", int(w.random.choice((0, one.values.max()))))
    return found


def edge(w: Writer) -> Index:
    found = Index("0", np.zeros(w.blocks, np.int64))
    for one in w.axes:
        for at in w.random.choice(((0,), (one.values.max(),), (0, one.values.max()))):
            found = found | one.compared("==", int(at))
    return found


def diagonal(w: Writer) -> Index:
    one, other = w.atom(), w.atom()
    found = one * w.random.choice((1, 2, 3, 5, -1)) + other * w.random.choice((1, -1, 2, -3))
    at = w.threshold(found)
    return found.compared(w.random.choice((*ORDERS, "==")), at, w.scalar(at))


def wraparound(w: Writer) -> Index:
    """One comparison for two: below its low end an unsigned number is large."""
    one = w.atom()
    low = w.threshold(one)
    moved = (one.unsigned() - low).unsigned()
    width = max(1, int(one.values.max()) // w.random.choice((2, 3, 9)))
    return moved.compared("<", width, f"(unsigned){w.scalar(width)}")


def folded(w: Writer) -> Index:
    """Condition on minima, maxima and absolute values."""
    one, other = w.atom(), w.atom()
    low, middle = w.threshold(one), w.threshold(other)
    function, keep = w.random.choice((("min", np.minimum), ("max", np.maximum)))
    away = other - middle
    found = one.call(function, keep(one.values, low), low) + away.call("abs", np.abs(away.values))
    sides = (one.values < low) * 1, (other.values < middle) * 1
    return found.compared(w.random.choice(ORDERS), w.threshold(found)).with_parts(*sides)


def triangle(w: Writer) -> Index:
    """Tiles on one side of a diagonal."""
    one, other = w.axes[0], w.axes[-1]
    if len(w.axes) == 1:
        last = int(one.values.max())
        other = Index(f"({last} - {one.text})", last - one.values)
    return one.compared(w.random.choice(("<=", "<", ">=", "==")), other)


def wide(w: Writer) -> Index:
    """Condition on 64-bit integers."""
    one = w.atom()
    scale = w.random.choice((3_000_000_019, 2**33, 2**32 - 5))
    at = w.threshold(one) * scale
    text = f"(long long){one.text} * {scale}LL"
    return Index(f"({text})", one.values * scale).compared(w.random.choice(ORDERS), at, f"{at}LL")


def affine_trips(w: Writer) -> Iterator[str]:
    """A loop to the index of a block, in steps."""
    one, j = w.atom(), w.fresh("j")
    end = int(one.values.max())
    step = max(1, end // w.random.choice((2, 5, 12)))
    if w.chance(0.5):
        w.note(one.values // step)
        yield f"for (int {j} = 0; {j} <= {one.text}; {j} += {step}) v = v * 0.5f + {j};"
    else:
        w.note((end - one.values) // step)
        yield f"for (int {j} = {end}; {j} >= {one.text}; {j} -= {step}) v = v * 0.25f + {j};"


def scalar_trips(w: Writer) -> Iterator[str]:
    count = w.random.randint(2, 12)
    w.parameters.append(f"int {(name := w.fresh('count'))}")
    w.arguments.append(np.int32(count))
    j, a = w.fresh("j"), w.floats()
    yield f"for (int {j} = 0; {j} < {name}; ++{j}) v = v * 0.5f + {a}[i] * {j};"


def halo(w: Writer) -> Iterator[str]:
    """Neighbours of an element, clamped at the ends of the array."""
    a, reach = w.floats(), w.random.choice((1, 2, w.threads))
    last = int(w.elements.max())
    w.note(w.elements.min(axis=1).clip(max=reach) + w.elements.max(axis=1).clip(last - reach))
    yield f"v += {a}[max(i - {reach}, 0)] - {a}[min(i + {reach}, {last})];"


def guard(w: Writer) -> Iterator[str]:
    """Threads past the end of an array do nothing; some blocks have such threads."""
    first, last = w.elements.min(axis=1), w.elements.max(axis=1)
    end = int(w.random.choice(last) + w.random.randint(-w.threads, 0))
    end = max(end, 1) if w.chance(0.3) else int(last.max()) - w.random.randint(0, 2 * w.threads)
    w.note(np.sum(w.elements < end, axis=1))
    w.note((first < end) * 1 + (last < end))
    o = w.zeros(int(last.max()) + 1)
    yield f"if (i < {w.scalar(end)}) {{ {o}[i] = v; {' '.join(w.arithmetic())} }}"


def thread_part(w: Writer) -> Iterator[str]:
    """Some threads of each block."""
    a, until = w.floats(), w.random.randint(1, w.threads)
    text = w.random.choice((f"tid < {until}", "(tid & 31) == 0", f"tid >= {until}", "tid & 1"))
    yield f"if ({text}) {{ v += {a}[i]; {' '.join(w.arithmetic())} }}"


def odd_pitch(w: Writer) -> Iterator[str]:
    """Rows that begin anywhere in a sector."""
    row = w.random.choice([*w.axes, w.linear])
    most = MOST_FLOATS // (int(row.values.max()) + 1)
    pitch = w.random.choice([p for p in (1001, 333, 129, 65, 37, 15, 6) if p <= most])
    w.note_addresses(row.values * pitch * FLOAT)
    a = w.floats(int(row.values.max()) * pitch + w.threads)
    yield f"v += {a}[{row.text} * {w.scalar(pitch)} + tid];"


def strided(w: Writer) -> Iterator[str]:
    stride, start = w.random.choice((2, 3, 5, 8)), w.random.choice((0, 1, 3))
    w.note_addresses(w.elements[:, 0] * stride * FLOAT)
    a = w.floats(int(w.elements.max()) * stride + start + 1)
    yield f"v += {a}[i * {stride} + {start}];"


def vectors(w: Writer) -> Iterator[str]:
    """Loads of 8 or 16 bytes, at the same places of each block."""
    lanes = w.random.choice((2, 4))
    a = w.floats(w.blocks * w.threads * lanes)
    name = w.fresh("f")
    yield f"const float{lanes} {name} = ((const float{lanes} *){a})[bid * {w.threads} + tid];"
    yield f"v += {name}.x * {name}.y;"


def wide_index(w: Writer) -> Iterator[str]:
    a, name = w.floats(), w.fresh("at")
    yield f"const long long {name} = ((long long)i << 33) + {w.scalar(7)};"
    yield f"v += {a}[{name} >> 33];"


def tile(w: Writer) -> Iterator[str]:
    """Shared memory, with bank conflicts."""
    shared, a = w.fresh("shared"), w.floats()
    stride = w.random.choice((1, 2, 3, 8, 17, 32, 33))
    size = w.threads * stride if w.threads * stride <= 4096 else 4096
    yield f"__shared__ float {shared}[{size}];"
    yield f"__syncthreads(); {shared}[tid * {stride} % {size}] = {a}[i]; __syncthreads();"
    # several threads may write a place: no branch and no address depends on who was last
    yield f"v += {shared}[{size} - 1 - tid % {size}];"


def shuffle(w: Writer) -> Iterator[str]:
    how, by = w.random.choice(("down", "up", "xor")), w.random.choice((1, 2, 5, 16))
    yield f"v += __shfl_{how}_sync(__activemask(), v, {by});"


def local_array(w: Writer) -> Iterator[str]:
    """An array in local memory: its index is no constant."""
    name, size, j = w.fresh("local"), w.random.choice((8, 16)), w.fresh("j")
    by = w.scalar(w.random.randint(1, 7))
    yield f"float {name}[{size}];"
    yield f"for (int {j} = 0; {j} < {size}; ++{j}) {name}[({j} * 5 + {by}) & {size - 1}] = v + {j};"
    yield f"v += {name}[(tid + {by}) & {size - 1}];"


def doubles(w: Writer) -> Iterator[str]:
    size = int(w.elements.max()) + 1
    a = w.array(w.numbers.random(size))
    yield f"v += (float)({a}[i] * 1.5 + (double)v);"


def constant_table(w: Writer) -> Iterator[str]:
    """Constant memory, at a place that depends on the thread."""
    table = w.table(w.numbers.integers(0, 1000, 32))
    yield f"k += {table}[{w.random.choice(('tid & 31', 'tid >> 5 & 7', '5'))}];"


def narrow(w: Writer) -> Iterator[str]:
    """Elements of 1 or 2 bytes."""
    kind = w.random.choice(("int8", "int16"))
    size = int(w.elements.max()) + 1
    w.note_addresses(w.elements[:, 0] * np.dtype(kind).itemsize)
    a = w.array(w.numbers.integers(-99, 99, size).astype(kind))
    o = w.zeros(size, kind)
    yield f"{o}[i] = ({C_TYPES[kind]})({a}[i] * 3 + k);"


def transposed(w: Writer) -> Iterator[str]:
    """The first axis of the grid is the last one of the array."""
    place = Index("0", np.zeros(w.blocks, np.int64))
    for one in w.axes:
        place = place * (int(one.values.max()) + 1) + one
    at = f"{place.text} * {w.threads} + tid"
    if w.chance(0.5):  # neighbours in a warp are far from each other
        at = f"tid * {w.blocks} + {place.text}"
        w.note_addresses(place.values * FLOAT)
    yield f"{w.zeros(w.blocks * w.threads)}[{at}] = v;"


def grid_stride(w: Writer) -> Iterator[str]:
    """A loop over an array in steps of the whole grid."""
    whole = w.blocks * w.threads
    size = max(1, int(whole * w.random.choice((0.3, 0.9, 1.0, 1.5, 2.2))) - w.random.choice((0, 9)))
    first = w.linear.values * w.threads
    for at in (first, first + w.threads - 1):
        w.note((size - at + whole - 1) // whole)
    w.note(np.clip((size - first) % whole, 0, w.threads))
    a, j = w.floats(size), w.fresh("j")
    begin, end = f"bid * {w.threads} + tid", w.scalar(size)
    yield f"for (int {j} = {begin}; {j} < {end}; {j} += {whole}) v += {a}[{j}];"


def function(w: Writer) -> Iterator[str]:
    """A function that stays one."""
    name = w.fresh_outside("part")
    body = f"for (int j = 0; j < n; ++j) v = v * 0.5f + {w.random.randint(1, 9)}; return v;"
    w.outside.append(f"__device__ __noinline__ float {name}(float v, int n) {{ {body} }}")
    yield f"v = {name}(v, {w.scalar(w.random.randint(1, 4))});"


def relation_of_threads(w: Writer) -> Iterator[str]:
    """A comparison of an element's place with one that depends on the block: a slanted edge."""
    one = w.atom()
    slope = w.random.choice((1, 3, 7)) * w.threads // 4 + w.random.randint(0, 3)
    at = int(w.random.choice(w.elements[:, 0]))
    active = w.elements + one.values[:, None] * slope < at * 2
    w.note(active.sum(axis=1))
    yield f"if (i + {one.text} * {slope} < {2 * at}) {{ {' '.join(w.arithmetic())} }}"


CONDITIONS = {
    "block equals": equal,
    "blocks below": below,
    "blocks between": between,
    "corner": corner,
    "edge": edge,
    "diagonal": diagonal,
    "wraparound": wraparound,
    "minimum and absolute value": folded,
    "triangle of tiles": triangle,
    "64-bit comparison": wide,
}
STATEMENTS = {
    "loop to the block": affine_trips,
    "loop to a scalar": scalar_trips,
    "halo": halo,
    "guard": guard,
    "part of the threads": thread_part,
    "odd pitch": odd_pitch,
    "strided": strided,
    "vectors": vectors,
    "64-bit index": wide_index,
    "shared tile": tile,
    "shuffle": shuffle,
    "local array": local_array,
    "double": doubles,
    "constant table": constant_table,
    "narrow elements": narrow,
    "transposed": transposed,
    "grid stride": grid_stride,
    "function": function,
    "slanted edge": relation_of_threads,
}
