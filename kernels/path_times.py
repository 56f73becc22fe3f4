"""Candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from analysis.devices import Device
from analysis.geometry import ceil_div
from kernels.paths import (
    ANY_TILES,
    BULK_TILES,
    COLUMNS_OF_FEW_ROWS,
    MOST_ROWS,
    STREAMED_ROWS,
    Plan,
    any_layout,
    few_rows,
    short_k,
    SHORT_TILES,
    MOST_SHORT_K,
    sliced,
    streamed,
)
from kernels.product import Product


def every_candidate(product: Product, device: Device) -> Iterator[Callable[[], Plan]]:
    sms = device.sm_count
    m, n, k, batch = product.m, product.n, product.k, product.batch
    if min(m, n) <= MOST_ROWS:
        along_k = (not product.transpose_a) if n < m else product.transpose_b
        columns = COLUMNS_OF_FEW_ROWS[along_k]
        blocks = ceil_div(max(m, n), columns) * batch
        seen = set()
        for wanted in (1, sms, 2 * sms, 4 * sms):
            splits = min(max(1, wanted // blocks), max(1, ceil_div(k, 128)), 64)
            depth = ceil_div(ceil_div(k, splits), 64) * 64
            splits = ceil_div(k, depth)
            if splits not in seen:
                seen.add(splits)
                yield partial(few_rows, product, splits, depth)
    if product.k <= MOST_SHORT_K:
        for rows, columns in SHORT_TILES:
            yield partial(short_k, product, rows, columns)
    for tile in ANY_TILES:
        yield from (partial(any_layout, product, tile, s) for s in _splits(product, tile, sms))
    for tile in BULK_TILES:
        yield from (partial(sliced, product, tile, s) for s in _splits(product, tile, sms))
    if batch == 1:
        for rows in STREAMED_ROWS:
            yield partial(streamed, product, rows, 2 * sms)


def _splits(product, tile, sms):
    tiles = ceil_div(product.m, tile.bm) * ceil_div(product.n, tile.bn) * product.batch
    phases = ceil_div(product.k, tile.bk)
    resident = max(
        1,
        min(
            (512 if tile.tm * tile.tn < 128 else 256) // tile.threads,
            227 * 1024 // (tile.shared_bytes + 1024),
        ),
    )
    slots = sms * resident
    found = {1}
    for wanted in (sms, slots, 2 * slots):
        splits = min(wanted // tiles, phases, 64)
        if splits > 1:
            found.add(splits)
    return sorted(found)
