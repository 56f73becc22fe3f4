"""Ingredients by which blocks differ otherwise than by affine arithmetic and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from validation.plans.affine import FLOAT, ORDERS
from validation.plans.index import WORD, Index, Values
from validation.plans.writer import Writer

PRIMES = (3, 5, 7, 11, 13, 31, 61, 97)


def period(w: Writer) -> Index:
    one, by = w.atom(), _period(w)
    left = one % by
    return left.compared(w.random.choice(("==", "<", "!=")), w.random.randrange(by))


def bits(w: Writer) -> Index:
    one, other = w.atom(), w.atom()
    shift = w.random.randint(0, 4)
    found = w.random.choice(
        (
            one & w.random.choice((1, 2, 3, 6, 8, 31)),
            (one >> shift) & 1,
            (one ^ other) & w.random.choice((1, 3, 7)),
            (one ^ (one >> shift)) & 3,
            one.call("__popc", np.bitwise_count(one.values).astype(np.int64)) & 1,
        )
    )
    return found.compared(w.random.choice(("==", "!=")), w.random.choice(found.values.tolist()))


def quotient(w: Writer) -> Index:
    one, by = w.atom(), _period(w)
    found = one // by
    if w.chance(0.5):
        found = found % w.random.choice((2, 3, 5))
    return found.compared(w.random.choice(("==", "<", "!=")), w.threshold(found))


def hashed(w: Writer) -> Index:
    by = _period(w)
    found = w.atom().hashed() % by
    return found.compared("<", w.random.randint(1, max(1, by - 1)))


def product(w: Writer) -> Index:
    one, other = w.atom(), w.atom()
    found = one * other
    if w.chance(0.3):
        found = found % _period(w)
    return found.compared(w.random.choice(ORDERS), w.threshold(found))


def of_table(w: Writer) -> Index:
    """A number that is read for each block from an array."""
    values = _kinds_of_blocks(w)
    found = Index(f"{w.array(values.astype(np.int32))}[bid]", values)
    return found.compared(w.random.choice((">", "==")), w.random.choice((0, 1)))


def of_constants(w: Writer) -> Index:
    """A number that is read for each block from constant memory."""
    one, size = w.atom(), w.random.choice((31, 64, 100))
    table = w.numbers.integers(0, 3, size)
    place = one % size
    found = Index(f"{w.table(table)}[{place.text}]", table[place.values])
    return found.compared("==", w.random.choice((0, 1, 2)))


def grouped(w: Writer) -> Index:
    """By the place of a block in an order of groups, as matrix products have it."""
    row, column = _grouped(w)
    found = w.random.choice((row, column, row - column))
    return found.compared(w.random.choice(ORDERS), w.threshold(found))


def bent_trips(w: Writer) -> Iterator[str]:
    """Trips of a loop by period, quotient, hash or table."""
    one, by = w.atom(), w.random.choice((2, 3, 4, 5, 8))
    table = w.numbers.integers(0, by, w.blocks, np.int32)
    found = w.random.choice(
        (
            lambda: one % by,
            lambda: one // _period(w) % by,
            lambda: one.hashed() % by,
            lambda: Index(f"{w.array(table)}[bid]", table.astype(np.int64)),
        )
    )()
    w.note(found.values)
    j = w.fresh("j")
    yield f"for (int {j} = 0; {j} < {found.text}; ++{j}) v = v * 0.5f + {j};"


def chosen_pointer(w: Writer) -> Iterator[str]:
    """One of several arrays, at another place in a sector."""
    found = w.condition(w.random.choice((bits, period, hashed)))
    if found is None:
        return
    a, other = w.floats(), w.floats(int(w.elements.max()) + 4)
    if w.chance(0.5):
        yield f"v += ({found.text} ? {a} : {other} + {w.random.randint(1, 3)})[i];"
    else:
        name = w.fresh("both")
        yield f"const float *{name}[2] = {{{a}, {other} + 1}};"
        yield f"v += {name}[{found.text} ? 1 : 0][i];"


def switch(w: Writer) -> Iterator[str]:
    one, count = w.atom(), w.random.randint(3, 6)
    found = w.random.choice((one % count, one.hashed() % count, (one >> 1) % count))
    w.note(found.values)
    a, j = w.floats(), w.fresh("j")
    bodies = [
        f"v += {a}[i];",
        f"for (int {j} = 0; {j} < 5; ++{j}) v = v * 0.5f + {j};",
        "k = k * 7 + tid; v += k;",
        f"if (tid & 1) v -= {a}[i] * 2;",
        "v = v * v + 1;",
    ]
    w.random.shuffle(bodies)
    yield f"switch ({found.text}) {{"
    yield from (f"case {n}: {body} break;" for n, body in enumerate(bodies[: count - 1]))
    yield "default: v -= 3; }"


def swizzled(w: Writer) -> Iterator[str]:
    """Blocks take tiles in another order; rows of tiles begin anywhere in a sector."""
    one, by = w.linear, w.random.choice((2, 4, 8, 16))
    if w.chance(0.5):
        row, column = _grouped(w)
    else:
        row, column = one // by, (one % by) ^ ((one // by) % by)
    pitch = (int(column.values.max()) + 1) * w.threads + w.random.choice((0, 8, 1, 3))
    at = row * pitch + column * w.threads
    w.note_addresses(at.values * FLOAT)
    a = w.floats(int(at.values.max()) + w.threads)
    yield f"v += {a}[{at.text} + tid];"


def permuted(w: Writer) -> Iterator[str]:
    """Blocks read from places in an order that is not theirs."""
    prime, offset = w.random.choice((7919, 104729, 5)), w.random.randint(0, 7)
    at = (w.linear * prime) % w.blocks
    misplaced = w.chance(0.5)
    place = at * (w.threads + 1 if misplaced else w.threads) + offset
    w.note_addresses(place.values * FLOAT)
    a = w.floats(w.blocks * (w.threads + 1) + 8)
    yield f"v += {a}[{place.text} + tid];"


def rows_of_table(w: Writer) -> Iterator[str]:
    """Rows of different lengths, one per block, as of a sparse matrix."""
    lengths = w.numbers.integers(0, 3 * w.threads, w.blocks)
    if w.chance(0.5):
        lengths = np.where(_kinds_of_blocks(w) > 0, 4 * w.threads, w.threads)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    w.note(lengths)
    w.note_addresses(ends[:-1] * FLOAT)
    starts, a, j = w.array(ends.astype(np.int32)), w.floats(int(ends[-1]) + 1), w.fresh("j")
    begin = f"int {j} = {starts}[bid] + tid"
    yield f"for ({begin}; {j} < {starts}[bid + 1]; {j} += {w.threads}) v += {a}[{j}];"


def clustered(w: Writer) -> Iterator[str]:
    """Data that are large in some blocks alone."""
    kind = _kinds_of_blocks(w)
    w.note(kind)
    values = np.zeros(int(w.elements.max()) + 1, np.float32)
    noise = w.numbers.random(w.elements.shape) * w.random.choice((0, 1))
    values[w.elements] = kind[:, None] * 2 + noise * 0.5
    a, j = w.array(values), w.fresh("j")
    if w.chance(0.5):
        yield f"for (int {j} = 0; {j} < (int)({a}[i] * 2); ++{j}) v = v * 0.5f + {j};"
    else:
        yield f"if ({a}[i] > 1.0f) {{ {' '.join(w.arithmetic())} }}"


def ticket(w: Writer) -> Iterator[str]:
    """Blocks take numbers in the order in which they run."""
    counter, shared = w.array(np.zeros(1, np.int32), is_read=False), w.fresh("ticket")
    w.is_known = False
    yield f"__shared__ int {shared};"
    yield f"__syncthreads(); if (tid == 0) {shared} = atomicAdd({counter}, 1); __syncthreads();"
    until, by = w.random.randint(1, w.blocks), w.random.choice(PRIMES)
    text = w.random.choice((f"{shared} < {until}", f"{shared} % {by} == 1"))
    yield f"if ({text}) {{ {' '.join(w.arithmetic())} v += 1 / (1 + v * v); }}"


def wrapped_product(w: Writer) -> Index:
    """Condition on unsigned numbers that wrap: a generator of random numbers for each block."""
    one = w.atom()
    found = Index(
        f"(((unsigned){one.text} * 1664525u + 1013904223u) >> 8)",
        (one.values * 1664525 + 1013904223 & WORD) >> 8,
    )
    return found.compared(w.random.choice(ORDERS), w.threshold(found))


def _period(w: Writer) -> int:
    if w.is_even:
        return w.random.choice((2, 2, 3, 3, 4, 5))
    return w.random.choice((2, 4, 8, 16, 32, 64, *PRIMES, w.random.randint(2, 100)))


def _kinds_of_blocks(w: Writer) -> Values:
    """0 or 1 for each block: in one run, in several runs, at random, or of one block alone."""
    share = w.random.uniform(0.15, 0.85) if w.is_even else w.random.choice((0.1, 0.02, 0.003))
    at = np.arange(w.blocks)
    ways: tuple[Callable[[], NDArray[np.bool_]], ...] = (
        lambda: at < share * w.blocks,
        lambda: at >= (1 - share) * w.blocks,
        lambda: at % max(1, w.blocks // 4) < share * (w.blocks // 4),
        lambda: w.numbers.random(w.blocks) < share,
    )
    return w.random.choice(ways)().astype(np.int64)


def _grouped(w: Writer) -> tuple[Index, Index]:
    """Row and column of a block where groups of rows are walked by columns."""
    columns, group = w.random.choice((4, 8, 12, 16)), w.random.choice((2, 4, 8))
    in_group = w.linear % (columns * group)
    first = w.linear // (columns * group) * group
    return first + in_group % group, in_group // group


CONDITIONS = {
    "period": period,
    "bits": bits,
    "quotient": quotient,
    "hash": hashed,
    "product": product,
    "wrapped product": wrapped_product,
    "table of blocks": of_table,
    "constants of blocks": of_constants,
    "grouped order": grouped,
}
STATEMENTS = {
    "bent trips": bent_trips,
    "chosen pointer": chosen_pointer,
    "switch": switch,
    "swizzled": swizzled,
    "permuted": permuted,
    "rows of a table": rows_of_table,
    "clustered data": clustered,
    "ticket": ticket,
}
