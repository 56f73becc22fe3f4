"""HGMMA, IGMMA, QGMMA and BGMMA: values bit for bit, and what descriptors read.

Vectors and maps were recorded on an H100 (CUDA 13.0); the kernels here are compiled for sm_90a.
"""

from collections import defaultdict

import numpy as np
import pytest

from tests.sampling import sampled
from toolkit import simulate
from validation.wgmma import recorded_products
from validation.wgmma.products import (
    SWIZZLES,
    THREADS,
    Form,
    descriptor,
    inputs,
    launch_arguments,
    results,
    rows_to_registers,
    source,
)

SHARED_BASE = 0x400


def multiplied(form, arguments, blocks, shared_bytes):
    execution = simulate(
        source(form),
        "product",
        grid=blocks,
        block=THREADS,
        dynamic_shared_bytes=shared_bytes,
        arguments=arguments,
        blocks="all",
    )
    return execution, results(form, execution.outputs[3])


def product(form, a, b, c, **more):
    made = inputs(form, a, b, c, **more)
    return multiplied(form, made.arguments, made.blocks, made.shared_bytes)[1]


def kind_of(name):
    """One form of each type of sums and of operands is in the sample."""
    found = recorded_products.vectors(name).form
    return found.a if found.sums != "f16" else "to halves"


@pytest.mark.parametrize("name", sampled(recorded_products.names(), kind_of))
def test_sums_have_the_bits_of_a_gpu(name):
    wanted = recorded_products.vectors(name)
    sums = product(wanted.form, *wanted.tiles(), scale=wanted.scale)
    np.testing.assert_array_equal(wanted.on_diagonal(sums), wanted.d)


def halves(values):
    return np.asarray(values, dtype=np.float16).view(np.uint8)


def read_elements(operand, transposed):
    """For each map, the elements that the simulator reads, as the map has them."""
    maps = [m for m in recorded_products.maps(operand) if m.transposed == transposed]
    rows, k = maps[0].elements.shape
    units = -(-2 * (1 + max(int(m.elements.max()) for m in maps)) // 16)
    # the other operand is a unit matrix: an element of A times one of B, and zeros
    unit = np.eye(16, dtype=np.float16)
    if operand == "A":
        form = Form(a="f16", b="f16", sums="f32", n=16, transposed=(transposed, False))
        other = np.ascontiguousarray(unit.reshape(2, 8, 2, 8).swapaxes(1, 2)).reshape(-1)
    else:
        form = Form(
            a="f16", b="f16", sums="f32", n=rows, in_registers=True, transposed=(False, transposed)
        )
        other = np.zeros(0, dtype=np.float16)
    left = np.zeros((len(maps), 64, 32), dtype=np.uint8)
    left[:, :16] = unit.view(np.uint8)
    number = np.arange(8 * units)
    found = np.zeros((len(maps), rows, k), dtype=np.int64)
    for shift in (0, 8):  # halves hold a byte of the number of each element
        image = np.concatenate([(number >> shift & 255).astype(np.float16), other])
        images = np.tile(image.view(np.uint8), (len(maps), 1))
        read = [
            descriptor(
                m.start + SHARED_BASE, m.leading, m.stride, swizzle=SWIZZLES[m.layout], base=m.base
            )
            for m in maps
        ]
        end = descriptor(SHARED_BASE + 16 * units, 128, 256)
        both = [(x, end) if operand == "A" else (0, x) for x in read]
        c = np.zeros((len(maps), form.words, THREADS), dtype=np.uint32)
        descriptors = np.array(both, dtype=np.uint64)
        arguments = launch_arguments(form, images, descriptors, rows_to_registers(left), c)
        _, sums = multiplied(form, arguments, len(maps), images.shape[1])
        values = sums.view(np.float32).astype(np.int64)
        found += (values if operand == "A" else values[:, :16].swapaxes(1, 2)) << shift
    return maps, found


@pytest.mark.parametrize("operand", ["A", "B"])
@pytest.mark.parametrize("transposed", [False, True])
def test_descriptors_read_what_a_gpu_reads(operand, transposed):
    maps, found = read_elements(operand, transposed)
    for one, read in zip(maps, found, strict=True):
        np.testing.assert_array_equal(read, one.elements, str(one))


def test_all_maps_are_compared():
    read = defaultdict(int)
    for operand in "AB":
        for one in recorded_products.maps(operand):
            read[operand] += 1
            assert one.elements.shape[1] == 16
    assert read == {"A": 186, "B": 183}


def random_bytes(rng, *shape):
    return rng.integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("in_registers", [False, True])
def test_bits_are_counted(in_registers):
    """BGMMA counts the ones of A AND B over 256 bits."""
    rng = np.random.default_rng(1)
    a, b = random_bytes(rng, 2, 64, 32), random_bytes(rng, 2, 24, 32)
    c = rng.integers(0, 1 << 32, (2, 64, 24), dtype=np.uint32)
    form = Form(a="b1", b="b1", sums="s32", n=24, in_registers=in_registers)
    bits_a, bits_b = (np.unpackbits(x, axis=2).astype(np.int64) for x in (a, b))
    wanted = c.astype(np.int64) + bits_a @ bits_b.swapaxes(1, 2)
    np.testing.assert_array_equal(product(form, a, b, c), wanted.astype(np.uint32))


@pytest.mark.parametrize("left", ["s8", "u8"])
@pytest.mark.parametrize("right", ["s8", "u8"])
def test_bytes_of_either_sign_are_multiplied(left, right):
    rng = np.random.default_rng(2)
    a, b = random_bytes(rng, 1, 64, 32), random_bytes(rng, 1, 256, 32)
    c = np.full((1, 64, 256), 0x7FFFFF00, dtype=np.uint32)
    form = Form(a=left, b=right, sums="s32", n=256)
    kinds = {"s8": np.int8, "u8": np.uint8}
    whole_a, whole_b = (x.view(kinds[k]).astype(np.int64) for x, k in ((a, left), (b, right)))
    wanted = c.astype(np.int64) + whole_a @ whole_b.swapaxes(1, 2)  # wraps
    np.testing.assert_array_equal(product(form, a, b, c), wanted.astype(np.uint32))
