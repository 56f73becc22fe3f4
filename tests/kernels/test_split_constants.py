"""Constants that kernels/split_paths.py and the kernels both state: the compiler compares them."""

import pytest

from analysis.errors import CompileError
from kernels import split_paths
from kernels.product import Product
from kernels.split_paths import HALF_BYTES, PIECE, TILES, split
from tests.sampling import chosen_of
from toolkit.machine_code.kernel_source import compile_kernel

PASSES = {
    "THREADS": split_paths.THREADS,
    "WARPS": split_paths.WARPS,
    "WARP_COLUMNS": split_paths.WARP_COLUMNS,
}


def launches(tile):
    return split(Product(m=256, n=256, k=256), tile, sms=4).launches


def numbers_of(launch, tile):
    """Numbers of Python, by the expression in CUDA C++ that has to equal them."""
    if launch.file != "multiply_parts.cu":
        return PASSES
    return {
        "BM": tile.bm,
        "BN": tile.bn,
        "BK": tile.bk,
        "STAGES * STAGE_BYTES": tile.shared_bytes,
        "PIECE": PIECE * PIECE * HALF_BYTES,
        "CLUSTER": tile.cluster,
        "TICKETS_BEGIN": split_paths.TICKETS_BEGIN,
    }


def compiled(launch, numbers):
    asserted = "".join(f'static_assert({text} == {n}, "{text}");\n' for text, n in numbers.items())
    source = launch.source + asserted
    return compile_kernel(source, launch.entry, target="sm_90a", defines=dict(launch.defines))


CASES = [
    pytest.param(launch, tile, id=f"{launch.file}-{tile.name}")
    for tile in TILES
    for launch in launches(tile)
    if launch.file == "multiply_parts.cu" or tile is TILES[0]
]


@pytest.mark.parametrize(
    ("launch", "tile"), chosen_of(CASES, lambda case: case[0].file == "first_pass.cu")
)
def test_the_kernel_has_the_numbers_of_its_launch(launch, tile):
    kernel = compiled(launch, numbers_of(launch, tile))
    assert kernel.max_threads == launch.block


@pytest.mark.parametrize(("launch", "tile"), CASES)
def test_another_number_does_not_compile(launch, tile):
    for name, number in numbers_of(launch, tile).items():
        with pytest.raises(CompileError, match="static assertion failed"):
            compiled(launch, {name: number + 1})
