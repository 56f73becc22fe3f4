"""Kernels of products whose blocks start while the launch before them ends (decision 116).

The simulator executes launches one after the other, so that a missing wait changes no result there.
"""

import pytest

from kernels.path_tiles import ANY_TILES, BULK_TILES
from kernels.paths import any_layout, few_rows, short_k, sliced, streamed
from kernels.product import Product
from tests.sampling import exhaustive
from toolkit.machine_code.kernel_source import compile_kernel

ANY = {tile.name: tile for tile in ANY_TILES}["32x32x64/4x8x8"]
BULK = {tile.name: tile for tile in BULK_TILES}["64x32x64/8x8x8"]
TRANSPOSED = Product(m=37, n=45, k=70, transpose_b=True, alpha=2.0, beta=0.5, ldc=47)
FEW_ROWS = Product(m=3, n=70, k=150, transpose_b=True)
SHORT_K = Product(m=37, n=45, k=23, transpose_b=True, batch=2, alpha=-1.0, beta=0.5)
SHARED = Product(m=70, n=36, k=136, batch=2, stride_a=0)
BATCH = Product(m=130, n=129, k=66, batch=3, ldc=131, beta=0.5, stride_a=0)
SPLIT = Product(m=33, n=20, k=576, lda=579, batch=2, stride_b=0)
PLANS = {
    "any layout": any_layout(TRANSPOSED, ANY, 1),
    "any layout, sums": any_layout(SPLIT, ANY, 9),
    "few rows": few_rows(FEW_ROWS, 3, 64),
    "short k": short_k(SHORT_K, 2, 1),
    "sliced": sliced(SHARED, BULK, 2),
    "streamed, pack": streamed(BATCH, 8, 12),
}
WAIT = "ACQBULK"  # griddepcontrol.wait
GLOBAL = ("LD", "LDG", "LDGSTS", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG", "UTMALDG", "UBLKCP")


@pytest.mark.parametrize(
    "name", [exhaustive(name) if name == "any layout, sums" else name for name in PLANS]
)
def test_kernels_wait_before_they_access_global_memory(name):
    for launch in PLANS[name].launches:
        assert launch.waits_itself
        kernel = compile_kernel(launch.source, launch.entry, target="sm_90", defines=launch.defines)
        (wait,) = (one.address for one in kernel.instructions if one.opcode == WAIT)
        accesses = [one for one in kernel.instructions if one.opcode in GLOBAL]
        assert wait < min(one.address for one in accesses), launch.entry
        # ld.global.nc may find what was in a cache when the block started
        cached = [one.text for one in accesses if "CONSTANT" in one.modifiers]
        assert cached == [], launch.entry
